//! The pool as a state machine: a server's calls, answered by the plain lists.

use proptest::strategy::Union;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use super::*;

/// What a server does.
#[derive(Clone, Debug)]
enum Step {
    /// Grows requests by so many tokens each; a new one begins so.
    Extend(BTreeMap<usize, u32>),
    /// Adds a token to its first so many requests.
    Decode(usize),
    /// Takes so many pages in one block.
    Alloc(u32),
    /// Ends a request.
    End(usize),
    /// Gives a block back.
    Free(usize),
}

/// A call of the pool.
#[derive(Clone, Debug)]
enum Call {
    Extend(Vec<Growth>),
    Decode(Vec<Tokens>),
    Alloc(Pages),
    Free(Vec<PageId>),
}

/// A server on the plain lists, with the call that its last step made and the answer to it: new pages
/// of each request, or none at all where they do not suffice.
#[derive(Clone, Debug)]
struct Server {
    model: Model,
    total: u32,
    /// Length and pages of requests 0..8.
    held: BTreeMap<usize, (u32, Vec<u32>)>,
    blocks: Vec<Vec<u32>>,
    call: Call,
    answer: Option<Vec<Vec<u32>>>,
}

impl Server {
    fn extend(&mut self, more: &BTreeMap<usize, u32>) {
        let length = |request| self.held.get(request).map_or(0, |&(length, _)| length);
        let spans: Vec<(u32, u32)> =
            more.iter().map(|(request, more)| (length(request), length(request) + more)).collect();
        let growth =
            |&(prefix, length): &_| Growth { prefix: Tokens(prefix), length: Tokens(length) };
        self.call = Call::Extend(spans.iter().map(growth).collect());
        self.answer = self.model.extend(&spans);
        let pages = self.answer.iter().flatten();
        for ((&request, (_, length)), pages) in more.keys().zip(spans).zip(pages) {
            let held = self.held.entry(request).or_default();
            held.0 = length;
            held.1.extend(pages);
        }
    }

    fn decode(&mut self, count: usize) {
        let first = self.held.values_mut().take(count);
        let lengths: Vec<u32> = first.map(|(length, _)| *length + 1).collect();
        let opened = lengths.iter().map(|&length| self.model.opened(length - 1, length));
        let opened: Vec<usize> = opened.collect();
        let taken = self.model.take(opened.iter().sum(), lengths.len());
        self.call = Call::Decode(lengths.iter().copied().map(Tokens).collect());
        self.answer = taken
            .map(|mut taken| opened.iter().map(|&count| taken.drain(..count).collect()).collect());
        for ((length, pages), new) in self.held.values_mut().zip(self.answer.iter().flatten()) {
            *length += 1;
            pages.extend(new);
        }
    }

    /// Gives pages back, backwards, so that an order which should sort a call's pages has to.
    fn give_back(&mut self, mut pages: Vec<u32>) {
        pages.reverse();
        self.model.free(&pages);
        self.call = Call::Free(pages.into_iter().map(PageId).collect());
        self.answer = Some(Vec::new());
    }
}

impl ReferenceStateMachine for Server {
    type State = Server;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Server> {
        let kind = kind().prop_filter("a draw has no plain rule", |&kind| kind != Kind::Random);
        let server = |(kind, page, total)| Server {
            model: Model { kind, page, list: (1..=total).collect(), staged: Vec::new() },
            total,
            held: BTreeMap::new(),
            blocks: Vec::new(),
            call: Call::Alloc(Pages(0)),
            answer: None,
        };
        (kind, 1u32..6, 1u32..24).prop_map(server).boxed()
    }

    fn transitions(server: &Server) -> BoxedStrategy<Step> {
        let batch = proptest::collection::btree_map(0usize..8, 1u32..14, 1..4);
        let mut steps =
            vec![batch.prop_map(Step::Extend).boxed(), (0u32..5).prop_map(Step::Alloc).boxed()];
        if !server.held.is_empty() {
            let requests: Vec<usize> = server.held.keys().copied().collect();
            steps.push((1..=requests.len()).prop_map(Step::Decode).boxed());
            steps.push(proptest::sample::select(requests).prop_map(Step::End).boxed());
        }
        if !server.blocks.is_empty() {
            steps.push((0..server.blocks.len()).prop_map(Step::Free).boxed());
        }
        Union::new(steps).boxed()
    }

    fn preconditions(server: &Server, step: &Step) -> bool {
        match step {
            Step::Extend(_) | Step::Alloc(_) => true,
            Step::Decode(count) => *count <= server.held.len(),
            Step::End(request) => server.held.contains_key(request),
            Step::Free(block) => *block < server.blocks.len(),
        }
    }

    fn apply(mut server: Server, step: &Step) -> Server {
        match step {
            Step::Extend(more) => server.extend(more),
            Step::Decode(count) => server.decode(*count),
            Step::Alloc(pages) => {
                let taken = server.model.take(*pages as usize, *pages as usize);
                server.call = Call::Alloc(Pages(*pages));
                server.blocks.extend(taken.clone());
                server.answer = taken.map(|taken| vec![taken]);
            }
            Step::End(request) => {
                let (_, pages) = server.held.remove(request).expect("the request runs");
                server.give_back(pages);
            }
            Step::Free(block) => {
                let pages = server.blocks.swap_remove(*block);
                server.give_back(pages);
            }
        }
        server
    }
}

struct PoolMachine;

impl StateMachineTest for PoolMachine {
    type SystemUnderTest = Pool;
    type Reference = Server;

    fn init_test(server: &Server) -> Pool {
        pool(server.model.page, server.total, server.model.kind.order())
    }

    fn apply(mut pool: Pool, server: &Server, _: Step) -> Pool {
        let answer = match &server.call {
            Call::Extend(batch) => {
                pool.extend(batch).ok().map(|lists| lists.iter().map(|list| raw(list)).collect())
            }
            Call::Decode(lengths) => pool.decode(lengths).ok().map(|pages| {
                pages.into_iter().map(|page| raw(page.as_slice())).collect::<Vec<_>>()
            }),
            Call::Alloc(pages) => pool.alloc(*pages).ok().map(|pages| vec![raw(&pages)]),
            Call::Free(pages) => {
                pool.free(pages);
                Some(Vec::new())
            }
        };
        assert_eq!(answer, server.answer, "{:?}", server.call);
        pool
    }

    /// Every page is in one place, and the free ones are listed as in the plain lists.
    fn check_invariants(pool: &Pool, server: &Server) {
        let held = server.held.values().map(|(_, pages)| pages);
        let mut all: Vec<u32> = held.chain(&server.blocks).flatten().copied().collect();
        let out = u32::try_from(all.len()).unwrap();
        assert_eq!(pool.available() + Pages(out), pool.total());
        let free = raw(&pool.free_pages().collect::<Vec<_>>());
        assert_eq!(free, [&server.model.list[..], &server.model.staged].concat());
        all.extend(free);
        all.sort();
        assert!(all.into_iter().eq(1..=pool.total().0));
    }
}

prop_state_machine! {
    #[test]
    fn a_pool_answers_every_call_as_the_plain_lists_do(sequential 1..40 => PoolMachine);
}
