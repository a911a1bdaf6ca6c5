//! Prefix caches: what is found, kept, protected and dropped agrees with a table of prefixes, for
//! the radix tree under every eviction policy and for the block-hash cache.

use super::sizes;
use crate::behaviour::SplitStamp;
use crate::cache::block_hash::BlockHashCache;
use crate::cache::eviction::{Eviction, EvictionPolicy, Ordered};
use crate::cache::radix::RadixCache;
use crate::cache::tail::TailLru;
use crate::reference::prefix_cache::{Case, Dropping, Naming, Operation, Prompt, check};
use crate::scenario::generate::Choices;
use crate::units::{PageSize, Tokens};

/// Calls of one case, at most; a lookup with a lock is one.
const CALLS: u32 = 64;
/// Pages of a prompt, at most.
const PROMPT_PAGES: u32 = 12;

/// Tries drawn calls on a radix tree.
pub fn radix_keeps_its_pages(choices: &mut impl Choices) {
    let tail = choices.chance(1, 8).then(|| Tokens(choices.within(1..=8)));
    let eviction = *choices.pick(&Eviction::ALL);
    let naming = *choices.pick(&[Naming::Chained, Naming::Alone]);
    let case = draw(choices, Dropping::Leaves, naming);
    let page = PageSize::new(case.page).expect("a page has tokens");
    let policy: Box<dyn EvictionPolicy> = match tail {
        Some(tail) => Box::new(TailLru::new(tail, page)),
        None => Box::new(Ordered::new(eviction)),
    };
    check(&case, RadixCache::new(policy, SplitStamp::New), |_| {});
}

/// Tries drawn calls on a block-hash cache.
pub fn block_hash_keeps_its_pages(choices: &mut impl Choices) {
    let case = draw(choices, Dropping::InTurn, Naming::Chained);
    check(&case, BlockHashCache::default(), |_| {});
}

fn draw(choices: &mut impl Choices, dropping: Dropping, naming: Naming) -> Case {
    let page = choices.within(1..=4);
    let calls = choices.within(1..=CALLS);
    let mut operations = Vec::new();
    for _ in 0..calls {
        match choices.below(5) {
            0 | 1 => {
                let prompt = prompt(choices, page);
                operations.push(Operation::Insert(prompt, i64::from(choices.within(0..=2))));
            }
            2 => {
                operations.push(Operation::Lookup(prompt(choices, page)));
                if choices.chance(1, 2) {
                    operations.push(Operation::Lock(0));
                }
            }
            3 => operations.push(match choices.below(16) {
                0..=10 => Operation::Unlock(choices.below(8) as usize),
                11..=14 => Operation::Lock(choices.below(8) as usize),
                _ => Operation::Clear,
            }),
            _ => operations.push(Operation::Evict(choices.within(0..=6))),
        }
    }
    sizes::tell("operations", calls.into());
    Case { dropping, naming, page, operations }
}

/// A prompt of few contents, so that prompts share beginnings of any length.
fn prompt(choices: &mut impl Choices, page: u32) -> Prompt {
    let longest = PROMPT_PAGES / 2 * page;
    let runs = (0..2).map(|_| (choices.within(0..=2), choices.within(1..=longest))).collect();
    Prompt { namespace: u32::from(choices.chance(1, 8)), runs }
}
