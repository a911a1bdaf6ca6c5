//! The planner's long form, compact form and check agree with the definition, for both revisions.
#![no_main]

use arbitrary::Unstructured;
use kvseam::claims::planner;
use kvseam_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| planner::plans_as_defined(&mut Unstructured::new(bytes)));
