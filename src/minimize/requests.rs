//! Passes over whole requests: written out, and fewer of them.

use std::path::Path;

use super::numbering;
use super::search::Search;
use crate::scenario::{RequestSpec, RunSpec, Scenario, WorkloadConfig};
use crate::units::RequestId;
use crate::workload::{self, Request, WorkloadError};

/// `scenario` with each request spelled out, whatever its source.
pub(super) fn write_out(scenario: &Scenario, folder: &Path) -> Result<Scenario, WorkloadError> {
    let specs = workload::requests(scenario, folder)?.iter().map(spec).collect();
    let workload = WorkloadConfig::Requests(specs);
    let mut written = Scenario { workload, ..scenario.clone() };
    numbering::number_anew(&mut written);
    Ok(written)
}

fn spec(request: &Request) -> RequestSpec {
    let run = |run: &crate::prompt::ContentRun| RunSpec {
        content: run.content,
        offset: run.offset,
        len: run.len,
    };
    RequestSpec {
        at: request.at,
        prompt: request.runs.iter().map(run).collect(),
        output: request.output,
        max_new_tokens: (request.max_new_tokens > request.output).then_some(request.max_new_tokens),
        output_content: Some(request.output_content),
        namespace: request.namespace,
        priority: request.priority,
    }
}

/// Requests that arrive after the goal has been seen cannot have caused it.
pub(super) fn drop_what_came_later(search: &mut Search) {
    let first = |code| search.run().findings.iter().find(|found| found.0 == code);
    let codes = search.codes();
    let seen = codes.iter().filter_map(|&code| Some(first(code)?.1.first.first()?.tick));
    let Some(last) = seen.max() else { return };
    let needed = search.requests().partition_point(|spec| spec.at <= last);
    let without = without(search.best(), needed, search.requests().len());
    search.offer(without);
}

/// Drops requests and faults by halves, quarters and so on down to single ones.
pub(super) fn shrink(search: &mut Search) {
    by_halves(search, |best| super::size::requests_of(best).len(), without);
    by_halves(
        search,
        |best| best.faults.len(),
        |best, start, end| {
            let mut smaller = best.clone();
            smaller.faults.drain(start..end);
            smaller
        },
    );
}

/// Delta debugging: cuts windows out of a list, ever shorter ones.
fn by_halves(
    search: &mut Search,
    len: impl Fn(&Scenario) -> usize,
    without: impl Fn(&Scenario, usize, usize) -> Scenario,
) {
    let mut width = len(search.best());
    while width > 0 {
        let mut start = 0;
        while start < len(search.best()) {
            let end = (start + width).min(len(search.best()));
            if !search.offer(without(search.best(), start, end)) {
                start = end;
            }
        }
        width /= 2;
    }
}

/// `scenario` without the requests from `start` to `end`; faults of the others follow them.
fn without(scenario: &Scenario, start: usize, end: usize) -> Scenario {
    let mut smaller = scenario.clone();
    if let WorkloadConfig::Requests(list) = &mut smaller.workload {
        list.drain(start..end);
    }
    smaller.faults.retain_mut(|fault| {
        let Some(request) = fault.request_mut() else { return true };
        let gone = (start..end).contains(&request.index());
        if request.index() >= end {
            let dropped = u32::try_from(end - start).expect("limits keep requests within u32");
            *request = RequestId(request.0 - dropped);
        }
        !gone
    });
    smaller
}
