//! The transitions of a decode server, each called by itself.

use super::*;

impl Decode {
    /// Requests that generate output.
    pub(in super::super) fn running(&self) -> &[RequestId] {
        &self.running
    }

    /// The page table of a request that holds pages.
    pub(in super::super) fn table(&self, request: RequestId) -> &[PageId] {
        &self.requests[request].target().table
    }
}
