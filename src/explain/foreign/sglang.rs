//! Texts of `sglang` around the planner: packing, other planners, and what wraps an error.

use super::{ForeignText, Found, Says, Writer, plain};
use crate::explain::known::KnownSizes;
use crate::explain::line::Line;
use crate::finding::Code;

const TRANSFER: Writer = Writer { engine: Some("sglang"), part: "the transfer of a request" };

pub(super) const ALL: &[ForeignText] = &[
    ForeignText {
        form: "PD DCP pack buffer too small for byte range [{from}, {to}) (have {have}); falling \
               back to per-token RDMA",
        patterns: &[
            "pack buffer too small for byte range {from} {to} have {have}",
            "pack buffer too small for {to} bytes ? have {have}",
            "pack buffer too small for byte range",
            "pack buffer too small ? .. falling back to per token",
            "falling back to per token RDMA",
        ],
        writer: Writer { engine: Some("sglang"), part: "the sender, as a warning, since 0.5.20" },
        meaning: "No error but a fallback: this send is copied right, and nearly every token is a \
                  descriptor of its own from here on, which is many times slower.",
        says: pack,
    },
    ForeignText {
        form: "Ascend PD DCP requires decode_prefix_len to align to the virtual page size ({V}), got \
               {S}",
        patterns: &["decode_prefix_len to align to the virtual page size {V} ? got {S}"],
        writer: Writer { engine: Some("sglang"), part: "the planner of its Ascend backend" },
        meaning: "The planner of another backend refuses a prefix that is no multiple of V.",
        says: |found, _| {
            let number = |name| found.number(name).and_then(|number| i64::try_from(number).ok());
            let line = number("V")
                .zip(number("S"))
                .filter(|&(page, prefix)| page > 0 && prefix >= 0 && prefix % page != 0);
            let mut says = plain(
                &[Code::RefusedMisaligned],
                &["Cut the prefix down to S - S mod V before pages are reserved; never pad it up."],
            );
            says.line =
                line.map(|(virtual_page, prefix)| Line::Misaligned { virtual_page, prefix });
            says
        },
    },
    ForeignText {
        form: "PD DCP pack requires page-aligned kv_item_lens, got {lens} with page_size={P}",
        patterns: &[
            "PD DCP pack requires page aligned kv_item_lens ? got {lens~} with page_size {P}",
            "PD DCP pack requires each kv_item_len to span at least one page",
        ],
        writer: Writer { engine: Some("sglang"), part: "the pack buffer, when it is made" },
        meaning: "A KV entry's bytes are no whole number for each token of a page, so that its rows \
                  cannot be packed.",
        says: |_, _| {
            plain(
                &[Code::RefusedGeometry],
                &[
                    "An entry that is no KV of tokens (a state, an index) is among those to be packed: \
                   print the list of entries with their bytes.",
                ],
            )
        },
    },
    ForeignText {
        form: "Ascend PD DCP page offset and token count must be nonnegative",
        patterns: &["PD DCP page offset and token count must be nonnegative"],
        writer: Writer { engine: Some("sglang"), part: "the planner of its Ascend backend" },
        meaning: "The planner was asked with a negative offset or count.",
        says: |_, _| {
            plain(
                &[Code::RefusedInput, Code::RefusedSource],
                &[
                    "S lies past the end of what is sent, or the offset was counted from another place.",
                ],
            )
        },
    },
    ForeignText {
        form: "Invalid DCP rank {rank} for size {size}",
        patterns: &["Invalid DCP rank {rank} for size {size}"],
        writer: TRANSFER,
        meaning: "A peer announced a rank that its side does not have.",
        says: |_, _| {
            plain(
                &[Code::RefusedRank],
                &["Print the context-parallel rank and size that each peer sends at bootstrap."],
            )
        },
    },
    ForeignText {
        form: "KV cache pool is full. Retract requests. #retracted_reqs: {retracted}",
        patterns: &["KV cache pool is full retract requests"],
        writer: Writer { engine: Some("sglang"), part: "the decode scheduler" },
        meaning: "The decode pool ran out, and running requests gave their pages back: no error, but \
                  each of them is resumed or computed again.",
        says: |_, _| {
            let mut says = plain(
                &[Code::StallNoProgress],
                &[
                    "Compare the tokens that decode keeps back for each request with its outputs: a \
                     small reserve admits more than can grow.",
                    "If the retracted never come back, look at how they are admitted again (H40, H76).",
                ],
            );
            says.behaviours = &[
                ("resumption", "with_arrivals"),
                ("next_step_demand", "tokens"),
                ("admission_demand", "tokens"),
            ];
            says
        },
    },
    ForeignText {
        form: "Requested address not found",
        patterns: &["Requested address .. not found", "NIXL_ERR_NOT_FOUND"],
        writer: Writer { engine: None, part: "Mooncake's or NIXL's transfer engine" },
        meaning: "A copy was to go outside the memory that the peer registered.",
        says: |_, _| {
            let mut says = plain(
                &[Code::PlacedOutside, Code::RefusedGeometry],
                &[
                    "Compare the bytes a token of both sides: with another KV dtype every address is \
                     off by its ratio, which is silent until it leaves the pool.",
                    "Rows counted over all ranks and used as a rank's own leave its memory, too (H17).",
                ],
            );
            says.behaviours = &[("rows", "virtual_as_local"), ("relayout", "none")];
            says.commands =
                vec!["kvseam run sims/hazards/h17-virtual-rows-as-local.toml".to_owned()];
            says
        },
    },
    ForeignText {
        form: "Failed to send kv chunk of {room}",
        patterns: &[
            "Failed to send kv chunk",
            "Prefill transfer failed for request",
            "Prefill bootstrap failed for request",
        ],
        writer: Writer {
            engine: Some("sglang"),
            part: "prefill, for a request whose transfer failed",
        },
        meaning: "A transfer failed on the sending side. This line only passes it on.",
        says: |_, _| wrapper(),
    },
    ForeignText {
        form: "Failed to get kvcache from prefill instance, it might be dead",
        patterns: &[
            "Failed to get kvcache from prefill instance",
            "Decode transfer failed for request",
            "Decode handshake failed for request",
        ],
        writer: Writer {
            engine: Some("sglang"),
            part: "decode, for a request whose transfer failed",
        },
        meaning: "A transfer failed, and decode was told so. This line only passes it on.",
        says: |_, _| wrapper(),
    },
];

fn wrapper() -> Says {
    let mut says = plain(
        &[Code::PageFreedInFlight, Code::PageLeaked],
        &[
            "The cause stands in prefill's log, at the first failed transfer or in the last lines \
             before a transfer thread ended: look for a ValueError, an IndexError, or a message of \
             the transfer engine.",
            "After a failure both sides give pages back: not while a copy into them is in flight \
             (H30, H31), and not never (H39).",
        ],
    );
    says.behaviours = &[("release_on_abort", "at_once"), ("release_on_abort", "timeout")];
    says
}

fn pack(found: &Found, known: &KnownSizes) -> Says {
    let mut says = plain(
        &[Code::PlacedForeign],
        &[
            "Split sends at the buffer's size (send_split = \"yes\"), or make the buffer as large as \
             the longest send: a cached prefix goes out in one piece, whatever the chunk's size.",
            "Each rank has a region of its own in the buffer. A check against the whole buffer's end \
             lets one rank's rows run over the next one's, silently (H16).",
        ],
    );
    says.behaviours = &[("packing", "buffer_checked")];
    says.commands = vec!["kvseam run sims/hazards/h16-buffer-checked.toml".to_owned()];
    let (from, to, have) = (found.number("from"), found.number("to"), found.number("have"));
    if let (Some(to), Some(have)) = (to, have) {
        let bytes = to - from.unwrap_or(0);
        says.numbers.push(format!(
            "This rank's rows are {bytes} bytes and would end at {to}, {} past the buffer's end at \
             {have}.",
            to - have
        ));
        if let Some(from) = from.filter(|&from| from > 0) {
            says.numbers.push(format!(
                "They begin at {from}: the rank's region. {} bytes are left for it there, {} less than \
                 its rows.",
                have - from,
                to - have
            ));
            if let Some(ranks) = known.ranks.map(i128::from) {
                says.numbers.push(format!("With N = {ranks} a region is {} bytes.", have / ranks));
            }
        }
    }
    says
}
