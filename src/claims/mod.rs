//! What the project claims of itself, each claim as a function that tries it on one drawn case.
//!
//! A *claim* takes its decisions from [`Choices`](crate::scenario::generate::Choices), or a whole
//! text from bytes, compares the code with a definition written anew in plain terms, and panics
//! where they differ. Fuzz targets are these functions and nothing else; the tests here try the
//! same claims on random streams.

pub mod allocator;
pub mod features;
pub mod handoff;
pub mod layout;
pub mod planner;
pub mod prefix_cache;
pub mod scenarios;
pub mod sizes;
pub mod texts;

#[cfg(test)]
mod tests;
