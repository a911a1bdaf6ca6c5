//! Witnesses: observers that keep what they see of one run, for people to look at.
//!
//! [`Calls`] keeps the planner calls with what became of them, [`Pools`] who held how many pages
//! when, [`Trace`] writes a line for every event, and [`Events`] writes it as JSON. None of them
//! judges: what is wrong, and what became of a row, is what the oracle says.
//!
//! ```
//! use kvseam::scenario::file;
//! use kvseam::witness::Trace;
//! use kvseam::world::Simulation;
//!
//! let scenario = file::load("sims/scenarios/sound-baseline.toml".as_ref())?;
//! let mut lines = 0;
//! let mut trace = Trace::new(|_line: &str| lines += 1);
//! Simulation::new(&scenario).observer(&mut trace).run()?;
//! trace.close();
//! assert!(lines > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calls;
mod events;
mod pools;
mod trace;

use std::collections::BTreeMap;

use crate::event::Event;
use crate::finding::Code;
use crate::units::Tick;
use crate::world::Observer;
use crate::world::observer::{Call, Note, Seen};

pub use calls::{Calls, KeptCall, KeptRefusal, Placed};
pub use events::Events;
pub use pools::{Counts, Pools};
pub use trace::Trace;

/// Several observers of one run.
pub struct All<'a>(pub Vec<&'a mut dyn Observer>);

impl Observer for All<'_> {
    fn told(&mut self, seen: &Seen<'_>) {
        for observer in &mut self.0 {
            observer.told(seen);
        }
    }

    fn planned(&mut self, tick: Tick, call: &Call<'_>) {
        for observer in &mut self.0 {
            observer.planned(tick, call);
        }
    }

    fn noted(&mut self, tick: Tick, note: &Note) {
        for observer in &mut self.0 {
            observer.noted(tick, note);
        }
    }
}

/// The codes found since `told` was last brought up to date, with how many of each.
fn newly_found(told: &mut BTreeMap<Code, u64>, seen: &Seen<'_>) -> Vec<(Code, u64)> {
    let mut new = Vec::new();
    for (code, kept) in seen.oracle.findings().iter() {
        let known = told.entry(code).or_default();
        if kept.count > *known {
            new.push((code, kept.count - *known));
            *known = kept.count;
        }
    }
    new
}

/// Whether an event is the books of a server, which repeat what moves have told.
fn is_books(event: &Event<'_>) -> bool {
    matches!(event, Event::Books { .. })
}
