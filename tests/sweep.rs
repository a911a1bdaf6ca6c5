//! Sweeps as a user meets them: dry runs, expected rates, shards and their merging, exports, kills,
//! and the queries of the ledger's description.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use kvseam::sweep::ledger::Ledger;
use rusqlite::Connection;

mod common;
use common::{kvseam, scratch, text, with_input};

/// The base of the large plan, with an absolute path.
fn base() -> PathBuf {
    std::fs::canonicalize("sims/plans/million-scenario.toml").unwrap()
}

/// Four cells of so many seeds: one and two ranks, sound and padded up. Padded prefixes lose
/// positions on two ranks only.
fn plan(seeds: u64, more: &str) -> String {
    format!(
        "version = 1\ntitle = \"small\"\nbase = '{}'\nseeds = {{ first = 1, count = {seeds} }}\n{more}\n\
         [[axes]]\npath = \"layout.ranks\"\nrange = {{ from = 1, to = 2, step = 1 }}\n\
         [[axes]]\nname = \"behaviour\"\npoints = [\n  {{ name = \"sound\", set = {{}} }},\n  \
         {{ name = \"padded up\", set = {{ \"behaviour.decode_match_unit\" = \"physical_page\", \
         \"behaviour.decode_prefix_cut\" = \"padded_up\" }} }},\n]\n",
        base().display()
    )
}

/// The plan in a file of an empty folder.
fn written(name: &str, plan: &str) -> (PathBuf, PathBuf) {
    let folder = scratch(name);
    let path = folder.join("plan.toml");
    std::fs::write(&path, plan).unwrap();
    (folder, path)
}

fn sweep(plan: &Path, out: &Path, more: &[&str]) -> common::Ended {
    kvseam(&[&["sweep", text(plan), "--out", text(out)], more].concat())
}

fn export(ledger: &Path) -> String {
    kvseam(&["export", text(ledger), "--no-times"]).data(0)
}

#[test]
fn a_dry_run_prints_the_cells_and_the_time_and_makes_no_ledger() {
    let filter = "filters = [{ where = { \"layout.ranks\" = 2, behaviour = \"sound\" }, reason = \"not sold\" }]";
    let (folder, path) = written("dry-run", &plan(50, filter));
    let out = folder.join("ledger.sqlite");
    let told = sweep(&path, &out, &["--dry-run"]).data(0);
    assert!(told.contains("   2     0  layout.ranks = 2, behaviour = sound: not sold\n"), "{told}");
    assert!(told.contains("   3    50  layout.ranks = 2, behaviour = padded up\n"), "{told}");
    assert!(told.contains("\ncells      4, 1 left out\nruns       150\n"), "{told}");
    assert!(told.contains("measured   64 runs: ") && told.contains("\nestimated  "), "{told}");
    assert!(!out.exists());
    let half = sweep(&path, &out, &["--dry-run", "--shard", "1/2", "--format", "json"]).json(0);
    assert_eq!((&half["runs"], &half["cells"][2]["runs"]), (&75.into(), &0.into()));
    assert_eq!(half["cells"][2]["reason"], "not sold");
    assert!(half["seconds_estimated"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_plan_comes_from_standard_input_with_a_ledger_to_name() {
    let (folder, path) = written("stdin", &plan(5, ""));
    let (from_stdin, from_file) = (folder.join("stdin.sqlite"), folder.join("file.sqlite"));
    let message = with_input(&["sweep", "-"], &plan(5, "")).message();
    assert!(
        message.starts_with("error: --out: must be given with a plan on standard"),
        "{message}"
    );
    with_input(&["sweep", "-", "--out", text(&from_stdin)], &plan(5, "")).data(0);
    sweep(&path, &from_file, &[]).data(0);
    assert_eq!(export(&from_stdin), export(&from_file));
    let message = with_input(&["sweep", "-"], "version = 2").message();
    assert!(message.starts_with("error: stdin: title: must be given"), "{message}");
}

#[test]
fn ten_million_runs_are_the_most_that_need_not_be_asked_for_twice() {
    let (folder, path) = written("large", &plan(2_500_001, ""));
    let out = folder.join("ledger.sqlite");
    let message = sweep(&path, &out, &["--dry-run"]).message();
    assert!(message.contains("must be at most 10000000 runs"), "{message}");
    assert!(message.ends_with("say so with --over-ten-million\n"), "{message}");
    let told = sweep(&path, &out, &["--dry-run", "--over-ten-million"]).data(0);
    assert!(told.contains("runs       10,000,004\n"), "{told}");
}

#[test]
fn a_rate_beyond_its_bounds_ends_with_4_and_is_named() {
    let expect = |rate: &str| {
        plan(
            40,
            &format!(
                "expect = [{{ code = \"placed.missing\", where = {{ behaviour = \"sound\" }}, rate = \
                 {{ max = 0 }} }}, {{ code = \"placed.missing\", where = {{ behaviour = \"padded \
                 up\", \"layout.ranks\" = 2 }}, rate = {{ {rate} }} }}]"
            ),
        )
    };
    let (folder, path) = written("rates", &expect("min = 0.2"));
    sweep(&path, &folder.join("met.sqlite"), &[]).data(0);
    std::fs::write(&path, expect("max = 0.01")).unwrap();
    let out = folder.join("violated.sqlite");
    let told = sweep(&path, &out, &[]).data(4);
    let named = "expect[1]: placed.missing where behaviour = padded up, layout.ranks = 2: must be in 0..=0.01, got ";
    assert!(told.contains(named), "{told}");
    let told = sweep(&path, &out, &["--format", "json"]).json(4);
    assert!(told["rates_violated"][0].as_str().unwrap().starts_with(named), "{told}");
}

#[test]
fn budgets_end_a_sweep_before_its_last_run() {
    let (folder, path) = written("budgets", &plan(1_000, "budget = { runs = 10 }"));
    let few = sweep(&path, &folder.join("few.sqlite"), &["--format", "json"]).json(0);
    assert_eq!((&few["runs"], &few["runs_done"]), (&10.into(), &10.into()));
    std::fs::write(&path, plan(2_000_000, "budget = { seconds = 1 }")).unwrap();
    let timed = folder.join("timed.sqlite");
    let told = sweep(&path, &timed, &["--threads", "1"]).data(0);
    assert!(told.contains("time is up"), "{told}");
    // Seed by seed: all four cells have as many runs but for the last round.
    let db = Connection::open(&timed).unwrap();
    let sql = "SELECT min(n), max(n) FROM (SELECT count(*) AS n FROM runs GROUP BY cell)";
    let (min, max): (i64, i64) =
        db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert!(min > 0 && max - min <= 1, "{min} to {max}");
}

#[test]
fn shards_merge_into_the_ledger_of_one_sweep_and_are_drawn() {
    let (folder, path) = written("shards", &plan(10, "marks = [\"hit.decode\"]"));
    let alone = folder.join("alone.sqlite");
    sweep(&path, &alone, &[]).data(0);
    let shards = ["1/3", "2/3", "3/3"].map(|shard| {
        let out = folder.join(format!("{}.sqlite", &shard[..1]));
        let told = sweep(&path, &out, &["--shard", shard]).data(0);
        assert!(told.contains(&format!("shard   {shard}; marks and rates are judged")), "{told}");
        out
    });
    let merged = folder.join("merged.sqlite");
    let words = ["merge", text(&shards[2]), text(&shards[0]), "--out", text(&merged)];
    let told = kvseam(&words).data(4);
    assert!(told.contains("gap     shard 2/3 is missing with its 13 runs, the first is"), "{told}");
    let message = kvseam(&words).message();
    assert!(message.ends_with("merged.sqlite: must be a new file, got a ledger\n"), "{message}");
    std::fs::remove_file(&merged).unwrap();
    let words = [&words[..], &[text(&shards[1])]].concat();
    kvseam(&words).data(0);
    assert_eq!(export(&merged), export(&alone));
    let page = folder.join("page");
    kvseam(&["report", text(&merged), "--out", text(&page)]).data(0);
    kvseam(&["report", text(&alone), "--out", text(&folder.join("alone"))]).data(0);
    let html = |folder: &Path| std::fs::read_to_string(folder.join("index.html")).unwrap();
    assert_eq!(html(&page), html(&folder.join("alone")));
    let twice = folder.join("twice.sqlite");
    let words = ["merge", text(&merged), text(&shards[1]), "--out", text(&twice)];
    let message = kvseam(&words).message();
    assert!(message.contains("must hold no run of another ledger, got 13 that"), "{message}");
    assert!(!twice.exists());
}

#[test]
fn shards_that_do_not_fit_are_refused() {
    let (folder, path) = written("misfits", &plan(2, ""));
    let out = folder.join("ledger.sqlite");
    for (shard, reason) in
        [("4", "like 2/4"), ("0/4", "1..=4, got 0"), ("5/4", "1..=4, got 5"), ("1/9999", "1..=512")]
    {
        let message = sweep(&path, &out, &["--shard", shard]).message();
        assert!(message.contains(reason), "{shard}: {message}");
    }
    sweep(&path, &out, &["--shard", "1/2"]).data(0);
    let message = sweep(&path, &out, &["--shard", "2/2"]).message();
    assert!(message.contains("must be a ledger of shard 2/2, got one of 1/2"), "{message}");
    std::fs::write(&path, plan(3, "")).unwrap();
    let other = folder.join("other.sqlite");
    sweep(&path, &other, &["--shard", "2/2"]).data(0);
    let message =
        kvseam(&["merge", text(&out), text(&other), "--out", text(&folder.join("m"))]).message();
    assert!(message.contains("got one of another (its title is \"small\")"), "{message}");
    let message = kvseam(&["merge", text(&path), "--out", text(&folder.join("m"))]).message();
    assert!(message.contains("must be a ledger of kvseam, got another kind"), "{message}");
    kvseam(&["merge", "--out", text(&folder.join("m"))]).message();
}

#[test]
fn an_array_s_variables_say_which_shard_it_is() {
    let (folder, path) = written("array", &plan(4, ""));
    let run = |variables: &[(&str, &str)]| {
        let out = folder.join("ledger.sqlite");
        // Whichever ledger the case before left.
        drop(std::fs::remove_file(&out));
        let mut command = assert_cmd::Command::new(cargo_bin!("kvseam"));
        command.args(["sweep", text(&path), "--out", text(&out)]);
        let output = command.env_clear().envs(variables.iter().copied()).output();
        let output = output.unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let array = [("SLURM_ARRAY_TASK_MIN", "0"), ("SLURM_ARRAY_TASK_MAX", "3")];
    let task = [&array[..], &[("SLURM_ARRAY_TASK_ID", "2")]].concat();
    assert_eq!(run(&task), (0, "shard 3/4, as SLURM_ARRAY_TASK_ID says\n".to_owned()));
    let (code, message) = run(&[("JOB_COMPLETION_INDEX", "1")]);
    assert_eq!(code, 2);
    assert!(message.starts_with("error: KVSEAM_SHARDS: must be given"), "{message}");
    let pod = [("JOB_COMPLETION_INDEX", "1"), ("KVSEAM_SHARDS", "2")];
    assert_eq!(run(&pod), (0, "shard 2/2, as JOB_COMPLETION_INDEX says\n".to_owned()));
}

#[test]
fn an_export_goes_to_standard_output_or_a_file_that_can_be_written() {
    let (folder, path) = written("export", &plan(2, ""));
    let (out, file) = (folder.join("ledger.sqlite"), folder.join("runs.jsonl"));
    sweep(&path, &out, &[]).data(0);
    let words = ["export", text(&out), "--format", "jsonl"];
    let printed = kvseam(&words).data(0);
    assert_eq!(printed.lines().count(), 8);
    let to_file = |file: &Path| kvseam(&[&words[..], &["--out", text(file)]].concat());
    assert_eq!(to_file(&file).data(0), "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), printed);
    let message = to_file(&folder.join("no/such/folder")).message();
    assert!(message.contains("no/such/folder: No such file"), "{message}");
    let message = sweep(&path, &folder.join("no/ledger.sqlite"), &[]).message();
    assert!(message.contains("no/ledger.sqlite: No such file"), "{message}");
    let message = kvseam(&["merge", text(&out), "--out", text(&folder.join("no/m"))]).message();
    assert!(message.contains("no/m: No such file"), "{message}");
    assert!(kvseam(&["export", "no.sqlite"]).message().contains("no.sqlite: No such file"));
}

/// Whatever a moment it is killed at, a sweep's ledger is whole, and the rest is done by the next.
#[test]
fn a_sweep_that_was_killed_again_and_again_ends_as_an_undisturbed_one() {
    let (folder, path) = written("kills", &plan(2_500, ""));
    let (alone, killed) = (folder.join("alone.sqlite"), folder.join("killed.sqlite"));
    sweep(&path, &alone, &[]).data(0);
    let mut alive = 0;
    for kill in 0..8_u64 {
        let mut command = std::process::Command::new(cargo_bin!("kvseam"));
        command.args(["sweep", text(&path), "--shard", "1/1", "--out", text(&killed)]);
        let mut sweep = command.stdout(Stdio::null()).spawn().unwrap();
        // 0 to 0.8 s in no order; nothing waits for a batch, so any moment can be met.
        std::thread::sleep(Duration::from_millis(kill * 517 % 801));
        alive += u64::from(sweep.try_wait().unwrap().is_none());
        sweep.kill().unwrap();
        sweep.wait().unwrap();
    }
    assert!(alive > 0, "some of them were killed before their end");
    sweep(&path, &killed, &[]).data(0);
    let digest = |path: &Path| Ledger::open(path).unwrap().content_digest().unwrap();
    assert_eq!(digest(&killed), digest(&alone));
}

#[test]
#[cfg(unix)]
fn a_sweep_that_is_told_to_end_keeps_what_is_finished() {
    let (folder, path) = written("told", &plan(2_000_000, ""));
    let out = folder.join("ledger.sqlite");
    let mut command = std::process::Command::new(cargo_bin!("kvseam"));
    command.args(["sweep", text(&path), "--shard", "1/1", "--out", text(&out)]);
    let mut sweep = command.stdout(Stdio::piped()).spawn().unwrap();
    // The tables alone are smaller: a batch is there.
    while std::fs::metadata(&out).map_or(0, |file| file.len()) < 200_000 {
        assert!(sweep.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = sweep.id().to_string();
    std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    let ended = sweep.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    let told = String::from_utf8(ended.stdout).unwrap();
    assert!(told.contains("interrupted  the same command does the rest"), "{told}");
    assert!(!Ledger::open(&out).unwrap().done().unwrap().is_empty());
}

/// The queries of the ledger's description, each on a ledger of the plan above: two cells have
/// defects, those of padded prefixes on two ranks.
#[test]
fn the_queries_of_the_ledger_s_description_say_what_it_says() {
    let (folder, path) = written("queries", &plan(30, ""));
    let out = folder.join("ledger.sqlite");
    sweep(&path, &out, &[]).data(0);
    let readme = std::fs::read_to_string("reports/README.md").unwrap();
    let (_, section) = readme.split_once("\n## The ledger\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let queries: Vec<&str> =
        section.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(queries.len(), 3);
    let db = Connection::open(&out).unwrap();
    let rows = |sql: &str| -> Vec<Vec<String>> {
        let mut statement = db.prepare(sql).unwrap();
        let columns = statement.column_count();
        let read = |row: &rusqlite::Row| {
            let value = |column| {
                let value: rusqlite::types::Value = row.get(column)?;
                Ok(match value {
                    rusqlite::types::Value::Text(text) => text,
                    rusqlite::types::Value::Integer(number) => number.to_string(),
                    other => format!("{other:?}"),
                })
            };
            (0..columns).map(value).collect()
        };
        statement.query_map([], read).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let padded = "{\"behaviour\":\"padded up\",\"layout.ranks\":\"2\"}";
    let found = rows(queries[0]);
    let missing = found.iter().find(|row| row[1] == "placed.missing").unwrap();
    assert_eq!((missing[0].as_str(), missing[4].as_str()), (padded, "30"), "{found:?}");
    let first = rows(queries[1]);
    assert_eq!((first.len(), first[0][0].as_str()), (1, padded), "{first:?}");
    let seed: u64 = first[0][1].parse().unwrap();
    let before = format!(
        "SELECT count(*) FROM runs WHERE cell = 3 AND verdict = 'defect' AND seed < {seed}"
    );
    assert_eq!(rows(&before), [["0"]]);
    assert_eq!(rows(queries[2]).len(), 4);
    // Every table and column that is there is in the description, and the other way round.
    for row in rows("SELECT name FROM sqlite_schema WHERE type = 'table'") {
        assert!(section.contains(&format!("`{}`", row[0])), "{row:?}");
    }
    for table in ["versions", "plan", "cells", "runs", "codes", "findings"] {
        for row in rows(&format!("SELECT name FROM pragma_table_info('{table}')")) {
            assert!(section.contains(&format!("`{}`", row[0])), "{table}: {row:?}");
        }
    }
}
