//! Planner: where each token of a piece goes, one token after the other, and what each revision
//! refuses.

use crate::engine::sglang::{Checked, Indexed};
use crate::layout::Layout;
use crate::planner::{IndexedList, Piece, PlanInput, Planner, Refusal, RowPairs, RunPlan};
use crate::units::{PageId, PageSize, Pages, Rank, Tokens};

/// The numbers of one planner call. All positions and rows are within 32 bits.
#[derive(Clone, Debug)]
pub struct Case {
    /// Rows of a physical page, P.
    pub page: u32,
    /// Ranks, N.
    pub ranks: u32,
    /// The rank whose draft rows are looked at; they are the same on every rank.
    pub rank: u32,
    /// Source pages sent before this piece.
    pub offset: u32,
    /// Tokens that decode has cached, S.
    pub prefix: u32,
    /// Tokens of the piece; none is all that the source pages hold.
    pub tokens: Option<i64>,
    /// Source pages of the piece.
    pub src: Vec<PageId>,
    /// Destination pages from the prefix's end on.
    pub dst: Vec<PageId>,
}

impl Case {
    /// The call for its rank.
    ///
    /// # Panics
    /// Where a number is out of the planner's bounds.
    pub fn input(&self) -> PlanInput<'_> {
        let layout = Layout::striped(self.page, self.ranks).expect("pages and ranks are few");
        let piece = Piece {
            src_page_offset: Pages(self.offset),
            decode_prefix_len: Tokens(self.prefix),
            num_kv_tokens: self.tokens,
        };
        PlanInput::new(layout, Rank(self.rank), piece, &self.src, &self.dst).expect("in bounds")
    }

    /// V.
    pub fn virtual_page(&self) -> u32 {
        self.page * self.ranks
    }

    /// Tokens that the source pages hold.
    pub fn capacity(&self) -> u32 {
        Pages::of(&self.src).0 * self.page
    }

    /// Tokens of the piece, as they were asked for.
    pub fn count(&self) -> i64 {
        self.tokens.unwrap_or_else(|| self.capacity().into())
    }

    /// Every token that can be sent: none of a negative number.
    fn every(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.count().max(0)).expect("a case has few tokens")
    }

    /// The tokens that a rank stores: dealt in turn, from the one that the piece begins with.
    pub fn share(&self, rank: u32) -> impl DoubleEndedIterator<Item = u32> + Clone + use<> {
        let turn = (self.prefix + self.offset * self.page) % self.ranks;
        let first = (rank + self.ranks - turn) % self.ranks;
        (first..self.every().end.max(first)).step_by(self.ranks as usize)
    }

    /// The token's place among all tokens from the prefix's end on.
    fn sent(&self, token: u32) -> u32 {
        self.offset * self.page + token
    }

    /// The ordinal of the token's destination page: N tokens to a row of all ranks, P rows to a
    /// page.
    fn target_page(&self, token: u32) -> u32 {
        self.sent(token) / self.ranks / self.page
    }

    /// The same for draft rows: a page holds those of all ranks.
    fn draft_page(&self, token: u32) -> u32 {
        self.sent(token) / self.virtual_page()
    }

    /// The row that the token comes from.
    pub fn source_row(&self, token: u32) -> u32 {
        self.src[(token / self.page) as usize].0 * self.page + token % self.page
    }

    /// The row that it goes to on the rank that stores it.
    fn target_row(&self, token: u32) -> u32 {
        let page = self.dst[self.target_page(token) as usize].0;
        page * self.page + self.sent(token) / self.ranks % self.page
    }

    /// The row that it goes to for the draft model, on every rank.
    fn draft_row(&self, token: u32) -> u32 {
        let page = self.dst[self.draft_page(token) as usize].0;
        page * self.virtual_page() + self.sent(token) % self.virtual_page()
    }

    fn misaligned(&self) -> Option<Refusal> {
        (!self.prefix.is_multiple_of(self.virtual_page())).then(|| Refusal::Misaligned {
            virtual_page: PageSize::new(self.virtual_page()).expect("it is positive"),
            prefix: Tokens(self.prefix),
        })
    }

    /// Why the checked revision refuses a rank, if it does.
    pub fn checked(&self, rank: u32) -> Option<Refusal> {
        let capacity = u64::from(self.capacity());
        let fits = u64::try_from(self.count()).is_ok_and(|count| count <= capacity);
        let source = || (!fits).then(|| Refusal::Source { tokens: self.count(), capacity });
        let shortage = || {
            let required =
                self.share(rank).next_back().map_or(0, |last| self.target_page(last) + 1);
            (required > Pages::of(&self.dst).0).then(|| Refusal::Shortage {
                required: required.into(),
                provided: Pages::of(&self.dst),
                src_page_offset: Pages(self.offset),
                dcp_rank: Rank(rank),
            })
        };
        self.misaligned().or_else(source).or_else(shortage)
    }

    /// Why the indexed revision refuses a rank, if it does: the first index past the end of a list,
    /// the lists in the order in which they are read.
    pub fn indexed(&self, rank: u32) -> Option<Refusal> {
        let source = |token| token / self.page;
        let target = |token| self.target_page(token);
        let draft = |token| self.draft_page(token);
        let (own, every) = (|| self.share(rank), || self.every());
        self.misaligned()
            .or_else(|| past_the_end(own(), source, &self.src, IndexedList::Source))
            .or_else(|| past_the_end(own(), target, &self.dst, IndexedList::Destination))
            .or_else(|| past_the_end(every(), source, &self.src, IndexedList::DraftSource))
            .or_else(|| past_the_end(every(), draft, &self.dst, IndexedList::DraftDestination))
    }

    /// Whether `rows` are those of a rank's share, in order.
    fn is_target(&self, rows: &RowPairs, rank: u32) -> bool {
        let pairs = self.share(rank).map(|token| (self.source_row(token), self.target_row(token)));
        are(rows, pairs)
    }

    /// Whether `rows` are those of every token for the draft model, in order.
    fn is_draft(&self, rows: &RowPairs) -> bool {
        are(rows, self.every().map(|token| (self.source_row(token), self.draft_row(token))))
    }
}

/// The refusal of the first token whose page lies past the end of `list`.
fn past_the_end(
    tokens: impl Iterator<Item = u32>,
    page: impl Fn(u32) -> u32,
    list: &[PageId],
    which: IndexedList,
) -> Option<Refusal> {
    let size = Pages::of(list);
    let index = tokens.map(page).find(|&page| page >= size.0)?;
    Some(Refusal::Index { index: index.into(), size, list: which })
}

fn are(rows: &RowPairs, pairs: impl Iterator<Item = (u32, u32)>) -> bool {
    let laid = rows.src.iter().zip(&rows.dst).map(|(src, dst)| (src.0, dst.0));
    rows.src.len() == rows.dst.len() && laid.eq(pairs)
}

/// Plans a call for every rank with both revisions, in every form.
///
/// # Panics
/// Where a form refuses, or lays rows, otherwise than the definition.
pub fn check(case: &Case) {
    let input = case.input();
    for rank in 0..case.ranks {
        let input = input.for_rank(Rank(rank)).expect("the rank is one of the layout");
        if agrees(case, &Checked, &input, case.checked(rank)) {
            let plan = Checked.plan(&input).expect("the check passed");
            assert!(case.is_target(&plan.target, rank), "long form: rank {rank} of {case:?}");
            assert_eq!(plan.draft, None, "the checked revision lays no draft rows: {case:?}");
            assert_eq!(Checked.draft_runs(&input), Ok(None), "nor in the compact form: {case:?}");
            compact(case, &Checked.plan_runs(&input).expect("the check passed"), &plan.target);
        }
        if agrees(case, &Indexed, &input, case.indexed(rank)) && rank == case.rank {
            let plan = Indexed.plan(&input).expect("the check passed");
            assert!(case.is_target(&plan.target, rank), "long form: rank {rank} of {case:?}");
            compact(case, &Indexed.plan_runs(&input).expect("the check passed"), &plan.target);
            let draft = plan.draft.expect("the indexed revision lays draft rows");
            assert!(case.is_draft(&draft), "draft rows: rank {rank} of {case:?}");
            let runs = Indexed.draft_runs(&input).expect("the check passed");
            compact(case, &runs.expect("as in the long form"), &draft);
        }
    }
}

/// Whether `planner` plans; in every form it must refuse as defined.
fn agrees(
    case: &Case,
    planner: &dyn Planner,
    input: &PlanInput<'_>,
    refusal: Option<Refusal>,
) -> bool {
    assert_eq!(planner.check(input).err(), refusal, "check: {case:?}");
    assert_eq!(planner.plan_runs(input).err(), refusal, "compact form: {case:?}");
    if refusal.is_some() {
        assert_eq!(planner.plan(input).err(), refusal, "long form: {case:?}");
        assert_eq!(planner.draft_runs(input).err(), refusal, "draft rows: {case:?}");
    }
    refusal.is_none()
}

/// The compact form expands to the long one, and no two of its runs could be one.
fn compact(case: &Case, plan: &RunPlan, rows: &RowPairs) {
    assert_eq!(plan.expand(), *rows, "compact form: {case:?}");
    assert!(plan.runs.iter().all(|run| run.len > 0), "no run is empty: {case:?}");
    for pair in plan.runs.windows(2) {
        let end = pair[0].at(pair[0].len);
        assert_ne!(end, (pair[1].src, pair[1].dst), "one run in two: {pair:?} of {case:?}");
    }
}
