//! Traces of every format: no bytes panic, and what is read is in order.
#![no_main]

use kvseam::claims::texts;
use kvseam_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| texts::trace_file(bytes));
