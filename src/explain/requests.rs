//! Requests: what is reserved for them, when they begin, and that they end.

use super::Explanation;

pub(super) const CAPACITY_WRONG: Explanation = Explanation {
    holds: "A request is let in exactly if empty pools could serve it.",
    causes: &[
        "Capacity is compared in two units, such as the tokens of a request over all ranks with the \
         rows of one rank's pool: N times too strict.",
        "A pool's rows are not cut down to whole pages before they are counted.",
    ],
    checks: &[
        "Try the largest prompt that fits and one token more: the first must be served, the second \
         refused at once.",
    ],
};

pub(super) const RESERVE_EXCESS: Explanation = Explanation {
    holds: "Decode reserves ceil(L / V) - floor(hit / V) virtual pages for a prompt, and no more.",
    causes: &["The prompt is divided by P instead of V: N times as many pages as it needs."],
    checks: &[
        "Nothing fails: the pool is full at 1/N of its load. Compare reserved pages with ceil(L / V) \
         for a prompt of many pages.",
    ],
};

pub(super) const RESERVE_SHORT: Explanation = Explanation {
    holds: "Decode reserves ceil(L / V) - floor(hit / V) virtual pages for a prompt, and no fewer.",
    causes: &[
        "The division rounds down: short whenever the last page is partial.",
        "An estimate of one page less where the prompt fills its pages exactly.",
        "The hit that is subtracted is rounded up.",
    ],
    checks: &[
        "Try prompts of kV - 1, kV and kV + 1 tokens: which of them is short names the rounding.",
        "The planner refuses next (refused.shortfall, or refused.index), though perhaps on one rank \
         only.",
    ],
};

pub(super) const ACTIVATE_EARLY: Explanation = Explanation {
    holds: "Decode activates a request when every part of every piece has landed on every rank, and \
            the last piece is out.",
    causes: &[
        "The first part that arrives is taken for the whole.",
        "The last piece overtakes an earlier one, and its arrival is taken for the end.",
    ],
    checks: &[
        "Count parts: pieces times ranks, empty ones included. Complete at the count, not at a flag.",
        "Reorder copies in a test (link.delay_every, link.delay_ticks): a flag fails, a count does \
         not.",
    ],
};

pub(super) const STALL: Explanation = Explanation {
    holds: "Every request ends: finished, failed or aborted.",
    causes: &[
        "An empty last message is left out: decode waits for its metadata after a full hit, or for \
         a rank that owns no token.",
        "More is reserved than the admission check counted, or than an empty pool can hold.",
        "A running request needs a page that nobody counted, and nobody is retracted.",
        "Pages that leaked, or locks that were never released, leave no room for who waits.",
    ],
    checks: &[
        "See in which state the request waits and for what: pages, a message, or a copy.",
        "For the last message: a full hit (S = L) and L = S + 1 are the two prompts to try.",
        "Evidence tells a run that came to rest from one that reached its event bound: the first \
         waits, the second goes round in circles.",
    ],
};
