//! What is decided when a request arrives: whether its servers can be connected, and whether their
//! pools can ever serve it.

use super::setup::Setup;
use crate::behaviour::{CapacityUnit, FrontCheck, OutputLimit, Retraction};
use crate::engine::connection::{Endpoint, Pairing, PeerRefusal};
use crate::finding::Code;
use crate::scenario::Scenario;
use crate::units::{PageSize, Pages, Rank, Tokens};
use crate::workload::Request;

/// Whether the peers can be connected, by what they say of themselves. With one prefill rank no
/// side says its rank: `prefill_rank` and `decode_rank` then count for nothing. One model runs on
/// both sides, so the kind of the decode pool is that of prefill's, too.
pub(super) fn pair(scenario: &Scenario) -> Result<Pairing, PeerRefusal> {
    let config = &scenario.pairing;
    let several = config.prefill_ranks > 1;
    let page = |rows| PageSize::new(rows).expect("validation keeps page sizes positive");
    let prefill = Endpoint {
        ranks: config.prefill_ranks,
        rank: several.then_some(Rank(config.prefill_rank)),
        page_size: page(config.prefill_page_size.unwrap_or(scenario.layout.page_size)),
        attention_cp: config.prefill_attention_cp,
        pool: config.decode_pool,
        entry_bytes: config.prefill_entry_bytes.clone(),
    };
    let decode = Endpoint {
        ranks: scenario.layout.ranks,
        rank: several.then_some(Rank(config.decode_rank)),
        page_size: page(scenario.layout.page_size),
        attention_cp: 1,
        pool: config.decode_pool,
        entry_bytes: config.decode_entry_bytes.clone(),
    };
    (scenario.profile.engine().pair)(&prefill, &decode)
}

/// Whether empty pools could serve a request of this prompt and whole length.
pub(super) fn fits(setup: &Setup<'_>, prompt: Tokens, length: Tokens) -> bool {
    let virtual_page = setup.virtual_page();
    let config = &setup.scenario.decode;
    let reserved = u64::from(config.reserved_tokens);
    let stored = length - Tokens(1);
    let held = u64::from(config.pages);
    let rows_of_rank = held * u64::from(setup.page().get()) + u64::from(config.leftover_rows);
    let decode = |tokens: Tokens, more: u64| match setup.switches.capacity_unit {
        CapacityUnit::VirtualPages => {
            let positions = u64::from(virtual_page.get());
            u64::from(tokens.pages_ceil(virtual_page).0) * positions + more <= held * positions
        }
        CapacityUnit::RankRows => u64::from(tokens.0) + more <= rows_of_rank,
        CapacityUnit::NotCutToPages => {
            u64::from(tokens.0) + more <= rows_of_rank * u64::from(setup.layout.ranks())
        }
    };
    let computed = match setup.switches.retraction {
        Retraction::HostCopy => prompt,
        Retraction::SendAgain => stored,
    };
    let prefill = computed.pages_ceil(setup.page()).0 <= setup.scenario.prefill.pages;
    match setup.switches.front_check {
        FrontCheck::EverServed => decode(prompt, reserved) && decode(stored, 0) && prefill,
        FrontCheck::InputLength => {
            let config = &setup.scenario.prefill;
            let prefill = u64::from(config.pages) * u64::from(setup.page().get());
            let shortest = setup.in_tokens(Pages(held as u32)).min(prefill);
            u64::from(prompt.0) + INPUT_MARGIN < shortest
        }
    }
}

/// Tokens by which a prompt must be shorter than either pool under `front_check = "input_length"`.
const INPUT_MARGIN: u64 = 6;

/// The most output that a request of `prompt` tokens may have, if there is a limit. A limit of 0
/// leaves the token that prefill yields.
pub(super) fn output_limit(scenario: &Scenario, prompt: Tokens) -> Option<Tokens> {
    let behaviours = scenario.behaviours();
    match behaviours.output_limit {
        OutputLimit::AsAsked => None,
        OutputLimit::Clipped => {
            let virtual_page = scenario.layout.page_size * scenario.layout.ranks;
            let page = PageSize::new(virtual_page).expect("validation keeps page sizes positive");
            let pool = Pages(scenario.decode.pages).tokens(page);
            let paged = prompt.ceil_to(page) + page.tokens() + Tokens(1);
            Some(pool.saturating_sub(paged).min(pool.saturating_sub(prompt + Tokens(2))))
        }
    }
}

/// Clips the output of each request to its limit.
pub(super) fn clip_output(scenario: &Scenario, requests: &mut [Request]) {
    for request in requests {
        if let Some(limit) = output_limit(scenario, request.prompt_len()) {
            request.output = request.output.min(limit).max(Tokens(1));
        }
    }
}

/// Under which code a request that `fits` or not is refused on arrival, and in which words.
pub(super) fn refusal(setup: &Setup<'_>, fits: bool, prompt: Tokens) -> Option<(Code, String)> {
    match &setup.pairing {
        Err(PeerRefusal { code, said }) => Some((*code, said.clone())),
        Ok(_) if !fits => Some((Code::RefusedCapacity, capacity_text(setup, prompt))),
        Ok(_) => None,
    }
}

fn capacity_text(setup: &Setup<'_>, prompt: Tokens) -> String {
    format!(
        "a prompt of {prompt} tokens: {} prefill pages of {}, {} decode pages of {}, {} tokens \
         reserved",
        setup.scenario.prefill.pages,
        setup.page(),
        setup.scenario.decode.pages,
        setup.virtual_page(),
        setup.scenario.decode.reserved_tokens
    )
}
