//! Refusals: of the planner, of two peers that connect, and of a request that is too large.

use super::Explanation;

pub(super) const MISALIGNED: Explanation = Explanation {
    holds: "S is a multiple of V. Decode puts position p on rank p mod N and hands out pages of V \
            positions, so what it has cached can be reused, and a transfer can begin, on a whole \
            virtual page only.",
    causes: &[
        "The decode cache reports a hit in physical pages, or token by token, and the hit goes to \
         prefill as it is. With N = 1 both pages are one, so it shows only when decode is striped.",
        "The decode cache was built with the page size P of one rank instead of V.",
    ],
    checks: &[
        "Compute S mod V for the refused request: that much was not cut off. Where S mod P is 0, \
         the hit was counted in physical pages.",
        "Cut the hit down to S - S mod V, in one place, before pages are reserved and before S is \
         sent, so that both sides use the same number.",
        "Never pad it up: the planner then accepts, and the positions in between are never sent, \
         which raises no error (placed.missing).",
    ],
};

pub(super) const SOURCE: Explanation = Explanation {
    holds: "0 <= n <= number of source pages * P: a piece's tokens lie in the source pages that \
            come with it.",
    causes: &[
        "A prefix padded up past the prompt's end: n = L - S is negative.",
        "Tokens and pages counted from different places, such as a count that includes the cached \
         prefix over pages that begin behind it.",
        "A count that includes the first output token, whose KV nobody has stored yet: one too many \
         where the prompt fills its last page exactly.",
    ],
    checks: &[
        "The message has both numbers. A negative count points at S > L on the decode side, a count \
         of capacity + 1 at an off-by-one in the sequence length.",
        "Print L, S, off and the page list of the piece: off * P + n must not pass L - S.",
    ],
};

pub(super) const SHORTFALL: Explanation = Explanation {
    holds: "The destination list holds at least ceil((off * P + n) / V) pages. It is the request's \
            whole list of reserved virtual pages, beginning at S, and off counts source pages since \
            S. A rank is refused when its own highest token needs a page past the list's end.",
    causes: &[
        "Decode reserved too few pages: tokens divided by V and rounded down, or one page short \
         where the tokens fill their pages exactly.",
        "The destination list was sliced with the chunk's source page numbers. Those count physical \
         pages; the list counts virtual ones, N times fewer.",
        "off counts from position 0, or counts a page twice, while the list begins at S.",
        "The source counts the first output token, too: where a prompt fills its virtual pages \
         exactly, that takes one more.",
    ],
    checks: &[
        "Compute ceil((L - S) / V). If `required` is not above it and `provided` is below it, the \
         reservation is short; if `provided` is 0 or far below it, the list was sliced; if \
         `required` is above it, off is wrong.",
        "Ask every rank, not only rank 0: a shortage of one page can hit a single rank (P = 4, \
         N = 2, n = 9, one page: rank 0 needs two, rank 1 is content).",
        "A request that one rank refuses must fail on all of them, and its pages go back only when \
         the copies of the other ranks have drained.",
    ],
};

pub(super) const INDEX: Explanation = Explanation {
    holds: "Every token of a piece finds its source page and its destination page in the two lists, \
            for the rank's own share and for the replicated draft rows.",
    causes: &[
        "Whatever makes the checked planner refuse for its source pages or for lack of destination \
         pages (refused.source, refused.shortfall): this revision has no such checks, and the array \
         library's index error is all that is left.",
        "A shortage of one page that only one rank has: here the other ranks fail, too, since draft \
         rows are laid out on every rank.",
        "The source counts the first output token, too: where a prompt fills its virtual pages \
         exactly, that takes one more.",
    ],
    checks: &[
        "The message does not name the list. Compare its size with both: the number of source pages \
         of the piece, and the number of reserved destination pages.",
        "Its index + 1 is what was needed at least. For a destination list compare it with \
         ceil((off * P + n) / V), and then go on as for refused.shortfall.",
        "A negative token count raises nothing here and plans nothing: look for placed.missing.",
    ],
};

pub(super) const INPUT: Explanation = Explanation {
    holds: "Page ids are not negative and occur once in a list, the rank is below N, and every row \
            fits 32 bits. A real planner accepts less and answers something; here it is refused.",
    causes: &[
        "A page that was freed twice is handed out twice, and one request gets both.",
        "Padding entries, such as -1, are left in a page list.",
    ],
    checks: &[
        "Look for page.freed_twice or page.two_owners at an earlier tick: the list was broken there.",
        "Where a block table is padded to a fixed width, cut it to its true length before it is sent.",
    ],
};

pub(super) const TOPOLOGY: Explanation = Explanation {
    holds: "Prefill has as many ranks as decode, rank by rank and page for page; or it has one, and \
            decode stripes over N.",
    causes: &[
        "The two deployments are configured with different numbers of ranks, such as 2 and 4.",
    ],
    checks: &[
        "Compare the context-parallel sizes of both servers; an in-between number of prefill ranks \
         is not supported.",
    ],
};

pub(super) const RANK: Explanation = Explanation {
    holds: "Where both sides have several ranks, rank r connects to rank r: its rows are the same \
            positions.",
    causes: &[
        "Peers were matched by address order or by a global rank that counts other kinds of \
         parallelism, too.",
    ],
    checks: &["Print the context-parallel rank that each peer sends at bootstrap."],
};

pub(super) const GEOMETRY: Explanation = Explanation {
    holds: "Each KV entry has the same bytes a token on both sides: rows are copied as bytes.",
    causes: &[
        "The KV cache is quantised on one side only, or the two run models of different layers or \
         head sizes.",
        "One side has a draft model's entries and the other has not.",
    ],
    checks: &[
        "Compare the lists of bytes a token, entry by entry, and the KV dtype of both servers.",
    ],
};

pub(super) const POOL: Explanation = Explanation {
    holds: "A decode pool that is striped over ranks is one of an MLA or hybrid-MLA model, whose \
            rows every rank reads whole.",
    causes: &["Decode context parallelism was switched on for a model with attention by heads."],
    checks: &["Look at the model's attention type, and turn decode striping off for others."],
};

pub(super) const PREFILL_CP: Explanation = Explanation {
    holds: "Prefill runs its attention on one context-parallel rank, so that its pool is dense: the \
            planner reads position p at row p of the request's pages.",
    causes: &["Prefill was started with attention context parallelism for long prompts."],
    checks: &["Set the attention context-parallel size of the prefill servers to 1."],
};

pub(super) const PAGE_SIZE: Explanation = Explanation {
    holds: "Both sides have the same physical page size P: off counts pages of P on either side.",
    causes: &["The servers were started with different page sizes, or one backend forces its own."],
    checks: &[
        "Compare the page sizes that the servers log at start, not those on their command lines.",
        "After the refusal both sides must end the request, and the next good peer must work.",
    ],
};

pub(super) const CAPACITY: Explanation = Explanation {
    holds: "max(V * ceil(L / V) + reserved tokens, V * ceil((L + output - 1) / V)) is at most the \
            decode pool, and ceil(L / P) pages are at most the prefill pool. Where retracted requests \
            are sent again (retraction = \"send_again\"), prefill can have to compute all but the last \
            output token, too: ceil((L + output - 1) / P) pages.",
    causes: &["The request is larger than an empty pool. A sound system says so at once."],
    checks: &[
        "Compare in one unit: a pool of N ranks holds N times the tokens of one rank's pool.",
        "The refusal must come on arrival and hold nothing; a request that waits for ever instead \
         is stall.no_progress.",
    ],
};
