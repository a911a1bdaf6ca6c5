//! The block-hash cache as a state machine: a server's calls, answered by a table and a list.

use proptest::strategy::Union;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use super::*;

/// A call; numbers choose among what was found, youngest first, and among what is locked.
#[derive(Clone, Debug)]
enum Call {
    Lookup(Prompt),
    Insert(Prompt),
    /// Locks what some lookup found, perhaps long ago.
    Lock(usize),
    Unlock(usize),
    Evict(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Pages(Vec<PageId>),
    Took(Vec<bool>),
    Locked(bool),
    Dropped(Vec<Vec<PageId>>),
}

/// The plain model with what was found, and what the last call is answered.
#[derive(Clone, Debug)]
struct Server {
    model: Model,
    found: Vec<(Prompt, Vec<PageId>)>,
    next_page: u32,
    answer: Answer,
}

/// The pages of an insert of so many, the last before `next_page`.
fn inserted(prompt: &[u64], next_page: u32) -> Vec<PageId> {
    (next_page - Pages::of(prompt).0..next_page).map(PageId).collect()
}

impl ReferenceStateMachine for Server {
    type State = Server;
    type Transition = Call;

    fn init_state() -> BoxedStrategy<Server> {
        let answer = Answer::Pages(Vec::new());
        let server = Server { model: Model::default(), found: Vec::new(), next_page: 1, answer };
        Just(server).boxed()
    }

    fn transitions(server: &Server) -> BoxedStrategy<Call> {
        let prompt = || proptest::collection::vec(0u64..2, 0..7);
        let mut calls = vec![
            prompt().prop_map(Call::Lookup).boxed(),
            prompt().prop_map(Call::Insert).boxed(),
            (0u32..6).prop_map(Call::Evict).boxed(),
        ];
        if !server.found.is_empty() {
            calls.push((0..server.found.len().min(6)).prop_map(Call::Lock).boxed());
        }
        if !server.model.locked.is_empty() {
            calls.push((0..server.model.locked.len()).prop_map(Call::Unlock).boxed());
        }
        Union::new(calls).boxed()
    }

    fn preconditions(server: &Server, call: &Call) -> bool {
        match call {
            Call::Lookup(_) | Call::Insert(_) | Call::Evict(_) => true,
            Call::Lock(index) => *index < server.found.len(),
            Call::Unlock(index) => *index < server.model.locked.len(),
        }
    }

    fn apply(mut server: Server, call: &Call) -> Server {
        let model = &mut server.model;
        server.answer = match call {
            Call::Lookup(prompt) => {
                let pages = model.lookup(prompt);
                server.found.insert(0, (prompt[..pages.len()].to_vec(), pages.clone()));
                Answer::Pages(pages)
            }
            Call::Insert(prompt) => {
                server.next_page += Pages::of(prompt).0;
                Answer::Took(model.insert(prompt, &inserted(prompt, server.next_page)))
            }
            Call::Lock(index) => {
                // A lock protects what was found or nothing.
                let (prompt, pages) = &server.found[*index];
                let is_there = model.lookup(prompt) == *pages;
                if is_there {
                    model.lock(prompt);
                }
                Answer::Locked(is_there)
            }
            Call::Unlock(index) => {
                model.unlock(*index);
                Answer::Locked(true)
            }
            Call::Evict(wanted) => Answer::Dropped(model.evict(*wanted as usize)),
        };
        server
    }
}

/// The cache, with the hits of all lookups and the anchors of what is locked.
#[derive(Default)]
struct CacheMachine {
    cache: BlockHashCache,
    chains: Chains,
    found: Vec<Hit>,
    anchors: Vec<Anchor>,
}

impl StateMachineTest for CacheMachine {
    type SystemUnderTest = CacheMachine;
    type Reference = Server;

    fn init_test(_: &Server) -> CacheMachine {
        CacheMachine::default()
    }

    fn apply(mut tested: CacheMachine, server: &Server, call: Call) -> CacheMachine {
        let CacheMachine { cache, chains, found, anchors } = &mut tested;
        let answer = match call {
            Call::Lookup(prompt) => {
                let hit = cache.lookup(&keys(chains, &prompt));
                found.insert(0, hit.clone());
                Answer::Pages(hit.pages)
            }
            Call::Insert(prompt) => {
                let pages = inserted(&prompt, server.next_page);
                Answer::Took(cache.insert(&keys(chains, &prompt), &pages, 0))
            }
            Call::Lock(index) => {
                let is_locked = cache.lock(found[index].anchor);
                anchors.extend(is_locked.then_some(found[index].anchor));
                Answer::Locked(is_locked)
            }
            Call::Unlock(index) => Answer::Locked(cache.unlock(anchors.remove(index))),
            Call::Evict(wanted) => Answer::Dropped(cache.evict(Pages(wanted))),
        };
        assert_eq!(answer, server.answer);
        tested
    }

    fn check_invariants(tested: &CacheMachine, server: &Server) {
        let (cache, model) = (&tested.cache, &server.model);
        assert_whole(cache);
        let held: Vec<PageId> = cache.pages().collect();
        let distinct: BTreeSet<PageId> = held.iter().copied().collect();
        assert_eq!(distinct.len(), held.len());
        assert!(distinct.iter().eq(model.pages.values().collect::<BTreeSet<_>>()));
        assert_eq!(cache.evictable().index(), model.queue.len());
        assert_eq!((cache.evictable() + cache.protected()).index(), model.pages.len());
    }
}

prop_state_machine! {
    #[test]
    fn a_cache_answers_every_call_as_a_table_and_a_list_do(sequential 1..60 => CacheMachine);
}
