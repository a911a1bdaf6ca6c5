//! From an error line to its cause: for each hazard whose planner raises one, `explain` names its
//! behaviour among the first three, given the line and what a user knows of the request.

use std::fs;
use std::path::{Path, PathBuf};

use kvseam::explain::causes::{facts, of_line};
use kvseam::explain::line::Line;
use kvseam::layout::Layout;
use kvseam::scenario::file;
use kvseam::scenario::lint::lint;
use kvseam::witness::Calls;
use kvseam::world::Simulation;

fn hazards() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sims/hazards");
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_hazard_with_an_error_line_is_traced_back_to_its_behaviour() {
    let mut lines = 0;
    let mut missed = Vec::new();
    for path in hazards() {
        let scenario = file::load(&path).unwrap_or_else(|error| panic!("{error}"));
        if scenario.expect.as_ref().is_some_and(|expect| expect.invalid.is_some()) {
            continue;
        }
        let layout = Layout::striped(scenario.layout.page_size, scenario.layout.ranks).unwrap();
        let mut calls = Calls::new(layout);
        Simulation::new(&scenario)
            .folder(path.parent().unwrap())
            .observer(&mut calls)
            .run()
            .unwrap();
        let planted: Vec<_> =
            lint(&scenario).iter().map(|objection| (objection.switch, objection.variant)).collect();
        for refusal in calls.refusals.iter().filter(|refusal| refusal.call.is_some()) {
            // What the model refuses and no engine does is no error line of one.
            let Ok(line) = Line::read(&refusal.said) else { continue };
            lines += 1;
            let given = facts(&calls, refusal).unwrap();
            assert_eq!(line.check(&given), Ok(()), "{}", refusal.said);
            let causes = of_line(line.code(), &line.shape(&given));
            let first = causes.iter().take(3).map(|cause| (cause.switch, cause.variant));
            let first: Vec<_> = first.collect();
            if !first.iter().any(|cause| planted.contains(cause)) {
                missed.push((path.clone(), refusal.said.clone(), first));
            }
        }
    }
    assert!(lines >= 12, "only {lines} error lines");
    assert!(missed.is_empty(), "{missed:#?}");
}
