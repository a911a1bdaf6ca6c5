//! The engines: what is one serving engine's own, a folder each, as one value.
//!
//! Who needs something of an engine reads it from its [`Engine`]: the world through the profile
//! that a scenario names, registries and readers of error lines and vectors from all of [`ALL`].

pub mod connection;
mod profile;
pub mod sglang;
pub mod texts;

pub use profile::Profile;

use crate::behaviour::{Behaviours, PlannerName};
use crate::planner::Planner;
use connection::{Endpoint, Pairing, PeerRefusal};
use texts::ErrorText;

/// Every engine that is known.
pub static ALL: [&Engine; 1] = [&sglang::ENGINE];

/// One serving engine.
#[derive(Debug)]
pub struct Engine {
    /// As engine and package are called.
    pub name: &'static str,
    /// The releases whose behaviour is known, the oldest first.
    pub releases: &'static [Release],
    /// The revisions of its planner, the oldest first.
    pub revisions: &'static [Revision],
    /// Whether a prefill server (first) may send to a decode server, and how.
    pub pair: fn(&Endpoint, &Endpoint) -> Result<Pairing, PeerRefusal>,
    /// Which side moves the KV.
    pub transfer: TransferMode,
    /// What it says when it refuses, the planner's texts first.
    pub texts: &'static [&'static ErrorText],
}

/// One release of an engine: which variants it has.
#[derive(Debug)]
pub struct Release {
    /// As spelled in files.
    pub name: &'static str,
    /// The variants that this release has.
    pub behaviours: fn() -> Behaviours,
    /// Whether this release refuses to start with a decode cache over more than one rank.
    pub forbids_striped_decode_cache: bool,
    /// Whether this release refuses to start with a prefill budget that is no multiple of P.
    pub forbids_chunks_inside_pages: bool,
}

/// One revision of an engine's planner.
#[derive(Debug)]
pub struct Revision {
    /// As scenarios name it.
    pub name: PlannerName,
    /// How it differs from the others, and which releases have it.
    pub doc: &'static str,
    /// The key of its recorded answers in planner vectors, after a release that has it.
    pub recorded_as: &'static str,
    /// Makes it.
    pub make: fn() -> Box<dyn Planner>,
}

/// Which side moves the KV of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferMode {
    /// Prefill: decode reserves pages and says where they are, prefill writes into them.
    Push,
}

/// The revisions of all engines' planners.
pub fn revisions() -> impl Iterator<Item = &'static Revision> {
    ALL.into_iter().flat_map(|engine| engine.revisions)
}

/// The error texts of all engines.
pub fn error_texts() -> impl Iterator<Item = &'static ErrorText> {
    ALL.into_iter().flat_map(|engine| engine.texts.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_engine_s_and_releases_have_a_revision_of_their_own_engine() {
        for engine in ALL {
            for release in engine.releases {
                assert!(release.name.starts_with(engine.name), "{}", release.name);
                let planner = (release.behaviours)().planner;
                let is_own = engine.revisions.iter().any(|revision| revision.name == planner);
                assert!(is_own, "{} has {planner:?}", release.name);
            }
        }
        let mut names: Vec<PlannerName> = revisions().map(|revision| revision.name).collect();
        names.sort();
        assert_eq!(names, PlannerName::ALL, "every built-in name is one revision's");
    }
}
