//! The error texts of `sglang`, and which refusal has which.

use std::fmt;

use super::pairing::PairingRefusal;
use crate::engine::texts::ErrorText;
use crate::finding::Code;
use crate::planner::Refusal;

/// The prefix, S, is no multiple of the virtual page, V (both revisions).
static MISALIGNED: ErrorText = ErrorText {
    code: Code::RefusedMisaligned,
    before: "PD DCP transfer ",
    mark: "requires decode_prefix_len to align",
    after: " to the virtual DCP page size ({V}), got {S}",
};
/// The token count, n, does not fit the source pages, which hold c (checked).
static SOURCE: ErrorText = ErrorText {
    code: Code::RefusedSource,
    before: "",
    mark: "num_kv_tokens must fit in the provided source pages",
    after: ", got tokens={n}, capacity={c}",
};
/// Rank k needs r destination pages and has p (checked).
static SHORTAGE: ErrorText = ErrorText {
    code: Code::RefusedShortfall,
    before: "",
    mark: "Insufficient destination DCP pages",
    after: ": required={r}, provided={p}, src_page_offset={off}, dcp_rank={k}",
};
/// Index i of a list of s; numpy's own text, which does not say which list (indexed).
static INDEX: ErrorText = ErrorText {
    code: Code::RefusedIndex,
    before: "index {i} ",
    mark: "is out of bounds for axis 0",
    after: " with size {s}",
};
/// Physical pages of a and b rows.
static PAGE_SIZE: ErrorText = ErrorText {
    code: Code::RefusedPageSize,
    before: "",
    mark: "PD peers must use equal page sizes",
    after: ", got prefill={a}, decode={b}",
};
/// A striped decode pool that keeps heads apart.
static POOL: ErrorText = ErrorText {
    code: Code::RefusedPool,
    before: "",
    mark: "PD decode DCP requires an MLA or hybrid-MLA KV pool",
    after: ".",
};
/// Prefill splits attention over a servers.
static PREFILL_CP: ErrorText = ErrorText {
    code: Code::RefusedPrefillCp,
    before: "",
    mark: "PD decode DCP currently requires prefill attention CP=1",
    after: ", got {a}",
};
/// From a ranks to b, neither equal nor from one.
static TOPOLOGY: ErrorText = ErrorText {
    code: Code::RefusedTopology,
    before: "",
    mark: "Unsupported PD DCP topology",
    after: ": {a} -> {b}",
};
/// Equal striping, but ranks a and b.
static RANK: ErrorText = ErrorText {
    code: Code::RefusedRank,
    before: "",
    mark: "PD peers must connect matching DCP ranks",
    after: ", got prefill={a}, decode={b}",
};
/// Bytes a token of each KV entry, lists a and b.
static GEOMETRY: ErrorText = ErrorText {
    code: Code::RefusedGeometry,
    before: "",
    mark: "PD DCP source/destination KV geometry differs",
    after: ": src={a}, dst={b}",
};

/// Rank r, which its side of n ranks does not have. It is no text of the engine, where a server
/// cannot have such a rank, and so is not among [`ALL`].
static NO_SUCH_RANK: ErrorText = ErrorText {
    code: Code::RefusedRank,
    before: "dcp_rank: ",
    mark: "must be less than dcp_size",
    after: " {n}, got {r}",
};

/// Every text, the planners' first.
pub static ALL: [&ErrorText; 10] = [
    &MISALIGNED,
    &SOURCE,
    &SHORTAGE,
    &INDEX,
    &PAGE_SIZE,
    &POOL,
    &PREFILL_CP,
    &TOPOLOGY,
    &RANK,
    &GEOMETRY,
];

impl Refusal {
    /// The text of this refusal, with the code that it is found as.
    pub fn text(&self) -> &'static ErrorText {
        match self {
            Refusal::Misaligned { .. } => &MISALIGNED,
            Refusal::Source { .. } => &SOURCE,
            Refusal::Shortage { .. } => &SHORTAGE,
            Refusal::Index { .. } => &INDEX,
        }
    }
}

/// The engine's message, word for word.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text();
        match self {
            Refusal::Misaligned { virtual_page, prefix } => text.write(f, &[virtual_page, prefix]),
            Refusal::Source { tokens, capacity } => text.write(f, &[tokens, capacity]),
            Refusal::Shortage { required, provided, src_page_offset, dcp_rank } => {
                text.write(f, &[required, provided, src_page_offset, dcp_rank])
            }
            Refusal::Index { index, size, list: _ } => text.write(f, &[index, size]),
        }
    }
}

impl PairingRefusal {
    /// The text of this refusal, with the code that it is found as.
    pub fn text(&self) -> &'static ErrorText {
        match self {
            PairingRefusal::Rank { .. } => &NO_SUCH_RANK,
            PairingRefusal::PageSize { .. } => &PAGE_SIZE,
            PairingRefusal::Pool => &POOL,
            PairingRefusal::PrefillCp { .. } => &PREFILL_CP,
            PairingRefusal::Topology { .. } => &TOPOLOGY,
            PairingRefusal::RankMismatch { .. } => &RANK,
            PairingRefusal::Geometry { .. } => &GEOMETRY,
        }
    }
}

/// The engine's message, word for word, where it has one.
impl fmt::Display for PairingRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text();
        match self {
            PairingRefusal::Rank { rank, ranks } => text.write(f, &[ranks, rank]),
            PairingRefusal::PageSize { prefill, decode } => text.write(f, &[prefill, decode]),
            PairingRefusal::Pool => text.write(f, &[]),
            PairingRefusal::PrefillCp { attention_cp } => text.write(f, &[attention_cp]),
            PairingRefusal::Topology { prefill, decode } => text.write(f, &[prefill, decode]),
            PairingRefusal::RankMismatch { prefill, decode } => text.write(f, &[prefill, decode]),
            PairingRefusal::Geometry { src, dst } => {
                text.write(f, &[&format!("{src:?}"), &format!("{dst:?}")])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A text with values, to be displayed.
    struct Said<'a>(&'a ErrorText, Vec<&'a dyn fmt::Display>);

    impl fmt::Display for Said<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.write(f, &self.1)
        }
    }

    /// The names of a form's values, in order.
    fn names(text: &ErrorText) -> Vec<&'static str> {
        let parts = [text.before, text.mark, text.after];
        let pieces = parts.into_iter().flat_map(|part| part.split('{').skip(1));
        pieces.map(|piece| piece.split_once('}').unwrap().0).collect()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_whatever_stands_around_it(
            numbers in prop::array::uniform4(-1_000_000_000_000i64..=1_000_000_000_000),
            lists in prop::array::uniform2(prop::collection::vec(any::<u32>(), 0..4)),
        ) {
            for text in ALL {
                let names = names(text);
                let lists = lists.each_ref().map(|list| format!("{list:?}"));
                let is_list = text.code == Code::RefusedGeometry;
                let values = names.iter().enumerate().map(|(at, _)| match is_list {
                    true => &lists[at] as &dyn fmt::Display,
                    false => &numbers[at],
                });
                let said = Said(text, values.collect()).to_string();
                let logged = format!("[rank 9] index 7 ValueError: {said}. (request 12, size 99)");
                let known: Vec<_> = ALL.iter().filter(|one| one.is_in(&logged)).collect();
                prop_assert_eq!(known, [&text]);
                for (at, name) in names.into_iter().enumerate() {
                    if is_list {
                        prop_assert_eq!(text.list(&logged, name), Some(lists[at].as_str()));
                    } else {
                        prop_assert_eq!(text.number(&logged, name), Some(numbers[at]));
                    }
                }
            }
        }
    }
}
