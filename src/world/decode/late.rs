//! The rows that steps write. They are written late: nobody looks at a running request's open page
//! while nothing happens there, so a step only counts, and the rows of many steps are written as
//! one stretch, each with the tick of its own step, before anybody reads or writes their page.

use super::super::context::Context;
use super::super::setup::Setup;
use super::request::Target;
use super::{Decode, Step};
use crate::memory::{Extent, Stamp, StepClock};
use crate::units::{PageId, Pages, RequestId, Tick, Tokens};

/// Which pages have rows that are not written yet.
pub(super) struct LateRows {
    /// When each step ended.
    pub(super) clock: StepClock,
    /// By page, the running request that stores its next token there.
    writers: Vec<Option<RequestId>>,
    /// Whether rows are written at once: somebody looks on, or two requests store in one page,
    /// whose order then matters.
    is_eager: bool,
}

impl LateRows {
    pub(super) fn new(pages: Pages, clock: StepClock) -> LateRows {
        LateRows { clock, writers: vec![None; pages.index() + 1], is_eager: false }
    }
}

impl Decode {
    /// The request is among the running ones: it generates output from the next step on.
    pub(super) fn join_running(&mut self, request: RequestId, cx: &Context<'_>) {
        self.running.push(request);
        self.may_open = true;
        // A step under way is not its step.
        self.requests[request].target_mut().next_step =
            self.steps_ended + u32::from(self.step.is_some());
        self.follow(request, cx);
    }

    /// Notes where the request stores its next token, and when it has to be looked at again.
    pub(super) fn follow(&mut self, request: RequestId, cx: &Context<'_>) {
        self.late.is_eager |= cx.log.is_watched();
        let virtual_page = cx.setup.virtual_page();
        let target = self.requests[request].target_mut();
        let in_page = target.stored.0 % virtual_page.get();
        let to_store = (cx.requests[request].text.len() - target.stored).0.saturating_sub(1);
        let steps =
            if self.late.is_eager { 1 } else { (virtual_page.get() - in_page).min(to_store) };
        target.due = target.next_step + steps;
        self.next_due = self.next_due.min(target.due);
        let ordinal = target.stored.pages_floor(virtual_page).index();
        let Some(page) = target.table.get(ordinal) else { return };
        let before = self.late.writers[page.index()].replace(request);
        if let Some(other) = before.filter(|other| *other != request) {
            self.catch_up(other, &cx.setup);
            self.late.is_eager = true;
            self.next_due = 0;
        }
    }

    /// Steps that have stored a token of the request, the one that ends just now among them.
    fn steps_of(&self, request: RequestId) -> u32 {
        let has_stored = match &self.step {
            Some(Step::Ends(batch, done)) => batch[..*done].contains(&request),
            Some(Step::Runs(_)) | None => false,
        };
        let next = self.requests[request].target().next_step;
        (self.steps_ended + u32::from(has_stored)).saturating_sub(next)
    }

    /// Positions stored of a running request.
    pub(super) fn stored(&self, request: RequestId) -> Tokens {
        self.requests[request].target().stored + Tokens(self.steps_of(request))
    }

    /// Whether the request has to be looked at in the step that ends.
    pub(super) fn is_due(&self, request: RequestId) -> bool {
        self.late.is_eager || self.requests[request].target().due <= self.steps_ended + 1
    }

    /// The step that ends stores no token of the request.
    pub(super) fn miss_step(&mut self, request: RequestId, setup: &Setup<'_>) {
        let steps = self.steps_of(request).saturating_sub(1);
        self.write_late(request, steps, setup);
        self.requests[request].target_mut().next_step = self.steps_ended + 1;
    }

    /// Writes the rows of the request that its steps have stored.
    pub(super) fn catch_up(&mut self, request: RequestId, setup: &Setup<'_>) {
        self.write_late(request, self.steps_of(request), setup);
    }

    /// Writes the late rows of every running request that stores its next token in one of `pages`.
    pub(super) fn catch_up_pages(
        &mut self,
        pages: impl IntoIterator<Item = PageId>,
        setup: &Setup<'_>,
    ) {
        for page in pages {
            if let Some(&Some(request)) = self.late.writers.get(page.index()) {
                self.catch_up(request, setup);
            }
        }
    }

    /// Writes the late rows of every running request that stores its next token in a page of this
    /// request's table.
    pub(super) fn catch_up_table(&mut self, request: RequestId, setup: &Setup<'_>) {
        for place in 0..self.requests[request].target().table.len() {
            let page = self.requests[request].target().table[place];
            self.catch_up_pages([page], setup);
        }
    }

    /// Takes away what a running request holds, with all its rows written.
    pub(super) fn take_running(&mut self, request: RequestId, setup: &Setup<'_>) -> Target {
        self.catch_up(request, setup);
        let target = self.requests[request].take_target();
        for page in &target.table {
            self.late.writers[page.index()].take_if(|writer| *writer == request);
        }
        target
    }

    /// When the next request has to be looked at.
    pub(super) fn find_next_due(&mut self) {
        let due = |&request: &RequestId| self.requests[request].target().due;
        let next = self.running.iter().map(due).min().unwrap_or(u32::MAX);
        self.next_due = if self.late.is_eager { 0 } else { next };
    }

    /// Writes the rows of the next `steps` tokens of the request, all in one page.
    fn write_late(&mut self, request: RequestId, steps: u32, setup: &Setup<'_>) {
        let layout = setup.layout;
        let (ranks, virtual_page) = (layout.ranks(), layout.virtual_page());
        let target = self.requests[request].target_mut();
        let (first, step) = (target.stored, target.next_step);
        target.stored += Tokens(steps);
        target.next_step += steps;
        let ordinal = first.pages_floor(virtual_page);
        // A transfer that activated early and was refused later can lack the page.
        let Some(&page) = target.table.get(ordinal.index()).filter(|_| steps > 0) else { return };
        let (striped, drafts) = self.store.memory.split_at_mut(ranks as usize);
        let stamp = |ahead| Stamp {
            text: request,
            position: first + Tokens(ahead),
            written: Tick(0),
            writer: request,
        };
        let start = (first - ordinal.tokens(virtual_page)).0;
        for draft in drafts {
            draft.write(page, Extent::by_steps((start, steps), stamp(0), 1, step, 1));
        }
        for ahead in 0..ranks.min(steps) {
            let position = start + ahead;
            let rows = (position / ranks, (steps - ahead).div_ceil(ranks));
            let extent = Extent::by_steps(rows, stamp(ahead), ranks, step + ahead, ranks);
            striped[(position % ranks) as usize].write(page, extent);
        }
    }
}
