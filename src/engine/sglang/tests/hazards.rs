//! The hazards of `sims/hazards` that a planner alone can show, by number: the smallest numbers of
//! each, and what is right.

use super::*;
use crate::layout::Layout;
use crate::planner::*;
use crate::units::{PageId, Pages, Rank, Row, Tokens};

/// P, N, S, off and n of one request.
#[derive(Clone, Copy)]
struct Request {
    page: u32,
    ranks: u32,
    prefix: u32,
    offset: u32,
    tokens: i64,
}

impl Request {
    /// What `planner` answers for `rank`.
    fn plan(
        self,
        planner: &dyn Planner,
        rank: u32,
        src: &[u32],
        dst: &[u32],
    ) -> Result<Plan, Refusal> {
        let src: Vec<PageId> = src.iter().copied().map(PageId).collect();
        let dst: Vec<PageId> = dst.iter().copied().map(PageId).collect();
        let layout = Layout::striped(self.page, self.ranks).unwrap();
        let piece = Piece {
            src_page_offset: Pages(self.offset),
            decode_prefix_len: Tokens(self.prefix),
            num_kv_tokens: Some(self.tokens),
        };
        let input = PlanInput::new(layout, Rank(rank), piece, &src, &dst).unwrap();
        planner.plan(&input)
    }

    fn target(self, rank: u32, src: &[u32], dst: &[u32]) -> Vec<(u32, u32)> {
        pairs(&self.plan(&Checked, rank, src, dst).unwrap().target)
    }

    fn draft(self, rank: u32, src: &[u32], dst: &[u32]) -> Vec<(u32, u32)> {
        pairs(&self.plan(&Indexed, rank, src, dst).unwrap().draft.unwrap())
    }
}

fn pairs(rows: &RowPairs) -> Vec<(u32, u32)> {
    rows.src.iter().zip(&rows.dst).map(|(src, dst)| (src.0, dst.0)).collect()
}

fn shortage(required: u64, provided: u32, src_page_offset: u32, dcp_rank: u32) -> Refusal {
    Refusal::Shortage {
        required,
        provided: Pages(provided),
        src_page_offset: Pages(src_page_offset),
        dcp_rank: Rank(dcp_rank),
    }
}

#[test]
fn h01_a_second_chunk_needs_the_whole_destination_list() {
    let second = Request { page: 2, ranks: 2, prefix: 0, offset: 2, tokens: 3 };
    assert_eq!(second.target(0, &[7, 8], &[5, 6]), [(14, 12), (16, 13)]);
    assert_eq!(second.target(1, &[7, 8], &[5, 6]), [(15, 12)]);
    for rank in 0..2 {
        let sliced = second.plan(&Checked, rank, &[7, 8], &[]);
        assert_eq!(sliced, Err(shortage(2, 0, 2, rank)));
    }
}

#[test]
fn h01_a_slice_by_physical_pages_leaves_a_long_second_chunk_nothing() {
    let chunk = Request { page: 64, ranks: 8, prefix: 0, offset: 512, tokens: 51_953 - 32_768 };
    let src: Vec<u32> = (513..=812).collect();
    let dst: Vec<u32> = (1..=102).collect();
    let rows: usize = (0..8).map(|rank| chunk.target(rank, &src, &dst).len()).sum();
    assert_eq!(rows, 19_185);
    for rank in 0..8 {
        let sliced = chunk.plan(&Checked, rank, &src, &[]);
        assert!(matches!(sliced, Err(Refusal::Shortage { provided: Pages(0), .. })));
    }
}

#[test]
fn h02_pages_are_laid_out_anew_and_not_paired() {
    let whole = Request { page: 2, ranks: 2, prefix: 0, offset: 0, tokens: 4 };
    assert_eq!(whole.target(0, &[3, 1], &[5]), [(6, 10), (2, 11)]);
    assert_eq!(whole.target(1, &[3, 1], &[5]), [(7, 10), (3, 11)]);
    // Equally long lists, where pairing pages looks right.
    let half = Request { tokens: 2, ..whole };
    assert_eq!(half.target(0, &[3], &[5]), [(6, 10)]);
    assert_eq!(half.target(1, &[3], &[5]), [(7, 10)]);
}

#[test]
fn h03_an_early_piece_and_the_rest_join_to_the_unsplit_plan() {
    let early = Request { page: 2, ranks: 2, prefix: 0, offset: 0, tokens: 4 };
    let rest = Request { offset: 2, tokens: 3, ..early };
    let unsplit = Request { tokens: 7, ..early };
    let dst = [10, 11];
    for (rank, rows) in [(0, vec![20, 21, 22, 23]), (1, vec![20, 21, 22])] {
        let mut joined = early.target(rank, &[1, 2], &dst);
        joined.extend(rest.target(rank, &[3, 4], &dst));
        assert_eq!(joined, unsplit.target(rank, &[1, 2, 3, 4], &dst));
        assert_eq!(joined.iter().map(|pair| pair.1).collect::<Vec<_>>(), rows);
        // The rest replayed at the start of the list lands on the rows of the early piece.
        let replayed = Request { offset: 0, ..rest }.target(rank, &[3, 4], &dst);
        assert_eq!(replayed[0].1, 20);
    }
}

#[test]
fn h05_a_prefix_on_a_physical_page_only_is_refused() {
    let request = Request { page: 64, ranks: 4, prefix: 320, offset: 0, tokens: 1 };
    for planner in [&Checked as &dyn Planner, &Indexed] {
        let refusal = request.plan(planner, 0, &[1], &[1]).unwrap_err();
        let expected = "PD DCP transfer requires decode_prefix_len to align to the virtual DCP \
                        page size (256), got 320";
        assert_eq!((refusal.exception(), refusal.to_string().as_str()), ("ValueError", expected));
    }
}

#[test]
fn h07_a_full_hit_plans_nothing_and_one_token_more_reaches_one_rank() {
    let full = Request { page: 4, ranks: 2, prefix: 8, offset: 0, tokens: 0 };
    let more = Request { tokens: 1, ..full };
    for rank in 0..2 {
        assert_eq!(full.target(rank, &[], &[]), []);
        assert_eq!(full.draft(rank, &[], &[]), []);
    }
    assert_eq!(more.target(0, &[3], &[6]), [(12, 24)]);
    assert_eq!(more.target(1, &[3], &[6]), []);
}

#[test]
fn h09_the_offset_counts_pages_sent_since_the_prefix() {
    let first = Request { page: 2, ranks: 2, prefix: 4, offset: 0, tokens: 4 };
    let second = Request { offset: 2, ..first };
    let unsplit = Request { tokens: 8, ..first };
    let (src, dst) = ([5, 6, 7, 8], [10, 11]);
    for rank in 0..2 {
        let mut joined = first.target(rank, &src[..2], &dst);
        joined.extend(second.target(rank, &src[2..], &dst));
        assert_eq!(joined, unsplit.target(rank, &src, &dst));
        // Counted from this chunk, the second piece overwrites the first.
        let own = Request { offset: 0, ..second }.target(rank, &src[2..], &dst);
        assert_eq!(own.iter().map(|pair| pair.1).collect::<Vec<_>>(), [20, 21]);
        // Counted from position 0, it runs past the list.
        let absolute = Request { offset: 4, ..second };
        assert_eq!(absolute.plan(&Checked, rank, &src[2..], &dst), Err(shortage(3, 2, 4, rank)));
    }
}

#[test]
fn h10_one_rank_can_be_short_while_another_is_content() {
    let nine = Request { page: 4, ranks: 2, prefix: 0, offset: 0, tokens: 9 };
    let ten = Request { tokens: 10, ..nine };
    let src = [1, 2, 3];
    assert_eq!(nine.plan(&Checked, 0, &src, &[1]), Err(shortage(2, 1, 0, 0)));
    assert_eq!(nine.target(1, &src, &[1]).len(), 4);
    assert_eq!(ten.plan(&Checked, 0, &src, &[1]), Err(shortage(2, 1, 0, 0)));
    assert_eq!(ten.plan(&Checked, 1, &src, &[1]), Err(shortage(2, 1, 0, 1)));
    let lists = [IndexedList::Destination, IndexedList::DraftDestination];
    for (rank, list) in (0..2).zip(lists) {
        let refusal = Refusal::Index { index: 1, size: Pages(1), list };
        assert_eq!(nine.plan(&Indexed, rank, &src, &[1]), Err(refusal));
        assert_eq!(refusal.to_string(), "index 1 is out of bounds for axis 0 with size 1");
    }
}

#[test]
fn h14_draft_rows_are_every_position_on_every_rank() {
    let whole = Request { page: 2, ranks: 4, prefix: 0, offset: 0, tokens: 8 };
    for rank in 0..4 {
        let target = whole.target(rank, &[5, 2, 11, 4], &[7]);
        assert_eq!(target.iter().map(|pair| pair.1).collect::<Vec<_>>(), [14, 15]);
        let draft = whole.draft(rank, &[5, 2, 11, 4], &[7]);
        let rows: Vec<u32> = draft.iter().map(|pair| pair.1).collect();
        assert_eq!(rows, (56..=63).collect::<Vec<_>>());
    }
    let second = Request { page: 2, ranks: 2, prefix: 4, offset: 1, tokens: 4 };
    assert_eq!(second.target(0, &[9, 3], &[4, 6]), [(18, 9), (6, 12)]);
    assert_eq!(second.target(1, &[9, 3], &[4, 6]), [(19, 9), (7, 12)]);
    let third = Request { offset: 2, ..second };
    for rank in 0..2 {
        let draft = second.draft(rank, &[9, 3], &[4, 6]);
        assert_eq!(draft, [(18, 18), (19, 19), (6, 24), (7, 25)]);
        let rows: Vec<u32> = third.draft(rank, &[9, 3], &[4, 6]).iter().map(|p| p.1).collect();
        assert_eq!(rows, [24, 25, 26, 27]);
    }
}

#[test]
fn h15_ranks_that_do_not_divide_the_page_place_every_token_once() {
    let request = Request { page: 64, ranks: 3, prefix: 192, offset: 0, tokens: 400 };
    let src: Vec<u32> = (1..=7).collect();
    let mut rows: Vec<u32> =
        (0..3).flat_map(|rank| request.target(rank, &src, &[4, 9, 2])).map(|pair| pair.0).collect();
    rows.sort_unstable();
    assert_eq!(rows, (64..464).collect::<Vec<_>>());
    assert_eq!(request.target(0, &src, &[4, 9, 2])[..2], [(64, 256), (67, 257)]);
}

#[test]
fn a_padded_prefix_past_the_end_is_refused_by_one_revision_and_empty_in_the_other() {
    let padded = Request { page: 16, ranks: 4, prefix: 128, offset: 0, tokens: -28 };
    let refusal = Refusal::Source { tokens: -28, capacity: 0 };
    assert_eq!(padded.plan(&Checked, 0, &[], &[]), Err(refusal));
    let empty = padded.plan(&Indexed, 0, &[], &[]).unwrap();
    assert_eq!(empty.target.dst, Vec::<Row>::new());
    assert_eq!(empty.draft, Some(RowPairs::default()));
}

#[test]
fn h02_pages_paired_without_the_relayout_put_every_rank_s_rows_side_by_side() {
    let untranslated = |tokens: i64, src: &[u32], dst: &[u32]| {
        let src: Vec<PageId> = src.iter().copied().map(PageId).collect();
        let dst: Vec<PageId> = dst.iter().copied().map(PageId).collect();
        let piece = Piece {
            src_page_offset: Pages(0),
            decode_prefix_len: Tokens(0),
            num_kv_tokens: Some(tokens),
        };
        let layout = Layout::striped(2, 2).unwrap();
        let input = PlanInput::new(layout, Rank(1), piece, &src, &dst).unwrap();
        pairs(&untranslated::page_by_page(&input).expand())
    };
    // Right for rank 1: 7 to 10 and 3 to 11. The second source page finds no destination page.
    assert_eq!(untranslated(4, &[3, 1], &[5]), [(6, 10), (7, 11)]);
    // Right for rank 1: 7 to 10. The lists are equally long, and nothing is dropped.
    assert_eq!(untranslated(2, &[3], &[5]), [(6, 10), (7, 11)]);
    assert_eq!(untranslated(1, &[3], &[5]), [(6, 10)]);
    // A whole page and the first row of the next.
    assert_eq!(untranslated(3, &[3, 1], &[5, 4]), [(6, 10), (7, 11), (2, 8)]);
    assert_eq!(untranslated(-3, &[3], &[5]), []);
}

#[test]
fn h17_a_virtual_row_is_local_only_by_its_number() {
    // Page 5 of 2 ranks and 2 rows begins at virtual row 20, which is local row 10 of rank 0.
    let layout = Layout::striped(2, 2).unwrap();
    let run = RowRun { src: Row(8), src_step: 2, dst: Row(10), len: 2 };
    let plan = RunPlan { runs: vec![run] };
    let rows = |rank| pairs(&untranslated::virtual_rows(&plan, layout, Rank(rank)).expand());
    assert_eq!(rows(0), [(8, 20), (10, 22)]);
    assert_eq!(rows(1), [(8, 21), (10, 23)]);
}
