//! Where answers go: a standard output that is closed or full, `-` in the place of a file, and
//! files that must not be written.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::{Command, Stdio};

mod common;
use common::{kvseam, scratch, text, with_input};

const SCENARIO: &str = "sims/scenarios/padded-prefix.toml";
const PLAN_VECTORS: &str = "tests/vectors/plan.jsonl";

/// A small ledger in `folder`, beside its plan.
fn ledger(folder: &Path) -> String {
    let base = std::fs::canonicalize(SCENARIO).unwrap();
    let plan = format!(
        "version = 1\ntitle = \"t\"\nbase = '{}'\nseeds = {{ first = 1, count = 1 }}\n",
        base.display()
    );
    let (path, ledger) = (folder.join("plan.toml"), folder.join("old.sqlite"));
    std::fs::write(&path, plan).unwrap();
    let words = ["sweep", text(&path), "--out", text(&ledger), "--format", "json"];
    assert_eq!(kvseam(&words).json(0)["runs_done"], 1);
    text(&ledger).to_owned()
}

/// Exit code and messages of a command with this standard output.
fn into(words: &[&str], output: Stdio) -> (i32, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("kvseam"));
    let ended = command.args(words).stdout(output).output().unwrap();
    (ended.status.code().unwrap(), String::from_utf8(ended.stderr).unwrap())
}

/// A pipe that nobody reads.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_full_standard_output_is_a_failure_and_a_closed_one_changes_nothing() {
    let folder = scratch("outputs");
    let old = ledger(&folder);
    let (plan, page) = (folder.join("plan.toml"), folder.join("page"));
    let (new, merged) = (folder.join("new.sqlite"), folder.join("merged.sqlite"));
    let (plan, page, new, merged) = (text(&plan), text(&page), text(&new), text(&merged));
    let call = "plan --page-size 4 --dcp-size 2 --src-pages 1 --dst-pages 5";
    let call: Vec<&str> = call.split(' ').collect();
    for (words, code) in [
        (&["run", SCENARIO][..], 3),
        (&["run", SCENARIO, "--trace"], 3),
        (&["run", SCENARIO, "--format", "json"], 3),
        (&call, 0),
        (&["plan", "--jsonl", PLAN_VECTORS], 0),
        (&["sweep", plan, "--out", new], 0),
        (&["sweep", plan, "--dry-run"], 0),
        (&["merge", &old, "--out", merged], 0),
        (&["export", &old], 0),
        (&["report", &old, "--out", page], 0),
        (&["minimize", SCENARIO], 0),
        (&["replay", SCENARIO], 0),
        (&["conform", PLAN_VECTORS], 0),
        (&["watch-release", PLAN_VECTORS, PLAN_VECTORS], 0),
        (&["explain", "placed.missing"], 0),
        (&["lint", SCENARIO], 3),
        (&["list", "codes"], 0),
        (&["--help"], 0),
        (&["run", "--help"], 0),
        (&["--version"], 0),
    ] {
        let (ended, said) = into(words, closed());
        assert_eq!(ended, code, "{words:?}: {said}");
        assert!(!said.contains("standard output"), "{words:?}: {said}");
        // A merge makes a new file each time.
        let _ = std::fs::remove_file(merged);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (ended, said) = into(words, full.into());
        assert_eq!(ended, 1, "{words:?}: {said}");
        assert!(said.contains("error: standard output: No space left"), "{words:?}: {said}");
    }
}

#[test]
fn a_full_standard_error_is_no_panic() {
    for (words, code) in [(&["run", "no/such.toml"][..], 2), (&["minimize", SCENARIO], 0)] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("kvseam"));
        let ended = command.args(words).stdout(Stdio::null()).stderr(full).status().unwrap();
        assert_eq!(ended.code(), Some(code), "{words:?}");
    }
}

#[test]
fn a_full_device_is_the_same_failure_for_files() {
    let old = ledger(&scratch("full-files"));
    for words in [
        &["export", &old, "--out", "/dev/full"][..],
        &["minimize", SCENARIO, "--out", "/dev/full"],
        &["run", SCENARIO, "--picture", "/dev/full"],
    ] {
        let ended = kvseam(words);
        assert_eq!(ended.code, 1, "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("error: /dev/full: No space left"), "{}", ended.stderr);
    }
}

#[test]
fn a_dash_is_standard_output_and_never_a_file_of_that_name() {
    let folder = scratch("dash");
    let old = ledger(&folder);
    let scenario = std::fs::read_to_string(SCENARIO).unwrap();
    let printed = kvseam(&["minimize", SCENARIO]).stdout;
    assert_eq!(with_input(&["minimize", "-", "--out", "-"], &scenario).stdout, printed);
    let call = "plan --page-size 4 --dcp-size 2 --src-pages 1 --dst-pages 5 --picture -";
    let call: Vec<&str> = call.split(' ').collect();
    for words in [
        &["run", SCENARIO, "--picture", "-"][..],
        &call,
        &["sweep", "sims/plans/demo.toml", "--out", "-"],
        &["merge", &old, "--out", "-"],
        &["report", &old, "--out", "-"],
        &["hunt", "--out", "-"],
        &["nightly", "--budget", "1s", "--out", "-"],
        &["import", "hunt_placement", SCENARIO, "--folder", "-"],
    ] {
        let message = kvseam(words).message();
        assert!(message.contains("got standard output, which has the answer"), "{message}");
    }
    assert!(!Path::new("-").exists());
}

#[test]
fn a_scenario_is_never_written_over_by_what_is_made_of_it() {
    let folder = scratch("own-input");
    let scenario = std::fs::read(SCENARIO).unwrap();
    let (file, link) = (folder.join("s.toml"), folder.join("link.toml"));
    std::fs::write(&file, &scenario).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let detour = folder.join("..").join("own-input").join("s.toml");
    for out in [&file, &link, &detour] {
        let message = kvseam(&["minimize", text(&file), "--out", text(out)]).message();
        assert!(message.contains("must be another file than the one that is read"), "{message}");
        assert_eq!(std::fs::read(&file).unwrap(), scenario);
    }
}

#[test]
fn a_ledger_that_cannot_be_used_is_named_with_the_reason() {
    let folder = scratch("bad-ledgers");
    let old = ledger(&folder);
    let whole = std::fs::read(&old).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.join(name), bytes).unwrap();
        text(&folder.join(name)).to_owned()
    };
    let other = "must be a ledger of kvseam, got another kind of file";
    for (path, reason) in [
        (text(&folder.join("none.sqlite")).to_owned(), "No such file or directory"),
        (text(&folder).to_owned(), "is a directory"),
        (file("empty.sqlite", b""), other),
        (file("text.sqlite", b"a text that is no database, however long it may be"), other),
        (file("cut.sqlite", &whole[..5_000]), "database disk image is malformed"),
        (file("half.sqlite", &whole[..12_288]), "database disk image is malformed"),
    ] {
        let (new, page) = (folder.join("new.sqlite"), folder.join("page"));
        for words in [
            &["export", &path][..],
            &["merge", &old, &path, "--out", text(&new)],
            &["report", &path, "--out", text(&page)],
            &["report", &old, "--against", &path, "--out", text(&page)],
        ] {
            let message = kvseam(words).message();
            assert!(message.starts_with(&format!("error: {path}: ")), "{words:?}: {message}");
            assert!(message.contains(reason), "{words:?}: {message}");
            assert!(!new.exists() && !page.exists(), "{words:?}");
        }
    }
    let missing = folder.join("no").join("ledger.sqlite");
    let message = kvseam(&["merge", &old, "--out", text(&missing)]).message();
    assert!(message.contains("No such file or directory"), "{message}");
    let inside = File::create(folder.join("file")).map(|_| folder.join("file").join("x")).unwrap();
    let message = kvseam(&["export", &old, "--out", text(&inside)]).message();
    assert!(message.contains("Not a directory"), "{message}");
}
