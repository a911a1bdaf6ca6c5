//! The driver with shell scripts in the place of fuzz targets.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicUsize;

use super::table::page;
use super::*;
use crate::rng::Stream;

/// A scratch folder with a program for every target.
struct Fakes(tempfile::TempDir);

impl Fakes {
    /// Each target runs `body`, with the folder for artifacts in `$artifacts`.
    fn new(body: impl Fn(FuzzTarget) -> String) -> Fakes {
        let fakes = Fakes(tempfile::tempdir().unwrap());
        for &target in FuzzTarget::ALL {
            let prefix = "for word in \"$@\"; do case $word in -artifact_prefix=*) \
                          artifacts=${word#*=};; esac; done";
            let script = format!("#!/bin/sh\n{prefix}\n{}\n", body(target));
            let path = fakes.0.path().join(target.name());
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fakes
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn hunt<'a>(&'a self, rows: &'a [Row]) -> Hunt<'a> {
        let (meant, others) = (Limit::Seconds(60), Limit::Executions(10));
        let settings = Settings { seeds: 2, meant, others, jobs: 2 };
        Hunt { settings, rows, programs: self.0.path() }
    }

    /// Runs the hunt on the state that is there; the page, and how many measurements were made.
    fn run(&self, rows: &[Row], stop: &AtomicBool) -> (table::Page, usize) {
        let (hunt, made) = (self.hunt(rows), AtomicUsize::new(0));
        let state = State::open(&self.file("hunt.jsonl")).unwrap();
        let report = |_: &Measurement, _| {
            made.fetch_add(1, Ordering::Relaxed);
        };
        let state = hunt.run(state, stop, report).unwrap();
        (page(&hunt, &state, &[], "two cores").unwrap(), made.into_inner())
    }
}

fn row() -> Row {
    let planted = PlantedVariant::parse("decode_prefix_cut=padded_up").unwrap();
    Row { planted, meant: Some(FuzzTarget::HuntPlacement) }
}

/// Bytes from which the target draws a finding of the row's variant.
fn find(target: FuzzTarget) -> Vec<u8> {
    let draw = |seed| {
        let mut stream = Stream::new(seed, "find");
        (0..600).map(|_| stream.below(256) as u8).collect::<Vec<u8>>()
    };
    let planted = Some(row().planted);
    let is_find = |bytes: &Vec<u8>| {
        hunted_finding(target, planted, &target.scenario(bytes, planted)).is_some()
    };
    (0..1_000).map(draw).find(is_find).expect("one of them is a find")
}

const ENDS: &str = "echo 'stat::number_of_executed_units: 10' >&2";

#[test]
fn finds_are_judged_and_a_second_run_has_nothing_left_to_do() {
    let bytes = tempfile::NamedTempFile::new().unwrap();
    fs::write(bytes.path(), find(FuzzTarget::HuntPlacement)).unwrap();
    let fakes = Fakes::new(|target| match target {
        FuzzTarget::HuntPlacement => format!(
            "[ $KVSEAM_PLANT = decode_prefix_cut=padded_up ] || exit 1\ncp {} ${{artifacts}}crash-1\n\
             echo \"artifact_prefix='x'; Test unit written to ${{artifacts}}crash-1\" >&2\n\
             echo 'stat::number_of_executed_units: 321' >&2\nexit 77",
            bytes.path().display()
        ),
        _ => ENDS.to_owned(),
    });
    let (rows, stop) = ([row()], AtomicBool::new(false));
    let (page, made) = fakes.run(&rows, &stop);
    assert_eq!(made, 2 * FuzzTarget::ALL.len());
    assert!(page.is_complete && page.holes.is_empty(), "{}", page.text);
    assert!(page.text.contains("| **321 · 0."), "{}", page.text);
    assert!(!page.has_bugs, "{}", page.text);
    assert_eq!(fakes.run(&rows, &stop).1, 0);

    // One line less is one measurement more; so is another program.
    let state = fs::read_to_string(fakes.file("hunt.jsonl")).unwrap();
    let (_, rest) = state.split_once('\n').unwrap();
    fs::write(fakes.file("hunt.jsonl"), rest).unwrap();
    assert_eq!(fakes.run(&rows, &stop).1, 1);
    let program = fakes.file("hunt_shortfall");
    let script = fs::read_to_string(&program).unwrap();
    fs::write(&program, script + "\n").unwrap();
    assert_eq!(fakes.run(&rows, &stop).1, 2);
}

#[test]
fn a_behaviour_that_its_target_misses_is_a_hole_and_a_panic_a_bug() {
    let fakes = Fakes::new(|target| match target {
        // No scenario of these bytes has a finding, so that it must have been something else.
        FuzzTarget::HuntLifetime => "echo x > ${artifacts}crash-1\n\
            echo \"thread '<unnamed>' (1) panicked at src/world/mod.rs:7:9:\" >&2\n\
            echo \"artifact_prefix='x'; Test unit written to ${artifacts}crash-1\" >&2\nexit 77"
            .to_owned(),
        _ => ENDS.to_owned(),
    });
    let (page, _) = fakes.run(&[row()], &AtomicBool::new(false));
    assert_eq!((page.holes, page.has_bugs), (vec![row().planted], true));
    assert!(page.text.contains("seed 1: panicked at src/world/mod.rs:7:9"), "{}", page.text);
}

#[test]
fn a_stopped_hunt_keeps_nothing_of_what_was_under_way() {
    let fakes = Fakes::new(|_| "exec sleep 600".to_owned());
    let stop = AtomicBool::new(false);
    let began = std::time::Instant::now();
    let (page, made) = std::thread::scope(|scope| {
        let hunt = scope.spawn(|| fakes.run(&[row()], &stop));
        std::thread::sleep(Duration::from_millis(200));
        stop.store(true, Ordering::Relaxed);
        hunt.join().unwrap()
    });
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!((made, page.is_complete), (0, false));
    assert_eq!(fs::read_to_string(fakes.file("hunt.jsonl")).unwrap(), "");
}

#[test]
fn a_target_that_cannot_run_is_an_error_with_what_it_said() {
    let fakes = Fakes::new(|_| "echo 'no such flag' >&2; exit 1".to_owned());
    let (rows, stop) = ([row()], AtomicBool::new(false));
    let state = State::open(&fakes.file("hunt.jsonl")).unwrap();
    let error = fakes.hunt(&rows).run(state, &stop, |_, _| ()).unwrap_err().to_string();
    assert!(error.contains("ended with exit status: 1:\nno such flag"), "{error}");
}
