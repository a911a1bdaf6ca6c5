//! The vocabulary that the oracle is fed: who, what, which pages, which rows.
//!
//! The simulation states what it did; it never says whether that was right. Events serialise as
//! what they hold, with their name under the key `event`; nothing is shortened.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use serde::{Serialize, Serializer};

pub use crate::finding::Side;
use crate::finding::{Code, Named};
use crate::memory::{Extent, Stamp};
use crate::prompt::Sequence;
use crate::units::{PageId, Pages, Rank, RequestId, Tokens};

/// One server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Server {
    /// Its kind.
    pub side: Side,
    /// Its number among its kind.
    pub index: u32,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} server {}", self.side.name(), self.index)
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With all its output.
    Finished,
    /// By a refusal, or because a message was lost and the sender missed it.
    Failed,
    /// By its client.
    Aborted,
}

/// Who gives pages back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// A request.
    Request(RequestId),
    /// The server's prefix cache.
    Cache,
}

/// Rows of one physical page that a copy writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The page.
    pub page: PageId,
    /// The first row's offset in it.
    pub start: u32,
    /// Number of rows.
    pub len: u32,
    /// The first row's stamp and the step of positions; `None` where nothing was ever written at
    /// the source.
    pub content: Option<(Stamp, u32)>,
}

impl Write {
    /// What the memory will hold, or `None` for rows without content.
    pub fn extent(&self) -> Option<Extent> {
        let (stamp, step) = self.content?;
        Some(Extent::new(self.start, self.len, stamp, step))
    }
}

/// The rows, and of whose text they hold which positions: those of `request` from `position` on,
/// each `step` behind the one before. `null` where nothing was ever written at the source.
impl Serialize for Write {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Rows {
            page: PageId,
            start: u32,
            len: u32,
            content: Option<Positions>,
        }
        #[derive(Serialize)]
        struct Positions {
            request: RequestId,
            position: Tokens,
            step: u32,
        }
        let &Write { page, start, len, content } = self;
        let content = content.map(|(stamp, step)| {
            let Stamp { text: request, position, .. } = stamp;
            Positions { request, position, step }
        });
        Rows { page, start, len, content }.serialize(serializer)
    }
}

/// The writes of one copy; hashed by number only, since they follow from what was hashed before.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Writes<'a>(pub &'a [Write]);

impl Hash for Writes<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.len().hash(state);
    }
}

/// The source pages of a piece, stated for each rank; hashed by their number and both ends.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SourcePages<'a>(pub &'a [PageId]);

impl Hash for SourcePages<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0.len(), self.0.first(), self.0.last()).hash(state);
    }
}

/// A list of pages for people: neighbours as a range, cut where it is long.
#[derive(Clone, Copy, Debug)]
pub struct PageRanges<'a>(pub &'a [PageId]);

impl fmt::Display for PageRanges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Ranges that are written out.
        const LISTED: usize = 6;
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for id in self.0 {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == id.0 => *last = id.0,
                _ => ranges.push((id.0, id.0)),
            }
        }
        if ranges.is_empty() {
            return f.write_str("none");
        }
        for (place, &(first, last)) in ranges.iter().take(LISTED).enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{first}")?;
            if first < last {
                write!(f, "-{last}")?;
            }
        }
        match ranges.len() > LISTED {
            true => write!(f, ",… ({} in all)", self.0.len()),
            false => Ok(()),
        }
    }
}

/// A request's tokens; hashed and serialised by length only.
#[derive(Clone, Debug)]
pub struct Text(pub Rc<Sequence>);

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.len().hash(state);
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.len().serialize(serializer)
    }
}

/// One copy: a piece's part for one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Part {
    /// The request that it is for.
    pub request: RequestId,
    /// Which transfer of that request, from 0.
    pub attempt: u32,
    /// Which piece of the transfer, from 0.
    pub piece: u32,
    /// To which rank.
    pub rank: Rank,
    /// Whether no piece follows.
    pub last: bool,
}

/// Something that happened.
#[derive(Clone, Debug, Hash, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'a> {
    /// A request arrived; its servers' pools can or cannot ever serve it, as they judged.
    Arrived {
        /// The request.
        request: RequestId,
        /// Prompt and output.
        #[serde(rename = "tokens")]
        text: Text,
        /// Tokens of the prompt.
        prompt: Tokens,
        /// Whether it was let in.
        admitted: bool,
    },
    /// A request or a connection was refused.
    Refused {
        /// The request.
        request: RequestId,
        /// Under which code.
        code: Code,
        /// The ranks that refused.
        ranks: &'a [Rank],
        /// What the refusing side said.
        said: &'a str,
    },
    /// A prefix hit: the cache's pages, from the prompt's first on.
    Hit {
        /// The server that has the cache.
        server: Server,
        /// The request that they are for.
        request: RequestId,
        /// The cache's pages.
        pages: &'a [PageId],
    },
    /// Decode reserved for a transfer.
    Reserved {
        /// The decode server.
        server: Server,
        /// The request that they are for.
        request: RequestId,
        /// Which transfer of that request, from 0.
        attempt: u32,
        /// Tokens to be stored when the transfer is complete.
        length: Tokens,
        /// Tokens for which there must be pages.
        room: Tokens,
        /// Tokens in whole pages of the cache that the table begins with.
        matched: Tokens,
        /// What decode tells prefill that it has.
        prefix: Tokens,
        /// The pages taken beyond the matched ones.
        pages: &'a [PageId],
    },
    /// An allocator handed out pages.
    Taken {
        /// The server that has the pool.
        server: Server,
        /// The request that they are for.
        request: RequestId,
        /// The first page's ordinal in the request's table.
        first: Pages,
        /// The pages.
        pages: &'a [PageId],
    },
    /// A request's pages went into the prefix cache.
    Cached {
        /// The server that has the pool.
        server: Server,
        /// The request that had them.
        request: RequestId,
        /// The pages.
        pages: &'a [PageId],
    },
    /// Pages went back to the allocator.
    Freed {
        /// The server that has the pool.
        server: Server,
        /// Who gave them back.
        holder: Holder,
        /// The pages.
        pages: &'a [PageId],
    },
    /// A copy was put on the link.
    Queued {
        /// The copy.
        #[serde(flatten)]
        part: Part,
        /// The prefill server.
        source: Server,
        /// The decode server.
        target: Server,
        /// The piece's source pages.
        source_pages: SourcePages<'a>,
        /// The pages that it will write.
        target_pages: &'a [PageId],
    },
    /// A copy read its source rows.
    Read {
        /// The copy.
        #[serde(flatten)]
        part: Part,
        /// What it read and will write.
        writes: Writes<'a>,
    },
    /// A copy landed: its rows are about to be written.
    Landed {
        /// The copy.
        #[serde(flatten)]
        part: Part,
        /// What is written.
        writes: Writes<'a>,
    },
    /// Rows were copied within a decode server: from a cached page, or back from the host.
    Restored {
        /// The decode server.
        server: Server,
        /// The request that they are for.
        request: RequestId,
        /// Local rows of every rank, from `from` to before `to` of the sequence.
        from: Tokens,
        /// See `from`.
        to: Tokens,
    },
    /// Decode activated a request.
    Activated {
        /// The decode server.
        server: Server,
        /// The request.
        request: RequestId,
        /// Its page table.
        table: &'a [PageId],
    },
    /// A running request has all its output; its rows are still its own.
    Finished {
        /// The decode server.
        server: Server,
        /// The request.
        request: RequestId,
        /// Its page table.
        table: &'a [PageId],
        /// Positions stored.
        stored: Tokens,
    },
    /// A running request gave up its pages.
    Retracted {
        /// The request.
        request: RequestId,
    },
    /// A request ended.
    Ended {
        /// The request.
        request: RequestId,
        /// How it ended.
        outcome: Outcome,
    },
    /// What a server's own books say, in its pages.
    Books {
        /// The server.
        server: Server,
        /// Free pages, by the allocator.
        free: Pages,
        /// Unlocked cached pages, by the cache.
        evictable: Pages,
        /// Locked cached pages, by the cache.
        protected: Pages,
    },
    /// A page is about to go back for the sake of its rows from `start` on.
    FreedPart {
        /// The server that has the pool.
        server: Server,
        /// The request that gives them back.
        request: RequestId,
        /// The page.
        page: PageId,
        /// The first row, over all ranks.
        start: u32,
    },
    /// The draft rows of a copy are about to be written, just before the copy lands. Their pages
    /// are those of V rows.
    DraftLanded {
        /// The copy.
        #[serde(flatten)]
        part: Part,
        /// What is written.
        writes: Writes<'a>,
    },
}

#[cfg(test)]
mod tests {
    use std::hash::DefaultHasher;

    use super::*;
    use crate::prompt::{Chains, ContentId, ContentRun};

    fn hash(value: &impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn long_values_are_hashed_by_their_number_alone() {
        let write = |page| Write { page: PageId(page), start: 0, len: 1, content: None };
        let one = hash(&Writes(&[write(1)]));
        assert_eq!(one, hash(&Writes(&[write(2)])));
        assert_ne!(one, hash(&Writes(&[write(1), write(2)])));
        let mut chains = Chains::default();
        let mut text = |id, len| {
            let run = ContentRun::whole(ContentId(id), Tokens(len));
            hash(&Text(Rc::new(chains.sequence(0, [run]))))
        };
        assert_eq!(text(1, 8), text(2, 8));
        assert_ne!(text(1, 8), text(1, 9));
    }

    #[test]
    fn neighbouring_pages_are_a_range_and_long_lists_are_cut() {
        let ids = |ids: &[u32]| {
            PageRanges(&ids.iter().copied().map(PageId).collect::<Vec<_>>()).to_string()
        };
        assert_eq!(ids(&[]), "none");
        assert_eq!(ids(&[4, 5, 6, 9, 2]), "4-6,9,2");
        assert_eq!(ids(&[1, 3, 5, 7, 9, 11, 13]), "1,3,5,7,9,11,… (7 in all)");
    }
}
