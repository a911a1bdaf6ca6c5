//! The line of a whole run as it was recorded, and the scenario that it is of.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::LineError;
use crate::behaviour::{AbortedChunk, Overrides};
use crate::engine::Profile;
use crate::prompt::ContentId;
use crate::scenario::validate::NO_CACHE;
use crate::scenario::{
    DecodeConfig, Fault, LayoutConfig, LinkConfig, Moment, PairingConfig, PrefillConfig,
    RequestSpec, RunSpec, Scenario, VERSION, WorkloadConfig,
};
use crate::units::{RequestId, Tick, Tokens};

/// A whole run, as recorded. `events` are read one by one, each by its kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    #[serde(rename = "format")]
    _format: Format,
    version: String,
    pub(super) kind: String,
    number: u64,
    scenario: Recorded,
    pub(super) events: Vec<Map<String, Value>>,
    /// What the recorder itself found wrong; in other words it is among the events.
    #[serde(rename = "problems")]
    _problems: Vec<Vec<String>>,
    /// What the engine raised, if it did.
    #[serde(rename = "crashed")]
    _crashed: Option<String>,
}

#[derive(Deserialize)]
enum Format {
    #[serde(rename = "sglang-world")]
    SglangWorld,
}

/// The configuration of the two schedulers, and their requests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    page_size: u32,
    ranks: u32,
    prefill_pages: u32,
    decode_pages: u32,
    chunk_tokens: u32,
    reserved_tokens: u32,
    decode_cache: bool,
    eviction: String,
    pack_tokens: u32,
    requests: Vec<RecordedRequest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedRequest {
    at: u64,
    output: u32,
    abort: Option<u64>,
    prompt: Vec<RecordedSegment>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedSegment {
    content: u64,
    offset: u32,
    len: u32,
}

impl Line {
    /// The scenario, with the profile of the recorded release and else this crate's defaults,
    /// which are those of the recorder.
    pub(super) fn scenario(&self) -> Result<Scenario, LineError> {
        let name = format!("sglang-{}", self.version);
        let profile = Profile::named(&name).ok_or_else(|| {
            let known = Profile::all().iter().filter_map(|one| one.name().strip_prefix("sglang-"));
            let known: Vec<&str> = known.collect();
            let wanted = format!("must be one of {}, got \"{}\"", known.join(", "), self.version);
            LineError::Malformed { path: "version".to_owned(), message: wanted }
        })?;
        let recorded = &self.scenario;
        let requests = recorded.requests.iter();
        Ok(Scenario {
            version: VERSION,
            title: format!("{} {} of the recorded runs", self.kind, self.number),
            seed: 0,
            profile,
            layout: LayoutConfig { page_size: recorded.page_size, ranks: recorded.ranks },
            prefill: PrefillConfig {
                eviction: recorded.eviction.clone(),
                chunk_tokens: recorded.chunk_tokens,
                ..PrefillConfig::of(recorded.prefill_pages)
            },
            decode: self.decode(),
            link: LinkConfig { pack_tokens: recorded.pack_tokens, ..LinkConfig::default() },
            pairing: PairingConfig::default(),
            // The recorder had a stand-in for the transfer manager, which sends what the manager
            // does not send once a request has failed.
            behaviour: Overrides {
                aborted_chunk: Some(AbortedChunk::SentIfLast),
                ..Overrides::default()
            },
            workload: WorkloadConfig::Requests(requests.clone().map(request).collect()),
            faults: (0..).map(RequestId).zip(requests).filter_map(abort).collect(),
            expect: None,
        })
    }

    fn decode(&self) -> DecodeConfig {
        let recorded = &self.scenario;
        let config = DecodeConfig {
            eviction: recorded.eviction.clone(),
            reserved_tokens: recorded.reserved_tokens,
            ..DecodeConfig::of(recorded.decode_pages)
        };
        match recorded.decode_cache {
            true => config,
            false => DecodeConfig { cache: NO_CACHE.to_owned(), ..config },
        }
    }
}

fn request(recorded: &RecordedRequest) -> RequestSpec {
    let run = |segment: &RecordedSegment| RunSpec {
        content: ContentId(segment.content),
        offset: Tokens(segment.offset),
        len: Tokens(segment.len),
    };
    RequestSpec {
        at: Tick(recorded.at),
        prompt: recorded.prompt.iter().map(run).collect(),
        output: Tokens(recorded.output),
        max_new_tokens: None,
        output_content: None,
        namespace: 0,
        priority: 0,
    }
}

fn abort((request, recorded): (RequestId, &RecordedRequest)) -> Option<Fault> {
    let after = Tick(recorded.abort?);
    Some(Fault::Abort { request, after, when: Moment::Start })
}
