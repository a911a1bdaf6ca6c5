//! The radix tree finds, keeps, protects and drops as a plain table does.
#![no_main]

use arbitrary::Unstructured;
use kvseam::claims::prefix_cache;
use kvseam_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| prefix_cache::radix_keeps_its_pages(&mut Unstructured::new(bytes)));
