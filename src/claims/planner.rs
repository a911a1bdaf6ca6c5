//! Planner: long form, compact form and constant-time check agree with a definition token by token,
//! for both revisions, errors included.

use std::collections::BTreeSet;

use crate::layout::Layout;
use crate::planner::{Checked, Indexed, Piece, PlanInput, Planner, RowPairs};
use crate::scenario::generate::Choices;
use crate::units::{PageId, Pages, Rank, Tokens};

/// Pages of a list, at most.
const PAGES_MAX: u32 = 32;

/// The numbers of one planner call.
#[derive(Debug)]
struct Call {
    page: u64,
    ranks: u64,
    rank: u64,
    /// Source pages sent before, and the prefix that decode has.
    offset: u64,
    prefix: u64,
    tokens: i64,
    src: Vec<PageId>,
    dst: Vec<PageId>,
}

type Pairs = (Vec<u64>, Vec<u64>);

impl Call {
    fn draw(choices: &mut impl Choices) -> Call {
        let page = *choices.pick(&[4, 16, 1, 2, 3, 32, 64]);
        let ranks = *choices.pick(&[2, 4, 1, 3, 8, 16]);
        let virtual_page = page * ranks;
        let src = pages(choices);
        let capacity = u32::try_from(src.len()).expect("the list is short") * page;
        let offset = choices.within(0..=6);
        let tokens = match choices.below(8) {
            0 => -i64::from(choices.within(0..=9)),
            1 => i64::from(capacity) + i64::from(choices.within(0..=page)),
            2 => i64::from(choices.within(0..=capacity)),
            _ => i64::from(capacity.saturating_sub(choices.within(0..=page))),
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
            rank: 0,
            offset: offset.into(),
            prefix: prefix.into(),
            tokens,
            src,
            dst,
        }
    }

    fn is_aligned(&self) -> bool {
        self.prefix.is_multiple_of(self.page * self.ranks)
    }

    /// Tokens of the piece, none if the number is negative.
    fn every(&self) -> impl Iterator<Item = u64> + '_ {
        0..u64::try_from(self.tokens).unwrap_or(0)
    }

    fn own(&self) -> impl Iterator<Item = u64> + '_ {
        let start = self.prefix + self.offset * self.page;
        self.every().filter(move |i| (start + i) % self.ranks == self.rank)
    }

    /// Row `at` of the pages of `list`, each of `page` rows.
    fn row(list: &[PageId], page: u64, at: u64) -> Option<u64> {
        let id = list.get(usize::try_from(at / page).ok()?)?;
        Some(u64::from(id.0) * page + at % page)
    }

    /// This rank's pairs; `None` where a list is too short.
    fn target(&self) -> Option<Pairs> {
        let pair = |i: u64| {
            let local = (self.offset * self.page + i) / self.ranks;
            Some((Self::row(&self.src, self.page, i)?, Self::row(&self.dst, self.page, local)?))
        };
        self.own().map(pair).collect()
    }

    /// The draft pairs, in pages of all ranks' rows.
    fn draft(&self) -> Option<Pairs> {
        let pair = |i: u64| {
            let (page, q) = (self.page * self.ranks, self.offset * self.page + i);
            Some((Self::row(&self.src, self.page, i)?, Self::row(&self.dst, page, q)?))
        };
        self.every().map(pair).collect()
    }

    fn fits_source(&self) -> bool {
        let capacity = self.src.len() as u64 * self.page;
        u64::try_from(self.tokens).is_ok_and(|tokens| tokens <= capacity)
    }
}

/// A list of different pages, in no order.
fn pages(choices: &mut impl Choices) -> Vec<PageId> {
    let count = choices.within(0..=PAGES_MAX);
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
    let mut call = Call::draw(choices);
    let (page, ranks) = (call.page as u32, call.ranks as u32);
    let layout = Layout::striped(page, ranks).expect("the layout is small");
    let piece = Piece {
        src_page_offset: Pages(call.offset as u32),
        decode_prefix_len: Tokens(call.prefix as u32),
        num_kv_tokens: Some(call.tokens),
    };
    let (src, dst) = (call.src.clone(), call.dst.clone());
    let first = PlanInput::new(layout, Rank(0), piece, &src, &dst).expect("the call is in bounds");
    let mut placed = Some(BTreeSet::new());
    for rank in layout.each_rank() {
        call.rank = rank.0.into();
        let input = first.for_rank(rank).expect("the rank is one of the layout");
        let target = call.target();
        let checked = target.clone().filter(|_| call.is_aligned() && call.fits_source());
        agrees(&call, &Checked, &input, checked.clone().map(|rows| (rows, None)));
        let indexed = target.zip(call.draft()).filter(|_| call.is_aligned());
        agrees(&call, &Indexed, &input, indexed.map(|(rows, draft)| (rows, Some(draft))));
        placed = placed.zip(checked).map(|(mut all, (sources, _))| {
            let count = all.len() + sources.len();
            all.extend(sources);
            assert_eq!(all.len(), count, "a token is placed twice: {call:?}");
            all
        });
    }
    if let Some(all) = placed {
        assert_eq!(all.len() as i64, call.tokens, "every token is placed: {call:?}");
    }
}

/// Whether `planner` gives the defined rows in every form, or refuses in every form.
fn agrees(
    call: &Call,
    planner: &dyn Planner,
    input: &PlanInput<'_>,
    defined: Option<(Pairs, Option<Pairs>)>,
) {
    let plan = planner.plan(input);
    let check = planner.check(input);
    let refusal = plan.as_ref().err().copied();
    assert_eq!(check.err(), refusal, "check and plan: {call:?}");
    assert_eq!(planner.plan_runs(input).err(), refusal, "compact form and plan: {call:?}");
    assert_eq!(planner.draft_runs(input).err(), refusal, "draft rows and plan: {call:?}");
    let long = plan.ok().map(|plan| (plain(&plan.target), plan.draft.as_ref().map(plain)));
    assert_eq!(long, defined, "plan and definition: {call:?}");
    let Some((target, draft)) = defined else { return };
    let runs = planner.plan_runs(input).map(|runs| plain(&runs.expand()));
    assert_eq!(runs, Ok(target), "compact form and definition: {call:?}");
    let runs = planner.draft_runs(input).map(|runs| runs.map(|runs| plain(&runs.expand())));
    assert_eq!(runs, Ok(draft), "compact draft rows and definition: {call:?}");
}

fn plain(rows: &RowPairs) -> Pairs {
    let numbers = |list: &[crate::units::Row]| list.iter().map(|row| row.0.into()).collect();
    (numbers(&rows.src), numbers(&rows.dst))
}
