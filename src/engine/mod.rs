//! The engines: what is one serving engine's own, a folder each.

pub mod connection;
mod profile;
pub mod sglang;
pub mod texts;

pub use profile::Profile;

use crate::behaviour::Behaviours;

/// One release of an engine: which variants it has.
#[derive(Debug)]
pub struct Release {
    /// As spelled in files.
    pub name: &'static str,
    /// The variants that this release has.
    pub behaviours: fn() -> Behaviours,
    /// Whether this release refuses to start with a decode cache over more than one rank.
    pub forbids_striped_decode_cache: bool,
}
