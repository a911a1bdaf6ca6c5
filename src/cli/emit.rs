//! Planner calls of a run as a Python script for the real engine.

use clap::ValueEnum;

use crate::report::number::count;
use crate::units::PageId;
use crate::witness::{Calls, KeptCall};

/// What of a run is written out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Pieces {
    /// The first refused or wrong piece, or the first of all.
    #[default]
    First,
    /// Every piece.
    Every,
}

const HEAD: &str = r#"
import dataclasses

import numpy

from sglang.srt.disaggregation.common.utils import build_dcp_token_transfer_plan

"#;

/// Answers all ranks of every call; both revisions' plans have their rows as dataclass fields.
const TAIL: &str = r#"
for name, arguments in CALLS:
    src_pages, dst_pages = (numpy.array(arguments.pop(key), dtype=numpy.int32) for key in ("src", "dst"))
    for rank in range(arguments["dcp_size"]):
        try:
            plan = build_dcp_token_transfer_plan(src_pages, dst_pages, dcp_rank=rank, **arguments)
        except (ValueError, IndexError) as error:
            print(f"{name}, rank {rank}: {type(error).__name__}: {error}")
            continue
        for field in dataclasses.fields(plan):
            print(f"{name}, rank {rank}: {field.name} = {getattr(plan, field.name).tolist()}")
"#;

/// The script for a run of the scenario file `name`. `None` where no piece was planned.
pub(super) fn python(name: &str, calls: &Calls, pieces: Pieces) -> Option<String> {
    let chosen: Vec<&KeptCall> = match pieces {
        Pieces::First => calls.notable().into_iter().collect(),
        Pieces::Every => calls.calls.iter().collect(),
    };
    if chosen.is_empty() {
        return None;
    }
    let mut script = format!(
        "# Planner calls of {}, for an installed `sglang` package.\n\
         # Without a GPU set SGLANG_USE_CPU_ENGINE=1.\n",
        name.replace(['\n', '\r'], " ")
    );
    if pieces == Pieces::Every && calls.calls_left_out > 0 {
        let more = count(calls.calls_left_out);
        script += &format!("# {more} more pieces are left out.\n");
    }
    script += HEAD;
    script += "CALLS = [\n";
    for call in chosen {
        script += &entry(calls, call);
    }
    script += "]\n";
    Some(script + TAIL)
}

/// One call, below what the simulation says of it.
fn entry(calls: &Calls, call: &KeptCall) -> String {
    let verdict = match (calls.refusal_of(call), call.wrote_wrong) {
        (Some(refusal), _) => {
            let ranks: Vec<String> = call.refused.iter().map(ToString::to_string).collect();
            format!("refused by rank {}: {}", ranks.join(", "), refusal.said)
        }
        (None, true) => "accepted, and rows hold what does not belong there".to_owned(),
        (None, false) => "accepted, and every row that it wrote was right".to_owned(),
    };
    let piece = call.piece;
    let tokens = piece.num_kv_tokens.map_or_else(|| "None".to_owned(), |n| n.to_string());
    format!(
        "    # kvseam: {verdict}\n    (\n        \"request {}, piece {}\",\n        {{\n            \
         \"src\": {},\n            \"dst\": {},\n            \"physical_page_size\": {},\n            \
         \"dcp_size\": {},\n            \"src_page_offset\": {},\n            \
         \"decode_prefix_len\": {},\n            \"num_kv_tokens\": {tokens},\n        }},\n    ),\n",
        call.request,
        call.number,
        list(&call.source_pages),
        list(&call.target_pages),
        calls.layout().page(),
        calls.layout().ranks(),
        piece.src_page_offset,
        piece.decode_prefix_len,
    )
}

fn list(pages: &[PageId]) -> String {
    let ids: Vec<String> = pages.iter().map(PageId::to_string).collect();
    format!("[{}]", ids.join(", "))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::layout::Layout;
    use crate::scenario::file;
    use crate::world::Simulation;

    #[test]
    fn the_script_makes_the_refused_call_and_says_what_was_refused() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("sims/hazards/h10-one-rank-short.toml");
        let scenario = file::load(&path).unwrap();
        let mut calls = Calls::new(Layout::striped(4, 2).unwrap());
        Simulation::new(&scenario).observer(&mut calls).run().unwrap();
        let script = python("a\nb", &calls, Pieces::First).unwrap();
        for part in [
            "# Planner calls of a b, for",
            "# kvseam: refused by rank 0: Insufficient destination DCP pages: required=2, provided=1",
            "\"src\": [1, 2, 3]",
            "\"dst\": [1]",
            "\"physical_page_size\": 4",
            "\"dcp_size\": 2",
            "\"num_kv_tokens\": 9",
        ] {
            assert!(script.contains(part), "{part} in {script}");
        }
        assert_eq!(python("", &Calls::new(calls.layout()), Pieces::Every), None);
    }
}
