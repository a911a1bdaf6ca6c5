//! The title and the expectation that a minimised scenario gets from its run.

use super::search::Search;
use crate::finding::Named;
use crate::scenario::{Bound, Expect, Scenario};

/// The scenario found, its title made from the goal and the switches that are left, and expecting
/// exactly what it shows.
pub(super) fn named(search: Search) -> Scenario {
    let codes: Vec<&str> = search.codes().iter().map(|code| code.name()).collect();
    let behaviours = search.best().behaviours();
    let switches = behaviours.unusual();
    let switches: Vec<String> =
        switches.iter().map(|(name, variant)| format!("{name} = \"{variant}\"")).collect();
    let mut title = codes.join(" and ");
    if !switches.is_empty() {
        title += &format!(" by {}", switches.join(", "));
    }
    if search.run().findings.is_clean() {
        title.insert_str(0, "sound: ");
    }
    let findings = &search.run().findings;
    let findings = findings.iter().map(|(code, kept)| (code, Bound::Exactly(kept.count)));
    let expect = Some(Expect { findings: findings.collect(), ..Expect::default() });
    Scenario { title, expect, ..search.into_best() }
}
