//! The transitions of a prefill server, each called by itself.

use super::super::handoff::{Action, Signal};
use super::super::queue::Timer;
use super::super::tests::fixture::{Parts, requests, scenario};
use super::super::transfer::Destination;
use super::sending::CutPiece;
use super::step::Next;
use super::*;
use crate::units::{PageId, Pages, Tick};

fn destination(length: u32, pages: u32) -> Destination {
    let pages = (1..=pages).map(PageId).collect();
    Destination { length: Tokens(length), prefix: Tokens(0), pages }
}

/// The request may be computed: its handoff is reserved, and prefill knows the destination.
fn let_in(parts: &mut Parts<'_>, request: RequestId, tokens: u32) {
    assert_eq!(parts.tell(request, Signal::Reserved), []);
    let to = destination(tokens, tokens.div_ceil(8));
    let sends = parts.prefill.destination_known(request, to, true, &mut parts.cx);
    assert_eq!(sends, []);
}

/// Composes a step, telling the handoffs, and returns its chunks.
fn compose(parts: &mut Parts<'_>) -> Vec<(u32, u32, u32)> {
    let mut chunks = Vec::new();
    while let Next::Launched(chunk) = parts.prefill.compose(&mut parts.cx, &parts.transfers) {
        parts.tell(chunk.request, Signal::ComputeStarted);
        chunks.push((chunk.request.0, chunk.from.0, chunk.to.0));
    }
    chunks
}

/// Ends the step under way, and returns how many chunks it had.
fn end(parts: &mut Parts<'_>) -> usize {
    let chunks = std::iter::from_fn(|| {
        let chunk = parts.prefill.end_chunk(&mut parts.cx, &parts.transfers)?;
        parts.transfers[chunk.request].handoff_mut().step(Signal::ComputeEnded);
        Some(chunk)
    });
    chunks.count()
}

fn table(parts: &Parts<'_>, request: RequestId) -> Vec<PageId> {
    parts.prefill.requests[request].source().table.clone()
}

#[test]
fn a_step_takes_pages_for_its_budget_and_goes_on_with_the_one_that_was_cut() {
    let scenario = scenario("", &[(1, 18, 1), (2, 8, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let (long, short) = (parts.arrive(), parts.arrive());
    let_in(&mut parts, long, 18);
    let_in(&mut parts, short, 8);
    // 16 tokens of budget are four pages of the long request, and nothing of the other.
    assert_eq!(compose(&mut parts), [(0, 0, 16)]);
    assert_eq!(table(&parts, long).len(), 4);
    assert_eq!(parts.prefill.cut, Some(long));
    let due = parts.cx.queue.next();
    assert_eq!(due, Some((Tick(5_000 + 20 * 16), Timer::PrefillStepEnds { server: 0 })));
    assert_eq!(compose(&mut parts), [], "a step is under way");
    assert_eq!(end(&mut parts), 1);
    // The two tokens left cost a page of budget, the short request the rest.
    assert_eq!(compose(&mut parts), [(0, 16, 18), (1, 0, 8)]);
    assert_eq!((table(&parts, long).len(), table(&parts, short).len()), (5, 2));
    assert_eq!(parts.prefill.cut, None);
    assert_eq!(parts.prefill.store.pool.available(), Pages(1));
}

#[test]
fn a_chunk_that_ends_leaves_its_rows_and_locks_its_full_pages_in_the_tree() {
    let scenario = scenario("", &[(1, 14, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let request = parts.arrive();
    let_in(&mut parts, request, 14);
    compose(&mut parts);
    end(&mut parts);
    for position in 0..14 {
        let page = table(&parts, request)[position as usize / 4];
        let stamp = parts.prefill.store.memory[0].row(page, position % 4).unwrap();
        assert_eq!((stamp.position, stamp.writer), (Tokens(position), request));
    }
    let cache = parts.prefill.store.cache.as_ref().unwrap();
    assert_eq!((cache.protected(), cache.evictable()), (Pages(3), Pages(0)));
}

#[test]
fn a_release_frees_the_partial_page_unlocks_the_others_and_wakes_both_servers() {
    let scenario = scenario("", &[(1, 14, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let request = parts.arrive();
    let_in(&mut parts, request, 14);
    compose(&mut parts);
    end(&mut parts);
    parts.cx.awake.clear();
    parts.prefill.release(request, &mut parts.cx);
    let store = &parts.prefill.store;
    assert_eq!(store.pool.available(), Pages(5));
    assert_eq!(store.cache.as_ref().unwrap().evictable(), Pages(3));
    assert!(parts.prefill.requests[request].source.is_none());
    assert_eq!(parts.cx.awake, [parts.prefill.store.server, parts.decode.store.server]);
}

#[test]
fn a_forgotten_request_gives_nothing_back() {
    let scenario = scenario("", &[(1, 14, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let request = parts.arrive();
    let_in(&mut parts, request, 14);
    compose(&mut parts);
    end(&mut parts);
    parts.prefill.forget(request);
    parts.prefill.release(request, &mut parts.cx);
    assert_eq!(parts.prefill.store.room(), Pages(4));
}

#[test]
fn a_cached_prefix_is_shared_up_to_below_the_last_token() {
    let scenario = scenario("", &[(1, 16, 1), (1, 16, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let (first, second) = (parts.arrive(), parts.arrive());
    let_in(&mut parts, first, 16);
    compose(&mut parts);
    end(&mut parts);
    let_in(&mut parts, second, 16);
    // All four pages are cached, but something must be computed.
    assert_eq!(compose(&mut parts), [(1, 12, 16)]);
    assert_eq!(table(&parts, second)[..3], table(&parts, first)[..3]);
    assert_ne!(table(&parts, second)[3], table(&parts, first)[3]);
}

#[test]
fn a_page_that_the_tree_has_already_goes_back_and_the_table_names_the_trees() {
    let scenario = scenario("", &[(1, 8, 1), (1, 8, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let (first, second) = (parts.arrive(), parts.arrive());
    let_in(&mut parts, first, 8);
    let_in(&mut parts, second, 8);
    assert_eq!(compose(&mut parts), [(0, 0, 8), (1, 0, 8)]);
    assert_eq!(parts.prefill.store.pool.available(), Pages(4));
    assert_eq!(end(&mut parts), 2);
    assert_eq!(table(&parts, second), table(&parts, first));
    assert_eq!(parts.prefill.store.pool.available(), Pages(6));
}

#[test]
fn the_latest_without_a_destination_gives_way_to_a_request_that_has_one() {
    let text = "prefill = { pages = 4, chunk_tokens = 16 }\n\
                behaviour = { prefill_start = \"at_arrival\" }";
    let scenario = scenario(text, &[(1, 16, 1), (2, 16, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let (early, known) = (parts.arrive(), parts.arrive());
    parts.prefill.wait(early, &mut parts.cx);
    assert_eq!(compose(&mut parts), [(0, 0, 16)]);
    end(&mut parts);
    parts.prefill.wait(known, &mut parts.cx);
    let_in(&mut parts, known, 16);
    let next = parts.prefill.compose(&mut parts.cx, &parts.transfers);
    assert_eq!(next, Next::GivesWay(early));
    assert_eq!(parts.tell(early, Signal::GaveWay), [Action::ReleaseSource]);
    parts.prefill.release(early, &mut parts.cx);
    assert_eq!(compose(&mut parts), [(1, 0, 16)]);
    assert_eq!(parts.prefill.waiting, [early]);
}

#[test]
fn pieces_follow_each_other_in_whole_pages_and_the_last_takes_the_rest() {
    let text = "prefill = { pages = 8, chunk_tokens = 6 }\n\
                behaviour = { chunk_cut = \"exact_budget\" }";
    let scenario = scenario(text, &[(1, 10, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let request = parts.arrive();
    let_in(&mut parts, request, 10);
    let mut sent = Vec::new();
    while !compose(&mut parts).is_empty() {
        let chunk = parts.prefill.end_chunk(&mut parts.cx, &parts.transfers).unwrap();
        let transfer = &parts.transfers[request];
        sent.extend(parts.prefill.cut_chunk(chunk, transfer, &mut parts.cx));
        assert_eq!(parts.prefill.end_chunk(&mut parts.cx, &parts.transfers), None);
        if chunk.to == Tokens(10) {
            break;
        }
    }
    let pages = table(&parts, request);
    let piece = |number, first: usize, end: usize, tokens, last| CutPiece {
        number,
        pages: pages[first..end].to_vec(),
        offset: Pages(first as u32),
        tokens,
        last,
    };
    // Chunks of 6 and 4 tokens; the page that the first one opened goes out with the second.
    assert_eq!(sent, [piece(0, 0, 1, 4, false), piece(1, 1, 3, 6, true)]);
}

#[test]
fn a_flush_at_once_takes_the_locks_away() {
    let scenario = scenario("behaviour = { flush = \"at_once\" }", &[(1, 14, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let request = parts.arrive();
    let_in(&mut parts, request, 14);
    compose(&mut parts);
    end(&mut parts);
    parts.prefill.flush(&mut parts.cx);
    assert_eq!(parts.prefill.store.pool.available(), Pages(8));
    assert!(parts.prefill.requests[request].source().anchors.is_empty());
}
