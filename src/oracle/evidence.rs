//! What a finding says of a row.

use super::ownership::Owner;
use crate::memory::Stamp;
use crate::prompt::Texts;
use crate::units::PageId;

/// Rows of `page` that the writer does not own.
pub(super) fn rows_of_another(page: PageId, owner: Owner) -> String {
    format!("rows of page {page}, owned by {owner:?}")
}

/// What a row holds.
pub(super) fn describe(held: Option<Stamp>, texts: &Texts) -> String {
    match held {
        Some(stamp) => {
            let chain = stamp.chain(texts).expect("rows are written of requests that have arrived");
            format!(
                "position {} of history {}, written for request {} at tick {}",
                stamp.position, chain.0, stamp.writer, stamp.written
            )
        }
        None => "nothing ever written".to_owned(),
    }
}
