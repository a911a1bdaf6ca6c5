//! What a user knows of a refused request besides its error line, and the arithmetic of pages on
//! such numbers.

/// What is known of the request besides its error line: all in tokens but the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownSizes {
    /// P.
    pub page_size: Option<u32>,
    /// N.
    pub ranks: Option<u32>,
    /// L.
    pub prompt: Option<u32>,
    /// S; 0 where it is left out.
    pub prefix: Option<u32>,
}

impl KnownSizes {
    /// P and N, if both are known.
    pub(super) fn sizes(&self) -> Option<(i64, i64)> {
        Some((self.page_size?.into(), self.ranks?.into()))
    }

    /// P·N, if both are known.
    pub(super) fn virtual_page(&self) -> Option<i64> {
        self.sizes().map(|(page, ranks)| page * ranks)
    }

    pub(super) fn prefix(&self) -> i64 {
        self.prefix.map_or(0, i64::from)
    }

    /// L − S, if the prompt is known.
    pub(super) fn rest(&self) -> Option<i64> {
        Some(i64::from(self.prompt?) - self.prefix())
    }

    /// The command's options that were left out.
    pub(super) fn missing(&self) -> String {
        let options = [
            ("--page-size", self.page_size),
            ("--dcp-size", self.ranks),
            ("--prompt", self.prompt),
            ("--prefix", self.prefix),
        ];
        let missing: Vec<&str> =
            options.iter().filter(|(_, fact)| fact.is_none()).map(|&(name, _)| name).collect();
        missing.join(", ")
    }

    /// S in words.
    pub(super) fn prefix_said(&self) -> String {
        match self.prefix {
            Some(prefix) => format!("S = {prefix}"),
            None => "S = 0, as no --prefix is given".to_owned(),
        }
    }

    /// Destination pages that the request needs from S on: ceil((L − S) / V).
    pub(super) fn pages(&self) -> Option<i64> {
        Some(ceil(self.rest()?.max(0), self.virtual_page()?))
    }
}

/// The quotient rounded up; both must not be negative.
pub(super) fn ceil(tokens: i64, page: i64) -> i64 {
    (tokens + page - 1) / page
}

/// The last token, counted from S, that `rank` has in the first `pages` virtual pages: it owns
/// every N-th one.
pub(super) fn own_last(pages: i64, rank: i64, page: i64, ranks: i64) -> i64 {
    pages * page * ranks - ranks + rank
}

/// Where a piece can end, in tokens after S, behind `sent` of them, of which `rank` has its last
/// one in the last of `required` pages: behind the page's first token of this rank, and not behind
/// the next page's.
pub(super) fn ends(required: i64, sent: i64, rank: i64, page: i64, ranks: i64) -> (i64, i64) {
    let first = own(((required - 1) * page * ranks).max(sent), rank, ranks);
    (first + 1, own_last(required, rank, page, ranks) + ranks)
}

/// The first token of `rank` at or after `token`, both counted from S.
pub(super) fn own(token: i64, rank: i64, ranks: i64) -> i64 {
    token + (rank - token).rem_euclid(ranks)
}
