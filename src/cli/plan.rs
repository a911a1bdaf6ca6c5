//! `kvseam plan`: the planner alone, one call from flags or many as JSON lines.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::Serialize;

use super::input::Lines;
use super::output::{
    Align, Format, FormatArgs, Output, beside, columns, print, print_json, row, save_picture,
};
use super::{CliError, Exit};
use crate::conform;
use crate::engine::{Revision, revisions};
use crate::limits;
use crate::picture::{Grid, Picture, PieceView, layout_words, piece_words};
use crate::planner::descriptors::DescriptorCount;
use crate::planner::{PlanInput, Planner, RawInput, Refusal, RowPairs, RowRun, RunPlan};
use crate::report::chart::Head;
use crate::report::number::count;
use crate::units::{Rank, Row};

const EXAMPLES: &str = "\
Examples:
  kvseam plan --page-size 2 --dcp-size 2 --src-page-offset 2 --num-kv-tokens 3 \\
              --src-pages 7,8 --dst-pages 5,6
  kvseam plan --page-size 4 --dcp-size 2 --num-kv-tokens 9 --src-pages 1,2,3 --dst-pages 5 \\
              --revision indexed
  kvseam plan --page-size 4 --dcp-size 2 --num-kv-tokens 9 --src-pages 1,2,3 --dst-pages 5 \\
              --picture out.svg
  kvseam plan --jsonl calls.jsonl --revision checked";

/// Plans one transfer piece from flags, or many from JSON lines.
///
/// Prints which source rows go to which destination rows on every rank, or the engine's refusal
/// word for word (exit code 3). JSON lines hold the engine's arguments, or whole lines of a planner
/// vector file; each is answered by one line, `{"ok":…}` or `{"error":…}`. A piece of more than
/// 8388608 tokens is an `InputError`.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct PlanArgs {
    /// Rows of a physical page, P.
    #[arg(long, required_unless_present = "jsonl")]
    page_size: Option<i64>,
    /// Decode context-parallel ranks, N.
    #[arg(long, required_unless_present = "jsonl")]
    dcp_size: Option<i64>,
    /// The rank that receives; all of them if left out.
    #[arg(long, allow_negative_numbers = true)]
    dcp_rank: Option<i64>,
    /// Source pages sent before this piece, counted from the decode prefix.
    #[arg(long, default_value_t, allow_negative_numbers = true)]
    src_page_offset: i64,
    /// Tokens that decode has cached, S.
    #[arg(long, default_value_t, allow_negative_numbers = true)]
    decode_prefix_len: i64,
    /// Tokens of the piece, up to 8388608; all that the source pages hold if left out.
    #[arg(long, allow_negative_numbers = true)]
    num_kv_tokens: Option<i64>,
    /// Physical pages of the piece on prefill.
    #[arg(long, value_name = "PAGE,…", required_unless_present = "jsonl")]
    src_pages: Option<PageList>,
    /// All virtual pages reserved on decode, from the decode prefix on.
    #[arg(long, value_name = "PAGE,…", required_unless_present = "jsonl")]
    dst_pages: Option<PageList>,
    /// Which revision of the planner answers.
    #[arg(long, default_value = "checked", value_parser = by_name())]
    revision: &'static Revision,
    /// Answers JSON lines of this file instead; `-`, the default, is standard input.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        default_missing_value = "-",
        conflicts_with_all = [
            "page_size", "dcp_size", "dcp_rank", "src_page_offset", "decode_prefix_len",
            "num_kv_tokens", "src_pages", "dst_pages", "format",
        ]
    )]
    jsonl: Option<PathBuf>,
    /// Draws the piece to this SVG file: source pages, ranks, destination pages.
    #[arg(long, value_name = "FILE", conflicts_with = "jsonl", value_parser = beside)]
    picture: Option<PathBuf>,
    #[command(flatten)]
    output: FormatArgs,
}

/// Page ids with commas between them, or nothing.
#[derive(Clone)]
struct PageList(Vec<i64>);

impl FromStr for PageList {
    type Err = String;

    fn from_str(text: &str) -> Result<PageList, String> {
        if text.trim().is_empty() {
            return Ok(PageList(Vec::new()));
        }
        let id = |word: &str| {
            word.trim().parse().map_err(|_| format!("must be page ids like 7,8, got \"{word}\""))
        };
        text.split(',').map(id).collect::<Result<_, _>>().map(PageList)
    }
}

/// Reads the name of a revision of any engine's planner.
fn by_name() -> impl TypedValueParser<Value = &'static Revision> {
    let value =
        |revision: &'static Revision| PossibleValue::new(revision.name.name()).help(revision.doc);
    PossibleValuesParser::new(revisions().map(value)).map(|name| {
        let mut known = revisions();
        known.find(|revision| revision.name.name() == name).expect("clap knows no other")
    })
}

pub(super) fn run(args: &PlanArgs) -> Result<Exit, CliError> {
    let planner = (args.revision.make)();
    match &args.jsonl {
        Some(file) => answer_lines(file, &*planner),
        None => answer_flags(args, &*planner),
    }
}

fn answer_lines(file: &Path, planner: &dyn Planner) -> Result<Exit, CliError> {
    let mut lines = Lines::open(file)?;
    let mut output = Output::open();
    let mut is_empty = true;
    while !output.is_closed()
        && let Some(line) = lines.next()?
    {
        is_empty = false;
        match conform::plan_line(line, planner) {
            Ok(answer) => output.line(&answer)?,
            Err(error) => {
                // The answers to earlier lines are written before the message, as they came.
                output.flush()?;
                return Err(lines.error(&error));
            }
        }
    }
    output.flush()?;
    if is_empty && !output.is_closed() {
        return Err(lines.empty("line"));
    }
    Ok(Exit::Clean)
}

fn answer_flags(args: &PlanArgs, planner: &dyn Planner) -> Result<Exit, CliError> {
    let given = "clap requires it without --jsonl";
    let pages = |list: &Option<PageList>| list.as_ref().expect(given).0.clone();
    let raw = RawInput {
        page_size: args.page_size.expect(given),
        dcp_size: args.dcp_size.expect(given),
        dcp_rank: args.dcp_rank.unwrap_or(0),
        src_page_offset: args.src_page_offset,
        decode_prefix_len: args.decode_prefix_len,
        num_kv_tokens: args.num_kv_tokens,
        src_pages: pages(&args.src_pages),
        dst_pages: pages(&args.dst_pages),
    };
    // Not left to the input's own check: where one rank is asked for, its layout may be wider.
    let all = i64::from(*limits::RANKS.start())..=i64::from(*limits::RANKS.end());
    if args.dcp_rank.is_none() && !all.contains(&raw.dcp_size) {
        let problem =
            format!("must be in {}..={} where all ranks are planned", all.start(), all.end());
        return Err(CliError::Input(format!("dcp_size: {problem}, got {}", raw.dcp_size)));
    }
    let input = PlanInput::try_from(&raw).map_err(CliError::input)?;
    let ranks = match args.dcp_rank {
        Some(_) => vec![input.rank()],
        None => (0..input.layout().ranks()).map(Rank).collect(),
    };
    let mut answers = Vec::new();
    for rank in ranks {
        let input = input.for_rank(rank).map_err(CliError::input)?;
        answers.push(Answer { rank, outcome: laid_out(&input, planner) });
    }
    if let Some(file) = &args.picture {
        draw(file, &input, &answers)?;
    }
    match args.output.format {
        Format::Table => print(&text(&answers))?,
        Format::Json => print_json(&answers.iter().map(Answer::json).collect::<Vec<_>>())?,
    }
    let is_refused = answers.iter().any(|answer| answer.outcome.is_err());
    Ok(if is_refused { Exit::Defects } else { Exit::Clean })
}

/// Draws the piece for the ranks that were asked.
fn draw(file: &Path, input: &PlanInput<'_>, answers: &[Answer]) -> Result<(), CliError> {
    let asked: Vec<Rank> = answers.iter().map(|answer| answer.rank).collect();
    let refusals = || answers.iter().filter_map(|answer| answer.outcome.as_ref().err());
    let refused: Vec<Rank> =
        answers.iter().filter(|answer| answer.outcome.is_err()).map(|answer| answer.rank).collect();
    let mut subtitle = format!("{}, {}.", layout_words(input.layout()), piece_words(input.piece()));
    if let Some(refusal) = refusals().next() {
        subtitle += &format!(" Refused: {refusal}");
    }
    let view = PieceView {
        layout: input.layout(),
        piece: input.piece(),
        source_pages: input.src_pages(),
        target_pages: input.dst_pages(),
        asked: &asked,
        refused: &refused,
    };
    let head = Head { title: "One piece, laid out on the decode ranks".to_owned(), subtitle };
    save_picture(file, &Picture { grid: Some(Grid::of_piece(&view, head)), timeline: None })
}

/// One rank's share and the draft rows, if the revision lays them out.
type LaidOut = (RunPlan, Option<RunPlan>);

fn laid_out(input: &PlanInput<'_>, planner: &dyn Planner) -> Result<LaidOut, Refusal> {
    Ok((planner.plan_runs(input)?, planner.draft_runs(input)?))
}

/// What the planner says for one rank.
struct Answer {
    rank: Rank,
    outcome: Result<LaidOut, Refusal>,
}

#[derive(Serialize)]
struct AnswerJson {
    rank: Rank,
    #[serde(flatten)]
    outcome: OutcomeJson,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum OutcomeJson {
    Ok {
        src: Vec<Row>,
        dst: Vec<Row>,
        descriptors: u64,
        descriptors_packed: u64,
        #[serde(flatten)]
        draft: Option<DraftJson>,
    },
    Error {
        r#type: &'static str,
        message: String,
    },
}

#[derive(Serialize)]
struct DraftJson {
    draft_src: Vec<Row>,
    draft_dst: Vec<Row>,
}

impl Answer {
    fn json(&self) -> AnswerJson {
        let outcome = match &self.outcome {
            Err(refusal) => {
                OutcomeJson::Error { r#type: refusal.exception(), message: refusal.to_string() }
            }
            Ok((target, draft)) => {
                let RowPairs { src, dst } = target.expand();
                let DescriptorCount { unpacked, packed } = DescriptorCount::of_runs(target);
                let draft = draft.as_ref().map(RunPlan::expand);
                OutcomeJson::Ok {
                    src,
                    dst,
                    descriptors: unpacked,
                    descriptors_packed: packed,
                    draft: draft.map(|rows| DraftJson { draft_src: rows.src, draft_dst: rows.dst }),
                }
            }
        };
        AnswerJson { rank: self.rank, outcome }
    }
}

/// A line for each run of each rank, then the figures or the refusal of each rank.
fn text(answers: &[Answer]) -> String {
    let mut rows = vec![row(["rank", "rows of", "tokens", "source rows", "destination rows"])];
    let mut said = String::new();
    for Answer { rank, outcome } in answers {
        match outcome {
            Err(refusal) => {
                said += &format!("rank {rank}: {}: {refusal}\n", refusal.exception());
            }
            Ok((target, draft)) => {
                list(&mut rows, *rank, "target", target);
                if let Some(draft) = draft {
                    list(&mut rows, *rank, "draft", draft);
                }
                let DescriptorCount { unpacked, packed } = DescriptorCount::of_runs(target);
                said += &format!(
                    "rank {rank}: {} tokens, {} descriptors, {} when packed\n",
                    count(target.tokens()),
                    count(unpacked),
                    count(packed)
                );
            }
        }
    }
    if rows.len() == 1 {
        return said;
    }
    use Align::{Left, Right};
    format!("{}\n{said}", columns(&[Right, Left, Right, Left, Left], &rows))
}

fn list(rows: &mut Vec<Vec<String>>, rank: Rank, of: &str, plan: &RunPlan) {
    for run in &plan.runs {
        let (src, dst) = ends(run);
        rows.push(vec![rank.to_string(), of.to_owned(), run.len.to_string(), src, dst]);
    }
}

/// The source and the destination rows of a run: all of a short one, else the first and the last.
fn ends(run: &RowRun) -> (String, String) {
    /// Rows that are written out.
    const LISTED: u32 = 4;
    let written = |pick: fn((Row, Row)) -> Row| {
        let row = |at| pick(run.at(at)).to_string();
        if run.len <= LISTED {
            (0..run.len).map(row).collect::<Vec<String>>().join(", ")
        } else {
            format!("{}, {}, …, {}", row(0), row(1), row(run.len - 1))
        }
    };
    (written(|(src, _)| src), written(|(_, dst)| dst))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_pages_can_be_empty_and_must_be_numbers() {
        assert_eq!("7, 8".parse::<PageList>().unwrap().0, [7, 8]);
        assert_eq!("".parse::<PageList>().unwrap().0, [0; 0]);
        let error = "7,x".parse::<PageList>().err().unwrap();
        assert_eq!(error, "must be page ids like 7,8, got \"x\"");
    }

    #[test]
    fn long_runs_are_written_by_their_ends() {
        let run = |len| RowRun { src: Row(10), src_step: 3, dst: Row(5), len };
        assert_eq!(ends(&run(3)), ("10, 13, 16".to_owned(), "5, 6, 7".to_owned()));
        assert_eq!(ends(&run(6)), ("10, 13, …, 25".to_owned(), "5, 6, …, 10".to_owned()));
    }
}
