use std::collections::BTreeSet;

use super::*;
use crate::scenario::file;

fn audited(path: &str) -> Audit {
    let scenario = file::load(Path::new(path)).unwrap();
    Audit::of(&scenario, Path::new(""), 1).unwrap()
}

fn row<'a>(audit: &'a Audit, switch: &str, variant: &str) -> &'a Row {
    let mut rows = audit.rows.iter();
    rows.find(|row| row.switch == switch && row.variant == variant).unwrap()
}

#[test]
fn a_prefix_cut_at_the_physical_page_shows_the_planners_line_and_one_padded_up_nothing() {
    let audit = audited("sims/plans/demo-scenario.toml");
    assert!(audit.as_it_is.is_empty());
    let cut = row(&audit, "decode_prefix_cut", "physical_page");
    assert_eq!(cut.answer, Answer::Loud, "{cut:?}");
    assert!(cut.line.as_ref().unwrap().contains("decode_prefix_len to align"), "{cut:?}");
    assert!(cut.beside.iter().any(|need| need.starts_with("decode_match_unit")), "{cut:?}");
    let padded = row(&audit, "decode_prefix_cut", "padded_up");
    assert_eq!((padded.answer, &padded.line), (Answer::Silent, &None), "{padded:?}");
    assert!(padded.codes["placed.missing"].found > 0);
}

#[test]
fn what_cannot_act_names_the_field_that_forbids_it() {
    let audit = audited("sims/scenarios/sound-baseline.toml");
    for row in audit.rows.iter().filter(|row| row.answer == Answer::Cannot) {
        assert!(!row.why.is_empty() && row.runs == 0, "{row:?}");
    }
    let draft = row(&audit, "draft_rows", "by_target_list");
    assert_eq!((draft.answer, &*draft.why), (Answer::Cannot, "decode.draft = false"));
}

#[test]
fn every_variant_but_those_it_has_has_a_row() {
    let audit = audited("sims/scenarios/sound-baseline.toml");
    let rows: BTreeSet<_> = audit.rows.iter().map(|row| (row.switch, row.variant)).collect();
    let all: usize = SWITCHES.iter().map(|switch| switch.variants.len() - 1).sum();
    assert_eq!(rows.len(), all);
    assert_eq!(audit.rows.len(), all);
    assert!(audit.rows.is_sorted_by_key(|row| row.answer));
}
