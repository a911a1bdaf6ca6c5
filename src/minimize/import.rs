//! From a crash of a fuzz target to a file: the scenario in the artifact, minimised, under a name
//! that is the same for every crash of one mistake.

use std::collections::BTreeSet;
use std::hash::Hasher;
use std::path::Path;
use std::sync::LazyLock;

use siphasher::sip::SipHasher13;

use super::{MinimizeError, Minimized, minimize};
use crate::finding::{Code, Finding, Named, Run, Severity};
use crate::scenario::Scenario;
use crate::scenario::generate::{Aim, Endless, PlantedVariant, generate, generate_planted};
use crate::scenario::validate::KnownPolicies;
use crate::world::{self, Registry};

/// A fuzz target that runs scenarios and crashes on findings of its codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FuzzTarget {
    /// What the lint calls sound has no defect.
    SoundScenarios,
    /// Destination pages that do not suffice, or more than needed.
    HuntShortfall,
    /// Prefixes and token counts that the planner cannot take.
    HuntMisalignment,
    /// Rows that do not hold what they should.
    HuntPlacement,
    /// Pages and requests that do not end as they should.
    HuntLifetime,
}

impl FuzzTarget {
    /// Every target.
    pub const ALL: &'static [FuzzTarget] = &[
        FuzzTarget::SoundScenarios,
        FuzzTarget::HuntShortfall,
        FuzzTarget::HuntMisalignment,
        FuzzTarget::HuntPlacement,
        FuzzTarget::HuntLifetime,
    ];

    /// Its name, which is that of its file in `fuzz/fuzz_targets`.
    pub fn name(self) -> &'static str {
        match self {
            FuzzTarget::SoundScenarios => "sound_scenarios",
            FuzzTarget::HuntShortfall => "hunt_shortfall",
            FuzzTarget::HuntMisalignment => "hunt_misalignment",
            FuzzTarget::HuntPlacement => "hunt_placement",
            FuzzTarget::HuntLifetime => "hunt_lifetime",
        }
    }

    /// The target of this name.
    pub fn parse(name: &str) -> Option<FuzzTarget> {
        FuzzTarget::ALL.iter().copied().find(|target| target.name() == name)
    }

    /// Whether a finding of this code is what the target looks for.
    pub fn hunts(self, code: Code) -> bool {
        match self {
            FuzzTarget::SoundScenarios => code.severity() == Severity::Defect,
            FuzzTarget::HuntShortfall
            | FuzzTarget::HuntMisalignment
            | FuzzTarget::HuntPlacement
            | FuzzTarget::HuntLifetime => hunter(code) == Some(self),
        }
    }

    /// What the target's scenarios are drawn for.
    pub fn aim(self) -> Aim {
        match self {
            FuzzTarget::SoundScenarios => Aim::Sound,
            FuzzTarget::HuntShortfall
            | FuzzTarget::HuntMisalignment
            | FuzzTarget::HuntPlacement
            | FuzzTarget::HuntLifetime => Aim::Any,
        }
    }

    /// The names of policies that its scenarios use: the built-in ones.
    pub fn known(self) -> &'static KnownPolicies {
        static KNOWN: LazyLock<KnownPolicies> = LazyLock::new(|| Registry::built_in().names());
        &KNOWN
    }

    /// The scenario that the target runs for these bytes; with a `planted` variant, one that has it
    /// and as little else as can be that is unsound.
    pub fn scenario(self, bytes: &[u8], planted: Option<PlantedVariant>) -> Scenario {
        let mut bytes = Endless::new(bytes);
        match planted {
            Some(planted) => generate_planted(&mut bytes, self.known(), self.aim(), planted),
            None => generate(&mut bytes, self.known(), self.aim()),
        }
    }

    /// What the target looks for and the run shows, the earliest of it.
    pub fn first_hunted(self, run: &Run) -> Option<&Finding> {
        run.findings.earliest(|code| self.hunts(code))
    }
}

/// The hunt that a code belongs to; a refusal that a sound system gives belongs to none.
pub fn hunter(code: Code) -> Option<FuzzTarget> {
    match code {
        Code::RefusedShortfall
        | Code::RefusedIndex
        | Code::CapacityWrong
        | Code::ReserveExcess
        | Code::ReserveShort => Some(FuzzTarget::HuntShortfall),
        Code::RefusedMisaligned | Code::RefusedSource | Code::RefusedInput => {
            Some(FuzzTarget::HuntMisalignment)
        }
        Code::PlacedMissing
        | Code::PlacedShifted
        | Code::PlacedForeign
        | Code::PlacedTwice
        | Code::PlacedOutside
        | Code::ReadUnwritten
        | Code::CacheWrongHit
        | Code::ActivateEarly => Some(FuzzTarget::HuntPlacement),
        Code::ReadFreed
        | Code::PageTwoOwners
        | Code::PageFreedTwice
        | Code::PageFreedPart
        | Code::PageFreedInFlight
        | Code::PageLeaked
        | Code::CountDrift
        | Code::StallNoProgress => Some(FuzzTarget::HuntLifetime),
        Code::RefusedTopology
        | Code::RefusedRank
        | Code::RefusedGeometry
        | Code::RefusedPool
        | Code::RefusedPrefillCp
        | Code::RefusedPageSize
        | Code::RefusedCapacity => None,
    }
}

/// A file for a folder of regressions.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Its name: the code, and the scenario's [`digest`].
    pub name: String,
    /// Its text: a line that reproduces it, and the scenario.
    pub text: String,
    /// How it was found.
    pub minimized: Minimized,
}

/// The file for the crash of `target` that `artifact` holds the bytes of. Of the codes that the
/// target looks for, the one found first must stay. The file is to lie in `folder`.
pub fn import(
    target: FuzzTarget,
    artifact: &[u8],
    runs_max: u64,
    folder: &Path,
) -> Result<Imported, MinimizeError> {
    let scenario = target.scenario(artifact, None);
    let traces = Path::new("");
    let run = world::run(&scenario, traces)?;
    let code = target.first_hunted(&run).ok_or(MinimizeError::NoDefect)?.code;
    let minimized = minimize(&scenario, traces, &BTreeSet::from([code]), runs_max)?;
    let text = minimized.scenario.to_toml();
    let name = format!("{}-{:08x}.toml", code.name(), digest(&minimized.scenario));
    let text = format!("# kvseam run {}\n{text}", folder.join(&name).display());
    Ok(Imported { name, text, minimized })
}

/// Eight digits that the files of one mistake have in common: of the scenario without its title and
/// without what it must show, which change when the mistake is named or mended.
pub fn digest(scenario: &Scenario) -> u32 {
    let bare = Scenario { title: String::new(), expect: None, ..scenario.clone() };
    let mut hasher = SipHasher13::new();
    hasher.write(bare.to_toml().as_bytes());
    let [.., a, b, c, d] = hasher.finish().to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MINIMIZE_RUNS;
    use crate::rng::Stream;
    use crate::scenario::file;

    /// Bytes as a fuzzer makes them, from which `target` draws a crash.
    fn crashes(target: FuzzTarget) -> impl Iterator<Item = Vec<u8>> {
        (0..2_000).map(move |seed| {
            let mut stream = Stream::new(seed, target.name());
            (0..600).map(|_| u8::try_from(stream.below(256)).unwrap()).collect()
        })
    }

    #[test]
    fn every_defect_is_hunted_by_one_hunt_and_forbidden_in_sound_scenarios() {
        for &code in Code::ALL {
            let hunts = FuzzTarget::ALL.iter().filter(|target| target.hunts(code)).count();
            let expected = match code.severity() {
                Severity::Defect => 2,
                Severity::Expected => 0,
            };
            assert_eq!(hunts, expected, "{}", code.name());
        }
    }

    #[test]
    fn imports_of_one_mistake_give_one_small_file_that_shows_it() {
        let target = FuzzTarget::HuntShortfall;
        let mut names = std::collections::BTreeMap::new();
        let mut count = 0;
        for bytes in crashes(target).take(400) {
            let folder = Path::new("sims/regressions");
            let Ok(imported) = import(target, &bytes, MINIMIZE_RUNS, folder) else { continue };
            assert!(imported.minimized.after.requests <= 3, "{imported:?}");
            let read = file::parse(&imported.text, &imported.name).unwrap();
            assert_eq!(read, imported.minimized.scenario);
            let title = imported.minimized.scenario.title.clone();
            let files: &mut BTreeSet<String> = names.entry(title).or_default();
            files.insert(imported.name);
            count += 1;
        }
        assert!(count >= 20, "{count}");
        assert!(names.values().all(|files| files.len() == 1), "{names:#?}");
    }

    #[test]
    fn an_artifact_without_a_finding_is_refused() {
        let error = import(FuzzTarget::HuntPlacement, &[], 10, Path::new("")).unwrap_err();
        assert!(matches!(error, MinimizeError::NoDefect), "{error}");
    }
}
