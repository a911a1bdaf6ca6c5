//! Sweeps: one scenario varied over axes and seeds, run on all cores, into a ledger.
//!
//! A [`plan::Plan`] says which settings of a base scenario vary. Each combination is a *cell*; each
//! cell is run once for every seed. [`execute::execute`] does the runs that a [`ledger::Ledger`]
//! lacks, so that a sweep which was stopped goes on where it ended. Reports are drawn from the
//! ledger alone.

#[cfg(feature = "cli")]
pub mod execute;
#[cfg(feature = "report")]
pub mod ledger;
pub mod plan;
#[cfg(feature = "report")]
pub mod summary;
