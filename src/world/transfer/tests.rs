//! What a transfer remembers beside its handoff machine.

use super::super::tests::fixture::{Parts, requests, scenario};
use super::*;
use crate::units::Rank;

const PART: Part = Part { request: RequestId(0), attempt: 0, piece: 0, rank: Rank(0), last: true };

fn to() -> Destination {
    Destination { length: Tokens(8), prefix: Tokens(0), pages: vec![PageId(1)] }
}

#[test]
fn a_destination_comes_one_message_later_and_only_to_the_attempt_that_it_is_of() {
    let scenario = scenario("", &[(1, 8, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let request = parts.arrive();
    parts.tell(request, Signal::Reserved);
    parts.transfers[request].announce(request, to(), &mut parts.cx);
    let timer = Timer::DestinationKnown { request, attempt: 0 };
    assert_eq!(parts.cx.queue.next(), Some((Tick(100), timer)));
    assert_eq!(parts.transfers[request].take_destination(1), None);
    assert_eq!(parts.transfers[request].take_destination(0), Some(to()));
    parts.transfers[request].announce(request, to(), &mut parts.cx);
    parts.tell(request, Signal::Aborted);
    assert_eq!(parts.transfers[request].take_destination(0), None, "it is wanted no more");
}

#[test]
fn a_refused_request_is_served_again_without_a_prefix_and_not_for_ever() {
    let text = "behaviour = { refused_request = \"served_again\" }";
    let scenario = scenario(text, &[(1, 8, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let request = parts.arrive();
    assert!(!parts.transfers[request].serve_again(&mut parts.cx), "nobody has refused it");
    for attempt in 1..=limits::REFUSALS_MAX {
        parts.transfers[request].refuse();
        assert!(parts.transfers[request].serve_again(&mut parts.cx));
        assert_eq!(parts.transfers[request].attempt(), attempt);
        assert!(parts.transfers[request].skips_prefix());
        assert_eq!(parts.transfers[request].handoff().stage(), Stage::Waiting);
    }
    parts.transfers[request].refuse();
    assert!(!parts.transfers[request].serve_again(&mut parts.cx));
}

#[test]
fn a_new_attempt_begins_when_the_source_of_the_old_one_is_back() {
    let scenario = scenario("", &[(1, 8, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let request = parts.arrive();
    assert!(parts.transfers[request].begin(&parts.cx.setup));
    assert_eq!(parts.transfers[request].attempt(), 0, "the first has not been used");
    let landed = |rank| PartId { piece: 0, rank: Rank(rank), last: true };
    parts.tell(request, Signal::Reserved);
    parts.tell(request, Signal::ComputeStarted);
    parts.tell(request, Signal::PartLanded(landed(0)));
    parts.tell(request, Signal::PartLanded(landed(1)));
    assert!(!parts.transfers[request].begin(&parts.cx.setup), "prefill still computes");
    parts.tell(request, Signal::ComputeEnded);
    assert!(parts.transfers[request].begin(&parts.cx.setup));
    assert_eq!(parts.transfers[request].attempt(), 1);
}

#[test]
fn a_message_is_lost_or_comes_again_where_the_faults_say_so() {
    let text = "faults = [{ lose = { request = 0, message = 1 } }, \
                { double = { request = 0, message = 2 } }]";
    let scenario = scenario(text, &[(1, 8, 1)]);
    let requests = requests(&scenario);
    let mut parts = Parts::new(&scenario, &requests);
    let request = parts.arrive();
    let mut send = || parts.transfers[request].send_message(PART, &mut parts.cx);
    assert_eq!([send(), send(), send(), send()], [true, false, true, true]);
    let due = [parts.cx.queue.next(), parts.cx.queue.next(), parts.cx.queue.next()];
    let again = Timer::MessageComesAgain { part: PART };
    let missed = Timer::MessageIsMissed { part: PART };
    assert_eq!(due, [Some((Tick(100), again)), Some((Tick(100), missed)), None]);
    assert!(parts.cx.faults.idle().is_empty());
}

#[test]
fn only_a_release_by_timeout_sets_a_clock() {
    for (release, clock) in [("drained", false), ("at_once", false), ("timeout", true)] {
        let text = format!("behaviour = {{ release_on_abort = \"{release}\" }}");
        let scenario = scenario(&text, &[(1, 8, 1)]);
        let requests = requests(&scenario);
        let mut parts = Parts::new(&scenario, &requests);
        let request = parts.arrive();
        parts.transfers[request].close(request, &mut parts.cx);
        let timer = Timer::ReleaseTimesOut { request, attempt: 0 };
        let due = clock.then_some((Tick(30_000_000), timer));
        assert_eq!(parts.cx.queue.next(), due, "{release}");
    }
}
