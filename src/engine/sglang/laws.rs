//! Laws of both revisions, against the definition written token by token.

use proptest::prelude::*;

use super::*;
use crate::layout::Layout;
use crate::planner::*;
use crate::units::{PageId, Pages, Rank, Row, Tokens};

/// A request as plain numbers.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    page: i64,
    ranks: i64,
    rank: i64,
    offset: i64,
    prefix: i64,
    tokens: Option<i64>,
    src: Vec<i64>,
    dst: Vec<i64>,
}

type Pairs = (Vec<i64>, Vec<i64>);
/// Target and draft pairs, or exception and message.
type Answer = Result<(Pairs, Option<Pairs>), (String, String)>;

impl Case {
    pub(crate) fn raw(&self) -> RawInput {
        RawInput {
            page_size: self.page,
            dcp_size: self.ranks,
            dcp_rank: self.rank,
            src_page_offset: self.offset,
            decode_prefix_len: self.prefix,
            num_kv_tokens: self.tokens,
            src_pages: self.src.clone(),
            dst_pages: self.dst.clone(),
        }
    }

    fn virtual_page(&self) -> i64 {
        self.page * self.ranks
    }

    fn capacity(&self) -> i64 {
        i64::try_from(self.src.len()).unwrap() * self.page
    }

    fn count(&self) -> i64 {
        self.tokens.unwrap_or(self.capacity())
    }

    fn own(&self) -> Vec<i64> {
        let start = self.prefix + self.offset * self.page;
        let owned = |i: &i64| (start + i) % self.ranks == self.rank;
        (0..self.count()).filter(owned).collect()
    }

    fn misaligned(&self) -> Result<(), (String, String)> {
        let page = self.virtual_page();
        if self.prefix % page == 0 {
            return Ok(());
        }
        let message = format!(
            "PD DCP transfer requires decode_prefix_len to align to the virtual DCP page size \
             ({page}), got {}",
            self.prefix
        );
        Err(("ValueError".to_owned(), message))
    }

    fn target_pair(&self, i: i64) -> (i64, i64) {
        let local = (self.offset * self.page + i) / self.ranks;
        let src = self.src[usize::try_from(i / self.page).unwrap()] * self.page + i % self.page;
        let page = self.dst[usize::try_from(local / self.page).unwrap()];
        (src, page * self.page + local % self.page)
    }

    fn draft_pair(&self, i: i64) -> (i64, i64) {
        let q = self.offset * self.page + i;
        let src = self.src[usize::try_from(i / self.page).unwrap()] * self.page + i % self.page;
        let page = self.dst[usize::try_from(q / self.virtual_page()).unwrap()];
        (src, page * self.virtual_page() + q % self.virtual_page())
    }

    fn checked(&self) -> Answer {
        self.misaligned()?;
        let error = |message| Err(("ValueError".to_owned(), message));
        let (tokens, capacity) = (self.count(), self.capacity());
        if tokens < 0 || tokens > capacity {
            return error(format!(
                "num_kv_tokens must fit in the provided source pages, got tokens={tokens}, \
                 capacity={capacity}"
            ));
        }
        let own = self.own();
        let ordinal = |i| (self.offset * self.page + i) / self.ranks / self.page;
        let required = own.iter().map(|i| ordinal(i) + 1).max().unwrap_or(0);
        if required > i64::try_from(self.dst.len()).unwrap() {
            return error(format!(
                "Insufficient destination DCP pages: required={required}, provided={}, \
                 src_page_offset={}, dcp_rank={}",
                self.dst.len(),
                self.offset,
                self.rank
            ));
        }
        Ok((own.into_iter().map(|i| self.target_pair(i)).unzip(), None))
    }

    fn indexed(&self) -> Answer {
        self.misaligned()?;
        let every: Vec<i64> = (0..self.count()).collect();
        let own = self.own();
        let q = |i: &i64| self.offset * self.page + i;
        let lookups = [
            (&self.src, own.iter().map(|i| i / self.page).collect::<Vec<_>>()),
            (&self.dst, own.iter().map(|i| q(i) / self.ranks / self.page).collect()),
            (&self.src, every.iter().map(|i| i / self.page).collect()),
            (&self.dst, every.iter().map(|i| q(i) / self.virtual_page()).collect()),
        ];
        for (list, indices) in lookups {
            let size = i64::try_from(list.len()).unwrap();
            if let Some(index) = indices.into_iter().find(|&index| index >= size) {
                let message = format!("index {index} is out of bounds for axis 0 with size {size}");
                return Err(("IndexError".to_owned(), message));
            }
        }
        let target = own.into_iter().map(|i| self.target_pair(i)).unzip();
        let draft = every.into_iter().map(|i| self.draft_pair(i)).unzip();
        Ok((target, Some(draft)))
    }
}

fn numbers(rows: &RowPairs) -> Pairs {
    let plain = |list: &[Row]| list.iter().map(|row| i64::from(row.0)).collect();
    (plain(&rows.src), plain(&rows.dst))
}

fn answer(verdict: Result<Plan, Refusal>) -> Answer {
    match verdict {
        Ok(plan) => Ok((numbers(&plan.target), plan.draft.as_ref().map(numbers))),
        Err(refusal) => Err((refusal.exception().to_owned(), refusal.to_string())),
    }
}

/// Distinct pages: neighbours, or in any order.
fn pages(count: usize) -> impl Strategy<Value = Vec<i64>> {
    let shuffled = Just((0..count as i64 + 6).collect::<Vec<_>>()).prop_shuffle();
    (any::<bool>(), 0i64..9, shuffled).prop_map(move |(neighbours, first, mut list)| {
        if neighbours {
            return (first..first + count as i64).collect();
        }
        list.truncate(count);
        list
    })
}

fn page_sizes() -> impl Strategy<Value = i64> {
    prop::sample::select(vec![1, 2, 3, 4, 5, 7, 8, 16, 64])
}

fn rank_counts() -> impl Strategy<Value = i64> {
    prop::sample::select(vec![1, 2, 3, 4, 5, 8, 16])
}

prop_compose! {
    /// A request with a destination list of one page only.
    fn pieces()(
        page in page_sizes(), ranks in rank_counts(), src_len in 0usize..14,
    )(
        page in Just(page), ranks in Just(ranks), src in pages(src_len),
        rank in 0..ranks, offset in 0i64..20, prefix_pages in 0i64..4,
        rest in prop_oneof![6 => Just(0), 1 => 0..page * ranks],
        tokens in prop_oneof![
            2 => Just(None),
            4 => (0..=src_len as i64 * page).prop_map(Some),
            1 => (-3..=(src_len as i64 + 2) * page + 3).prop_map(Some),
        ],
    ) -> Case {
        let prefix = prefix_pages * page * ranks + rest;
        Case { page, ranks, rank, offset, prefix, tokens, src, dst: vec![0] }
    }
}

prop_compose! {
    /// Mostly requests that nearly fit: the destination list is off by at most two pages.
    pub(crate) fn cases()(case in pieces(), spare in -2i64..3)(
        dst in pages({
            let end = case.offset * case.page + case.count();
            usize::try_from((end + case.virtual_page() - 1) / case.virtual_page() + spare).unwrap_or(0)
        }),
        case in Just(case),
    ) -> Case {
        Case { dst, ..case }
    }
}

fn planners() -> [&'static dyn Planner; 2] {
    [&Checked, &Indexed]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn both_revisions_answer_as_the_definition_does_token_by_token(case in cases()) {
        let input = PlanInput::try_from(&case.raw()).unwrap();
        prop_assert_eq!(answer(Checked.plan(&input)), case.checked());
        prop_assert_eq!(answer(Indexed.plan(&input)), case.indexed());
    }

    #[test]
    fn the_check_alone_and_the_compact_form_refuse_what_the_long_form_refuses(case in cases()) {
        let input = PlanInput::try_from(&case.raw()).unwrap();
        for planner in planners() {
            let long = planner.plan(&input);
            let verdict = long.as_ref().map(|_| ()).map_err(|refusal| *refusal);
            prop_assert_eq!(planner.check(&input), verdict);
            prop_assert_eq!(planner.plan_runs(&input).map(|_| ()), verdict);
            prop_assert_eq!(planner.draft_runs(&input).map(|_| ()), verdict);
        }
    }

    #[test]
    fn the_compact_form_expands_to_the_long_form_and_no_two_runs_could_be_one(case in cases()) {
        let input = PlanInput::try_from(&case.raw()).unwrap();
        for planner in planners() {
            let Ok(long) = planner.plan(&input) else { continue };
            let target = planner.plan_runs(&input).unwrap();
            let draft = planner.draft_runs(&input).unwrap();
            prop_assert_eq!(target.expand(), long.target);
            prop_assert_eq!(draft.as_ref().map(RunPlan::expand), long.draft);
            for plan in std::iter::once(&target).chain(&draft) {
                for pair in plan.runs.windows(2) {
                    let (src, dst) = pair[0].at(pair[0].len);
                    prop_assert!((src, dst) != (pair[1].src, pair[1].dst), "{:?}", pair);
                }
                prop_assert!(plan.runs.iter().all(|run| run.len > 0));
            }
        }
    }

    #[test]
    fn over_all_ranks_every_token_is_placed_once_on_a_row_of_its_own(case in cases()) {
        let input = PlanInput::try_from(&case.raw()).unwrap();
        let plans: Result<Vec<_>, _> = (0..input.layout().ranks())
            .map(|rank| Checked.plan(&input.for_rank(Rank(rank)).unwrap()))
            .collect();
        let Ok(plans) = plans else { return Ok(()) };
        let mut sent: Vec<Row> = plans.iter().flat_map(|plan| plan.target.src.clone()).collect();
        sent.sort_unstable();
        let mut piece: Vec<Row> = (0..case.count())
            .map(|i| Row(u32::try_from(case.target_pair(i).0).unwrap()))
            .collect();
        piece.sort_unstable();
        prop_assert_eq!(sent, piece);
        for plan in plans {
            let mut rows = plan.target.dst;
            let count = rows.len();
            rows.sort_unstable();
            rows.dedup();
            prop_assert_eq!(rows.len(), count);
        }
    }

    #[test]
    fn a_piece_cut_at_whole_pages_and_joined_is_the_piece(case in cases(), cut in 0usize..14) {
        let input = PlanInput::try_from(&case.raw()).unwrap();
        let cut = cut.min(case.src.len());
        let rows = case.page * i64::try_from(cut).unwrap();
        let head = Case {
            src: case.src[..cut].to_vec(),
            tokens: Some(case.count().min(rows)),
            ..case.clone()
        };
        let tail = Case {
            src: case.src[cut..].to_vec(),
            offset: case.offset + i64::try_from(cut).unwrap(),
            tokens: Some((case.count() - rows).max(0)),
            ..case.clone()
        };
        for planner in planners() {
            let Ok(whole) = planner.plan(&input) else { continue };
            if case.count() < 0 {
                continue;
            }
            let mut joined = (RowPairs::default(), RowPairs::default());
            for part in [&head, &tail] {
                let input = PlanInput::try_from(&part.raw()).unwrap();
                let plan = planner.plan(&input).unwrap();
                let draft = plan.draft.unwrap_or_default();
                for (all, new) in [(&mut joined.0, plan.target), (&mut joined.1, draft)] {
                    all.src.extend(new.src);
                    all.dst.extend(new.dst);
                }
            }
            prop_assert_eq!(joined.0, whole.target);
            prop_assert_eq!(joined.1, whole.draft.unwrap_or_default());
        }
    }

    #[test]
    fn rows_agree_with_the_layout_of_positions(case in cases()) {
        let input = PlanInput::try_from(&case.raw()).unwrap();
        let Ok(plan) = Checked.plan(&input) else { return Ok(()) };
        for (&i, &row) in case.own().iter().zip(&plan.target.dst) {
            let sent = Tokens(u32::try_from(case.offset * case.page + i).unwrap());
            let (rank, place) = input.layout().place(sent, input.dst_pages()).unwrap();
            prop_assert_eq!((rank, place), (input.rank(), row));
        }
    }

    #[test]
    fn numbers_at_the_edge_of_their_types_are_answered_or_refused_without_a_panic(
        page in 0u32..=u32::MAX, ranks in 0u32..9, rank in 0u32..9, offset: u32, prefix: u32,
        tokens: Option<i64>, src: u32, dst: u32,
    ) {
        let Ok(layout) = Layout::striped(page, ranks) else { return Ok(()) };
        let piece = Piece {
            src_page_offset: Pages(offset),
            decode_prefix_len: Tokens(prefix),
            num_kv_tokens: tokens,
        };
        for (src, dst) in [(src, dst), (0, 0)] {
            let (src, dst) = ([PageId(src)], [PageId(dst)]);
            let Ok(input) = PlanInput::new(layout, Rank(rank), piece, &src, &dst) else { continue };
            for planner in planners() {
                let verdict = planner.check(&input);
                prop_assert_eq!(planner.plan_runs(&input).map(|_| ()), verdict);
            }
        }
    }
}
