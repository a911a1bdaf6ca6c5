//! What a second thread is worth to a sweep, beside what it is worth to a loop that only counts.
//!
//! Sweeps of `sims/plans/million.toml` with fewer seeds go into ledgers in the system's temporary
//! folder, on one thread and on two in turn, five times; so does the loop. `KVSEAM_BENCH_SEEDS` is
//! the number of seeds of each of the four cells.

use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use kvseam::sweep::execute::execute;
use kvseam::sweep::ledger::Ledger;
use kvseam::sweep::plan::Plan;
use kvseam::sweep::runner::Simulator;
use kvseam::world::Registry;
use mimalloc::MiMalloc;

/// As the command has it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const PAIRS: usize = 5;
const SEEDS: &str = "20_000";
const LOOP_ROUNDS: u64 = 1_000_000_000;

fn main() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sims/plans/million.toml");
    let text = std::fs::read_to_string(&path).expect("the plan is part of the project");
    let seeds = std::env::var("KVSEAM_BENCH_SEEDS").unwrap_or(SEEDS.to_owned());
    let text = text.replace("250_000", &seeds);
    let plan = Plan::with_base(text, &path).expect("the number of seeds makes a plan");
    let mut best = (0.0, 0.0);
    println!("{} runs a sweep\npair  1 thread     2 threads    ratio  loop", plan.runs());
    for pair in 1..=PAIRS {
        let [one, two] = [1, 2].map(|threads| swept(&plan, threads));
        let [loop_one, loop_two] = [1, 2].map(counted);
        let (ratio, loop_ratio) = (ratio(one, two), ratio(loop_one, loop_two));
        let (one, two) = (rate(&plan, one), rate(&plan, two));
        println!("{pair:<4}  {one:>6} runs/s  {two:>6} runs/s  {ratio:.2}   {loop_ratio:.2}");
        if ratio > best.0 {
            best = (ratio, loop_ratio);
        }
    }
    println!("best: {:.2}, the loop beside it {:.2}", best.0, best.1);
}

/// The time of a whole sweep into a new ledger.
fn swept(plan: &Plan, threads: usize) -> Duration {
    let path = std::env::temp_dir().join(format!("kvseam-bench-{}.sqlite", std::process::id()));
    // Of a sweep that was stopped, if there is any.
    drop(std::fs::remove_file(&path));
    let simulator = Simulator::new(plan, Registry::built_in());
    let began = Instant::now();
    let mut ledger = Ledger::start(&path, plan, |_| Ok(())).expect("the folder can be written to");
    let outcome = execute(&mut ledger, threads, &AtomicBool::new(false), simulator, |_| {});
    let outcome = outcome.expect("the ledger can be written");
    let time = began.elapsed();
    assert_eq!((outcome.progress.done, outcome.judged.errors), (plan.runs(), 0));
    drop(ledger);
    std::fs::remove_file(&path).expect("the ledger was there");
    time
}

/// The time in which so many threads count to the same sum together.
fn counted(threads: u64) -> Duration {
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut state = 1_u64;
                for round in 0..LOOP_ROUNDS / threads {
                    state = black_box(state.wrapping_mul(6_364_136_223_846_793_005) ^ round);
                }
                state
            });
        }
    });
    began.elapsed()
}

fn ratio(one: Duration, two: Duration) -> f64 {
    one.as_secs_f64() / two.as_secs_f64()
}

fn rate(plan: &Plan, time: Duration) -> u128 {
    u128::from(plan.runs()) * 1_000_000 / time.as_micros()
}
