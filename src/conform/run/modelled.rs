//! The model's side: an observer of a run that keeps its happenings.

use std::collections::{BTreeMap, BTreeSet};

use super::happening::{Ending, Happening, Lane, PageList, What};
use crate::event::{Event, Outcome};
use crate::finding::{Code, Side};
use crate::scenario::Scenario;
use crate::units::{PageId, Pages, RequestId, Tick};
use crate::world::observer::{Call, Note, Seen};
use crate::world::{Observer, RunError, Simulation};

/// What is known of a request.
#[derive(Default)]
struct Known {
    prompt: u32,
    /// Pages of its last reservation.
    taken: Vec<PageId>,
    has_run: bool,
    is_retracted: bool,
    was_rejected: bool,
    output: Option<u32>,
}

/// Keeps what happens in one run.
struct Witness {
    virtual_page: u64,
    page: u64,
    happenings: Vec<Happening>,
    requests: BTreeMap<RequestId, Known>,
    /// Requests that have not ended.
    open: BTreeSet<RequestId>,
    /// Endings that a recording only knows at the end.
    late: Vec<Happening>,
}

/// The happenings of a run of `scenario`, in their order.
pub(super) fn happenings(scenario: &Scenario) -> Result<Vec<Happening>, RunError> {
    let page = u64::from(scenario.layout.page_size);
    let mut witness = Witness {
        virtual_page: page * u64::from(scenario.layout.ranks),
        page,
        happenings: Vec::new(),
        requests: BTreeMap::new(),
        open: BTreeSet::new(),
        late: Vec::new(),
    };
    Simulation::new(scenario).observer(&mut witness).run()?;
    Ok(witness.close())
}

fn ids(pages: &[PageId]) -> PageList {
    PageList::Ids(pages.iter().map(|page| page.0).collect())
}

impl Witness {
    fn close(mut self) -> Vec<Happening> {
        self.happenings.extend(self.late);
        for request in self.open {
            let what = What::Ended { how: Ending::Stuck, output: None };
            self.happenings.push(Happening { tick: None, lane: Lane::Request(request.0), what });
        }
        self.happenings
    }

    fn known(&mut self, request: RequestId) -> &mut Known {
        self.requests.entry(request).or_default()
    }

    fn happens(&mut self, tick: Tick, request: RequestId, what: What) {
        let lane = Lane::Request(request.0);
        self.happenings.push(Happening { tick: Some(tick.0), lane, what });
    }

    /// The request has come back: its table begins with what it had taken.
    fn resumes(&mut self, tick: Tick, request: RequestId, stored: u32) {
        let pages = u64::from(stored).div_ceil(self.virtual_page) as usize;
        let known = self.known(request);
        known.is_retracted = false;
        let pages = ids(known.taken.get(..pages).unwrap_or(&known.taken));
        self.happens(tick, request, What::Resumed { pages, stored });
    }

    fn ends(&mut self, tick: Tick, request: RequestId, outcome: Outcome) {
        self.open.remove(&request);
        let known = self.known(request);
        let how = match outcome {
            Outcome::Finished => Ending::Finished,
            Outcome::Failed if known.was_rejected => Ending::Rejected,
            Outcome::Failed if known.has_run => Ending::OutOfMemory,
            Outcome::Failed => Ending::Failed,
            Outcome::Aborted if known.has_run => Ending::Dropped,
            Outcome::Aborted => Ending::Aborted,
        };
        let what = What::Ended { how, output: known.output };
        let lane = Lane::Request(request.0);
        match how {
            Ending::Finished | Ending::Dropped => self.happens(tick, request, what),
            Ending::Aborted
            | Ending::Rejected
            | Ending::Failed
            | Ending::OutOfMemory
            | Ending::Stuck => self.late.push(Happening { tick: None, lane, what }),
        }
    }
}

impl Observer for Witness {
    fn told(&mut self, seen: &Seen<'_>) {
        match *seen.event {
            Event::Arrived { request, prompt, admitted, .. } => {
                self.open.insert(request);
                let known = self.known(request);
                known.prompt = prompt.0;
                known.was_rejected = !admitted;
            }
            Event::Refused { request, code, ranks, .. } if code != Code::RefusedCapacity => {
                for rank in ranks {
                    self.happens(seen.tick, request, What::Refused { rank: rank.0 });
                }
            }
            Event::Reserved { request, prefix, pages, .. } => {
                let known = self.known(request);
                known.taken = pages.to_vec();
                if !known.is_retracted {
                    let what = What::Reserved { prefix: prefix.0, pages: ids(pages) };
                    self.happens(seen.tick, request, what);
                }
            }
            Event::Restored { request, to, .. } if self.known(request).is_retracted => {
                self.resumes(seen.tick, request, to.0);
            }
            Event::Activated { request, table, .. } => {
                let known = self.known(request);
                known.has_run = true;
                let what = What::Activated { pages: ids(table), stored: known.prompt };
                self.happens(seen.tick, request, what);
            }
            Event::Finished { request, stored, .. } => {
                let known = self.known(request);
                known.output = Some(stored.0 + 1 - known.prompt);
            }
            Event::Ended { request, outcome } => self.ends(seen.tick, request, outcome),
            Event::Refused { .. }
            | Event::Restored { .. }
            | Event::Hit { .. }
            | Event::Taken { .. }
            | Event::Cached { .. }
            | Event::Freed { .. }
            | Event::Retracted { .. }
            | Event::Queued { .. }
            | Event::Read { .. }
            | Event::Landed { .. }
            | Event::Books { .. }
            | Event::FreedPart { .. }
            | Event::DraftLanded { .. } => {}
        }
    }

    fn planned(&mut self, tick: Tick, call: &Call<'_>) {
        let all = call.source_pages.len() as i64 * self.page as i64;
        let what = What::Planned {
            offset: call.piece.src_page_offset.0,
            tokens: call.piece.num_kv_tokens.unwrap_or(all),
            prefix: call.piece.decode_prefix_len.0,
            source: ids(call.source_pages),
            target: ids(call.target_pages),
        };
        self.happens(tick, call.request, what);
    }

    fn noted(&mut self, tick: Tick, note: &Note) {
        match *note {
            Note::Launched { request, from, to } => {
                self.happens(tick, request, What::Chunk { start: from.0, end: to.0 });
            }
            Note::Evicted { server, asked, pages } => {
                let what = What::Evicted { asked: asked.0, pages: pages.0 };
                let lane = Lane::Server(server.side);
                self.happenings.push(Happening { tick: Some(tick.0), lane, what });
            }
            Note::Retracted { request, stored } => {
                self.known(request).is_retracted = true;
                self.happens(tick, request, What::Retracted { stored: stored.0 });
            }
            Note::Dropped { request, output } => self.known(request).output = Some(output),
            // What is then never sent shows by itself.
            Note::ThreadEnded { .. } => {}
            Note::Left { server, total, free, evictable, protected } => {
                let page = match server.side {
                    Side::Prefill => self.page,
                    Side::Decode => self.virtual_page,
                };
                let tokens = |pages: Pages| u64::from(pages.0) * page;
                let what = What::Left {
                    total: tokens(total),
                    free: tokens(free),
                    evictable: tokens(evictable),
                    protected: tokens(protected),
                };
                self.late.push(Happening { tick: None, lane: Lane::Server(server.side), what });
            }
        }
    }
}
