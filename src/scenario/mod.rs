//! The one concrete description of a run: configuration, behaviours, workload, faults and, at the
//! end, what it must show.
//!
//! Fuzz targets, property tests, sweeps, hazards and regressions all run this type. It holds no
//! range and no float; unknown fields are refused. As a file it is TOML.
//!
//! ```
//! use kvseam::scenario::file;
//! use kvseam::world::Simulation;
//!
//! let text = r#"
//!     version = 1
//!     title = "one request"
//!     layout = { page_size = 4, ranks = 2 }
//!     prefill = { pages = 16 }
//!     decode = { pages = 16 }
//!
//!     [workload.synthetic]
//!     requests = 1
//!     arrivals = { fixed = { gap = 1 } }
//!     prompt = { fixed = 9 }
//!     output = { fixed = 2 }
//! "#;
//! let run = Simulation::new(&file::parse(text, "example")?).run()?;
//! assert!(run.findings.is_clean());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::behaviour::{Behaviours, Overrides};
use crate::engine::Profile;
use crate::engine::connection::KvPool;
use crate::finding::{Code, Mark, Side};
use crate::prompt::ContentId;
use crate::units::{RequestId, Tick, Tokens};

pub mod expect;
pub mod file;
pub mod generate;
pub mod lint;
pub mod summary;
pub mod validate;

/// The version of the scenario format that this release reads and writes.
pub const VERSION: u32 = 1;

/// Everything that decides a run.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Format version, [`VERSION`].
    pub version: u32,
    /// One line that says what to see.
    pub title: String,
    /// Seed of everything drawn: synthetic workloads and the free-list order `random`.
    #[serde(default)]
    pub seed: u64,
    /// The engine release whose switches are the base.
    #[serde(default)]
    pub profile: Profile,
    /// Page size and ranks.
    pub layout: LayoutConfig,
    /// The prefill servers.
    pub prefill: PrefillConfig,
    /// The decode servers.
    pub decode: DecodeConfig,
    /// What lies between them.
    #[serde(default)]
    pub link: LinkConfig,
    /// What the peers say of themselves when they connect.
    #[serde(default)]
    pub pairing: PairingConfig,
    /// Switches that differ from the profile.
    #[serde(default, skip_serializing_if = "is_default")]
    pub behaviour: Overrides,
    /// The requests.
    pub workload: WorkloadConfig,
    /// What goes wrong from outside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// What the run must show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
}

/// Page size P and ranks N; a virtual page is P·N tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayoutConfig {
    /// Rows of a physical page.
    pub page_size: u32,
    /// Decode context-parallel ranks.
    pub ranks: u32,
}

impl LayoutConfig {
    /// Tokens of a virtual page. Only for a layout within its bounds.
    fn virtual_page(&self) -> u32 {
        self.page_size * self.ranks
    }
}

/// The prefill servers. Policies are named as the registry knows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefillConfig {
    /// Number of servers; requests go to them round robin.
    #[serde(default = "one")]
    pub workers: u32,
    /// Pages of P rows in each server's pool, page 0 not counted.
    pub pages: u32,
    /// The prefix cache.
    #[serde(default = "radix")]
    pub cache: String,
    /// Which cached pages go first.
    #[serde(default = "lru")]
    pub eviction: String,
    /// Tokens at the end of a history that need not be cached, under `eviction = "tlru"`: the
    /// engine's threshold less its estimate of the next prompt.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tail_tokens: u32,
    /// In which order freed pages are handed out again.
    #[serde(default = "sorted")]
    pub free_order: String,
    /// A step's token budget.
    #[serde(default = "chunk_tokens")]
    pub chunk_tokens: u32,
    /// In which order waiting requests are admitted.
    #[serde(default = "first_come")]
    pub admission: String,
    /// What a step costs, whatever it computes.
    #[serde(default = "prefill_step_ticks")]
    pub step_ticks: u64,
    /// What a token of a step costs.
    #[serde(default = "token_ticks")]
    pub token_ticks: u64,
}

impl PrefillConfig {
    /// One server with a pool of `pages`, and every other field as where a file leaves it out.
    pub fn of(pages: u32) -> PrefillConfig {
        PrefillConfig {
            workers: one(),
            pages,
            cache: radix(),
            eviction: lru(),
            tail_tokens: 0,
            free_order: sorted(),
            chunk_tokens: chunk_tokens(),
            admission: first_come(),
            step_ticks: prefill_step_ticks(),
            token_ticks: token_ticks(),
        }
    }
}

/// The decode servers. Policies are named as the registry knows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecodeConfig {
    /// Number of servers; requests go to them round robin.
    #[serde(default = "one")]
    pub workers: u32,
    /// Virtual pages of P·N rows in each server's pool, page 0 not counted.
    pub pages: u32,
    /// Rows of a rank's memory behind its last whole page, which no page can use.
    #[serde(default, skip_serializing_if = "is_default")]
    pub leftover_rows: u32,
    /// Whether every rank keeps the draft model's KV of all positions.
    #[serde(default, skip_serializing_if = "is_default")]
    pub draft: bool,
    /// The prefix cache.
    #[serde(default = "radix")]
    pub cache: String,
    /// Which cached pages go first.
    #[serde(default = "lru")]
    pub eviction: String,
    /// Tokens at the end of a history that need not be cached, under `eviction = "tlru"`: the
    /// engine's threshold less its estimate of the next prompt.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tail_tokens: u32,
    /// In which order freed pages are handed out again.
    #[serde(default = "sorted")]
    pub free_order: String,
    /// Tokens kept back for the growth of each request.
    #[serde(default = "reserved_tokens")]
    pub reserved_tokens: u32,
    /// What a step costs, whatever it runs.
    #[serde(default = "decode_step_ticks")]
    pub step_ticks: u64,
    /// What a running request adds to a step.
    #[serde(default = "request_ticks")]
    pub request_ticks: u64,
    /// After how long an aborted request's pages are given back under `release_on_abort =
    /// "timeout"`.
    #[serde(default = "release_timeout_ticks")]
    pub release_timeout_ticks: u64,
}

impl DecodeConfig {
    /// One server with a pool of `pages`, and every other field as where a file leaves it out.
    pub fn of(pages: u32) -> DecodeConfig {
        DecodeConfig {
            workers: one(),
            pages,
            leftover_rows: 0,
            draft: false,
            cache: radix(),
            eviction: lru(),
            tail_tokens: 0,
            free_order: sorted(),
            reserved_tokens: reserved_tokens(),
            step_ticks: decode_step_ticks(),
            request_ticks: request_ticks(),
            release_timeout_ticks: release_timeout_ticks(),
        }
    }
}

/// The link between one prefill and one decode server; each pair has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkConfig {
    /// What a copy costs, whatever it carries.
    pub copy_ticks: u64,
    /// Bandwidth of the link, in bytes a tick.
    pub bytes_per_tick: u64,
    /// Bytes of one token's KV over all layers.
    pub token_bytes: u64,
    /// How long a message takes.
    pub message_ticks: u64,
    /// Every how-many-th copy lands late; 0 for none.
    pub delay_every: u32,
    /// How much later.
    pub delay_ticks: u64,
    /// Tokens that the pack buffer holds over all its regions.
    pub pack_tokens: u32,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            copy_ticks: 50,
            bytes_per_tick: 25_000,
            // 61 layers of 576 bf16 values, as the large MLA models have.
            token_bytes: 61 * 1_152,
            message_ticks: 100,
            delay_every: 0,
            delay_ticks: 0,
            pack_tokens: chunk_tokens(),
        }
    }
}

/// What the peers say of themselves when they connect. What is left out agrees with the other side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PairingConfig {
    /// Ranks of the prefill side. The world simulates 1; other numbers are only checked.
    pub prefill_ranks: u32,
    /// The prefill peer's rank, where it has several.
    pub prefill_rank: u32,
    /// The decode peer's rank that it connects to, where prefill has several.
    pub decode_rank: u32,
    /// The prefill side's page size, where it differs from the layout's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefill_page_size: Option<u32>,
    /// Attention context parallelism of the prefill side.
    pub prefill_attention_cp: u32,
    /// The decode pool's kind.
    pub decode_pool: KvPool,
    /// Bytes a token of each KV entry on the prefill side.
    pub prefill_entry_bytes: Vec<u32>,
    /// Bytes a token of each KV entry on the decode side.
    pub decode_entry_bytes: Vec<u32>,
}

impl Default for PairingConfig {
    fn default() -> Self {
        PairingConfig {
            prefill_ranks: 1,
            prefill_rank: 0,
            decode_rank: 0,
            prefill_page_size: None,
            prefill_attention_cp: 1,
            decode_pool: KvPool::Mla,
            prefill_entry_bytes: vec![1_152],
            decode_entry_bytes: vec![1_152],
        }
    }
}

/// Where the requests come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WorkloadConfig {
    /// Written out, in order of arrival.
    Requests(Vec<RequestSpec>),
    /// Drawn from the scenario's seed.
    Synthetic(Synthetic),
    /// Read from a published trace.
    Trace(TraceConfig),
}

/// One request, written out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestSpec {
    /// When it arrives.
    #[serde(default)]
    pub at: Tick,
    /// Its prompt.
    pub prompt: Vec<RunSpec>,
    /// Its output tokens; the first comes from prefill.
    pub output: Tokens,
    /// The most output tokens that it may have, `max_new_tokens` of its client: what it is let in
    /// and clipped by where the engine looks ahead. At least `output`, and that by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_new_tokens: Option<Tokens>,
    /// The content of its output, where a later prompt names it; its own otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_content: Option<ContentId>,
    /// Adapter or salt; requests of different namespaces share nothing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub namespace: u32,
    /// Priority of its cached pages under `eviction = "priority"`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i64,
}

/// A run of a prompt as files spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// The content that the tokens are from.
    pub content: ContentId,
    /// The first token's place in the content.
    #[serde(default, skip_serializing_if = "is_default")]
    pub offset: Tokens,
    /// How many.
    pub len: Tokens,
}

/// Requests drawn at random.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Synthetic {
    /// How many requests.
    pub requests: u32,
    /// When they arrive.
    pub arrivals: Arrivals,
    /// Prompt tokens beyond any shared prefix.
    pub prompt: Lengths,
    /// Output tokens.
    pub output: Lengths,
    /// Prompts begin with one of this many shared prefixes; 0 for none.
    #[serde(default)]
    pub prefix_groups: u32,
    /// Tokens of each shared prefix; the draw is made once a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Lengths>,
    /// Turns of a conversation: each later turn's prompt is the turn before with its output and new
    /// tokens. Requests are dealt to conversations in turn.
    #[serde(default = "one")]
    pub turns: u32,
}

/// When synthetic requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrivals {
    /// At fixed gaps.
    Fixed {
        /// Ticks between two requests.
        gap: u64,
    },
    /// In bursts.
    Bursts {
        /// Requests of a burst, all at once.
        size: u32,
        /// Ticks between two bursts.
        gap: u64,
    },
    /// At geometric gaps: each slot brings the next request with probability numerator/denominator.
    Geometric {
        /// Ticks of a slot.
        slot: u64,
        /// Slots out of `denominator` that bring a request.
        numerator: u32,
        /// See `numerator`.
        denominator: u32,
    },
}

/// A distribution of lengths, in tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Lengths {
    /// Always the same.
    Fixed(u32),
    /// Evenly from `min` to `max`.
    Uniform {
        /// Fewest tokens.
        min: u32,
        /// Most tokens.
        max: u32,
    },
    /// One of a list, all equally likely.
    OneOf(Vec<u32>),
}

/// A published trace file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceConfig {
    /// Its format.
    pub format: TraceFormat,
    /// Its path; relative ones start at the scenario file's folder.
    pub path: String,
    /// Only the first so many requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_max: Option<u32>,
    /// Arrival times are multiplied by `time_numerator / time_denominator`.
    #[serde(default = "one")]
    pub time_numerator: u32,
    /// See `time_numerator`.
    #[serde(default = "one")]
    pub time_denominator: u32,
}

/// The published formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceFormat {
    /// JSON lines as released with the Mooncake paper: timestamps in ms, an id for every 512
    /// tokens.
    Mooncake,
    /// CSV of the Azure LLM inference trace 2023: timestamps and token counts, no content.
    Azure,
}

/// Something that goes wrong from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// The client gives up.
    Abort {
        /// Which request.
        request: RequestId,
        /// When, counted from the moment of `when`.
        #[serde(default)]
        after: Tick,
        /// The moment from which `after` counts.
        #[serde(default)]
        when: Moment,
    },
    /// The message that a part has landed never comes.
    Lose {
        /// The request that the message is for.
        request: RequestId,
        /// Which of its messages, from 0, in order of landing.
        message: u32,
    },
    /// The message that a part has landed comes a second time, one message delay later.
    Double {
        /// The request that the message is for.
        request: RequestId,
        /// Which of its messages, from 0, in order of landing.
        message: u32,
    },
    /// Somebody flushes a server's prefix cache.
    Flush {
        /// Prefill or decode.
        side: Side,
        /// Which of them.
        #[serde(default)]
        server: u32,
        /// The moment.
        at: Tick,
    },
}

impl Fault {
    /// Its kind, as files spell it.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::Abort { .. } => "abort",
            Fault::Lose { .. } => "lose",
            Fault::Double { .. } => "double",
            Fault::Flush { .. } => "flush",
        }
    }

    /// The request that it is about, if about one.
    pub fn request_mut(&mut self) -> Option<&mut RequestId> {
        match self {
            Fault::Abort { request, .. }
            | Fault::Lose { request, .. }
            | Fault::Double { request, .. } => Some(request),
            Fault::Flush { .. } => None,
        }
    }
}

/// A moment of a request's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// The start of the run.
    #[default]
    Start,
    /// Its arrival.
    Arrived,
    /// Its decode pages have been reserved.
    Reserved,
    /// Its first prefill step has begun.
    Prefilling,
    /// Its first piece has been put on the link.
    Copying,
    /// Decode has activated it.
    Running,
    /// It has been retracted.
    Retracted,
}

/// What a run must show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// How many findings of each code; codes that are left out must be absent.
    #[serde(default)]
    pub findings: BTreeMap<Code, Bound>,
    /// The field for which validation must refuse the scenario, so that nothing is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// Code paths that must have been reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
}

/// An exact number, or `">=n"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "file::BoundText", into = "file::BoundText")]
pub enum Bound {
    /// This many, no more and no fewer.
    Exactly(u64),
    /// This many or more.
    AtLeast(u64),
}

impl Scenario {
    /// The variants of all switches: the profile's under the scenario's overrides.
    pub fn behaviours(&self) -> Behaviours {
        self.behaviour.over(self.profile.behaviours())
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn radix() -> String {
    "radix".to_owned()
}

fn lru() -> String {
    "lru".to_owned()
}

/// As both pools of the real disaggregated servers have it.
fn sorted() -> String {
    "sorted".to_owned()
}

fn first_come() -> String {
    validate::FIRST_COME.to_owned()
}

fn one() -> u32 {
    1
}

/// As the real system chooses on a large GPU.
fn chunk_tokens() -> u32 {
    8_192
}

fn reserved_tokens() -> u32 {
    512
}

fn prefill_step_ticks() -> u64 {
    5_000
}

fn token_ticks() -> u64 {
    20
}

fn decode_step_ticks() -> u64 {
    20_000
}

fn request_ticks() -> u64 {
    20
}

/// Thirty seconds, as release 0.5.23 has it.
fn release_timeout_ticks() -> u64 {
    30_000_000
}

#[cfg(test)]
pub(crate) mod tests;
