//! Passes over the configuration: switches and single fields.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::search::Search;
use super::size::{Configuration, Unusual, unusual_fields};
use super::times;
use crate::behaviour::Overrides;
use crate::engine::Profile;
use crate::scenario::Scenario;

/// Spells a profile's switches out, then sets one switch after another to its default.
pub(super) fn switches_to_defaults(search: &mut Search) {
    let behaviours = search.best().behaviours();
    offer_switches(search, &behaviours.unusual());
    let mut index = 0;
    loop {
        let behaviours = search.best().behaviours();
        let mut left = behaviours.unusual();
        if index >= left.len() {
            return;
        }
        left.remove(index);
        if !offer_switches(search, &left) {
            index += 1;
        }
    }
}

/// Offers just these switches on top of the sound profile.
fn offer_switches(search: &mut Search, switches: &[(&str, &str)]) -> bool {
    let table: Table =
        switches.iter().map(|&(name, variant)| (name.to_owned(), variant.into())).collect();
    let behaviour: Overrides = table.try_into().expect("names of switches and their variants");
    search.offer(Scenario { profile: Profile::SOUND, behaviour, ..search.best().clone() })
}

/// Sets each unusual field to its simplest value, the seed included.
pub(super) fn to_simplest(search: &mut Search) {
    search.offer(Scenario { seed: 0, ..search.best().clone() });
    for field in fields(search) {
        offer_value(search, &field, field.simplest.clone());
    }
}

/// Makes the numbers that cannot be simplest smaller; times become round as well.
pub(super) fn shrink(search: &mut Search) {
    for seed in smaller(search.best().seed) {
        if search.offer(Scenario { seed, ..search.best().clone() }) {
            break;
        }
    }
    for field in fields(search) {
        let Value::Integer(number) = field.value else { continue };
        let number = number.unsigned_abs();
        let simpler = if field.is_time() { times::simpler(number) } else { smaller(number) };
        for value in simpler {
            let value = i64::try_from(value).expect("smaller than a TOML integer or as short");
            if offer_value(search, &field, Some(value.into())) {
                break;
            }
        }
    }
}

/// The scenario with all times of its configuration at their defaults.
pub(super) fn with_usual_times(scenario: &Scenario) -> Scenario {
    let mut table = Configuration::of(scenario).into_table();
    for field in unusual_fields(&table).into_iter().filter(Unusual::is_time) {
        let section = table[&field.section].as_table_mut().expect("a section is a table");
        section.extend(field.simplest.map(|value| (field.key, value)));
    }
    Configuration::put(table, scenario).expect("only values of the same type were put in")
}

fn fields(search: &Search) -> Vec<Unusual> {
    unusual_fields(&Configuration::of(search.best()).into_table())
}

/// Offers the best with one field set, or left out.
fn offer_value(search: &mut Search, field: &Unusual, value: Option<Value>) -> bool {
    let mut table = Configuration::of(search.best()).into_table();
    let section = table[&field.section].as_table_mut().expect("a section is a table");
    if field.key == "eviction" {
        // The number goes with one policy only.
        section.remove("tail_tokens");
    }
    match value {
        Some(value) => section.insert(field.key.clone(), value),
        None => section.remove(&field.key),
    };
    Configuration::put(table, search.best()).is_some_and(|candidate| search.offer(candidate))
}

/// Smaller numbers to try, in ascending order: 1 to 4, powers of two and their neighbours, then
/// ever shorter steps down from `number`.
pub(super) fn smaller(number: u64) -> Vec<u64> {
    let powers = (0..64).map(|bit| 1_u64 << bit).take_while(|&power| power <= number);
    let near = powers.flat_map(|power| [power - 1, power, power.saturating_add(1)]);
    let steps = (1..64).map(|bit| number >> bit).filter(|&step| step > 0);
    let down = steps.map(|step| number - step);
    near.chain(down).filter(|&value| value < number).collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_numbers_ascend_to_one_less() {
        assert!(smaller(0).is_empty());
        assert_eq!(smaller(1), [0]);
        assert_eq!(smaller(9), [0, 1, 2, 3, 4, 5, 7, 8]);
        for number in 1..2_000 {
            let list = smaller(number);
            assert!(list.is_sorted(), "{number}");
            assert_eq!(list.last(), Some(&(number - 1)));
        }
    }
}
