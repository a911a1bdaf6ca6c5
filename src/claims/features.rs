//! How large a drawn scenario is, and what it has in it by name: policies, switches, faults, and
//! what its run reached.

use std::collections::BTreeSet;

use crate::finding::{Chance, Code, Metric, Named, Run};
use crate::scenario::lint::lint;
use crate::scenario::{Fault, RequestSpec, Scenario, WorkloadConfig};

/// The feature of a scenario that the lint called sound before any repair.
pub const SOUND_AS_DRAWN: &str = "sound as drawn";

/// Features that are neither a policy, a switch, a fault, nor a mark.
pub const OTHERS: [&str; 15] = [
    "peers refused",
    "requests too large",
    "requests written out",
    "requests drawn",
    "namespaces",
    "priorities",
    "outputs with a name",
    "arrivals together",
    "delays",
    "several prefill servers",
    "several decode servers",
    "reserved tokens",
    "one rank",
    "a rank count that divides no page",
    "pages of one row",
];

/// How large a scenario is: requests that arrived, the pages of a prefill and a decode pool
/// together, and those of all servers.
pub fn sizes(scenario: &Scenario, run: &Run) -> [(&'static str, u64); 3] {
    let Scenario { prefill, decode, .. } = scenario;
    let (source, target) = (u64::from(prefill.pages), u64::from(decode.pages));
    let all = source * u64::from(prefill.workers) + target * u64::from(decode.workers);
    [
        ("requests", run.metrics.get(Metric::Requests)),
        ("pages of a prefill and a decode pool", source + target),
        ("pages of all pools", all),
    ]
}

/// The features of a scenario, of which `drawn` is what it was before a repair, and of its run.
pub fn features(drawn: &Scenario, scenario: &Scenario, run: &Run) -> BTreeSet<String> {
    let Scenario { prefill, decode, .. } = scenario;
    let mut names = BTreeSet::from([
        format!("prefill cache {}", prefill.cache),
        format!("prefill eviction {}", prefill.eviction),
        format!("prefill order {}", prefill.free_order),
        format!("admission {}", prefill.admission),
        format!("decode cache {}", decode.cache),
        format!("decode eviction {}", decode.eviction),
        format!("decode order {}", decode.free_order),
        format!("profile {}", scenario.profile.name()),
    ]);
    let behaviours = scenario.behaviours();
    let switches = behaviours.unusual();
    names.extend(switches.iter().map(|(switch, variant)| format!("{switch} = {variant}")));
    names.extend(scenario.faults.iter().map(|fault| match fault {
        Fault::Abort { when, .. } => format!("abort {when:?}"),
        Fault::Lose { .. } => "lost message".to_owned(),
        Fault::Double { .. } => "doubled message".to_owned(),
        Fault::Flush { .. } => "flush".to_owned(),
    }));
    let reached = run.marks.iter().filter(|&(_, count)| count > 0);
    names.extend(reached.map(|(mark, _)| format!("reached {}", mark.name())));
    let others = OTHERS.into_iter().filter(|name| has(scenario, run, name));
    names.extend(others.map(str::to_owned));
    names.extend(lint(drawn).is_empty().then(|| SOUND_AS_DRAWN.to_owned()));
    names
}

/// Whether a scenario has the feature of this name, one of [`OTHERS`].
fn has(scenario: &Scenario, run: &Run, name: &str) -> bool {
    let Scenario { prefill, decode, link, layout, .. } = scenario;
    let specs: &[RequestSpec] = match &scenario.workload {
        WorkloadConfig::Requests(list) => list,
        WorkloadConfig::Synthetic(_) | WorkloadConfig::Trace(_) => &[],
    };
    let found = |is: fn(Code) -> bool| run.findings.iter().any(|(code, _)| is(code));
    match name {
        "peers refused" => found(|code| code.chance() == Chance::Pairings),
        "requests too large" => found(|code| code == Code::RefusedCapacity),
        "requests written out" => !specs.is_empty(),
        "requests drawn" => matches!(scenario.workload, WorkloadConfig::Synthetic(_)),
        "namespaces" => specs.iter().any(|spec| spec.namespace > 0),
        "priorities" => specs.iter().any(|spec| spec.priority > 0),
        "outputs with a name" => specs.iter().any(|spec| spec.output_content.is_some()),
        "arrivals together" => specs.windows(2).any(|pair| pair[0].at == pair[1].at),
        "delays" => link.delay_every > 0 && link.delay_ticks > 0,
        "several prefill servers" => prefill.workers > 1,
        "several decode servers" => decode.workers > 1,
        "reserved tokens" => decode.reserved_tokens > 0,
        "one rank" => layout.ranks == 1,
        "a rank count that divides no page" => !layout.ranks.is_power_of_two(),
        "pages of one row" => layout.page_size == 1,
        _ => false,
    }
}
