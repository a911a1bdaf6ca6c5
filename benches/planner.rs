//! What a plan costs: one rank's share at P = 64, N = 8, of 8,192 and of 131,072 tokens.

use divan::{Bencher, black_box};
use kvseam::engine::sglang::Checked;
use kvseam::layout::Layout;
use kvseam::planner::descriptors::{DescriptorCount, group};
use kvseam::planner::{Piece, PlanInput, Planner};
use kvseam::units::{PageId, Pages, Rank, Row, Tokens};

fn main() {
    divan::main();
}

const PAGE: u32 = 64;
const RANKS: u32 = 8;
const TOKENS: [u32; 2] = [8_192, 131_072];

/// The order of a page list: as a fresh pool hands them out, or after much use.
#[derive(Clone, Copy, Debug)]
enum Order {
    Consecutive,
    Shuffled,
}

const CASES: [(u32, Order); 4] = [
    (TOKENS[0], Order::Consecutive),
    (TOKENS[0], Order::Shuffled),
    (TOKENS[1], Order::Consecutive),
    (TOKENS[1], Order::Shuffled),
];

/// `count` pages from 1 on. The shuffle walks them in steps coprime to their number, which no two
/// neighbours survive.
fn pages(count: u32, order: Order) -> Vec<PageId> {
    match order {
        Order::Consecutive => (1..=count).map(PageId).collect(),
        Order::Shuffled => (0..count).map(|at| PageId(at * 7 % count + 1)).collect(),
    }
}

/// Source and destination pages of a whole piece.
fn lists(tokens: u32, order: Order) -> (Vec<PageId>, Vec<PageId>) {
    (pages(tokens / PAGE, order), pages(tokens / PAGE / RANKS, order))
}

fn input<'a>(src: &'a [PageId], dst: &'a [PageId]) -> PlanInput<'a> {
    let layout = Layout::striped(PAGE, RANKS).expect("page size and ranks are small");
    let piece =
        Piece { src_page_offset: Pages(0), decode_prefix_len: Tokens(0), num_kv_tokens: None };
    PlanInput::new(layout, Rank(3), piece, src, dst).expect("the lists are valid")
}

#[divan::bench(args = CASES)]
fn validate(bencher: Bencher<'_, '_>, (tokens, order): (u32, Order)) {
    let (src, dst) = lists(tokens, order);
    bencher.bench(|| input(black_box(&src), black_box(&dst)));
}

#[divan::bench(args = CASES)]
fn plan_long(bencher: Bencher<'_, '_>, (tokens, order): (u32, Order)) {
    let (src, dst) = lists(tokens, order);
    let input = input(&src, &dst);
    bencher.bench(|| Checked.plan(black_box(&input)));
}

/// What the long form cannot do without: its two lists, written and nothing else. It refuses
/// nothing, and takes every page to be whole and to have `RANKS` as a divisor.
#[divan::bench(args = CASES)]
fn write_long(bencher: Bencher<'_, '_>, (tokens, order): (u32, Order)) {
    let (src, dst) = lists(tokens, order);
    bencher.bench(|| {
        let (page, ranks, rank) = black_box((PAGE, RANKS, 3));
        let count = (tokens / ranks) as usize;
        let (mut from, mut to) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for id in black_box(&src) {
            let first = id.0 * page + rank;
            from.extend((0..page / ranks).map(|at| Row(first + at * ranks)));
        }
        for id in black_box(&dst) {
            let first = id.0 * page;
            to.extend((0..page).map(|at| Row(first + at)));
        }
        (from, to)
    });
}

#[divan::bench(args = CASES)]
fn plan_compact(bencher: Bencher<'_, '_>, (tokens, order): (u32, Order)) {
    let (src, dst) = lists(tokens, order);
    let input = input(&src, &dst);
    bencher.bench(|| Checked.plan_runs(black_box(&input)));
}

#[divan::bench(args = CASES)]
fn check(bencher: Bencher<'_, '_>, (tokens, order): (u32, Order)) {
    let (src, dst) = lists(tokens, order);
    let input = input(&src, &dst);
    bencher.bench(|| Checked.check(black_box(&input)));
}

#[divan::bench(args = CASES)]
fn group_list(bencher: Bencher<'_, '_>, (tokens, order): (u32, Order)) {
    let (src, dst) = lists(tokens, order);
    let plan = Checked.plan(&input(&src, &dst)).expect("the lists hold the piece");
    bencher.bench(|| group(black_box(&plan.target)));
}

#[divan::bench(args = CASES)]
fn count_long(bencher: Bencher<'_, '_>, (tokens, order): (u32, Order)) {
    let (src, dst) = lists(tokens, order);
    let plan = Checked.plan(&input(&src, &dst)).expect("the lists hold the piece");
    bencher.bench(|| DescriptorCount::of_rows(black_box(&plan.target)));
}

#[divan::bench(args = CASES)]
fn count_compact(bencher: Bencher<'_, '_>, (tokens, order): (u32, Order)) {
    let (src, dst) = lists(tokens, order);
    let plan = Checked.plan_runs(&input(&src, &dst)).expect("the lists hold the piece");
    bencher.bench(|| DescriptorCount::of_runs(black_box(&plan)));
}
