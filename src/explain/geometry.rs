//! The lists of a geometry line: the bytes a token of each KV entry, written out or shortened.

/// The entries of one side.
#[derive(Debug, PartialEq, Eq)]
struct Entries {
    bytes: Vec<u64>,
    /// The line has only the first of them.
    is_cut: bool,
}

/// Entries that are looked at: more layers than any model has, twice over.
const ENTRIES_MAX: usize = 4_096;

impl Entries {
    /// Reads `[1152 x24, 256, ...]`, with or without brackets.
    fn read(list: &str) -> Option<Entries> {
        let mut entries = Entries { bytes: Vec::new(), is_cut: false };
        for part in list.trim_matches(['[', ']', '(', ')', ' ']).split(',').map(str::trim) {
            if part.is_empty() {
                continue;
            }
            if part.starts_with("...") || part == "…" {
                entries.is_cut = true;
                continue;
            }
            let (bytes, times) = part.split_once(['x', '*', '×']).unwrap_or((part, "1"));
            let times: usize = times.trim().parse().ok()?;
            if entries.bytes.len() + times > ENTRIES_MAX {
                return None;
            }
            let bytes: u64 = bytes.trim().parse().ok()?;
            entries.bytes.extend(std::iter::repeat_n(bytes, times));
        }
        Some(entries)
    }

    /// Runs of equal entries, in words.
    fn said(&self) -> String {
        let runs = self.bytes.chunk_by(|one, other| one == other);
        let said: Vec<String> =
            runs.map(|run| format!("{} of {} bytes a token", run.len(), run[0])).collect();
        let count = self.bytes.len();
        match (said.is_empty(), self.is_cut) {
            (true, _) => "no entries".to_owned(),
            (false, true) => format!("{count} entries and more ({}, ...)", said.join(", ")),
            (false, false) => format!("{count} entries ({})", said.join(", ")),
        }
    }
}

/// What the lists of a line say, as far as it has them.
pub fn holds(line: &str) -> Vec<String> {
    let list = |cue: &str| {
        let rest = &line[line.find(cue)? + cue.len()..];
        Entries::read(&rest[..=rest.find(']')?])
    };
    let (source, target) = (list("src="), list("dst="));
    let mut holds = vec![
        "Both sides have the same KV entries: as many, each of the same bytes a token.".to_owned(),
    ];
    for (side, entries) in [("Prefill", &source), ("Decode", &target)] {
        if let Some(entries) = entries {
            holds.push(format!("{side} has {}.", entries.said()));
        }
    }
    if let (Some(source), Some(target)) = (&source, &target) {
        holds.extend(difference(source, target));
    } else if source
        .as_ref()
        .is_some_and(|source| source.bytes.windows(2).any(|two| two[0] != two[1]))
    {
        holds.push(
            "Entries of several sizes stand side by side: those of a draft model or an indexer follow the \
             target's. Where only one side registers them, the lists differ in number."
                .to_owned(),
        );
    }
    holds
}

/// Where two lists differ first.
fn difference(source: &Entries, target: &Entries) -> Vec<String> {
    let mut said = Vec::new();
    let (here, there) = (source.bytes.len(), target.bytes.len());
    if here != there && !source.is_cut && !target.is_cut {
        said.push(format!(
            "They differ in number, by {}: a draft model's or an indexer's entries are on one side only.",
            here.abs_diff(there)
        ));
    }
    let pairs = source.bytes.iter().zip(&target.bytes);
    if let Some((at, (one, other))) = pairs.enumerate().find(|(_, (one, other))| one != other) {
        said.push(format!(
            "The first that differs is entry {at}: {one} bytes a token against {other}{}.",
            match (one.max(other), one.min(other)) {
                (more, &fewer) if fewer > 0 && *more == 2 * fewer =>
                    ", twice as many: another KV dtype",
                _ => "",
            }
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_written_out_and_shortened() {
        let read = |list| Entries::read(list).unwrap();
        assert_eq!(read("[8, 4]"), Entries { bytes: vec![8, 4], is_cut: false });
        assert_eq!(read("[8 x2, 4, ...]"), Entries { bytes: vec![8, 8, 4], is_cut: true });
        assert_eq!(Entries::read("[8 xmany]"), None);
    }

    #[test]
    fn what_differs_is_said_in_number_and_bytes() {
        let said = |lists: &str| holds(&format!("KV geometry differs: {lists}")).join(" ");
        let cut = said(" src=[1152 x24, 256, 256, ...]");
        assert!(cut.contains("26 entries and more (24 of 1152 bytes a token, 2 of 256"), "{cut}");
        assert!(cut.contains("draft model or an indexer"), "{cut}");
        let whole = said("src=[1152 x24, 256 x10], dst=[1152 x34]");
        assert!(whole.contains("entry 24: 256 bytes a token against 1152"), "{whole}");
        let number = said("src=[1152, 1152, 256], dst=[1152, 1152]");
        assert!(number.contains("differ in number, by 1"), "{number}");
        let dtype = said("src=[1152], dst=[576]");
        assert!(dtype.contains("another KV dtype"), "{dtype}");
    }
}
