//! The messages between `kvseam` and a driver: JSON lines, version [`PROTOCOL`].
//!
//! `kvseam` asks, the driver answers, one thing at a time. A [`Question`] has one key that names
//! it. `hello` is answered by a [`Hello`]; a scenario by its events in order and then `done`; calls
//! by one vector line as [`crate::conform::check_line`] reads it. Instead of any answer the driver
//! can say `refused` with the reason, after which it is asked nothing more.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::prompt::{ContentId, ContentRun};
use crate::scenario::validate::NO_CACHE;
use crate::scenario::{Fault, LinkConfig, Scenario};
use crate::workload::{Request, WorkloadError, requests};

/// The version of the protocol that this release speaks.
pub const PROTOCOL: u32 = 1;

/// What `kvseam` asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Who is there? The first question.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
    },
    /// Run this scenario.
    Scenario(Box<Asked>),
    /// Draw calls of one kind from a seed, make them, and say what was answered.
    Calls {
        /// What is called.
        kind: CallKind,
        /// The same seed draws the same calls.
        seed: u64,
    },
}

/// What single messages can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// The transfer planner, once.
    Plan,
    /// One allocator, several times.
    Alloc,
    /// One radix tree, several times.
    Radix,
}

/// A scenario as a driver gets it: in tokens, without a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Asked {
    page_size: u32,
    ranks: u32,
    prefill: AskedPrefill,
    decode: AskedDecode,
    link: AskedLink,
    requests: Vec<AskedRequest>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct AskedPrefill {
    pages: u32,
    cache: bool,
    eviction: String,
    admission: String,
    chunk_tokens: u32,
    step_ticks: u64,
    token_ticks: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct AskedDecode {
    pages: u32,
    cache: bool,
    eviction: String,
    reserved_tokens: u32,
    step_ticks: u64,
    request_ticks: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct AskedLink {
    copy_ticks: u64,
    bytes_per_tick: u64,
    token_bytes: u64,
    message_ticks: u64,
    pack_tokens: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct AskedRequest {
    at: u64,
    prompt: Vec<u64>,
    output: Vec<u64>,
    abort: Option<u64>,
    namespace: u32,
}

impl Asked {
    /// `scenario` in tokens: equal tokens are equal places of equal contents, numbered from 1.
    pub fn of(scenario: &Scenario) -> Result<Asked, WorkloadError> {
        let mut ids = TokenIds::default();
        let mut asked: Vec<AskedRequest> = requests(scenario, Path::new(""))?
            .iter()
            .map(|request| AskedRequest::of(request, &mut ids))
            .collect();
        for fault in &scenario.faults {
            match *fault {
                Fault::Abort { request, after, when: _ } => {
                    asked[request.index()].abort = Some(after.0);
                }
                Fault::Lose { .. } | Fault::Double { .. } | Fault::Flush { .. } => {}
            }
        }
        let (prefill, decode) = (&scenario.prefill, &scenario.decode);
        let LinkConfig { copy_ticks, bytes_per_tick, token_bytes, message_ticks, .. } =
            scenario.link;
        Ok(Asked {
            page_size: scenario.layout.page_size,
            ranks: scenario.layout.ranks,
            prefill: AskedPrefill {
                pages: prefill.pages,
                cache: prefill.cache != NO_CACHE,
                eviction: prefill.eviction.clone(),
                admission: prefill.admission.clone(),
                chunk_tokens: prefill.chunk_tokens,
                step_ticks: prefill.step_ticks,
                token_ticks: prefill.token_ticks,
            },
            decode: AskedDecode {
                pages: decode.pages,
                cache: decode.cache != NO_CACHE,
                eviction: decode.eviction.clone(),
                reserved_tokens: decode.reserved_tokens,
                step_ticks: decode.step_ticks,
                request_ticks: decode.request_ticks,
            },
            link: AskedLink {
                copy_ticks,
                bytes_per_tick,
                token_bytes,
                message_ticks,
                pack_tokens: scenario.link.pack_tokens,
            },
            requests: asked,
        })
    }
}

impl AskedRequest {
    fn of(request: &Request, ids: &mut TokenIds) -> AskedRequest {
        let output = ContentRun::whole(request.output_content, request.output);
        AskedRequest {
            at: request.at.0,
            prompt: request.runs.iter().flat_map(|run| ids.of(run)).collect(),
            output: ids.of(&output),
            abort: None,
            namespace: request.namespace,
        }
    }
}

/// The numbers of tokens, in the order in which they are first named.
#[derive(Default)]
struct TokenIds {
    known: BTreeMap<(ContentId, u32), u64>,
}

impl TokenIds {
    fn of(&mut self, run: &ContentRun) -> Vec<u64> {
        let places = run.offset.0..run.offset.0 + run.len.0;
        places
            .map(|place| {
                let next = self.known.len() as u64 + 1;
                *self.known.entry((run.content, place)).or_insert(next)
            })
            .collect()
    }
}

/// What a driver says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// Who it is.
    Hello(Box<Hello>),
    /// Something that happened in the scenario that it was asked to run, in the form of recorded
    /// runs.
    Event(Map<String, Value>),
    /// The scenario has come to its end.
    Done(Done),
    /// The calls with their answers, a vector line.
    Answer(Map<String, Value>),
    /// It cannot do what it is for.
    Refused(String),
}

impl Answer {
    /// Its kind, as it is spelled.
    pub fn kind(&self) -> &'static str {
        match self {
            Answer::Hello(_) => "hello",
            Answer::Event(_) => "event",
            Answer::Done(_) => "done",
            Answer::Answer(_) => "answer",
            Answer::Refused(_) => "refused",
        }
    }
}

/// How a scenario ended.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// What the engine raised, if it did.
    #[serde(deserialize_with = "Option::deserialize")]
    pub crashed: Option<String>,
}

/// A driver about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Must be [`PROTOCOL`].
    pub protocol: u32,
    /// The engine. With the release it names the profile.
    pub engine: String,
    /// Its release.
    pub version: String,
    /// What can be asked.
    pub can: Can,
    /// What is not the engine's own, a line each.
    pub stubs: Vec<String>,
    /// In what the driver has changed the engine, by name. Empty when it is to be judged.
    pub changed: Vec<String>,
}

impl Hello {
    /// The profile of the engine's release.
    pub fn profile(&self) -> String {
        format!("{}-{}", self.engine, self.version)
    }
}

/// What a driver can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Can {
    /// Kinds of calls.
    pub calls: Vec<CallKind>,
    /// Page sizes.
    pub page_sizes: Vec<u32>,
    /// Numbers of ranks.
    pub ranks: Vec<u32>,
    /// Caches, by the names of scenarios; `radix` at least.
    pub caches: Vec<String>,
    /// Orders of eviction; `lru` at least.
    pub evictions: Vec<String>,
    /// Orders of prefill's waiting; `first_come` at least.
    pub admissions: Vec<String>,
    /// Whether requests can be aborted.
    pub aborts: bool,
    /// Whether requests can be of different namespaces.
    pub namespaces: bool,
    /// Whether costs other than the default can be asked for.
    pub costs: bool,
}
