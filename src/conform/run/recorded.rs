//! The recorded side: the events of a line, each read by its kind.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::super::LineError;
use super::happening::{Ending, Happening, Lane, PageList, What};
use crate::finding::Side;
use crate::wording::reworded;

/// What has been read of a line.
struct Reader {
    happenings: Vec<Happening>,
    /// Requests that have arrived and whose ending has not been read.
    open: BTreeSet<u32>,
    /// Those of them that were retracted and have not come back.
    retracted: BTreeSet<u32>,
}

/// The happenings of recorded events, in their order.
pub(super) fn happenings(events: &[Map<String, Value>]) -> Result<Vec<Happening>, LineError> {
    let mut reader =
        Reader { happenings: Vec::new(), open: BTreeSet::new(), retracted: BTreeSet::new() };
    for (index, event) in events.iter().enumerate() {
        reader.event(event.clone()).map_err(|(field, message)| {
            let dot = if field.is_empty() { "" } else { "." };
            LineError::Malformed { path: format!("events[{index}]{dot}{field}"), message }
        })?;
    }
    // What arrived and has no other ending was aborted before it ran.
    for request in std::mem::take(&mut reader.open) {
        reader.end(None, request, Ending::Aborted, None);
    }
    Ok(reader.happenings)
}

/// A field, and what is wrong with it.
type Problem = (String, String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arrives {
    #[serde(rename = "prompt")]
    _prompt: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rejected {
    #[serde(rename = "prefill")]
    _prefill: bool,
    #[serde(rename = "decode")]
    _decode: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Abort {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reserved {
    #[serde(rename = "S")]
    prefix: u32,
    pages: Vec<u32>,
}

/// The first chunk begins where the hit ends, so that this adds nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PrefillHit {
    #[serde(rename = "tokens")]
    _tokens: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chunk {
    start: u32,
    end: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Planned {
    /// Null where a release gives none to an empty last message.
    off: Option<u32>,
    n: i64,
    #[serde(rename = "S")]
    prefix: u32,
    src: Vec<u32>,
    dst: Vec<u32>,
    #[serde(rename = "last")]
    _last: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refused {
    rank: u32,
    #[serde(rename = "error")]
    _error: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThreadDied {
    #[serde(rename = "error")]
    _error: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Activated {
    pages: Vec<u32>,
    stored: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Retracted {
    /// Prompt and output; the last token is not stored.
    seqlen: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrong {
    #[serde(rename = "rows")]
    _rows: Vec<Value>,
    count: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Finished {
    out: u32,
    reason: Reason,
}

#[derive(Deserialize)]
enum Reason {
    #[serde(rename = "FINISH_LENGTH")]
    Length,
    #[serde(rename = "FINISH_ABORT")]
    Abort,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Evicted {
    side: Side,
    asked: u32,
    pages: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Census {
    side: Side,
    total: u64,
    free: u64,
    evictable: u64,
    protected: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Several {
    requests: Vec<u32>,
}

/// What every event has.
#[derive(Deserialize)]
struct Head {
    t: u64,
    ev: Kind,
    r: Option<u32>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Arrives,
    Rejected,
    Abort,
    Reserved,
    PrefillHit,
    Chunk,
    Planned,
    Refused,
    ThreadDied,
    Activated,
    Retracted,
    #[serde(rename = "WRONG")]
    Wrong,
    Finished,
    Evicted,
    Census,
    AbortedForMemory,
    Stuck,
}

/// Parses `fields` with the path of what is wrong.
fn parse<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T, Problem> {
    serde_path_to_error::deserialize(Value::Object(fields))
        .map_err(|error| reworded(&error.path().to_string(), &error.inner().to_string()))
}

impl Reader {
    fn event(&mut self, mut fields: Map<String, Value>) -> Result<(), Problem> {
        let mut head = Map::new();
        for name in ["t", "ev", "r"] {
            if let Some(value) = fields.remove(name) {
                head.insert(name.to_owned(), value);
            }
        }
        let Head { t, ev, r } = parse(head)?;
        let of_request = |request: Option<u32>| {
            request.ok_or_else(|| ("r".to_owned(), "must be a request, got null".to_owned()))
        };
        match ev {
            Kind::Evicted => {
                let Evicted { side, asked, pages } = parse(fields)?;
                self.on_server(Some(t), side, What::Evicted { asked, pages });
            }
            Kind::Census => {
                let Census { side, total, free, evictable, protected } = parse(fields)?;
                self.on_server(None, side, What::Left { total, free, evictable, protected });
            }
            Kind::AbortedForMemory | Kind::Stuck => {
                let how = if ev == Kind::Stuck { Ending::Stuck } else { Ending::OutOfMemory };
                for request in parse::<Several>(fields)?.requests {
                    self.end(None, request, how, None);
                }
            }
            Kind::Arrives
            | Kind::Rejected
            | Kind::Abort
            | Kind::Reserved
            | Kind::PrefillHit
            | Kind::Chunk
            | Kind::Planned
            | Kind::Refused
            | Kind::ThreadDied
            | Kind::Activated
            | Kind::Retracted
            | Kind::Wrong
            | Kind::Finished => self.of_request(ev, t, of_request(r)?, fields)?,
        }
        Ok(())
    }

    fn of_request(
        &mut self,
        kind: Kind,
        tick: u64,
        request: u32,
        fields: Map<String, Value>,
    ) -> Result<(), Problem> {
        match kind {
            Kind::Arrives => {
                parse::<Arrives>(fields)?;
                self.open.insert(request);
            }
            Kind::Rejected => {
                parse::<Rejected>(fields)?;
                self.end(None, request, Ending::Rejected, None);
            }
            Kind::Finished => {
                let Finished { out, reason } = parse(fields)?;
                let how = match reason {
                    Reason::Length => Ending::Finished,
                    Reason::Abort => Ending::Dropped,
                };
                self.end(Some(tick), request, how, Some(out));
            }
            Kind::Abort => {
                parse::<Abort>(fields)?;
            }
            Kind::ThreadDied => {
                parse::<ThreadDied>(fields)?;
            }
            Kind::PrefillHit => {
                parse::<PrefillHit>(fields)?;
            }
            Kind::Reserved
            | Kind::Chunk
            | Kind::Planned
            | Kind::Refused
            | Kind::Activated
            | Kind::Retracted
            | Kind::Wrong => {
                let what = self.happened(kind, request, fields)?;
                let lane = Lane::Request(request);
                self.happenings.push(Happening { tick: Some(tick), lane, what });
            }
            Kind::Evicted | Kind::Census | Kind::AbortedForMemory | Kind::Stuck => {
                unreachable!("these are of a server, or of several requests")
            }
        }
        Ok(())
    }

    /// What is compared of an event of one request that does not end it.
    fn happened(
        &mut self,
        kind: Kind,
        request: u32,
        fields: Map<String, Value>,
    ) -> Result<What, Problem> {
        Ok(match kind {
            Kind::Reserved => {
                let Reserved { prefix, pages } = parse(fields)?;
                What::Reserved { prefix, pages: PageList::Ids(pages) }
            }
            Kind::Chunk => {
                let Chunk { start, end } = parse(fields)?;
                What::Chunk { start, end }
            }
            Kind::Planned => {
                let Planned { off, n: tokens, prefix, src, dst, .. } = parse(fields)?;
                let (source, target) = (PageList::Ids(src), PageList::Ids(dst));
                What::Planned { offset: off.unwrap_or(0), tokens, prefix, source, target }
            }
            Kind::Refused => What::Refused { rank: parse::<Refused>(fields)?.rank },
            Kind::Activated => {
                let Activated { pages, stored } = parse(fields)?;
                let pages = PageList::Ids(pages);
                match self.retracted.remove(&request) {
                    true => What::Resumed { pages, stored },
                    false => What::Activated { pages, stored },
                }
            }
            Kind::Retracted => {
                self.retracted.insert(request);
                let seqlen = parse::<Retracted>(fields)?.seqlen;
                What::Retracted { stored: seqlen.saturating_sub(1) }
            }
            Kind::Wrong => What::WrongRows { count: parse::<Wrong>(fields)?.count },
            Kind::Arrives
            | Kind::Rejected
            | Kind::Finished
            | Kind::Abort
            | Kind::ThreadDied
            | Kind::PrefillHit
            | Kind::Evicted
            | Kind::Census
            | Kind::AbortedForMemory
            | Kind::Stuck => unreachable!("these are dealt with before"),
        })
    }

    fn end(&mut self, tick: Option<u64>, request: u32, how: Ending, output: Option<u32>) {
        self.open.remove(&request);
        let what = What::Ended { how, output };
        self.happenings.push(Happening { tick, lane: Lane::Request(request), what });
    }

    fn on_server(&mut self, tick: Option<u64>, side: Side, what: What) {
        self.happenings.push(Happening { tick, lane: Lane::Server(side), what });
    }
}
