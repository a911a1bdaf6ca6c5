//! A pass over page size and ranks, with all lengths in proportion.

use std::collections::BTreeSet;

use super::fields::smaller;
use super::search::Search;
use crate::scenario::{LayoutConfig, RequestSpec, Scenario, WorkloadConfig};
use crate::units::Tokens;

/// Offers smaller virtual pages, smallest first: with lengths scaled down, and as they are.
pub(super) fn shrink(search: &mut Search) {
    for layout in layouts(search.best().layout) {
        let candidates = [Rounding::Up, Rounding::Down]
            .map(|rounding| scaled(search.best(), layout, rounding))
            .into_iter()
            .chain([Scenario { layout, ..search.best().clone() }]);
        for candidate in candidates.collect::<Vec<_>>() {
            if search.offer(candidate) {
                return;
            }
        }
    }
}

/// Layouts with no more ranks and no larger page, by virtual page, then by ranks.
fn layouts(from: LayoutConfig) -> Vec<LayoutConfig> {
    let choices = |number: u32| {
        smaller(u64::from(number)).into_iter().chain([u64::from(number)]).filter_map(narrow)
    };
    let mut list = BTreeSet::new();
    for ranks in choices(from.ranks) {
        list.extend(choices(from.page_size).map(|page_size| (page_size * ranks, ranks, page_size)));
    }
    list.into_iter()
        .map(|(_, ranks, page_size)| LayoutConfig { page_size, ranks })
        .filter(|&layout| layout != from)
        .collect()
}

fn narrow(number: u64) -> Option<u32> {
    u32::try_from(number).ok().filter(|&number| number > 0)
}

#[derive(Clone, Copy)]
enum Rounding {
    Up,
    Down,
}

/// The scenario in another layout, parts of pages rounded up, if it is no larger in either way.
pub(super) fn scaled_up(scenario: &Scenario, layout: LayoutConfig) -> Option<Scenario> {
    let from = scenario.layout;
    let is_no_larger = layout.page_size <= from.page_size && layout.ranks <= from.ranks;
    is_no_larger.then(|| scaled(scenario, layout, Rounding::Up))
}

/// The scenario in another layout, with the same number of whole pages everywhere.
fn scaled(scenario: &Scenario, layout: LayoutConfig, rounding: Rounding) -> Scenario {
    let mut scaled = Scenario { layout, ..scenario.clone() };
    let (page, new_page) = (scenario.layout.page_size, layout.page_size);
    let (virtual_page, new_virtual) = (page * scenario.layout.ranks, new_page * layout.ranks);
    if let WorkloadConfig::Requests(list) = &mut scaled.workload {
        list.iter_mut().for_each(|spec| request(spec, virtual_page, new_virtual, rounding));
    }
    let pages = |tokens: u32| scale(tokens, page, new_page, rounding);
    scaled.prefill.chunk_tokens = pages(scenario.prefill.chunk_tokens);
    scaled.link.pack_tokens = pages(scenario.link.pack_tokens);
    let reserved = scenario.decode.reserved_tokens;
    scaled.decode.reserved_tokens = scale(reserved, virtual_page, new_virtual, rounding);
    scaled
}

/// Scales where runs end rather than how long they are, so that what was on a page's boundary stays
/// on one, and what was inside a page stays inside.
fn request(spec: &mut RequestSpec, page: u32, new_page: u32, rounding: Rounding) {
    let (mut end, mut new_end) = (0, 0);
    let mut next = |len: Tokens| {
        end += len.0;
        let start = new_end;
        new_end = scale(end, page, new_page, rounding).max(start + 1);
        Tokens(new_end - start)
    };
    for run in &mut spec.prompt {
        run.len = next(run.len);
        run.offset = Tokens(scale(run.offset.0, page, new_page, rounding));
    }
    spec.output = next(spec.output);
    let most = |most: Tokens| Tokens(scale(most.0, page, new_page, rounding)).max(spec.output);
    spec.max_new_tokens = spec.max_new_tokens.map(most);
}

/// `tokens` in pages of `new_page` where they were in pages of `page`: as many whole pages, and a
/// part of a page in proportion, at least one token and less than a page if that is possible.
fn scale(tokens: u32, page: u32, new_page: u32, rounding: Rounding) -> u32 {
    let (whole, part) = (u64::from(tokens / page), u64::from(tokens % page));
    let scaled = match rounding {
        Rounding::Up => (part * u64::from(new_page)).div_ceil(u64::from(page)),
        Rounding::Down => part * u64::from(new_page) / u64::from(page),
    };
    let inside = if part == 0 { 0 } else { scaled.min(u64::from(new_page) - 1).max(1) };
    let tokens = whole * u64::from(new_page) + inside;
    u32::try_from(tokens).expect("a smaller page makes lengths no longer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_lengths_keep_whole_pages_and_stay_inside_parts() {
        for (tokens, up, down) in
            [(0, 0, 0), (64, 4, 4), (65, 5, 5), (127, 7, 7), (96, 6, 6), (100, 7, 6), (1, 1, 1)]
        {
            assert_eq!(scale(tokens, 64, 4, Rounding::Up), up, "{tokens}");
            assert_eq!(scale(tokens, 64, 4, Rounding::Down), down, "{tokens}");
        }
        // A page of one token has no inside.
        assert_eq!(scale(100, 64, 1, Rounding::Down), 2);
    }

    #[test]
    fn layouts_get_smaller_first_and_never_grow() {
        let from = LayoutConfig { page_size: 16, ranks: 4 };
        let list = layouts(from);
        assert_eq!(list[0], LayoutConfig { page_size: 1, ranks: 1 });
        assert!(list.contains(&LayoutConfig { page_size: 16, ranks: 3 }));
        assert!(!list.contains(&from));
        assert!(list.iter().all(|layout| layout.page_size <= 16 && layout.ranks <= 4));
    }
}
