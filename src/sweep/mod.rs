//! Sweeps: one scenario varied over axes and seeds, run on all cores, into a ledger.
//!
//! A [`plan::Plan`] says which settings of a base scenario vary. Each combination is a *cell*; each
//! cell is run once for every seed. [`execute::execute`] does the runs that a [`ledger::Ledger`]
//! lacks, so that a sweep which was stopped goes on where it ended. Several machines do a
//! [`shard::Shard`] each, and [`merge::merge`] joins their ledgers. Reports are drawn from the
//! ledger alone.
//!
#![cfg_attr(feature = "report", doc = "```")]
#![cfg_attr(not(feature = "report"), doc = "```ignore")]
//! use std::sync::atomic::AtomicBool;
//!
//! use kvseam::sweep::execute::execute;
//! use kvseam::sweep::ledger::Ledger;
//! use kvseam::sweep::plan::Plan;
//! use kvseam::sweep::runner::{Runner, Simulator};
//! use kvseam::world::Registry;
//!
//! let plan = Plan::read("sims/plans/demo.toml".as_ref())?;
//! let path = std::env::temp_dir().join(format!("example-{}.sqlite", std::process::id()));
//! let simulator = Simulator::new(&plan, Registry::built_in());
//! let mut ledger = Ledger::start(&path, &plan, |cell| simulator.check(cell))?;
//! // One that is set from the start: no run is begun.
//! let stop = AtomicBool::new(true);
//! let outcome = execute(&mut ledger, 1, &stop, simulator, |_progress| {})?;
//! assert!(outcome.is_interrupted && outcome.progress.done == 0);
//! # std::fs::remove_file(path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod axis;
pub mod cell;
#[cfg(feature = "report")]
mod column;
pub mod due;
#[cfg(feature = "report")]
pub mod estimate;
#[cfg(feature = "report")]
pub mod execute;
pub mod expect;
#[cfg(feature = "report")]
pub mod export;
pub mod filter;
#[cfg(feature = "report")]
pub mod judge;
#[cfg(feature = "report")]
pub mod ledger;
#[cfg(feature = "report")]
pub mod merge;
pub mod plan;
pub mod run_set;
pub mod runner;
#[cfg(feature = "report")]
mod schema;
pub mod selection;
pub mod shard;
#[cfg(feature = "report")]
pub mod summary;
