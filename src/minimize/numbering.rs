//! One numbering for scenarios that differ in nothing but the numbers of contents, namespaces and
//! priorities.

use std::collections::{BTreeMap, BTreeSet};

use crate::prompt::ContentId;
use crate::scenario::{Scenario, WorkloadConfig};
use crate::units::Tokens;

/// Numbers contents 1, 2, 3 and namespaces 0, 1, 2 in order of appearance, priorities 0, 1, 2 in
/// their own order, and lets contents begin at offset 0. An output that no other text names keeps
/// no name. None of this changes what requests share.
pub(super) fn number_anew(scenario: &mut Scenario) {
    let WorkloadConfig::Requests(list) = &mut scenario.workload else { return };
    let mut uses: BTreeMap<ContentId, Uses> = BTreeMap::new();
    for spec in list.iter() {
        for run in &spec.prompt {
            let uses = uses.entry(run.content).or_default();
            uses.count += 1;
            uses.first_offset = Some(uses.first_offset.map_or(run.offset, |at| at.min(run.offset)));
        }
        if let Some(output) = spec.output_content {
            // An output is a content from its beginning on.
            let uses = uses.entry(output).or_default();
            uses.count += 1;
            uses.first_offset = Some(Tokens(0));
        }
    }
    let priorities: BTreeSet<i64> = list.iter().map(|spec| spec.priority).collect();
    let priorities: BTreeMap<i64, i64> = priorities.into_iter().zip(0..).collect();
    let mut namespaces = BTreeMap::new();
    let mut contents = BTreeMap::new();
    let mut number = |content: ContentId| {
        let next = ContentId(contents.len() as u64 + 1);
        *contents.entry(content).or_insert(next)
    };
    for spec in list {
        let next = u32::try_from(namespaces.len()).expect("limits keep requests within u32");
        spec.namespace = *namespaces.entry(spec.namespace).or_insert(next);
        spec.priority = priorities[&spec.priority];
        for run in &mut spec.prompt {
            let first = uses[&run.content].first_offset.unwrap_or_default();
            run.offset -= first;
            run.content = number(run.content);
        }
        spec.output_content = spec.output_content.filter(|output| uses[output].count > 1);
        spec.output_content = spec.output_content.map(&mut number);
    }
}

/// Where a content is named.
#[derive(Default)]
struct Uses {
    count: u64,
    first_offset: Option<Tokens>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::tests::{requests_mut, scenario};
    use super::*;

    #[test]
    fn new_numbers_change_nothing_of_a_run() {
        let mut before =
            scenario("decode_match_unit = \"token\"\ndecode_prefix_cut = \"padded_up\"");
        for spec in requests_mut(&mut before) {
            spec.namespace = 7;
            spec.priority = -3;
            for run in &mut spec.prompt {
                run.offset.0 += 5 * u32::try_from(run.content.0).unwrap();
                run.content.0 = 90 - run.content.0;
            }
        }
        let mut after = before.clone();
        number_anew(&mut after);
        assert_ne!(after, before);
        assert_eq!(requests_mut(&mut after)[0].prompt[0].content, ContentId(1));
        assert_eq!(requests_mut(&mut after)[0].namespace, 0);
        let run = |scenario: &Scenario| crate::world::run(scenario, Path::new("")).unwrap();
        assert_eq!(run(&after).digest, run(&before).digest);
        let mut again = after.clone();
        number_anew(&mut again);
        assert_eq!(again, after);
    }

    #[test]
    fn an_output_keeps_its_name_only_where_another_text_names_it() {
        let mut case = scenario("");
        let named = requests_mut(&mut case)[1].prompt[0].content;
        requests_mut(&mut case)[0].output_content = Some(named);
        requests_mut(&mut case)[1].output_content = Some(ContentId(77));
        number_anew(&mut case);
        let list = requests_mut(&mut case);
        assert_eq!(list[0].output_content, Some(list[1].prompt[0].content));
        assert_eq!(list[1].output_content, None);
    }
}
