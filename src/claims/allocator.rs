//! Allocator: whatever the free-list order, the pool hands out free pages, each as often as it was
//! given back, in the order that its list stands for, and counts them right.

use super::sizes;
use crate::behaviour::Behaviours;
use crate::event::Server;
use crate::finding::Side;
use crate::reference::allocator::{Case, Operation, Rule, check};
use crate::scenario::generate::Choices;
use crate::units::{PageSize, Pages, Tokens};
use crate::world::Registry;
use crate::world::registry::ServerSetup;

/// Calls of one case, at most.
const CALLS: u32 = 64;

/// What is known of a registered order on pages of so many rows.
fn rule(name: &str, page: u32) -> Rule {
    match name {
        "best_fit" => Rule::BestFit,
        "buddy" => Rule::Buddy,
        "fifo" => Rule::Queue,
        "lowest" => Rule::Lowest,
        "random" => Rule::Unsettled,
        "sorted" => Rule::Sorted,
        "stack" if page == 1 => Rule::Queue,
        "stack" => Rule::Stack,
        other => panic!("the order {other} has no rule"),
    }
}

/// Tries drawn calls on a pool of every kind of free list.
pub fn hands_out_free_pages_once(choices: &mut impl Choices) {
    let registry = Registry::built_in();
    let names: Vec<&String> = registry.free_orders.keys().collect();
    let name = *choices.pick(&names);
    let page = *choices.pick(&[4, 1, 16]);
    let pages = choices.within(1..=48);
    let setup = ServerSetup {
        server: Server { side: Side::Prefill, index: 0 },
        page: PageSize::new(page).expect("it is positive"),
        pages: Pages(pages),
        tail: Tokens(0),
        behaviours: Behaviours::default(),
        seed: choices.below(4),
    };
    let calls = choices.within(1..=CALLS);
    let operations = (0..calls).map(|_| operation(choices, page, pages)).collect();
    let case = Case { page, pages, rule: rule(name, page), operations };
    check(&case, registry.free_orders[name](&setup));
    sizes::tell("operations", calls.into());
}

fn operation(choices: &mut impl Choices, page: u32, pages: u32) -> Operation {
    match choices.below(4) {
        0 => {
            let count = choices.within(1..=3);
            let mut more = || (choices.below(8) as usize, choices.within(0..=3 * page));
            Operation::Extend((0..count).map(|_| more()).collect())
        }
        1 => Operation::Decode(choices.within(0..=4) as usize),
        2 => Operation::Alloc(choices.within(0..=pages / 4 + 1)),
        _ => Operation::Free {
            holder: choices.below(8) as usize,
            backwards: choices.chance(1, 2),
            keeps: choices.chance(1, 16),
        },
    }
}
