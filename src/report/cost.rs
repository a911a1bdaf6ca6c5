//! What a configuration costs, whether or not it fails: amounts of one thing for each of another.

use crate::finding::Metric;

/// One kind of cost, in one or more variants.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Name of its files.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// What the numbers count.
    pub unit: &'static str,
    /// What a ratio of metrics is multiplied with for that unit.
    pub scale: f64,
    /// Whether it is a share, shown as per cent.
    pub is_share: bool,
    /// The variants.
    pub bars: &'static [Bar],
}

/// All of one metric for all of another.
#[derive(Clone, Copy, Debug)]
pub struct Bar {
    /// What it is among the variants.
    pub name: &'static str,
    /// What is counted.
    pub of: Metric,
    /// What it is counted for.
    pub per: Metric,
}

const fn bar(name: &'static str, of: Metric, per: Metric) -> Bar {
    Bar { name, of, per }
}

/// Every kind of cost.
pub const MEASURES: [Measure; 5] = [
    Measure {
        name: "descriptors",
        title: "Network descriptors",
        unit: "descriptors a thousand tokens sent",
        scale: 1_000.0,
        is_share: false,
        bars: &[
            bar("if all copies were packed", Metric::DescriptorsPacked, Metric::SentTokens),
            bar("if none were packed", Metric::DescriptorsUnpacked, Metric::SentTokens),
        ],
    },
    Measure {
        name: "hit-rate",
        title: "Prefix hits",
        unit: "per cent of prompt tokens found in the cache",
        scale: 1.0,
        is_share: true,
        bars: &[
            bar("prefill cache", Metric::PrefillHitTokens, Metric::PromptTokens),
            bar("decode cache, as reported", Metric::DecodeHitTokens, Metric::PromptTokens),
        ],
    },
    Measure {
        name: "evictions",
        title: "Evictions",
        unit: "pages evicted a request",
        scale: 1.0,
        is_share: false,
        bars: &[
            bar("prefill, physical pages", Metric::EvictedPrefillPages, Metric::Requests),
            bar("decode, virtual pages", Metric::EvictedDecodePages, Metric::Requests),
        ],
    },
    Measure {
        name: "retractions",
        title: "Retractions",
        unit: "running requests retracted, per thousand requests",
        scale: 1_000.0,
        is_share: false,
        bars: &[bar("retractions", Metric::Retractions, Metric::Requests)],
    },
    Measure {
        name: "waiting",
        title: "Waiting time",
        unit: "ms from arrival to the first prefill step, mean",
        // A tick is a microsecond.
        scale: 0.001,
        is_share: false,
        bars: &[bar("waiting", Metric::WaitTicks, Metric::Requests)],
    },
];
