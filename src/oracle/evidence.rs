//! What a finding says of a row.

use super::ownership::Owner;
use crate::memory::Stamp;
use crate::prompt::Texts;
use crate::units::PageId;

/// Rows of `page` that the writer does not own.
pub(super) fn rows_of_another(page: PageId, owner: Owner) -> String {
    format!("rows of page {page}, owned by {owner:?}")
}

/// What a row holds, and who brought it there.
pub(super) fn describe(held: Option<Stamp>, texts: &Texts) -> String {
    let Some(stamp) = held else { return "nothing ever written".to_owned() };
    let token = token(&stamp, texts);
    let Stamp { text, written, writer, .. } = stamp;
    match writer == text {
        true => format!("{token}, written at tick {written}"),
        false => format!("{token}, copied for request {writer} at tick {written}"),
    }
}

/// What a copy read, and who wrote that.
pub(super) fn describe_source(read: Option<Stamp>, texts: &Texts) -> String {
    // A row that was read is stamped for the reader. At its source it is of who computed it.
    describe(read.map(|stamp| Stamp { writer: stamp.text, ..stamp }), texts)
}

/// Which token of whom, by the names that a scenario has for them.
fn token(stamp: &Stamp, texts: &Texts) -> String {
    let &Stamp { text, position, .. } = stamp;
    let token = texts.get(text).and_then(|text| text.token_at(position));
    let (content, place) = token.expect("rows are written of requests that have arrived");
    match content.is_own() {
        true => format!("position {position} of request {text}, content of its own"),
        false => {
            format!("position {position} of request {text}, token {place} of content {}", content.0)
        }
    }
}
