//! What a drawn scenario has in it, by name: policies, switches, faults, and what its run reached.

use std::collections::BTreeSet;

use crate::finding::{Chance, Code, Named, Run};
use crate::scenario::{Fault, Scenario, WorkloadConfig};

/// The features of a scenario and its run.
pub fn features(scenario: &Scenario, run: &Run) -> BTreeSet<String> {
    let Scenario { prefill, decode, link, .. } = scenario;
    let mut names: BTreeSet<String> = BTreeSet::from([
        format!("prefill cache {}", prefill.cache),
        format!("prefill eviction {}", prefill.eviction),
        format!("prefill order {}", prefill.free_order),
        format!("admission {}", prefill.admission),
        format!("decode cache {}", decode.cache),
        format!("decode eviction {}", decode.eviction),
        format!("decode order {}", decode.free_order),
        format!("profile {}", scenario.profile.name()),
    ]);
    let switches = scenario.behaviours().unusual();
    names.extend(switches.iter().map(|(switch, variant)| format!("{switch} = {variant}")));
    names.extend(scenario.faults.iter().map(|Fault::Abort { when, .. }| format!("abort {when:?}")));
    let reached = run.marks.iter().filter(|&(_, count)| count > 0);
    names.extend(reached.map(|(mark, _)| format!("reached {}", mark.name())));
    let specs = match &scenario.workload {
        WorkloadConfig::Requests(list) => &list[..],
        WorkloadConfig::Synthetic(_) | WorkloadConfig::Trace(_) => &[],
    };
    let found = |code: &dyn Fn(Code) -> bool| run.findings.iter().any(|(found, _)| code(found));
    for (has, name) in [
        (found(&|code| code.chance() == Chance::Pairings), "peers refused"),
        (found(&|code| code == Code::RefusedCapacity), "requests too large"),
        (!specs.is_empty(), "requests written out"),
        (matches!(scenario.workload, WorkloadConfig::Synthetic(_)), "requests drawn"),
        (specs.iter().any(|spec| spec.namespace > 0), "namespaces"),
        (specs.iter().any(|spec| spec.priority > 0), "priorities"),
        (specs.iter().any(|spec| spec.output_content.is_some()), "outputs with a name"),
        (specs.windows(2).any(|pair| pair[0].at == pair[1].at), "arrivals together"),
        (link.delay_every > 0 && link.delay_ticks > 0, "delays"),
        (prefill.workers > 1, "several prefill servers"),
        (decode.workers > 1, "several decode servers"),
        (decode.reserved_tokens > 0, "reserved tokens"),
        (scenario.layout.ranks == 1, "one rank"),
        (!scenario.layout.ranks.is_power_of_two(), "a rank count that divides no page"),
        (scenario.layout.page_size == 1, "pages of one row"),
    ] {
        names.extend(has.then(|| name.to_owned()));
    }
    names
}
