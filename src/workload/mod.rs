//! Requests out of a scenario: written out, drawn at random, or read from a published trace.
//!
//! Whatever the source, a *request* is an arrival, a prompt as runs of content and a number of
//! output tokens. Sources make contents of their own from [`ContentId::OWN`] on.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::limits;
use crate::prompt::{ContentId, ContentRun};
use crate::scenario::{RequestSpec, RunSpec, Scenario, TraceConfig, TraceFormat, WorkloadConfig};
use crate::units::{Tick, Tokens};

mod azure;
mod line;
mod mooncake;
mod synthetic;
mod trace;

/// One request, whichever source it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it arrives.
    pub at: Tick,
    /// Its prompt; no run is empty.
    pub runs: Vec<ContentRun>,
    /// Its output tokens, at least 1; the first comes from prefill.
    pub output: Tokens,
    /// The most output tokens that its client allows, at least `output`.
    pub max_new_tokens: Tokens,
    /// The content of its output.
    pub output_content: ContentId,
    /// Adapter or salt; requests of different namespaces share nothing.
    pub namespace: u32,
    /// Priority of its cached pages.
    pub priority: i64,
}

impl Request {
    /// Tokens of the prompt.
    pub fn prompt_len(&self) -> Tokens {
        self.runs.iter().map(|run| run.len).sum()
    }

    /// Its prompt and its output.
    pub fn all_runs(&self) -> impl Iterator<Item = ContentRun> {
        let output = ContentRun::whole(self.output_content, self.output);
        self.runs.iter().copied().chain([output])
    }
}

/// Why there are no requests.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// The trace file could not be opened or read.
    #[error("{}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// A line of the trace file is malformed.
    #[error("{}:{line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: u64,
        /// The field, what it must be, and what it is.
        reason: String,
    },
    /// The trace file holds no request.
    #[error("{}: must hold at least one request, got none", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The trace file holds too many requests.
    #[error(
        "{}: must hold at most {} requests, or workload.trace.requests_max must be given, got more",
        path.display(),
        limits::REQUESTS_MAX
    )]
    TooMany {
        /// The file.
        path: PathBuf,
    },
}

/// The requests of a validated scenario in order of arrival. The paths of traces start at
/// `base_dir`.
pub fn requests(scenario: &Scenario, base_dir: &Path) -> Result<Vec<Request>, WorkloadError> {
    match &scenario.workload {
        WorkloadConfig::Requests(specs) => Ok(written_out(specs)),
        WorkloadConfig::Synthetic(synthetic) => Ok(synthetic::draw(synthetic, scenario.seed)),
        WorkloadConfig::Trace(trace) => trace::read(trace, base_dir),
    }
}

/// The requests of the trace of a validated `config`, read from `text`; errors call it `name`.
pub fn trace_requests(
    config: &TraceConfig,
    name: &Path,
    text: impl BufRead,
) -> Result<Vec<Request>, WorkloadError> {
    trace::of_text(config, name.to_owned(), text)
}

/// Tokens of the blocks in which the requests of a format share content, if they share any: every
/// prefix that two of them share ends on a block.
pub fn block_tokens(format: TraceFormat) -> Option<u32> {
    match format {
        TraceFormat::Mooncake => Some(mooncake::BLOCK_TOKENS),
        TraceFormat::Azure => None,
    }
}

fn written_out(specs: &[RequestSpec]) -> Vec<Request> {
    let mut own = OwnContents::default();
    let run =
        |spec: &RunSpec| ContentRun { content: spec.content, offset: spec.offset, len: spec.len };
    specs
        .iter()
        .map(|spec| Request {
            at: spec.at,
            runs: spec.prompt.iter().map(run).collect(),
            output: spec.output,
            max_new_tokens: spec.max_new_tokens.unwrap_or(spec.output),
            output_content: spec.output_content.unwrap_or_else(|| own.next()),
            namespace: spec.namespace,
            priority: spec.priority,
        })
        .collect()
}

/// Contents that only one request has.
#[derive(Default)]
struct OwnContents {
    made: u64,
}

impl OwnContents {
    fn next(&mut self) -> ContentId {
        let content = ContentId(ContentId::OWN + self.made);
        self.made += 1;
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_written_out_keep_their_contents_and_get_outputs_of_their_own() {
        let spec = |output_content| RequestSpec {
            at: Tick(5),
            prompt: vec![RunSpec { content: ContentId(3), offset: Tokens(2), len: Tokens(9) }],
            output: Tokens(4),
            max_new_tokens: None,
            output_content,
            namespace: 1,
            priority: -2,
        };
        let requests = written_out(&[spec(None), spec(Some(ContentId(8))), spec(None)]);
        let outputs: Vec<_> = requests.iter().map(|request| request.output_content).collect();
        let own = |number| ContentId(ContentId::OWN + number);
        assert_eq!(outputs, [own(0), ContentId(8), own(1)]);
        assert_eq!(requests[0].prompt_len(), Tokens(9));
        assert_eq!(requests[0].runs[0].offset, Tokens(2));
    }
}
