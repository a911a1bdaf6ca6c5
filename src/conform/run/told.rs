//! The model's run in the words of a driver, for tests: what reads recorded events gets back what
//! they were made of.

use serde_json::{Map, Value, json};

use super::happening::{Ending, Happening, Lane, PageList, What};
use super::modelled;
use crate::finding::Named;
use crate::scenario::Scenario;

/// The events that an engine would tell which does just what the model does.
pub(crate) fn events(scenario: &Scenario) -> Vec<Map<String, Value>> {
    let happenings = modelled::happenings(scenario).expect("the scenario is valid");
    let mut arrived = Vec::new();
    let mut events = Vec::new();
    for happening in &happenings {
        if let Lane::Request(request) = happening.lane
            && !arrived.contains(&request)
        {
            arrived.push(request);
            events.push(json!({"t": 0, "ev": "arrives", "r": request, "prompt": 1}));
        }
        events.extend(event(happening));
    }
    events.into_iter().map(|event| event.as_object().expect("it is one").clone()).collect()
}

fn ids(pages: &PageList) -> &[u32] {
    match pages {
        PageList::Ids(ids) => ids,
        PageList::Count(_) => unreachable!("the model names pages"),
    }
}

/// None for what readers conclude from the end of the events.
fn event(happening: &Happening) -> Option<Value> {
    let tick = happening.tick.unwrap_or(0);
    let (request, side) = match happening.lane {
        Lane::Request(request) => (Some(request), ""),
        Lane::Server(side) => (None, side.name()),
    };
    let (kind, fields) = match &happening.what {
        What::Chunk { start, end } => ("chunk", json!({"start": start, "end": end})),
        What::Reserved { prefix, pages } => ("reserved", json!({"S": prefix, "pages": ids(pages)})),
        What::Planned { offset, tokens, prefix, source, target } => (
            "planned",
            json!({"off": offset, "n": tokens, "S": prefix, "src": ids(source),
                   "dst": ids(target), "last": false}),
        ),
        What::Refused { rank } => ("refused", json!({"rank": rank, "error": ""})),
        What::Activated { pages, stored } | What::Resumed { pages, stored } => {
            ("activated", json!({"pages": ids(pages), "stored": stored}))
        }
        What::Retracted { stored } => ("retracted", json!({"seqlen": stored + 1})),
        What::WrongRows { count } => ("WRONG", json!({"rows": [], "count": count})),
        What::Ended { how, output } => ending(*how, *output, request)?,
        What::Evicted { asked, pages } => {
            ("evicted", json!({"side": side, "asked": asked, "pages": pages}))
        }
        What::Left { total, free, evictable, protected } => (
            "census",
            json!({"side": side, "total": total, "free": free, "evictable": evictable,
                   "protected": protected}),
        ),
    };
    let mut event = json!({"t": tick, "ev": kind, "r": request});
    let fields = fields.as_object().expect("it is one").clone();
    event.as_object_mut().expect("it is one").extend(fields);
    Some(event)
}

fn ending(how: Ending, output: Option<u32>, request: Option<u32>) -> Option<(&'static str, Value)> {
    let several = json!({"requests": [request]});
    match how {
        Ending::Finished => Some(("finished", json!({"out": output, "reason": "FINISH_LENGTH"}))),
        Ending::Dropped => Some(("finished", json!({"out": output, "reason": "FINISH_ABORT"}))),
        Ending::Rejected => Some(("rejected", json!({"prefill": true, "decode": true}))),
        Ending::OutOfMemory => Some(("aborted_for_memory", several)),
        Ending::Stuck => Some(("stuck", several)),
        Ending::Aborted | Ending::Failed => None,
    }
}
