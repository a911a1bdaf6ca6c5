//! What makes one scenario smaller than another.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::behaviour::SWITCHES;
use crate::engine::Profile;
use crate::prompt::ContentId;
use crate::scenario::{
    DecodeConfig, Fault, LayoutConfig, LinkConfig, Moment, PairingConfig, PrefillConfig,
    RequestSpec, Scenario, WorkloadConfig, file,
};

/// The size of a scenario whose requests are written out. Sizes compare field by field, in the
/// order of declaration; every field is a whole number, so that no chain of ever smaller ones is
/// endless. Names do not count: neither the title nor the numbers of contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// Requests.
    pub requests: u64,
    /// Tokens of all prompts and outputs.
    pub tokens: u64,
    /// Switches that are not at their default, with those spelled out and any profile.
    pub switches: u64,
    /// Faults.
    pub faults: u64,
    /// Fields that differ from the simplest scenario's: configuration but for the sizes of pools,
    /// namespaces, priorities, offsets, named outputs, the seed.
    pub fields: u64,
    /// Runs of all prompts.
    pub runs: u64,
    /// Runs whose content has been named before.
    pub repeats: u64,
    /// Decimal digits of all times, trailing zeros left out: 20,000 has one.
    pub figures: u64,
    /// The sum of all numbers that are not the simplest scenario's.
    pub magnitude: u128,
    /// Compared last, where all else is equal: decode ranks, and a pack buffer of unusual size.
    pub last: u64,
}

/// The scenario that all fields are compared with. A pool of one page and no reserve are no
/// defaults of the format, but nothing is smaller.
const SIMPLEST: &str = "version = 1\ntitle = \"\"\nlayout = { page_size = 1, ranks = 1 }\n\
    prefill = { pages = 1 }\ndecode = { pages = 1, reserved_tokens = 0 }\nworkload.requests = []\n";

static SIMPLEST_FIELDS: LazyLock<Table> = LazyLock::new(|| {
    let simplest = file::parse(SIMPLEST, "the simplest scenario").expect("it has a test");
    Configuration::of(&simplest).into_table()
});

/// The sections of a scenario that hold single fields.
#[derive(Serialize, Deserialize)]
pub(super) struct Configuration {
    layout: LayoutConfig,
    prefill: PrefillConfig,
    decode: DecodeConfig,
    link: LinkConfig,
    pairing: PairingConfig,
}

impl Configuration {
    pub(super) fn of(scenario: &Scenario) -> Configuration {
        Configuration {
            layout: scenario.layout,
            prefill: scenario.prefill.clone(),
            decode: scenario.decode.clone(),
            link: scenario.link,
            pairing: scenario.pairing.clone(),
        }
    }

    pub(super) fn into_table(self) -> Table {
        Table::try_from(self).expect("every field of a scenario has a TOML form")
    }

    /// `scenario` with its sections read from `table`, or `None` where a value has another type.
    pub(super) fn put(table: Table, scenario: &Scenario) -> Option<Scenario> {
        let Configuration { layout, prefill, decode, link, pairing } = table.try_into().ok()?;
        Some(Scenario { layout, prefill, decode, link, pairing, ..scenario.clone() })
    }
}

/// A field that differs from the simplest scenario's.
#[derive(Clone, Debug)]
pub(super) struct Unusual {
    pub(super) section: String,
    pub(super) key: String,
    pub(super) value: Value,
    /// `None` where the simplest scenario leaves it out.
    pub(super) simplest: Option<Value>,
}

impl Unusual {
    /// Whether the field is a time.
    pub(super) fn is_time(&self) -> bool {
        self.key.ends_with("_ticks")
    }
}

/// The fields of `table`, as [`Configuration::into_table`] makes it, that are not the simplest.
pub(super) fn unusual_fields(table: &Table) -> Vec<Unusual> {
    let mut list = Vec::new();
    for (section, fields) in
        table.iter().filter_map(|(name, value)| Some((name, value.as_table()?)))
    {
        for (key, value) in fields {
            let simplest = SIMPLEST_FIELDS[section].get(key).cloned();
            if simplest.as_ref() != Some(value) {
                let (section, key, value) = (section.clone(), key.clone(), value.clone());
                list.push(Unusual { section, key, value, simplest });
            }
        }
    }
    list
}

/// The requests of a scenario that the minimiser has written out.
pub(super) fn requests_of(scenario: &Scenario) -> &Vec<RequestSpec> {
    match &scenario.workload {
        WorkloadConfig::Requests(list) => list,
        WorkloadConfig::Synthetic(_) | WorkloadConfig::Trace(_) => {
            panic!("the minimiser writes requests out before all else")
        }
    }
}

impl Size {
    /// The size of `scenario`, whose requests must be written out.
    pub fn of(scenario: &Scenario) -> Size {
        let requests = requests_of(scenario);
        let mut size = Size {
            requests: requests.len() as u64,
            tokens: 0,
            switches: switches(scenario),
            faults: scenario.faults.len() as u64,
            fields: 0,
            runs: 0,
            repeats: 0,
            figures: 0,
            magnitude: 0,
            last: u64::from(scenario.layout.ranks),
        };
        size.number(u128::from(scenario.seed));
        for field in unusual_fields(&Configuration::of(scenario).into_table()) {
            size.fields += u64::from(field.key != "pages");
            let magnitude = magnitude(&field.value);
            size.magnitude += magnitude;
            size.last += u64::from(field.key == "pack_tokens");
            if field.is_time() {
                size.figures += figures(magnitude);
            }
        }
        let mut named = BTreeSet::new();
        for request in requests {
            size.request(request, &mut named);
        }
        for fault in &scenario.faults {
            match fault {
                Fault::Abort { request: _, after, when } => {
                    size.time(after.0);
                    size.magnitude += u128::from(place_of(*when));
                }
                Fault::Lose { request: _, message } | Fault::Double { request: _, message } => {
                    size.magnitude += u128::from(*message);
                }
                Fault::Flush { side: _, server, at } => {
                    size.magnitude += u128::from(*server);
                    size.time(at.0);
                }
            }
        }
        size
    }

    fn request(&mut self, spec: &RequestSpec, named: &mut BTreeSet<ContentId>) {
        self.time(spec.at.0);
        self.tokens += u64::from(spec.output.0);
        self.runs += spec.prompt.len() as u64;
        for run in &spec.prompt {
            self.tokens += u64::from(run.len.0);
            self.repeats += u64::from(!named.insert(run.content));
            self.number(u128::from(run.offset.0));
        }
        self.fields += u64::from(spec.output_content.is_some());
        self.fields += u64::from(spec.max_new_tokens.is_some());
        self.number(u128::from(spec.max_new_tokens.map_or(0, |most| most.0)));
        named.extend(spec.output_content);
        self.number(u128::from(spec.namespace));
        self.number(u128::from(spec.priority.unsigned_abs()));
    }

    /// Counts a number whose simplest value is 0.
    fn number(&mut self, number: u128) {
        self.fields += u64::from(number != 0);
        self.magnitude += number;
    }

    fn time(&mut self, ticks: u64) {
        self.figures += figures(u128::from(ticks));
        self.magnitude += u128::from(ticks);
    }
}

/// Switches that are unusual, and those that are spelled out; a profile counts for more than any
/// number of switches spelled out in its place.
fn switches(scenario: &Scenario) -> u64 {
    let profile = if scenario.profile == Profile::SOUND { 0 } else { SWITCHES.len() + 1 };
    let unusual = scenario.behaviours().unusual().len();
    let spelled = Table::try_from(scenario.behaviour).expect("switches have a TOML form");
    (profile + unusual + spelled.len()) as u64
}

fn magnitude(value: &Value) -> u128 {
    match value {
        Value::Integer(number) => u128::from(number.unsigned_abs()),
        Value::Array(list) => list.iter().map(magnitude).sum(),
        Value::String(_) | Value::Boolean(_) | Value::Float(_) => 0,
        Value::Datetime(_) | Value::Table(_) => 0,
    }
}

/// Decimal digits of `number` without its trailing zeros; 0 has none.
pub(super) fn figures(mut number: u128) -> u64 {
    while number != 0 && number.is_multiple_of(10) {
        number /= 10;
    }
    number.checked_ilog10().map_or(0, |digits| u64::from(digits) + 1)
}

/// Earlier moments of a life are simpler than later ones.
fn place_of(moment: Moment) -> u32 {
    moment as u32
}

#[cfg(test)]
mod tests {
    use super::super::tests::scenario;
    use super::*;

    #[test]
    fn the_simplest_scenario_has_no_unusual_field() {
        let simplest = file::parse(SIMPLEST, "simplest").unwrap();
        assert!(unusual_fields(&Configuration::of(&simplest).into_table()).is_empty());
        let size = Size::of(&simplest);
        assert_eq!((size.fields, size.switches, size.figures, size.magnitude), (0, 0, 0, 0));
    }

    #[test]
    fn figures_are_digits_without_trailing_zeros() {
        let cases = [(0, 0), (1, 1), (10, 1), (20_000, 1), (120, 2), (101, 3), (99_999, 5)];
        for (number, expected) in cases {
            assert_eq!(figures(number), expected, "{number}");
        }
    }

    #[test]
    fn fewer_requests_outweigh_tokens_and_tokens_outweigh_the_rest() {
        let base = scenario("");
        let size = Size::of(&base);
        let mut fewer = base.clone();
        let WorkloadConfig::Requests(list) = &mut fewer.workload else { panic!() };
        list.pop();
        list[0].prompt[0].len.0 += 1_000;
        assert!(Size::of(&fewer) < size);
        let mut shorter = base.clone();
        let WorkloadConfig::Requests(list) = &mut shorter.workload else { panic!() };
        list[0].prompt[0].len.0 -= 1;
        shorter.decode.pages += 1_000;
        shorter.prefill.step_ticks = 1;
        assert!(Size::of(&shorter) < size);
        assert!(Size::of(&fewer) < Size::of(&shorter));
    }

    #[test]
    fn titles_and_numbers_of_contents_do_not_count() {
        let base = scenario("");
        let mut other = base.clone();
        other.title = "another".to_owned();
        let WorkloadConfig::Requests(list) = &mut other.workload else { panic!() };
        for run in list.iter_mut().flat_map(|spec| &mut spec.prompt) {
            run.content.0 += 1_000;
        }
        assert_eq!(Size::of(&other), Size::of(&base));
    }
}
