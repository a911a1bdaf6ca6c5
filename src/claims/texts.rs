//! Files: arbitrary bytes never panic, and what parses prints back equal.

use std::path::{Path, PathBuf};

use crate::conform::{Format, Level, check_line, plan_line, recognise, run_scenario};
use crate::engine;
use crate::scenario::lint::lint;
use crate::scenario::validate::validate;
use crate::scenario::{TraceConfig, TraceFormat, file};
use crate::sweep::cell::CellId;
use crate::sweep::plan::{Plan, Sources};
use crate::workload;
use crate::world::Registry;

/// Requests of a trace that are read; what follows is more of the same.
const TRACE_REQUESTS: u32 = 64;

/// The bytes as a scenario file.
pub fn scenario_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(scenario) = file::parse(text, "bytes") else { return };
    let printed = scenario.to_toml();
    let again = file::parse(&printed, "printed");
    assert_eq!(again.ok().as_ref(), Some(&scenario), "{printed}");
    if validate(&scenario, &Registry::built_in().names()).is_ok() {
        lint(&scenario);
    }
}

/// The bytes as a sweep plan over a small scenario.
pub fn plan_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let base = "version = 1\ntitle = \"base\"\nlayout = { page_size = 2, ranks = 2 }\n\
        prefill.pages = 16\ndecode.pages = 16\n\
        workload.requests = [{ prompt = [{ content = 1, len = 7 }], output = 2 }]\n";
    let sources = Sources {
        plan_path: PathBuf::from("plan"),
        plan: text.to_owned(),
        base_path: PathBuf::from("base"),
        base: base.to_owned(),
    };
    let Ok(plan) = Plan::parse(sources.clone()) else { return };
    let again = Plan::parse(sources).expect("the same text parses again");
    assert_eq!((plan.digest(), plan.runs()), (again.digest(), again.runs()), "{text}");
    for cell in [0, plan.cells() - 1].map(CellId) {
        let scenario = plan.scenario(cell).expect("every point was tried on the base");
        let printed = scenario.to_toml();
        assert_eq!(file::parse(&printed, "cell").ok(), Some(scenario), "{}", plan.describe(cell));
    }
}

/// The bytes as a trace, the first of them deciding the format.
pub fn trace_file(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let format = if first % 2 == 0 { TraceFormat::Mooncake } else { TraceFormat::Azure };
    let config = TraceConfig {
        format,
        path: "bytes".to_owned(),
        requests_max: Some(TRACE_REQUESTS),
        time_numerator: 1,
        time_denominator: 1,
    };
    let Ok(requests) = workload::trace_requests(&config, Path::new("bytes"), rest) else { return };
    assert!(requests.is_sorted_by_key(|request| request.at), "in order of arrival");
    assert!(requests.iter().all(|request| request.prompt_len().0 > 0 && request.output.0 > 0));
}

/// The bytes as a line of recorded answers, and as the input of one planner call.
pub fn vector_line(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // The same line gets the same verdict; which one, other tests say. A whole run is only
    // translated: it can be as long as any run.
    match recognise(text) {
        Ok(Format::Run) => assert_eq!(run_scenario(text).ok(), run_scenario(text).ok(), "{text}"),
        Ok(Format::Plan | Format::Alloc | Format::Radix) | Err(_) => {
            let check = || check_line(text, Level::Ticks);
            assert_eq!(check(), check(), "{text}");
        }
    }
    // Whether it can be planned is a matter of the line, not of who plans.
    let read = |revision: &engine::Revision| plan_line(text, &*(revision.make)()).is_ok();
    let read: Vec<bool> = engine::revisions().map(read).collect();
    assert!(read.windows(2).all(|pair| pair[0] == pair[1]), "{text}");
}
