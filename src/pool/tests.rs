use proptest::prelude::*;

use super::order::{BestFit, Buddy, ByPlace, Lowest, Queue, Random, Sorted, Stack};
use super::*;
use crate::reference::allocator::{Case, Operation, Rule, check};
use crate::rng::Stream;

/// The orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Stack,
    Sorted,
    Queue,
    Lowest,
    BestFit,
    Buddy,
    Random,
}

const KINDS: [Kind; 7] = [
    Kind::Stack,
    Kind::Sorted,
    Kind::Queue,
    Kind::Lowest,
    Kind::BestFit,
    Kind::Buddy,
    Kind::Random,
];

impl Kind {
    fn order(self) -> Box<dyn FreeOrder> {
        match self {
            Kind::Stack => Box::new(Stack::default()),
            Kind::Sorted => Box::new(Sorted::default()),
            Kind::Queue => Box::new(Queue::default()),
            Kind::Lowest => Box::new(Lowest::default()),
            Kind::BestFit => Box::new(ByPlace::<BestFit>::default()),
            Kind::Buddy => Box::new(ByPlace::<Buddy>::default()),
            Kind::Random => Box::new(Random::new(Stream::new(7, "order"))),
        }
    }

    fn rule(self) -> Rule {
        match self {
            Kind::Stack => Rule::Stack,
            Kind::Sorted => Rule::Sorted,
            Kind::Queue => Rule::Queue,
            Kind::Lowest => Rule::Lowest,
            Kind::BestFit => Rule::BestFit,
            Kind::Buddy => Rule::Buddy,
            Kind::Random => Rule::Unsettled,
        }
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    proptest::sample::select(&KINDS[..])
}

fn raw(pages: &[PageId]) -> Vec<u32> {
    pages.iter().map(|page| page.0).collect()
}

fn operation() -> impl Strategy<Value = Operation> {
    let batch = proptest::collection::vec((0usize..8, 0u32..14), 1..4);
    prop_oneof![
        4 => batch.prop_map(Operation::Extend),
        4 => (0usize..8).prop_map(Operation::Decode),
        4 => (0u32..6).prop_map(Operation::Alloc),
        6 => (0usize..8, any::<bool>())
            .prop_map(|(holder, backwards)| Operation::Free { holder, backwards, keeps: false }),
        // Some give their pages back and keep them, so that these will be given back twice.
        1 => (0usize..8, any::<bool>())
            .prop_map(|(holder, backwards)| Operation::Free { holder, backwards, keeps: true }),
    ]
}

proptest! {
    #[test]
    fn a_pool_answers_every_call_as_plain_lists_do(
        kind in kind(),
        page in 1u32..6,
        pages in 1u32..24,
        operations in proptest::collection::vec(operation(), 0..40),
    ) {
        check(&Case { page, pages, rule: kind.rule(), operations }, kind.order());
    }
}

#[test]
fn a_best_fit_spares_the_large_run() {
    let mut pool = pool(4, 9, Kind::BestFit.order());
    pool.alloc(Pages(9)).unwrap();
    pool.free(&[1, 2, 3, 5, 7, 8].map(PageId));
    let taken: Vec<Vec<u32>> = [2, 1, 3].map(|n| raw(&pool.alloc(Pages(n)).unwrap())).into();
    assert_eq!(taken, [vec![7, 8], vec![5], vec![1, 2, 3]]);
}

#[test]
fn buddies_of_an_odd_count_leave_the_rest_of_their_block() {
    let mut pool = pool(4, 16, Kind::Buddy.order());
    let three = pool.alloc(Pages(3)).unwrap();
    assert_eq!(raw(&three), [1, 2, 3]);
    // The fourth page stays a block of its own, which serves the next page before a larger one
    // does.
    assert_eq!(raw(&pool.alloc(Pages(5)).unwrap()), [9, 10, 11, 12, 13]);
    assert_eq!(raw(&pool.alloc(Pages(1)).unwrap()), [4]);
    // No block of eight is left: four and then two of the next smaller one.
    pool.free(&three);
    assert_eq!(raw(&pool.alloc(Pages(6)).unwrap()), [5, 6, 7, 8, 1, 2]);
}

#[test]
fn a_draw_depends_on_nothing_but_its_stream() {
    let drawn = |seed| {
        let mut pool = pool(4, 40, Box::new(Random::new(Stream::new(seed, "order"))));
        raw(&pool.alloc(Pages(40)).unwrap())
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

fn pool(page: u32, pages: u32, order: Box<dyn FreeOrder>) -> Pool {
    Pool::new(PageSize::new(page).unwrap(), Pages(pages), order)
}

#[test]
fn the_servers_orders_are_those_of_the_recorded_allocators() {
    let after_free = |page: u32, need_sort: bool| {
        let page = PageSize::new(page).unwrap();
        let mut pool = Pool::new(page, Pages(4), order::of_server(page, need_sort));
        let taken = pool.alloc(Pages(3)).unwrap();
        pool.free(&[taken[2], taken[0]]);
        let first = pool.alloc(Pages(1)).unwrap();
        [raw(&first), raw(&pool.alloc(Pages(2)).unwrap())].concat()
    };
    let (stack, queue, sorted) = ([1, 3, 4], [4, 3, 1], [4, 1, 3]);
    assert_eq!(after_free(2, false), stack);
    assert_eq!(after_free(1, false), queue);
    assert_eq!(after_free(2, true), sorted);
    assert_eq!(after_free(1, true), sorted);
}

#[test]
fn a_merge_stays_after_a_refusal() {
    let mut pool = pool(4, 4, Box::new(Sorted::default()));
    let taken = pool.alloc(Pages(3)).unwrap();
    pool.free(&[taken[2], taken[0]]);
    assert_eq!(pool.alloc(Pages(4)), Err(Short { needed: Pages(4), ready: Pages(3) }));
    assert_eq!(raw(&pool.free_pages().collect::<Vec<_>>()), [1, 3, 4]);
}

#[test]
fn an_extend_merges_unless_the_list_has_whole_pages_and_one_for_each_request_and_one_more() {
    for (total, first) in [(4, 1), (5, 3)] {
        let mut pool = pool(4, total, Box::new(Sorted::default()));
        let taken = pool.alloc(Pages(2)).unwrap();
        pool.free(&taken[..1]);
        let growth = Growth { prefix: Tokens(0), length: Tokens(4) };
        assert_eq!(raw(&pool.extend(&[growth]).unwrap()[0]), [first]);
    }
}

#[test]
fn a_page_freed_twice_is_handed_out_twice() {
    for order in KINDS {
        let mut pool = pool(4, 3, order.order());
        let taken = pool.alloc(Pages(3)).unwrap();
        pool.free(&taken[2..]);
        pool.free(&taken[2..]);
        assert_eq!(pool.available(), Pages(2));
        assert_eq!(pool.alloc(Pages(2)), Ok(vec![PageId(3), PageId(3)]));
    }
}

#[test]
fn a_need_past_32_bits_is_refused() {
    let huge = Growth { prefix: Tokens(0), length: Tokens(u32::MAX) };
    let mut pool = pool(1, 3, Box::new(Stack::default()));
    let short = pool.extend(&[huge, huge]).unwrap_err();
    assert_eq!(short.needed, Pages(u32::MAX));
}
