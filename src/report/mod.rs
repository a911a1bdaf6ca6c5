//! Reports: what a sweep found, as one page with charts and tables, from its ledger alone.
//!
//! [`table`] counts, [`cost`] sums up what is not an error, [`news`] compares with an earlier
//! ledger, [`chart`] draws plain data, [`page`] puts all onto one HTML page with [`csv`] files
//! beside it, [`command`] says how to repeat what it shows.

pub mod chart;
pub mod command;
pub mod cost;
pub mod csv;
mod former;
mod html;
pub mod news;
pub(crate) mod number;
pub mod page;
pub mod table;
pub mod value;
