//! Planner: where each token of a piece goes, one token after the other, and what each revision
//! refuses.

use std::ops::Range;

use crate::engine::sglang::{Checked, Indexed};
use crate::layout::Layout;
use crate::planner::{IndexedList, Piece, PlanInput, Planner, Refusal, RowPairs, RunPlan};
use crate::units::{PageId, PageSize, Pages, Rank, Row, Tokens};

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

    /// How many tokens can be sent: none of a negative number.
    fn sendable(&self) -> u32 {
        u32::try_from(self.count().max(0)).expect("a case has few tokens")
    }

    /// The first token that a rank stores. They are dealt in turn, from the one that the piece
    /// begins with.
    fn first(&self, rank: u32) -> u32 {
        let turn = (self.prefix + self.offset * self.page) % self.ranks;
        (rank + self.ranks - turn) % self.ranks
    }

    /// The tokens that a rank stores.
    pub fn share(&self, rank: u32) -> impl DoubleEndedIterator<Item = u32> + Clone + use<> {
        let first = self.first(rank);
        (first..self.sendable().max(first)).step_by(self.ranks as usize)
    }

    /// The token's place among all tokens from the prefix's end on.
    fn sent(&self, token: u32) -> u32 {
        self.offset * self.page + token
    }

    /// The ordinal of the token's destination page, which holds P rows of every rank. Draft rows
    /// are in the same page, which then is V rows long.
    fn target_page(&self, token: u32) -> u32 {
        self.sent(token) / self.virtual_page()
    }

    /// The row that the token comes from.
    pub fn source_row(&self, token: u32) -> u32 {
        self.src[(token / self.page) as usize].0 * self.page + token % self.page
    }

    fn misaligned(&self) -> Option<Refusal> {
        (!self.prefix.is_multiple_of(self.virtual_page())).then(|| Refusal::Misaligned {
            virtual_page: PageSize::new(self.virtual_page()).expect("it is positive"),
            prefix: Tokens(self.prefix),
        })
    }

    /// Why the checked revision refuses a rank, if it does.
    fn checked(&self, rank: u32) -> Option<Refusal> {
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
    fn indexed(&self, rank: u32, rows: &TokenRows) -> Option<Refusal> {
        let source = |token| self.past_source(token, IndexedList::Source);
        let target = |token| self.past_target(token, IndexedList::Destination);
        self.misaligned()
            .or_else(|| first_past(&rows.source, self.share(rank)).map(source))
            .or_else(|| first_past(&rows.target, self.share(rank)).map(target))
    }

    /// The same for draft rows, which are those of every token and not of a rank.
    fn indexed_draft(&self, rows: &TokenRows) -> Option<Refusal> {
        let source = |token| self.past_source(token, IndexedList::DraftSource);
        let target = |token| self.past_target(token, IndexedList::DraftDestination);
        first_past(&rows.source, 0..self.sendable())
            .map(source)
            .or_else(|| first_past(&rows.draft, 0..self.sendable()).map(target))
    }

    fn past_source(&self, token: u32, list: IndexedList) -> Refusal {
        let index = u64::from(token / self.page);
        Refusal::Index { index, size: Pages::of(&self.src), list }
    }

    fn past_target(&self, token: u32, list: IndexedList) -> Refusal {
        let index = self.target_page(token).into();
        Refusal::Index { index, size: Pages::of(&self.dst), list }
    }
}

/// The rows of every token, in order. A list ends with the last page of its list, if that comes
/// before the last token.
struct TokenRows {
    /// The row that a token comes from.
    source: Vec<u32>,
    /// The row that it goes to on the rank that stores it.
    target: Vec<u32>,
    /// The row that it goes to for the draft model, on every rank.
    draft: Vec<u32>,
}

impl TokenRows {
    fn of(case: &Case) -> TokenRows {
        let (tokens, virtual_page) = (case.sendable(), case.virtual_page());
        let sent = case.sent(0)..case.sent(tokens);
        let (page, ranks) = (case.page, case.ranks);
        TokenRows {
            source: rows(&case.src, page, 0..tokens, |id, at| id * page + at),
            target: rows(&case.dst, virtual_page, sent.clone(), |id, at| id * page + at / ranks),
            draft: rows(&case.dst, virtual_page, sent, |id, at| id * virtual_page + at),
        }
    }

    /// Whether `rows` are those of every `step`-th token from `first` on.
    fn are_target(&self, rows: &RowPairs, first: u32, step: u32) -> bool {
        are(&rows.src, &self.source, (first, step)) && are(&rows.dst, &self.target, (first, step))
    }

    /// Whether `rows` are those of every token for the draft model.
    fn are_draft(&self, rows: &RowPairs) -> bool {
        are(&rows.src, &self.source, (0, 1)) && are(&rows.dst, &self.draft, (0, 1))
    }
}

/// The rows of `places` in pages that hold `size` places each, as many as there are pages for: the
/// row of a page's place is `row(page, place)`.
fn rows(
    pages: &[PageId],
    size: u32,
    places: Range<u32>,
    row: impl Fn(u32, u32) -> u32,
) -> Vec<u32> {
    let mut rows = Vec::with_capacity(places.len());
    for (before, page) in (0..).map(|ordinal| ordinal * size).zip(pages) {
        let within = |place: u32| place.saturating_sub(before).min(size);
        let here = within(places.start)..within(places.end);
        rows.extend(here.map(|at| row(page.0, at)));
    }
    rows
}

/// The first of `tokens`, which ascend, that has no row: there is none to look for where the last
/// has one.
fn first_past(
    rows: &[u32],
    mut tokens: impl DoubleEndedIterator<Item = u32> + Clone,
) -> Option<u32> {
    let has_none = |token: &u32| *token as usize >= rows.len();
    tokens.clone().next_back().filter(has_none)?;
    tokens.find(has_none)
}

/// Whether `laid` are every `step`-th of `rows` from `first` on. Looks at all of them without a
/// branch.
fn are(laid: &[Row], rows: &[u32], (first, step): (u32, u32)) -> bool {
    let own = rows.get(first as usize..).unwrap_or_default();
    let own = own.iter().step_by(step as usize);
    laid.len() == own.len() && laid.iter().zip(own).fold(true, |are, (a, &b)| are & (a.0 == b))
}

/// Plans a call for every rank with both revisions, in every form.
///
/// # Panics
/// Where a form refuses, or lays rows, otherwise than the definition.
pub fn check(case: &Case) {
    let input = case.input();
    let rows = TokenRows::of(case);
    let draft_refusal = case.indexed_draft(&rows);
    for rank in 0..case.ranks {
        let input = input.for_rank(Rank(rank)).expect("the rank is one of the layout");
        let first = case.first(rank);
        if let Some(runs) = agrees(case, &Checked, &input, case.checked(rank)) {
            let plan = Checked.plan(&input).expect("the check passed");
            let is_target = rows.are_target(&plan.target, first, case.ranks);
            assert!(is_target, "long form: rank {rank} of {case:?}");
            assert_eq!(plan.draft, None, "the checked revision lays no draft rows: {case:?}");
            assert_eq!(Checked.draft_runs(&input), Ok(None), "nor in the compact form: {case:?}");
            compact(case, &runs, &plan.target);
        }
        let refusal = case.indexed(rank, &rows).or(draft_refusal);
        let runs = agrees(case, &Indexed, &input, refusal).filter(|_| rank == case.rank);
        if let Some(runs) = runs {
            let plan = Indexed.plan(&input).expect("the check passed");
            let is_target = rows.are_target(&plan.target, first, case.ranks);
            assert!(is_target, "long form: rank {rank} of {case:?}");
            compact(case, &runs, &plan.target);
            let draft = plan.draft.expect("the indexed revision lays draft rows");
            assert!(rows.are_draft(&draft), "draft rows: rank {rank} of {case:?}");
            let runs = Indexed.draft_runs(&input).expect("the check passed");
            compact(case, &runs.expect("as in the long form"), &draft);
        }
    }
}

/// The compact form, if `planner` plans; in every form it must refuse as defined.
fn agrees(
    case: &Case,
    planner: &dyn Planner,
    input: &PlanInput<'_>,
    refusal: Option<Refusal>,
) -> Option<RunPlan> {
    assert_eq!(planner.check(input).err(), refusal, "check: {case:?}");
    let runs = planner.plan_runs(input);
    assert_eq!(runs.as_ref().err(), refusal.as_ref(), "compact form: {case:?}");
    if refusal.is_some() {
        assert_eq!(planner.plan(input).err(), refusal, "long form: {case:?}");
        assert_eq!(planner.draft_runs(input).err(), refusal, "draft rows: {case:?}");
    }
    runs.ok()
}

/// The compact form has the rows of the long one, and no two of its runs could be one.
fn compact(case: &Case, plan: &RunPlan, rows: &RowPairs) {
    let (mut src, mut dst) = (&rows.src[..], &rows.dst[..]);
    for run in &plan.runs {
        assert!(run.len > 0, "no run is empty: {case:?}");
        let are_laid = (0..run.len)
            .zip(src.iter().zip(dst))
            .fold(true, |are, (at, (&src, &dst))| are & (run.at(at) == (src, dst)));
        let len = run.len as usize;
        assert!(are_laid && len <= src.len(), "compact form: {run:?} of {case:?}");
        (src, dst) = (&src[len..], &dst[len..]);
    }
    assert!(src.is_empty(), "compact form: {src:?} missing of {case:?}");
    for pair in plan.runs.windows(2) {
        let end = pair[0].at(pair[0].len);
        assert_ne!(end, (pair[1].src, pair[1].dst), "one run in two: {pair:?} of {case:?}");
    }
}
