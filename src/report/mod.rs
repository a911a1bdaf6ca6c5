//! Reports: what a sweep found, as one page with charts and tables, from its ledger alone.
//!
//! [`table`] counts, [`chart`] draws plain data, [`page`] puts both onto one HTML
//! page, [`command`] says how to repeat what it shows.

pub mod chart;
pub mod command;
mod former;
mod html;
pub(crate) mod number;
pub mod page;
pub mod table;
