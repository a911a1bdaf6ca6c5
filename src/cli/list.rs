//! `kvseam list`: what there is to name in files.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};

use super::output::{Align, Format, FormatArgs, columns, print, print_json, severity};
use super::{CliError, Exit};
use crate::behaviour::{SWITCHES, SwitchInfo};
use crate::engine::Profile;
use crate::finding::{Code, Mark, Metric, Named};
use crate::scenario::TraceFormat;
use crate::world::Registry;

const EXAMPLES: &str = "\
Examples:
  kvseam list codes
  kvseam list behaviours --format json
  kvseam list profiles --diff sglang-0.5.20 sglang-0.5.23";

/// Lists what scenarios and plans can name, and what runs can leave.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct ListArgs {
    /// What to list.
    #[arg(value_enum)]
    kind: Kind,
    /// Of profiles, only the switches in which these two differ.
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    diff: Option<Vec<String>>,
    #[command(flatten)]
    output: FormatArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Switches and their variants, for `[behaviour]`.
    Behaviours,
    /// Caches, evictions, free-list orders and admissions.
    Policies,
    /// What can be found, and what it is counted against.
    Codes,
    /// Code paths that a run can reach, for `marks`.
    Marks,
    /// What a run counts.
    Metrics,
    /// Formats of published traces, for `[workload.trace]`.
    Traces,
    /// Engine releases, for `profile`.
    Profiles,
}

/// A list in its two forms: a table with these columns, or JSON objects with these keys.
struct Listing {
    columns: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

pub(super) fn run(args: &ListArgs) -> Result<Exit, CliError> {
    let listing = match args.kind {
        Kind::Profiles if args.diff.is_some() => difference(args.diff.as_deref())?,
        _ if args.diff.is_some() => {
            return Err(CliError::Input("--diff: must be with profiles".to_owned()));
        }
        Kind::Behaviours => behaviours(),
        Kind::Policies => policies(),
        Kind::Codes => codes(),
        Kind::Marks => named::<Mark>(),
        Kind::Metrics => named::<Metric>(),
        Kind::Traces => traces(),
        Kind::Profiles => profiles(),
    };
    match args.output.format {
        Format::Table => print(&listing.text())?,
        Format::Json => print_json(&listing.objects())?,
    }
    Ok(Exit::Clean)
}

impl Listing {
    fn text(mut self) -> String {
        let heads = self.columns.iter().map(|column| column.replace('_', " ")).collect();
        self.rows.insert(0, heads);
        columns(&vec![Align::Left; self.columns.len()], &self.rows)
    }

    fn objects(&self) -> Vec<BTreeMap<&str, &str>> {
        let mut objects = Vec::new();
        for row in &self.rows {
            let keys = self.columns.iter().copied();
            objects.push(keys.zip(row.iter().map(String::as_str)).collect());
        }
        objects
    }
}

fn behaviours() -> Listing {
    let mut rows = Vec::new();
    for switch in SWITCHES {
        for (place, variant) in switch.variants.iter().enumerate() {
            rows.push(vec![
                switch.name.to_owned(),
                variant.name.to_owned(),
                if place == 0 { "default" } else { "" }.to_owned(),
                variant.doc.trim().to_owned(),
                switch.acts_when.to_owned(),
            ]);
        }
    }
    Listing { columns: &["switch", "variant", "default", "what_it_does", "acts_when"], rows }
}

fn policies() -> Listing {
    let known = Registry::built_in().names();
    let kinds = [
        ("prefill.cache, decode.cache", known.caches),
        ("prefill.eviction, decode.eviction", known.evictions),
        ("prefill.free_order, decode.free_order", known.free_orders),
        ("prefill.admission", known.admissions),
    ];
    let rows = kinds
        .into_iter()
        .flat_map(|(field, names)| names.into_iter().map(move |name| vec![field.to_owned(), name]))
        .collect();
    Listing { columns: &["field", "name"], rows }
}

fn codes() -> Listing {
    let rows = Code::ALL
        .iter()
        .map(|&code| {
            let texts = [
                code.name(),
                severity(code),
                code.unit(),
                code.chance().name(),
                code.doc(),
                code.example(),
            ];
            texts.map(str::to_owned).to_vec()
        })
        .collect();
    Listing {
        columns: &["code", "severity", "unit", "counted_against", "meaning", "example"],
        rows,
    }
}

fn named<K: Named>() -> Listing {
    let rows = K::ALL.iter().map(|item| vec![item.name().to_owned(), item.doc().to_owned()]);
    Listing { columns: &["name", "meaning"], rows: rows.collect() }
}

fn traces() -> Listing {
    let row = |format: TraceFormat| match format {
        TraceFormat::Mooncake => [
            "mooncake",
            "JSON lines as released with the Mooncake paper: timestamps in ms, an id for every \
             512 tokens",
        ],
        TraceFormat::Azure => [
            "azure",
            "CSV of the Azure LLM inference trace 2023: timestamps and token counts, no content",
        ],
    };
    let rows = [TraceFormat::Mooncake, TraceFormat::Azure];
    let rows = rows.map(|format| row(format).map(str::to_owned).to_vec());
    Listing { columns: &["format", "meaning"], rows: rows.to_vec() }
}

fn profiles() -> Listing {
    let row = |profile: Profile| {
        let behaviours = profile.behaviours();
        let unusual = behaviours.unusual();
        let switches: Vec<String> =
            unusual.iter().map(|(switch, variant)| format!("{switch} = {variant}")).collect();
        let forbids = [
            (profile.forbids_striped_decode_cache(), "a decode cache over more than one rank"),
            (
                profile.forbids_chunks_inside_pages(),
                "chunk_tokens that is no multiple of page_size",
            ),
        ];
        let forbids: Vec<_> =
            forbids.iter().filter(|forbid| forbid.0).map(|forbid| forbid.1).collect();
        vec![profile.name().to_owned(), switches.join(", "), forbids.join(", ")]
    };
    let rows = Profile::all().iter().map(|&profile| row(profile)).collect();
    Listing { columns: &["profile", "switches_that_differ_from_sound", "forbids"], rows }
}

/// The switches in which two profiles differ.
fn difference(names: Option<&[String]>) -> Result<Listing, CliError> {
    let named = |name: &String| {
        let known = || Profile::all().iter().map(|profile| profile.name()).collect::<Vec<_>>();
        let unknown = || format!("--diff: must be of {}, got \"{name}\"", known().join(", "));
        Profile::named(name).ok_or_else(|| CliError::Input(unknown()))
    };
    let profiles = names.unwrap_or_default().iter().map(named).collect::<Result<Vec<_>, _>>()?;
    let variant = |profile: &Profile, switch: &'static SwitchInfo| {
        let behaviours = profile.behaviours();
        let unusual = behaviours.unusual();
        let own = unusual.iter().find(|(name, _)| *name == switch.name);
        own.map_or(switch.variants[0].name, |(_, variant)| variant).to_owned()
    };
    let row = |switch: &'static SwitchInfo| {
        let both: Vec<String> = profiles.iter().map(|one| variant(one, switch)).collect();
        (both[0] != both[1]).then(|| vec![switch.name.to_owned(), both[0].clone(), both[1].clone()])
    };
    let rows = SWITCHES.iter().filter_map(row).collect();
    Ok(Listing { columns: &["switch", "first", "second"], rows })
}
