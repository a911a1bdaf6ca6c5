//! `kvseam run`: one scenario, its verdict, findings and figures.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::output::{
    Align, Format, FormatArgs, Output, beside, columns, print, print_json, print_line,
    refuse_own_input, row, save_picture, severity, share,
};
use super::{CliError, Exit, input};
use crate::finding::{Code, Kept, Metric, Named, Run};
use crate::picture::Picture;
use crate::report::command::shell;
use crate::report::number::{count, percent};
use crate::scenario::summary::Summary;
use crate::scenario::{Fault, Scenario, WorkloadConfig};
use crate::stats::Interval;
use crate::witness::{All, Events, Pools, Trace};
use crate::workload::block_tokens;
use crate::world::Observer;

const EXAMPLES: &str = "\
Examples:
  kvseam run sims/scenarios/padded-prefix.toml
  kvseam run FILE --set layout.ranks=4 --set behaviour.decode_prefix_cut=padded_up
  kvseam run FILE --set workload.requests.0.output=9 --format json
  kvseam run FILE --trace                          a line for every event
  kvseam run FILE --trace --format json            a JSON object for every event, one a line
  kvseam run FILE --picture out.svg                the first wrong piece, and the pools over time
  generate | kvseam run -";

/// Runs one scenario: verdict, findings with evidence and a line that reproduces them, figures.
///
/// Exit code 0 without a defect, 3 with one, 5 if every request was refused.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct RunArgs {
    /// The scenario; `-` is standard input, and traces are then looked for in the current folder.
    file: PathBuf,
    /// Changes one field for this run; list indices are part of the path. Can be repeated.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Prints a line for every event before the answer. With `--format json` each is an object on a
    /// line of its own, with nothing shortened, and so is the answer, the last one;
    /// reports/README.md has their fields.
    #[arg(long)]
    trace: bool,
    /// Draws the run to this SVG file: the first refused or wrong piece, and both pools over time.
    #[arg(long, value_name = "FILE", value_parser = beside)]
    picture: Option<PathBuf>,
    #[command(flatten)]
    output: FormatArgs,
}

pub(super) fn run(args: &RunArgs) -> Result<Exit, CliError> {
    let source = input::scenario(&args.file, &args.set)?;
    if let Some(picture) = &args.picture {
        refuse_own_input(picture, &args.file)?;
    }
    let trace = args.trace.then_some(args.output.format);
    let run = match (trace, &args.picture) {
        (None, None) => source.run()?,
        (trace, picture) => look(&source, trace, picture.as_deref())?,
    };
    let reproduce = reproduce(&args.file, &args.set);
    let mut summary = Summary::new(&source.scenario, &run);
    match args.output.format {
        Format::Table => {
            let answer = Answer { scenario: &source.scenario, run: &run, summary, reproduce };
            print(&answer.text())?;
        }
        Format::Json => {
            summary.reproduce = Some(reproduce);
            if args.trace { print_line(&Last { summary })? } else { print_json(&summary)? }
        }
    }
    Ok(match run.findings.is_clean() {
        true if run.served_nothing() => Exit::NothingServed,
        true => Exit::Clean,
        false => Exit::Defects,
    })
}

/// The line behind the events: what is printed without a trace.
#[derive(Serialize)]
#[serde(tag = "event", rename = "summary")]
struct Last<'a> {
    #[serde(flatten)]
    summary: Summary<'a>,
}

/// Runs the scenario with somebody who looks on, and prints its events if a `trace` is wanted.
fn look(
    source: &input::Source,
    trace: Option<Format>,
    picture: Option<&Path>,
) -> Result<Run, CliError> {
    source.validate()?;
    let Scenario { title, prefill, decode, .. } = &source.scenario;
    let mut calls = source.calls_witness();
    let mut pools = Pools::new([(prefill.workers, prefill.pages), (decode.workers, decode.pages)]);
    let mut observers: Vec<&mut dyn Observer> = match picture {
        Some(_) => vec![&mut calls, &mut pools],
        None => Vec::new(),
    };
    let mut output = Output::open();
    let mut written = Ok(());
    let mut write = |line: &str| {
        if written.is_ok() {
            written = output.line(line);
        }
    };
    let run = match trace {
        Some(Format::Table) => {
            let mut trace = Trace::new(&mut write);
            trace.legend();
            observers.push(&mut trace);
            let run = source.watch(&mut All(observers))?;
            trace.close();
            write("");
            run
        }
        Some(Format::Json) => {
            let mut events = Events::new(&mut write);
            observers.push(&mut events);
            source.watch(&mut All(observers))?
        }
        None => source.watch(&mut All(observers))?,
    };
    written?;
    output.flush()?;
    if let Some(file) = picture {
        save_picture(file, &Picture::of_run(title, &calls, &pools, &run))?;
    }
    Ok(run)
}

/// The command that repeats the run.
fn reproduce(file: &Path, assignments: &[String]) -> String {
    let mut words = vec!["kvseam run".to_owned(), shell(&file.display().to_string())];
    words.extend(assignments.iter().map(|assignment| format!("--set {}", shell(assignment))));
    words.join(" ")
}

/// What is printed.
struct Answer<'a> {
    scenario: &'a Scenario,
    run: &'a Run,
    summary: Summary<'a>,
    reproduce: String,
}

impl Answer<'_> {
    fn text(&self) -> String {
        let codes = self.run.findings.iter().count();
        let found = match codes {
            0 => "no finding".to_owned(),
            1 => "findings of 1 code".to_owned(),
            more => format!("findings of {more} codes"),
        };
        let mut text =
            format!("{}\nverdict: {}, {found}\n", self.scenario.title, self.run.verdict());
        if codes > 0 {
            text += &format!("\n{}", self.findings());
            for (code, kept) in self.run.findings.iter() {
                text += &format!("\n{}", self.evidence(code, kept));
            }
        }
        text + "\n" + &self.figures()
    }

    fn findings(&self) -> String {
        let mut rows = vec![row(["code", "severity", "count", "of", "rate", "95 % interval"])];
        for (code, kept) in self.run.findings.iter() {
            let chances = self.run.chances.get(code.chance());
            let (rate, range) = match self.summary.interval(code, kept) {
                None if chances == 0 => ("not reached".to_owned(), String::new()),
                None => ("several each".to_owned(), String::new()),
                Some(Interval { low, share, high }) => {
                    (percent(share), format!("{} to {}", percent(low), percent(high)))
                }
            };
            rows.push(vec![
                code.name().to_owned(),
                severity(code).to_owned(),
                count(kept.count),
                format!("{} {}", count(chances), code.chance().name()),
                rate,
                range,
            ]);
        }
        use Align::{Left, Right};
        columns(&[Left, Left, Right, Left, Right, Left], &rows)
    }

    /// The first finding of a code, and how to see it again.
    fn evidence(&self, code: Code, kept: &Kept) -> String {
        let mut rows = Vec::new();
        if let Some(first) = kept.first.first() {
            let mut place = format!("tick {}", count(first.tick.0));
            if let Some(request) = first.request {
                place += &format!(", request {request}");
            }
            if let Some(rank) = first.rank {
                place += &format!(", rank {rank}");
            }
            rows.push(vec!["  first at".to_owned(), place]);
            rows.push(vec!["  expected".to_owned(), first.expected.clone()]);
            rows.push(vec!["  found".to_owned(), first.found.clone()]);
        }
        rows.push(vec!["  reproduce".to_owned(), self.reproduce.clone()]);
        format!("{}: {}\n{}", code.name(), code.doc(), columns(&[Align::Left, Align::Left], &rows))
    }

    fn figures(&self) -> String {
        let mut rows = vec![
            vec!["requests".to_owned(), self.requests()],
            vec!["prompt tokens".to_owned(), self.prompts()],
            vec!["prefill cache".to_owned(), self.prefill_cache()],
            vec!["decode cache".to_owned(), self.decode_cache()],
        ];
        if !self.run.decode_hit_lengths.is_empty() {
            rows.push(vec!["decode hits by length".to_owned(), self.hit_lengths()]);
        }
        rows.extend([
            vec!["sent".to_owned(), self.sent()],
            vec!["descriptors".to_owned(), self.descriptors()],
            vec!["retractions".to_owned(), self.metric(Metric::Retractions)],
            vec!["prefill busy".to_owned(), self.busy()],
            vec!["rows judged".to_owned(), self.metric(Metric::RowsJudged)],
            vec!["ended".to_owned(), format!("tick {}", count(self.run.ended.0))],
            vec!["digest".to_owned(), self.summary.digest()],
        ]);
        rows.extend(self.small_pool().map(|note| vec!["decode pool".to_owned(), note]));
        rows.extend(self.hidden_by_blocks().map(|note| vec!["trace".to_owned(), note]));
        for (path, fault) in self.summary.idle_faults() {
            rows.push(vec![
                "fault never struck".to_owned(),
                format!("{path}: {}", why_idle(fault)),
            ]);
        }
        columns(&[Align::Left, Align::Left], &rows)
    }

    /// How little a decode pool leaves to prompts of what it holds, where that is little.
    fn small_pool(&self) -> Option<String> {
        let config = &self.scenario.decode;
        let layout = &self.scenario.layout;
        let page = u64::from(layout.page_size) * u64::from(layout.ranks);
        let (pool, kept) = (u64::from(config.pages) * page, u64::from(config.reserved_tokens));
        let left = pool.saturating_sub(kept) / page * page;
        (pool < 4 * kept).then(|| {
            format!(
                "{} tokens, of which {} are kept back for each request (decode.reserved_tokens): no \
                 prompt longer than {} is let in",
                count(pool),
                count(kept),
                count(left)
            )
        })
    }

    /// What a trace cannot show whose blocks and virtual pages are multiples of each other.
    fn hidden_by_blocks(&self) -> Option<String> {
        let WorkloadConfig::Trace(trace) = &self.scenario.workload else { return None };
        let block = block_tokens(trace.format)?;
        let layout = &self.scenario.layout;
        let page = layout.page_size * layout.ranks;
        let hides = block.is_multiple_of(page) || page.is_multiple_of(block);
        (layout.ranks > 1 && hides).then(|| {
            format!(
                "its prompts share blocks of {block} tokens, and a virtual page has {page}: hardly a hit \
                 ends inside one, so that what goes wrong there hardly shows; other ranks or pages \
                 would show it"
            )
        })
    }

    fn metric(&self, metric: Metric) -> String {
        count(self.run.metrics.get(metric))
    }

    fn requests(&self) -> String {
        format!(
            "{}: {} finished, {} failed, {} aborted",
            self.metric(Metric::Requests),
            self.metric(Metric::Finished),
            self.metric(Metric::Failed),
            self.metric(Metric::Aborted)
        )
    }

    fn prompts(&self) -> String {
        let [prompt, computed] = [Metric::PromptTokens, Metric::ComputedTokens];
        format!("{}, of which {} computed", self.metric(prompt), self.metric(computed))
    }

    /// Tokens found in a cache, of all that were asked for.
    fn hit_rate(&self, hits: Metric, tokens: Metric) -> String {
        let metrics = &self.run.metrics;
        format!(
            "{} hits, {} tokens, {} of the prompts'",
            self.metric(hits),
            self.metric(tokens),
            share(metrics.get(tokens), metrics.get(Metric::PromptTokens))
        )
    }

    fn prefill_cache(&self) -> String {
        format!(
            "{}; {} pages evicted",
            self.hit_rate(Metric::PrefillHits, Metric::PrefillHitTokens),
            self.metric(Metric::EvictedPrefillPages)
        )
    }

    fn decode_cache(&self) -> String {
        format!(
            "{}; hits not on a virtual page: {}; {} virtual pages evicted",
            self.hit_rate(Metric::DecodeHits, Metric::DecodeHitTokens),
            self.metric(Metric::DecodeHitsUnaligned),
            self.metric(Metric::EvictedDecodePages)
        )
    }

    /// The most frequent lengths of decode hits, and the longest.
    fn hit_lengths(&self) -> String {
        /// Lengths that are listed on their own.
        const LISTED: usize = 4;
        let lengths = &self.run.decode_hit_lengths;
        let mut frequent: Vec<(u32, u64)> = lengths.iter().map(|(&len, &n)| (len, n)).collect();
        frequent.sort_by_key(|&(length, times)| (std::cmp::Reverse(times), length));
        let mut parts: Vec<String> = frequent
            .iter()
            .take(LISTED)
            .map(|&(length, times)| {
                format!("{} × {} tokens", count(times), count(u64::from(length)))
            })
            .collect();
        if let Some((&longest, _)) = lengths.last_key_value()
            && frequent.len() > LISTED
        {
            let others: u64 = frequent[LISTED..].iter().map(|&(_, times)| times).sum();
            let longest = count(u64::from(longest));
            parts.push(format!("{} of other lengths; longest {longest}", count(others)));
        }
        parts.join(", ")
    }

    fn sent(&self) -> String {
        format!(
            "{} tokens in {} pieces, {} copies, {} of them packed",
            self.metric(Metric::SentTokens),
            self.metric(Metric::Pieces),
            self.metric(Metric::Copies),
            self.metric(Metric::CopiesPacked)
        )
    }

    fn descriptors(&self) -> String {
        let metrics = &self.run.metrics;
        let tokens = metrics.get(Metric::SentTokens);
        if tokens == 0 {
            return "no token was sent".to_owned();
        }
        let rate = |metric| per_thousand(metrics.get(metric), tokens);
        format!(
            "{} per 1,000 tokens; {} with every copy packed, {} with none",
            rate(Metric::Descriptors),
            rate(Metric::DescriptorsPacked),
            rate(Metric::DescriptorsUnpacked)
        )
    }

    fn busy(&self) -> String {
        let workers = u64::from(self.scenario.prefill.workers);
        let time = workers.saturating_mul(self.run.ended.0);
        if time == 0 {
            return "no time passed".to_owned();
        }
        let all = share(self.run.metrics.get(Metric::PrefillBusyTicks), time);
        format!("{all} of the time of {workers} server{}", if workers == 1 { "" } else { "s" })
    }
}

/// Why a fault found nothing to go wrong.
fn why_idle(fault: &Fault) -> String {
    match fault {
        Fault::Abort { request, .. } => {
            format!("request {request} had ended or given up, or never came to that moment")
        }
        Fault::Lose { request, message } | Fault::Double { request, message } => {
            format!("request {request} sent no message {message}; they are numbered from 0")
        }
        Fault::Flush { .. } => "the run was cut short before".to_owned(),
    }
}

/// `part` for every thousand of `whole`, with one decimal.
fn per_thousand(part: u64, whole: u64) -> String {
    let tenths = (u128::from(part) * 10_000 + u128::from(whole) / 2) / u128::from(whole);
    let ones = u64::try_from(tenths / 10).expect("a share of a 64-bit count");
    format!("{}.{}", count(ones), tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reproducing_command_is_quoted_for_the_shell() {
        let command = reproduce(
            Path::new("my file.toml"),
            &["layout.ranks=4".to_owned(), "title=it's".to_owned()],
        );
        assert_eq!(
            command,
            r"kvseam run 'my file.toml' --set layout.ranks=4 --set 'title=it'\''s'"
        );
    }

    #[test]
    fn shares_of_a_thousand_are_rounded_to_one_decimal() {
        for (part, whole, text) in [(1, 3, "333.3"), (2, 3, "666.7"), (5, 2, "2,500.0")] {
            assert_eq!(per_thousand(part, whole), text);
        }
    }
}
