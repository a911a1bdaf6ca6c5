//! The page of a night, in Markdown: new defects first.

use super::finds::Defect;
use super::state::State;
use super::target::Figures;
use super::{Night, SweepFigures};
use crate::finding::Named;
use crate::report::number::{count, percent};
use crate::stats::Rate;

/// The page; `before` is what the nights before have left.
pub fn page(night: &Night, before: &State) -> String {
    let mut text = format!("# Night {}\n\n{}\n", night.number, verdict(night));
    let new = night.new_defects();
    text += &section("New defects", &new.map(defect_line).collect::<Vec<_>>());
    let old = night.defects.iter().filter(|(_, is_new)| !is_new);
    text +=
        &section("Seen before", &old.map(|(defect, _)| defect_line(defect)).collect::<Vec<_>>());
    text += "\n## What ran\n\n";
    text += &format!("Budget {} s.\n", count(night.budget.as_secs()));
    for remark in &night.remarks {
        text += &format!("\n**{remark}**\n");
    }
    if let Some((files, failed)) = night.replayed {
        let (files, failed) = (count(files), count(failed));
        text +=
            &format!("\n{files} scenario files replayed, {failed} do not show what they say.\n");
    }
    text += &targets(night, before);
    text += &explained(night, before);
    if let Some(sweep) = &night.sweep {
        text += &rates(sweep, before);
    }
    text
}

fn verdict(night: &Night) -> String {
    let mut text = match night.new_defects().count() {
        0 => "No new defect.".to_owned(),
        1 => "**1 new defect.**".to_owned(),
        number => format!("**{number} new defects.**"),
    };
    if night.is_interrupted {
        text += " Interrupted: what is below is what was finished.";
    }
    text
}

fn section(title: &str, lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!("\n## {title}\n\n{}", lines.concat()) }
}

fn defect_line(defect: &Defect) -> String {
    match &defect.file {
        Some(file) => format!("- {}: `{}`\n", defect.title, file.display()),
        None => format!("- {}\n", defect.title),
    }
}

/// What the targets did; in brackets, how far they got the last time.
fn targets(night: &Night, before: &State) -> String {
    if night.targets.is_empty() {
        return String::new();
    }
    let mut text = "\nEdges and features are libFuzzer's `cov` and `ft`; in brackets, those of the last night.\n\n\
        | target | seconds | executions | a second | edges | features | corpus | crashes |\n\
        |---|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for (name, figures) in &night.targets {
        let Figures { executions, millis, coverage, crashes, corpus } = *figures;
        let last = before.targets.get(name).and_then(|figures| figures.coverage);
        let reached = |of: fn(crate::fuzzing::libfuzzer::Coverage) -> u64| {
            let now = coverage.map_or("–".to_owned(), |coverage| count(of(coverage)));
            last.map_or(now.clone(), |last| format!("{now} ({})", count(of(last))))
        };
        text += &format!(
            "| `{name}` | {} | {} | {} | {} | {} | {} | {} |\n",
            count(millis / 1_000),
            count(executions),
            count((executions * 1_000).checked_div(millis).unwrap_or_default()),
            reached(|coverage| coverage.edges),
            reached(|coverage| coverage.features),
            count(corpus),
            count(crashes)
        );
    }
    text
}

fn explained(night: &Night, before: &State) -> String {
    if night.explained.is_empty() {
        return String::new();
    }
    let mut lines = Vec::new();
    for (name, (explained, times)) in &night.explained {
        let kept = match &explained.kept {
            Some(path) => format!("is `{}`", path.display()),
            None if before.explained.contains(name) => "seen before".to_owned(),
            None => format!("new: `finds/{name}`"),
        };
        lines.push(format!("- {} × {}, {kept}\n", count(*times), explained.title));
    }
    let text = section("What the hunts found", &lines);
    text + "\nA hunt crashes by design. None of these is a defect: the lint objects to each.\n"
}

fn rates(sweep: &SweepFigures, before: &State) -> String {
    let (done, total) = (count(sweep.done), count(sweep.total));
    let mut text = format!("\n## Sweep\n\n{}: {done} of {total} runs.\n\n", sweep.title);
    text += "| code | runs with it | of | share | last night |\n|---|---:|---:|---:|---:|\n";
    for (code, &rate) in &sweep.rates {
        let last = before.rates.get(code.name()).map(|&(hits, chances)| Rate { hits, chances });
        // A sweep's runs are the same every night, so that any difference is one of the code.
        let last_share = match last {
            None => "–".to_owned(),
            Some(last) if last == rate => "the same".to_owned(),
            Some(last) => {
                format!("**{}** ({} of {})", share(last), count(last.hits), count(last.chances))
            }
        };
        text += &format!(
            "| `{}` | {} | {} | {} | {last_share} |\n",
            code.name(),
            count(rate.hits),
            count(rate.chances),
            share(rate)
        );
    }
    text
}

fn share(rate: Rate) -> String {
    rate.interval().map_or("not reached".to_owned(), |interval| percent(interval.share))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::finds::Explained;
    use super::*;
    use crate::finding::Code;
    use crate::fuzzing::libfuzzer::Coverage;

    #[test]
    fn new_defects_come_first_and_figures_stand_beside_those_of_the_last_night() {
        let defect = |title: &str| Defect {
            id: title.to_owned(),
            title: title.to_owned(),
            file: Some(PathBuf::from("new/x")),
            is_looked_at_every_night: false,
            is_kept: false,
        };
        let figures = |edges| Figures {
            executions: 9_000,
            millis: 3_000,
            coverage: Some(Coverage { edges, features: 7 }),
            crashes: 0,
            corpus: 12,
        };
        let explained = Explained { title: "reserve.short by x".to_owned(), kept: None };
        let rate = |hits| Rate { hits, chances: 50 };
        let mut night = Night {
            number: 1,
            defects: vec![(defect("old"), false), (defect("fresh"), true)],
            targets: vec![("radix".to_owned(), figures(40))],
            sweep: Some(SweepFigures {
                rates: [(Code::PlacedMissing, rate(5)), (Code::ReadFreed, rate(1))].into(),
                ..SweepFigures::default()
            }),
            explained: [("reserve.short-1.toml".to_owned(), (explained, 2))].into(),
            ..Night::default()
        };
        let mut before = State::default();
        before.add(&night);
        night.targets = vec![("radix".to_owned(), figures(45))];
        night.sweep.as_mut().unwrap().rates.insert(Code::ReadFreed, rate(2));

        let text = page(&night, &before);
        assert!(
            text.starts_with("# Night 1\n\n**1 new defect.**\n\n## New defects\n\n- fresh: "),
            "{text}"
        );
        let places = ["- fresh", "- old", "## What ran", "## What the hunts found", "## Sweep"];
        let places = places.map(|part| text.find(part).unwrap());
        assert!(places.is_sorted(), "{text}");
        assert!(
            text.contains("| `radix` | 3 | 9,000 | 3,000 | 45 (40) | 7 (7) | 12 | 0 |"),
            "{text}"
        );
        assert!(text.contains("- 2 × reserve.short by x, seen before"), "{text}");
        assert!(text.contains("| `placed.missing` | 5 | 50 | 10 % | the same |"), "{text}");
        assert!(text.contains("| `read.freed` | 2 | 50 | 4.0 % | **2.0 %** (1 of 50) |"), "{text}");
    }
}
