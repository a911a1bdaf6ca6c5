//! Signals in any order, repeated and late, end every transfer once.
#![no_main]

use arbitrary::Unstructured;
use kvseam::claims::handoff;
use kvseam_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| handoff::ends_once_whatever_it_is_told(&mut Unstructured::new(bytes)));
