//! Pages: who owns them, and whether the books agree.

use super::Explanation;

pub(super) const TWO_OWNERS: Explanation = Explanation {
    holds: "Every page has one owner at any time: the free list, the cache, or one request.",
    causes: &[
        "A page was freed twice, entered the free list twice, and was handed out twice.",
        "Pages that were found in the tree already are freed, while the request goes on using them.",
        "Matched pages are not locked, are evicted to make room for their own request, and come \
         back as its new pages.",
    ],
    checks: &[
        "Keep an owner for every page in a debug build and compare at each move. A sum of free and \
         used pages that balances proves nothing: one page can be counted twice and another lost.",
        "Search for the previous free of the page in evidence; the first wrong one is the cause.",
    ],
};

pub(super) const FREED_TWICE: Explanation = Explanation {
    holds: "A page is given back once, by its owner.",
    causes: &[
        "Two paths clean up one request: abort and finish, or retraction and abort.",
        "A duplicate is freed on insert, and again with the request's table, which still points at \
         it.",
    ],
    checks: &[
        "Make freeing idempotent by state, not by luck: take the pages out of the request's table \
         when they are given back.",
        "With a guard in the allocator the second free does no harm and is still a defect of its \
         caller; without one, look for page.two_owners.",
    ],
};

pub(super) const FREED_PART: Explanation = Explanation {
    holds: "Pages are given back whole.",
    causes: &[
        "A freed segment begins inside a page, at a token count rounded to another page size.",
        "Prompt and output are given back apart, and the output begins inside a page.",
    ],
    checks: &["Check that the first row of every freed segment is a multiple of the page size."],
};

pub(super) const FREED_IN_FLIGHT: Explanation = Explanation {
    holds: "A destination page is given back only when no copy into it is in flight.",
    causes: &[
        "An abort, a failure on one rank, or a refusal releases the request's pages at once.",
        "A timeout that is shorter than the slowest copy releases them.",
    ],
    checks: &[
        "Count copies in flight a request, and hold its pages until the count is 0 (drained), \
         whatever the client did.",
        "If there must be a timeout, take the link down before the pages are reused: a late copy \
         cannot be called back.",
        "The damage shows later and elsewhere: placed.outside when the copy lands, placed.foreign \
         for the next owner.",
    ],
};

pub(super) const LEAKED: Explanation = Explanation {
    holds: "When every request has ended, no page is held by one.",
    causes: &[
        "An abort in one of the queues takes the request out and forgets its pages: check each of \
         waiting, reserved, prefilling, copying, running and retracted.",
        "A failure path gives back the pages of one side only.",
    ],
    checks: &[
        "Run a few requests to their ends, abort one in every state, and compare the free pages with \
         the start.",
        "One leaked page an abort shows as a pool that shrinks over days; watch free + cached at \
         idle.",
    ],
};

pub(super) const DRIFT: Explanation = Explanation {
    holds: "free + evictable + protected + held = total, in one unit, after every step; and no lock \
            is left when everything has ended.",
    causes: &[
        "A lock is taken twice and released once, or released on another node after a split.",
        "A page is freed twice or has two owners, so that it is counted twice.",
        "One term is counted in tokens or physical pages, and the others in virtual pages.",
    ],
    checks: &[
        "Evidence says by how many pages the sum is off. A multiple of N points at the unit, a \
         single page at a double free.",
        "Compare at every step, not at idle only: two errors can cancel out.",
    ],
};
