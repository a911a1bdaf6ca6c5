//! What is said of requests that never end: what each waits for, and which pages it holds.

use std::collections::{BTreeMap, BTreeSet};

use super::FinalState;
use super::ownership::{Ledgers, Owner};
use super::placement::Transfer;
use super::requests::{Record, Requests, Stage};
use crate::event::{PageRanges, Server};
use crate::units::{PageId, Pages, RequestId};

/// Requests beside the one that a finding is of, and servers, that its text names.
const NAMED: usize = 4;

/// Requests that are open at the end of everything.
pub(super) struct Stall {
    open: Vec<Open>,
    /// What each server has left.
    servers: String,
}

/// Pages of several servers.
type ByServer = BTreeMap<Server, BTreeSet<PageId>>;

struct Open {
    request: RequestId,
    waits: String,
    holds: String,
}

impl Stall {
    /// Of the requests `open`, in order, when the servers have what `states` say.
    pub(super) fn new(
        open: &[RequestId],
        requests: &Requests,
        ledgers: &Ledgers,
        states: &[FinalState],
    ) -> Stall {
        let mut held: BTreeMap<RequestId, ByServer> = BTreeMap::new();
        for &FinalState { server, .. } in states {
            for (page, request) in ledgers.of(server).held() {
                held.entry(request).or_default().entry(server).or_default().insert(page);
            }
        }
        let open = open.iter().map(|&request| {
            let record = requests.known(request).expect("events follow an arrival");
            let held = held.remove(&request).unwrap_or_default();
            let mut holds = pages("", &held);
            let cached = still_cached(record, ledgers);
            if !cached.is_empty() {
                holds += &format!(", its prompt has {}", pages("cached ", &cached));
            }
            Open { request, waits: waits(record), holds }
        });
        Stall { open: open.collect(), servers: servers(states) }
    }

    /// The open requests, each with what it waits for and holds, and what the others do.
    pub(super) fn texts(&self) -> impl Iterator<Item = (RequestId, String)> {
        self.open.iter().map(|Open { request, waits, holds }| {
            let mut text = format!("it waits for {waits} and holds {holds}");
            let others = self.open.iter().filter(|other| other.request != *request);
            for Open { request, waits, holds } in others.take(NAMED) {
                text += &format!("; request {request} waits for {waits} and holds {holds}");
            }
            if let Some(more @ 1..) = self.open.len().checked_sub(1 + NAMED) {
                text += &format!("; {more} more requests are open");
            }
            (*request, format!("{text}; {}", self.servers))
        })
    }
}

/// What a request needs next.
fn waits(record: &Record) -> String {
    let sending = |transfer: &Transfer| {
        let (landed, queued) = (transfer.copies_landed, transfer.copies_queued);
        match transfer.last_queued {
            false => format!("its last piece ({landed} of {queued} copies landed)"),
            true if landed < queued => format!("{} of its {queued} copies", queued - landed),
            true => format!("its activation (all {queued} copies landed)"),
        }
    };
    match record.stage {
        Stage::Arrived => "pages of decode".to_owned(),
        Stage::Reserved => match &record.transfer {
            Some(transfer) if record.has_source => sending(transfer),
            Some(_) | None => "pages of prefill".to_owned(),
        },
        Stage::Running => "a decode step".to_owned(),
        Stage::Retracted => "pages of decode to resume".to_owned(),
        Stage::Complete => "its end with all its output".to_owned(),
    }
}

/// What a request found in caches or put there, as far as it is still there.
fn still_cached(record: &Record, ledgers: &Ledgers) -> ByServer {
    let mut cached = ByServer::new();
    for (server, pages) in &record.cached {
        let ledger = ledgers.of(*server);
        let still = pages.iter().filter(|page| ledger.owner(**page) == Owner::Cache);
        cached.entry(*server).or_default().extend(still);
    }
    cached.retain(|_, pages| !pages.is_empty());
    cached
}

fn pages(kind: &str, held: &ByServer) -> String {
    let pages = held.iter().map(|(server, pages)| {
        let pages: Vec<PageId> = pages.iter().copied().collect();
        format!("{kind}pages {} of {server}", PageRanges(&pages))
    });
    match held.is_empty() {
        true => "no page".to_owned(),
        false => pages.collect::<Vec<_>>().join(" and "),
    }
}

fn servers(states: &[FinalState]) -> String {
    let told = states.iter().take(NAMED).map(|state| {
        let FinalState { server, free, cached, protected } = state;
        let (free, cached) = (Pages::of(free), Pages::of(cached));
        format!("{server} has {free} pages free and {cached} cached, {protected} of them locked")
    });
    told.collect::<Vec<_>>().join(", ")
}
