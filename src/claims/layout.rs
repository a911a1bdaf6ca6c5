//! Layout: position to (rank, row) is a bijection for every page size, rank count and interleave.

use crate::layout::Layout;
use crate::scenario::generate::Choices;
use crate::units::{PageId, Rank, Tokens};

/// One step of an induction: at a drawn length, the next position goes to exactly one rank, as that
/// rank's next row, and is found from there again. With no rows at length 0, positions and rows are
/// a bijection.
pub fn places_every_position_once(choices: &mut impl Choices) {
    let interleave = choices.within(1..=32);
    let page = interleave * choices.within(1..=8);
    let ranks = choices.within(1..=64);
    let layout = Layout::new(page, ranks, interleave).expect("the interleave divides the page");
    let bound = match choices.chance(1, 2) {
        true => page * ranks * 3,
        false => u32::MAX,
    };
    let position = Tokens(choices.within(0..=bound - 1));
    let rows =
        |length: Tokens| layout.each_rank().map(move |rank| layout.rows_of_rank(rank, length));

    let (owner, local) = (layout.owner(position), layout.local_index(position));
    let (before, after) = (rows(position), rows(position + Tokens(1)));
    for ((rank, before), after) in (0..).map(Rank).zip(before).zip(after) {
        let expected = before + u32::from(rank == owner);
        assert_eq!(after, expected, "{layout:?}: rank {rank} at {position}");
        if rank == owner {
            assert_eq!(local, before, "{layout:?}: the next row of rank {rank} at {position}");
        }
    }
    assert_eq!(rows(position).map(u64::from).sum::<u64>(), u64::from(position.0), "{layout:?}");
    assert_eq!(rows(Tokens(0)).sum::<u32>(), 0, "{layout:?}");
    assert_eq!(layout.position(owner, local), Some(position), "{layout:?}: and back");

    let ordinal = position.0 / (page * ranks);
    assert_eq!(layout.pages_needed(position + Tokens(1)).0, ordinal + 1, "{layout:?}: {position}");
    if ordinal < 8 {
        let table: Vec<PageId> = (0..8).map(|at| PageId(100 - at)).collect();
        let row = (100 - ordinal) * page + local % page;
        let placed = layout.place(position, &table).map(|(rank, row)| (rank, row.0));
        assert_eq!(placed, Some((owner, row)), "{layout:?}: {position} in {table:?}");
    }
}
