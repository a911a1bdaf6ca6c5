//! Whether a release can print a line, and what would have to differ from what it is.
//!
//! An answer is about the release as modelled. What no switch and no check of the model decides is
//! said to be unknown.

use serde::Serialize;

use super::causes::Cause;
use super::foreign::{ForeignText, Says};
use super::line::Line;
use crate::behaviour::{Packing, PlannerName, SWITCHES, SendSplit};
use crate::engine::Profile;

/// Whether a release can print a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Printable {
    /// By what it does itself, or by what it is configured with.
    Can,
    /// It has the text, and as modelled does nothing that leads to it.
    IfSomethingDiffers,
    /// It does not have the text, or never comes to where it is written.
    Cannot,
    /// The model has no part that writes it.
    Unknown,
}

/// The answer for one line and one release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Printed {
    /// The profile.
    pub profile: &'static str,
    /// Whether it can.
    pub printable: Printable,
    /// Why, in a sentence.
    pub reason: String,
    /// What would have to differ, most often seen first.
    pub would_have_to_differ: Vec<String>,
}

/// Causes that are named as what would have to differ.
const DIFFER_MAX: usize = 4;

impl Printed {
    fn new(profile: Profile, printable: Printable, reason: String) -> Printed {
        Printed { profile: profile.name(), printable, reason, would_have_to_differ: Vec::new() }
    }

    /// The answer for a line of a modelled engine, which the behaviours in `causes` lead to.
    pub fn line(profile: Profile, line: Line, causes: &[Cause]) -> Printed {
        let name = profile.name();
        let planner = profile.behaviours().planner;
        let wanted = match line {
            Line::Source { .. } | Line::Shortage { .. } => Some(PlannerName::CHECKED),
            Line::Index { .. } => Some(PlannerName::INDEXED),
            Line::Misaligned { .. } | Line::Peers(_) => None,
        };
        if let Some(wanted) = wanted.filter(|&wanted| wanted != planner) {
            let (planner, wanted) = (planner.name(), wanted.name());
            let shows = match line {
                Line::Index { .. } => "the checked planner's own texts, such as refused.shortfall",
                _ => "numpy's text, \"index ... is out of bounds for axis 0\" (refused.index)",
            };
            let reason = format!(
                "{name} does not have this text: its planner is \"{planner}\", and the text is the \
                 \"{wanted}\" one's. The same fault shows there as {shows}."
            );
            let releases: Vec<&str> = Profile::all()
                .iter()
                .filter(|profile| profile.behaviours().planner.name() == wanted)
                .map(|profile| profile.name())
                .collect();
            let differ = format!("planner = \"{wanted}\", as in {}", releases.join(", "));
            return Printed {
                would_have_to_differ: vec![differ],
                ..Printed::new(profile, Printable::Cannot, reason)
            };
        }
        match line {
            Line::Misaligned { .. } if profile.forbids_striped_decode_cache() => Printed {
                would_have_to_differ: vec![
                    "a decode cache together with more than one rank, which it refuses at start"
                        .to_owned(),
                ],
                ..Printed::new(
                    profile,
                    Printable::Cannot,
                    format!(
                        "{name} has this text and never comes to it: with more than one rank its \
                         decode cache is off, so that S = 0."
                    ),
                )
            },
            Line::Peers(_) => Printed::new(
                profile,
                Printable::Can,
                format!(
                    "{name} can print it: as modelled it refuses such peers. What differs is how the \
                     two servers were started."
                ),
            ),
            _ => by_behaviours(profile, causes),
        }
    }

    /// The answer for another text that says `says`.
    pub fn foreign(profile: Profile, text: &ForeignText, says: &Says, causes: &[Cause]) -> Printed {
        let name = profile.name();
        let engine = profile.engine().name;
        let unknown = |reason: String| Printed {
            would_have_to_differ: differing(profile, causes),
            ..Printed::new(profile, Printable::Unknown, reason)
        };
        if says.is_of_packing() {
            return packing(profile);
        }
        match text.writer.engine {
            None => unknown(format!(
                "The text is a library's ({}), and any release can print it; that {name} does is not \
                 among what is modelled.",
                text.writer.part
            )),
            Some(writer) if writer == engine => unknown(format!(
                "The text is {writer}'s ({}), from a part that is not modelled, so that whether {name} \
                 has it is not known.",
                text.writer.part
            )),
            Some(writer) => Printed::new(
                profile,
                Printable::Cannot,
                format!("The text is {writer}'s, and {name} is a release of {engine}."),
            ),
        }
    }
}

fn packing(profile: Profile) -> Printed {
    let name = profile.name();
    let behaviours = profile.behaviours();
    match (behaviours.packing, behaviours.send_split) {
        (Packing::None, _) => Printed {
            would_have_to_differ: vec!["packing, which it does not have".to_owned()],
            ..Printed::new(
                profile,
                Printable::Cannot,
                format!("{name} never packs: every token is a descriptor of its own in any case."),
            )
        },
        (_, SendSplit::Yes | SendSplit::Crossings) => Printed {
            would_have_to_differ: vec![
                "send_split = \"no\"".to_owned(),
                "a pack buffer smaller than what the sender splits by".to_owned(),
            ],
            ..Printed::new(
                profile,
                Printable::IfSomethingDiffers,
                format!(
                    "{name} packs, and splits a send that is larger than the buffer: as modelled none \
                     falls back."
                ),
            )
        },
        (Packing::RegionChecked | Packing::BufferChecked, SendSplit::No) => Printed::new(
            profile,
            Printable::Can,
            format!(
                "{name} packs and does not split: a send that is larger than the buffer falls back."
            ),
        ),
    }
}

/// By the variants that the release has itself.
fn by_behaviours(profile: Profile, causes: &[Cause]) -> Printed {
    let name = profile.name();
    let behaviours = profile.behaviours();
    let own: Vec<String> = causes
        .iter()
        .filter(|cause| cause.exact > 0)
        .filter(|cause| behaviours.unusual().contains(&(cause.switch, cause.variant)))
        .map(|cause| format!("{} = \"{}\"", cause.switch, cause.variant))
        .collect();
    if own.is_empty() {
        let reason = format!(
            "{name} has this text and is sound as modelled in this: nothing that it does by itself leads \
             to the line, in scenarios that are sound without it."
        );
        return Printed {
            would_have_to_differ: differing(profile, causes),
            ..Printed::new(profile, Printable::IfSomethingDiffers, reason)
        };
    }
    let reason = format!("{name} can print it by what it does itself: {}.", own.join(", "));
    Printed::new(profile, Printable::Can, reason)
}

/// The causes as differences from what the release has.
fn differing(profile: Profile, causes: &[Cause]) -> Vec<String> {
    let behaviours = profile.behaviours();
    let unusual = behaviours.unusual();
    let has = |switch: &str| {
        let own = unusual.iter().find(|(known, _)| *known == switch).map(|&(_, variant)| variant);
        let known = SWITCHES.iter().find(|known| known.name == switch);
        own.or(known.map(|known| known.variants[0].name)).unwrap_or_default().to_owned()
    };
    let others = causes.iter().filter(|cause| has(cause.switch) != cause.variant);
    let other = |cause: &Cause| {
        format!("{} = \"{}\" instead of \"{}\"", cause.switch, cause.variant, has(cause.switch))
    };
    others.take(DIFFER_MAX).map(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::causes::of_line;
    use crate::explain::known::KnownSizes;
    use crate::explain::log::{Known, Recognised};

    fn printed(profile: &str, line: &str) -> Printed {
        let profile = Profile::named(profile).unwrap();
        let known = KnownSizes::default();
        let recognised = Recognised::of(line).unwrap();
        match recognised.known {
            Known::Engine(_) => {
                let line = recognised.line().unwrap().unwrap();
                Printed::line(profile, line, &of_line(line.code(), &line.shape(&known)))
            }
            Known::Foreign(text) => {
                let says = text.says(&recognised.found().unwrap(), &known);
                Printed::foreign(profile, text, &says, &says.causes(&known))
            }
        }
    }

    #[test]
    fn a_release_prints_what_its_planner_and_its_checks_have() {
        use Printable::{Can, Cannot, IfSomethingDiffers, Unknown};
        let shortage = "Insufficient destination DCP pages: required=5, provided=4, \
                        src_page_offset=2, dcp_rank=3";
        let index = "index 4 is out of bounds for axis 0 with size 4";
        let misaligned = "PD DCP transfer requires decode_prefix_len to align to the virtual DCP page \
                          size (256), got 320";
        let pack = "PD DCP pack buffer too small for byte range [8, 16) (have 12); falling back to \
                    per-token RDMA";
        let [old, middle, new] = ["sglang-0.5.17", "sglang-0.5.20", "sglang-0.5.23"];
        for (profile, line, printable) in [
            (old, shortage, IfSomethingDiffers),
            (new, shortage, Cannot),
            (old, index, Cannot),
            (new, index, IfSomethingDiffers),
            (old, misaligned, Cannot),
            (middle, misaligned, IfSomethingDiffers),
            (new, "Unsupported PD DCP topology: 2 -> 4", Can),
            (old, pack, Cannot),
            (middle, pack, Can),
            (new, pack, IfSomethingDiffers),
            (new, "DCP sizes must divide one another: local=4, remote=3 (engine 1).", Cannot),
            (new, "IndexError: list index out of range", Unknown),
            (new, "token_to_kv_pool_allocator memory leak detected!", Unknown),
        ] {
            let printed = printed(profile, line);
            assert_eq!(printed.printable, printable, "{profile}: {line}: {printed:?}");
            let differ = &printed.would_have_to_differ;
            assert!(printable != IfSomethingDiffers || !differ.is_empty(), "{profile}: {line}");
        }
        let differ = printed(new, index).would_have_to_differ;
        assert!(differ.iter().all(|one| one.contains(" instead of ")), "{differ:?}");
    }
}
