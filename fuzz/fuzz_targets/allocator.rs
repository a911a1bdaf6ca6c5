//! Whatever the free-list order, free pages are handed out once and counted right.
#![no_main]

use arbitrary::Unstructured;
use kvseam::claims::allocator;
use kvseam_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| allocator::hands_out_free_pages_once(&mut Unstructured::new(bytes)));
