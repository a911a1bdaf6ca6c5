//! JSON lines as released with the Mooncake paper: one object a line, with an arrival in ms, two
//! lengths in tokens and an id for every 512-token block of the prompt, the last block perhaps
//! partial. Equal ids are equal blocks after equal histories.

use serde::Deserialize;

use super::line::{TraceRequest, check_length};
use crate::limits;
use crate::prompt::{ContentId, ContentRun};
use crate::units::Tokens;
use crate::wording::json_line;

/// Tokens of a block.
pub(super) const BLOCK_TOKENS: u32 = 512;
/// Units of 100 ns in a millisecond.
const TIME_PER_MS: u64 = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    timestamp: u64,
    input_length: u64,
    output_length: u64,
    hash_ids: Vec<u64>,
}

/// Reads one line, or says what is wrong with it.
pub(super) fn parse(text: &str) -> Result<TraceRequest, String> {
    let line: Line = json_line(text).map_err(|(path, problem)| match path.as_str() {
        "" => problem,
        path => format!("{path}: {problem}"),
    })?;
    let length = check_length("input_length", line.input_length, &limits::PROMPT_TOKENS)?;
    let output = check_length("output_length", line.output_length, &limits::OUTPUT_TOKENS)?;
    let blocks = length.div_ceil(BLOCK_TOKENS);
    if line.hash_ids.len() != blocks as usize {
        return Err(format!(
            "hash_ids: must be {blocks} for {length} tokens in blocks of {BLOCK_TOKENS}, got {}",
            line.hash_ids.len()
        ));
    }
    if let Some(id) = line.hash_ids.iter().find(|&&id| id >= ContentId::OWN) {
        let bound = ContentId::OWN;
        return Err(format!("hash_ids: must be below {bound}, got {id}"));
    }
    let time = line.timestamp.checked_mul(TIME_PER_MS).ok_or_else(|| {
        let most = u64::MAX / TIME_PER_MS;
        format!("timestamp: must be at most {most}, got {}", line.timestamp)
    })?;
    Ok(TraceRequest { time, runs: blocks_of(&line.hash_ids, length), output })
}

fn blocks_of(ids: &[u64], length: u32) -> Vec<ContentRun> {
    let mut left = length;
    ids.iter()
        .map(|&id| {
            let block = left.min(BLOCK_TOKENS);
            left -= block;
            ContentRun::whole(ContentId(id), Tokens(block))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::trace::read;
    use super::super::trace::tests::{config, read_text};
    use super::*;
    use crate::scenario::{TraceConfig, TraceFormat};

    #[test]
    fn a_block_is_512_tokens_of_its_id_and_the_last_is_the_rest() {
        let text =
            r#"{"timestamp": 27, "input_length": 1030, "output_length": 4, "hash_ids": [0, 9, 4]}"#;
        let requests = read_text(&config(TraceFormat::Mooncake), text.as_bytes()).unwrap();
        assert_eq!(requests[0].at.0, 27_000);
        assert_eq!(requests[0].output.0, 4);
        let runs: Vec<_> = requests[0].runs.iter().map(|run| (run.content.0, run.len.0)).collect();
        assert_eq!(runs, [(0, 512), (9, 512), (4, 6)]);
        assert!(requests[0].output_content.0 >= ContentId::OWN);
    }

    #[test]
    fn malformed_lines_are_refused_with_their_reason() {
        let base =
            r#"{"timestamp": 1, "input_length": 513, "output_length": 2, "hash_ids": [1, 2]}"#;
        assert!(parse(base).is_ok());
        for (from, to, reason) in [
            ("513", "0", "input_length: must be 1 to 8388608, got 0"),
            ("513", "8388609", "input_length: must be 1 to 8388608, got 8388609"),
            ("_length\": 2", "_length\": 0", "output_length: must be 1 to 1048576, got 0"),
            ("513", "512", "hash_ids: must be 1 for 512 tokens in blocks of 512, got 2"),
            ("513", "1025", "hash_ids: must be 3 for 1025 tokens in blocks of 512, got 2"),
            ("[1, 2]", "[1, 281474976710656]", "hash_ids: must be below 281474976710656, got"),
            ("[1, 2]", "[1, -2]", "hash_ids[1]: must be a whole number of"),
            ("513", "513.5", "input_length: must be a whole number of"),
            ("513", "-1", "input_length: must be a whole number of"),
            ("\"timestamp\": 1", "\"timestamp\": \"1\"", "timestamp: must be a whole number of"),
            ("\"timestamp\": 1", "\"timestamp\": 1, \"type\": 3", "got `type`"),
            ("\"timestamp\": 1, ", "", "timestamp: must be given"),
            ("\"timestamp\": 1", "\"timestamp\": 1, \"timestamp\": 1", "duplicate field"),
            ("2]}", "2]", "EOF while parsing an object"),
            ("2]}", "2]} x", "trailing characters"),
            ("\"timestamp\": 1,", "\"timestamp\": 18446744073709551615,", "timestamp: must be at"),
        ] {
            let text = base.replace(from, to);
            assert_ne!(text, base, "{from}");
            let error = parse(&text).err().unwrap_or_default();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn the_sample_is_read_whole() {
        let sample =
            TraceConfig { path: "mooncake-tiny.jsonl".into(), ..config(TraceFormat::Mooncake) };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sims/traces");
        assert_eq!(read(&sample, &folder).unwrap().len(), 12);
    }
}
