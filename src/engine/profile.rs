//! The profiles: the releases of all engines by name, and the sound one that is none of them.

use std::fmt;
use std::sync::LazyLock;

use serde::de::{EnumAccess, Error, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ALL, Engine, Release, sglang};
use crate::behaviour::Behaviours;

/// Every switch at its default.
static SOUND: Release = Release {
    name: "sound",
    behaviours: Behaviours::default,
    forbids_striped_decode_cache: false,
    forbids_chunks_inside_pages: false,
};

/// A named set of variants, as one release of an engine has them. Two with the same name are one.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    engine: &'static Engine,
    release: &'static Release,
}

static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
    let of_engine = |engine: &'static Engine| {
        engine.releases.iter().map(move |release| Profile { engine, release })
    };
    [Profile::SOUND].into_iter().chain(ALL.into_iter().flat_map(of_engine)).collect()
});

/// The names of all profiles, for what reads files.
static NAMES: LazyLock<Vec<&str>> =
    LazyLock::new(|| Profile::all().iter().map(|profile| profile.name()).collect());

impl Profile {
    /// Every switch at its default. What no switch decides is as in `sglang`.
    pub const SOUND: Profile = Profile { engine: &sglang::ENGINE, release: &SOUND };

    /// Every profile, the sound one first.
    pub fn all() -> &'static [Profile] {
        &PROFILES
    }

    /// The profile of this name, if there is one.
    pub fn named(name: &str) -> Option<Profile> {
        Profile::all().iter().copied().find(|known| known.name() == name)
    }

    /// As spelled in files.
    pub fn name(self) -> &'static str {
        self.release.name
    }

    /// The engine that this is a release of.
    pub fn engine(self) -> &'static Engine {
        self.engine
    }

    /// The variants that this release has.
    pub fn behaviours(self) -> Behaviours {
        (self.release.behaviours)()
    }

    /// Whether this release refuses to start with a decode cache over more than one rank.
    pub fn forbids_striped_decode_cache(self) -> bool {
        self.release.forbids_striped_decode_cache
    }

    /// Whether this release refuses to start with a prefill budget that is no multiple of P.
    pub fn forbids_chunks_inside_pages(self) -> bool {
        self.release.forbids_chunks_inside_pages
    }
}

impl Default for Profile {
    fn default() -> Profile {
        Profile::SOUND
    }
}

impl PartialEq for Profile {
    fn eq(&self, other: &Profile) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Profile {}

impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Files spell a profile as the variant of an enum, so that what is none of them is refused in the
/// same words as a switch's variant.
impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Profile, D::Error> {
        deserializer.deserialize_enum("Profile", &NAMES, ByName)
    }
}

struct ByName;

impl<'de> Visitor<'de> for ByName {
    type Value = Profile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("enum Profile")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Profile, A::Error> {
        let (name, variant) = access.variant::<String>()?;
        let profile =
            Profile::named(&name).ok_or_else(|| A::Error::unknown_variant(&name, &NAMES))?;
        variant.unit_variant()?;
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sound_profile_has_nothing_unusual() {
        assert_eq!(Profile::SOUND.behaviours().unusual(), []);
        let release = Profile::named("sglang-0.5.20").unwrap();
        assert!(release.behaviours().unusual().contains(&("packing", "buffer_checked")));
        assert_eq!(release.engine().name, "sglang");
    }

    #[test]
    fn every_profile_is_written_and_read_by_its_name() {
        for (&profile, &name) in Profile::all().iter().zip(NAMES.iter()) {
            assert_eq!(profile.name(), name);
            let json = serde_json::to_string(&profile).unwrap();
            assert_eq!(json, format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<Profile>(&json).unwrap(), profile);
        }
        let error = serde_json::from_str::<Profile>("\"sglang\"").unwrap_err().to_string();
        assert!(
            error.starts_with("unknown variant `sglang`, expected one of `sound`, "),
            "{error}"
        );
    }
}
