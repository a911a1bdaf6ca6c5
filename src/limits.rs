//! Every bound, once, with its reason. Input past a bound is refused with the bound in the message;
//! a run that reaches one is a verdict, never a hang.

use std::ops::RangeInclusive;

use crate::units::Tick;

/// Bytes of a planner's name, which is copied with the switches.
pub const PLANNER_NAME_BYTES: usize = 32;
/// Rows of a physical page. Engines use 1 to 256.
pub const PAGE_SIZE: RangeInclusive<u32> = 1..=4_096;
/// Decode context-parallel ranks. 16 is the largest seen.
pub const RANKS: RangeInclusive<u32> = 1..=256;
/// Pages of one pool; with [`POOL_TOKENS_MAX`] this keeps every row within 32 bits.
pub const POOL_PAGES: RangeInclusive<u32> = 1..=16_777_216;
/// Tokens of one pool: sixteen times the largest pool seen (16.8 million tokens a rank).
pub const POOL_TOKENS_MAX: u64 = 1 << 28;
/// Servers of one kind. Round robin makes more of them all alike.
pub const WORKERS: RangeInclusive<u32> = 1..=64;
/// Requests of one scenario: a day of a large trace.
pub const REQUESTS_MAX: usize = 4_000_000;
/// Tokens of one prompt: eight times the longest context sold.
pub const PROMPT_TOKENS: RangeInclusive<u32> = 1..=8_388_608;
/// Output tokens of one request; the first comes from prefill.
pub const OUTPUT_TOKENS: RangeInclusive<u32> = 1..=1_048_576;
/// Runs of one prompt.
pub const PROMPT_RUNS_MAX: usize = 65_536;
/// Runs of all prompts of one synthetic workload: some 6 GiB.
pub const WORKLOAD_RUNS_MAX: u64 = 1 << 28;
/// Mean slots between two geometric arrivals; a sparser workload takes a longer slot.
pub const ARRIVAL_SLOTS_MEAN_MAX: u32 = 1_000;
/// Slots between two geometric arrivals: a hundred times the largest mean, never reached in
/// practice.
pub const ARRIVAL_SLOTS_MAX: u64 = 100_000;
/// Bytes of one line of a trace: three times what the ids of the longest prompt take.
pub const TRACE_LINE_BYTES_MAX: u64 = 1 << 20;
/// A step's token budget.
pub const CHUNK_TOKENS: RangeInclusive<u32> = 1..=8_388_608;
/// Any single duration in a file, in ticks: about twelve days.
pub const TICKS_MAX: u64 = 1 << 40;
/// Bytes of one token's KV over all layers: forty times a large MLA model's.
pub const TOKEN_BYTES: RangeInclusive<u64> = 1..=2_811_000;
/// Faults of one scenario.
pub const FAULTS_MAX: usize = 100_000;
/// Number of a message of one request, from 0: one for each piece and rank of each transfer.
pub const MESSAGE: RangeInclusive<u32> = 0..=1_000_000;
/// Timers that may go off in any run.
pub const TIMERS_FLOOR: u64 = 100_000;
/// Timers that may go off in one run for every request, and again for every output token, and for
/// every piece of its prompt (a page, or a smaller chunk) on every rank. The largest need seen on
/// real traces is 65 a request; retractions repeat a request's copies and steps, so the bounds are
/// generous.
pub const TIMERS_PER_REQUEST: u64 = 1_000;
/// See [`TIMERS_PER_REQUEST`].
pub const TIMERS_PER_OUTPUT_TOKEN: u64 = 16;
/// See [`TIMERS_PER_REQUEST`].
pub const TIMERS_PER_PROMPT_PIECE: u64 = 16;
/// Samples of free pages in one run, at equal parts of its arrivals. Each looks at every page of
/// every pool once, so that all of them cost less than it does to make the pools.
pub const FREE_RUN_SAMPLES: u64 = 4;
/// Findings of one code that a run keeps with their evidence; all are counted.
pub const FINDINGS_KEPT: usize = 16;
/// Runs of one sweep; a larger plan must be asked for twice.
pub const SWEEP_RUNS: u64 = 10_000_000;
/// Runs of one sweep at all: a bit for each is 125 MB.
pub const SWEEP_RUNS_ALLOWED: u64 = 1_000_000_000;
/// Points of one axis, each of which is tried on the base scenario when a plan is read.
pub const AXIS_POINTS: usize = 10_000;
/// Shards of one sweep: a merge holds the ledger of each open, of which most systems allow 1,024.
pub const SHARDS: RangeInclusive<u64> = 1..=512;
/// Times that one refused request may be served again before it fails for good.
pub const REFUSALS_MAX: u32 = 3;
/// Threads of one sweep: more than the cores of any machine known, and few enough to be started.
pub const THREADS: RangeInclusive<u64> = 1..=1_024;
/// The last tick of a run, some 280 years: what is due later never happens. With [`TICKS_MAX`] it
/// keeps every moment within 64 bits.
pub const TICK_END: Tick = Tick(1 << 53);
/// Physical pages of all servers and ranks together, each of which costs some 50 bytes: 64 million
/// are about 3 GB.
pub const MEMORY_PAGES_MAX: u64 = 1 << 26;
/// Runs that the minimiser may use unless told otherwise: scenarios of a fuzzer take a few hundred,
/// long workloads some thousands.
pub const MINIMIZE_RUNS: u64 = 20_000;
/// Runs that the minimiser may be told to use; what it tries is far less than the bound.
pub const MINIMIZE_RUNS_ALLOWED: RangeInclusive<u64> = 1..=1_000_000_000;
/// Waiting requests among which an order of admission chooses, so that a long queue does not cost a
/// lookup for each in every step. The real system gives up its order beyond as many.
pub const ADMISSION_WINDOW: usize = 128;
/// Planner calls of a run that are kept to be looked at: more than a person looks at.
pub const CALLS_KEPT: usize = 10_000;
/// Lines of a trace in the terminal; a trace of so many is read by a program, if at all.
pub const TRACE_LINES: u64 = 100_000;
/// Tokens of one piece that a picture shows: a virtual page of 64 rows on 8 ranks.
pub const PICTURE_TOKENS: u32 = 512;
/// Ranks that a picture shows.
pub const PICTURE_RANKS: u32 = 16;
/// Moments of the pools that a picture shows; of a longer run it shows every second, fourth, …
pub const PICTURE_MOMENTS: usize = 400;
/// Scenarios in which each behaviour is planted to learn what it leads to; two thousand take some
/// minutes.
pub const LEARN_SCENARIOS: RangeInclusive<u64> = 1..=1_000_000;
/// Any number of an error line: above all that pools and prompts can hold, and times a virtual page
/// still within 64 bits.
pub const LINE_NUMBER_MAX: u64 = 1 << 40;
/// Characters of one line of a log that are looked at: more than any known text is behind its
/// prefix.
pub const LOG_LINE_CHARS_MAX: usize = 16_384;
/// Seeds of one cell of a hunt: more than a median needs.
pub const HUNT_SEEDS: RangeInclusive<u64> = 1..=99;
/// Seconds of one run of a hunt: a day.
pub const HUNT_SECONDS: RangeInclusive<u64> = 1..=86_400;
/// Executions of one run of a hunt: a week of the fastest target.
pub const HUNT_EXECUTIONS: RangeInclusive<u64> = 1..=1_000_000_000;
/// Seconds of a night: a week.
pub const NIGHT_SECONDS: RangeInclusive<u64> = 1..=604_800;
/// Events of one scenario that a driver of live mode may tell: a hundred times what the largest
/// drawn scenario has.
pub const LIVE_EVENTS_MAX: usize = 1_000_000;
/// Bytes of one line of a driver: the pages of a request with the longest prompt drawn fit.
pub const LIVE_LINE_BYTES_MAX: u64 = 1 << 24;
/// Characters of a driver's line that a message shows.
pub const LIVE_SHOWN_CHARS: usize = 160;
/// Answers in a row that a driver may fail to give before a session ends.
pub const LIVE_FAILURES_MAX: u32 = 5;
/// Runs of the model that making one find smaller may take; questions to the driver are fewer.
pub const LIVE_SHRINK_RUNS: u64 = 5_000;
/// Seconds after which live mode makes a find no smaller.
pub const LIVE_SHRINK_SECONDS: u64 = 60;
/// Scenarios of one live session.
pub const LIVE_RUNS: RangeInclusive<u64> = 0..=10_000_000;
/// Seconds of a live session, or of one answer: at most a day.
pub const LIVE_SECONDS: RangeInclusive<u64> = 1..=86_400;
