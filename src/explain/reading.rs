//! What the numbers of an error line mean: what must hold between them, which tokens can have led
//! to them, and how many pages would have been right.
//!
//! Everything here follows from the definition of the rows; the page of [`crate::planner`] has it.

use serde::Serialize;

use super::known::{KnownSizes, ceil, ends, own};
use super::line::Line;

/// A line in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// What must hold between the numbers, and where it does not.
    pub holds: Vec<String>,
    /// Which tokens can have led to it.
    pub tokens: Vec<String>,
    /// How many pages would have been right.
    pub pages: Vec<String>,
}

impl Line {
    /// What its numbers mean, as far as can be told from what is known of the request.
    pub fn reading(self, known: &KnownSizes) -> Reading {
        match self {
            Line::Misaligned { virtual_page, prefix } => misaligned(virtual_page, prefix, known),
            Line::Source { tokens, capacity } => source(tokens, capacity, known),
            Line::Shortage { required, provided, offset, rank } => {
                shortage(required, provided, (offset, rank), known)
            }
            Line::Index { index: index @ ..0, size } => before_the_first(index, size),
            Line::Index { index, size } => out_of_bounds(index, size, known),
            Line::Peers(_) => Reading::default(),
        }
    }
}

fn misaligned(virtual_page: i64, prefix: i64, known: &KnownSizes) -> Reading {
    let over = prefix % virtual_page;
    let cut = prefix - over;
    let mut reading = Reading {
        holds: vec![format!("S mod V = 0; here {prefix} mod {virtual_page} = {over}.")],
        tokens: vec![format!(
            "Decode has positions 0 to {}; the last {over} of them lie inside a virtual page. S may be \
             {cut}, and the piece then begins at position {cut}.",
            prefix - 1
        )],
        pages: Vec::new(),
    };
    let page = known.page_size.map(i64::from);
    if let Some(page) = page.or(known.ranks.map(|ranks| virtual_page / i64::from(ranks)))
        && page > 0
    {
        reading.holds.push(match prefix % page {
            0 => format!("S is a multiple of P = {page}: the hit was counted in physical pages."),
            rest => {
                format!("S is no multiple of P = {page} either ({rest} over): counted in tokens.")
            }
        });
    }
    reading.pages.push(match known.prompt.map(i64::from).filter(|&prompt| prompt >= cut) {
        Some(prompt) => format!(
            "From S = {cut} on, ceil(({prompt} - {cut}) / {virtual_page}) = {} destination pages.",
            ceil(prompt - cut, virtual_page)
        ),
        None => format!("From S = {cut} on, ceil((L - {cut}) / {virtual_page}) destination pages."),
    });
    reading
}

fn source(tokens: i64, capacity: i64, known: &KnownSizes) -> Reading {
    let mut reading = Reading::default();
    reading.holds.push(format!("0 <= n <= source pages * P; here n = {tokens} of {capacity}."));
    if tokens < 0 {
        let past = -tokens;
        reading.tokens.push(format!(
            "S lies {past} tokens past the end of what is sent: n = end - S - off * P is negative."
        ));
        if let Some(prompt) = known.prompt {
            reading.tokens.push(format!(
                "With off = 0 and L = {prompt} that is S = {}, and a prefix cannot be longer than its \
                 prompt.",
                i64::from(prompt) + past
            ));
        }
        reading.pages.push("None: nothing is left to send from such an S on.".to_owned());
        return reading;
    }
    let more = tokens - capacity;
    reading.tokens.push(match capacity {
        0 => format!("There are no source pages; none of {tokens} tokens has one."),
        _ => format!(
            "The source pages hold the piece's tokens 0 to {}; the last {more} of {tokens} have no \
             page.",
            capacity - 1
        ),
    });
    reading.pages.push(match known.page_size.map(i64::from) {
        Some(page) => format!(
            "{} source pages were given; ceil({tokens} / {page}) = {} hold {tokens} tokens.",
            capacity / page,
            ceil(tokens, page)
        ),
        None => format!("ceil({tokens} / P) source pages; capacity / P were given."),
    });
    reading
}

fn shortage(
    required: i64,
    provided: i64,
    (offset, rank): (i64, i64),
    known: &KnownSizes,
) -> Reading {
    let mut reading = Reading::default();
    let list = match provided {
        0 => "the list is empty".to_owned(),
        pages => format!("the list ends with ordinal {}", pages - 1),
    };
    reading.holds.push(format!(
        "Every page ordinal is below the list's length: rank {rank} needs ordinals up to {}, {list}. \
         The list counts from S on, for the whole request.",
        required - 1
    ));
    reading
        .holds
        .push("off counts the source pages sent since S, so that off * P + n <= L - S.".to_owned());
    let Some((page, ranks)) = known.sizes() else {
        reading.tokens.push(format!(
            "The rank's last token q, counted from S, has q div V = {}: off * P + n is from {} * V + {} \
             to {required} * V + {rank} (give {} for numbers).",
            required - 1,
            required - 1,
            rank + 1,
            known.missing()
        ));
        reading
            .pages
            .push(format!("At least {required}; give {} for the request's own.", known.missing()));
        return reading;
    };
    let virtual_page = page * ranks;
    let sent = offset * page;
    let (least, most) = ends(required, sent, rank, page, ranks);
    // No piece of a request within its prompt ends behind that.
    let most = known.rest().filter(|&rest| rest >= least).map_or(most, |rest| rest.min(most));
    reading.tokens.push(format!(
        "off * P = {sent} tokens went before. The piece ends {} tokens after S: n is {}.",
        span(least, most),
        span(least - sent, most - sent)
    ));
    let first = own((provided * virtual_page).max(sent), rank, ranks);
    reading.tokens.push(format!(
        "The rank's first token without a page is the one {first} after S, position {} ({}).",
        known.prefix() + first,
        known.prefix_said()
    ));
    let all = match most > required * virtual_page {
        true => format!("{required} or {}", required + 1),
        false => required.to_string(),
    };
    reading.pages.push(format!(
        "For this piece on all ranks: ceil((off * P + n) / V) = {all} of V = {virtual_page}."
    ));
    whole_request(&mut reading, least, provided, known);
    reading
}

fn span(from: i64, to: i64) -> String {
    if from == to { from.to_string() } else { format!("{from} to {to}") }
}

/// The pages of the whole request against the list; the piece ends at least `least` tokens after S.
fn whole_request(reading: &mut Reading, least: i64, provided: i64, known: &KnownSizes) {
    let (Some(pages), Some(rest)) = (known.pages(), known.rest()) else {
        let missing = known.missing();
        reading.pages.push(format!("Give {missing} for the request's own number."));
        return;
    };
    let verdict = match provided - pages {
        less @ ..0 => format!("{} too few were in the list", -less),
        0 => "as many were in the list".to_owned(),
        more => format!("{more} more were in the list"),
    };
    reading.pages.push(format!(
        "For the whole request: ceil((L - S) / V) = ceil({rest} / {}) = {pages} ({}); {verdict}.",
        known.virtual_page().unwrap_or(1),
        known.prefix_said()
    ));
    reading.pages.push(match least <= rest {
        true => "The piece need not end behind the request: the list is what is short.".to_owned(),
        false => format!(
            "The piece ends behind the request, which has {rest} tokens after S: off or n is wrong."
        ),
    });
}

fn before_the_first(index: i64, size: i64) -> Reading {
    let list = match size {
        0 => "the list is empty".to_owned(),
        _ => format!("the list has {size} entries"),
    };
    Reading {
        holds: vec![format!(
            "A negative index counts from the list's end; {index} counts to before its beginning, since \
             {list}."
        )],
        tokens: vec![
            "A page ordinal is negative where off or S is: off * P + i < 0, or a count has run below 0."
                .to_owned(),
            "On a list that is long enough the same ordinal raises nothing: it reads or writes the \
             list's last pages, which is wrong KV without an error."
                .to_owned(),
        ],
        pages: vec![format!(
            "With {} entries or more this line would not have come.",
            index.unsigned_abs()
        )],
    }
}

fn out_of_bounds(index: i64, size: i64, known: &KnownSizes) -> Reading {
    let mut reading = Reading::default();
    reading.holds.push(format!(
        "Every index is below its list's length; {index} is not below {size}. The text does not say \
         whether the list holds source or destination pages: compare {size} with the lengths of both."
    ));
    if index == size {
        reading.holds.push(format!(
            "{index} is one past the end of a list of {size} pages: it is short by at least one page."
        ));
    }
    let (page, virtual_page) = (known.page_size.map(i64::from), known.virtual_page());
    let from = |name: &str, unit: Option<i64>| match unit {
        Some(unit) => format!("{}", index * unit),
        None => format!("{index} * {name}"),
    };
    reading.tokens.push(format!(
        "If it is the source list: a token i of the piece with i div P = {index}, so n is above {}.",
        from("P", page)
    ));
    reading.tokens.push(format!(
        "If it is the destination list: a token q after S with q div V = {index}, so off * P + n is above \
         {}{}.",
        from("V", virtual_page),
        if index > size { ", and the whole piece lies behind the list's end" } else { "" }
    ));
    reading.tokens.push(
        "The draft rows are laid out on every rank, so it can be another rank's token.".to_owned(),
    );
    reading.pages.push(format!("At least {} in that list.", index + 1));
    let least = index * virtual_page.unwrap_or(1) + 1;
    whole_request(&mut reading, least, size, known);
    reading
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::sglang::Checked;
    use crate::layout::Layout;
    use crate::planner::{Piece, PlanInput, Planner, Refusal};
    use crate::units::{PageId, Pages, Rank, Tokens};

    /// Every n that makes the checked planner say this.
    fn said_for(
        page: u32,
        ranks: u32,
        rank: u32,
        offset: u32,
        required: u64,
        provided: u32,
    ) -> Vec<i64> {
        let layout = Layout::striped(page, ranks).unwrap();
        let src: Vec<PageId> = (1..100).map(PageId).collect();
        let dst: Vec<PageId> = (1..=provided).map(PageId).collect();
        let says = |&n: &i64| {
            let piece = Piece {
                src_page_offset: Pages(offset),
                decode_prefix_len: Tokens(0),
                num_kv_tokens: Some(n),
            };
            let input = PlanInput::new(layout, Rank(rank), piece, &src, &dst).unwrap();
            let refused = Checked.check(&input).err();
            matches!(refused, Some(Refusal::Shortage { required: said, .. }) if said == required)
        };
        (1..i64::from(99 * page)).filter(says).collect()
    }

    #[test]
    fn the_span_of_tokens_is_the_one_for_which_the_planner_says_so() {
        for (page, ranks, rank, offset, required, provided) in [
            (4, 2, 0, 0, 2, 1),
            (4, 2, 1, 0, 2, 1),
            (2, 3, 2, 5, 4, 0),
            (4, 4, 3, 2, 5, 4),
            (1, 2, 1, 3, 3, 2),
            // Pieces that begin inside the page.
            (4, 2, 1, 1, 1, 0),
            (2, 3, 0, 1, 1, 0),
            (2, 3, 2, 2, 1, 0),
        ] {
            let known =
                KnownSizes { page_size: Some(page), ranks: Some(ranks), ..KnownSizes::default() };
            let line = Line::Shortage {
                required: required as i64,
                provided: i64::from(provided),
                offset: i64::from(offset),
                rank: i64::from(rank),
            };
            let tokens = said_for(page, ranks, rank, offset, required, provided);
            let (from, to) = (tokens[0], tokens[tokens.len() - 1]);
            assert_eq!(tokens.len() as i64, to - from + 1, "no gaps");
            let span = match from == to {
                true => format!("n is {from}."),
                false => format!("n is {from} to {to}."),
            };
            let reading = line.reading(&known);
            assert!(reading.tokens[0].ends_with(&span), "{span} in {:?}", reading.tokens);
        }
    }

    #[test]
    fn the_right_number_of_pages_is_the_ceiling() {
        // P = 4, N = 2, 9 tokens: two virtual pages.
        let known =
            KnownSizes { page_size: Some(4), ranks: Some(2), prompt: Some(9), prefix: None };
        let line = Line::Shortage { required: 2, provided: 1, offset: 0, rank: 0 };
        let pages = line.reading(&known).pages.join(" ");
        assert!(
            pages.contains("ceil(9 / 8) = 2 (S = 0, as no --prefix is given); 1 too few"),
            "{pages}"
        );
        assert!(pages.contains("the list is what is short"), "{pages}");
        // Rank 3 of 4 has no token of 65 to 67 in the fifth page of 16; of 72 it has one, and n
        // ends there.
        let line = Line::Shortage { required: 5, provided: 4, offset: 2, rank: 3 };
        let known = |prompt| KnownSizes {
            page_size: Some(4),
            ranks: Some(4),
            prompt: Some(prompt),
            prefix: Some(0),
        };
        let pages = line.reading(&known(67)).pages.join(" ");
        assert!(pages.contains("off or n is wrong"), "{pages}");
        let Reading { tokens, pages, .. } = line.reading(&known(72));
        assert!(tokens[0].ends_with("n is 60 to 64."), "{tokens:?}");
        assert!(pages[0].contains("= 5 of V = 16"), "{pages:?}");
        // Counted from position 0, the piece asks for a page that no token of the request needs.
        let beyond = Line::Shortage { required: 3, provided: 2, offset: 4, rank: 0 };
        let known =
            KnownSizes { page_size: Some(4), ranks: Some(2), prompt: Some(9), prefix: None };
        let pages = beyond.reading(&known).pages.join(" ");
        assert!(pages.contains("off or n is wrong"), "{pages}");
    }

    #[test]
    fn a_prefix_is_cut_down_and_never_up() {
        let known = KnownSizes { ranks: Some(4), prompt: Some(1_000), ..KnownSizes::default() };
        let reading = Line::Misaligned { virtual_page: 256, prefix: 320 }.reading(&known);
        assert!(reading.holds[1].contains("multiple of P = 64"), "{:?}", reading.holds);
        // 744 tokens from 256 on: three pages of 256.
        assert!(reading.pages[0].ends_with("= 3 destination pages."), "{:?}", reading.pages);
    }
}
