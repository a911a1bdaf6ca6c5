//! Copies on a link that nothing else moves.

use super::super::tests::fixture::{Parts, requests, scenario};
use super::*;
use crate::planner::RowRun;
use crate::units::{RequestId, Row};

/// Queues a part of `rows` rows, from page 1 to page 1.
fn queue(parts: &mut Parts<'_>, rank: u32, rows: u32, last: bool) -> bool {
    let part = Part { request: RequestId(0), attempt: 0, piece: 0, rank: Rank(rank), last };
    let run = RowRun { src: Row(4), src_step: 1, dst: Row(4), len: rows };
    let runs = if rows == 0 { Vec::new() } else { vec![run] };
    let rows = PartRows::Own(RunPlan { runs });
    let plan = RankPlan { rows, draft: RunPlan::default() };
    let store = &parts.prefill.store;
    parts.link.queue_copy(part, plan, &[PageId(1)], store, &mut parts.cx)
}

/// The rank of the copy that is through, if it lands now.
fn serve(parts: &mut Parts<'_>) -> Option<u32> {
    let copy = parts.link.copy_served(&parts.prefill.store, &mut parts.cx)?;
    assert!(copy.writes.is_some(), "it has read its source");
    Some(copy.part.rank.0)
}

/// Four rows of 61 · 1,152 bytes take 12 ticks at 25,000 bytes a tick, and 50 ticks any copy.
const SERVED: (Tick, Timer) = (Tick(50 + 12), Timer::CopyServed { link: 0 });

#[test]
fn copies_are_served_in_turn_each_for_its_rows() {
    let scenario = scenario("", &[(1, 8, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let request = parts.arrive();
    parts.compute(request);
    while parts.cx.queue.next().is_some() {}
    assert!(queue(&mut parts, 0, 4, true) && queue(&mut parts, 1, 4, true));
    assert_eq!(parts.cx.queue.next(), Some(SERVED));
    assert_eq!(parts.cx.queue.next(), None, "the second waits for the first");
    assert_eq!(serve(&mut parts), Some(0));
    assert_eq!(parts.cx.queue.next(), Some(SERVED));
    assert_eq!(serve(&mut parts), Some(1));
    assert_eq!(parts.cx.queue.next(), None);
}

#[test]
fn an_empty_last_part_goes_out_unless_it_is_dropped() {
    for (empty_last, is_queued) in [("sent", true), ("dropped", false)] {
        let text = format!("behaviour = {{ empty_last = \"{empty_last}\" }}");
        let scenario = scenario(&text, &[(1, 8, 1)]);
        let requests = requests(&scenario);
        let mut parts = Parts::new(&scenario, &requests);
        let request = parts.arrive();
        parts.compute(request);
        assert_eq!(queue(&mut parts, 0, 0, true), is_queued, "{empty_last}");
    }
}

#[test]
fn every_second_copy_lands_later_if_the_link_says_so() {
    let text = "link = { delay_every = 2, delay_ticks = 7 }";
    let scenario = scenario(text, &[(1, 8, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let request = parts.arrive();
    parts.compute(request);
    queue(&mut parts, 0, 4, true);
    queue(&mut parts, 1, 4, true);
    while parts.cx.queue.next().is_some() {}
    assert_eq!(serve(&mut parts), Some(0));
    assert_eq!(parts.cx.queue.next(), Some(SERVED));
    assert_eq!(serve(&mut parts), None);
    let later = (Tick(7), Timer::CopyLands { link: 0, served: 2 });
    assert_eq!(parts.cx.queue.next(), Some(later));
    assert_eq!(parts.link.take_delayed(2).part.rank, Rank(1));
}
