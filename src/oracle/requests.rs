//! Requests as the oracle knows them.

use std::collections::BTreeSet;

use super::placement::Transfer;
use crate::event::Part;
use crate::finding::Code;
use crate::units::RequestId;

/// A request as the oracle knows it.
#[derive(Default)]
pub(super) struct Record {
    pub(super) transfer: Option<Transfer>,
    /// Codes that a transfer was found under, by attempt, so that it counts once for each.
    pub(super) reported: BTreeSet<(u32, Code)>,
}

/// Requests by number; `None` before their arrival.
#[derive(Default)]
pub(super) struct Requests(Vec<Option<Record>>);

impl Requests {
    pub(super) fn insert(&mut self, request: RequestId, record: Record) {
        if self.0.len() <= request.index() {
            self.0.resize_with(request.index() + 1, || None);
        }
        self.0[request.index()] = Some(record);
    }

    pub(super) fn get(&mut self, request: RequestId) -> &mut Record {
        let record = self.0.get_mut(request.index()).and_then(Option::as_mut);
        record.expect("events follow an arrival")
    }

    /// The request's transfer, while it has one.
    pub(super) fn transfer(&self, request: RequestId) -> Option<&Transfer> {
        self.0.get(request.index())?.as_ref()?.transfer.as_ref()
    }

    /// The transfer that `part` belongs to, unless that has ended.
    pub(super) fn transfer_of(&mut self, part: Part) -> Option<&mut Transfer> {
        let transfer = self.get(part.request).transfer.as_mut();
        transfer.filter(|transfer| transfer.attempt == part.attempt)
    }
}
