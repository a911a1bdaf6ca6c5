//! Rows: what was placed where, what was read, and what a cache hit hands on.

use super::Explanation;

pub(super) const MISSING: Explanation = Explanation {
    holds: "When decode activates a request, every position behind its cache's own match was \
            written for this request, whatever its row happens to hold.",
    causes: &[
        "A prefix padded up to the next virtual page: the positions between the true and the padded \
         prefix are on neither side's list.",
        "The cached prefix went out early and the rest of the prompt was never laid out.",
        "Pieces laid out at a wrong offset: what lands on one place twice is missing at another.",
        "Decode began before every part had landed (activate.early), or a source row was read \
         before it was written (read.unwritten).",
        "Draft KV is copied by the target model's list: a rank's share of it instead of all.",
    ],
    checks: &[
        "No error is raised: the request finishes with wrong KV, and only its text is wrong. Compare \
         outputs with and without a cached prefix.",
        "Add up n over the pieces of the request: the sum must be L - S on every rank together.",
        "The first missing position says where to look: at S it is the prefix, at a chunk's border \
         the cursor, at the end the last piece.",
    ],
};

pub(super) const SHIFTED: Explanation = Explanation {
    holds: "The row of position p holds the token of position p.",
    causes: &[
        "off does not count source pages since S: it counts this chunk's pages only, or from \
         position 0, or counts a page twice that went out partial.",
        "The destination index is computed from the chunk's start instead of the request's.",
        "Whatever makes decode use rows that were never filled for the request or were filled by \
         another: where prompts share text, an old row can hold one of its own tokens by chance.",
        "Source and destination pages are paired as they stand, without laying rows out for each \
         rank.",
    ],
    checks: &[
        "Evidence names the position that the row holds. Its distance to the right one is the error \
         of off, times P: a chunk's length, S, or one page.",
        "Keep one running count of pages sent a request; reset it on a new transfer only.",
        "The sender's count after the last piece must be ceil((L - S) / P).",
    ],
};

pub(super) const FOREIGN: Explanation = Explanation {
    holds: "What was written for a request stays until its page is given back: nobody else writes \
            there.",
    causes: &[
        "Pages were given back while a copy into them was in flight, and the copy landed in the \
         next owner's rows (page.freed_in_flight).",
        "A page has two owners: freed twice, or freed while a request's table still points at it.",
        "A pack region was overrun, so that one rank's rows were overwritten by the next rank's \
         before they were sent.",
        "A matched page was evicted and handed out again before its request used it.",
        "A later copy for another request lands where this one went on without waiting for its own.",
        "Prefill sent what a wrong hit brought (cache.wrong_hit).",
    ],
    checks: &[
        "Evidence names whose token the row holds: look at what that request was doing when it was \
         written, an abort above all.",
        "Look for ownership findings (page.*) at an earlier tick; they are the cause, this is the \
         damage.",
        "For packing, compare a rank's rows with its own region, not with the whole buffer's end.",
    ],
};

pub(super) const TWICE: Explanation = Explanation {
    holds: "A transfer writes each row of its request once, or again with the same.",
    causes: &[
        "Every piece is laid out at the start of the request's pages, over the one before.",
        "A chunk's partial page was sent with the chunk and again with the next.",
    ],
    checks: &[
        "Print off and n of each piece in turn: the spans [off * P, off * P + n) must follow one \
         another without overlap.",
        "Send a chunk that is not the last only up to its last full page.",
    ],
};

pub(super) const OUTSIDE: Explanation = Explanation {
    holds: "A copy writes rows of pages only that its request owns when it lands.",
    causes: &[
        "The pages were given back, or to another request, while the copy was on its way.",
        "A virtual row was used as a row of one rank's memory, without dividing by N.",
        "A pool that is replicated on every rank counts its padding page once, not once a rank, and \
         ends inside its highest page.",
    ],
    checks: &[
        "Evidence names the page's owner when the copy landed. A free page points at an early \
         release, another request at a release and a new reservation.",
        "On abort, timeout and failure, give pages back only when no copy into them is in flight.",
        "Begin tests from a pool that is nearly used up: on a fresh one virtual and local rows agree \
         by luck.",
    ],
};

pub(super) const UNWRITTEN: Explanation = Explanation {
    holds: "A source row is read by a copy only after the step that computes it has ended.",
    causes: &[
        "The cached prefix is taken from what has been launched: under overlap the tree already \
         lists pages whose step is still running.",
        "The request's table was pointed at pages of another text, as if they were duplicates of its \
         own.",
    ],
    checks: &[
        "Make the sender wait for an event that the computing stream records behind the step, or \
         send settled rows only.",
        "Compare the length that goes out early with the committed length, not with the scheduled \
         one.",
    ],
};

pub(super) const READ_FREED: Explanation = Explanation {
    holds: "Source pages stay pinned until every copy from them has ended.",
    causes: &[
        "Prefill gives its pages back when computation ends, or when the copy has been queued, \
         rather than when it has landed.",
        "Cached pages are sent without a lock and evicted while they wait.",
        "A duplicate page is freed, and the request's table goes on pointing at it.",
    ],
    checks: &[
        "Follow the lock of a request's source pages: it must be released by the transfer's end, \
         not by the scheduler.",
        "Delay copies in a test until the prefill cache is full, and see whether others are evicted \
         or the request waits.",
    ],
};

pub(super) const WRONG_HIT: Explanation = Explanation {
    holds: "The rows of a cache hit hold the tokens of its key, and the hit is no longer than what \
            the two sequences share in one namespace.",
    causes: &[
        "An earlier request put wrong rows into the tree: what was missing or shifted for it is \
         handed on to every request that shares its prefix.",
        "A page went into the tree before its last row was stored: the committed length is one less \
         than the sequence's.",
        "The key leaves out the adapter or salt, or hashes less than the whole prefix: a chunk's own \
         tokens, or the first physical page of a virtual one.",
    ],
    checks: &[
        "Look for the first placed.* finding of a request with the same prefix: this code is \
         inherited, and is counted apart for that reason.",
        "Requests that failed, or that decode began early, must not enter the cache.",
        "At a finish insert (L + output - 1) / V whole pages, not (L + output) / V.",
    ],
};
