//! What both sides of a comparison are brought to: a *happening* of a run, in a lane of its own
//! request or server, and what of it each level compares.

use std::fmt;

use crate::finding::{Named, Side};

/// How much of a run is compared. Each level takes in those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Prefixes, hits, chunks, pieces, numbers of pages, and how each request ends.
    Course,
    /// Evictions, retractions, output lengths, and what is left in the pools.
    Demand,
    /// Which pages.
    Pages,
    /// The tick of each.
    Ticks,
}

impl Level {
    /// Every level, the coarsest first.
    pub const ALL: &'static [Level] = &[Level::Course, Level::Demand, Level::Pages, Level::Ticks];

    /// Its number, from 1.
    pub fn number(self) -> usize {
        self as usize + 1
    }

    /// The level of this number, if there is one.
    pub fn numbered(number: usize) -> Option<Level> {
        Level::ALL.get(number.checked_sub(1)?).copied()
    }

    /// What it adds to those before it.
    pub fn doc(self) -> &'static str {
        match self {
            Level::Course => "prefixes, hits, chunks, pieces, numbers of pages, endings",
            Level::Demand => "evictions, retractions, output lengths, what is left in the pools",
            Level::Pages => "page ids",
            Level::Ticks => "ticks",
        }
    }
}

/// Whose happenings are in an order that matters: those of one request, or the evictions of one
/// server. Within a tick the order of two servers is the recorder's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    Request(u32),
    Server(Side),
}

/// Pages, by id or by number alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PageList {
    Ids(Vec<u32>),
    Count(usize),
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With all its output.
    Finished,
    /// By its client, after it was activated.
    Dropped,
    /// By its client, before.
    Aborted,
    /// On arrival, since it is too long.
    Rejected,
    /// By a refusal of the planner.
    Failed,
    /// For lack of decode pages.
    OutOfMemory,
    /// Not at all.
    Stuck,
}

/// Something that happened to a request or on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Prefill computes these positions; the first chunk begins where its hit ends.
    Chunk { start: u32, end: u32 },
    /// Decode reserved pages from ordinal S/V on.
    Reserved { prefix: u32, pages: PageList },
    /// A piece was laid out.
    Planned { offset: u32, tokens: i64, prefix: u32, source: PageList, target: PageList },
    /// A rank refused a piece.
    Refused { rank: u32 },
    /// Decode took the request up, with this table.
    Activated { pages: PageList, stored: u32 },
    /// It came back after a retraction.
    Resumed { pages: PageList, stored: u32 },
    /// It gave up its pages, with so many positions stored.
    Retracted { stored: u32 },
    /// Rows were wrong at activation.
    WrongRows { count: u64 },
    /// It ended; how much output it had is known of those that ran.
    Ended { how: Ending, output: Option<u32> },
    /// A cache was asked for so many tokens and dropped so many pages.
    Evicted { asked: u32, pages: u32 },
    /// What a server has at the end, in tokens.
    Left { total: u64, free: u64, evictable: u64, protected: u64 },
}

/// A happening in its lane. Endings that are only known at the end of a run have no tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Happening {
    pub(super) tick: Option<u64>,
    pub(super) lane: Lane,
    pub(super) what: What,
}

impl Happening {
    /// As `level` compares it; `None` if it is the affair of a later one.
    pub(super) fn at(&self, level: Level) -> Option<Happening> {
        let what = match &self.what {
            What::Resumed { .. }
            | What::Retracted { .. }
            | What::Evicted { .. }
            | What::Left { .. }
                if level < Level::Demand =>
            {
                return None;
            }
            What::Ended { how, .. } if level < Level::Demand => {
                What::Ended { how: *how, output: None }
            }
            What::Reserved { prefix, pages } => {
                What::Reserved { prefix: *prefix, pages: pages.at(level) }
            }
            What::Planned { offset, tokens, prefix, source, target } => What::Planned {
                offset: *offset,
                tokens: *tokens,
                prefix: *prefix,
                source: source.at(level),
                target: target.at(level),
            },
            What::Activated { pages, stored } => {
                What::Activated { pages: pages.at(level), stored: *stored }
            }
            What::Resumed { pages, stored } => {
                What::Resumed { pages: pages.at(level), stored: *stored }
            }
            What::Chunk { .. }
            | What::Refused { .. }
            | What::Retracted { .. }
            | What::WrongRows { .. }
            | What::Ended { .. }
            | What::Evicted { .. }
            | What::Left { .. } => self.what.clone(),
        };
        let tick = self.tick.filter(|_| level >= Level::Ticks);
        Some(Happening { tick, lane: self.lane, what })
    }
}

impl What {
    /// What happened, in a word.
    pub(super) fn name(&self) -> &'static str {
        match self {
            What::Chunk { .. } => "chunk",
            What::Reserved { .. } => "reserved",
            What::Planned { .. } => "planned",
            What::Refused { .. } => "refused",
            What::Activated { .. } => "activated",
            What::Resumed { .. } => "resumed",
            What::Retracted { .. } => "retracted",
            What::WrongRows { .. } => "wrong rows",
            What::Ended { .. } => "ended",
            What::Evicted { .. } => "evicted",
            What::Left { .. } => "left",
        }
    }
}

impl PageList {
    fn at(&self, level: Level) -> PageList {
        match self {
            PageList::Ids(ids) if level < Level::Pages => PageList::Count(ids.len()),
            PageList::Ids(_) | PageList::Count(_) => self.clone(),
        }
    }
}

impl fmt::Display for PageList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageList::Ids(ids) => write!(f, "{ids:?}"),
            PageList::Count(count) => write!(f, "{count}"),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ending::Finished => "finished",
            Ending::Dropped => "aborted while it ran",
            Ending::Aborted => "aborted before it ran",
            Ending::Rejected => "rejected on arrival",
            Ending::Failed => "failed by a refusal",
            Ending::OutOfMemory => "aborted for lack of memory",
            Ending::Stuck => "never ended",
        })
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Chunk { start, end } => write!(f, "chunk {start}..{end}"),
            What::Reserved { prefix, pages } => write!(f, "reserved S={prefix} pages {pages}"),
            What::Planned { offset, tokens, prefix, source, target } => {
                write!(f, "planned off={offset} n={tokens} S={prefix} pages {source} -> {target}")
            }
            What::Refused { rank } => write!(f, "refused by rank {rank}"),
            What::Activated { pages, stored } => {
                write!(f, "activated pages {pages}, {stored} stored")
            }
            What::Resumed { pages, stored } => write!(f, "resumed pages {pages}, {stored} stored"),
            What::Retracted { stored } => write!(f, "retracted, {stored} stored"),
            What::WrongRows { count } => write!(f, "{count} wrong rows"),
            What::Ended { how, output: Some(output) } => write!(f, "{how}, {output} output tokens"),
            What::Ended { how, output: None } => write!(f, "{how}"),
            What::Evicted { asked, pages } => write!(f, "evicted {pages} pages for {asked} tokens"),
            What::Left { total, free, evictable, protected } => {
                write!(f, "left {free} free, {evictable} evictable, {protected} locked of {total}")
            }
        }
    }
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tick {
            Some(tick) => write!(f, "{tick:>12}")?,
            None => write!(f, "{:>12}", "end")?,
        }
        match self.lane {
            Lane::Request(request) => write!(f, "  r{request:<7}")?,
            Lane::Server(side) => write!(f, "  {:<8}", side.name())?,
        }
        write!(f, " {}", self.what)
    }
}
