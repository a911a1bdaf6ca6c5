//! Sweeps: one scenario varied over axes and seeds, run on all cores, into a ledger.
//!
//! A [`plan::Plan`] says which settings of a base scenario vary. Each combination is a *cell*; each
//! cell is run once for every seed. [`execute::execute`] does the runs that a [`ledger::Ledger`]
//! lacks, so that a sweep which was stopped goes on where it ended. Several machines do a
//! [`shard::Shard`] each, and [`merge::merge`] joins their ledgers. Reports are drawn from the
//! ledger alone.

pub mod axis;
pub mod cell;
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
#[cfg(feature = "report")]
mod schema;
pub mod selection;
pub mod shard;
#[cfg(feature = "report")]
pub mod summary;
