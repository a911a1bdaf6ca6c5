//! The transitions of a decode server, each called by itself.

use super::super::handoff::{PartId, Signal};
use super::super::queue::Timer;
use super::super::tests::fixture::{Parts, requests, scenario};
use super::ending::AfterAbort;
use super::step::Victim;
use super::*;
use crate::units::{Rank, Tick};

impl Decode {
    /// Requests that generate output.
    pub(in crate::world) fn running(&self) -> &[RequestId] {
        &self.running
    }

    /// The page table of a request that holds pages.
    pub(in crate::world) fn table(&self, request: RequestId) -> &[PageId] {
        &self.requests[request].target().table
    }
}

/// Reserves for the request, and lets its transfer be complete.
fn activate(parts: &mut Parts<'_>, request: RequestId) {
    parts.reserve(request);
    for rank in [0, 1] {
        let part = PartId { piece: 0, rank: Rank(rank), last: true };
        parts.tell(request, Signal::PartLanded(part));
    }
    parts.decode.landed(request, &mut parts.cx);
}

/// Lets a step go by in which nobody has to be retracted.
fn step(parts: &mut Parts<'_>) {
    assert_eq!(parts.decode.begin_step(&mut parts.cx), None);
    assert_eq!(parts.decode.end_step(&mut parts.cx), None);
}

fn free(parts: &Parts<'_>) -> u32 {
    parts.decode.store.pool.available().0
}

#[test]
fn a_reservation_takes_a_page_for_every_v_tokens_and_tells_all_of_them() {
    let scenario = scenario("", &[(1, 17, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let request = parts.arrive();
    let to = parts.reserve(request);
    assert_eq!((to.length, to.prefix), (Tokens(17), Tokens(0)));
    assert_eq!((to.pages.len(), free(&parts)), (3, 1));
    assert_eq!(parts.decode.table(request), to.pages);
    assert_eq!(parts.decode.requests[request].status, Status::Transferring);
}

#[test]
fn whoever_finds_no_room_waits_and_those_behind_it_wait_too() {
    let scenario = scenario("", &[(1, 17, 1), (2, 9, 1), (3, 8, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let all = [parts.arrive(), parts.arrive(), parts.arrive()];
    parts.reserve(all[0]);
    for request in &all[1..] {
        parts.decode.wait(*request, &mut parts.cx);
    }
    // One page is free: enough for the third, but the second comes first.
    assert_eq!(parts.decode.admit(&mut parts.cx, &mut parts.transfers), []);
    assert_eq!(parts.decode.waiting, [all[1], all[2]]);
    parts.decode.release(all[0], &mut parts.cx);
    assert_eq!(free(&parts), 4);
    let made = parts.decode.admit(&mut parts.cx, &mut parts.transfers);
    assert_eq!(made.iter().map(|made| made.request).collect::<Vec<_>>(), all[1..]);
}

#[test]
fn tokens_are_kept_back_for_the_growth_of_each_request() {
    let text = "decode = { pages = 4, reserved_tokens = 8 }";
    let scenario = scenario(text, &[(1, 16, 1), (2, 8, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let (first, second) = (parts.arrive(), parts.arrive());
    parts.reserve(first);
    // Two pages are free, a page is asked for, and a page each is kept back for both requests.
    parts.decode.wait(second, &mut parts.cx);
    assert_eq!(parts.decode.admit(&mut parts.cx, &mut parts.transfers), []);
}

#[test]
fn a_finished_request_leaves_its_full_pages_to_whoever_has_the_same_prompt() {
    let scenario = scenario("", &[(1, 17, 1), (1, 20, 2)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let (first, second) = (parts.arrive(), parts.arrive());
    // Its only output token comes from prefill: it finishes as it is activated.
    activate(&mut parts, first);
    assert_eq!(parts.decode.running(), []);
    assert_eq!(parts.decode.requests[first].status, Status::Ended);
    assert_eq!(free(&parts), 2);
    let to = parts.reserve(second);
    assert_eq!(to.prefix, Tokens(16));
    assert_eq!(to.pages, parts.decode.table(second)[2..]);
    let cache = parts.decode.store.cache.as_ref().unwrap();
    assert_eq!((cache.protected(), free(&parts)), (Pages(2), 1));
}

#[test]
fn a_step_opens_a_page_when_the_token_needs_one_and_writes_one_row() {
    let scenario = scenario("", &[(1, 15, 4)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let request = parts.arrive();
    activate(&mut parts, request);
    assert_eq!(free(&parts), 2);
    step(&mut parts);
    let due = Timer::DecodeStepEnds { server: 0 };
    assert_eq!(parts.cx.queue.next(), Some((Tick(20_020), due)));
    assert_eq!((parts.decode.table(request).len(), free(&parts)), (2, 2));
    step(&mut parts);
    // Position 16 is the first of the third virtual page, on rank 0.
    let page = parts.decode.table(request)[2];
    parts.decode.catch_up_pages([page], &parts.cx.setup);
    let stamp = parts.decode.store.memory[0].row(page, 0).unwrap();
    assert_eq!((stamp.position, stamp.writer), (Tokens(16), request));
    assert_eq!(stamp.written, parts.cx.now(), "at the end of its own step");
    // The fourth token is known with the third step, and needs no row.
    step(&mut parts);
    assert_eq!(parts.decode.requests[request].status, Status::Ended);
    assert_eq!(parts.decode.store.room(), Pages(4));
}

#[test]
fn the_one_with_the_least_output_is_retracted_and_brings_its_rows_back() {
    let scenario = scenario("", &[(1, 15, 9), (2, 16, 9)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let (first, second) = (parts.arrive(), parts.arrive());
    activate(&mut parts, first);
    step(&mut parts);
    activate(&mut parts, second);
    // Both are about to open a page, and none is free.
    assert_eq!(parts.decode.begin_step(&mut parts.cx), Some(Victim::Retracted(second)));
    assert_eq!(parts.decode.retract(second, &parts.cx.setup), None);
    parts.decode.leave_retracted(second, &mut parts.cx);
    assert_eq!(parts.decode.begin_step(&mut parts.cx), None);
    assert_eq!((parts.decode.running(), free(&parts)), (&[first][..], 1));
    assert_eq!(parts.decode.retracted, [second]);
    // It comes back only with the page that its next token opens.
    parts.decode.admit(&mut parts.cx, &mut parts.transfers);
    assert_eq!(parts.decode.retracted, [second]);
    parts.decode.end_step(&mut parts.cx);
    let target = parts.decode.take_running(first, &parts.cx.setup);
    parts.decode.leave_running(first, &target, target.own(), &mut parts.cx);
    assert_eq!(parts.decode.admit(&mut parts.cx, &mut parts.transfers), []);
    assert_eq!(parts.decode.running(), [second]);
    assert_eq!(parts.decode.table(second).len(), 3);
}

#[test]
fn without_a_host_copy_a_retraction_stops_the_old_transfer_and_asks_for_the_output_too() {
    let text = "behaviour = { retraction = \"send_again\" }";
    let scenario = scenario(text, &[(1, 15, 9)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let request = parts.arrive();
    activate(&mut parts, request);
    step(&mut parts);
    let told = parts.decode.retract(request, &parts.cx.setup);
    assert_eq!(told, Some(Signal::Aborted));
    parts.decode.leave_retracted(request, &mut parts.cx);
    let made = parts.decode.admit(&mut parts.cx, &mut parts.transfers).remove(0);
    // 16 positions were stored, and one more token was known.
    assert_eq!(made.destination.length, Tokens(17));
    assert_eq!(parts.transfers[request].attempt(), 1);
}

#[test]
fn what_follows_an_abort_depends_on_where_the_request_stands() {
    let text = "faults = [{ abort = { request = 0 } }]";
    let scenario = scenario(text, &[(1, 15, 9)]);
    let requests = requests(&scenario);
    let after = |prepare: fn(&mut Parts<'_>, RequestId)| {
        let mut parts = Parts::new(&scenario, &requests);
        let request = parts.arrive();
        prepare(&mut parts, request);
        assert_eq!(parts.cx.faults.idle(), [0]);
        let transfer = &parts.transfers[request];
        let after = parts.decode.abort(request, 0, transfer, &mut parts.cx);
        (after, parts.cx.faults.idle().len(), parts.decode.waiting.len())
    };
    let waiting = after(|parts, request| parts.decode.wait(request, &mut parts.cx));
    assert_eq!(waiting, (AfterAbort::TellTransfer, 0, 0));
    let reserved = after(|parts, request| {
        parts.reserve(request);
    });
    assert_eq!(reserved, (AfterAbort::CloseTransfer, 0, 0));
    assert_eq!(after(activate), (AfterAbort::Drop, 0, 0));
    let in_step = after(|parts, request| {
        activate(parts, request);
        parts.decode.begin_step(&mut parts.cx);
    });
    assert_eq!(in_step, (AfterAbort::Nothing, 0, 0));
    let retracted = after(|parts, request| {
        activate(parts, request);
        parts.decode.retract(request, &parts.cx.setup);
        parts.decode.leave_retracted(request, &mut parts.cx);
    });
    assert_eq!(retracted, (AfterAbort::TellAndEnd, 0, 0));
    let ended = after(|parts, request| parts.decode.end_unfinished(request, &mut parts.cx));
    assert_eq!(ended, (AfterAbort::Nothing, 1, 0));
}

#[test]
fn a_request_that_gave_up_during_a_step_is_dropped_at_its_end() {
    let text = "faults = [{ abort = { request = 0 } }]";
    let scenario = scenario(text, &[(1, 15, 9)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let request = parts.arrive();
    activate(&mut parts, request);
    assert_eq!(parts.decode.begin_step(&mut parts.cx), None);
    parts.decode.abort(request, 0, &parts.transfers[request], &mut parts.cx);
    assert_eq!(parts.decode.end_step(&mut parts.cx), Some(request));
    parts.decode.drop_running(request, &mut parts.cx);
    assert_eq!(parts.decode.end_step(&mut parts.cx), None);
    assert_eq!(free(&parts), 4);
    assert_eq!(parts.decode.requests[request].status, Status::Ended);
}
