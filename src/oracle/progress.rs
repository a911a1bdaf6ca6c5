//! Everything ends: no request is left over, and no page with it.

use std::collections::BTreeSet;

use crate::units::RequestId;

/// The requests that have arrived and not ended.
#[derive(Default)]
pub(super) struct Progress {
    open: BTreeSet<RequestId>,
}

impl Progress {
    pub(super) fn arrived(&mut self, request: RequestId) {
        self.open.insert(request);
    }

    pub(super) fn ended(&mut self, request: RequestId) {
        let was_open = self.open.remove(&request);
        assert!(was_open, "request {request} ends once");
    }

    /// Requests that never ended, at the end of everything.
    pub(super) fn open(&self) -> &BTreeSet<RequestId> {
        &self.open
    }
}
