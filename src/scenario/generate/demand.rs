//! The requests of a drawn scenario, and what each asks of the pools.

use super::Choices;
use crate::prompt::ContentId;
use crate::scenario::{
    Arrivals, LayoutConfig, Lengths, RequestSpec, RunSpec, Synthetic, WorkloadConfig,
};
use crate::units::{Tick, Tokens};

/// Requests of one scenario.
const REQUESTS_MAX: u32 = 22;
/// Tokens of a prompt in virtual pages; a small page still gets [`TOKENS_MIN`].
const VIRTUAL_PAGES_MAX: u32 = 16;
/// The least bound of a prompt's length.
const TOKENS_MIN: u32 = 24;
/// Output tokens of a request: each takes a step.
const OUTPUT_MAX: u32 = 64;
/// Contents that several prompts begin with.
const HOT_CONTENTS: u64 = 3;
/// Contents of single prompts are numbered from here on.
const COLD: u64 = 100;
/// Contents of outputs are numbered from here on.
const OUTPUTS: u64 = 1_000;

/// What one request asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// Tokens of its prompt.
    pub(super) prompt: u32,
    /// Tokens of its output.
    pub(super) output: u32,
}

impl Demand {
    /// Positions stored at its end: the last output token's KV is never computed.
    pub(super) fn stored(&self) -> u32 {
        self.prompt + self.output - 1
    }
}

/// What the requests of one scenario have in common.
struct Habits {
    layout: LayoutConfig,
    /// Tokens of the longest prompt.
    longest: u32,
    /// Tokens of the longest output.
    output: u32,
    /// Prompts out of 8 that share something with an earlier one.
    sharing: u64,
    namespaces: u32,
    priorities: u32,
    /// Ticks between two arrivals, at most.
    gap: u64,
    /// Arrivals out of 8 that come together with the one before.
    bursts: u64,
}

/// Draws a workload, and says what each of its requests asks for at most. A crowded one has long
/// outputs of requests that come close together.
pub(super) fn draw(
    choices: &mut impl Choices,
    layout: LayoutConfig,
    is_crowded: bool,
) -> (WorkloadConfig, Vec<Demand>) {
    let virtual_page = layout.virtual_page();
    let pages = choices.within(1..=VIRTUAL_PAGES_MAX);
    let habits = Habits {
        layout,
        longest: (virtual_page * pages).max(TOKENS_MIN),
        output: match is_crowded {
            true => *choices.pick(&[OUTPUT_MAX, virtual_page.clamp(8, OUTPUT_MAX)]),
            false => *choices.pick(&[4, 1, virtual_page.clamp(2, OUTPUT_MAX), OUTPUT_MAX]),
        },
        sharing: *choices.pick(&[4, 7, 0, 6, 7]),
        namespaces: *choices.pick(&[1, 1, 2]),
        priorities: *choices.pick(&[1, 3]),
        gap: match is_crowded {
            true => *choices.pick(&[10, 0, 100]),
            false => *choices.pick(&[10, 20_000, 0, 1_000, 100_000]),
        },
        bursts: *choices.pick(&[2, 0, 6]),
    };
    let count = match choices.below(4) {
        0 => choices.within(1..=4),
        1 => choices.within(REQUESTS_MAX / 2..=REQUESTS_MAX),
        _ => choices.within(1..=REQUESTS_MAX),
    };
    if choices.chance(1, 12) {
        return synthetic(choices, &habits, count);
    }
    let mut specs: Vec<RequestSpec> = Vec::new();
    for number in 0..count {
        let spec = request(choices, &habits, &specs, u64::from(number));
        specs.push(spec);
    }
    let demand =
        specs.iter().map(|spec| Demand { prompt: length(&spec.prompt), output: spec.output.0 });
    let demand = demand.collect();
    (WorkloadConfig::Requests(specs), demand)
}

/// One request after those drawn before it.
fn request(
    choices: &mut impl Choices,
    habits: &Habits,
    earlier: &[RequestSpec],
    number: u64,
) -> RequestSpec {
    let last = earlier.last().map_or(Tick(0), |spec| spec.at);
    let gap = match choices.chance(habits.bursts, 8) {
        true => 0,
        false => choices.below(habits.gap + 1),
    };
    let mut prompt = match choices.chance(habits.sharing, 8) {
        true => shared(choices, habits, earlier),
        false => Vec::new(),
    };
    if prompt.is_empty() || choices.chance(1, 2) {
        let tokens = tokens(choices, habits.layout, habits.longest);
        let offset = if choices.chance(1, 16) { choices.within(1..=4) } else { 0 };
        prompt.push(RunSpec {
            content: ContentId(COLD + number),
            offset: Tokens(offset),
            len: Tokens(tokens),
        });
    }
    cut(&mut prompt, habits.longest);
    RequestSpec {
        at: last + Tick(gap),
        prompt,
        output: Tokens(choices.within(1..=habits.output)),
        max_new_tokens: None,
        output_content: choices.chance(1, 2).then_some(ContentId(OUTPUTS + number)),
        namespace: choices.within(0..=habits.namespaces - 1),
        priority: i64::from(choices.within(0..=habits.priorities - 1)),
    }
}

/// Lets some clients allow more output than they get.
pub(super) fn allow_more_output(choices: &mut impl Choices, workload: &mut WorkloadConfig) {
    let WorkloadConfig::Requests(list) = workload else { return };
    for spec in list {
        let more = if choices.chance(1, 2) { choices.within(1..=64) } else { 0 };
        spec.max_new_tokens = (more > 0).then_some(spec.output + Tokens(more));
    }
}

/// What a prompt can share: a hot content, or an earlier prompt, whole, cut short at either end, or
/// with its output as the turn after it has it.
fn shared(choices: &mut impl Choices, habits: &Habits, earlier: &[RequestSpec]) -> Vec<RunSpec> {
    let form = choices.below(6);
    if form == 0 || earlier.is_empty() {
        let content = ContentId(1 + choices.below(HOT_CONTENTS));
        let len = Tokens(tokens(choices, habits.layout, habits.longest));
        return vec![RunSpec { content, offset: Tokens(0), len }];
    }
    let before = choices.pick(earlier);
    let mut runs = before.prompt.clone();
    match (form, before.output_content) {
        (1 | 2, Some(content)) => {
            runs.push(RunSpec { content, offset: Tokens(0), len: before.output });
        }
        (3, _) => cut(&mut runs, tokens(choices, habits.layout, habits.longest)),
        (4, _) => skip(&mut runs, tokens(choices, habits.layout, habits.longest)),
        (_, _) => {}
    }
    runs
}

/// A length near the places where something begins or ends. The lowest draw is about the longest,
/// so that scenarios stay large when a fuzzer's bytes end.
fn tokens(choices: &mut impl Choices, layout: LayoutConfig, longest: u32) -> u32 {
    let (page, virtual_page) = (layout.page_size, layout.virtual_page());
    let drawn = match choices.below(8) {
        0..=2 => near(choices, virtual_page, longest),
        3 => near(choices, page, longest),
        4 => virtual_page * choices.within(1..=2),
        5 => virtual_page + page * choices.within(0..=layout.ranks),
        6 => choices.within(1..=page + 1),
        _ => choices.within(1..=longest),
    };
    drawn.clamp(1, longest)
}

/// A multiple of `unit` up to `longest`, one token less or one more.
fn near(choices: &mut impl Choices, unit: u32, longest: u32) -> u32 {
    let most = (longest / unit).max(1);
    let count = most - choices.within(0..=most - 1);
    count * unit + choices.within(0..=2) - 1
}

fn length(runs: &[RunSpec]) -> u32 {
    runs.iter().map(|run| run.len.0).sum()
}

/// Cuts `runs` to `most` tokens.
fn cut(runs: &mut Vec<RunSpec>, most: u32) {
    let mut left = Tokens(most);
    for run in &mut *runs {
        run.len = run.len.min(left);
        left -= run.len;
    }
    runs.retain(|run| run.len > Tokens(0));
}

/// Takes the first `tokens` of `runs` away.
fn skip(runs: &mut Vec<RunSpec>, tokens: u32) {
    let mut left = Tokens(tokens);
    for run in &mut *runs {
        let skipped = run.len.min(left);
        left -= skipped;
        run.offset += skipped;
        run.len -= skipped;
    }
    runs.retain(|run| run.len > Tokens(0));
}

/// A workload that is itself drawn, from the scenario's seed.
fn synthetic(
    choices: &mut impl Choices,
    habits: &Habits,
    count: u32,
) -> (WorkloadConfig, Vec<Demand>) {
    let prefix_groups = choices.within(0..=2).min(count);
    let mut tokens = || tokens(choices, habits.layout, habits.longest);
    let (prefix, least, most) = (tokens(), tokens(), tokens());
    let (least, most) = (least.min(most), least.max(most));
    let config = Synthetic {
        requests: count,
        arrivals: Arrivals::Bursts { size: choices.within(1..=4), gap: habits.gap },
        prompt: Lengths::Uniform { min: least, max: most },
        output: Lengths::OneOf(vec![choices.within(1..=habits.output), 1]),
        prefix_groups,
        prefix: (prefix_groups > 0).then_some(Lengths::Fixed(prefix)),
        turns: choices.within(1..=3),
    };
    let output = habits.output;
    let shared = if prefix_groups > 0 { prefix } else { 0 };
    let prompt = shared + config.turns * most + (config.turns - 1) * output;
    let demand = (0..count).map(|_| Demand { prompt, output }).collect();
    (WorkloadConfig::Synthetic(config), demand)
}
