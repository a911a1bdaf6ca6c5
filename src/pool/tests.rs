use std::collections::BTreeMap;

use proptest::prelude::*;

use super::order::{BestFit, Buddy, ByPlace, Lowest, Queue, Random, Sorted, Stack};
use super::*;
use crate::rng::Stream;

mod machine;

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
}

/// The free pages of an ascending list as maximal runs: length and first page.
fn runs(list: &[u32]) -> Vec<(usize, u32)> {
    let mut runs: Vec<(usize, u32)> = Vec::new();
    for &page in list {
        match runs.last_mut() {
            Some((length, start)) if *start + *length as u32 == page => *length += 1,
            _ => runs.push((1, page)),
        }
    }
    runs
}

/// The free pages of an ascending list as the largest aligned blocks of a power of two that are all
/// free; page 1 is aligned to everything.
fn blocks(list: &[u32]) -> Vec<(usize, u32)> {
    let mut rest = list.to_vec();
    let mut blocks = Vec::new();
    for size in [32_u32, 16, 8, 4, 2, 1] {
        for start in (1..=32).step_by(size as usize) {
            let block = start..start + size;
            if block.clone().all(|page| rest.contains(&page)) {
                rest.retain(|page| !block.contains(page));
                blocks.push((size as usize, start));
            }
        }
    }
    assert!(rest.is_empty());
    blocks
}

/// Takes from the smallest piece that holds all, else from the largest, the lowest of equals.
fn take_pieces(
    list: &mut Vec<u32>,
    needed: usize,
    pieces: fn(&[u32]) -> Vec<(usize, u32)>,
) -> Vec<u32> {
    list.sort();
    let mut taken = Vec::new();
    while taken.len() < needed {
        let rest = needed - taken.len();
        let (fits, short): (Vec<_>, Vec<_>) =
            pieces(list).into_iter().partition(|&(length, _)| length >= rest);
        let largest = short.iter().max_by_key(|&&(length, start)| (length, u32::MAX - start));
        let &(length, start) = fits.iter().min().or(largest).unwrap();
        let used = start..start + length.min(rest) as u32;
        list.retain(|page| !used.contains(page));
        taken.extend(used);
    }
    taken
}

/// The rule of the vectors' README on two plain lists, front first; and of the orders by place on
/// the first list alone.
#[derive(Clone, Debug)]
struct Model {
    kind: Kind,
    page: u32,
    list: Vec<u32>,
    staged: Vec<u32>,
}

impl Model {
    fn take(&mut self, needed: usize, estimate: usize) -> Option<Vec<u32>> {
        if self.list.len() < estimate {
            self.list.append(&mut self.staged);
            if matches!(self.kind, Kind::Sorted) {
                self.list.sort();
            }
        }
        (needed <= self.list.len()).then(|| match self.kind {
            Kind::BestFit => take_pieces(&mut self.list, needed, runs),
            Kind::Buddy => take_pieces(&mut self.list, needed, blocks),
            Kind::Stack | Kind::Sorted | Kind::Queue | Kind::Lowest | Kind::Random => {
                self.list.drain(..needed).collect()
            }
        })
    }

    fn free(&mut self, pages: &[u32]) {
        match self.kind {
            Kind::Stack => {
                let mut front = pages.to_vec();
                front.sort();
                front.append(&mut self.list);
                self.list = front;
            }
            Kind::Sorted => self.staged.extend(pages),
            Kind::Queue | Kind::Random => self.list.extend(pages),
            Kind::Lowest | Kind::BestFit | Kind::Buddy => {
                self.list.extend(pages);
                self.list.sort();
            }
        }
    }

    /// Pages that growing token by token opens: one for each token at offset 0 of a page.
    fn opened(&self, from: u32, to: u32) -> usize {
        (from..to).filter(|token| token % self.page == 0).count()
    }

    fn extend(&mut self, batch: &[(u32, u32)]) -> Option<Vec<Vec<u32>>> {
        let opened: Vec<usize> =
            batch.iter().map(|&(prefix, length)| self.opened(prefix, length)).collect();
        let needed = opened.iter().sum();
        let tokens: u32 = batch.iter().map(|(prefix, length)| length - prefix).sum();
        let estimate = match self.page {
            1 => needed,
            page => (tokens / page) as usize + batch.len() + 1,
        };
        let mut taken = self.take(needed, estimate)?;
        Some(opened.iter().map(|&count| taken.drain(..count).collect()).collect())
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    proptest::sample::select(&KINDS[..])
}

fn raw(pages: &[PageId]) -> Vec<u32> {
    pages.iter().map(|page| page.0).collect()
}

proptest! {
    #[test]
    fn every_order_hands_out_what_it_holds_as_often_as_it_was_given(
        kind in kind(),
        pages in 1u32..24,
        steps in proptest::collection::vec((0u32..6, 0usize..30, any::<bool>()), 0..40),
    ) {
        let mut pool = pool(4, pages, kind.order());
        let mut free: Vec<u32> = (1..=pages).collect();
        let mut held: Vec<u32> = Vec::new();
        for (wanted, first, again) in steps {
            match pool.alloc(Pages(wanted)) {
                Ok(taken) => {
                    prop_assert_eq!(taken.len(), wanted as usize);
                    for page in raw(&taken) {
                        let place = free.iter().position(|&free| free == page);
                        prop_assert!(place.is_some(), "{page} was not free");
                        free.swap_remove(place.unwrap());
                        held.push(page);
                    }
                }
                Err(short) => {
                    prop_assert!(short.needed > short.ready);
                    prop_assert_eq!(short.ready.index(), free.len());
                }
            }
            // Some holders give a page back and keep it, so that it will be given back twice.
            let from = first.min(held.len());
            let back = held[from..].to_vec();
            if !again {
                held.truncate(from);
            }
            pool.free(&back.iter().copied().map(PageId).collect::<Vec<_>>());
            free.extend(back);
            prop_assert_eq!(pool.available().index(), free.len());
            let mut listed = raw(&pool.free_pages().collect::<Vec<_>>());
            listed.sort();
            free.sort();
            prop_assert_eq!(&listed, &free);
        }
        let rest = pool.alloc(pool.available()).unwrap();
        let mut rest = raw(&rest);
        rest.sort();
        prop_assert_eq!(rest, free);
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
    // The fourth page stays a block of its own, which serves the next page before a larger one does.
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
