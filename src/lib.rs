//! `kvseam` simulates and fuzzes the seam between the prefill and decode KV caches of large
//! language model servers: two paged pools, prefix caches and chunked prefill feed a transfer
//! planner, an oracle judges every row, sweeps count how often each kind of error happens.
//!
//! # The rooms, from the ground up
//!
//! A room uses what stands before it, never what stands behind; `tests/rooms.rs` enforces it.
//! `ARCHITECTURE.md` has what happens to a request, the invariants, and what is deliberately
//! absent.
//!
//! - [`domain`]: how the simulated engines work, and the glossary. No code: begin here.
//! - [`units`], [`limits`], [`stats`], [`rng`]: integers with a meaning, every bound, rates with
//!   intervals, the only randomness.
//! - `wording`: what a reader of files says when a value is wrong.
//! - [`behaviour`]: the switches, one enum each.
//! - [`layout`], [`prompt`]: where a position lives, and what a token's KV is.
//! - [`memory`]: what each row of a pool holds.
//! - [`finding`], [`event`]: codes, chances, marks, metrics, what a run leaves; and the
//!   vocabulary of what happened.
//! - [`pool`], [`cache`], [`planner`]: the three that have to agree. They obey; they do not check.
//! - [`engine`]: what is one engine's own, a folder each, and the profiles of releases.
//! - [`scenario`], [`workload`]: the one concrete description of a run, and the requests in it.
//! - [`oracle`]: fed with what happened, it judges; it shares no code with what it judges.
//! - [`world`]: the simulated servers, each with its own state, and the one loop. Its page has the
//!   life of a request, and where each rule of it stands.
//! - [`witness`]: observers that keep what they see of a run.
//! - [`mod@reference`]: plain models of pool, caches, handoff and planner, which these are checked
//!   against.
//! - [`minimize`], [`claims`]: smaller scenarios with the same finding, and what fuzz targets
//!   claim.
//! - [`conform`]: recorded answers of a real engine against pool, cache and planner.
//! - [`sweep`], [`report`]: grids of runs into a ledger, and the charts drawn from it alone.
//! - [`picture`]: one planner call or one run as a drawing.
//! - [`fuzzing`]: campaigns of the real fuzz targets, and what they found.
//! - [`explain`], [`cli`]: what a code or an error line means, and the command line.
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
