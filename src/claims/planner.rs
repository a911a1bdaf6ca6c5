//! Planner: long form, compact form and constant-time check agree with a definition token by token,
//! for both revisions, errors included.

use super::sizes;
use crate::reference::planner::{Case, check};
use crate::scenario::generate::Choices;
use crate::units::PageId;

/// Pages of a list, at most.
const PAGES_MAX: u32 = 24;

/// Tries all ranks of a drawn call on both revisions.
pub fn plans_as_defined(choices: &mut impl Choices) {
    let case = draw(choices);
    check(&case);
    sizes::tell("tokens", case.count().max(0).unsigned_abs());
}

fn draw(choices: &mut impl Choices) -> Case {
    let page = *choices.pick(&[16, 4, 64, 32, 1, 2, 3]);
    let ranks = *choices.pick(&[2, 4, 1, 3, 8, 16]);
    let virtual_page = page * ranks;
    let src = pages(choices);
    let capacity = u32::try_from(src.len()).expect("the list is short") * page;
    let offset = choices.within(0..=6);
    let tokens = match choices.below(8) {
        0..=4 => i64::from(capacity.saturating_sub(choices.within(0..=page))),
        5 => i64::from(choices.within(0..=capacity)),
        6 => i64::from(capacity) + i64::from(choices.within(0..=page)),
        _ => -i64::from(choices.within(0..=9)),
    };
    let needed =
        (u64::from(offset * page) + tokens.unsigned_abs()).div_ceil(u64::from(virtual_page));
    let mut dst = pages(choices);
    if choices.chance(3, 4) {
        let spare = choices.below(2);
        dst = (1..=needed + spare).rev().map(|id| PageId(id as u32 * 2)).collect();
    }
    let prefix = virtual_page * choices.within(0..=5)
        + if choices.chance(1, 16) { choices.within(1..=virtual_page) } else { 0 };
    let rank = choices.within(0..=ranks - 1);
    Case { page, ranks, rank, offset, prefix, tokens: Some(tokens), src, dst }
}

/// A list of different pages, in no order. The lowest draw is the longest, so that calls stay large
/// when a fuzzer's bytes end.
fn pages(choices: &mut impl Choices) -> Vec<PageId> {
    let count = PAGES_MAX - choices.within(0..=PAGES_MAX);
    let (first, step) = (choices.within(0..=9), choices.within(1..=3));
    let mut list: Vec<PageId> = (0..count).map(|at| PageId(first + at * step)).collect();
    if choices.chance(1, 2) {
        list.reverse();
    }
    if let Some(last) = count.checked_sub(1).filter(|_| choices.chance(1, 2)) {
        list.swap(choices.within(0..=last) as usize, 0);
    }
    list
}
