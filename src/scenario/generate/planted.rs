//! A *planted variant*: one variant of one switch that every drawn scenario is to have, so that
//! what it alone leads to can be looked for.

use std::fmt;

use super::Choices;
use crate::behaviour::{Overrides, SWITCHES};
use crate::rng::Stream;
use crate::scenario::Scenario;
use crate::scenario::generate::{Aim, generate_planted};
use crate::scenario::lint::lint;
use crate::scenario::validate::{KnownPolicies, validate};

/// How many scenarios are drawn with a variant before it counts as sound on its own, if the lint
/// has objected to it in none of them. Of the other variants, the least often objected to still is
/// in about one scenario of seven.
const DRAWS: u64 = 400;

/// What a switch's unsound variants need beside them before one more switch can make them act.
const BESIDE: [(&str, &str, &str); 1] = [("duplicate_page", "free_check", "none")];

/// A variant of a switch that is not its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlantedVariant {
    /// The switch, as spelled in files.
    pub switch: &'static str,
    /// Its variant, as spelled in files.
    pub variant: &'static str,
}

/// A text that names no variant to plant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlantedVariantError {
    /// There is no `=` in it.
    #[error("must be SWITCH=VARIANT, got \"{0}\"")]
    Form(String),
    /// No switch of this name.
    #[error("must name a switch of `kvseam list behaviours`, got \"{0}\"")]
    Switch(String),
    /// The switch has no variant of this name but perhaps its default.
    #[error("{switch}: must be one of {}, got \"{variant}\"", .known.join(", "))]
    Variant {
        /// The switch.
        switch: &'static str,
        /// The variants that can be planted.
        known: Vec<&'static str>,
        /// What was asked for.
        variant: String,
    },
}

impl PlantedVariant {
    /// Every variant of every switch but the defaults.
    pub fn all() -> impl Iterator<Item = PlantedVariant> {
        SWITCHES.iter().flat_map(|switch| {
            let others = switch.variants.iter().skip(1);
            others.map(|variant| PlantedVariant { switch: switch.name, variant: variant.name })
        })
    }

    /// Those that `scenario` has.
    pub fn of(scenario: &Scenario) -> Vec<PlantedVariant> {
        let behaviours = scenario.behaviours();
        let unusual = behaviours.unusual();
        let is_in = |planted: &PlantedVariant| unusual.contains(&(planted.switch, planted.variant));
        PlantedVariant::all().filter(is_in).collect()
    }

    /// The variant that `text` names as `SWITCH=VARIANT`.
    pub fn parse(text: &str) -> Result<PlantedVariant, PlantedVariantError> {
        let (switch, variant) =
            text.split_once('=').ok_or_else(|| PlantedVariantError::Form(text.to_owned()))?;
        let of_switch: Vec<PlantedVariant> =
            PlantedVariant::all().filter(|planted| planted.switch == switch).collect();
        let Some(first) = of_switch.first() else {
            return Err(PlantedVariantError::Switch(switch.to_owned()));
        };
        of_switch.iter().copied().find(|planted| planted.variant == variant).ok_or_else(|| {
            let known = of_switch.iter().map(|planted| planted.variant).collect();
            PlantedVariantError::Variant {
                switch: first.switch,
                known,
                variant: variant.to_owned(),
            }
        })
    }

    /// Whether the lint objects to it in any of many drawn scenarios.
    pub fn can_be_objected_to(self, known: &KnownPolicies) -> bool {
        (0..DRAWS).any(|seed| {
            let mut stream = Stream::new(seed, "plant");
            let scenario = generate_planted(&mut stream, known, Aim::Any, self);
            self.is_objected_to(&scenario)
        })
    }

    /// Whether the lint objects to it in this scenario.
    pub fn is_objected_to(self, scenario: &Scenario) -> bool {
        lint(scenario).iter().any(|objection| objection.switch == self.switch)
    }

    /// The same scenario with the switch at its default.
    pub fn without(self, scenario: &Scenario) -> Scenario {
        let mut twin = scenario.clone();
        twin.behaviour.reset(self.switch);
        twin
    }

    /// Sets the switch to the variant.
    pub(super) fn put(self, behaviour: &mut Overrides) {
        let is_known = behaviour.set(self.switch, self.variant);
        debug_assert!(is_known, "{self} is a variant of a switch");
    }

    /// If the lint has no objection to the variant, sets one other switch so that it has one, if
    /// there is such a switch.
    pub(super) fn make_act(
        self,
        choices: &mut impl Choices,
        known: &KnownPolicies,
        scenario: &mut Scenario,
    ) {
        if self.is_objected_to(scenario) {
            return;
        }
        for (_, switch, variant) in BESIDE.iter().filter(|beside| beside.0 == self.switch) {
            scenario.behaviour.set(switch, variant);
        }
        let before = scenario.behaviour;
        let mut beside = Vec::new();
        for switch in SWITCHES.iter().filter(|switch| switch.name != self.switch) {
            for variant in switch.variants {
                scenario.behaviour = before;
                scenario.behaviour.set(switch.name, variant.name);
                if self.is_objected_to(scenario) && validate(scenario, known).is_ok() {
                    beside.push(scenario.behaviour);
                }
            }
        }
        scenario.behaviour = if beside.is_empty() { before } else { *choices.pick(&beside) };
    }

    /// Resets other switches that the lint objects to, as long as the lint goes on objecting to
    /// this one.
    pub(super) fn repair_others(self, choices: &mut impl Choices, scenario: &mut Scenario) {
        loop {
            let is_objected = self.is_objected_to(scenario);
            let mut repaired = Vec::new();
            for other in lint(scenario) {
                let mut behaviour = scenario.behaviour;
                behaviour.reset(other.switch);
                let before = std::mem::replace(&mut scenario.behaviour, behaviour);
                if other.switch != self.switch && self.is_objected_to(scenario) == is_objected {
                    repaired.push(behaviour);
                }
                scenario.behaviour = before;
            }
            if repaired.is_empty() {
                return;
            }
            scenario.behaviour = *choices.pick(&repaired);
        }
    }
}

impl fmt::Display for PlantedVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.switch, self.variant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Registry;

    fn drawn(planted: PlantedVariant, count: u64) -> impl Iterator<Item = Scenario> {
        let known = Registry::built_in().names();
        (0..count).map(move |seed| {
            generate_planted(&mut Stream::new(seed, "planted"), &known, Aim::Any, planted)
        })
    }

    fn objected(scenario: &Scenario) -> Vec<&'static str> {
        lint(scenario).iter().map(|objection| objection.switch).collect()
    }

    #[test]
    fn planted_variants_are_read_as_they_are_printed_and_others_refused() {
        assert!(PlantedVariant::all().count() > 20);
        for planted in PlantedVariant::all() {
            assert_eq!(PlantedVariant::parse(&planted.to_string()), Ok(planted));
        }
        for (text, message) in [
            ("planner", "must be SWITCH=VARIANT, got \"planner\""),
            ("plan=x", "must name a switch of `kvseam list behaviours`, got \"plan\""),
            ("free_check=guarded", "free_check: must be one of none, got \"guarded\""),
        ] {
            assert_eq!(PlantedVariant::parse(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn every_drawn_scenario_is_valid_and_has_the_variant() {
        let known = Registry::built_in().names();
        for planted in PlantedVariant::all() {
            for scenario in drawn(planted, 50) {
                assert_eq!(validate(&scenario, &known), Ok(()), "{planted}: {scenario:?}");
                assert!(PlantedVariant::of(&scenario).contains(&planted), "{planted}");
                assert!(!planted.is_objected_to(&planted.without(&scenario)), "{planted}");
            }
        }
    }

    #[test]
    fn no_objection_to_another_switch_is_left_without_need() {
        for planted in PlantedVariant::all() {
            for scenario in drawn(planted, 50) {
                let is_objected = planted.is_objected_to(&scenario);
                for other in objected(&scenario).into_iter().filter(|&name| name != planted.switch)
                {
                    let mut without = scenario.clone();
                    without.behaviour.reset(other);
                    let still = planted.is_objected_to(&without);
                    assert!(is_objected && !still, "{planted}: {other} in {scenario:?}");
                }
            }
        }
    }

    #[test]
    fn a_variant_that_needs_company_gets_it() {
        let planted = PlantedVariant::parse("free_check=none").unwrap();
        let with_objection =
            drawn(planted, 200).filter(|scenario| planted.is_objected_to(scenario));
        let mut count = 0;
        for scenario in with_objection {
            let switches = objected(&scenario);
            let company: Vec<_> = switches.iter().filter(|name| **name != "free_check").collect();
            assert!(matches!(company[..], [&"duplicate_insert" | &"free_segment"]), "{switches:?}");
            count += 1;
        }
        assert!(count > 100, "{count}");
    }

    #[test]
    fn sound_alternatives_are_told_from_what_can_be_objected_to() {
        let known = Registry::built_in().names();
        let can = |text| PlantedVariant::parse(text).unwrap().can_be_objected_to(&known);
        assert!(can("free_check=none") && can("decode_prefix_cut=padded_up"));
        assert!(!can("planner=indexed") && !can("decode_match_unit=token"));
    }
}
