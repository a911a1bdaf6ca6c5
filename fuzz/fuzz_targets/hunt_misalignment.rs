//! Hunts scenarios whose prefix or token count the planner cannot take.
#![no_main]

use kvseam::claims::scenarios;
use kvseam::minimize::import::FuzzTarget;
use kvseam_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| scenarios::run(FuzzTarget::HuntMisalignment, bytes));
