//! What is wrong with an engine alone, by its own events, whatever the model says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::protocol::Done;

/// A defect of the engine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Defect {
    /// Rows that a request was about to read hold something else.
    RowsWrong,
    /// A thread of the engine has died.
    ThreadDied,
    /// The engine raised what nothing caught.
    Raised,
    /// Requests that never end; the last that was heard of each, without repetition.
    Stuck(BTreeSet<String>),
    /// All requests have ended, and pages are neither free nor in the cache unlocked.
    PagesLeft,
}

impl Defect {
    /// Its kind in words: two scenarios of one kind tend to have one cause.
    pub fn kind(&self) -> String {
        match self {
            Defect::RowsWrong => "rows are wrong at activation".to_owned(),
            Defect::ThreadDied => "a thread has died".to_owned(),
            Defect::Raised => "the engine raised an error".to_owned(),
            Defect::Stuck(lasts) => {
                let lasts: Vec<&str> = lasts.iter().map(String::as_str).collect();
                format!("requests are stuck after: {}", lasts.join(", "))
            }
            Defect::PagesLeft => "pages are left over at the end".to_owned(),
        }
    }
}

/// The defects that a run shows, the most telling first. Pages are only counted where every request
/// has ended: what is stuck holds pages.
pub fn judge(events: &[Map<String, Value>], end: &Done) -> Vec<Defect> {
    let mut found = BTreeSet::new();
    let mut lasts: BTreeMap<u64, &str> = BTreeMap::new();
    let mut is_census_even = true;
    for event in events {
        let kind = event.get("ev").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "WRONG" => drop(found.insert(Defect::RowsWrong)),
            "thread_died" => drop(found.insert(Defect::ThreadDied)),
            "stuck" => drop(found.insert(stuck(event, &lasts))),
            "census" => is_census_even &= is_even(event),
            _ => {
                if let Some(request) = event.get("r").and_then(Value::as_u64) {
                    lasts.insert(request, kind);
                }
            }
        }
    }
    if end.crashed.is_some() {
        found.insert(Defect::Raised);
    }
    if !is_census_even && !found.iter().any(holds_pages) {
        found.insert(Defect::PagesLeft);
    }
    found.into_iter().collect()
}

/// Whether pages that are left over are no wonder.
fn holds_pages(defect: &Defect) -> bool {
    match defect {
        Defect::ThreadDied | Defect::Raised | Defect::Stuck(_) => true,
        Defect::RowsWrong | Defect::PagesLeft => false,
    }
}

fn stuck(event: &Map<String, Value>, lasts: &BTreeMap<u64, &str>) -> Defect {
    let requests = event.get("requests").and_then(Value::as_array);
    let requests = requests.into_iter().flatten().filter_map(Value::as_u64);
    let last = |request| lasts.get(&request).copied().unwrap_or("nothing").to_owned();
    Defect::Stuck(requests.map(last).collect())
}

fn is_even(census: &Map<String, Value>) -> bool {
    let tokens = |name: &str| census.get(name).and_then(Value::as_u64).unwrap_or_default();
    tokens("free") + tokens("evictable") == tokens("total")
}
