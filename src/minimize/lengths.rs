//! Passes over lengths: outputs, runs of prompts, and how many runs there are.

use std::collections::BTreeSet;

use super::fields::smaller;
use super::search::Search;
use crate::scenario::{RequestSpec, RunSpec};
use crate::units::Tokens;

/// Makes prompts and outputs shorter, first where requests share, then one by one.
pub(super) fn shrink(search: &mut Search) {
    outputs(search);
    shared(search);
    single(search);
    merge(search);
    pairs(search);
}

fn outputs(search: &mut Search) {
    let mut requests = search.requests().to_vec();
    requests.iter_mut().for_each(|spec| spec.output = Tokens(1));
    search.offer_requests(requests);
    for index in 0..search.requests().len() {
        for length in lengths(search, search.requests()[index].output) {
            if search.offer_request(index, |spec| spec.output = length) {
                break;
            }
        }
        if let Some(most) = search.requests()[index].max_new_tokens {
            search.offer_request(index, |spec| spec.max_new_tokens = None);
            for length in lengths(search, most) {
                if search.offer_request(index, |spec| spec.max_new_tokens = Some(length)) {
                    break;
                }
            }
        }
    }
}

/// Shortens or drops equal runs of several prompts together.
fn shared(search: &mut Search) {
    let mut done = BTreeSet::new();
    loop {
        let runs = search.requests().iter().flat_map(|spec| &spec.prompt);
        let key = |run: &RunSpec| (run.content, run.offset, run.len);
        let Some(run) = runs.copied().find(|run| !done.contains(&key(run))) else { return };
        done.insert(key(&run));
        let without = edited(search, run, None);
        if search.offer_requests(without) {
            continue;
        }
        for length in lengths(search, run.len) {
            let shorter = edited(search, run, Some(length));
            if search.offer_requests(shorter) {
                break;
            }
        }
    }
}

/// The requests with every run that equals `run` at another length, or dropped.
fn edited(search: &Search, run: RunSpec, length: Option<Tokens>) -> Vec<RequestSpec> {
    let mut requests = search.requests().to_vec();
    for spec in &mut requests {
        match length {
            Some(length) => {
                let equal = spec.prompt.iter_mut().filter(|other| **other == run);
                equal.for_each(|equal| equal.len = length);
            }
            None => spec.prompt.retain(|other| *other != run),
        }
    }
    requests
}

fn single(search: &mut Search) {
    for index in 0..search.requests().len() {
        let mut run = 0;
        while run < search.requests()[index].prompt.len() {
            if search.offer_request(index, |spec| {
                spec.prompt.remove(run);
            }) {
                continue;
            }
            for length in lengths(search, search.requests()[index].prompt[run].len) {
                if search.offer_request(index, |spec| spec.prompt[run].len = length) {
                    break;
                }
            }
            run += 1;
        }
    }
}

/// Lets a run reach over the one that follows it.
fn merge(search: &mut Search) {
    for index in 0..search.requests().len() {
        let mut run = 0;
        while run + 1 < search.requests()[index].prompt.len() {
            let merged = search.offer_request(index, |spec| {
                let next = spec.prompt.remove(run + 1);
                spec.prompt[run].len += next.len;
            });
            if !merged {
                run += 1;
            }
        }
    }
}

/// Requests up to which pairs of runs are tried; there are about as many pairs as runs squared.
const PAIRED_RUNS_MAX: usize = 16;

/// Shortens two runs by the same amount, a page or a token, where neither can be shortened alone.
fn pairs(search: &mut Search) {
    let layout = search.best().layout;
    let steps = [layout.page_size * layout.ranks, layout.page_size, 1];
    let places: Vec<(usize, usize)> = search
        .requests()
        .iter()
        .enumerate()
        .flat_map(|(index, spec)| (0..spec.prompt.len()).map(move |run| (index, run)))
        .collect();
    if places.len() > PAIRED_RUNS_MAX {
        return;
    }
    for (count, &left) in places.iter().enumerate() {
        for &right in &places[count + 1..] {
            for step in steps {
                while offer_pair(search, left, right, Tokens(step)) {}
            }
        }
    }
}

fn offer_pair(
    search: &mut Search,
    left: (usize, usize),
    right: (usize, usize),
    step: Tokens,
) -> bool {
    let mut requests = search.requests().to_vec();
    for (index, run) in [left, right] {
        let len = &mut requests[index].prompt[run].len;
        *len = len.saturating_sub(step);
    }
    search.offer_requests(requests)
}

/// Shorter lengths to try, in ascending order: small ones and those around whole virtual pages too.
fn lengths(search: &Search, length: Tokens) -> Vec<Tokens> {
    let layout = search.best().layout;
    let pages = [layout.page_size, layout.page_size * layout.ranks];
    let multiples = pages.iter().flat_map(|page| (1..=3).map(move |count| count * page));
    let near = multiples.flat_map(|tokens| [tokens - 1, tokens, tokens + 1]).map(u64::from);
    let all = near.chain(smaller(u64::from(length.0)));
    let all: BTreeSet<u64> =
        all.filter(|&tokens| (1..u64::from(length.0)).contains(&tokens)).collect();
    all.into_iter().map(|tokens| Tokens(u32::try_from(tokens).expect("shorter"))).collect()
}
