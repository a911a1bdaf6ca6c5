//! What a variant needs beside it to act: a fault, a variant of another switch, or both; and which
//! field forbids it where nothing helps.

use crate::behaviour::SWITCHES;
use crate::finding::Side;
use crate::prompt::ContentId;
use crate::scenario::generate::PlantedVariant;
use crate::scenario::validate::{LRU, NO_CACHE};
use crate::scenario::{Fault, Moment, RequestSpec, RunSpec, Scenario, WorkloadConfig};
use crate::units::{RequestId, Tick, Tokens};

/// Needs of one variant that are tried, at most.
const TRIED: usize = 4;
/// Of so many requests one is struck by a fault.
const STRUCK: u64 = 4;
/// A copy that is late is so by this part of the run.
const LATE_PART: u64 = 50;

/// What the scenario as it is has shown, by which needs are sized.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// When it ends.
    pub(super) ended: u64,
    /// Decode pages with which requests have to be retracted, if there is such a number.
    pub(super) tight: Option<u32>,
}

/// Something that goes wrong from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// Every fourth client gives up, counted from this moment.
    Aborts(Moment),
    /// The first message of every fourth request is lost.
    Losses,
    /// The first message of every fourth request is doubled.
    Doubles,
    /// The caches of both sides are flushed at half of the run.
    Flushes { ended: u64 },
    /// Every third copy lands so late.
    LateCopies { ticks: u64 },
    /// A decode pool of so few pages, and clients that give up, if a moment is named.
    Tight { pages: u32, aborts: Option<Moment> },
}

/// What is set beside a variant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Need {
    switch: Option<(&'static str, &'static str)>,
    trouble: Option<Trouble>,
}

impl Need {
    /// In words, as they would be set.
    pub fn labels(&self) -> Vec<String> {
        let switch = self.switch.map(|(switch, variant)| format!("{switch} = \"{variant}\""));
        let trouble = self.trouble.map(|trouble| match trouble {
            Trouble::Aborts(moment) => {
                format!("aborts from the moment \"{}\"", format!("{moment:?}").to_lowercase())
            }
            Trouble::Losses => "lost messages".to_owned(),
            Trouble::Doubles => "doubled messages".to_owned(),
            Trouble::Flushes { .. } => "flushes".to_owned(),
            Trouble::LateCopies { ticks } => {
                format!("link.delay_every = 3, link.delay_ticks = {ticks}")
            }
            Trouble::Tight { pages, aborts } => {
                let aborts = aborts.map(|when| format!(", aborts from \"{when:?}\""));
                let aborts = aborts.unwrap_or_default().to_lowercase();
                format!("decode.pages = {pages}, decode.reserved_tokens = 0{aborts}")
            }
        });
        switch.into_iter().chain(trouble).collect()
    }

    /// Sets it in `scenario`; `seed` says which requests are struck.
    pub(super) fn put(&self, scenario: &mut Scenario, seed: u64) {
        if let Some((switch, variant)) = self.switch {
            scenario.behaviour.set(switch, variant);
        }
        let struck = (0..requests(scenario)).filter(|at| at % STRUCK == seed % STRUCK);
        let struck = struck.map(|at| RequestId(u32::try_from(at).expect("limits keep it small")));
        match self.trouble {
            None => {}
            Some(Trouble::Aborts(when)) => {
                let after = Tick(seed * 7);
                scenario.faults.extend(struck.map(|request| Fault::Abort { request, after, when }));
            }
            Some(Trouble::Losses) => {
                scenario.faults.extend(struck.map(|request| Fault::Lose { request, message: 0 }));
            }
            Some(Trouble::Doubles) => {
                scenario.faults.extend(struck.map(|request| Fault::Double { request, message: 0 }));
            }
            Some(Trouble::Flushes { ended }) => {
                let at = Tick(ended / 2 + seed * 101);
                let flush = |side| Fault::Flush { side, server: 0, at };
                scenario.faults.extend([Side::Prefill, Side::Decode].map(flush));
            }
            Some(Trouble::LateCopies { ticks }) => {
                (scenario.link.delay_every, scenario.link.delay_ticks) = (3, ticks);
            }
            Some(Trouble::Tight { pages, aborts }) => {
                (scenario.decode.pages, scenario.decode.reserved_tokens) = (pages, 0);
                let abort = |when| {
                    let after = Tick(seed * 7);
                    struck.map(|request| Fault::Abort { request, after, when }).collect::<Vec<_>>()
                };
                scenario.faults.extend(aborts.map(abort).unwrap_or_default());
            }
        }
    }
}

/// Requests of a workload that can be struck: those that are known to come.
fn requests(scenario: &Scenario) -> u64 {
    match &scenario.workload {
        WorkloadConfig::Requests(list) => list.len() as u64,
        WorkloadConfig::Synthetic(config) => config.requests.into(),
        WorkloadConfig::Trace(config) => config.requests_max.unwrap_or(1).into(),
    }
}

fn troubles(sizes: Sizes) -> Vec<Trouble> {
    let moments = [
        Moment::Copying,
        Moment::Reserved,
        Moment::Prefilling,
        Moment::Running,
        Moment::Arrived,
        Moment::Retracted,
    ];
    let Sizes { ended, tight } = sizes;
    let late = Trouble::LateCopies { ticks: ended / LATE_PART };
    let others = [Trouble::Losses, Trouble::Doubles, late, Trouble::Flushes { ended }];
    let crowds = tight.into_iter().flat_map(|pages| {
        let aborts = [None, Some(Moment::Arrived), Some(Moment::Retracted)];
        aborts.map(|aborts| Trouble::Tight { pages, aborts })
    });
    moments.into_iter().map(Trouble::Aborts).chain(others).chain(crowds).collect()
}

/// The least that makes the lint object to `planted` in `scenario`: nothing, a fault, a switch, or
/// both; at most [`TRIED`] of that size. `None` if nothing does.
pub(super) fn of(
    scenario: &Scenario,
    planted: PlantedVariant,
    sizes: Sizes,
    is_valid: &impl Fn(&Scenario) -> bool,
) -> Option<Vec<Need>> {
    let acts = |need: &Need| {
        let mut with = scenario.clone();
        need.put(&mut with, 0);
        with.behaviour.set(planted.switch, planted.variant);
        planted.is_objected_to(&with) && is_valid(&with)
    };
    let troubles = troubles(sizes);
    let switches: Vec<(&str, &str)> = SWITCHES
        .iter()
        .filter(|switch| switch.name != planted.switch)
        .flat_map(|switch| switch.variants.iter().map(|variant| (switch.name, variant.name)))
        .collect();
    let of_trouble = |&trouble: &Trouble| Need { switch: None, trouble: Some(trouble) };
    let of_switch =
        |&switch: &(&'static str, &'static str)| Need { switch: Some(switch), trouble: None };
    let some = |needs: &mut dyn Iterator<Item = Need>| {
        let needs: Vec<Need> = needs.filter(|need| acts(need)).take(TRIED).collect();
        (!needs.is_empty()).then_some(needs)
    };
    some(&mut std::iter::once(Need::default()))
        .or_else(|| some(&mut troubles.iter().map(of_trouble)))
        .or_else(|| some(&mut switches.iter().map(of_switch)))
        .or_else(|| {
            some(&mut switches.iter().flat_map(|switch| {
                let trouble =
                    |&trouble: &Trouble| Need { trouble: Some(trouble), ..of_switch(switch) };
                troubles.iter().map(trouble).collect::<Vec<_>>()
            }))
        })
}

/// Every fault alone with which the lint objects to `planted`, for a variant that has not acted
/// with less.
pub(super) fn more(
    scenario: &Scenario,
    planted: PlantedVariant,
    sizes: Sizes,
    is_valid: &impl Fn(&Scenario) -> bool,
) -> Vec<Need> {
    let need = |trouble| Need { switch: None, trouble: Some(trouble) };
    let acts = |need: &Need| {
        let mut with = scenario.clone();
        need.put(&mut with, 0);
        with.behaviour.set(planted.switch, planted.variant);
        planted.is_objected_to(&with) && is_valid(&with)
    };
    troubles(sizes).into_iter().map(need).filter(acts).collect()
}

/// A field with another value.
type Change = (&'static str, fn(&mut Scenario) -> String);

/// Changes of one field, each of which can make a switch act.
const CHANGES: &[Change] = &[
    ("decode.cache", |scenario| was(&mut scenario.decode.cache, "radix")),
    ("prefill.cache", |scenario| was(&mut scenario.prefill.cache, "radix")),
    ("layout.ranks", |scenario| std::mem::replace(&mut scenario.layout.ranks, 2).to_string()),
    ("layout.page_size", |scenario| {
        std::mem::replace(&mut scenario.layout.page_size, 4).to_string()
    }),
    ("decode.draft", |scenario| std::mem::replace(&mut scenario.decode.draft, true).to_string()),
    ("decode.leftover_rows", |scenario| {
        std::mem::replace(&mut scenario.decode.leftover_rows, 1).to_string()
    }),
    ("decode.reserved_tokens", |scenario| {
        let other = if scenario.decode.reserved_tokens == 0 { 64 } else { 0 };
        std::mem::replace(&mut scenario.decode.reserved_tokens, other).to_string()
    }),
    ("link.pack_tokens", |scenario| {
        std::mem::replace(&mut scenario.link.pack_tokens, scenario.layout.page_size).to_string()
    }),
    ("prefill.chunk_tokens", |scenario| {
        let page = scenario.layout.page_size;
        std::mem::replace(&mut scenario.prefill.chunk_tokens, page).to_string()
    }),
    ("decode.pages", |scenario| std::mem::replace(&mut scenario.decode.pages, 1).to_string()),
    ("prefill.pages", |scenario| std::mem::replace(&mut scenario.prefill.pages, 1).to_string()),
    ("prefill.admission", |scenario| was(&mut scenario.prefill.admission, "longest_prefix")),
    ("workload, whose requests are of one namespace", |scenario| {
        let requests = [0, 1].map(|namespace| RequestSpec {
            at: Tick(0),
            prompt: vec![RunSpec { content: ContentId(1), offset: Tokens(0), len: Tokens(1) }],
            output: Tokens(1),
            max_new_tokens: None,
            output_content: None,
            namespace,
            priority: 0,
        });
        scenario.faults.clear();
        scenario.workload = WorkloadConfig::Requests(requests.to_vec());
        String::new()
    }),
];

fn was(field: &mut String, value: &str) -> String {
    format!("\"{}\"", std::mem::replace(field, value.to_owned()))
}

/// What keeps `planted` from acting: the field whose change alone would let it.
pub(super) fn forbidden(
    scenario: &Scenario,
    planted: PlantedVariant,
    sizes: Sizes,
    is_valid: &impl Fn(&Scenario) -> bool,
) -> String {
    for (field, change) in CHANGES {
        let mut changed = scenario.clone();
        let value = change(&mut changed);
        if changed.prefill.cache != NO_CACHE {
            changed.prefill.eviction = LRU.to_owned();
        }
        let others = of(&changed, planted, sizes, is_valid);
        if others.is_some() {
            return match value.as_str() {
                "" => (*field).to_owned(),
                value => format!("{field} = {value}"),
            };
        }
    }
    "this kind of workload, or two fields at once".to_owned()
}
