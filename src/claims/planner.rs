//! Planner: long form, compact form and constant-time check agree with a definition token by token,
//! for both revisions, errors included.

use super::sizes;
use crate::engine::sglang::{Checked, Indexed};
use crate::layout::Layout;
use crate::planner::{IndexedList, Piece, PlanInput, Planner, Refusal, RowPairs};
use crate::scenario::generate::Choices;
use crate::units::{PageId, PageSize, Pages, Rank, Tokens};

/// Pages of a list, at most.
const PAGES_MAX: u32 = 24;

/// The numbers of one planner call.
#[derive(Debug)]
struct Call {
    page: u64,
    ranks: u64,
    /// Source pages sent before, and the prefix that decode has.
    offset: u64,
    prefix: u64,
    tokens: i64,
    src: Vec<PageId>,
    dst: Vec<PageId>,
}

impl Call {
    fn draw(choices: &mut impl Choices) -> Call {
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
        Call {
            page: page.into(),
            ranks: ranks.into(),
            offset: offset.into(),
            prefix: prefix.into(),
            tokens,
            src,
            dst,
        }
    }

    /// Deals the tokens of the piece to the ranks, in order; none if the number is negative.
    fn deal(&self) -> Vec<Vec<u64>> {
        let mut shares = vec![Vec::new(); self.ranks as usize];
        let mut turn = (self.prefix + self.offset * self.page) % self.ranks;
        for token in 0..u64::try_from(self.tokens).unwrap_or(0) {
            shares[turn as usize].push(token);
            turn = if turn + 1 == self.ranks { 0 } else { turn + 1 };
        }
        shares
    }

    fn source_page(&self, token: u64) -> u64 {
        token / self.page
    }

    /// The ordinal of the token's destination page, counted from the prefix.
    fn target_page(&self, token: u64) -> u64 {
        (self.offset * self.page + token) / self.ranks / self.page
    }

    /// The same for draft rows: a page holds those of all ranks.
    fn draft_page(&self, token: u64) -> u64 {
        (self.offset * self.page + token) / (self.page * self.ranks)
    }

    fn source_row(&self, token: u64) -> u64 {
        row(&self.src, self.source_page(token), self.page, token % self.page)
    }

    fn target_row(&self, token: u64) -> u64 {
        let local = (self.offset * self.page + token) / self.ranks;
        row(&self.dst, self.target_page(token), self.page, local % self.page)
    }

    fn draft_row(&self, token: u64) -> u64 {
        let virtual_page = self.page * self.ranks;
        let offset = (self.offset * self.page + token) % virtual_page;
        row(&self.dst, self.draft_page(token), virtual_page, offset)
    }

    fn misaligned(&self) -> Option<Refusal> {
        let virtual_page = self.page * self.ranks;
        (!self.prefix.is_multiple_of(virtual_page)).then(|| Refusal::Misaligned {
            virtual_page: PageSize::new(virtual_page as u32).expect("it is positive"),
            prefix: Tokens(self.prefix as u32),
        })
    }

    /// Why the checked revision refuses the rank of this share, if it does.
    fn checked(&self, rank: Rank, share: &[u64]) -> Option<Refusal> {
        let capacity = self.src.len() as u64 * self.page;
        let fits = u64::try_from(self.tokens).is_ok_and(|tokens| tokens <= capacity);
        let required = share.iter().map(|&token| self.target_page(token) + 1).max().unwrap_or(0);
        let source = || (!fits).then_some(Refusal::Source { tokens: self.tokens, capacity });
        let shortage = || {
            (required > self.dst.len() as u64).then(|| Refusal::Shortage {
                required,
                provided: Pages::of(&self.dst),
                src_page_offset: Pages(self.offset as u32),
                dcp_rank: rank,
            })
        };
        self.misaligned().or_else(source).or_else(shortage)
    }

    /// Why the indexed revision refuses the rank of this share, if it does: the first index past the
    /// end of a list, the lists in the order in which they are read.
    fn indexed(&self, share: &[u64], every: &[u64]) -> Option<Refusal> {
        let source = |token| self.source_page(token);
        let target = |token| self.target_page(token);
        let draft = |token| self.draft_page(token);
        self.misaligned()
            .or_else(|| past_the_end(share, source, &self.src, IndexedList::Source))
            .or_else(|| past_the_end(share, target, &self.dst, IndexedList::Destination))
            .or_else(|| past_the_end(every, source, &self.src, IndexedList::DraftSource))
            .or_else(|| past_the_end(every, draft, &self.dst, IndexedList::DraftDestination))
    }
}

/// The refusal of the first token whose page lies past the end of `list`.
fn past_the_end(
    tokens: &[u64],
    page: impl Fn(u64) -> u64,
    list: &[PageId],
    which: IndexedList,
) -> Option<Refusal> {
    let index = tokens.iter().map(|&token| page(token)).find(|&page| page >= list.len() as u64)?;
    Some(Refusal::Index { index, size: Pages::of(list), list: which })
}

/// Row `offset` of the page at `ordinal` of `list`, each of `page` rows.
fn row(list: &[PageId], ordinal: u64, page: u64, offset: u64) -> u64 {
    u64::from(list[ordinal as usize].0) * page + offset
}

/// A list of different pages, in no order. The lowest draw is the longest, so that calls stay large when
/// a fuzzer's bytes end.
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

/// Tries all ranks of a drawn call on both revisions.
pub fn plans_as_defined(choices: &mut impl Choices) {
    let call = Call::draw(choices);
    let layout = Layout::striped(call.page as u32, call.ranks as u32).expect("it is small");
    let piece = Piece {
        src_page_offset: Pages(call.offset as u32),
        decode_prefix_len: Tokens(call.prefix as u32),
        num_kv_tokens: Some(call.tokens),
    };
    let input = PlanInput::new(layout, Rank(0), piece, &call.src, &call.dst).expect("in bounds");
    let every: Vec<u64> = (0..u64::try_from(call.tokens).unwrap_or(0)).collect();
    // Draft rows are the same on every rank, so that one of them is enough.
    let with_draft = Rank(choices.within(0..=layout.ranks() - 1));
    for (rank, share) in layout.each_rank().zip(call.deal()) {
        let input = input.for_rank(rank).expect("the rank is one of the layout");
        let is_planned = agrees(&call, &Checked, &input, call.checked(rank, &share));
        if is_planned {
            let plan = Checked.plan(&input).expect("the check passed");
            assert!(follows(&call, &plan.target, &share, false), "long form: {rank} {call:?}");
            assert_eq!(plan.draft, None, "the checked revision lays no draft rows: {call:?}");
            let runs = Checked.plan_runs(&input).expect("the check passed").expand();
            assert_eq!(runs, plan.target, "compact form: {rank} {call:?}");
        }
        let is_planned = agrees(&call, &Indexed, &input, call.indexed(&share, &every));
        if is_planned && rank == with_draft {
            let plan = Indexed.plan(&input).expect("the check passed");
            assert!(follows(&call, &plan.target, &share, false), "long form: {rank} {call:?}");
            let draft = plan.draft.expect("the indexed revision lays draft rows");
            assert!(follows(&call, &draft, &every, true), "draft rows: {rank} {call:?}");
            let runs = Indexed.draft_runs(&input).expect("the check passed");
            assert_eq!(runs.map(|runs| runs.expand()), Some(draft), "compact draft: {call:?}");
        }
    }
    sizes::tell("tokens", every.len() as u64);
}

/// Whether `planner` plans; in every form it must refuse as defined.
fn agrees(
    call: &Call,
    planner: &dyn Planner,
    input: &PlanInput<'_>,
    refusal: Option<Refusal>,
) -> bool {
    assert_eq!(planner.check(input).err(), refusal, "check: {call:?}");
    assert_eq!(planner.plan_runs(input).err(), refusal, "compact form: {call:?}");
    if refusal.is_some() {
        assert_eq!(planner.plan(input).err(), refusal, "long form: {call:?}");
        assert_eq!(planner.draft_runs(input).err(), refusal, "draft rows: {call:?}");
    }
    refusal.is_none()
}

/// Whether `rows` are those of `tokens`, in order.
fn follows(call: &Call, rows: &RowPairs, tokens: &[u64], is_draft: bool) -> bool {
    let to = |&token: &u64| match is_draft {
        true => call.draft_row(token),
        false => call.target_row(token),
    };
    let from = |&token: &u64| call.source_row(token);
    rows.src.iter().map(|row| u64::from(row.0)).eq(tokens.iter().map(from))
        && rows.dst.iter().map(|row| u64::from(row.0)).eq(tokens.iter().map(to))
}
