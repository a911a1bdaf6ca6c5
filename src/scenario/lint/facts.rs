//! Facts about a scenario that the lint's rules are conditions on.

use std::collections::BTreeSet;

use super::super::validate::{FIRST_COME, NO_CACHE};
use super::super::{Fault, Lengths, RequestSpec, Scenario, Synthetic, TraceConfig, WorkloadConfig};
use crate::behaviour::{
    Behaviours, DecodeMatchUnit, EarlySend, FrontCheck, OutputLimit, PrefillStart, RefusedRequest,
    Retraction, SendSplit, SourceLength,
};

/// Facts about a scenario. `None`, or `false` where `true` would be a guarantee, stands for what
/// cannot be known before the run.
pub(super) struct Facts {
    pub(super) behaviours: Behaviours,
    pub(super) page: u64,
    pub(super) ranks: u64,
    pub(super) virtual_page: u64,
    /// A decode lookup can find something.
    pub(super) decode_hits: bool,
    /// A prefill lookup can find something.
    pub(super) prefill_hits: bool,
    /// Copies can land in another order than they were put on the link.
    pub(super) reorders: bool,
    pub(super) aborts: bool,
    /// Messages that a part has landed are lost, or doubled.
    pub(super) loses: bool,
    pub(super) doubles: bool,
    pub(super) flushes: bool,
    /// A request can come before an earlier one on prefill, or be sent there again.
    pub(super) overtakes: bool,
    /// No prompt is ever computed in more than one chunk.
    pub(super) one_chunk: bool,
    /// No request ever has more than one piece.
    pub(super) one_piece: bool,
    /// No send is larger than the pack buffer.
    pub(super) sends_fit: bool,
    /// Prompt lengths, where they are written out.
    pub(super) prompts: Option<Vec<u64>>,
    /// Decode pages that stay free even when every request is at its longest and stays cached.
    pub(super) spare_pages: Option<u64>,
    pub(super) requests: Option<u64>,
    /// The longest prompt with its output.
    pub(super) length_max: Option<u64>,
    /// The longest prompt with what its client allows of output.
    allowed_max: Option<u64>,
    /// Requests are of more than one namespace.
    pub(super) namespaces: bool,
    /// Output can begin inside a virtual page and have a row there.
    pub(super) output_inside_page: bool,
    /// Decode ranks have rows behind their last page.
    pub(super) leftover_rows: bool,
    /// Decode keeps tokens back for each request.
    pub(super) reserves: bool,
    /// See [`reserve_fits`].
    reserve_fits: bool,
    /// The longest prompt.
    prompt_max: Option<u64>,
    /// The longest sequence that prefill computes.
    computed_max: Option<u64>,
    /// Tokens of one server's pool.
    prefill_pool: u64,
    decode_pool: u64,
    /// Several ranks keep draft KV.
    pub(super) drafts: bool,
}

impl Facts {
    pub(super) fn of(scenario: &Scenario) -> Facts {
        let behaviours = scenario.behaviours();
        let page = u64::from(scenario.layout.page_size);
        let virtual_page = page * u64::from(scenario.layout.ranks);
        let sizes = Sizes::of(&scenario.workload);
        let chunk = u64::from(scenario.prefill.chunk_tokens);
        let pack = u64::from(scenario.link.pack_tokens);
        let prefill_hits = scenario.prefill.cache != NO_CACHE;

        // A step admits whole pages of every request, so that requests which wait together can be
        // cut although each alone would fit.
        let computed = sizes.computed_max(behaviours.retraction);
        let all = computed.zip(sizes.requests);
        let one_chunk =
            all.is_some_and(|(longest, count)| count * longest.next_multiple_of(page) <= chunk);
        // A cached prefix goes out with the first chunk, and what was computed before the
        // destination was known with the next one; otherwise only a partial page can wait.
        let waits = behaviours.prefill_start == PrefillStart::AtArrival;
        let more = match behaviours.source_length {
            SourceLength::Prompt => 0,
            SourceLength::OneMore => 1,
        };
        let send_max = if prefill_hits || waits {
            computed.map(|longest| longest + more)
        } else {
            Some(computed.unwrap_or(u64::MAX).min(chunk + page - 1).saturating_add(more))
        };
        let sends_fit = send_max.is_some_and(|send| send <= pack);
        let split = behaviours.send_split != SendSplit::No && !sends_fit;
        let early = behaviours.early_send != EarlySend::Off && prefill_hits;

        let needed = sizes.length_max.zip(sizes.requests);
        let needed = needed.map(|(longest, count)| count * longest.div_ceil(virtual_page));
        let pages = u64::from(scenario.decode.pages);
        let has = |is: fn(&Fault) -> bool| scenario.faults.iter().any(is);
        Facts {
            behaviours,
            page,
            ranks: u64::from(scenario.layout.ranks),
            virtual_page,
            decode_hits: scenario.decode.cache != NO_CACHE && sizes.requests != Some(1),
            prefill_hits,
            reorders: scenario.link.delay_every > 0 && scenario.link.delay_ticks > 0,
            aborts: has(|fault| matches!(fault, Fault::Abort { .. })),
            loses: has(|fault| matches!(fault, Fault::Lose { .. })),
            doubles: has(|fault| matches!(fault, Fault::Double { .. })),
            flushes: has(|fault| matches!(fault, Fault::Flush { .. })),
            overtakes: scenario.prefill.admission != FIRST_COME
                || behaviours.retraction == Retraction::SendAgain
                || behaviours.refused_request == RefusedRequest::ServedAgain,
            one_chunk,
            one_piece: one_chunk && !early && !split,
            sends_fit,
            prompts: sizes.prompts,
            spare_pages: needed.and_then(|needed| pages.checked_sub(needed)),
            requests: sizes.requests,
            length_max: sizes.length_max,
            allowed_max: sizes.allowed_max,
            namespaces: namespaces(&scenario.workload) > 1,
            output_inside_page: output_inside_page(&scenario.workload, virtual_page),
            leftover_rows: scenario.decode.leftover_rows > 0,
            reserves: scenario.decode.reserved_tokens > 0,
            reserve_fits: reserve_fits(scenario, sizes.prompt_max, virtual_page),
            prompt_max: sizes.prompt_max,
            computed_max: computed,
            prefill_pool: u64::from(scenario.prefill.pages) * page,
            decode_pool: pages * virtual_page,
            drafts: scenario.decode.draft && scenario.layout.ranks > 1,
        }
    }

    /// A reported decode hit can end inside a virtual page.
    pub(super) fn unaligned_hits(&self) -> bool {
        self.decode_hits
            && match self.behaviours.decode_match_unit {
                DecodeMatchUnit::VirtualPage => false,
                DecodeMatchUnit::PhysicalPage => self.ranks > 1,
                DecodeMatchUnit::Token => self.virtual_page > 1,
            }
    }

    /// A prompt can fill its virtual pages exactly.
    pub(super) fn can_fill_its_pages(&self) -> bool {
        !self.every_prompt(|len| !len.is_multiple_of(self.virtual_page))
    }

    /// There can be more than one request.
    pub(super) fn several_requests(&self) -> bool {
        self.requests != Some(1)
    }

    /// A request can have more than one part, of a piece and a rank each.
    pub(super) fn several_parts(&self) -> bool {
        self.ranks > 1 || !self.one_piece
    }

    /// A rank can be without a token of a piece. Only a lone piece has a known length.
    pub(super) fn idle_rank(&self) -> bool {
        self.ranks > 1 && !(self.one_piece && self.every_prompt(|len| len >= self.ranks))
    }

    /// A token is free for every request at any time, so that both ways to count the demand of
    /// the next step agree that nothing is short.
    pub(super) fn has_token_for_each(&self) -> bool {
        let spare = self.spare_pages.zip(self.requests);
        spare.is_some_and(|(pages, requests)| pages * self.virtual_page >= requests)
    }

    /// Every request's tokens, those that are never stored and those that its client allows
    /// included, fit an empty decode pool.
    pub(super) fn fits_with_last_token(&self) -> bool {
        let is_clipped = self.behaviours.output_limit == OutputLimit::Clipped
            && self.behaviours.front_check == FrontCheck::InputLength;
        is_clipped || self.allowed_max.is_some_and(|longest| longest <= self.decode_pool)
    }

    /// Whatever prefill computes leaves more than a page and a token of an empty pool.
    pub(super) fn leaves_prefill_margin(&self) -> bool {
        self.computed_max.is_some_and(|longest| longest + 1 + self.page < self.prefill_pool)
    }

    /// Empty pools could serve every request, and every prompt is six tokens shorter than either.
    pub(super) fn fits_by_every_measure(&self) -> bool {
        let stored = self.length_max.is_some_and(|longest| longest - 1 <= self.decode_pool);
        let computed = self.computed_max.is_some_and(|longest| longest <= self.prefill_pool);
        let shorter = self
            .prompt_max
            .is_some_and(|longest| longest + 6 < self.prefill_pool.min(self.decode_pool));
        self.reserve_fits && stored && computed && shorter
    }

    /// Decode can count rows that are in no page. Elsewhere tokens fit exactly if their pages do.
    pub(super) fn has_rows_in_no_page(&self) -> bool {
        self.leftover_rows || (self.reserves && self.virtual_page > 1)
    }

    /// Whether every reservation is for a prompt of which this holds. After a retraction a longer
    /// sequence is reserved for, so the pool must never run out.
    pub(super) fn every_prompt(&self, holds: impl Fn(u64) -> bool) -> bool {
        let prompts = self.prompts.as_ref();
        self.spare_pages.is_some() && prompts.is_some_and(|list| list.iter().all(|&len| holds(len)))
    }
}

/// The longest prompt, in whole pages and with what is kept back, fits an empty decode pool.
fn reserve_fits(scenario: &Scenario, longest: Option<u64>, virtual_page: u64) -> bool {
    let reserved = u64::from(scenario.decode.reserved_tokens);
    let pool = u64::from(scenario.decode.pages) * virtual_page;
    longest.is_some_and(|longest| longest.next_multiple_of(virtual_page) + reserved <= pool)
}

/// What a workload says of its requests before any is made.
#[derive(Default)]
struct Sizes {
    requests: Option<u64>,
    prompt_max: Option<u64>,
    /// The longest prompt with its output.
    length_max: Option<u64>,
    /// The longest prompt with what its client allows of output.
    allowed_max: Option<u64>,
    prompts: Option<Vec<u64>>,
}

impl Sizes {
    fn of(workload: &WorkloadConfig) -> Sizes {
        match workload {
            WorkloadConfig::Requests(list) => Sizes::of_list(list),
            WorkloadConfig::Synthetic(config) => Sizes::of_synthetic(config),
            WorkloadConfig::Trace(TraceConfig { requests_max, .. }) => {
                Sizes { requests: requests_max.map(u64::from), ..Sizes::default() }
            }
        }
    }

    /// The longest sequence that prefill computes.
    fn computed_max(&self, retraction: Retraction) -> Option<u64> {
        match retraction {
            Retraction::HostCopy => self.prompt_max,
            Retraction::SendAgain => self.length_max,
        }
    }

    fn of_list(list: &[RequestSpec]) -> Sizes {
        let prompts: Vec<u64> = list.iter().map(prompt_len).collect();
        let outputs = list.iter().map(|spec| u64::from(spec.output.0));
        let allowed = list.iter().map(|spec| spec.max_new_tokens.unwrap_or(spec.output));
        let allowed = prompts.iter().zip(allowed).map(|(prompt, most)| prompt + u64::from(most.0));
        Sizes {
            requests: Some(prompts.len() as u64),
            prompt_max: prompts.iter().copied().max(),
            length_max: prompts.iter().zip(outputs).map(|(prompt, output)| prompt + output).max(),
            allowed_max: allowed.max(),
            prompts: Some(prompts),
        }
    }

    fn of_synthetic(config: &Synthetic) -> Sizes {
        let turns = u64::from(config.turns);
        let output = longest(&config.output);
        let prefix = config.prefix.as_ref().map_or(0, longest);
        let prompt = prefix + turns * longest(&config.prompt) + (turns - 1) * output;
        Sizes {
            requests: Some(u64::from(config.requests)),
            prompt_max: Some(prompt),
            length_max: Some(prompt + output),
            allowed_max: Some(prompt + output),
            prompts: None,
        }
    }
}

/// Whether a request can have an output row in the virtual page in which its prompt ends.
fn output_inside_page(workload: &WorkloadConfig, virtual_page: u64) -> bool {
    match workload {
        WorkloadConfig::Requests(list) => list.iter().any(|spec| {
            // The last output token's KV is never stored.
            !prompt_len(spec).is_multiple_of(virtual_page) && spec.output.0 > 1
        }),
        WorkloadConfig::Synthetic(_) | WorkloadConfig::Trace(_) => virtual_page > 1,
    }
}

fn prompt_len(spec: &RequestSpec) -> u64 {
    spec.prompt.iter().map(|run| u64::from(run.len.0)).sum()
}

/// How many namespaces the requests are of.
fn namespaces(workload: &WorkloadConfig) -> usize {
    match workload {
        WorkloadConfig::Requests(list) => {
            list.iter().map(|spec| spec.namespace).collect::<BTreeSet<_>>().len()
        }
        WorkloadConfig::Synthetic(_) | WorkloadConfig::Trace(_) => 1,
    }
}

fn longest(lengths: &Lengths) -> u64 {
    u64::from(match lengths {
        Lengths::Fixed(length) => *length,
        Lengths::Uniform { max, .. } => *max,
        Lengths::OneOf(choices) => choices.iter().copied().max().unwrap_or_default(),
    })
}
