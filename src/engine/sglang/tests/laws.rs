//! Laws of both revisions, against the definition written token by token.

use proptest::prelude::*;

use super::*;
use crate::layout::Layout;
use crate::planner::descriptors::DescriptorCount;
use crate::planner::*;
use crate::reference::planner::{Case, check};
use crate::units::{PageId, Pages, Rank, Row, Tokens};

/// The request as a file has it.
pub(crate) fn raw(case: &Case) -> RawInput {
    let plain = |list: &[PageId]| list.iter().map(|page| i64::from(page.0)).collect();
    RawInput {
        page_size: case.page.into(),
        dcp_size: case.ranks.into(),
        dcp_rank: case.rank.into(),
        src_page_offset: case.offset.into(),
        decode_prefix_len: case.prefix.into(),
        num_kv_tokens: case.tokens,
        src_pages: plain(&case.src),
        dst_pages: plain(&case.dst),
    }
}

/// The exception of a refusal of this request, and its message.
fn said(case: &Case, refusal: &Refusal) -> (&'static str, String) {
    match refusal {
        Refusal::Misaligned { .. } => (
            "ValueError",
            format!(
                "PD DCP transfer requires decode_prefix_len to align to the virtual DCP page \
                 size ({}), got {}",
                case.virtual_page(),
                case.prefix
            ),
        ),
        Refusal::Source { .. } => (
            "ValueError",
            format!(
                "num_kv_tokens must fit in the provided source pages, got tokens={}, capacity={}",
                case.count(),
                case.capacity()
            ),
        ),
        Refusal::Shortage { required, .. } => (
            "ValueError",
            format!(
                "Insufficient destination DCP pages: required={required}, provided={}, \
                 src_page_offset={}, dcp_rank={}",
                case.dst.len(),
                case.offset,
                case.rank
            ),
        ),
        Refusal::Index { index, size, .. } => {
            ("IndexError", format!("index {index} is out of bounds for axis 0 with size {size}"))
        }
    }
}

/// Distinct pages: neighbours, or in any order.
fn pages(count: u32) -> impl Strategy<Value = Vec<PageId>> {
    let shuffled = Just((0..count + 6).map(PageId).collect::<Vec<_>>()).prop_shuffle();
    (any::<bool>(), 0u32..9, shuffled).prop_map(move |(neighbours, first, mut list)| {
        if neighbours {
            return (first..first + count).map(PageId).collect();
        }
        list.truncate(count as usize);
        list
    })
}

fn page_sizes() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![1, 2, 3, 4, 5, 7, 8, 16, 64])
}

fn rank_counts() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![1, 2, 3, 4, 5, 8, 16])
}

prop_compose! {
    /// A request with a destination list of one page only.
    fn pieces()(
        page in page_sizes(), ranks in rank_counts(), src_len in 0u32..14,
    )(
        page in Just(page), ranks in Just(ranks), src in pages(src_len),
        rank in 0..ranks, offset in 0u32..20, prefix_pages in 0u32..4,
        rest in prop_oneof![6 => Just(0), 1 => 0..page * ranks],
        tokens in prop_oneof![
            2 => Just(None),
            4 => (0..=i64::from(src_len * page)).prop_map(Some),
            1 => (-3..=i64::from((src_len + 2) * page + 3)).prop_map(Some),
        ],
    ) -> Case {
        let prefix = prefix_pages * page * ranks + rest;
        Case { page, ranks, rank, offset, prefix, tokens, src, dst: vec![PageId(0)] }
    }
}

prop_compose! {
    /// Mostly requests that nearly fit: the destination list is off by at most two pages.
    pub(crate) fn cases()(case in pieces(), spare in -2i64..3)(
        dst in pages({
            let end = i64::from(case.offset * case.page) + case.count();
            let page = i64::from(case.virtual_page());
            u32::try_from((end + page - 1) / page + spare).unwrap_or(0)
        }),
        case in Just(case),
    ) -> Case {
        Case { dst, ..case }
    }
}

fn planners() -> [&'static dyn Planner; 2] {
    [&Checked, &Indexed]
}

/// Whether no rank is refused; then the piece for all ranks must say for each what the plan of that
/// rank alone says.
///
/// # Panics
/// Where it says something else.
fn piece_is_its_shares(case: &Case) -> bool {
    let input = case.input();
    let mut is_planned = false;
    for planner in planners() {
        let alone: Result<Vec<_>, _> = input
            .layout()
            .each_rank()
            .map(|rank| planner.plan_runs(&input.for_rank(rank).unwrap()).map(|runs| (rank, runs)))
            .collect();
        let Ok(alone) = alone else { continue };
        is_planned = true;
        let piece = planner.plan_piece(&input).expect("both revisions lay out whole pieces");
        for (rank, runs) in alone {
            let share = piece.share(rank);
            assert_eq!(piece.runs(rank), runs, "runs: {rank} of {case:?}");
            assert_eq!(u64::from(share.count), runs.tokens(), "tokens: {rank} of {case:?}");
            assert_eq!(share.pages, written(case, &runs), "pages: {rank} of {case:?}");
            if let Some(run) = runs.runs.first() {
                assert_eq!(share.offset, run.dst.0 % case.page, "first row: {rank} of {case:?}");
                assert_eq!(case.source_row(share.first), run.src.0, "first: {rank} of {case:?}");
            }
            let count = DescriptorCount::of_runs(&runs);
            assert_eq!(piece.descriptors(rank), count, "descriptors: {rank} of {case:?}");
        }
    }
    is_planned
}

/// The pages that runs write, in order, each once.
fn written(case: &Case, runs: &RunPlan) -> Vec<PageId> {
    let mut pages: Vec<PageId> =
        runs.expand().dst.into_iter().map(|row| PageId(row.0 / case.page)).collect();
    pages.dedup();
    pages
}

/// Every order of the first `count` pages.
fn orders(count: u32) -> Vec<Vec<PageId>> {
    let Some(last) = count.checked_sub(1) else { return vec![Vec::new()] };
    let shorter = orders(last).into_iter();
    shorter
        .flat_map(|order| {
            (0..count as usize).map(move |at| {
                let mut longer = order.clone();
                longer.insert(at, PageId(last));
                longer
            })
        })
        .collect()
}

/// Among them pieces whose source jumps back by N - 1 rows, pages of fewer rows than ranks, so that
/// a stretch of the source skips a rank, a single rank, and first and last pages that are not full.
#[test]
fn every_small_piece_says_for_each_rank_what_the_plan_of_that_rank_says() {
    let mut planned = 0;
    for (page, ranks) in [(1, 1), (1, 3), (1, 4), (2, 1), (2, 3), (2, 5), (3, 2), (3, 4), (4, 2)] {
        for (src, offset, prefix) in orders(4)
            .into_iter()
            .flat_map(|src| (0..6).map(move |at| (src.clone(), at / 2, at % 2 * page * ranks)))
        {
            let up: Vec<PageId> = (2..12).map(PageId).collect();
            let down: Vec<PageId> = up.iter().rev().copied().collect();
            for tokens in 0..=i64::from(4 * page) {
                for dst in [&up, &down] {
                    let (src, dst, tokens) = (src.clone(), dst.clone(), Some(tokens));
                    let case = Case { page, ranks, rank: 0, offset, prefix, tokens, src, dst };
                    planned += u32::from(piece_is_its_shares(&case));
                }
            }
        }
    }
    assert!(planned > 20_000, "only {planned} pieces were planned");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_piece_says_for_each_rank_what_the_plan_of_that_rank_says(
        case in cases(), backwards: bool,
    ) {
        let mut case = case;
        if backwards {
            case.src.reverse();
        }
        piece_is_its_shares(&case);
    }

    #[test]
    fn both_revisions_answer_as_the_definition_does_token_by_token(case in cases()) {
        check(&case);
    }

    #[test]
    fn a_refusal_says_what_the_exception_of_the_engine_says(case in cases()) {
        let input = PlanInput::try_from(&raw(&case)).unwrap();
        for refusal in planners().into_iter().filter_map(|planner| planner.plan(&input).err()) {
            prop_assert_eq!((refusal.exception(), refusal.to_string()), said(&case, &refusal));
        }
    }

    #[test]
    fn over_all_ranks_every_token_is_placed_once_on_a_row_of_its_own(case in cases()) {
        let input = PlanInput::try_from(&raw(&case)).unwrap();
        let plans: Result<Vec<_>, _> = (0..input.layout().ranks())
            .map(|rank| Checked.plan(&input.for_rank(Rank(rank)).unwrap()))
            .collect();
        let Ok(plans) = plans else { return Ok(()) };
        let mut sent: Vec<Row> = plans.iter().flat_map(|plan| plan.target.src.clone()).collect();
        sent.sort_unstable();
        let mut piece: Vec<Row> = (0..case.count())
            .map(|i| Row(case.source_row(u32::try_from(i).unwrap())))
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
        let input = PlanInput::try_from(&raw(&case)).unwrap();
        let cut = cut.min(case.src.len());
        let rows = i64::from(case.page) * i64::try_from(cut).unwrap();
        let head = Case {
            src: case.src[..cut].to_vec(),
            tokens: Some(case.count().min(rows)),
            ..case.clone()
        };
        let tail = Case {
            src: case.src[cut..].to_vec(),
            offset: case.offset + u32::try_from(cut).unwrap(),
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
                let input = PlanInput::try_from(&raw(part)).unwrap();
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
        let input = PlanInput::try_from(&raw(&case)).unwrap();
        let Ok(plan) = Checked.plan(&input) else { return Ok(()) };
        for (i, &row) in case.share(case.rank).zip(&plan.target.dst) {
            let sent = Tokens(case.offset * case.page + i);
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
