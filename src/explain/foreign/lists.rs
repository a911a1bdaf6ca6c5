//! Lists of unequal length that were to be paired one by one.

use super::{ForeignText, Says, Writer};
use crate::explain::known::KnownSizes;
use crate::finding::Code;

pub(super) const ALL: &[ForeignText] = &[
    ForeignText {
        form: "group_concurrent_contiguous requires equal-length src/dst index arrays, got {a} \
               and {b}",
        patterns: &[
            "group_concurrent_contiguous requires equal length ? .. got {a} and {b}",
            "requires equal length src dst index arrays ? got {a} and {b}",
        ],
        writer: Writer {
            engine: Some("sglang"),
            part: "what joins pairs of pages into blocks to copy, for every transfer backend",
        },
        meaning: "Source and destination pages were paired as they stand, and there is not one for \
                  one. Nothing of this piece was copied.",
        says: |found, known| unequal(found.number("a"), found.number("b"), known),
    },
    ForeignText {
        form: "operands could not be broadcast together with shapes {a} {b}",
        patterns: &[
            "operands could not be broadcast together ? with shape|shapes {a~} {b~}",
            "shape mismatch objects cannot be broadcast to a single shape ? .. with shape {a~} .. \
             with shape {b~}",
        ],
        writer: Writer {
            engine: None,
            part: "numpy; in sglang before its own check, and in vllm-ascend, where lists of source \
                   and destination pages are compared",
        },
        meaning: "Two arrays were to be used element by element and are not of one length: of a \
                  transfer, its source and its destination pages.",
        says: |found, known| unequal(found.length("a"), found.length("b"), known),
    },
    ForeignText {
        form: "could not broadcast input array from shape {a} into shape {b}",
        patterns: &["could not broadcast input array ? from shape {a~} into shape {b~}"],
        writer: Writer { engine: None, part: "numpy; where a block table or page list is filled" },
        meaning: "A list was to be stored in a slice that has not its length: a table is too narrow, \
                  or a list too long.",
        says: |found, known| unequal(found.length("a"), found.length("b"), known),
    },
    ForeignText {
        form: "shape mismatch: value tensor of shape {a} cannot be broadcast to indexing result of \
               shape {b}",
        patterns: &[
            "shape mismatch value tensor of shape {a~} cannot be broadcast to indexing result of \
             shape {b~}",
        ],
        writer: Writer {
            engine: None,
            part: "torch; where received KV is stored by a list of rows",
        },
        meaning: "So many rows were received and so many are named to store them in: the two sides \
                  count the request's tokens, or its cached prefix, differently.",
        says: |found, known| match (differing(found.word("a")), differing(found.word("b"))) {
            (Some(a), Some(b)) => {
                let pair = a.into_iter().zip(b).find(|(a, b)| a != b);
                unequal(pair.map(|(a, _)| a), pair.map(|(_, b)| b), known)
            }
            _ => unequal(None, None, known),
        },
    },
    ForeignText {
        form: "The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton \
               dimension {dimension}",
        patterns: &[
            "size of tensor a {a} must match the size of tensor b {b} ? at non singleton dimension \
             {dimension}",
            "expanded size of the tensor {a} must match the existing size {b} ? at non singleton \
             dimension {dimension}",
        ],
        writer: Writer { engine: None, part: "torch; where lists or tables are combined" },
        meaning: "Two tensors were to be used element by element and are not of one length: page \
                  lists, or block tables of different widths.",
        says: |found, known| unequal(found.number("a"), found.number("b"), known),
    },
    ForeignText {
        form: "len(chunked_dst_kv_indice) = {b}, len(kv_chunk.prefill_kv_indices) = {a}",
        patterns: &[
            "len chunked_dst_kv_indice {b} len kv_chunk prefill_kv_indices {a}",
            "len prefill_state_indices {a} len dst_state_indices {b}",
        ],
        writer: Writer {
            engine: Some("sglang"),
            part: "the sender, as a warning: with N = 1 it goes on with the shorter list",
        },
        meaning: "The destination list is not as long as the source list. With one rank the longer is \
                  cut and the transfer goes on: what was cut off never arrives, and no error is \
                  raised.",
        says: |found, known| {
            let mut says = unequal(found.number("a"), found.number("b"), known);
            says.codes = vec![Code::PlacedMissing];
            says.checks.insert(
                0,
                "Treat it as an error: the request's text is wrong from there on.".to_owned(),
            );
            says
        },
    },
];

/// The numbers of a shape.
fn differing(shape: Option<&str>) -> Option<Vec<i128>> {
    shape?.split(',').map(|part| part.trim().parse().ok()).collect()
}

/// What a source list of `a` and a destination list of `b` pages say.
fn unequal(a: Option<i128>, b: Option<i128>, known: &KnownSizes) -> Says {
    let mut says = Says {
        codes: vec![Code::PlacedMissing, Code::PlacedShifted, Code::RefusedShortfall],
        checks: vec![
            "Print both lists with the prompt's length L, S, and the piece's offset: the source list \
             should have ceil(n / P) pages, the destination list, which is the whole request's, \
             ceil((L - S) / V)."
                .to_owned(),
        ],
        ..Says::default()
    };
    let (Some(a), Some(b)) = (a, b) else {
        says.numbers.push("The lengths cannot be read as those of two lists.".to_owned());
        says.behaviours = &[("relayout", "none"), ("destination_list", "sliced_by_chunk")];
        return says;
    };
    match (a, b) {
        (_, 0) => empty(a, "second", "destination", &mut says),
        (0, _) => empty(b, "first", "source", &mut says),
        (a, b) if a == b => {
            says.numbers.push(format!("Both have {a}: these numbers give no such error."));
        }
        (a, b) => ratio(a, b, known, &mut says),
    }
    says
}

/// One list has `other` pages, and the one that is called so none.
fn empty(other: i128, which: &str, side: &str, says: &mut Says) {
    says.numbers.push(format!(
        "The {which} list is empty, the other has {other}: unequal lists, of lengths {other} and 0."
    ));
    if side == "destination" {
        says.numbers.push(
            "If the lists are source and destination, a slice of the destination list is empty. That is \
             what a list of virtual pages gives that is sliced by the chunk's physical page numbers, \
             which lie N times further on (H01)."
                .to_owned(),
        );
        says.behaviours = &[("destination_list", "sliced_by_chunk")];
        says.codes = vec![Code::RefusedShortfall, Code::RefusedIndex];
        says.commands = vec![
            "kvseam run sims/hazards/h01-sliced-list.toml".to_owned(),
            "kvseam run sims/hazards/h01-sliced-list-large.toml".to_owned(),
        ];
    } else {
        says.behaviours = &[("destination_list", "sliced_by_chunk"), ("relayout", "none")];
    }
    says.checks.push(
        "One side may have registered nothing of this kind (a state or draft pool): compare what both \
         register at start."
            .to_owned(),
    );
}

/// Ranks that a ratio may stand for.
const RANKS: std::ops::RangeInclusive<i128> = 2..=256;

/// Lists of `a` and `b` pages, neither empty.
fn ratio(a: i128, b: i128, known: &KnownSizes, says: &mut Says) {
    let (more, fewer) = (a.max(b), a.min(b));
    says.numbers.push(format!("Unequal lists: the first has {a}, the second {b}."));
    let ranks: Vec<i128> = RANKS
        .filter(|ranks| more.div_euclid(*ranks) + i128::from(more % ranks != 0) == fewer)
        .collect();
    let span = match ranks.as_slice() {
        [] => None,
        [only] => Some(only.to_string()),
        [first, .., last] => Some(format!("{first} to {last}")),
    };
    if let Some(span) = span {
        let wanted = known.ranks.map(i128::from);
        says.numbers.push(format!(
            "{more} / {fewer} is about {}.{} = V / P: ceil({more} / N) = {fewer} for N = {span}. The \
             longer list counts physical pages of P tokens, the shorter virtual pages of V = P * N{}.",
            more / fewer,
            more * 10 / fewer % 10,
            match wanted {
                Some(ranks_given) if ranks.contains(&ranks_given) => format!(", as N = {ranks_given} gives"),
                Some(ranks_given) => format!("; but N = {ranks_given} was given, which does not"),
                None => String::new(),
            }
        ));
        says.numbers.push(
            "So source and destination pages were paired without laying rows out for each rank (H02). \
             Where the lists happen to be equally long, the same mistake is silent."
                .to_owned(),
        );
        says.behaviours = &[("relayout", "none"), ("destination_list", "sliced_by_chunk")];
        says.codes = vec![Code::PlacedMissing, Code::PlacedShifted, Code::PlacedOutside];
        says.commands = vec!["kvseam run sims/hazards/h02-pages-as-they-stand.toml".to_owned()];
    } else {
        says.behaviours = &[
            ("source_length", "one_more"),
            ("decode_reservation", "floor"),
            ("decode_reservation", "one_short"),
            ("source_offset", "pages_from_zero"),
            ("destination_list", "sliced_by_chunk"),
        ];
        says.codes = vec![Code::RefusedShortfall, Code::RefusedIndex, Code::RefusedSource];
        says.commands = vec!["kvseam run sims/hazards/h12-one-token-more.toml".to_owned()];
    }
    if more - fewer == 1 {
        says.numbers.push(
            "They differ by one page: one token more on one side where the prompt fills its pages (H12), \
             or a reservation rounded down (H11)."
                .to_owned(),
        );
    }
}
