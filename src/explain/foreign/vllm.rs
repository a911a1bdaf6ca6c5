//! Texts of vLLM's NIXL connector: what it refuses at start and at the handshake, and what it only
//! logs. As read in its release 0.33.0 unless another is named.

use super::{ForeignText, Found, Says, Writer, plain};
use crate::explain::known::KnownSizes;
use crate::finding::Code;

const START: Writer = Writer { engine: Some("vllm"), part: "0.33.0, when a server starts" };
const HANDSHAKE: Writer =
    Writer { engine: Some("vllm"), part: "0.33.0, NixlConnector's handshake of two peers" };
const PRODUCER: Writer =
    Writer { engine: Some("vllm"), part: "NixlConnector on the prefill side, in its log" };
const CONSUMER: Writer = Writer { engine: Some("vllm"), part: "NixlConnector on the decode side" };

/// What follows from a refusal of two peers.
const NOTHING_SENT: &str = "Nothing has been sent: the waiting requests of this peer fail, or are \
                            computed again, as the policy for failed loads says.";

macro_rules! refused {
    (
        $writer:expr,
        $form:literal,
        [$($pattern:literal),+],
        $code:expr,
        $meaning:literal,
        $check:literal
    ) => {
        ForeignText {
            form: $form,
            patterns: &[$($pattern),+],
            writer: $writer,
            meaning: $meaning,
            says: |_, _| plain($code, &[$check]),
        }
    };
}

pub(super) const ALL: &[ForeignText] = &[
    ForeignText {
        form: "Local block size {d} is not divisible by remote block size {p} or vice versa.",
        patterns: &["local block size {d} is not divisible by remote block size {p}"],
        writer: HANDSHAKE,
        meaning: "The peers' block sizes do not fit: of the two, prefill's must divide decode's.",
        says: block_sizes,
    },
    ForeignText {
        form: "Local tensor parallel size {a} is not divisible by remote tensor parallel size {b}.",
        patterns: &[
            "local tensor parallel size {a} is not divisible by remote tensor parallel size {b}",
            "remote tensor parallel size {a} is not divisible by local tensor parallel size {b}",
        ],
        writer: HANDSHAKE,
        meaning: "The peers' numbers of tensor-parallel ranks do not divide one another.",
        says: |found, _| {
            let mut says = plain(
                &[Code::RefusedTopology],
                &[
                    "Start both sides with sizes of which one is a multiple of the other.",
                    NOTHING_SENT,
                ],
            );
            divided(found, "ranks", &mut says);
            says
        },
    },
    ForeignText {
        form: "DCP sizes must divide one another: local={a}, remote={b} (engine {id}).",
        patterns: &["DCP sizes must divide one another ? local {a} remote {b}"],
        writer: HANDSHAKE,
        meaning: "The peers' numbers of context-parallel ranks do not divide one another.",
        says: |found, _| {
            let mut says = plain(
                &[Code::RefusedTopology],
                &[
                    "Start both sides with DCP sizes of which one is a multiple of the other.",
                    NOTHING_SENT,
                ],
            );
            divided(found, "ranks", &mut says);
            says
        },
    },
    ForeignText {
        form: "NIXL compatibility hash mismatch. Local: {a}, Remote: {b}. ...",
        patterns: &[
            "NIXL compatibility hash mismatch ? local {a*} remote {b*}",
            "NIXL compatibility hash mismatch",
            "compatibility hash mismatch",
        ],
        writer: HANDSHAKE,
        meaning: "The peers differ in something that makes their KV incomparable: release, connector, \
                  model, dtypes, heads, layers, attention backend, cache dtype, draft model, or pull \
                  against push.",
        says: |_, _| {
            plain(
                &[Code::RefusedGeometry],
                &[
                    "Compare the two servers' start lines word by word; a prefill that loads no draft model is \
             the usual difference.",
                    "enforce_handshake_compat = false only silences it: what differs then shows as wrong KV or \
             a crash.",
                    "Interleave, hash function, caching and lookahead are not among what is compared.",
                    NOTHING_SENT,
                ],
            )
        },
    },
    ForeignText {
        form: "KV cache sizes must match between P and D when replicated (region {region}: \
               local={a}, remote={b}, bsr={ratio}).",
        patterns: &[
            "KV cache sizes must match between P and D ? .. region {region} local {a} remote {b} bsr \
             {ratio}",
        ],
        writer: HANDSHAKE,
        meaning: "A region's bytes for one block, divided by the ratio of the block sizes, are not \
                  prefill's: the KV differs in bytes a token.",
        says: region,
    },
    ForeignText {
        form: "SPLIT region {region}: ...",
        patterns: &["SPLIT region {region}"],
        writer: HANDSHAKE,
        meaning: "A region that is split by heads does not have prefill's bytes for its share of heads.",
        says: |_, _| {
            plain(
                &[Code::RefusedGeometry],
                &[
                    "Compare KV heads, head size and cache dtype of both servers, and their tensor-parallel \
             sizes.",
                    NOTHING_SENT,
                ],
            )
        },
    },
    refused!(
        HANDSHAKE,
        "Number of KV layers must match between prefill and decode",
        ["number of KV layers must match", "number of KV cache layers must match"],
        &[Code::RefusedGeometry],
        "One side registers more KV entries than the other.",
        "A draft model or an indexer is on one side only: compare what both register at start."
    ),
    refused!(
        HANDSHAKE,
        "Different local/remote block sizes are not supported when P TP > D TP.",
        ["different local remote block sizes are not supported"],
        &[Code::RefusedPageSize],
        "Unequal block sizes together with more prefill than decode ranks are refused.",
        "Use one block size, or as many decode ranks."
    ),
    refused!(
        HANDSHAKE,
        "Heterogeneous block sizes are not supported with host buffer",
        ["heterogeneous block sizes are not supported with host buffer"],
        &[Code::RefusedPageSize],
        "Unequal block sizes are refused where KV goes through a host buffer.",
        "Use one block size on both sides, or a transfer from device to device."
    ),
    refused!(
        HANDSHAKE,
        "Remote P worker with different block size is not supported",
        ["remote P worker with different block size is not supported"],
        &[Code::RefusedPageSize],
        "Releases before unequal block sizes were supported refuse them.",
        "Use one block size on both sides; compare what the servers log at start."
    ),
    refused!(
        HANDSHAKE,
        "Heterogeneous TP expects same kv_cache_layout (local {a}, remote {b}). ...",
        ["heterogeneous TP expects same kv_cache_layout"],
        &[Code::RefusedGeometry],
        "With unequal numbers of ranks the layout of a block must be the same on both sides.",
        "Set the same KV cache layout (HND) on both sides."
    ),
    refused!(
        HANDSHAKE,
        "Replicated PCP cannot be paired with a DCP-sharded NIXL peer. ...",
        ["replicated PCP cannot be paired with a DCP sharded"],
        &[Code::RefusedTopology, Code::RefusedPrefillCp],
        "Prefill keeps its KV whole on each context-parallel rank, decode stripes it.",
        "Give prefill DCP as well, or decode none."
    ),
    refused!(
        HANDSHAKE,
        "Remote NIXL agent engine ID mismatch. ...",
        ["remote NIXL agent engine ID mismatch"],
        &[Code::RefusedRank],
        "Who answered at the peer's address is not the engine that was announced.",
        "An address was given to a restarted or another server: look at the router's table of peers."
    ),
    refused!(
        HANDSHAKE,
        "NIXL transfer failure: handshake_failed",
        ["NIXL transfer failure handshake_failed"],
        &[Code::RefusedTopology, Code::RefusedGeometry],
        "The handshake of two peers failed; why stands in the lines around it.",
        "Look for NIXL_ERR_BACKEND (registration of memory) or for one of the texts of a refused \
         pairing just before it."
    ),
    refused!(
        START,
        "PD with decode_context_parallel_size > 1 is only supported for MLA models.",
        ["decode_context_parallel_size 1 is only supported for MLA"],
        &[Code::RefusedPool],
        "Decode's KV is kept by heads, and striping needs rows that every rank reads whole.",
        "Turn decode context parallelism off for models with attention by heads."
    ),
    refused!(
        START,
        "decode_context_parallel_size={a} must be 1 or equal to the NIXL transfer parallel size={b}.",
        ["decode_context_parallel_size {a} must be 1 or equal"],
        &[Code::RefusedTopology],
        "DCP must span all ranks that take part in a transfer, or none.",
        "Set the DCP size to 1 or to the number of tensor-parallel ranks."
    ),
    refused!(
        START,
        "tp_size={a} must be divisible by dcp_size={b}.",
        ["tp_size {a} must be divisible by dcp_size {b}"],
        &[Code::RefusedTopology],
        "DCP divides the tensor-parallel ranks, and does not divide them evenly.",
        "Choose a DCP size that divides the tensor-parallel size."
    ),
    refused!(
        START,
        "DCP not support sliding window attn now.",
        ["DCP not support sliding window", "DCP not support"],
        &[Code::RefusedPool],
        "Striping over ranks is not made for this kind of attention.",
        "Turn decode context parallelism off for models with window, chunked or Mamba layers."
    ),
    refused!(
        START,
        "NixlConnector PCP currently supports kv_producer only. ...",
        ["NixlConnector PCP currently supports kv_producer only"],
        &[Code::RefusedPrefillCp],
        "Prefill context parallelism is allowed on prefill only.",
        "Set prefill_context_parallel_size to 1 on consumers, and on servers that are both."
    ),
    refused!(
        START,
        "NixlConnector PCP+DCP requires TP1 with DCP spanning the full PCP group.",
        ["NixlConnector PCP DCP requires TP1"],
        &[Code::RefusedPrefillCp, Code::RefusedTopology],
        "Both kinds of context parallelism together need one tensor-parallel rank.",
        "Set the tensor-parallel size to 1, and DCP to the PCP size."
    ),
    refused!(
        START,
        "NixlPushConnector does not support decode_context_parallel_size > 1.",
        ["NixlPushConnector does not support decode_context_parallel_size"],
        &[Code::RefusedTopology],
        "The push connector has no layout for striped decode pools.",
        "Use the pull connector, or no decode context parallelism."
    ),
    ForeignText {
        form: "Block_size({a}) should be greater than or equal to and divisible by \
               cp_kv_cache_interleave_size ({b}).",
        patterns: &["Block_size {a} should be greater than or equal to and divisible by \
             cp_kv_cache_interleave_size {b}"],
        writer: START,
        meaning: "The interleave of context parallelism must divide the block size.",
        says: |found, _| {
            let mut says = plain(
                &[Code::RefusedTopology],
                &[
                    "A transfer assumes an interleave of one block. With NixlConnector this check is \
                 skipped and an interleave that was named stays: wrong rows, and no error.",
                ],
            );
            divided(found, "tokens", &mut says);
            says
        },
    },
    ForeignText {
        form: "Releasing expired KV blocks for request {id} which were retrieved by {count} decode \
               worker(s) within {seconds} seconds.",
        patterns: &[
            "Releasing expired KV blocks for request .. which were retrieved by {count} \
             decode|remote worker s ? within {seconds} seconds",
            "Releasing expired KV blocks",
        ],
        writer: PRODUCER,
        meaning: "The lease of a request's blocks ended before every reader was done: prefill gives \
                  them back, and decode is not told.",
        says: expired,
    },
    ForeignText {
        form: "Potentially invalid KV blocks for unrecognized request {id} were retrieved by a decode \
               worker. They may have expired.",
        patterns: &["Potentially invalid KV blocks for unrecognized request ? {id*}"],
        writer: PRODUCER,
        meaning: "Decode has read blocks that prefill had given back, and uses them: the request ends \
                  with 200 and perhaps with another request's KV.",
        says: |_, _| lease(),
    },
    ForeignText {
        form: "Force freed expired request: {id}. Reason: Request exceeded timeout threshold \
               ({seconds} seconds).",
        patterns: &[
            "Force freed expired request ? .. request exceeded timeout threshold {seconds} seconds",
        ],
        writer: Writer { engine: Some("vllm-ascend"), part: "its Mooncake connector on prefill" },
        meaning: "Prefill gave a request's blocks back after a time, whether they had been read or not.",
        says: expired,
    },
    refused!(
        CONSUMER,
        "Got invalid KVTransferParams: {params}. This request will not utilize KVTransfer",
        ["got invalid KVTransferParams"],
        &[Code::StallNoProgress],
        "A handoff lacks a field: the request is parked without a read, with its blocks, for ever (H73).",
        "Print kv_transfer_params as the router passes them on: remote_block_ids, remote_engine_id, \
         remote_host and remote_port must all be there."
    ),
    refused!(
        CONSUMER,
        "Got kv_transfer_params, but no KVConnector found. Disabling KVTransfer for this request.",
        ["got kv_transfer_params but no KVConnector found"],
        &[],
        "No connector is configured: decode computes the prompt again, and nothing is transferred.",
        "Give both engines a --kv-transfer-config; the router's setting alone is not enough."
    ),
    ForeignText {
        form: "Remote KV pages do not cover the requested range",
        patterns: &["remote KV pages do not cover the requested range"],
        writer: CONSUMER,
        meaning: "Prefill's list ends before decode's does, where the whole number of blocks was told.",
        says: |_, _| short_list(),
    },
    ForeignText {
        form: "assert len(local_block_descs_ids) == len(remote_block_descs_ids)",
        patterns: &[
            "len local_block_descs_ids len remote_block_descs_ids",
            "len remote_block_descs_ids len local_block_descs_ids",
        ],
        writer: CONSUMER,
        meaning: "A bare assertion on descriptor counts: the two sides' lists differ in length.",
        says: descriptors,
    },
    ForeignText {
        form: "assert num_local_blocks <= num_remote_blocks",
        patterns: &[
            "assert num_local_blocks num_remote_blocks",
            "num_local_blocks num_remote_blocks",
        ],
        writer: CONSUMER,
        meaning: "A bare assertion: decode wants more blocks than prefill's list has.",
        says: |_, _| short_list(),
    },
    ForeignText {
        form: "assert self.num_blocks >= nixl_agent_meta.num_blocks",
        patterns: &[
            "self num_blocks nixl_agent_meta num_blocks",
            "self dst_num_blocks engine_id nixl_agent_meta num_blocks",
            "dst_num_blocks engine_id nixl_agent_meta num_blocks",
        ],
        writer: Writer { engine: Some("vllm"), part: "older releases, at the handshake" },
        meaning: "A bare assertion on the peers' numbers of blocks: releases of 2025 wanted them equal \
                  over a peer's ranks, or decode's not smaller than prefill's.",
        says: |_, _| {
            plain(
                &[Code::RefusedGeometry],
                &[
                    "Ranks or restarts that measured another number of blocks have it: give both sides a fixed \
             number of blocks, or a release without the check.",
                    NOTHING_SENT,
                ],
            )
        },
    },
    ForeignText {
        form: "assert self.block_size == remote_block_size",
        patterns: &["self block_size remote_block_size", "block_size nixl_agent_meta block_size"],
        writer: Writer { engine: Some("vllm"), part: "older releases, at the handshake" },
        meaning: "A bare assertion: the peers' block sizes differ.",
        says: |_, _| {
            plain(&[Code::RefusedPageSize], &["Use one block size on both sides.", NOTHING_SENT])
        },
    },
];

fn block_sizes(found: &Found, _: &KnownSizes) -> Says {
    let mut says = plain(
        &[Code::RefusedPageSize],
        &[
            NOTHING_SENT,
            "Compare the block sizes that the servers log at start: an attention kernel can force its own, \
         and it is the kernel's that is compared.",
            "Where both numbers may differ, the right lists are by tokens: pairing by count reads wrong \
         blocks behind a decode hit, silently (H65).",
        ],
    );
    says.commands = vec!["kvseam run sims/hazards/h13-page-sizes-differ.toml".to_owned()];
    let (Some(decode), Some(prefill)) = (found.number("d"), found.number("p")) else { return says };
    if decode < 1 || prefill < 1 {
        return says;
    }
    says.numbers
        .push(format!("Decode (local) has blocks of {decode} tokens, prefill of {prefill}."));
    says.numbers.push(match (decode % prefill, prefill % decode) {
        (0, _) => format!(
            "{prefill} divides {decode}, which the release that was read accepts: the refusal is of \
             another one."
        ),
        (_, 0) => format!(
            "One divides the other, but the wrong way round: prefill's block must divide decode's, and \
             {prefill} does not divide {decode}, whatever \"or vice versa\" says."
        ),
        _ => format!("Neither divides the other: {} and {} are left over.", decode % prefill, prefill % decode),
    });
    says
}

/// What two numbers `a` and `b` leave over.
fn divided(found: &Found, what: &str, says: &mut Says) {
    if let (Some(a), Some(b)) = (found.number("a"), found.number("b"))
        && a > 0
        && b > 0
    {
        says.numbers.push(format!("{a} mod {b} = {} {what}, {b} mod {a} = {}.", a % b, b % a));
    }
}

fn region(found: &Found, _: &KnownSizes) -> Says {
    let mut says = plain(
        &[Code::RefusedGeometry],
        &[
            "Compare KV dtype and head size of both servers, and whether one has a draft model or indexer.",
            NOTHING_SENT,
        ],
    );
    let number = |name| found.number(name);
    if let (Some(local), Some(remote), Some(ratio)) = (number("a"), number("b"), number("ratio"))
        && ratio > 0
    {
        says.numbers.push(format!(
            "{local} bytes a block here, divided by {ratio}, are {}; the peer has {remote}.",
            local / ratio
        ));
    }
    says
}

fn lease() -> Says {
    let mut says = plain(
        &[Code::ReadFreed, Code::PlacedForeign],
        &[
            "Look for \"Releasing expired KV blocks\" of the same request before it: how late the read was \
         is the difference of their times.",
            "Make the lease (kv_lease_duration, 30 s; before it VLLM_NIXL_ABORT_REQUEST_TIMEOUT) longer than \
         the longest wait on decode, and see that heartbeats arrive.",
            "A request that was aborted gives the same line without harm.",
        ],
    );
    says.behaviours = &[("source_release", "before_sent"), ("release_on_abort", "timeout")];
    says.commands = vec!["kvseam run sims/hazards/h32-freed-before-sent.toml".to_owned()];
    says
}

fn expired(found: &Found, _: &KnownSizes) -> Says {
    let mut says = lease();
    if let Some(count) = found.number("count") {
        says.numbers.push(match count {
            0 => "No reader was done: the request waited on decode, was aborted without a word, or its \
                  handoff was lost (H74)."
                .to_owned(),
            1 => "One reader was done, and others were expected: a rank failed, or counts another number \
                  of readers (H70)."
                .to_owned(),
            _ => format!("{count} readers were done, and more were expected (H70)."),
        });
    }
    if let Some(seconds) = found.number("seconds") {
        says.numbers.push(format!("The lease was {seconds} s."));
    }
    says
}

fn short_list() -> Says {
    let mut says = plain(
        &[Code::RefusedShortfall, Code::PlacedMissing],
        &[
            "Print both lists with the prompt's length: prefill should have ceil(L / block) blocks. A block \
         less is a prompt that was cut short, or a block not yet computed.",
            "Under DCP the same short list raises nothing, and the rest is never read (H68).",
        ],
    );
    says.behaviours = &[
        ("decode_reservation", "floor"),
        ("decode_reservation", "one_short"),
        ("source_length", "one_more"),
    ];
    says
}

fn descriptors(_: &Found, _: &KnownSizes) -> Says {
    let mut says = plain(
        &[Code::RefusedShortfall, Code::PlacedMissing, Code::PlacedShifted],
        &[
            "Print both lengths and divide them: a whole ratio is that of the block sizes (unequal blocks, \
         or kernel blocks on one side only).",
            "With several KV cache groups look for one without blocks: trimming it by -0 keeps the other \
         side's whole list (H72).",
            "Lists of equal length prove nothing: the same mistake is silent where counts happen to agree \
         (H65, H67).",
        ],
    );
    says.numbers.push(
        "The text has no numbers. Lists differ in length for unequal block sizes, for a group without \
         blocks, or where decode wants more blocks than prefill has."
            .to_owned(),
    );
    says.behaviours =
        &[("relayout", "none"), ("decode_reservation", "floor"), ("source_length", "one_more")];
    says
}
