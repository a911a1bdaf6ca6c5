//! The *shape* of an error line: features of its numbers, by which causes are told apart.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::known::{KnownSizes, ends};
use super::line::Line;

/// Features of a line's numbers, with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shape(BTreeMap<String, String>);

impl Shape {
    fn set(&mut self, feature: &str, value: &str) {
        self.0.insert(feature.to_owned(), value.to_owned());
    }

    /// A list of `provided` pages of which `required` were needed, by a piece that ends `least`
    /// tokens after S or later.
    fn list(&mut self, known: &KnownSizes, required: i64, provided: i64, least: Option<i64>) {
        self.set("provided", if provided == 0 { "none" } else { "some" });
        self.set("gap", if required == provided + 1 { "one" } else { "more" });
        let (Some(pages), Some(rest), Some(least)) = (known.pages(), known.rest(), least) else {
            return;
        };
        let list = match provided - pages {
            ..-1 => "short",
            -1 => "one_short",
            0 => "right",
            1.. => "over",
        };
        self.set("list", list);
        self.set("need", if least <= rest { "within" } else { "beyond" });
        let is_full = known.virtual_page().is_some_and(|page| rest % page == 0);
        self.set("tail", if is_full { "full" } else { "partial" });
    }

    /// Whether every feature of `self` has the same value in `other`, or is absent there.
    pub(super) fn fits(&self, other: &Shape) -> bool {
        self.0.iter().all(|(feature, value)| other.0.get(feature) == Some(value))
    }
}

impl Line {
    /// The shape of this line, as far as can be told from what is known of the request.
    pub fn shape(self, known: &KnownSizes) -> Shape {
        let mut shape = Shape::default();
        match self {
            Line::Misaligned { virtual_page, prefix } => {
                let page = known.page_size.map(i64::from);
                let page = page.or(known.ranks.map(|ranks| virtual_page / i64::from(ranks)));
                if let Some(page) = page.filter(|&page| page > 0) {
                    shape.set(
                        "prefix",
                        if prefix % page == 0 { "whole_pages" } else { "inside_page" },
                    );
                }
            }
            Line::Source { tokens, capacity } => {
                let tokens = match tokens {
                    ..0 => "negative",
                    more if more == capacity + 1 => "one_more",
                    _ => "more",
                };
                shape.set("tokens", tokens);
            }
            Line::Shortage { required, provided, offset, rank } => {
                shape.set("piece", if offset == 0 { "first" } else { "later" });
                let ends = |(page, ranks)| ends(required, offset * page, rank, page, ranks);
                let least = known.sizes().map(|sizes| ends(sizes).0);
                shape.list(known, required, provided, least);
            }
            // No planner of the model counts from a list's end: no shape of the table is like it.
            Line::Index { index: ..0, .. } => shape.set("index", "negative"),
            Line::Index { index, size } => {
                let least = known.virtual_page().map(|virtual_page| index * virtual_page + 1);
                shape.list(known, index + 1, size, least);
            }
            Line::Peers(_) => {}
        }
        shape
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P = 4, N = 4: 67 tokens need 5 pages, too, but rank 3 has none of its tokens in the last
    /// one.
    #[test]
    fn a_piece_that_would_end_behind_the_prompt_needs_more_than_there_is() {
        let line = Line::Shortage { required: 5, provided: 4, offset: 2, rank: 3 };
        let need = |prompt| {
            let known = KnownSizes {
                page_size: Some(4),
                ranks: Some(4),
                prompt: Some(prompt),
                prefix: None,
            };
            line.shape(&known).0["need"].clone()
        };
        assert_eq!([64, 67, 68, 72].map(need), ["beyond", "beyond", "within", "within"]);
    }

    #[test]
    fn more_facts_make_a_shape_that_the_smaller_one_fits() {
        // P = 4, N = 4: 72 tokens need 5 pages of 16, the last of them partly.
        let line = Line::Shortage { required: 5, provided: 4, offset: 2, rank: 3 };
        let known =
            KnownSizes { page_size: Some(4), ranks: Some(4), prompt: Some(72), prefix: None };
        let (bare, whole) = (line.shape(&KnownSizes::default()), line.shape(&known));
        assert!(bare.fits(&whole) && !whole.fits(&bare));
        let value = |feature: &str| whole.0[feature].as_str();
        assert_eq!(
            ["list", "need", "tail", "gap", "provided", "piece"].map(value),
            ["one_short", "within", "partial", "one", "some", "later"]
        );
    }
}
