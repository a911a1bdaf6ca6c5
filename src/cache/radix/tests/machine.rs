//! The radix tree as a state machine: a server's calls, answered by a table of prefixes. Which leaf an
//! eviction takes is the policy's affair; that it was free to go is checked.

use proptest::strategy::Union;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use super::*;

/// A call; a number chooses among what is locked.
#[derive(Clone, Debug)]
enum Call {
    Lookup(Vec<PageKey>),
    Insert(Vec<PageKey>, i64),
    /// Locks what is found.
    Lock(Vec<PageKey>),
    Unlock(usize),
    Evict(u32),
}

/// What is known of the calls in advance.
#[derive(Clone, Debug)]
struct Server {
    policy: Eviction,
    locks: usize,
    next_page: u32,
}

impl ReferenceStateMachine for Server {
    type State = Server;
    type Transition = Call;

    fn init_state() -> BoxedStrategy<Server> {
        let policy = proptest::sample::select(&Eviction::ALL[..]);
        policy.prop_map(|policy| Server { policy, locks: 0, next_page: 1 }).boxed()
    }

    fn transitions(server: &Server) -> BoxedStrategy<Call> {
        let keys = || proptest::collection::vec((0u32..3).prop_map(PageKey), 0..7);
        let mut calls = vec![
            keys().prop_map(Call::Lookup).boxed(),
            (keys(), 0i64..3).prop_map(|(keys, priority)| Call::Insert(keys, priority)).boxed(),
            keys().prop_map(Call::Lock).boxed(),
            (0u32..8).prop_map(Call::Evict).boxed(),
        ];
        if server.locks > 0 {
            calls.push((0..server.locks).prop_map(Call::Unlock).boxed());
        }
        Union::new(calls).boxed()
    }

    fn preconditions(server: &Server, call: &Call) -> bool {
        match call {
            Call::Lookup(_) | Call::Insert(..) | Call::Lock(_) | Call::Evict(_) => true,
            Call::Unlock(index) => *index < server.locks,
        }
    }

    fn apply(mut server: Server, call: &Call) -> Server {
        match call {
            Call::Lookup(_) | Call::Evict(_) => {}
            Call::Insert(keys, _) => server.next_page += Pages::of(keys).0,
            Call::Lock(_) => server.locks += 1,
            Call::Unlock(_) => server.locks -= 1,
        }
        server
    }
}

/// The tree beside the table, with the anchors of what is locked.
struct TreeMachine {
    cache: RadixCache,
    model: Model,
    anchors: Vec<Anchor>,
}

impl TreeMachine {
    fn insert(&mut self, keys: &[PageKey], priority: i64, next_page: u32) {
        let first = next_page - Pages::of(keys).0;
        let pages: Vec<PageId> = (first..next_page).map(PageId).collect();
        let taken = self.cache.insert(keys, &pages, priority);
        let matched = self.model.longest(keys);
        let beyond: Vec<bool> = (0..keys.len()).map(|at| at >= matched).collect();
        assert_eq!(taken, beyond);
        for at in matched..keys.len() {
            self.model.pages.insert(keys[..=at].to_vec(), pages[at]);
        }
    }

    fn evict(&mut self, wanted: Pages) {
        let before = self.cache.evictable();
        let freed = self.cache.evict(wanted);
        for leaf in &freed {
            self.model.drop_leaf(leaf);
        }
        let count: Pages = freed.iter().map(|leaf| Pages::of(leaf)).sum();
        assert!(count >= wanted.min(before), "as many as wanted, if there are");
        let last = freed.last().map_or(Pages(0), |leaf| Pages::of(leaf));
        assert!(count == Pages(0) || count - last < wanted, "and no leaf more");
    }
}

impl StateMachineTest for TreeMachine {
    type SystemUnderTest = TreeMachine;
    type Reference = Server;

    fn init_test(server: &Server) -> TreeMachine {
        let cache = RadixCache::new(Box::new(server.policy));
        TreeMachine { cache, model: Model::default(), anchors: Vec::new() }
    }

    fn apply(mut tested: TreeMachine, server: &Server, call: Call) -> TreeMachine {
        let TreeMachine { cache, model, anchors } = &mut tested;
        match call {
            Call::Lookup(keys) => assert_eq!(cache.lookup(&keys).pages, model.lookup(&keys)),
            Call::Insert(keys, priority) => tested.insert(&keys, priority, server.next_page),
            Call::Lock(keys) => {
                let hit = cache.lookup(&keys);
                assert!(cache.lock(hit.anchor));
                anchors.push(hit.anchor);
                model.locked.push(keys[..hit.pages.len()].to_vec());
            }
            Call::Unlock(index) => {
                assert!(cache.unlock(anchors.swap_remove(index)));
                model.locked.swap_remove(index);
            }
            Call::Evict(wanted) => tested.evict(Pages(wanted)),
        }
        tested
    }

    fn check_invariants(tested: &TreeMachine, _: &Server) {
        let TreeMachine { cache, model, .. } = tested;
        assert_whole(cache);
        let held: BTreeSet<PageId> = cache.pages().collect();
        assert!(held.iter().eq(model.pages.values().collect::<BTreeSet<_>>()));
        assert_eq!(cache.protected(), model.protected());
        assert_eq!((cache.evictable() + cache.protected()).index(), model.pages.len());
    }
}

prop_state_machine! {
    #[test]
    fn a_tree_answers_every_call_as_a_table_of_prefixes_does(sequential 1..40 => TreeMachine);
}
