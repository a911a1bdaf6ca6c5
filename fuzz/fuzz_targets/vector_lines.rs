//! Lines of recorded answers: no bytes panic, and a line has one verdict.
#![no_main]

use kvseam::claims::texts;
use kvseam_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| texts::vector_line(bytes));
