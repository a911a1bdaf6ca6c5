//! The switches: what an engine does at each place where engines differ or have been reported
//! wrong.
//!
//! One enum each; its first variant is the default and sound on its own. The planner alone is
//! known by name, so that one from outside can be used ([`PlannerName`]). Each switch decides one
//! thing. A profile is the set of variants that one release of an engine has; a scenario names a
//! profile and overrides single switches through [`Overrides`].
//!
//! A number in a variant's text is that of an issue or pull request of the public repository
//! `sgl-project/sglang`, `sgl-project/mini-sglang`, `vllm-project/vllm`, `LMCache/LMCache` or
//! `inference-sim/inference-sim`. A variant without one has no report of its own.

mod planner_name;

use serde::{Deserialize, Serialize};

pub use planner_name::{NameTooLong, PlannerName};

/// One variant of a switch, for listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariantInfo {
    /// As spelled in files.
    pub name: &'static str,
    /// What it does, and where that was seen.
    pub doc: &'static str,
}

/// One switch, for listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchInfo {
    /// As spelled in files.
    pub name: &'static str,
    /// What it decides.
    pub doc: &'static str,
    /// When the variants differ.
    pub acts_when: &'static str,
    /// All built-in variants, the default first.
    pub variants: &'static [VariantInfo],
}

/// The type of a switch: an enum of its variants or, where it is open to names from outside, a
/// type of names with a constant for each built-in one.
macro_rules! switch_type {
    (
        [] $(#[doc = $doc:literal])* $name:ident {
            $(#[doc = $first_doc:literal])* $first:ident = $first_text:literal,
            $($(#[doc = $variant_doc:literal])* $variant:ident = $text:literal,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        #[derive(Serialize, Deserialize)]
        pub enum $name {
            $(#[doc = $first_doc])*
            #[default]
            #[serde(rename = $first_text)]
            $first,
            $($(#[doc = $variant_doc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// Every variant, the default first.
            pub const ALL: &'static [$name] = &[$name::$first, $($name::$variant),*];

            /// As spelled in files.
            pub fn name(self) -> &'static str {
                match self {
                    $name::$first => $first_text,
                    $($name::$variant => $text,)*
                }
            }
        }
    };
    (
        [open] $(#[doc = $doc:literal])* $name:ident {
            $(#[doc = $first_doc:literal])* $first:ident = $first_text:literal,
            $($(#[doc = $variant_doc:literal])* $variant:ident = $text:literal,)*
        }
    ) => {
        impl $name {
            $(#[doc = $first_doc])*
            pub const $first: $name = $name::of($first_text);
            $($(#[doc = $variant_doc])* pub const $variant: $name = $name::of($text);)*

            /// Every built-in name, the default first.
            pub const ALL: &'static [$name] = &[$name::$first, $($name::$variant),*];
        }

        impl Default for $name {
            fn default() -> $name {
                $name::$first
            }
        }
    };
}

macro_rules! switches {
    ($(
        $(#[doc = $doc:literal])*
        $field:ident: $name:ident $(($open:ident))?, acts when $acts:literal {
            $(#[doc = $first_doc:literal])* $first:ident = $first_text:literal,
            $($(#[doc = $variant_doc:literal])* $variant:ident = $text:literal,)*
        }
    )*) => {
        $(switch_type! {
            [$($open)?] $(#[doc = $doc])* $name {
                $(#[doc = $first_doc])* $first = $first_text,
                $($(#[doc = $variant_doc])* $variant = $text,)*
            }
        })*

        /// A variant for every switch.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Behaviours {
            $($(#[doc = $doc])* pub $field: $name,)*
        }

        /// Single switches that differ from the profile.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Overrides {
            $($(#[doc = $doc])* #[serde(default, skip_serializing_if = "Option::is_none")]
            pub $field: Option<$name>,)*
        }

        impl Overrides {
            /// These overrides on top of `base`.
            pub fn over(self, base: Behaviours) -> Behaviours {
                Behaviours { $($field: self.$field.unwrap_or(base.$field),)* }
            }

            /// An override for every switch for which `pick` gives the number of a variant, asked
            /// in the order of [`SWITCHES`].
            pub fn draw(mut pick: impl FnMut(&'static SwitchInfo) -> Option<usize>) -> Overrides {
                let mut switches = SWITCHES.iter();
                Overrides { $($field: {
                    let switch = switches.next().expect("there is an entry for every switch");
                    pick(switch).map(|variant| $name::ALL[variant])
                },)* }
            }

            /// Sets the switch of this name to the built-in variant of that name, and says whether
            /// both exist.
            pub fn set(&mut self, switch: &str, variant: &str) -> bool {
                $(if switch == stringify!($field) {
                    let known = $name::ALL.iter().copied().find(|known| known.name() == variant);
                    self.$field = known.or(self.$field);
                    return known.is_some();
                })*
                false
            }

            /// Sets the switch of this name to its default, which is sound, whatever the profile
            /// says. A name that no switch has changes nothing.
            pub fn reset(&mut self, switch: &str) {
                $(if switch == stringify!($field) {
                    self.$field = Some($name::default());
                })*
            }
        }

        impl Behaviours {
            /// The switches that differ from the default: name and variant.
            pub fn unusual(&self) -> Vec<(&'static str, &str)> {
                let mut list = Vec::new();
                $(if self.$field != $name::default() {
                    list.push((stringify!($field), self.$field.name()));
                })*
                list
            }
        }

        /// Every switch with its built-in variants.
        pub const SWITCHES: &[SwitchInfo] = &[$(SwitchInfo {
            name: stringify!($field),
            doc: concat!($($doc),*),
            acts_when: $acts,
            variants: &[
                VariantInfo { name: $first_text, doc: concat!($($first_doc),*) },
                $(VariantInfo { name: $text, doc: concat!($($variant_doc),*) },)*
            ],
        },)*];
    };
}

switches! {
    /// How far a decode cache hit is reported; the tree itself keeps whole virtual pages.
    decode_match_unit: DecodeMatchUnit, acts when "the decode cache is on" {
        /// In virtual pages of P·N tokens, the unit of the decode allocator.
        VirtualPage = "virtual_page",
        /// In physical pages of P tokens (sglang issue 40263).
        PhysicalPage = "physical_page",
        /// Token by token.
        Token = "token",
    }
    /// What the decode side makes of a reported hit before it sends it as `decode_prefix_len`.
    decode_prefix_cut: DecodePrefixCut, acts when "the reported hit is not a multiple of V" {
        /// Cuts down to whole virtual pages.
        VirtualPage = "virtual_page",
        /// Cuts down to whole physical pages, which the planner refuses (sglang issue 40263).
        PhysicalPage = "physical_page",
        /// Sends the hit as it is.
        None = "none",
        /// Pads up to the next virtual page, a published advice that loses positions silently.
        PaddedUp = "padded_up",
    }
    /// How many virtual pages decode reserves for the tokens beyond its prefix.
    decode_reservation: DecodeReservation, acts when "always" {
        /// As many as the tokens need, rounded up.
        Ceil = "ceil",
        /// Rounded down: short whenever the last page is partial.
        Floor = "floor",
        /// Counts physical pages: N times too many.
        ByPhysicalPage = "by_physical_page",
        /// One fewer where the tokens fill their pages exactly.
        OneShort = "one_short",
    }
    /// Which destination pages a chunk's planner call gets.
    destination_list: DestinationList, acts when "a request has more than one chunk" {
        /// The request's whole list, from its prefix on.
        Whole = "whole",
        /// Sliced by the chunk's source pages: a physical index on virtual pages.
        SlicedByChunk = "sliced_by_chunk",
    }
    /// Where prefill may cut a prompt that does not fit into a step.
    chunk_cut: ChunkCut, acts when "a request has more than one chunk" {
        /// At a page boundary.
        PageBoundary = "page_boundary",
        /// Anywhere: exact chunk budgets.
        ExactBudget = "exact_budget",
    }
    /// How far a chunk that is not the last is sent.
    send_cut: SendCut, acts when "chunks are cut inside a page" {
        /// Up to its last full page; the partial page waits for the next send.
        FullPage = "full_page",
        /// With its partial page, which goes out again with the next chunk (sglang issue 5588).
        None = "none",
    }
    /// What a piece's source page offset counts.
    source_offset: SourceOffset, acts when "a request has a second piece, or a prefix" {
        /// Pages sent since the decode prefix.
        PagesSincePrefix = "pages_since_prefix",
        /// Pages of this chunk only: every piece starts again at 0.
        PagesOfChunk = "pages_of_chunk",
        /// Pages from position 0, the prefix included.
        PagesFromZero = "pages_from_zero",
    }
    /// When prefill begins with a request.
    prefill_start: PrefillStart, acts when "always" {
        /// When it knows where decode wants the transfer.
        AfterReservation = "after_reservation",
        /// When the request arrives: what it computes waits on prefill for a destination.
        AtArrival = "at_arrival",
    }
    /// Who gives way when a request with a destination waits for prefill pages that others hold
    /// without.
    cross_stall: CrossStall, acts when "prefill begins at arrival" {
        /// The latest of those others: its pages go back, and it is computed again.
        LatestGivesWay = "latest_gives_way",
        /// Nobody: if they wait for decode pages that it holds, both wait for ever (sglang issue
        /// 31473).
        None = "none",
    }
    /// Whether prefill sends its cached prefix before it computes the rest, and how it is cut.
    early_send: EarlySend, acts when "the prefill hit reaches beyond the decode prefix, or, for launched rows, there is a second chunk" {
        /// No: the prefix goes out with the first chunk.
        Off = "off",
        /// Rows already written, cut down to whole pages.
        SettledCut = "settled_cut",
        /// Rows already written, and nothing unless they end on a whole page.
        SettledSkipped = "settled_skipped",
        /// Rows whose computation has only been launched (sglang issues 29316, 31239).
        Launched = "launched",
        /// Rows already written; the rest of the prompt is then never laid out (sglang issue
        /// 33309).
        SettledRestDropped = "settled_rest_dropped",
    }
    /// Whether a last message without rows goes out.
    empty_last: EmptyLast, acts when "a full hit leaves nothing to send, or a rank owns no token" {
        /// Sent: decode needs its metadata.
        Sent = "sent",
        /// Dropped, as there is nothing in it.
        Dropped = "dropped",
    }
    /// What becomes of a request that the planner refused.
    refused_request: RefusedRequest, acts when "the planner refuses" {
        /// It fails.
        Fails = "fails",
        /// It is served again without a prefix.
        ServedAgain = "served_again",
    }
    /// When the destination pages of a transfer are given back that was aborted, refused, or failed
    /// because a message was lost.
    release_on_abort: ReleaseOnAbort, acts when "a transfer ends before its copies have landed" {
        /// When no copy into them is in flight.
        Drained = "drained",
        /// At once (sglang issues 24527, 27372).
        AtOnce = "at_once",
        /// When drained, or after a timeout if that comes first (sglang issue 38961).
        Timeout = "timeout",
    }
    /// When a transfer's source pages are given back.
    source_release: SourceRelease, acts when "always" {
        /// When every copy out of them has landed.
        Landed = "landed",
        /// When every copy has been put on the link, sent or not.
        BeforeSent = "before_sent",
        /// When every copy out of them has landed, or at once when the client gives up (sglang
        /// 0.5.23).
        LandedOrAborted = "landed_or_aborted",
    }
    /// Whether an abort gives back what its request holds.
    abort_cleanup: AbortCleanup, acts when "a request is aborted in the state that is forgotten" {
        /// In every state.
        Everywhere = "everywhere",
        /// Not while it waits for a reservation: it stays in the queue and is given pages (sglang
        /// issue 9817).
        ForgetsWaiting = "forgets_waiting",
        /// Not between reservation and computation (sglang issue 36926).
        ForgetsReserved = "forgets_reserved",
        /// Not while prefill computes it in chunks (sglang issue 9817).
        ForgetsChunking = "forgets_chunking",
        /// Not when all is computed and copies are outstanding (sglang issue 36926).
        ForgetsCopying = "forgets_copying",
        /// Not while it runs.
        ForgetsRunning = "forgets_running",
        /// Not while it is retracted: it stays in the queue and is given pages.
        ForgetsRetracted = "forgets_retracted",
    }
    /// How a running request's own pages are named when they are given back.
    tail_release: TailRelease, acts when "a request's pages do not follow each other" {
        /// As its table has them.
        ByTable = "by_table",
        /// As so many pages from the first on (sglang issue 27731).
        AsRun = "as_run",
    }
    /// Whether a match is locked before eviction makes room for the rest.
    lock_on_match: LockOnMatch, acts when "pages are evicted between a match and its use" {
        /// Locked until the request ends.
        Held = "held",
        /// Not locked: matched pages can be evicted for their own request.
        None = "none",
    }
    /// Whether a lock is released as often as it was taken.
    lock_count: LockCount, acts when "a request's place in the prefill cache moves from one node to another" {
        /// The old place is unlocked when the new one has been locked.
        Paired = "paired",
        /// Both are locked, and only the new one is ever unlocked (sglang issue 26560).
        ReleasedOnce = "released_once",
    }
    /// What happens to pages that another request has put into the tree meanwhile.
    duplicate_insert: DuplicateInsert, acts when "two requests compute the same pages" {
        /// The request's table is pointed at the tree's pages, its own are freed once.
        Remap = "remap",
        /// Its own pages are freed, but its table goes on pointing at them (mini-sglang pull
        /// request 142).
        FreeWithoutRemap = "free_without_remap",
        /// The table is pointed at the tree's pages first, and what is freed is read from the
        /// table: the tree's pages go back, its own are lost (sglang issues 27789, 35270).
        FreeAfterRemap = "free_after_remap",
    }
    /// Whether the allocator looks before it takes a page back.
    free_check: FreeCheck, acts when "a page is freed twice" {
        /// A page that is free already is left alone.
        Guarded = "guarded",
        /// No check: the page enters the list twice (LMCache issue 5005).
        None = "none",
    }
    /// When decode takes a transfer for complete.
    transfer_completion: TransferCompletion, acts when "parts are reordered or lost" {
        /// When every part of every piece has landed on every rank.
        EveryPart = "every_part",
        /// When the last piece has landed on every rank (sglang issue 37697).
        LastPartSeen = "last_part_seen",
        /// When any part has landed (sglang issue 39846).
        AnyPart = "any_part",
    }
    /// What becomes of a transfer when the message that a part has landed is lost.
    lost_message: LostMessage, acts when "a message is lost" {
        /// The sender misses it within one message delay, and the request fails.
        Fails = "fails",
        /// Nobody misses it (sglang issue 36108).
        Ignored = "ignored",
    }
    /// What a message means that comes a second time.
    doubled_message: DoubledMessage, acts when "a message is doubled" {
        /// Nothing: parts are told apart.
        Harmless = "harmless",
        /// Another part: they are only counted (sglang issue 36108).
        Counted = "counted",
    }
    /// How a running request gives up its pages when the decode pool runs out.
    retraction: Retraction, acts when "the decode pool runs out" {
        /// Its KV is copied to the host and back.
        HostCopy = "host_copy",
        /// Its KV is dropped; prefill sends it again.
        SendAgain = "send_again",
    }
    /// How a retracted request comes back.
    resumption: Resumption, acts when "the decode pool runs out" {
        /// Before all arrivals, and as soon as there are pages for it.
        First = "first",
        /// By the arrival queue: when a request is let in from there (sglang issue 6857).
        WithArrivals = "with_arrivals",
    }
    /// How the demand of requests that are let in together is counted.
    admission_demand: AdmissionDemand, acts when "several requests arrive at a nearly full decode pool" {
        /// In pages, each when its turn comes.
        Pages = "pages",
        /// In tokens, all together, before any page is taken (sglang issue 7353).
        Tokens = "tokens",
        /// In tokens, each when its turn comes, with the output that it may ask for: against what
        /// running requests would give back, and beside the largest of them (sglang 0.5.23).
        WithOutput = "with_output",
    }
    /// How the demand of the next decode step is counted.
    next_step_demand: NextStepDemand, acts when "several requests cross a page at once" {
        /// A page for every request that crosses into one.
        Pages = "pages",
        /// A token for every request (sglang issues 4602, 7411).
        Tokens = "tokens",
    }
    /// Up to where a request that ends leaves its KV in the decode cache.
    committed_length: CommittedLength, acts when "the last output token fills a page" {
        /// Up to what is stored.
        Stored = "stored",
        /// Up to its last token, whose KV nobody computed (sglang issue 24590).
        Sequence = "sequence",
    }
    /// What a flush of a cache does while requests hold pages.
    flush: Flush, acts when "a cache is flushed" {
        /// Nothing: it is refused.
        Refused = "refused",
        /// Clears cache and allocator, whoever holds what (sglang issue 23672).
        AtOnce = "at_once",
    }
    /// How a sender checks that a rank's rows fit into its pack region.
    packing: Packing, acts when "a send is larger than a region" {
        /// Each rank's rows against its own region.
        RegionChecked = "region_checked",
        /// Against the end of the whole buffer (sglang issues 40336, 40376).
        BufferChecked = "buffer_checked",
        /// Never packs: nearly every token is a descriptor of its own.
        None = "none",
    }
    /// Whether a send larger than the pack buffer is split.
    send_split: SendSplit, acts when "a send is larger than the pack buffer" {
        /// Split at multiples of the buffer's size from the prefix on.
        Yes = "yes",
        /// The same of every send that crosses such a multiple, however short, and of none where
        /// decode has one rank, whose rows are never packed (sglang 0.5.23).
        Crossings = "crossings",
        /// Sent in one piece.
        No = "no",
    }
    /// Which revision of the transfer planner runs.
    planner: PlannerName (open), acts when "a piece is one that the checked planner refuses" {
        /// Three checks, each with its error.
        CHECKED = "checked",
        /// Only the alignment check; the rest shows as bare index errors.
        INDEXED = "indexed",
    }
    /// What a prefix cache's keys tell apart beside the tokens.
    cache_key: CacheKey, acts when "requests of several namespaces share tokens" {
        /// The namespace: requests of different adapters or salts share nothing.
        WithNamespace = "with_namespace",
        /// Nothing: equal tokens are equal KV (sglang issue 19746).
        WithoutNamespace = "without_namespace",
    }
    /// Of which page the decode cache takes the hash as the key of a virtual page.
    cache_hash_unit: CacheHashUnit, acts when "the decode cache is on, over several ranks" {
        /// Of the virtual page itself.
        VirtualPage = "virtual_page",
        /// Of its first physical page: a hit of P tokens brings V rows (vllm pull request 26296).
        PhysicalPage = "physical_page",
    }
    /// Which tokens prefill hashes for the key of a page that a chunk has filled.
    chunk_hash: ChunkHash, acts when "the prefill cache is on and a chunk begins behind position 0" {
        /// All tokens up to the page's end.
        WholePrefix = "whole_prefix",
        /// The chunk's own, from its first on, as if the prompt began there (inference-sim issue
        /// 196).
        OwnTokens = "own_tokens",
    }
    /// Whether rows are laid out anew for each rank.
    relayout: Relayout, acts when "decode has several ranks" {
        /// Every rank gets the rows that it owns.
        PerRank = "per_rank",
        /// No: source and destination pages are paired as they stand, the same for every rank, and
        /// what is left of the longer list is dropped (sglang issue 32997).
        None = "none",
    }
    /// In which unit a copy addresses rank-local memory.
    rows: Rows, acts when "decode has several ranks" {
        /// In the rank's own rows.
        PerRank = "per_rank",
        /// In virtual rows, as the allocator counts them (sglang issues 36886, 38645).
        VirtualAsLocal = "virtual_as_local",
    }
    /// How many tokens the last piece ends with.
    source_length: SourceLength, acts when "a prompt fills its virtual pages exactly" {
        /// Those of the prompt.
        Prompt = "prompt",
        /// One more: the first output token counts already (sglang issue 27004). Its page-table
        /// entry names the padding page where the prompt fills its pages.
        OneMore = "one_more",
    }
    /// In which unit a prompt is compared with what the decode pool can hold.
    capacity_unit: CapacityUnit, acts when "a request is near the size of the pool" {
        /// In virtual pages, over all ranks.
        VirtualPages = "virtual_pages",
        /// In rows of one rank (sglang issue 33448).
        RankRows = "rank_rows",
        /// In rows of all ranks, those behind the last whole page included (seen in an
        /// engine other than sglang; its report has no number here).
        NotCutToPages = "not_cut_to_pages",
    }
    /// In which segments of its page table a request gives its decode pages back.
    free_segment: FreeSegment, acts when "a request's output begins inside a virtual page" {
        /// In one, from a page's start.
        WholePages = "whole_pages",
        /// Output and prompt apart: the first segment begins inside the page that both share, and
        /// takes it along (sglang pull request 37729).
        AnyStart = "any_start",
    }
    /// Which list of rows the copy of draft KV follows.
    draft_rows: DraftRows, acts when "decode keeps draft KV, over several ranks" {
        /// Its own: every position on every rank.
        Own = "own",
        /// The target model's: a rank's share, in rank-local rows (sglang issues 33043, 37709).
        ByTargetList = "by_target_list",
    }
    /// How large the replicated pool of draft KV is made.
    replicated_pool: ReplicatedPool, acts when "decode keeps draft KV, over several ranks" {
        /// (rows + P) · N, the padding page like any other.
        WithPages = "with_pages",
        /// rows · N + P: the padding page counts as a physical one (sglang issue 33348).
        RowsAndOnePage = "rows_and_one_page",
    }
    // The order of a scheduler's work, and what it asks for.
    /// When a prompt that was sent enters the decode cache.
    decode_insert: DecodeInsert, acts when "the decode cache is on" {
        /// With the output, when its request finishes.
        AtFinish = "at_finish",
        /// When its request is activated: a later prompt can hit it while it runs (sglang 0.5.23).
        AtActivation = "at_activation",
    }
    /// When decode reserves pages and takes up what has landed.
    decode_turn: DecodeTurn, acts when "a request arrives or its transfer lands while decode runs a step" {
        /// As soon as it can, whatever the server does.
        AnyTime = "any_time",
        /// Between two steps only, and not at all while a retracted request waits (sglang 0.5.23):
        /// if what has landed holds the pages that it needs, nothing ever moves again.
        BetweenSteps = "between_steps",
    }
    /// For how many tokens cached pages are evicted.
    eviction_demand: EvictionDemand, acts when "a pool is nearly full" {
        /// For those that are about to be taken.
        Exact = "exact",
        /// For a page more than its tokens of each request of a prefill step, for a page of each
        /// running request of a decode step, and after a retraction for 20 tokens of each that goes
        /// on (sglang 0.5.23).
        Padded = "padded",
    }
    /// What marks the prompt's end in a prefix cache when more than the prompt is put in.
    prompt_node: PromptNode, acts when "a request that finishes leaves whole pages of output in a radix cache" {
        /// Nothing: prompt and output can share a node.
        Shared = "shared",
        /// A node ends there, and those of the prompt have a priority one higher (sglang 0.5.23).
        Own = "own",
    }
    /// How a reservation asks the allocator.
    reservation_call: ReservationCall, acts when "freed pages are staged" {
        /// For so many whole pages.
        WholePages = "whole_pages",
        /// To extend a sequence, with the estimate that this call makes (sglang 0.5.23).
        Extend = "extend",
    }
    /// For how many tokens a retracted request waits.
    resumption_demand: ResumptionDemand, acts when "the decode pool runs out" {
        /// For the pages of what it had stored and of its next token.
        NextToken = "next_token",
        /// For the pages of what it had stored beside what is kept back for each request (sglang
        /// 0.5.23); its next token may lack a page.
        Reserved = "reserved",
    }
    /// What becomes of the only running request when its next token finds no page.
    last_running: LastRunning, acts when "the decode pool runs out for a request alone" {
        /// It is retracted as others are.
        Retracted = "retracted",
        /// It ends, with an error to its client (sglang 0.5.23).
        Aborted = "aborted",
    }
    /// When the upper node of a split counts as made.
    split_stamp: SplitStamp, acts when "a prompt parts from a cached one inside a node, under an eviction policy that goes by age" {
        /// At the split.
        New = "new",
        /// When the node was made that is split (sglang 0.5.23).
        Inherited = "inherited",
    }
    /// Which of a request's pages count as used when they are put into a prefix cache once more.
    hit_count: HitCount, acts when "a request puts pages in more than once, under an eviction policy that counts" {
        /// All of them.
        EveryInsert = "every_insert",
        /// Those that it has not put in before (sglang 0.5.23).
        OncePerRequest = "once_per_request",
        /// All of them, but none with a chunk that is not the last (sglang 0.5.17, 0.5.20).
        NotChunks = "not_chunks",
    }
    /// How a prefill step's requests are chosen and get their pages.
    prefill_batch: PrefillBatch, acts when "a prefill pool is nearly full, or a step computes several requests" {
        /// One after the other: each is let in if its whole prompt fits, and takes the pages of its
        /// chunk at once.
        OneByOne = "one_by_one",
        /// All are chosen first, each if the tokens that it has to compute, one more and a page
        /// are fewer than what is free or evictable and not promised to those before it; then all
        /// pages are taken in one call, for which a page more a request is evicted (sglang 0.5.23).
        /// A prompt within a page of its pool never gets in, and none behind 16,384 tokens.
        AtOnce = "at_once",
    }
    /// How many output tokens a request may have.
    output_limit: OutputLimit, acts when "a request is near the size of the pool" {
        /// As many as it asks for.
        AsAsked = "as_asked",
        /// As many as the decode pool holds behind its prompt's pages, less a page and a token; at
        /// least one (sglang 0.5.23).
        Clipped = "clipped",
    }
    /// What is refused on arrival for its size.
    front_check: FrontCheck, acts when "a request is near the size of a pool" {
        /// What empty pools could never serve.
        EverServed = "ever_served",
        /// A prompt that is not six tokens shorter than either pool (sglang 0.5.23): one that
        /// cannot be admitted otherwise waits for ever, and all behind it.
        InputLength = "input_length",
    }
    /// What a transfer leaves in the prefill cache when it has ended.
    release_insert: ReleaseInsert, acts when "the prefill cache is on" {
        /// What its chunks have left there; its pages go back at once.
        Nothing = "nothing",
        /// Its pages are put in once more before they go back, between two steps: they count as
        /// used then (sglang 0.5.23).
        Again = "again",
    }
    /// What becomes of a chunk whose client gives up while it is computed.
    aborted_chunk: AbortedChunk, acts when "a request is aborted while prefill computes it" {
        /// It is kept in the cache, and not sent.
        Kept = "kept",
        /// A last chunk is kept and not sent; another is dropped (sglang 0.5.17 to 0.5.23).
        KeptIfLast = "kept_if_last",
        /// A last chunk is kept and sent all the same; another is dropped. So does 0.5.23 above a
        /// stand-in for its transfer manager, by which whole runs of it were recorded.
        SentIfLast = "sent_if_last",
    }
    /// What becomes of the step under way of a request whose client gives up.
    aborted_step: AbortedStep, acts when "a running request is aborted" {
        /// It stores no token, and the request's own pages go back.
        Dropped = "dropped",
        /// It counts, and the request's pages enter the cache as those of one that finishes (sglang
        /// 0.5.23).
        Counted = "counted",
    }
    /// Which of several requests with as much output and as long a prompt is retracted first.
    retraction_order: RetractionOrder, acts when "the decode pool runs out" {
        /// The one with the highest number.
        Number = "number",
        /// The last of the batch; those that stay are then in the order in which they would be
        /// kept, and take their pages in it (sglang 0.5.23).
        Batch = "batch",
    }
    // What the sender makes of pieces that its planner cannot lay out.
    /// What a refused piece does to what is sent behind it.
    transfer_error: TransferError, acts when "the planner refuses" {
        /// Its request fails alone.
        FailsRequest = "fails_request",
        /// The thread that sends ends: the request is never concluded, and nothing more goes from
        /// this prefill to this decode server (sglang 0.5.17 to 0.5.23).
        EndsThread = "ends_thread",
    }
    /// What becomes of a piece with more source pages than are left of the destination list.
    short_list: ShortList, acts when "decode has one rank and reserved too few pages" {
        /// The planner refuses it.
        Refused = "refused",
        /// With one decode rank, which no planner serves, it is cut to the pages that there are,
        /// and the transfer goes on (sglang 0.5.17 to 0.5.23).
        Cut = "cut",
    }
    /// What becomes of a piece with a list that names a page twice.
    duplicate_page: DuplicatePage, acts when "a pool hands a page out twice" {
        /// The planner refuses it.
        Refused = "refused",
        /// It is laid out like any other (sglang 0.5.17 to 0.5.23).
        Planned = "planned",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_win_over_the_profile_and_leave_the_rest() {
        let text = "decode_prefix_cut = \"padded_up\"\nplanner = \"checked\"\n";
        let overrides: Overrides = toml::from_str(text).unwrap();
        let base = Behaviours { planner: PlannerName::INDEXED, ..Behaviours::default() };
        let expected = Behaviours {
            decode_prefix_cut: DecodePrefixCut::PaddedUp,
            planner: PlannerName::CHECKED,
            ..base
        };
        assert_eq!(overrides.over(base), expected);
        assert_eq!(toml::to_string(&overrides).unwrap(), text);
    }

    #[test]
    fn switches_are_drawn_in_order_and_reset_by_name() {
        let mut drawn = Overrides::draw(|switch| (switch.name == "planner").then_some(1));
        let expected = Overrides { planner: Some(PlannerName::INDEXED), ..Overrides::default() };
        assert_eq!(drawn, expected);
        drawn.reset("planner");
        assert_eq!(
            drawn
                .over(Behaviours { planner: PlannerName::INDEXED, ..Behaviours::default() })
                .planner,
            PlannerName::CHECKED
        );
        for (index, switch) in SWITCHES.iter().enumerate() {
            let mut last = Overrides::draw(|asked| {
                let at = SWITCHES.iter().position(|known| known.name == asked.name);
                (at == Some(index)).then(|| asked.variants.len() - 1)
            });
            let variant = switch.variants[switch.variants.len() - 1].name;
            let behaviours = last.over(Behaviours::default());
            assert_eq!(behaviours.unusual(), [(switch.name, variant)]);
            last.reset(switch.name);
            assert_eq!(last.over(Behaviours::default()).unusual(), []);
            assert!(last.set(switch.name, variant) && !last.set(switch.name, "no such"));
            assert_eq!(last.over(Behaviours::default()).unusual(), [(switch.name, variant)]);
        }
        assert!(!Overrides::default().set("no_such", "none"));
    }

    #[test]
    fn an_unknown_switch_or_variant_is_refused() {
        assert!(toml::from_str::<Overrides>("decode_cut = \"none\"").is_err());
        assert!(toml::from_str::<Overrides>("free_check = \"fast\"").is_err());
    }

    #[test]
    fn a_planner_can_have_a_name_from_outside() {
        let overrides: Overrides = toml::from_str("planner = \"fast\"").unwrap();
        let behaviours = overrides.over(Behaviours::default());
        assert_eq!(behaviours.unusual(), [("planner", "fast")]);
        assert!(toml::from_str::<Overrides>(&format!("planner = \"{:99}\"", "")).is_err());
    }

    #[test]
    fn every_switch_has_a_choice_and_every_variant_a_text() {
        for switch in SWITCHES {
            assert!(switch.variants.len() >= 2, "{}", switch.name);
            assert!(switch.variants.iter().all(|variant| !variant.doc.is_empty()));
        }
    }
}
