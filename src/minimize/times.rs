//! Passes over times: arrivals and the moments of faults.

use std::collections::BTreeSet;

use super::search::Search;
use crate::scenario::{Fault, Moment, RequestSpec, Scenario};
use crate::units::Tick;

/// Powers of ten in the range of a scenario's times.
const DECADES: u32 = 13;

/// The moments that a fault can follow, in the order of a life.
pub(super) const MOMENTS: [Moment; 7] = [
    Moment::Start,
    Moment::Arrived,
    Moment::Reserved,
    Moment::Prefilling,
    Moment::Copying,
    Moment::Running,
    Moment::Retracted,
];

/// Lets the run start at once, arrivals lie together or at even round gaps, and faults follow a
/// moment at once.
pub(super) fn simplify(search: &mut Search) {
    from_the_start(search);
    at_even_gaps(search);
    for index in 0..search.requests().len() {
        arrival(search, index);
    }
    for index in 0..search.best().faults.len() {
        fault(search, index);
    }
}

/// Lets the first request arrive at tick 0.
fn from_the_start(search: &mut Search) {
    let mut requests = search.requests().to_vec();
    let first = requests[0].at;
    shift(&mut requests, first, Tick(0));
    let mut candidate = search.best().clone();
    for fault in &mut candidate.faults {
        match fault {
            Fault::Abort { after, when: Moment::Start, .. } => *after = after.saturating_sub(first),
            Fault::Flush { at, .. } => *at = at.saturating_sub(first),
            Fault::Abort { .. } | Fault::Lose { .. } | Fault::Double { .. } => {}
        }
    }
    candidate.workload = crate::scenario::WorkloadConfig::Requests(requests);
    search.offer(candidate);
}

/// Lets every time from `old` on follow the shift of `old` to `new`.
fn shift(requests: &mut [RequestSpec], old: Tick, new: Tick) {
    for spec in requests {
        spec.at = Tick((spec.at.0 + new.0).saturating_sub(old.0));
    }
}

fn at_even_gaps(search: &mut Search) {
    let gaps = std::iter::once(0).chain((0..DECADES).map(|power| 10_u64.pow(power)));
    for gap in gaps {
        let mut requests = search.requests().to_vec();
        for (spec, number) in requests.iter_mut().zip(0..) {
            spec.at = Tick(gap.saturating_mul(number));
        }
        if search.offer_requests(requests) {
            break;
        }
    }
}

/// One arrival, alone or with all that follow.
fn arrival(search: &mut Search, index: usize) {
    let at = search.requests()[index].at;
    let before = index.checked_sub(1).map_or(Tick(0), |before| search.requests()[before].at);
    let gaps = simpler((at - before).0).into_iter().map(|gap| before + Tick(gap));
    let times: BTreeSet<Tick> = gaps.chain(simpler(at.0).into_iter().map(Tick)).collect();
    for new in times {
        let mut all = search.requests().to_vec();
        shift(&mut all[index..], at, new);
        if search.offer_request(index, |spec| spec.at = new) || search.offer_requests(all) {
            break;
        }
    }
}

/// Simplifies one fault: the moment that it follows and the delay, its message, or its tick.
fn fault(search: &mut Search, index: usize) {
    let fault = search.best().faults[index];
    let simpler_faults: Vec<Fault> = match fault {
        Fault::Abort { request, after, .. } => {
            let ticks = simpler(after.0).into_iter().chain([after.0]).map(Tick);
            ticks
                .flat_map(|after| MOMENTS.map(|when| Fault::Abort { request, after, when }))
                .collect()
        }
        Fault::Lose { request, message } => {
            (0..message).map(|message| Fault::Lose { request, message }).collect()
        }
        Fault::Double { request, message } => {
            (0..message).map(|message| Fault::Double { request, message }).collect()
        }
        Fault::Flush { side, server, at } => {
            let times = simpler(at.0).into_iter().map(Tick);
            times.map(|at| Fault::Flush { side, server, at }).collect()
        }
    };
    for simpler in simpler_faults {
        let mut candidate: Scenario = search.best().clone();
        candidate.faults[index] = simpler;
        if search.offer(candidate) {
            return;
        }
    }
}

/// Simpler times to try: zero, powers of ten, then `ticks` with fewer and fewer trailing zeros,
/// rounded up and down.
pub(super) fn simpler(ticks: u64) -> Vec<u64> {
    let powers = (0..DECADES).map(|power| 10_u64.pow(power));
    let rounded = powers.clone().rev().flat_map(|unit| {
        let down = ticks / unit * unit;
        [down, down + unit]
    });
    let half = powers.clone().map(|power| 5 * power);
    let mut seen = BTreeSet::from([ticks]);
    let all = std::iter::once(0).chain(powers).chain(half).chain(rounded);
    all.filter(|&value| seen.insert(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simpler_times_go_from_round_to_exact() {
        let list = simpler(12_345);
        assert_eq!(list[..3], [0, 1, 10]);
        let rounded: Vec<_> =
            [10_000, 20_000, 12_000, 13_000, 12_300, 12_400, 12_340, 12_350].into();
        let places: Vec<_> =
            rounded.iter().filter_map(|time| list.iter().position(|value| value == time)).collect();
        assert_eq!(places.len(), rounded.len());
        assert!(places[1..].is_sorted(), "{list:?}");
        assert!(!list.contains(&12_345));
    }
}
