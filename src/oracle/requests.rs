//! Requests as the oracle knows them.

use std::collections::BTreeSet;

use super::placement::Transfer;
use crate::event::{Part, Server};
use crate::finding::Code;
use crate::units::{PageId, RequestId};

/// How far a request has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing is reserved for it.
    #[default]
    Arrived,
    /// Decode has pages for it.
    Reserved,
    /// Decode has activated it.
    Running,
    /// It was retracted.
    Retracted,
    /// It has all its output.
    Complete,
}

/// A request as the oracle knows it.
#[derive(Default)]
pub(super) struct Record {
    pub(super) stage: Stage,
    /// Whether prefill has, or had, pages for its present transfer.
    pub(super) has_source: bool,
    pub(super) transfer: Option<Transfer>,
    /// Pages that it found in a cache or put there.
    pub(super) cached: Vec<(Server, Box<[PageId]>)>,
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

    /// The request, if it has arrived.
    pub(super) fn known(&self, request: RequestId) -> Option<&Record> {
        self.0.get(request.index())?.as_ref()
    }

    /// The request's transfer, while it has one.
    pub(super) fn transfer(&self, request: RequestId) -> Option<&Transfer> {
        self.known(request)?.transfer.as_ref()
    }

    /// The transfer that `part` belongs to, unless that has ended.
    pub(super) fn transfer_of(&mut self, part: Part) -> Option<&mut Transfer> {
        let transfer = self.get(part.request).transfer.as_mut();
        transfer.filter(|transfer| transfer.attempt == part.attempt)
    }
}
