//! Scenario files: no bytes panic, and what parses prints back equal.
#![no_main]

use kvseam::claims::texts;
use kvseam_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| texts::scenario_file(bytes));
