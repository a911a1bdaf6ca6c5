//! Descriptors: what the network is told to copy, after a plan's rows are grouped.
//!
//! A descriptor is a maximal run in which source and destination both advance by one row. Under
//! decode context parallelism the source strides by N, so most tokens are descriptors of their own;
//! not all, since rows can be neighbours across pages where P = 1 or N ≡ 1 mod P. A sender that
//! *packs* first gathers the rows into a contiguous buffer ([`crate::engine::sglang::packing`]):
//! then only the destination ends a run.

use crate::units::Row;

use super::plan::{RowPairs, RowRun, RunPlan};

/// One contiguous copy of `len` rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The first source row.
    pub src: Row,
    /// The first destination row.
    pub dst: Row,
    /// Rows, at least 1.
    pub len: u32,
}

/// How many descriptors a plan takes, without and with packing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DescriptorCount {
    /// Straight from the prefill pool.
    pub unpacked: u64,
    /// From a buffer that holds the rows in order.
    pub packed: u64,
}

/// The descriptors of a plan without packing, in order.
pub fn group(rows: &RowPairs) -> Vec<Descriptor> {
    let mut descriptors: Vec<Descriptor> = Vec::with_capacity(rows.src.len());
    for (&src, &dst) in rows.src.iter().zip(&rows.dst) {
        match descriptors.last_mut() {
            Some(last) if last.is_followed_by(src, dst) => last.len += 1,
            _ => descriptors.push(Descriptor { src, dst, len: 1 }),
        }
    }
    descriptors
}

impl Descriptor {
    /// Whether the pair is the next one of this descriptor. Widened, since a row past the last of
    /// 32 bits is nobody's neighbour.
    fn is_followed_by(&self, src: Row, dst: Row) -> bool {
        let ahead = |start: Row| u64::from(start.0) + u64::from(self.len);
        ahead(self.src) == u64::from(src.0) && ahead(self.dst) == u64::from(dst.0)
    }
}

impl DescriptorCount {
    /// Counts over the long form, token by token.
    pub fn of_rows(rows: &RowPairs) -> DescriptorCount {
        if rows.src.is_empty() {
            return DescriptorCount::default();
        }
        let pairs = rows.src.windows(2).zip(rows.dst.windows(2));
        let (unpacked, packed) = pairs.fold((1, 1), |(unpacked, packed), (src, dst)| {
            let dst_breaks = !follows(dst[0], dst[1]);
            let breaks = dst_breaks | !follows(src[0], src[1]);
            (unpacked + u64::from(breaks), packed + u64::from(dst_breaks))
        });
        DescriptorCount { unpacked, packed }
    }

    /// The same counts from the compact form, run by run.
    pub fn of_runs(plan: &RunPlan) -> DescriptorCount {
        let alone = plan.runs.iter().map(RowRun::descriptors).sum::<u64>();
        let mut count = DescriptorCount { unpacked: alone, packed: plan.runs.len() as u64 };
        for pair in plan.runs.windows(2) {
            let (src, dst) = pair[0].last();
            if follows(dst, pair[1].dst) {
                count.packed -= 1;
                count.unpacked -= u64::from(follows(src, pair[1].src));
            }
        }
        count
    }
}

impl RowRun {
    /// Descriptors of the run on its own, without packing.
    fn descriptors(&self) -> u64 {
        if self.src_step == 1 { 1 } else { u64::from(self.len) }
    }

    /// The last pair of the run.
    fn last(&self) -> (Row, Row) {
        self.at(self.len - 1)
    }
}

/// Whether `next` is the row after `row`.
fn follows(row: Row, next: Row) -> bool {
    row.0.wrapping_add(1) == next.0 && next.0 != 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::sglang::tests::laws::{cases, raw};
    use crate::engine::sglang::{Checked, Indexed};
    use crate::planner::{PlanInput, Planner, RawInput};

    fn rows(pairs: &[(u32, u32)]) -> RowPairs {
        let (src, dst) = pairs.iter().map(|&(src, dst)| (Row(src), Row(dst))).unzip();
        RowPairs { src, dst }
    }

    /// The definition: a new descriptor wherever the pair is not the last pair plus one.
    fn counted(rows: &RowPairs) -> DescriptorCount {
        let mut count = DescriptorCount::default();
        let mut last: Option<(u64, u64)> = None;
        for (src, dst) in rows.src.iter().zip(&rows.dst) {
            let (src, dst) = (u64::from(src.0), u64::from(dst.0));
            let src_goes_on = last.is_some_and(|last| last.0 + 1 == src);
            let dst_goes_on = last.is_some_and(|last| last.1 + 1 == dst);
            count.unpacked += u64::from(!(src_goes_on && dst_goes_on));
            count.packed += u64::from(!dst_goes_on);
            last = Some((src, dst));
        }
        count
    }

    #[test]
    fn a_descriptor_ends_where_either_side_jumps() {
        let plan = rows(&[(4, 10), (5, 11), (7, 12), (8, 20), (9, 21)]);
        let grouped = group(&plan);
        let ends: Vec<_> = grouped.iter().map(|one| (one.src.0, one.dst.0, one.len)).collect();
        assert_eq!(ends, [(4, 10, 2), (7, 12, 1), (8, 20, 2)]);
        let count = DescriptorCount { unpacked: 3, packed: 2 };
        assert_eq!(DescriptorCount::of_rows(&plan), count);
    }

    #[test]
    fn the_first_row_does_not_follow_the_last_of_32_bits() {
        let plan = rows(&[(u32::MAX, u32::MAX), (0, 0)]);
        assert_eq!(group(&plan).len(), 2);
        assert_eq!(DescriptorCount::of_rows(&plan), counted(&plan));
    }

    #[test]
    fn an_empty_plan_takes_no_descriptor() {
        assert_eq!(DescriptorCount::of_rows(&RowPairs::default()), DescriptorCount::default());
        assert_eq!(DescriptorCount::of_runs(&RunPlan::default()), DescriptorCount::default());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn runs_rows_and_list_give_the_same_count(case in cases()) {
            let input = PlanInput::try_from(&raw(&case)).unwrap();
            let mut plans = Vec::new();
            if let Ok(long) = Checked.plan(&input) {
                plans.push((long.target, Checked.plan_runs(&input).unwrap()));
            }
            if let Ok(long) = Indexed.plan(&input) {
                plans.push((long.draft.unwrap(), Indexed.draft_runs(&input).unwrap().unwrap()));
            }
            for (long, compact) in plans {
                let count = counted(&long);
                prop_assert_eq!(DescriptorCount::of_rows(&long), count);
                prop_assert_eq!(DescriptorCount::of_runs(&compact), count);
                prop_assert_eq!(compact.expand(), long.clone());
                let list = group(&long);
                prop_assert_eq!(list.len() as u64, count.unpacked);
                let expanded = list.iter().flat_map(|one| {
                    (0..one.len).map(|at| (Row(one.src.0 + at), Row(one.dst.0 + at)))
                });
                let (src, dst) = expanded.unzip();
                prop_assert_eq!(RowPairs { src, dst }, long);
            }
        }
    }

    #[test]
    fn strided_rows_can_be_neighbours_across_pages() {
        let raw = RawInput {
            page_size: 1,
            dcp_size: 2,
            dcp_rank: 0,
            src_page_offset: 0,
            decode_prefix_len: 0,
            num_kv_tokens: None,
            src_pages: vec![5, 9, 6, 8, 7],
            dst_pages: vec![1, 2, 3],
        };
        let input = PlanInput::try_from(&raw).unwrap();
        let count = DescriptorCount { unpacked: 1, packed: 1 };
        assert_eq!(DescriptorCount::of_rows(&Checked.plan(&input).unwrap().target), count);
        assert_eq!(DescriptorCount::of_runs(&Checked.plan_runs(&input).unwrap()), count);
    }
}
