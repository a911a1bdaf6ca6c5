//! How many pages were free, cached, held and in flight, from moment to moment, and when findings
//! came.

use std::collections::BTreeMap;

use super::{is_books, newly_found};
use crate::event::{Event, Part, Server, Side};
use crate::finding::Code;
use crate::limits;
use crate::units::{PageId, Tick};
use crate::world::Observer;
use crate::world::observer::Seen;

/// Pages of all servers of one kind, by what they were. They add up to the pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Handed out to nobody.
    pub free: u32,
    /// In the prefix cache.
    pub cached: u32,
    /// A request's own.
    pub held: u32,
    /// A copy reads or writes them, whoever owns them.
    pub in_flight: u32,
}

/// Who owns a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Free,
    Cache,
    Request,
}

/// One page: its owner, and the copies under way that read or write it.
#[derive(Clone, Copy)]
struct Page {
    owner: Owner,
    copies: u32,
}

/// The pages that a copy reads and writes.
type Touched = [(Server, Vec<PageId>); 2];

/// Keeps the moments at which a count changed.
pub struct Pools {
    pages: BTreeMap<Server, Vec<Page>>,
    counts: [Counts; 2],
    copies: BTreeMap<Part, Touched>,
    /// The counts after each moment of change: of prefill and of decode, in pages of their pools.
    pub moments: Vec<(Tick, [Counts; 2])>,
    /// One moment is kept out of this many.
    pub thinned: u64,
    /// Moments passed since the last one that was kept.
    passed: u64,
    /// Ticks at which a code was found, and how often it was in all.
    pub found: BTreeMap<Code, (u64, Vec<Tick>)>,
    told: BTreeMap<Code, u64>,
}

impl Pools {
    /// Servers with empty pools of so many pages: prefill's, then decode's.
    pub fn new(servers: [(u32, u32); 2]) -> Pools {
        let mut pages = BTreeMap::new();
        let mut counts = [Counts::default(); 2];
        for (side, (workers, size)) in [Side::Prefill, Side::Decode].into_iter().zip(servers) {
            for index in 0..workers {
                let page = Page { owner: Owner::Free, copies: 0 };
                pages.insert(Server { side, index }, vec![page; size as usize + 1]);
            }
            counts[place(side)].free = workers * size;
        }
        Pools {
            pages,
            counts,
            copies: BTreeMap::new(),
            moments: vec![(Tick(0), counts)],
            thinned: 1,
            passed: 0,
            found: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    fn change(&mut self, server: Server, pages: &[PageId], change: impl Fn(&mut Page)) {
        let counts = &mut self.counts[place(server.side)];
        let known = self.pages.get_mut(&server).expect("events name known servers");
        // Page 0 is padding and no pool counts it.
        for id in pages.iter().filter(|id| id.0 > 0) {
            let Some(page) = known.get_mut(id.index()) else { continue };
            *counts.of(*page) -= 1;
            change(page);
            *counts.of(*page) += 1;
        }
    }

    fn copies(&mut self, touched: &Touched, change: impl Fn(&mut Page) + Copy) {
        for (server, pages) in touched {
            self.change(*server, pages, change);
        }
    }

    /// Notes the counts if they have changed.
    fn note(&mut self, tick: Tick) {
        let last = self.moments.last_mut().expect("there is a first moment");
        if last.1 == self.counts {
            return;
        }
        // What happens in one tick is one moment.
        if last.0 == tick {
            last.1 = self.counts;
            return;
        }
        self.passed += 1;
        if self.passed < self.thinned {
            *last = (tick, self.counts);
            return;
        }
        self.passed = 0;
        self.moments.push((tick, self.counts));
        if self.moments.len() > limits::PICTURE_MOMENTS {
            let mut place = 0;
            self.moments.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.thinned *= 2;
        }
    }
}

fn place(side: Side) -> usize {
    match side {
        Side::Prefill => 0,
        Side::Decode => 1,
    }
}

impl Counts {
    fn of(&mut self, page: Page) -> &mut u32 {
        match (page.copies, page.owner) {
            (1.., _) => &mut self.in_flight,
            (0, Owner::Free) => &mut self.free,
            (0, Owner::Cache) => &mut self.cached,
            (0, Owner::Request) => &mut self.held,
        }
    }
}

impl Observer for Pools {
    fn told(&mut self, seen: &Seen<'_>) {
        match *seen.event {
            Event::Taken { server, pages, .. } => {
                self.change(server, pages, |page| page.owner = Owner::Request);
            }
            Event::Cached { server, pages, .. } => {
                self.change(server, pages, |page| page.owner = Owner::Cache);
            }
            Event::Freed { server, pages, .. } => {
                self.change(server, pages, |page| page.owner = Owner::Free);
            }
            Event::Queued { part, source, target, source_pages, target_pages } => {
                let touched = [(source, source_pages.0.to_vec()), (target, target_pages.to_vec())];
                self.copies(&touched, |page| page.copies += 1);
                self.copies.insert(part, touched);
            }
            Event::Landed { part, .. } => {
                if let Some(touched) = self.copies.remove(&part) {
                    self.copies(&touched, |page| page.copies -= 1);
                }
            }
            _ => {}
        }
        if !is_books(seen.event) {
            self.note(seen.tick);
        }
        for (code, more) in newly_found(&mut self.told, seen) {
            let (count, ticks) = self.found.entry(code).or_default();
            *count += more;
            if ticks.last() != Some(&seen.tick) && ticks.len() < limits::PICTURE_MOMENTS {
                ticks.push(seen.tick);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::file;
    use crate::world::Simulation;

    fn seen(name: &str) -> Pools {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sims/hazards").join(name);
        let scenario = file::load(&path).unwrap();
        let (prefill, decode) = (&scenario.prefill, &scenario.decode);
        let mut pools =
            Pools::new([(prefill.workers, prefill.pages), (decode.workers, decode.pages)]);
        Simulation::new(&scenario).observer(&mut pools).run().unwrap();
        pools
    }

    #[test]
    fn pages_add_up_to_the_pools_at_every_moment() {
        for name in ["h30-released-at-once.toml", "h33-not-locked.toml", "h36-freed-twice.toml"] {
            let pools = seen(name);
            let sum = |counts: Counts| counts.free + counts.cached + counts.held + counts.in_flight;
            let whole = pools.moments[0].1.map(sum);
            assert!(pools.moments.len() > 4, "{name}");
            for (tick, counts) in &pools.moments {
                assert_eq!(counts.map(sum), whole, "{name} at {tick}");
            }
        }
    }

    #[test]
    fn a_long_run_is_thinned_and_ends_with_its_last_state() {
        let mut pools = Pools::new([(1, 4), (1, 4)]);
        let server = Server { side: Side::Decode, index: 0 };
        let owners = [Owner::Request, Owner::Free];
        for (tick, owner) in (1..=9_999).zip(owners.into_iter().cycle()) {
            pools.change(server, &[PageId(2)], |page| page.owner = owner);
            pools.note(Tick(tick));
        }
        assert!(pools.moments.len() <= limits::PICTURE_MOMENTS && pools.thinned > 1);
        assert!(pools.moments.is_sorted_by_key(|(tick, _)| *tick));
        let held = Counts { held: 1, free: 3, ..Counts::default() };
        assert_eq!(pools.moments.last(), Some(&(Tick(9_999), [pools.moments[0].1[0], held])));
    }

    #[test]
    fn when_all_has_ended_nothing_is_in_flight_and_findings_have_their_ticks() {
        // The file says: the client gives up at tick 107, the copy lands at 115.
        let pools = seen("h30-released-at-once.toml");
        let (_, last) = pools.moments.last().unwrap();
        assert!(last.iter().all(|counts| counts.in_flight == 0 && counts.held == 0));
        assert_eq!(pools.found[&Code::PageFreedInFlight].1, [Tick(107)]);
        assert!(pools.moments.iter().any(|(tick, _)| *tick == Tick(115)));
    }
}
