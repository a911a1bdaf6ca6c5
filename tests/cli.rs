//! The command as a user meets it: exit codes, what is printed where, and files.

use std::path::Path;

use assert_cmd::Command;
use kvseam::sweep::ledger::Ledger;
use serde_json::Value;

mod common;
use common::{kvseam, scratch, text, with_input};

const BASELINE: &str = "sims/scenarios/sound-baseline.toml";
const PADDED: &str = "sims/scenarios/padded-prefix.toml";
const PLAN_VECTORS: &str = "tests/vectors/plan.jsonl";

#[test]
fn a_clean_run_ends_with_0_and_a_defect_with_3() {
    assert!(kvseam(&["run", BASELINE]).data(0).contains("verdict: clean"));
    let found = kvseam(&["run", PADDED]).data(3);
    assert!(found.contains("verdict: defect") && found.contains("placed.missing"), "{found}");
    let from_stdin = std::fs::read_to_string(PADDED).unwrap();
    let again = with_input(&["run", "-", "--format", "json"], &from_stdin).json(3);
    let digest = again["digest"].as_str().unwrap();
    assert!(found.contains(digest), "{found}\n{digest}");
}

#[test]
fn a_fault_that_never_struck_is_named() {
    let words = [
        "run",
        BASELINE,
        "--set",
        "faults=[{lose={request=0,message=6}},{flush={side='decode',at=1}}]",
    ];
    let found = kvseam(&words).data(0);
    let expected = "fault never struck     faults.0.lose: request 0 sent no message 6";
    assert!(found.contains(expected), "{found}");
    let found = kvseam(&[&words[..], &["--format", "json"]].concat()).json(0);
    assert_eq!(found["faults_never_struck"].to_string(), "[\"faults.0.lose\"]");
    assert_eq!(
        kvseam(&["run", BASELINE, "--format", "json"]).json(0)["faults_never_struck"].to_string(),
        "[]"
    );
}

#[test]
fn an_expected_refusal_is_no_defect() {
    let found = kvseam(&["run", "sims/scenarios/too-large.toml"]).data(0);
    assert!(found.contains("refused.capacity"), "{found}");
}

#[test]
fn the_line_of_a_finding_reproduces_the_run() {
    let words = ["run", PADDED, "--set", "title=it's \"one\" of two", "--set", "layout.ranks=2"];
    let found = kvseam(&[&words[..], &["--format", "json"]].concat()).json(3);
    let line = found["findings"][0]["reproduce"].as_str().unwrap().to_owned();
    let binary = assert_cmd::cargo::cargo_bin!("kvseam");
    let line = line.replacen("kvseam", text(binary), 1) + " --format json";
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), found);
}

#[test]
fn a_bad_field_is_refused_with_file_path_and_range() {
    let message = kvseam(&["run", BASELINE, "--set", "layout.ranks=0"]).message();
    let expected = format!("error: {BASELINE}: layout.ranks: must be ");
    assert!(message.starts_with(&expected) && message.contains("got 0"), "{message}");
    let message = kvseam(&["lint", BASELINE, "--set", "layout.rank=2"]).message();
    assert!(message.starts_with(&format!("error: {BASELINE}: layout.rank: must be ")), "{message}");
    assert!(kvseam(&["run", "no/such.toml"]).message().starts_with("error: no/such.toml: "));
    kvseam(&["walk"]).message();
}

/// Two ranks, the second chunk of seven tokens: H01 of the hazards, with the whole list and sliced.
#[test]
fn a_plan_is_printed_for_every_rank_and_a_refusal_word_for_word() {
    let words = "plan --page-size 2 --dcp-size 2 --src-page-offset 2 --num-kv-tokens 3 \
                 --src-pages 7,8 --format json --dst-pages";
    let words: Vec<&str> = words.split_whitespace().collect();
    let plan = kvseam(&[&words[..], &["5,6"]].concat()).json(0);
    let rows = |rank: usize, side: &str| plan[rank]["ok"][side].to_string();
    assert_eq!((rows(0, "src"), rows(0, "dst")), ("[14,16]".to_owned(), "[12,13]".to_owned()));
    assert_eq!((rows(1, "src"), rows(1, "dst")), ("[15]".to_owned(), "[12]".to_owned()));
    let refused = kvseam(&[&words[..], &[""]].concat()).json(3);
    for rank in 0..2 {
        assert_eq!(
            refused[rank]["error"]["message"],
            format!(
                "Insufficient destination DCP pages: required=2, provided=0, src_page_offset=2, \
                 dcp_rank={rank}"
            )
        );
    }
    let message = kvseam(&[&words[..], &["5,5"]].concat()).message();
    assert!(message.starts_with("error: dst_pages: every page must occur once"), "{message}");
    let wide = |ranks| {
        let words = ["plan", "--page-size", "4", "--dcp-size", ranks, "--src-pages", "1"];
        kvseam(&[&words[..], &["--dst-pages", "1"]].concat()).message()
    };
    // The bound of the first answer is the one that holds.
    for ranks in ["9999999999", "257"] {
        let expected = format!("must be in 1..=256 where all ranks are planned, got {ranks}\n");
        assert!(wide(ranks).ends_with(&expected), "{}", wide(ranks));
    }
}

#[test]
fn recorded_calls_are_answered_as_recorded_line_by_line() {
    let vectors = std::fs::read_to_string(PLAN_VECTORS).unwrap();
    let recorded: Vec<Value> =
        vectors.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let inputs: Vec<String> = recorded.iter().map(|line| line["input"].to_string()).collect();
    for (revision, name) in [("checked", "sglang_0_5_17"), ("indexed", "sglang_0_5_23")] {
        let expected: Vec<&Value> = recorded.iter().map(|line| &line[name]).collect();
        let words = ["plan", "--revision", revision, "--jsonl"];
        for answers in [
            kvseam(&[&words[..], &[PLAN_VECTORS]].concat()),
            with_input(&words, &inputs.join("\n")),
        ] {
            let answers: Vec<Value> =
                answers.data(0).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(answers.iter().collect::<Vec<_>>(), expected);
        }
    }
}

#[test]
fn a_malformed_call_is_named_after_the_answers_before_it() {
    let vectors = std::fs::read_to_string(PLAN_VECTORS).unwrap();
    let first = vectors.lines().next().unwrap();
    let ended = with_input(&["plan", "--jsonl"], &format!("{first}\n{{\"page_size\": true}}\n"));
    assert_eq!((ended.code, ended.stdout.lines().count()), (2, 1));
    assert!(ended.stderr.starts_with("error: stdin:2: page_size: "), "{}", ended.stderr);
}

#[test]
fn recorded_answers_conform_and_a_changed_one_does_not() {
    for (format, file) in [
        ("plan", PLAN_VECTORS),
        ("alloc", "tests/vectors/alloc.jsonl"),
        ("radix", "tests/vectors/radix-unified.jsonl"),
        ("run", "tests/vectors/world-sglang.jsonl"),
    ] {
        let lines = std::fs::read_to_string(file).unwrap().lines().count();
        let passed = kvseam(&["conform", file, "--format", "json"]).json(0);
        assert_eq!(passed["formats"][format]["passed"], lines);
        let trees = passed.get("trees").map_or(0, |trees| trees.as_array().unwrap().len());
        assert_eq!(trees, usize::from(format == "radix"), "{passed}");
    }
    let vectors = std::fs::read_to_string("tests/vectors/radix.jsonl").unwrap();
    let mut line: Value = serde_json::from_str(vectors.lines().next().unwrap()).unwrap();
    let evictable = line["ops"][0]["evictable"].as_u64().unwrap();
    line["ops"][0]["evictable"] = (evictable + 1).into();
    let failed = with_input(&["conform", "-"], &line.to_string()).data(4);
    let expected =
        format!("line 1: line.ops[0].evictable: recorded {}, model {evictable}", evictable + 1);
    assert!(failed.contains(&expected), "{failed}");
    let message = with_input(&["conform", "-"], "{\"ops\": []}").message();
    assert!(message.starts_with("error: stdin:1: "), "{message}");
    assert!(with_input(&["conform", "-"], "").message().contains("at least one line"));
}

#[test]
fn scenarios_of_the_project_show_what_they_say() {
    kvseam(&["replay", "sims/scenarios"]).data(0);
}

#[test]
fn an_expectation_that_is_not_met_ends_with_4_and_a_missing_one_with_2() {
    let folder = scratch("replay");
    let scenario = std::fs::read_to_string(PADDED).unwrap();
    let wrong = folder.join("wrong.toml");
    let expects = "\"placed.missing\" = 1";
    std::fs::write(&wrong, scenario.replace(expects, "\"placed.missing\" = 7")).unwrap();
    let failed = kvseam(&["replay", text(&folder)]).data(4);
    assert!(failed.contains("placed.missing: expected 7, found 1"), "{failed}");
    let other = "invalid = \"layout.ranks\"\nfindings = {}\n";
    let (before, _) = scenario.split_once("[expect]").unwrap();
    let refused = before.replace("[layout]\n", "[layout]\npage_size = 0 # ");
    std::fs::write(&wrong, format!("{refused}[expect]\n{other}")).unwrap();
    let failed = kvseam(&["replay", text(&wrong)]).data(4);
    let both =
        "layout.ranks: expected to be refused, another field was: layout.page_size: must be 1";
    assert!(failed.contains(both), "{failed}");
    let (without, _) = scenario.split_once("[expect]").unwrap();
    std::fs::write(&wrong, without).unwrap();
    let ended = kvseam(&["replay", text(&wrong)]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("wrong.toml: expect: must be given"), "{}", ended.stderr);
}

#[test]
fn lint_ends_with_0_where_it_has_no_objection_and_with_3_where_it_has() {
    assert_eq!(kvseam(&["lint", BASELINE, "--format", "json"]).json(0)["sound"], true);
    let objections = kvseam(&["lint", PADDED]).data(3);
    assert!(objections.contains("decode_prefix_cut  padded_up"), "{objections}");
}

#[test]
fn every_list_is_printed_and_every_code_explained() {
    for kind in ["behaviours", "policies", "codes", "marks", "metrics", "traces", "profiles"] {
        let rows = kvseam(&["list", kind, "--format", "json"]).json(0);
        let lines = kvseam(&["list", kind]).data(0).lines().count();
        assert_eq!(rows.as_array().unwrap().len() + 1, lines, "{kind}");
    }
    let explained = kvseam(&["explain", "reserve.short"]).data(0);
    assert!(explained.contains("decode_reservation = \"floor\""), "{explained}");
    assert!(kvseam(&["explain", "reserve"]).message().contains("reserve.short"));
}

#[test]
fn a_sweep_fills_the_same_ledger_on_one_and_two_threads_and_is_drawn() {
    let folder = scratch("sweep");
    let base = std::fs::canonicalize(PADDED).unwrap();
    let plan = format!(
        "version = 1\ntitle = \"small\"\nbase = '{}'\nseeds = {{ first = 1, count = 2 }}\n\
         marks = [\"hit.unaligned\"]\n\
         [[axes]]\npath = \"layout.ranks\"\nvalues = [1, 4]\n\
         [[axes]]\npath = \"layout.page_size\"\nvalues = [8, 16]\n",
        base.display()
    );
    let path = folder.join("small.toml");
    std::fs::write(&path, &plan).unwrap();
    let digests = ["1", "2"].map(|threads| {
        let ledger = folder.join(format!("{threads}.sqlite"));
        let words = ["sweep", text(&path), "--out", text(&ledger), "--threads", threads];
        let done = kvseam(&[&words[..], &["--format", "json"]].concat()).json(0);
        assert_eq!((&done["runs_done"], &done["runs_failed"]), (&8.into(), &0.into()));
        Ledger::open(&ledger).unwrap().content_digest().unwrap()
    });
    assert_eq!(digests[0], digests[1]);
    let ledger = folder.join("1.sqlite");
    let page = folder.join("page");
    let words = ["report", text(&ledger), "--out", text(&page)];
    assert_eq!(kvseam(&words).data(0).trim_end(), text(&page.join("index.html")));
    let message = kvseam(&[&words[..], &["--axes", "layout.ranks,colour"]].concat()).message();
    assert!(message.contains("got \"colour\""), "{message}");
    let again = folder.join("2.sqlite");
    let both = folder.join("both");
    let words = ["report", text(&ledger), text(&again), "--out", text(&both)];
    kvseam(&words).data(0);
    assert!(both.join("small-1-summary.csv").is_file());
    let words = ["report", text(&ledger), "--against", text(&again), "--out", text(&page)];
    let compared = kvseam(&words);
    assert_eq!((compared.code, compared.stdout.trim_end()), (0, text(&page.join("index.html"))));
    assert!(compared.stderr.contains("4 cells are in both, 4 of them with"), "{}", compared.stderr);
    assert!(page.join("news.csv").is_file());
    std::fs::write(&path, plan.replace("hit.unaligned", "retract")).unwrap();
    let other = folder.join("other.sqlite");
    let unmet = kvseam(&["sweep", text(&path), "--out", text(&other)]).data(4);
    assert!(unmet.contains("marks never reached"), "{unmet}");
}

#[test]
fn a_minimised_scenario_shows_the_finding_and_goes_to_standard_output_or_a_file() {
    let folder = scratch("minimize");
    let small = folder.join("small.toml");
    let words = ["minimize", PADDED, "--code", "placed.missing"];
    let printed = kvseam(&words);
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    assert!(printed.stderr.contains("before  3 requests, 506 tokens"), "{}", printed.stderr);
    let written = kvseam(&[&words[..], &["--out", text(&small)]].concat());
    assert_eq!((written.code, written.stdout.as_str()), (0, ""));
    assert_eq!(std::fs::read_to_string(&small).unwrap(), printed.stdout);
    kvseam(&["replay", text(&small)]).data(0);
    let cut_short = kvseam(&[&words[..], &["--runs", "3"]].concat());
    assert!(cut_short.stderr.contains("all runs used up"), "{}", cut_short.stderr);
    // Three runs: each is of another scenario, or the second of one that has the finding.
    let number = |mark: &str| -> u64 {
        let (_, rest) = cut_short.stderr.split_once(mark).unwrap();
        rest.split_whitespace().next().unwrap().parse().unwrap()
    };
    assert!((3..=4).contains(&(number("tried ") + number("was run; "))), "{}", cut_short.stderr);
    let sound = kvseam(&["minimize", BASELINE]).message();
    assert!(sound.contains("must have a defect, got none"), "{sound}");
}

#[test]
fn a_crash_becomes_one_regression_file_that_replays() {
    let folder = scratch("import");
    let artifact = folder.join("crash");
    let regressions = folder.join("regressions");
    let import = ["import", "hunt_placement", text(&artifact), "--folder", text(&regressions)];
    // Bytes without a pattern, as a fuzzer's are, until some of them crash the target.
    let bytes = |seed: u32| (1..600_u32).map(move |i| ((i * i * seed) >> 7) as u8);
    std::fs::write(&artifact, "").unwrap();
    let nothing = kvseam(&import).message();
    assert!(nothing.contains("must hold the bytes of a crash of hunt_placement"), "{nothing}");
    let found = (1..200).map(|seed| {
        std::fs::write(&artifact, bytes(seed).collect::<Vec<_>>()).unwrap();
        kvseam(&import)
    });
    let crash = found.into_iter().find(|ended| ended.code != 2).expect("one of them crashes");
    assert_eq!(crash.code, 0, "{}", crash.stderr);
    let file = crash.stdout.trim_end();
    kvseam(&["replay", file]).data(0);
    assert!(crash.stderr.ends_with("\nthe file is new\n"), "{}", crash.stderr);
    let again = kvseam(&import);
    assert_eq!(again.stdout, crash.stdout);
    assert!(again.stderr.contains("\nthe file was there already"), "{}", again.stderr);
    let runs = kvseam(&[&import[..], &["--runs", "0"]].concat()).message();
    assert!(runs.contains("must be in 1..=1000000000, got 0"), "{runs}");
    assert_eq!(std::fs::read_dir(&regressions).unwrap().count(), 1);
    let message = kvseam(&["import", "hunt_bugs", text(&artifact)]).message();
    assert!(message.contains("must be one of sound_scenarios, hunt_shortfall"), "{message}");
}

#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    let threads = kvseam(&["sweep", "sims/plans/demo.toml", "--threads", "1025"]).message();
    assert!(threads.contains("must be in 1..=1024, got 1025"), "{threads}");
    let runs = kvseam(&["minimize", PADDED, "--runs", "0"]).message();
    assert!(runs.contains("must be in 1..=1000000000, got 0"), "{runs}");
}

#[test]
fn impossible_cells_are_listed_and_a_plan_of_nothing_else_is_refused() {
    let folder = scratch("impossible");
    let base = std::fs::canonicalize(BASELINE).unwrap();
    let (path, ledger) = (folder.join("plan.toml"), folder.join("ledger.sqlite"));
    let sweep = |values: &str| {
        let plan = format!(
            "version = 1\ntitle = \"t\"\nbase = '{}'\nseeds = {{ first = 1, count = 1 }}\n\
             [[axes]]\npath = \"layout.ranks\"\nvalues = {values}\n",
            base.display()
        );
        std::fs::write(&path, plan).unwrap();
        kvseam(&["sweep", text(&path), "--out", text(&ledger)])
    };
    let none = sweep("[0, 999]").message();
    assert!(none.contains("2 of 2 cells left out") && none.contains("got 999"), "{none}");
    assert!(!ledger.exists());
    let half = sweep("[1, 999]");
    assert_eq!(half.code, 0, "{}", half.stderr);
    assert!(half.stderr.starts_with("1 of 2 cells left out"), "{}", half.stderr);
}

#[test]
fn a_ledger_that_is_being_filled_is_refused() {
    let ledger = scratch("busy").join("ledger.sqlite");
    let plan = kvseam::sweep::plan::Plan::read(Path::new("sims/plans/demo.toml")).unwrap();
    let kept = Ledger::start(&ledger, &plan, |_| Ok(())).unwrap();
    let words = ["sweep", "sims/plans/demo.toml", "--out", text(&ledger)];
    let message = kvseam(&words).message();
    assert!(message.ends_with("the ledger is in use by another sweep\n"), "{message}");
    drop(kept);
    assert!(Ledger::start(&ledger, &plan, |_| Ok(())).is_ok());
}

#[test]
fn a_report_refuses_what_is_no_ledger_another_release_and_a_file_named_twice() {
    let folder = scratch("report");
    let plan = kvseam::sweep::plan::Plan::read(Path::new("sims/plans/demo.toml")).unwrap();
    let paths = ["a", "b"].map(|name| folder.join(format!("{name}.sqlite")));
    for path in &paths {
        drop(Ledger::start(path, &plan, |_| Ok(())).unwrap());
    }
    let [a, b] = paths.each_ref().map(|path| text(path));
    let out = folder.join("page");
    let refused = |words: &[&str]| {
        let message = kvseam(&[&["report", "--out", text(&out)], words].concat()).message();
        assert!(!out.exists(), "{message}");
        message
    };
    assert!(refused(&["no/such.sqlite"]).starts_with("error: no/such.sqlite: "));
    assert!(refused(&["sims/plans/demo.toml"]).contains("must be a ledger of kvseam"));
    let same = folder.join(".").join("a.sqlite");
    assert!(refused(&[a, text(&same)]).ends_with("must be named once, got it twice\n"));
    assert!(refused(&[a, "--against", a]).ends_with("must be named once, got it twice\n"));
    assert!(refused(&[a, b, "--against", "c"]).contains("must go with one ledger, got 2"));
    assert!(refused(&[a, "--axes", "behaviour"]).contains("ROWS,COLUMNS"));
    refused(&[]);
    // The schema of a ledger is the user version of its file, at byte 60 of the head.
    let mut bytes = std::fs::read(a).unwrap();
    bytes[63] = 99;
    std::fs::write(a, bytes).unwrap();
    assert!(refused(&[b, "--against", a]).contains("got one of schema 99"));
}

#[test]
fn blank_lines_end_a_file_of_lines_but_do_not_make_one() {
    let vectors = std::fs::read_to_string(PLAN_VECTORS).unwrap();
    let first = vectors.lines().next().unwrap();
    for words in [["plan", "--jsonl"], ["conform", "-"]] {
        with_input(&words, &format!("{first}\n\n \n")).data(0);
        assert!(with_input(&words, "\n\n").message().contains("at least one line"));
    }
}

#[test]
fn a_piece_of_a_line_is_bounded() {
    let line = "{\"page_size\": 1000000000, \"dcp_size\": 1, \"dcp_rank\": 0, \
                \"src_page_offset\": 0, \"decode_prefix_len\": 0, \"src_pages\": [0], \
                \"dst_pages\": [0]}";
    let answer = with_input(&["plan", "--jsonl"], line).data(0);
    assert!(answer.contains("InputError") && answer.contains("0..=8388608"), "{answer}");
}

#[test]
fn an_error_line_is_explained_by_its_numbers_and_the_behaviours_that_lead_to_it() {
    let line = "ValueError: Insufficient destination DCP pages: required=2, provided=1, \
                src_page_offset=0, dcp_rank=0";
    let facts = ["--page-size", "4", "--dcp-size", "2", "--prompt", "9"];
    let words: Vec<&str> = ["explain", line].into_iter().chain(facts).collect();
    let said = kvseam(&words).data(0);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    // n is 9 to 16 for rank 0, whose second page holds tokens 8, 10, 12 and 14; L = 9 leaves 9.
    assert!(said.contains("n is 9."), "{said}");
    assert!(said.contains("decode_reservation = \"floor\""), "{said}");
    let json: Vec<&str> = words.iter().copied().chain(["--format", "json"]).collect();
    let said = kvseam(&json).json(0);
    assert_eq!(said["code"], "refused.shortfall");
    assert_eq!(said["causes"][0]["switch"], "decode_reservation");
    let example = said["causes"][0]["example"].as_str().unwrap();
    assert!(Path::new(example).is_file(), "{example}");
    let unknown = kvseam(&["explain", "CUDA out of memory"]).message();
    assert!(unknown.contains("Insufficient destination DCP pages: required=r"), "{unknown}");
}

#[test]
fn one_case_is_seen_as_a_picture_as_lines_and_as_a_script() {
    const HAZARD: &str = "sims/hazards/h10-one-rank-short.toml";
    let folder = scratch("seen");
    let plain = kvseam(&["run", HAZARD]).data(3);

    let file = folder.join("run.svg");
    let drawn = kvseam(&["run", HAZARD, "--picture", text(&file)]);
    assert_eq!((drawn.code, &drawn.stdout), (3, &plain), "the answer is the same");
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("prefers-color-scheme"));
    for words in ["rank 1", "no page", "decode pool, virtual pages", "refused.shortfall"] {
        assert!(svg.contains(words), "{words}");
    }

    let traced = kvseam(&["run", HAZARD, "--trace"]).data(3);
    assert!(traced.ends_with(&plain) && traced.starts_with("tick (1 us) |"), "{traced}");
    assert!(traced.contains("r0    refused    by rank 0: Insufficient"), "{traced}");

    let file = folder.join("plan.svg");
    let call = "plan --page-size 4 --dcp-size 2 --num-kv-tokens 9 --src-pages 1,2,3 --dst-pages 5";
    let words: Vec<&str> = call.split(' ').chain(["--picture", text(&file)]).collect();
    assert_eq!(kvseam(&words).code, 3);
    assert!(std::fs::read_to_string(&file).unwrap().contains("struck out"));

    let script = kvseam(&["replay", HAZARD, "--emit", "python"]).data(0);
    assert!(script.contains("build_dcp_token_transfer_plan(") && script.contains("\"dst\": [1]"));
    kvseam(&["replay", "sims/hazards", HAZARD, "--emit", "python"]).message();
}

#[test]
fn the_answer_is_the_last_line_and_findings_follow_what_they_were_found_at() {
    let file = "sims/hazards/h10-one-rank-short.toml";
    let traced = kvseam(&["run", file, "--trace", "--format", "json"]).data(3);
    let lines = traced.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut lines: Vec<Value> = lines.collect();
    let mut last = lines.pop().unwrap();
    assert_eq!(last["event"].take(), "summary");
    last.as_object_mut().unwrap().remove("event");
    assert_eq!(last, kvseam(&["run", file, "--format", "json"]).json(3));
    let refused = lines.iter().position(|line| line["event"] == "refused").unwrap();
    assert_eq!(lines[refused + 1]["code"], "refused.shortfall");
    assert_eq!(lines[refused + 1]["first"][0], last["findings"][0]["first"][0]);
}

#[test]
fn hunts_and_nights_are_refused_what_they_cannot_do() {
    for (words, problem) in [
        (["hunt", "--only", "planner"], "must be SWITCH=VARIANT, got \"planner\""),
        (["hunt", "--only", "planer=x"], "must name a switch of `kvseam list behaviours`"),
        (["hunt", "--only", "free_check=no"], "free_check: must be one of none, got \"no\""),
        (["hunt", "--only", "planner=indexed"], "--only: planner=indexed: must be objected to"),
        (["hunt", "--seeds", "0"], "must be in 1..=99, got 0"),
        (["hunt", "--hazards", "no/such"], "error: no/such: "),
    ] {
        let message = kvseam(&words).message();
        assert!(message.contains(problem), "{message}");
    }
    let folder = scratch("night");
    let night = |more: &[&str]| kvseam(&[&["nightly", "--out", text(&folder)], more].concat());
    for (more, problem) in [
        (&["--budget", "30"][..], "like 90s, 30m or 2h, got \"30\""),
        (&["--budget", "0m"], "must be in 1s..=168h, got 0m"),
        (&["--budget", "1m", "--targets", "radix,hunt_bugs"], "got \"hunt_bugs\""),
        (&["--budget", "1m", "--plan", "no/such.toml"], "error: no/such.toml: "),
    ] {
        let message = night(more).message();
        assert!(message.contains(problem), "{message}");
    }
    std::fs::write(folder.join("state.json"), "[").unwrap();
    assert!(night(&["--budget", "1m"]).message().contains("state.json:1: "));
}

#[test]
fn a_night_without_cargo_fuzz_does_all_the_rest_and_fails_only_if_fuzzing_was_asked_for() {
    let folder = scratch("night-without-fuzzing");
    let base = std::fs::canonicalize(BASELINE).unwrap();
    let plan = format!(
        "version = 1\ntitle = \"small\"\nbase = '{}'\nseeds = {{ first = 1, count = 2 }}\n\
         [[axes]]\npath = \"behaviour.decode_reservation\"\nvalues = [\"ceil\", \"floor\"]\n",
        base.display()
    );
    let plan_path = folder.join("plan.toml");
    std::fs::write(&plan_path, plan).unwrap();
    let out = folder.join("nights");
    let night = |more: &[&str]| {
        let words = ["nightly", "--budget", "1h", "--out", text(&out), "--plan", text(&plan_path)];
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("kvseam"));
        let output = command.env("PATH", "").args(words).args(more).output().unwrap();
        let page = std::fs::read_to_string(out.join("night.md")).unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap(), page)
    };
    let missing = "cargo-fuzz is missing; `cargo install cargo-fuzz --locked` installs it";
    let (code, stderr, page) = night(&[]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains(missing) && page.contains(missing), "{stderr}\n{page}");
    assert!(page.starts_with("# Night 1\n\nNo new defect."), "{page}");
    assert!(page.contains("small: 4 of 4 runs."), "{page}");
    assert!(page.contains("| `reserve.short` | 2 | 4 | 50 % | – |"), "{page}");
    let (code, _, page) = night(&["--targets", "radix"]);
    assert_eq!(code, Some(1));
    assert!(page.contains("# Night 2") && page.contains("| 50 % | the same |"), "{page}");
}

#[test]
fn two_recordings_are_told_apart_by_kinds_of_difference() {
    let file = "tests/vectors/radix.jsonl";
    let whole = std::fs::read_to_string(file).unwrap();
    let equal = kvseam(&["watch-release", file, file, "--format", "json"]).json(0);
    assert_eq!(equal["formats"]["radix"]["equal"], whole.lines().count());
    let mut changed: Vec<Value> =
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ops = changed[0]["ops"].as_array_mut().unwrap();
    let at = ops.iter().position(|op| op["op"] == "insert").unwrap();
    ops[at]["matched"] = 999.into();
    let changed: Vec<String> = changed.iter().map(Value::to_string).collect();
    let words = ["watch-release", file, "-"];
    let text = with_input(&words, &changed.join("\n")).data(4);
    for said in ["radix: insert, other matched (1 line)", "line 1 and line 1,", "\"matched\":999"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let message = with_input(&words, "{\"ops\": []}").message();
    assert!(message.starts_with("error: stdin:1: line: must have exactly one of"), "{message}");
    let message = kvseam(&["watch-release", file, "tests/vectors/plan.jsonl"]).message();
    assert!(message.contains("must ask something that"), "{message}");
    kvseam(&["watch-release", "-", "-"]).message();
}

/// A driver that is a script: it says who it is, and answers every scenario with `events`.
fn scripted_driver(name: &str, events: &str) -> (std::path::PathBuf, String) {
    let folder = scratch(name);
    let hello = serde_json::json!({"hello": {
        "protocol": 1, "engine": "sglang", "version": "0.5.23",
        "can": {"calls": [], "page_sizes": [4], "ranks": [1, 2], "caches": ["radix"],
                "evictions": ["lru"], "admissions": ["first_come"], "aborts": false,
                "namespaces": false, "costs": false},
        "stubs": ["all of it"], "changed": []}});
    let script = format!(
        "read question\necho '{hello}'\nwhile read question; do\n{events}\n\
         echo '{{\"done\": {{\"crashed\": null}}}}'\ndone\n"
    );
    let file = folder.join("driver.sh");
    std::fs::write(&file, script).unwrap();
    let command = format!("sh {}", text(&file));
    (folder, command)
}

#[test]
fn a_live_engine_that_does_nothing_differs_and_one_that_is_stuck_has_a_defect() {
    for (name, events, code, kind) in [
        ("live-idle", "", 4, "difference at level 1: "),
        (
            "live-stuck",
            "echo '{\"event\": {\"t\": 0, \"ev\": \"arrives\", \"r\": 0, \"prompt\": 1}}'\n\
             echo '{\"event\": {\"t\": 0, \"ev\": \"stuck\", \"r\": null, \"requests\": [0]}}'",
            3,
            "defect: requests are stuck after: arrives",
        ),
    ] {
        let (folder, command) = scripted_driver(name, events);
        let words = ["conform", "--live", &command, "--runs", "4", "--shrink", "50", "--out"];
        let answer =
            kvseam(&[&words[..], &[text(&folder), "--format", "json"]].concat()).json(code);
        assert_eq!((&answer["runs"], &answer["agree"][0]), (&4.into(), &0.into()));
        let finds = answer["finds"].as_array().unwrap();
        let is_kind = |find: &&Value| find["kind"].as_str().unwrap().starts_with(kind);
        let find = finds.iter().find(is_kind).expect("it was found");
        assert_eq!(find["requests"], 1, "{find}");
        assert!(Path::new(find["file"].as_str().unwrap()).is_file());
        let ledger = std::fs::read_to_string(folder.join("ledger.jsonl")).unwrap();
        assert_eq!(ledger.lines().count(), 5);
    }
}

#[test]
fn a_live_driver_that_refuses_or_has_no_profile_ends_with_2_and_the_reason() {
    let refuses = r#"sh -c 'echo "{\"refused\": \"must be one of 0.5.23, got 0.4\"}"'"#;
    let message = kvseam(&["conform", "--live", refuses]).message();
    assert!(message.contains("must be one of 0.5.23, got 0.4"), "{message}");
    let (_folder, command) = scripted_driver("live-unknown", "");
    let script = std::fs::read_to_string(command.strip_prefix("sh ").unwrap()).unwrap();
    std::fs::write(command.strip_prefix("sh ").unwrap(), script.replace("0.5.23", "0.4")).unwrap();
    let message = kvseam(&["conform", "--live", &command]).message();
    assert!(message.contains("sglang-0.4") && message.contains("sglang-0.5.23"), "{message}");
    kvseam(&["conform", "--runs", "4", "x.jsonl"]).message();
    kvseam(&["conform"]).message();
}

#[test]
fn a_run_that_serves_nothing_says_so_and_ends_with_a_code_of_its_own() {
    let text = "version = 1\ntitle = \"small\"\nlayout = { page_size = 4, ranks = 2 }\n\
        prefill = { pages = 64 }\ndecode = { pages = 16 }\n\
        [[workload.requests]]\nprompt = [{ content = 1, len = 20 }]\noutput = 2\n";
    let said = with_input(&["run", "-"], text).data(5);
    for part in ["verdict: nothing served", "128 tokens, of which 512 are kept back"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let words = ["run", "-", "--set", "decode.reserved_tokens=0"];
    let said = with_input(&words, text).data(0);
    assert!(said.contains("verdict: clean") && !said.contains("kept back"), "{said}");
}

#[test]
fn a_shell_gets_completions_and_a_reader_a_manual() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(kvseam(&["completions", shell]).data(0).contains("kvseam"), "{shell}");
    }
    assert!(kvseam(&["man"]).data(0).contains(".SH NAME"));
    assert!(kvseam(&["man", "run"]).data(0).contains("kvseam\\-run"));
    assert!(kvseam(&["man", "walk"]).message().contains("must be one of run, plan"));
    let words = ["list", "profiles", "--diff", "sglang-0.5.20", "sglang-0.5.23"];
    assert!(kvseam(&words).data(0).contains("not_chunks"));
    assert!(kvseam(&["list", "codes", "--diff", "a", "b"]).message().contains("with profiles"));
}
