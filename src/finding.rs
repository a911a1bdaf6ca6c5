//! What a run leaves: findings with their evidence and chances, marks, counters and a digest.
//!
//! A *finding* is one way in which a run went wrong, under a [`Code`]. Each code is counted against
//! its [`Chance`]: how often it could have happened. A *mark* is a code path that a run reached; a
//! *metric* is a plain count.

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::units::{Rank, RequestId, Tick};

/// How bad a code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A sound system never produces it.
    Defect,
    /// A refusal that a sound system gives, too.
    Expected,
}

/// A closed list of names, each with a text, that can be tables' indices.
pub trait Named: Copy + Ord + 'static {
    /// Every item, in the order of declaration.
    const ALL: &'static [Self];
    /// As spelled in files and reports.
    fn name(self) -> &'static str;
    /// What it means.
    fn doc(self) -> &'static str;
    /// Place in [`Named::ALL`].
    fn index(self) -> usize;
    /// The item of that name.
    fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|item| item.name() == name)
    }
}

macro_rules! named {
    ($(#[$meta:meta])* $enum:ident { $($item:ident = $name:literal: $doc:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $enum {
            $(#[doc = $doc] #[serde(rename = $name)] $item,)*
        }

        impl Named for $enum {
            const ALL: &'static [$enum] = &[$($enum::$item),*];

            fn name(self) -> &'static str {
                match self { $($enum::$item => $name,)* }
            }

            fn doc(self) -> &'static str {
                match self { $($enum::$item => $doc,)* }
            }

            fn index(self) -> usize {
                self as usize
            }
        }

        impl fmt::Display for $enum {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

named! {
    /// What a code is counted against: the number of times that it could have happened.
    Chance {
        Requests = "requests": "requests that arrived",
        Pairings = "pairings": "connections that requests asked for",
        Reservations = "reservations": "reservations of decode pages",
        Planned = "transfers planned": "transfers of which a first piece was planned",
        Activated = "transfers activated": "transfers that decode activated",
        Read = "copies read": "copies whose source rows were read",
        Landed = "copies landed": "copies that were written on a rank",
        Hits = "cache hits": "prefix cache hits, of either side",
        Taken = "pages taken": "pages handed out by an allocator",
        Freed = "pages freed": "pages given back to an allocator",
        Checks = "accounting checks": "comparisons of a pool's and its cache's counts with the ledger",
    }
}

macro_rules! codes {
    ($(
        $item:ident = $name:literal, $severity:ident, $unit:literal per $chance:ident,
        $example:literal: $doc:literal,
    )*) => {
        named! {
            /// A kind of finding.
            Code { $($item = $name: $doc,)* }
        }

        impl Code {
            /// How bad it is.
            pub fn severity(self) -> Severity {
                match self { $(Code::$item => Severity::$severity,)* }
            }

            /// What one finding of it stands for.
            pub fn unit(self) -> &'static str {
                match self { $(Code::$item => $unit,)* }
            }

            /// What it is counted against.
            pub fn chance(self) -> Chance {
                match self { $(Code::$item => Chance::$chance,)* }
            }

            /// A scenario file of the project that shows it.
            pub fn example(self) -> &'static str {
                match self { $(Code::$item => $example,)* }
            }
        }
    };
}

codes! {
    RefusedMisaligned = "refused.misaligned", Defect, "request" per Planned, "sims/hazards/h05-physical-prefix.toml":
        "the planner refused a decode_prefix_len that is not a multiple of the virtual page",
    RefusedSource = "refused.source", Defect, "request" per Planned, "sims/scenarios/padded-past-the-end.toml":
        "the checked planner refused a token count that does not fit the source pages",
    RefusedShortfall = "refused.shortfall", Defect, "request" per Planned, "sims/hazards/h11-floor.toml":
        "the checked planner refused for lack of destination pages",
    RefusedIndex = "refused.index", Defect, "request" per Planned, "sims/hazards/h10-indexed.toml":
        "the indexed planner ran past the end of a page list",
    RefusedInput = "refused.input", Defect, "request" per Planned, "sims/scenarios/freed-twice.toml":
        "the planner was asked with input outside its domain",
    RefusedTopology = "refused.topology", Expected, "pairing" per Pairings, "sims/scenarios/pairing-topology.toml":
        "the numbers of ranks cannot be connected",
    RefusedRank = "refused.rank", Expected, "pairing" per Pairings, "sims/scenarios/pairing-rank.toml":
        "peers of equal size have different ranks",
    RefusedGeometry = "refused.geometry", Expected, "pairing" per Pairings, "sims/scenarios/pairing-geometry.toml":
        "the bytes a token of the KV entries differ",
    RefusedPool = "refused.pool", Expected, "pairing" per Pairings, "sims/scenarios/pairing-pool.toml":
        "the decode pool is of a kind that cannot be striped",
    RefusedPrefillCp = "refused.prefill_cp", Expected, "pairing" per Pairings, "sims/scenarios/pairing-prefill-cp.toml":
        "prefill runs attention context parallelism",
    RefusedPageSize = "refused.page_size", Expected, "pairing" per Pairings, "sims/scenarios/pairing-page-size.toml":
        "the peers' page sizes differ",
    RefusedCapacity = "refused.capacity", Expected, "request" per Requests, "sims/scenarios/too-large.toml":
        "no pool of this size can ever serve the request",
    CapacityWrong = "capacity.wrong", Defect, "request" per Requests, "sims/hazards/h18-rows-of-one-rank.toml":
        "a request was refused though it fits, or admitted though it cannot",
    PlacedMissing = "placed.missing", Defect, "request" per Activated, "sims/hazards/h06-padded-up.toml":
        "positions beyond the cache's own match were never written for the request",
    PlacedShifted = "placed.shifted", Defect, "request" per Activated, "sims/hazards/h09-chunk-pages.toml":
        "positions hold the request's token of another position",
    PlacedForeign = "placed.foreign", Defect, "request" per Activated, "sims/hazards/h30-released-at-once.toml":
        "positions that were written hold another request's token",
    PlacedTwice = "placed.twice", Defect, "copy" per Landed, "sims/hazards/h09-chunk-pages.toml":
        "a position was written again with something else",
    PlacedOutside = "placed.outside", Defect, "copy" per Landed, "sims/hazards/h30-released-at-once.toml":
        "a copy wrote rows that its request does not own",
    ReadUnwritten = "read.unwritten", Defect, "copy" per Read, "sims/scenarios/early-send-launched.toml":
        "a copy read a source row before it was written",
    ReadFreed = "read.freed", Defect, "copy" per Read, "sims/scenarios/freed-twice.toml":
        "a copy read a source row after its page was given back",
    CacheWrongHit = "cache.wrong_hit", Defect, "hit" per Hits, "sims/scenarios/padded-prefix.toml":
        "a hit's rows do not hold what its key says",
    PageTwoOwners = "page.two_owners", Defect, "page" per Taken, "sims/scenarios/freed-twice.toml":
        "a page was handed out or inserted while another owner held it",
    PageFreedTwice = "page.freed_twice", Defect, "page" per Freed, "sims/scenarios/freed-twice.toml":
        "a page was given back that nobody held",
    PageFreedPart = "page.freed_part", Defect, "page" per Freed, "sims/hazards/h53-output-freed-apart.toml":
        "a part of a page was given back",
    PageFreedInFlight = "page.freed_in_flight", Defect, "page" per Freed, "sims/hazards/h30-released-at-once.toml":
        "a page was given back while a copy into it was in flight",
    PageLeaked = "page.leaked", Defect, "page" per Taken, "sims/hazards/h39-forgotten-chunking.toml":
        "a page was still held when everything had ended",
    CountDrift = "count.drift", Defect, "check" per Checks, "sims/hazards/h34-locked-twice.toml":
        "free, cached and held pages do not add up to the pool",
    ReserveExcess = "reserve.excess", Defect, "request" per Reservations, "sims/hazards/h11-by-physical-page.toml":
        "more decode pages were reserved than the request needs",
    ReserveShort = "reserve.short", Defect, "request" per Reservations, "sims/hazards/h11-floor.toml":
        "fewer decode pages were reserved than the request needs",
    ActivateEarly = "activate.early", Defect, "request" per Activated, "sims/scenarios/any-part-completes.toml":
        "decode activated a request before every part had landed",
    StallNoProgress = "stall.no_progress", Defect, "request" per Requests, "sims/hazards/h07-dropped.toml":
        "a request can never end, or the run reached its event bound",
}

named! {
    /// A code path that a run reached.
    Mark {
        ChunkMany = "chunk.many": "a prompt was computed in more than one chunk",
        ChunkInsidePage = "chunk.inside_page": "a chunk was cut inside a page",
        HitPrefill = "hit.prefill": "a prefill prefix hit",
        HitDecode = "hit.decode": "a decode prefix hit",
        HitUnaligned = "hit.unaligned": "a reported decode hit that is not a multiple of the virtual page",
        HitFull = "hit.full": "decode held the whole prompt",
        PrefixPadded = "prefix.padded": "a decode prefix was padded up",
        PieceSecond = "piece.second": "a request's second piece was sent",
        PieceEmpty = "piece.empty": "a last message without rows was due",
        PieceSkipped = "piece.skipped": "a chunk had nothing to send",
        PieceEarly = "piece.early": "a cached prefix went out before its chunk was computed",
        PieceSplit = "piece.split": "a send was split by the pack buffer's size",
        PartEmpty = "part.empty": "a rank owned no token of a piece",
        PartPacked = "part.packed": "a part was packed",
        PartUnpacked = "part.unpacked": "a part did not fit its pack region and went unpacked",
        DraftSent = "draft.sent": "draft rows were sent beside a part",
        CopyDelayed = "copy.delayed": "a copy landed later than its turn",
        RefusedServedAgain = "refused.served_again": "a refused request was served again",
        DuplicatePages = "duplicate.pages": "computed pages were in the tree already",
        EvictPrefill = "evict.prefill": "prefill evicted cached pages",
        EvictDecode = "evict.decode": "decode evicted cached pages",
        DecodeWaited = "decode.waited": "a reservation or a decode step had to wait for pages",
        PrefillWaited = "prefill.waited": "a prefill had to wait for pages",
        CrossHeld = "cross.held": "a request with a destination waited for prefill pages held without one",
        GrewPage = "grow.page": "a running request took a page",
        GrewTogether = "grow.together": "several requests needed a page for the same step",
        Retracted = "retract": "a running request was retracted",
        Resumed = "resume": "a retracted request resumed",
        AbortWaiting = "abort.waiting": "an abort before decode had reserved",
        AbortReserved = "abort.reserved": "an abort between reservation and computation",
        AbortPrefilling = "abort.prefilling": "an abort while prefill computed",
        AbortCopying = "abort.copying": "an abort with all computed and copies outstanding",
        AbortRunning = "abort.running": "an abort of a running request",
        AbortRetracted = "abort.retracted": "an abort of a retracted request",
        AbortInFlight = "abort.in_flight": "an abort found a copy in flight",
        MessageLost = "message.lost": "a message that a part had landed was lost",
        MessageDoubled = "message.doubled": "a message that a part had landed came twice",
        FlushDone = "flush.done": "a cache of an idle server was flushed",
        FlushInUse = "flush.in_use": "a flush came while pages were in use",
    }
}

named! {
    /// A plain count of a run.
    Metric {
        Requests = "requests": "requests that arrived",
        Finished = "finished": "requests that ended with all their output",
        Failed = "failed": "requests that ended by failure",
        Aborted = "aborted": "requests that ended by an abort",
        PromptTokens = "prompt_tokens": "tokens of all prompts",
        OutputTokens = "output_tokens": "output tokens of requests that finished",
        PrefillHitTokens = "prefill_hit_tokens": "prompt tokens found in the prefill cache",
        DecodeHitTokens = "decode_hit_tokens": "prompt tokens found in the decode cache, as reported",
        PrefillHits = "prefill_hits": "prefill lookups that found something",
        DecodeHits = "decode_hits": "decode lookups that found something",
        DecodeHitsUnaligned = "decode_hits_unaligned": "reported decode hits that are not a multiple of the virtual page",
        ComputedTokens = "computed_tokens": "prompt tokens computed by prefill",
        SentTokens = "sent_tokens": "tokens planned in accepted pieces",
        Pieces = "pieces": "pieces sent",
        Copies = "copies": "copies put on a link, empty ones included",
        CopiesPacked = "copies_packed": "copies that were packed",
        Descriptors = "descriptors": "network descriptors as configured",
        DescriptorsPacked = "descriptors_packed": "network descriptors if every copy were packed",
        DescriptorsUnpacked = "descriptors_unpacked": "network descriptors if no copy were packed",
        EvictedPrefillPages = "evicted_prefill_pages": "pages evicted from the prefill cache",
        EvictedDecodePages = "evicted_decode_pages": "virtual pages evicted from the decode cache",
        Retractions = "retractions": "running requests retracted",
        RowsJudged = "rows_judged": "positions judged at activation, sent ones only",
        PrefillSteps = "prefill_steps": "prefill steps",
        PrefillBusyTicks = "prefill_busy_ticks": "ticks that prefill servers spent in steps",
        DecodeSteps = "decode_steps": "decode steps",
        WaitTicks = "wait_ticks": "ticks from arrival to the first prefill step, summed",
        Events = "events": "timers of the simulation that went off",
    }
}

named! {
    /// One of the two kinds of server.
    Side {
        Prefill = "prefill": "computes prompts; its pools are in physical pages of P rows",
        Decode = "decode": "generates output; its pools are in virtual pages of P·N rows",
    }
}

named! {
    /// Length of a run of consecutive free pages, in pages.
    FreeRun {
        One = "1": "a free page alone",
        Two = "2-3": "2 to 3 pages",
        Four = "4-7": "4 to 7 pages",
        Eight = "8-15": "8 to 15 pages",
        Sixteen = "16-31": "16 to 31 pages",
        ThirtyTwo = "32-63": "32 to 63 pages",
        SixtyFour = "64-127": "64 to 127 pages",
        More = "128+": "128 pages or more",
    }
}

impl FreeRun {
    /// The class of a run of `pages`, at least one.
    pub fn of(pages: usize) -> FreeRun {
        let class = pages.ilog2() as usize;
        Self::ALL[class.min(Self::ALL.len() - 1)]
    }
}

/// When and where free pages were sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FreeSample {
    /// In whose pools.
    pub side: Side,
    /// How many parts of [`limits::FREE_RUN_SAMPLES`] of the requests had arrived.
    pub part: u64,
}

/// A count for every item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally<K> {
    counts: Vec<u64>,
    of: std::marker::PhantomData<K>,
}

impl<K: Named> Default for Tally<K> {
    fn default() -> Self {
        Tally { counts: vec![0; K::ALL.len()], of: std::marker::PhantomData }
    }
}

impl<K: Named> Tally<K> {
    /// Counts `more`, up to 2^63 - 1.
    pub fn add(&mut self, key: K, more: u64) {
        // Sums of long waits can pass what a ledger's integers hold.
        let count = &mut self.counts[key.index()];
        *count = count.saturating_add(more).min(i64::MAX.unsigned_abs());
    }

    /// The count so far.
    pub fn get(&self, key: K) -> u64 {
        self.counts[key.index()]
    }

    /// Every item with its count, in order of declaration.
    pub fn iter(&self) -> impl Iterator<Item = (K, u64)> {
        K::ALL.iter().map(|&key| (key, self.get(key)))
    }
}

/// A map from names to counts, in order of declaration.
impl<K: Named> Serialize for Tally<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(key, count)| (key.name(), count)))
    }
}

/// One finding with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What went wrong.
    pub code: Code,
    /// The tick at which it was seen.
    pub tick: Tick,
    /// To whom, if to one request.
    pub request: Option<RequestId>,
    /// On which rank, if on one.
    pub rank: Option<Rank>,
    /// What should have been.
    pub expected: String,
    /// What was.
    pub found: String,
}

/// All findings of one code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// How many there were.
    pub count: u64,
    /// The first [`limits::FINDINGS_KEPT`] of them.
    pub first: Vec<Finding>,
}

/// Findings by code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Findings {
    by_code: BTreeMap<Code, Kept>,
}

impl Findings {
    /// Counts a finding and keeps it while few of its code are kept.
    pub fn add(&mut self, finding: Finding) {
        let kept = self.by_code.entry(finding.code).or_default();
        kept.count += 1;
        if kept.first.len() < limits::FINDINGS_KEPT {
            kept.first.push(finding);
        }
    }

    /// How many findings of `code`.
    pub fn count(&self, code: Code) -> u64 {
        self.by_code.get(&code).map_or(0, |kept| kept.count)
    }

    /// The codes found, with their findings.
    pub fn iter(&self) -> impl Iterator<Item = (Code, &Kept)> {
        self.by_code.iter().map(|(&code, kept)| (code, kept))
    }

    /// The earliest finding whose code is `wanted`; of several at once, the first in the order of
    /// codes.
    pub fn earliest(&self, wanted: impl Fn(Code) -> bool) -> Option<&Finding> {
        let kept = self.iter().filter(|&(code, _)| wanted(code));
        let firsts = kept.filter_map(|(_, kept)| kept.first.first());
        firsts.min_by_key(|finding| (finding.tick, finding.code))
    }

    /// Whether there is a defect, in a word.
    pub fn verdict(&self) -> &'static str {
        if self.is_clean() { "clean" } else { "defect" }
    }

    /// Whether a sound system could have left this: no defect.
    pub fn is_clean(&self) -> bool {
        self.by_code.keys().all(|code| code.severity() == Severity::Expected)
    }
}

/// What a run leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Run {
    /// What went wrong.
    pub findings: Findings,
    /// How often it could have.
    pub chances: Tally<Chance>,
    /// Code paths reached, and how often.
    pub marks: Tally<Mark>,
    /// Plain counts.
    pub metrics: Tally<Metric>,
    /// Reported decode hits by length in tokens.
    pub decode_hit_lengths: BTreeMap<u32, u64>,
    /// Free pages by the length of the run of free pages that each lay in.
    #[serde(serialize_with = "as_list")]
    pub free_runs: BTreeMap<FreeSample, Tally<FreeRun>>,
    /// Faults of the scenario, by number, that found nothing to go wrong: their moment never came.
    pub faults_idle: Vec<usize>,
    /// When the last event happened.
    pub ended: Tick,
    /// A hash of all events and findings: equal for equal runs, on any machine. It is serialised as
    /// 16 hexadecimal digits, since JSON numbers lose bits in many readers.
    #[serde(serialize_with = "as_hex")]
    pub digest: u64,
}

impl Run {
    /// Whether every request was refused before anything was done for it: what is not found then
    /// means nothing.
    pub fn served_nothing(&self) -> bool {
        let [requests, failed] = [Metric::Requests, Metric::Failed].map(|of| self.metrics.get(of));
        let done = [Metric::ComputedTokens, Metric::Pieces].map(|of| self.metrics.get(of));
        requests > 0 && failed == requests && done == [0, 0]
    }

    /// What came of it, in a word or two: a defect, nothing served, or neither.
    pub fn verdict(&self) -> &'static str {
        match self.findings.is_clean() {
            true if self.served_nothing() => "nothing served",
            true => "clean",
            false => "defect",
        }
    }
}

/// Samples are no keys of a JSON object: each is one entry of a list.
fn as_list<S: Serializer>(
    samples: &BTreeMap<FreeSample, Tally<FreeRun>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Sampled<'a> {
        side: Side,
        part: u64,
        pages: &'a Tally<FreeRun>,
    }
    let sampled = |(sample, pages)| {
        let &FreeSample { side, part } = sample;
        Sampled { side, part, pages }
    };
    serializer.collect_seq(samples.iter().map(sampled))
}

fn as_hex<S: Serializer>(digest: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{digest:016x}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_parse_back() {
        fn check<K: Named + std::fmt::Debug>() {
            let names: BTreeSet<_> = K::ALL.iter().map(|item| item.name()).collect();
            assert_eq!(names.len(), K::ALL.len());
            for (index, &item) in K::ALL.iter().enumerate() {
                assert_eq!(item.index(), index);
                assert_eq!(K::parse(item.name()), Some(item));
                assert!(!item.doc().is_empty());
            }
        }
        check::<Code>();
        check::<Chance>();
        check::<Mark>();
        check::<Metric>();
        check::<Side>();
        check::<FreeRun>();
    }

    #[test]
    fn a_free_run_is_of_the_class_whose_name_holds_its_length() {
        for (pages, name) in [
            (1, "1"),
            (2, "2-3"),
            (3, "2-3"),
            (4, "4-7"),
            (127, "64-127"),
            (128, "128+"),
            (1 << 24, "128+"),
        ] {
            assert_eq!(FreeRun::of(pages).name(), name);
        }
    }

    #[test]
    fn a_run_is_a_json_object_whose_names_are_those_of_files() {
        let mut run = Run { digest: 0xfe, ..Run::default() };
        run.metrics.add(Metric::Requests, 3);
        let sample = FreeSample { side: Side::Decode, part: 2 };
        run.free_runs.entry(sample).or_default().add(FreeRun::Two, 5);
        let json = serde_json::to_value(&run).unwrap();
        assert_eq!(json["digest"], "00000000000000fe");
        assert_eq!(json["metrics"]["requests"], 3);
        assert_eq!(json["free_runs"][0]["side"], "decode");
        assert_eq!(json["free_runs"][0]["pages"]["2-3"], 5);
        assert_eq!(format!("{:<16}|", Code::PlacedMissing), "placed.missing  |");
    }

    #[test]
    fn findings_beyond_the_kept_ones_are_still_counted() {
        let mut findings = Findings::default();
        let finding = Finding {
            code: Code::PlacedMissing,
            tick: Tick(1),
            request: None,
            rank: None,
            expected: String::new(),
            found: String::new(),
        };
        for _ in 0..100 {
            findings.add(finding.clone());
        }
        assert_eq!(findings.count(Code::PlacedMissing), 100);
        let (_, kept) = findings.iter().next().unwrap();
        assert_eq!(kept.first.len(), limits::FINDINGS_KEPT);
        assert!(!findings.is_clean());
    }
}
