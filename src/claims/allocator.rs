//! Allocator: whatever the free-list order, the pool hands out free pages, each once, and counts
//! them right.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::sizes;
use crate::pool::{Growth, Pool, Short};
use crate::rng::Stream;
use crate::scenario::generate::Choices;
use crate::units::{PageId, PageSize, Pages, Tokens};
use crate::world::Registry;
use crate::world::registry::{FreeOrderSetup, MakeFreeOrder};

/// Calls of one case, at most.
const CALLS: u32 = 64;

/// The plain model: which pages are free, and what each request holds.
struct Model {
    page: u32,
    free: BTreeSet<PageId>,
    requests: Vec<(Tokens, Vec<PageId>)>,
}

impl Model {
    /// Compares an answer of the pool with what the call needs.
    fn takes(&mut self, needed: u32, answer: Result<Vec<PageId>, Short>) -> Option<Vec<PageId>> {
        let fits = needed as usize <= self.free.len();
        assert_eq!(answer.is_ok(), fits, "{needed} pages of {} free ones", self.free.len());
        let pages = answer.ok()?;
        assert_eq!(pages.len(), needed as usize, "as many pages as needed");
        for page in &pages {
            assert!(self.free.remove(page), "page {page} was free");
        }
        Some(pages)
    }
}

/// Tries drawn calls on a pool of every kind of free list.
pub fn hands_out_free_pages_once(choices: &mut impl Choices) {
    static ORDERS: LazyLock<Vec<MakeFreeOrder>> =
        LazyLock::new(|| Registry::default().free_orders.into_values().collect());
    let make = *choices.pick(&ORDERS);
    let page = *choices.pick(&[4, 1, 16]);
    let size = PageSize::new(page).expect("it is positive");
    let count = choices.within(1..=48);
    let stream = Stream::new(choices.below(4), "allocator");
    let setup = FreeOrderSetup { page: size, stream };
    let mut pool = Pool::new(size, Pages(count), make(setup));
    let mut model = Model { page, free: (1..=count).map(PageId).collect(), requests: Vec::new() };
    let calls = choices.within(1..=CALLS);
    for _ in 0..calls {
        match choices.below(4) {
            0 => grow(choices, &mut pool, &mut model),
            1 => step(choices, &mut pool, &mut model),
            2 => {
                let wanted = choices.within(0..=count / 4 + 1);
                if let Some(pages) = model.takes(wanted, pool.alloc(Pages(wanted))) {
                    model.requests.push((Tokens(wanted * page), pages));
                }
            }
            _ => {
                if let Some(last) = model.requests.len().checked_sub(1) {
                    let index = choices.below(last as u64 + 1) as usize;
                    let (_, pages) = model.requests.swap_remove(index);
                    pool.free(&pages);
                    model.free.extend(pages);
                }
            }
        }
        assert_eq!(pool.available().index(), model.free.len(), "the count of free pages");
    }
    let listed: Vec<PageId> = pool.free_pages().collect();
    let distinct: BTreeSet<PageId> = listed.iter().copied().collect();
    assert_eq!((listed.len(), &distinct), (model.free.len(), &model.free), "the free pages");
    sizes::tell("operations", calls.into());
}

/// Grows a batch of one old and one new request.
fn grow(choices: &mut impl Choices, pool: &mut Pool, model: &mut Model) {
    let page = model.page;
    let old =
        (!model.requests.is_empty()).then(|| choices.below(model.requests.len() as u64) as usize);
    let prefix = old.map_or(Tokens(0), |index| model.requests[index].0);
    let batch = [
        Growth { prefix, length: prefix + Tokens(choices.within(0..=3 * page)) },
        Growth { prefix: Tokens(0), length: Tokens(choices.within(1..=3 * page)) },
    ];
    let batch = if old.is_some() { &batch[..] } else { &batch[1..] };
    let new = |growth: &Growth| growth.length.0.div_ceil(page) - growth.prefix.0.div_ceil(page);
    let needed = batch.iter().map(new).sum();
    let answer = pool.extend(batch);
    let shares: Option<Vec<usize>> =
        answer.as_ref().ok().map(|lists| lists.iter().map(Vec::len).collect());
    let Some(pages) = model.takes(needed, answer.map(|lists| lists.concat())) else { return };
    let expected: Vec<usize> = batch.iter().map(|growth| new(growth) as usize).collect();
    assert_eq!(shares, Some(expected), "each request gets its own");
    let mut pages = pages.into_iter();
    for (growth, index) in batch.iter().zip(old.map(Some).into_iter().chain([None])) {
        let own = pages.by_ref().take(new(growth) as usize);
        match index {
            Some(index) => {
                model.requests[index].0 = growth.length;
                model.requests[index].1.extend(own);
            }
            None => model.requests.push((growth.length, own.collect())),
        }
    }
}

/// Adds one token to a few requests.
fn step(choices: &mut impl Choices, pool: &mut Pool, model: &mut Model) {
    let count = model.requests.len().min(choices.within(0..=4) as usize);
    let lengths: Vec<Tokens> =
        model.requests[..count].iter().map(|(length, _)| *length + Tokens(1)).collect();
    let opens = |length: &Tokens| (length.0 - 1).is_multiple_of(model.page);
    let opening: Vec<bool> = lengths.iter().map(opens).collect();
    let needed = opening.iter().filter(|&&opens| opens).count() as u32;
    let answer = pool.decode(&lengths);
    let got: Option<Vec<bool>> =
        answer.as_ref().ok().map(|pages| pages.iter().map(Option::is_some).collect());
    let flat = answer.map(|pages| pages.into_iter().flatten().collect());
    let Some(mut pages) = model.takes(needed, flat).map(Vec::into_iter) else { return };
    assert_eq!(got.as_ref(), Some(&opening), "a page for each token that opens one");
    for ((length, opens), request) in lengths.into_iter().zip(opening).zip(&mut model.requests) {
        request.0 = length;
        request.1.extend(pages.by_ref().take(usize::from(opens)));
    }
}
