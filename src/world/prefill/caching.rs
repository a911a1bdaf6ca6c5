//! What a computed chunk leaves in the prefix cache of its prefill server.

use super::super::context::Context;
use super::super::store::split_taken;
use super::Prefill;
use crate::behaviour::{ChunkHash, DuplicateInsert, LockCount};
use crate::cache::Insertion;
use crate::event::{Event, Holder};
use crate::finding::Mark;
use crate::prompt::PageKey;
use crate::units::{Pages, RequestId, Tokens};

impl Prefill {
    /// Puts the request's full pages into the tree, after a chunk that began at `from`. Where
    /// another request's pages are there already, its own are freed and its table is pointed at the
    /// tree's.
    pub(super) fn cache_computed(
        &mut self,
        request: RequestId,
        from: Tokens,
        cx: &mut Context<'_>,
    ) {
        let apart = match cx.setup.switches.chunk_hash {
            ChunkHash::WholePrefix => None,
            ChunkHash::OwnTokens => self.keys_of_chunk(request, from, cx),
        };
        let page = cx.setup.page();
        let store = &mut self.store;
        let Some(cache) = &mut store.cache else { return };
        let priority = cx.requests[request].priority;
        let source = self.requests[request].source_mut();
        let full = source.done.pages_floor(page).index();
        // A chunk that is keyed apart stands in the tree for itself, beside the pages before it.
        let first = if apart.is_some() { source.shared } else { 0 };
        let keys = apart.as_deref().unwrap_or(&source.keys[..full]);
        let goes_on = source.done < source.length;
        let counted = cx.setup.uncounted(Pages::of(keys), source.inserted, goes_on);
        let how = Insertion { priority, counted };
        let taken = cache.insert(keys, &source.table[first..full], how);
        source.inserted = Pages::of(&taken);
        let own = source.shared.min(full);
        let (kept, mut duplicates) = split_taken(&source.table[own..full], &taken[own - first..]);
        let hit = cache.lookup(keys);
        assert!(cache.lock(hit.anchor), "what was just inserted can be locked");
        if first == 0 {
            let before = std::mem::take(&mut source.anchors);
            if cx.setup.switches.lock_count == LockCount::Paired {
                for before in before {
                    assert!(cache.unlock(before), "the prefix was locked");
                }
            }
        }
        source.anchors.push(hit.anchor);
        source.shared = full;
        match cx.setup.switches.duplicate_insert {
            DuplicateInsert::Remap => source.table[first..full].copy_from_slice(&hit.pages),
            DuplicateInsert::FreeWithoutRemap => source.freed_early.extend(&duplicates),
            DuplicateInsert::FreeAfterRemap => {
                source.table[first..full].copy_from_slice(&hit.pages);
                duplicates = split_taken(&source.table[own..full], &taken[own - first..]).1;
            }
        }
        if !kept.is_empty() {
            let event = Event::Cached { server: store.server, request, pages: &kept };
            cx.log.tell(&event, &store.memory);
        }
        if !duplicates.is_empty() {
            cx.log.mark(Mark::DuplicatePages);
            store.give_back(&mut cx.log, Holder::Request(request), &duplicates);
        }
    }

    /// Keys of the full pages from the one in which a chunk begins, as if the prompt began with the
    /// chunk at `from`. `None` for a first chunk, where it does.
    fn keys_of_chunk(
        &self,
        request: RequestId,
        from: Tokens,
        cx: &mut Context<'_>,
    ) -> Option<Vec<PageKey>> {
        let source = self.requests[request].source();
        let full = source.done.pages_floor(cx.setup.page()).index();
        let pages = full.checked_sub(source.shared).filter(|_| from > Tokens(0))?;
        Some(cx.requests.keys_from(&cx.setup, request, from, pages))
    }
}
