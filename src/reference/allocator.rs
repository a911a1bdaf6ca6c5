//! Allocator: the free pages as plain lists, and what each holder of pages has.

use crate::pool::order::FreeOrder;
use crate::pool::{Growth, Pool, Short};
use crate::units::{PageId, PageSize, Pages, Tokens};

/// Pages of a case's pool, at most.
pub const PAGES_MAX: u32 = 64;

/// Which free page is handed out next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The pages of the last call that gave some back, lowest first.
    Stack,
    /// The list; pages that come back are staged, and sorted into it when it is too short.
    Sorted,
    /// The one that has been free longest.
    Queue,
    /// The lowest.
    Lowest,
    /// Those of the smallest run of free pages that serves the whole call, else of the largest.
    BestFit,
    /// The same with blocks of a power of two, aligned to their size.
    Buddy,
    /// Any.
    Unsettled,
}

/// A server's call. Numbers of holders wrap around, so that every list of operations is a valid
/// one.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Grows holders by so many tokens each in one batch. The number past the last holder begins a
    /// new one, each time; another one counts once.
    Extend(Vec<(usize, u32)>),
    /// Adds a token to so many of the first holders.
    Decode(usize),
    /// Takes so many pages for a new holder.
    Alloc(u32),
    /// Gives a holder's pages back.
    Free {
        /// The holder, by its number.
        holder: usize,
        /// In the opposite order, so that an order which should sort the pages of a call has to.
        backwards: bool,
        /// Whether it keeps them all the same, and will give them back again.
        keeps: bool,
    },
}

/// Calls of a pool.
#[derive(Clone, Debug)]
pub struct Case {
    /// Rows of a page.
    pub page: u32,
    /// Pages of the pool, 1..=[`PAGES_MAX`].
    pub pages: u32,
    /// What is known of the order.
    pub rule: Rule,
    /// The calls.
    pub operations: Vec<Operation>,
}

/// Makes every call to a pool of this order, which must be empty, and then takes what is left.
///
/// # Panics
/// Where the pool answers otherwise than the lists.
pub fn check(case: &Case, order: Box<dyn FreeOrder>) {
    assert!(case.pages <= PAGES_MAX, "a case has few pages");
    let size = PageSize::new(case.page).expect("a page has rows");
    let mut server = Server {
        pool: Pool::new(size, Pages(case.pages), order),
        lists: Lists { rule: case.rule, ready: (1..=case.pages).collect(), staged: Vec::new() },
        page: case.page,
        holders: Vec::new(),
    };
    server.compare();
    for operation in &case.operations {
        match operation {
            Operation::Extend(more) => server.extend(more),
            Operation::Decode(count) => server.decode(*count),
            Operation::Alloc(pages) => server.alloc(*pages),
            &Operation::Free { holder, backwards, keeps } => server.free(holder, backwards, keeps),
        }
        server.compare();
    }
    server.alloc(server.pool.available().0);
    server.compare();
}

/// The free pages, doubles included, front first.
struct Lists {
    rule: Rule,
    ready: Vec<u32>,
    staged: Vec<u32>,
}

/// Who holds pages: tokens with rows, and the pages.
struct Holder {
    length: u32,
    pages: Vec<u32>,
}

/// A pool beside the lists.
struct Server {
    pool: Pool,
    lists: Lists,
    page: u32,
    holders: Vec<Holder>,
}

/// Pages as plain numbers.
fn raw(pages: &[PageId]) -> Vec<u32> {
    pages.iter().map(|page| page.0).collect()
}

impl Server {
    /// Pages that growing token by token opens: one for each token at offset 0 of a page.
    fn opened(&self, from: u32, to: u32) -> usize {
        (from..to).filter(|token| token % self.page == 0).count()
    }

    fn extend(&mut self, more: &[(usize, u32)]) {
        let held = self.holders.len();
        let mut batch: Vec<(usize, u32, u32)> = Vec::new();
        for &(holder, more) in more {
            let holder = holder % (held + 1);
            if holder == held || batch.iter().all(|&(other, ..)| other != holder) {
                let prefix = self.holders.get(holder).map_or(0, |holder| holder.length);
                batch.push((holder, prefix, prefix + more));
            }
        }
        let growth =
            |&(_, prefix, length): &_| Growth { prefix: Tokens(prefix), length: Tokens(length) };
        let growths: Vec<Growth> = batch.iter().map(growth).collect();
        let opened: Vec<usize> =
            batch.iter().map(|&(_, prefix, length)| self.opened(prefix, length)).collect();
        let needed = opened.iter().sum();
        let tokens: u32 = batch.iter().map(|(_, prefix, length)| length - prefix).sum();
        let estimate = match self.page {
            1 => needed,
            page => (tokens / page) as usize + batch.len() + 1,
        };
        let answer = self.pool.extend(&growths);
        if let Ok(lists) = &answer {
            let shares: Vec<usize> = lists.iter().map(Vec::len).collect();
            assert_eq!(shares, opened, "each request gets its own: {batch:?}");
        }
        let answer = answer.map(|lists| raw(&lists.concat()));
        let Some(pages) = self.lists.take(needed, estimate, &answer) else { return };
        let mut pages = pages.into_iter();
        for ((holder, _, length), count) in batch.into_iter().zip(opened) {
            if holder == held {
                self.holders.push(Holder { length, pages: pages.by_ref().take(count).collect() });
            } else {
                self.holders[holder].length = length;
                self.holders[holder].pages.extend(pages.by_ref().take(count));
            }
        }
    }

    fn decode(&mut self, count: usize) {
        let count = count.min(self.holders.len());
        let grown = self.holders[..count].iter().map(|holder| holder.length + 1);
        let lengths: Vec<Tokens> = grown.map(Tokens).collect();
        let opening: Vec<bool> =
            lengths.iter().map(|length| self.opened(length.0 - 1, length.0) == 1).collect();
        let needed = opening.iter().filter(|&&opens| opens).count();
        let answer = self.pool.decode(&lengths);
        if let Ok(pages) = &answer {
            let got: Vec<bool> = pages.iter().map(Option::is_some).collect();
            assert_eq!(got, opening, "a page for each token that opens one: {lengths:?}");
        }
        let answer = answer.map(|pages| pages.into_iter().flatten().map(|page| page.0).collect());
        let Some(pages) = self.lists.take(needed, count, &answer) else { return };
        let mut pages = pages.into_iter();
        for (holder, opens) in self.holders.iter_mut().zip(opening) {
            holder.length += 1;
            holder.pages.extend(pages.by_ref().take(usize::from(opens)));
        }
    }

    fn alloc(&mut self, count: u32) {
        let answer = self.pool.alloc(Pages(count)).map(|pages| raw(&pages));
        let taken = self.lists.take(count as usize, count as usize, &answer);
        let holder = |pages| Holder { length: count * self.page, pages };
        self.holders.extend(taken.map(holder));
    }

    fn free(&mut self, holder: usize, backwards: bool, keeps: bool) {
        let Some(holder) = holder.checked_rem(self.holders.len()) else { return };
        let mut pages = self.holders[holder].pages.clone();
        if !keeps {
            self.holders.swap_remove(holder);
        }
        if backwards {
            pages.reverse();
        }
        self.pool.free(&pages.iter().copied().map(PageId).collect::<Vec<_>>());
        self.lists.give(&pages);
    }

    /// The free pages are listed as in the lists, and counted right.
    fn compare(&self) {
        let mut listed = raw(&self.pool.free_pages().collect::<Vec<_>>());
        let mut expected = [&self.lists.ready[..], &self.lists.staged].concat();
        if self.lists.rule == Rule::Unsettled {
            listed.sort_unstable();
            expected.sort_unstable();
        }
        assert_eq!(listed, expected, "the free pages");
        assert_eq!(self.pool.available().index(), expected.len(), "the count of free pages");
    }
}

impl Lists {
    /// Takes what the pool answered to a call for `needed` pages, which wants `estimate` of them on
    /// the list beforehand, after comparing it. `None` is a refusal.
    fn take(
        &mut self,
        needed: usize,
        estimate: usize,
        answer: &Result<Vec<u32>, Short>,
    ) -> Option<Vec<u32>> {
        if self.ready.len() < estimate {
            self.ready.append(&mut self.staged);
            if self.rule == Rule::Sorted {
                self.ready.sort_unstable();
            }
        }
        let pages = |count| Pages(u32::try_from(count).expect("a case has few pages"));
        if needed > self.ready.len() {
            let short = Short { needed: pages(needed), ready: pages(self.ready.len()) };
            assert_eq!(answer, &Err(short), "a call for more than is free");
            return None;
        }
        let expected = match self.rule {
            Rule::BestFit => take_pieces(&mut self.ready, needed, runs),
            Rule::Buddy => take_pieces(&mut self.ready, needed, blocks),
            Rule::Stack | Rule::Sorted | Rule::Queue | Rule::Lowest => {
                self.ready.drain(..needed).collect()
            }
            Rule::Unsettled => {
                let taken = answer.clone().expect("a call for what is free is served");
                assert_eq!(taken.len(), needed, "as many pages as needed");
                for &page in &taken {
                    take_one(&mut self.ready, page);
                }
                taken
            }
        };
        assert_eq!(answer.as_ref(), Ok(&expected), "the pages that come next");
        Some(expected)
    }

    fn give(&mut self, pages: &[u32]) {
        match self.rule {
            Rule::Stack => {
                let mut front = pages.to_vec();
                front.sort_unstable();
                front.append(&mut self.ready);
                self.ready = front;
            }
            Rule::Sorted => self.staged.extend(pages),
            Rule::Queue | Rule::Unsettled => self.ready.extend(pages),
            Rule::Lowest | Rule::BestFit | Rule::Buddy => {
                self.ready.extend(pages);
                self.ready.sort_unstable();
            }
        }
    }
}

fn take_one(list: &mut Vec<u32>, page: u32) {
    let place = list.iter().position(|&free| free == page);
    list.remove(place.unwrap_or_else(|| panic!("page {page} was not free")));
}

/// Free pages that go together: how many, and the first.
type Piece = (usize, u32);

/// Takes from the smallest piece that holds all, else from the largest, the lowest of equals. A
/// page that is free twice is in a piece once, and again when the call has taken all others it can.
fn take_pieces(list: &mut Vec<u32>, needed: usize, pieces: fn(&[u32]) -> Vec<Piece>) -> Vec<u32> {
    let mut taken = Vec::new();
    while taken.len() < needed {
        let mut distinct = list.clone();
        distinct.dedup();
        let mut round = Vec::new();
        let wanted = (needed - taken.len()).min(distinct.len());
        while round.len() < wanted {
            let rest = wanted - round.len();
            let (fits, short): (Vec<_>, Vec<_>) =
                pieces(&distinct).into_iter().partition(|&(length, _)| length >= rest);
            let largest = short.iter().max_by_key(|&&(length, start)| (length, u32::MAX - start));
            let &(length, start) = fits.iter().min().or(largest).expect("a page is left");
            let used = start..start + length.min(rest) as u32;
            distinct.retain(|page| !used.contains(page));
            round.extend(used);
        }
        for &page in &round {
            take_one(list, page);
        }
        taken.append(&mut round);
    }
    taken
}

/// The free pages of an ascending list as maximal runs.
fn runs(list: &[u32]) -> Vec<Piece> {
    let mut runs: Vec<Piece> = Vec::new();
    for &page in list {
        match runs.last_mut() {
            Some((length, start)) if *start + *length as u32 == page => *length += 1,
            _ => runs.push((1, page)),
        }
    }
    runs
}

/// The free pages of a list as the largest aligned blocks of a power of two that are all free; page
/// 1 is aligned to everything.
fn blocks(list: &[u32]) -> Vec<Piece> {
    let mut is_free = [false; PAGES_MAX as usize + 1];
    for &page in list {
        is_free[page as usize] = true;
    }
    let mut blocks = Vec::new();
    for size in [64, 32, 16, 8, 4, 2, 1] {
        for start in (1..=PAGES_MAX as usize).step_by(size) {
            let block = &mut is_free[start..start + size];
            if block.iter().all(|&is_free| is_free) {
                block.fill(false);
                blocks.push((size, start as u32));
            }
        }
    }
    blocks
}
