//! `kvseam` simulates and fuzzes the seam between the prefill and decode KV caches of large language
//! model servers: two paged pools, prefix caches and chunked prefill feed a transfer planner, an
//! oracle judges every row, sweeps count how often each kind of error happens.

#![forbid(unsafe_code)]

pub mod behaviour;
pub mod cache;
#[cfg(feature = "cli")]
pub mod cli;
pub mod conform;
pub mod explain;
pub mod finding;
pub mod layout;
pub mod limits;
pub mod minimize;
pub mod oracle;
pub mod planner;
pub mod pool;
pub mod prompt;
#[cfg(feature = "report")]
pub mod report;
pub mod rng;
pub mod scenario;
pub mod stats;
#[cfg(feature = "report")]
pub mod sweep;
pub mod units;
mod wording;
pub mod workload;
pub mod world;
