//! Every position has one rank and row, and comes back from there.
#![no_main]

use arbitrary::Unstructured;
use kvseam::claims::layout;
use kvseam_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| layout::places_every_position_once(&mut Unstructured::new(bytes)));
