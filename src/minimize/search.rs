//! The smallest scenario so far, and the one way to replace it.

use std::collections::BTreeSet;
use std::path::Path;

use super::MinimizeError;
use super::numbering;
use super::size::{Size, requests_of};
use crate::finding::{Code, Run};
use crate::scenario::{RequestSpec, Scenario, WorkloadConfig};
use crate::world;

/// What must stay.
#[derive(Clone)]
pub(super) enum Goal<'a> {
    /// Findings of every one of these codes.
    Codes(BTreeSet<Code>),
    /// Whatever the caller looks at.
    Test(&'a dyn Fn(&Scenario) -> bool),
}

/// A search for the smallest scenario that meets the goal.
pub(super) struct Search<'a> {
    best: Scenario,
    size: Size,
    run: Run,
    goal: Goal<'a>,
    /// Candidates that were run; those that showed the goal were run once more.
    tried: u64,
    runs: u64,
    runs_max: u64,
}

impl<'a> Search<'a> {
    /// A search from `scenario` on, whose requests are written out.
    pub(super) fn new(
        scenario: Scenario,
        goal: Goal<'a>,
        runs_max: u64,
    ) -> Result<Search<'a>, MinimizeError> {
        let run = run(&scenario)?;
        let (size, tried, runs) = (Size::of(&scenario), 0, 0);
        let search = Search { best: scenario, size, run, goal, tried, runs, runs_max };
        if !search.shows(&search.best, &search.run) || run_again_differs(&search.best, &search.run)
        {
            return Err(MinimizeError::NotDeterministic);
        }
        Ok(search)
    }

    /// The smallest scenario so far.
    pub(super) fn best(&self) -> &Scenario {
        &self.best
    }

    /// Ends the search and returns the smallest scenario.
    pub(super) fn into_best(self) -> Scenario {
        self.best
    }

    /// Its requests.
    pub(super) fn requests(&self) -> &[RequestSpec] {
        requests_of(&self.best)
    }

    /// Its size.
    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// What its run left.
    pub(super) fn run(&self) -> &Run {
        &self.run
    }

    /// The codes that must stay; none where another test decides.
    pub(super) fn codes(&self) -> BTreeSet<Code> {
        match &self.goal {
            Goal::Codes(codes) => codes.clone(),
            Goal::Test(_) => BTreeSet::new(),
        }
    }

    /// Candidates that were run.
    pub(super) fn tried(&self) -> u64 {
        self.tried
    }

    /// Runs made.
    pub(super) fn runs(&self) -> u64 {
        self.runs
    }

    /// Whether no run is left.
    pub(super) fn is_used_up(&self) -> bool {
        self.runs >= self.runs_max
    }

    /// Takes `candidate` in the place of the best if it is smaller, valid and meets the goal.
    pub(super) fn offer(&mut self, mut candidate: Scenario) -> bool {
        numbering::number_anew(&mut candidate);
        let size = Size::of(&candidate);
        if size >= self.size || self.is_used_up() {
            return false;
        }
        let Some(run) = self.try_run(&candidate) else { return false };
        (self.best, self.size, self.run) = (candidate, size, run);
        true
    }

    /// A search from `start` on, which may be larger than the best, if that shows the goal.
    pub(super) fn fork(&mut self, mut start: Scenario) -> Option<Search<'a>> {
        numbering::number_anew(&mut start);
        if start == self.best || self.is_used_up() {
            return None;
        }
        let run = self.try_run(&start)?;
        let (size, goal) = (Size::of(&start), self.goal.clone());
        let Search { tried, runs, runs_max, .. } = *self;
        Some(Search { best: start, size, run, goal, tried, runs, runs_max })
    }

    /// Takes the best of a fork in the place of its own if it is smaller.
    pub(super) fn join(&mut self, fork: Search<'a>) -> bool {
        (self.tried, self.runs) = (fork.tried, fork.runs);
        let is_smaller = fork.size < self.size;
        if is_smaller {
            *self = fork;
        }
        is_smaller
    }

    /// The run of `candidate`, if it is valid, shows the goal and does so twice.
    fn try_run(&mut self, candidate: &Scenario) -> Option<Run> {
        self.tried += 1;
        self.runs += 1;
        let run = run(candidate).ok().filter(|run| self.shows(candidate, run))?;
        self.runs += 1;
        (!run_again_differs(candidate, &run)).then_some(run)
    }

    /// Offers the best with other requests.
    pub(super) fn offer_requests(&mut self, requests: Vec<RequestSpec>) -> bool {
        let workload = WorkloadConfig::Requests(requests);
        self.offer(Scenario { workload, ..self.best.clone() })
    }

    /// Offers the best with one request changed.
    pub(super) fn offer_request(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut RequestSpec),
    ) -> bool {
        let mut requests = self.requests().to_vec();
        change(&mut requests[index]);
        self.offer_requests(requests)
    }

    fn shows(&self, candidate: &Scenario, run: &Run) -> bool {
        match &self.goal {
            Goal::Codes(codes) => codes.iter().all(|&code| run.findings.count(code) > 0),
            Goal::Test(test) => test(candidate),
        }
    }
}

/// Requests are written out, so there is no trace to be found in any folder.
fn run(scenario: &Scenario) -> Result<Run, world::RunError> {
    world::run(scenario, Path::new(""))
}

fn run_again_differs(scenario: &Scenario, first: &Run) -> bool {
    run(scenario).map_or(true, |again| again.digest != first.digest)
}
