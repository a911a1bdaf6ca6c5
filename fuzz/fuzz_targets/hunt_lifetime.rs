//! Hunts scenarios whose pages or requests do not end as they should.
#![no_main]

use kvseam::claims::scenarios;
use kvseam::minimize::import::FuzzTarget;
use kvseam_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| scenarios::run(FuzzTarget::HuntLifetime, bytes));
