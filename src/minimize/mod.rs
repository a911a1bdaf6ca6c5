//! From a scenario that shows a finding to the smallest one that still shows it.
//!
//! A *pass* offers candidates, each a smaller scenario by [`Size`]; the search takes one if it is
//! valid and its run still has every code of the goal, twice with the same digest. Passes take
//! turns until a whole round changes nothing, so the result is a fixed point: minimised again it
//! stays as it is. Candidates depend on the scenario at hand alone, never on how it was reached.
//!
//! Contents, namespaces and priorities are numbered anew in each candidate, times become round, and
//! title and expectation are made from the run, so that different scenarios that show one mistake
//! tend to end as the same file.

use std::collections::BTreeSet;
use std::path::Path;

use thiserror::Error;

use crate::finding::{Code, Named, Run, Severity};
use crate::scenario::Scenario;
use crate::world::RunError;

mod contents;
mod detour;
mod fields;
#[cfg(feature = "arbitrary")]
pub mod import;
mod layout;
mod lengths;
mod naming;
mod numbering;
mod requests;
mod search;
mod size;
mod times;

pub use size::Size;

use search::{Goal, Search};

/// What the minimiser has found.
#[derive(Clone, Debug)]
pub struct Minimized {
    /// The smallest scenario, with a title made from its finding and an `[expect]` of just what it
    /// shows.
    pub scenario: Scenario,
    /// The input's size, its requests written out.
    pub before: Size,
    /// The result's size, never larger.
    pub after: Size,
    /// Other scenarios that were run.
    pub tried: u64,
    /// Runs used: one of each, and a second of each that showed the finding.
    pub runs: u64,
    /// Whether no pass has anything left to try. If false, `runs_max` was reached first.
    pub is_fixed_point: bool,
}

/// Why there is nothing to minimise.
#[derive(Debug, Error)]
pub enum MinimizeError {
    /// The scenario cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// No code was asked for, and the scenario has no defect.
    #[error("the scenario must have a defect, got none")]
    NoDefect,
    /// The scenario has not got what must stay.
    #[error("the scenario must show {}, got no such finding", .0.name())]
    NotFound(Code),
    /// Two runs of the scenario differ.
    #[error("two runs of the scenario must be equal, got two that differ")]
    NotDeterministic,
}

/// Makes `scenario` smaller while its run has a finding of every code of `goal`; an empty goal
/// stands for the defect that is found first. At most `runs_max` runs are made, but for the two
/// that look at the input. Trace paths start at `folder`.
pub fn minimize(
    scenario: &Scenario,
    folder: &Path,
    goal: &BTreeSet<Code>,
    runs_max: u64,
) -> Result<Minimized, MinimizeError> {
    let run = crate::world::run(scenario, folder)?;
    let goal = if goal.is_empty() { BTreeSet::from([first_defect(&run)?]) } else { goal.clone() };
    if let Some(&absent) = goal.iter().find(|&&code| run.findings.count(code) == 0) {
        return Err(MinimizeError::NotFound(absent));
    }
    let written = written_out(scenario, folder)?;
    let mut search = Search::new(written, Goal::Codes(goal), runs_max)?;
    let before = search.size();
    requests::drop_what_came_later(&mut search);
    Ok(smallest(search, before, naming::named))
}

/// Makes `scenario` smaller while `test` says yes to it, which must be true of the scenario itself.
/// The title stays, and nothing is expected of the result.
pub fn minimize_while(
    scenario: &Scenario,
    test: &dyn Fn(&Scenario) -> bool,
    runs_max: u64,
) -> Result<Minimized, MinimizeError> {
    let written = written_out(scenario, Path::new(""))?;
    let search = Search::new(written, Goal::Test(test), runs_max)?;
    let before = search.size();
    Ok(smallest(search, before, Search::into_best))
}

/// `scenario` with each request spelled out and its contents numbered anew, whatever its source.
/// Trace paths start at `folder`.
pub fn written_out(scenario: &Scenario, folder: &Path) -> Result<Scenario, MinimizeError> {
    Ok(requests::write_out(scenario, folder).map_err(RunError::from)?)
}

/// Searches to the end, and takes the result.
fn smallest<'a>(
    mut search: Search<'a>,
    before: Size,
    take: impl FnOnce(Search<'a>) -> Scenario,
) -> Minimized {
    descend(&mut search);
    while detour(&mut search) {}
    let is_fixed_point = !search.is_used_up();
    let (after, tried, runs) = (search.size(), search.tried(), search.runs());
    Minimized { scenario: take(search), before, after, tried, runs, is_fixed_point }
}

/// Lets passes take turns until a whole round changes nothing.
fn descend(search: &mut Search) {
    let mut size = None;
    while size != Some(search.size()) {
        size = Some(search.size());
        requests::shrink(search);
        detour::shrink_prompts_and_pools(search);
        fields::switches_to_defaults(search);
        fields::to_simplest(search);
        layout::shrink(search);
        lengths::shrink(search);
        contents::simplify(search);
        times::simplify(search);
        fields::shrink(search);
    }
}

/// Goes down from other starts. Returns whether that found something smaller than the best.
fn detour(search: &mut Search) -> bool {
    detour::starts(search).into_iter().any(|start| {
        let Some(mut other) = search.fork(start) else { return false };
        descend(&mut other);
        search.join(other)
    })
}

/// The code of the earliest defect; where several are found at once, the first in the order of
/// codes.
fn first_defect(run: &Run) -> Result<Code, MinimizeError> {
    let first = run.findings.earliest(|code| code.severity() == Severity::Defect);
    first.map(|finding| finding.code).ok_or(MinimizeError::NoDefect)
}

#[cfg(test)]
mod tests;
