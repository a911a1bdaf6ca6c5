//! A real engine in the loop: scenarios are drawn, an engine's own schedulers run them, and what
//! they did is compared with the simulation and judged on its own.
//!
//! The engine is reached through a *driver*, a program of its own that is spoken to in JSON lines
//! ([`protocol`]; for authors of drivers `sims/conformance/PROTOCOL.md`). It says what it can do,
//! and [`draw`] keeps to that. A scenario is answered with events; the model runs the same scenario
//! under the profile of the driver's release, and both are compared level by level, as recorded
//! runs are ([`crate::conform`]). What is wrong with the engine alone, whatever the model says, is
//! found by [`judge`]. Of every kind of finding the first scenario is made smaller while the driver
//! still answers in that way.

pub mod draw;
pub mod driver;
pub mod find;
pub mod judge;
pub mod ledger;
pub mod protocol;
pub mod session;
#[cfg(test)]
mod tests;
