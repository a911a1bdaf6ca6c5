//! Which behaviours there are to look for, and which hunt is meant to find each: the one whose
//! codes its hazard files show.

use std::collections::BTreeMap;
use std::path::Path;

use super::Row;
use crate::claims::scenarios::caused;
use crate::fuzzing::{CampaignError, files};
use crate::minimize::import::{FuzzTarget, hunter};
use crate::scenario::file;
use crate::scenario::generate::PlantedVariant;
use crate::world::{self, Registry};

/// For each variant, how many hazard files show it to each hunt.
type Votes = BTreeMap<PlantedVariant, BTreeMap<FuzzTarget, u64>>;

/// Every variant that the lint can object to, with the hunt that most of its hazard files in
/// `folder` are first seen by; and the variants that it never objects to.
pub fn rows(folder: &Path) -> Result<(Vec<Row>, Vec<PlantedVariant>), CampaignError> {
    let known = Registry::built_in().names();
    let votes = votes(folder)?;
    let (unsound, sound): (Vec<PlantedVariant>, Vec<PlantedVariant>) =
        PlantedVariant::all().partition(|planted| planted.can_be_objected_to(&known));
    let row = |planted| {
        let hunts = votes.get(&planted);
        // Among hunts with equally many votes, the first.
        let most = |hunts: &BTreeMap<FuzzTarget, u64>| {
            hunts.iter().rev().max_by_key(|&(_, votes)| votes).map(|(&target, _)| target)
        };
        Row { planted, meant: hunts.and_then(most) }
    };
    Ok((unsound.into_iter().map(row).collect(), sound))
}

/// Each hazard file has a vote for each variant in it: for the hunt of the earliest finding that is
/// absent with that variant's switch at its default.
fn votes(folder: &Path) -> Result<Votes, CampaignError> {
    let mut votes = Votes::new();
    for path in files(folder, "toml")? {
        let scenario = file::load(&path);
        let scenario = scenario.map_err(|error| CampaignError::Scenario(error.to_string()))?;
        let run = |scenario: &_| {
            let wrong = |why| CampaignError::Scenario(format!("{}: {why}", path.display()));
            world::run(scenario, folder).map_err(wrong)
        };
        if scenario.expect.as_ref().is_some_and(|expect| expect.invalid.is_some()) {
            continue;
        }
        let whole = run(&scenario)?;
        if whole.findings.is_clean() {
            continue;
        }
        for planted in PlantedVariant::of(&scenario) {
            // Where the default cannot be run at all, there is nothing to compare with.
            let Ok(without) = run(&planted.without(&scenario)) else { continue };
            let first = caused(&whole, &without, |code| hunter(code).is_some());
            if let Some(hunt) = first.and_then(|finding| hunter(finding.code)) {
                *votes.entry(planted).or_default().entry(hunt).or_default() += 1;
            }
        }
    }
    Ok(votes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_behaviour_has_a_hunt_that_is_meant_for_it() {
        let (rows, sound) = rows(Path::new("sims/hazards")).unwrap();
        let meant = |text: &str| {
            let row = rows.iter().find(|row| row.planted.to_string() == text);
            row.unwrap_or_else(|| panic!("{text} can be objected to")).meant
        };
        assert_eq!(meant("decode_prefix_cut=padded_up"), Some(FuzzTarget::HuntPlacement));
        assert_eq!(meant("decode_prefix_cut=physical_page"), Some(FuzzTarget::HuntMisalignment));
        assert_eq!(meant("decode_reservation=floor"), Some(FuzzTarget::HuntShortfall));
        assert_eq!(meant("free_check=none"), Some(FuzzTarget::HuntLifetime));
        assert_eq!(meant("release_on_abort=at_once"), Some(FuzzTarget::HuntLifetime));
        assert!(sound.contains(&PlantedVariant { switch: "planner", variant: "indexed" }));
        let without: Vec<_> = rows.iter().filter(|row| row.meant.is_none()).collect();
        assert!(without.is_empty(), "no hazard file shows {without:?}");
    }
}
