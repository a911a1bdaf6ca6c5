//! A scenario with somebody who looks on: every retraction and every end, as it happens.
//!
//! Run it with `cargo run --example observed`.

use std::error::Error;
use std::path::Path;

use kvseam::event::Event;
use kvseam::scenario::file;
use kvseam::world::observer::Seen;
use kvseam::world::{Observer, Simulation};

#[derive(Default)]
struct Counter {
    retracted: u64,
    ended: u64,
}

impl Observer for Counter {
    fn told(&mut self, seen: &Seen<'_>) {
        match seen.event {
            Event::Retracted { request } => {
                println!("tick {}: request {request} is retracted", seen.tick.0);
                self.retracted += 1;
            }
            Event::Ended { request, outcome } => {
                println!("tick {}: request {request} ends: {outcome:?}", seen.tick.0);
                self.ended += 1;
            }
            _ => {}
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let scenario = file::load(Path::new("sims/scenarios/nearly-full-pools.toml"))?;
    let mut counter = Counter::default();
    let run = Simulation::new(&scenario).observer(&mut counter).run()?;
    println!("{} retractions, {} ends", counter.retracted, counter.ended);
    // What the run leaves can be kept as JSON.
    println!("{}", serde_json::to_string_pretty(&run.metrics)?);
    Ok(())
}
