//! What a finding code or an engine's error line means to someone who looks for its cause.
//!
//! Notation as in the rest of the project: P rows a physical page, N ranks, V = P·N a virtual page,
//! L a prompt's length, S the decode side's cached prefix (`decode_prefix_len`), off the source
//! pages sent since S (`src_page_offset`), n a piece's tokens (`num_kv_tokens`).

use crate::finding::Code;

pub mod causes;
pub mod foreign;
pub mod geometry;
pub mod known;
pub mod line;
pub mod log;
pub mod nearest;
mod pages;
pub mod pattern;
pub mod printed;
mod reading;
mod refusals;
mod requests;
mod rows;
pub mod shape;
pub mod words;

pub use reading::Reading;

/// A code in words. Which behaviours lead to it is counted: [`causes::of_code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What holds as long as the code is not found.
    pub holds: &'static str,
    /// What breaks it, most usual first.
    pub causes: &'static [&'static str],
    /// What to look at in an engine.
    pub checks: &'static [&'static str],
}

/// What `code` means.
pub fn explain(code: Code) -> Explanation {
    match code {
        Code::RefusedMisaligned => refusals::MISALIGNED,
        Code::RefusedSource => refusals::SOURCE,
        Code::RefusedShortfall => refusals::SHORTFALL,
        Code::RefusedIndex => refusals::INDEX,
        Code::RefusedInput => refusals::INPUT,
        Code::RefusedTopology => refusals::TOPOLOGY,
        Code::RefusedRank => refusals::RANK,
        Code::RefusedGeometry => refusals::GEOMETRY,
        Code::RefusedPool => refusals::POOL,
        Code::RefusedPrefillCp => refusals::PREFILL_CP,
        Code::RefusedPageSize => refusals::PAGE_SIZE,
        Code::RefusedCapacity => refusals::CAPACITY,
        Code::CapacityWrong => requests::CAPACITY_WRONG,
        Code::PlacedMissing => rows::MISSING,
        Code::PlacedShifted => rows::SHIFTED,
        Code::PlacedForeign => rows::FOREIGN,
        Code::PlacedTwice => rows::TWICE,
        Code::PlacedOutside => rows::OUTSIDE,
        Code::ReadUnwritten => rows::UNWRITTEN,
        Code::ReadFreed => rows::READ_FREED,
        Code::CacheWrongHit => rows::WRONG_HIT,
        Code::PageTwoOwners => pages::TWO_OWNERS,
        Code::PageFreedTwice => pages::FREED_TWICE,
        Code::PageFreedPart => pages::FREED_PART,
        Code::PageFreedInFlight => pages::FREED_IN_FLIGHT,
        Code::PageLeaked => pages::LEAKED,
        Code::CountDrift => pages::DRIFT,
        Code::ReserveExcess => requests::RESERVE_EXCESS,
        Code::ReserveShort => requests::RESERVE_SHORT,
        Code::ActivateEarly => requests::ACTIVATE_EARLY,
        Code::StallNoProgress => requests::STALL,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::finding::Named;
    use crate::scenario::file;

    #[test]
    fn every_code_has_a_file_that_expects_it() {
        for &code in Code::ALL {
            let name = code.example();
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
            let text = std::fs::read_to_string(path);
            let text = text.unwrap_or_else(|error| panic!("{name}: {error}"));
            let expect = file::parse(&text, name).unwrap().expect.unwrap();
            assert!(expect.findings.contains_key(&code), "{name}: {}", code.name());
        }
    }

    #[test]
    fn every_variant_that_does_harm_alone_explains_some_defect() {
        let named: BTreeSet<_> = Code::ALL
            .iter()
            .flat_map(|&code| causes::of_code(code))
            .map(|cause| (cause.switch, cause.variant))
            .collect();
        for (switch, variant) in [
            ("decode_prefix_cut", "padded_up"),
            ("decode_reservation", "by_physical_page"),
            ("destination_list", "sliced_by_chunk"),
            ("send_cut", "none"),
            ("source_offset", "pages_of_chunk"),
            ("source_offset", "pages_from_zero"),
            ("early_send", "launched"),
            ("early_send", "settled_rest_dropped"),
            ("empty_last", "dropped"),
            ("release_on_abort", "at_once"),
            ("release_on_abort", "timeout"),
            ("lock_on_match", "none"),
            ("duplicate_insert", "free_without_remap"),
            ("transfer_completion", "last_part_seen"),
            ("transfer_completion", "any_part"),
            ("next_step_demand", "tokens"),
            ("packing", "buffer_checked"),
            ("cache_key", "without_namespace"),
            ("cache_hash_unit", "physical_page"),
            ("chunk_hash", "own_tokens"),
            ("relayout", "none"),
            ("rows", "virtual_as_local"),
            ("source_length", "one_more"),
            ("capacity_unit", "rank_rows"),
            ("capacity_unit", "not_cut_to_pages"),
            ("free_segment", "any_start"),
            ("draft_rows", "by_target_list"),
            ("replicated_pool", "rows_and_one_page"),
        ] {
            assert!(named.contains(&(switch, variant)), "{switch} = {variant}");
        }
    }

    #[test]
    fn every_code_says_what_must_hold_what_breaks_it_and_what_to_check() {
        for &code in Code::ALL {
            let Explanation { holds, causes, checks } = explain(code);
            assert!(!causes.is_empty() && !checks.is_empty(), "{}", code.name());
            for text in [holds].iter().chain(causes).chain(checks) {
                assert!(text.ends_with('.') && !text.contains("  "), "{text}");
            }
        }
    }
}
