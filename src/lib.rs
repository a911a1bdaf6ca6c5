//! `kvseam` simulates and fuzzes the seam between the prefill and decode KV caches of large
//! language model servers: two paged pools, prefix caches and chunked prefill feed a transfer
//! planner, an oracle judges every row, sweeps count how often each kind of error happens.
//!
//! Begin with [`domain`], which has no code: how the simulated engines work, and the glossary. The
//! entry to a run is [`world::Simulation`]; the page of [`world`] has the life of a request.
//!
//! Each module is a *room* and uses only rooms below it. `ARCHITECTURE.md`, beside `Cargo.toml`,
//! has the list of rooms from the ground up, what happens to a request and where each rule of it
//! stands, the invariants, what to touch to add something, and what is deliberately absent.
//! `tests/rooms.rs` enforces the order.
//!
//! ```
//! use std::path::Path;
//!
//! use kvseam::finding::Code;
//! use kvseam::{scenario::file, world};
//!
//! let padded = file::load(Path::new("sims/hazards/h06-padded-up.toml"))?;
//! let run = world::run(&padded, Path::new("sims/hazards"))?;
//! assert_eq!(run.findings.count(Code::PlacedMissing), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

#[cfg(feature = "cli")]
pub mod audit;
pub mod behaviour;
pub mod cache;
#[cfg(feature = "arbitrary")]
pub mod claims;
#[cfg(feature = "cli")]
pub mod cli;
pub mod conform;
pub mod domain;
pub mod engine;
pub mod event;
pub mod explain;
pub mod finding;
#[cfg(feature = "cli")]
pub mod fuzzing;
pub mod layout;
pub mod limits;
#[cfg(feature = "cli")]
pub mod live;
pub mod memory;
pub mod minimize;
pub mod oracle;
#[cfg(feature = "report")]
pub mod picture;
pub mod planner;
pub mod pool;
pub mod prompt;
#[cfg(any(test, feature = "arbitrary"))]
pub mod reference;
pub mod replay;
#[cfg(feature = "report")]
pub mod report;
pub mod rng;
pub mod scenario;
pub mod stats;
pub mod sweep;
pub mod units;
pub mod witness;
mod wording;
pub mod workload;
pub mod world;
