use super::*;
use crate::behaviour::{Overrides, SWITCHES};
use crate::engine::Profile;
use crate::scenario::file;
use crate::scenario::generate::HARMLESS;
use crate::scenario::tests::small;

const TWO: &str = "workload={ requests = [{ prompt = [{ content = 1, len = 7 }], output = 2 }, \
    { prompt = [{ content = 1, len = 9 }], output = 2 }] }";
const TRACE: &str = "workload={ trace = { format = \"mooncake\", path = \"t\" } }";
const DRAWN: &str = "workload={ synthetic = { requests = 3, \
    arrivals = { fixed = { gap = 1 } }, prompt = { fixed = 7 }, output = { fixed = 2 } } }";

fn with(assignments: &[&str]) -> Scenario {
    let mut table = file::table(&small().to_toml(), "base").unwrap();
    for assignment in assignments {
        file::set(&mut table, assignment).unwrap();
    }
    file::from_table(table, "base").unwrap()
}

/// The switches objected to in the two requests' scenario, or in that of a later assignment.
fn objected(assignments: &[&str]) -> Vec<&'static str> {
    let assignments = [&[TWO], assignments].concat();
    let objections = lint(&with(&assignments));
    objections.iter().map(|objection| objection.switch).collect()
}

/// Each line of the table: assignments, and whether they make the last-named switch unsound.
fn check(switch: &str, cases: &[(&[&str], bool)]) {
    for (assignments, unsound) in cases {
        let expected: &[&str] = if *unsound { &[switch] } else { &[] };
        assert_eq!(objected(assignments), expected, "{assignments:?}");
    }
}

/// A new variant has to be judged in one way or the other.
#[test]
fn every_variant_has_a_rule_or_is_known_to_be_harmless() {
    for switch in SWITCHES {
        for (number, variant) in switch.variants.iter().enumerate() {
            let mut overrides = Overrides::default();
            assert!(overrides.set(switch.name, variant.name));
            let set = overrides.over(Behaviours::default());
            let is_of = |rule: &&Rule| rule.switch == switch.name;
            let has_rule = RULES.iter().filter(is_of).any(|rule| (rule.variant)(&set).is_some());
            let is_harmless = number == 0 || HARMLESS.contains(&(switch.name, variant.name));
            assert!(has_rule != is_harmless, "{}={}", switch.name, variant.name);
        }
    }
}

#[test]
fn the_sound_profile_has_no_objection_whatever_the_workload() {
    for workload in [TWO, TRACE, DRAWN] {
        let extra = ["faults=[{abort={request=0}}]", "link.delay_every=2", "link.delay_ticks=9"];
        assert_eq!(objected(&[&[workload], &extra[..]].concat()), [""; 0]);
    }
}

#[test]
fn sound_alternatives_have_no_objection() {
    for assignment in [
        "behaviour.decode_match_unit=physical_page",
        "behaviour.decode_match_unit=token",
        "behaviour.chunk_cut=exact_budget",
        "behaviour.early_send=settled_cut",
        "behaviour.early_send=settled_skipped",
        "behaviour.refused_request=served_again",
        "behaviour.retraction=send_again",
        "behaviour.packing=none",
        "behaviour.send_split=no",
        "behaviour.planner=indexed",
        "behaviour.send_split=crossings",
        "behaviour.decode_insert=at_activation",
        "behaviour.eviction_demand=padded",
        "behaviour.prompt_node=own",
        "behaviour.reservation_call=extend",
        "behaviour.last_running=aborted",
        "behaviour.split_stamp=inherited",
        "behaviour.hit_count=once_per_request",
        "behaviour.hit_count=not_chunks",
        "behaviour.output_limit=clipped",
        "behaviour.release_insert=again",
        "behaviour.aborted_chunk=kept_if_last",
        "behaviour.aborted_step=counted",
        "behaviour.retraction_order=batch",
    ] {
        assert_eq!(objected(&[TRACE, assignment]), [""; 0], "{assignment}");
    }
}

#[test]
fn releases_are_judged_by_what_acts() {
    let release = |name: &str, more: &[&str]| {
        let profile = format!("profile={name}");
        objected(&[&[TRACE, &*profile], more].concat())
    };
    let scheduler = ["decode_turn", "resumption_demand", "prefill_batch", "front_check"];
    let without_reserve = ["decode_turn", "prefill_batch", "front_check"];
    assert_eq!(release("sglang-0.5.17", &["decode.cache=none"]), without_reserve);
    assert_eq!(release("sglang-0.5.20", &[]), [&["packing"], &without_reserve[..]].concat());
    let reserve = "decode.reserved_tokens=512";
    assert_eq!(release("sglang-0.5.23", &[reserve]), scheduler);
    assert_eq!(release("sglang-0.5.23", &["decode.reserved_tokens=0"]), without_reserve);
    assert_eq!(lint(&with(&["profile=sglang-0.5.23"])), []);
    let abort = "faults=[{abort={request=0}}]";
    let at_ends = ["release_on_abort", "source_release"];
    let packing = [&at_ends[..], &["packing"], &without_reserve].concat();
    assert_eq!(release("sglang-0.5.20", &[abort]), packing);
    let with_abort = release("sglang-0.5.23", &[abort, reserve]);
    assert_eq!(with_abort, [&at_ends[..], &scheduler].concat());
    assert_eq!(lint(&with(&["profile=sglang-0.5.20"])), []);
    assert_eq!(Profile::all().len(), 5);
}

#[test]
fn a_prefix_cut_matters_where_a_hit_can_end_inside_a_virtual_page() {
    let token = "behaviour.decode_match_unit=token";
    let physical = "behaviour.decode_match_unit=physical_page";
    for cut in ["physical_page", "none", "padded_up"] {
        let cut = &*format!("behaviour.decode_prefix_cut={cut}");
        let to_physical = cut.ends_with("physical_page");
        check(
            "decode_prefix_cut",
            &[
                (&[cut], false),
                (&[cut, physical], true),
                (&[cut, token], true),
                (&[cut, physical, "decode.cache=none"], false),
                (&[cut, physical, "layout.ranks=1"], false),
                (&[cut, token, "layout.ranks=1"], !to_physical),
                (&[cut, token, "layout.ranks=1", "layout.page_size=1"], false),
                (&[TRACE, cut, physical], true),
            ],
        );
        let alone = "workload={requests=[{prompt=[{content=1,len=7}],output=2}]}";
        check("decode_prefix_cut", &[(&[alone, cut, physical], false)]);
    }
}

#[test]
fn a_reservation_is_judged_by_the_prompt_lengths() {
    // Virtual pages of 4 tokens, prompts of 7 and 9.
    let [first, second] = [0, 1]
        .map(|request| move |len: u32| format!("workload.requests.{request}.prompt.0.len={len}"));
    let floor = "behaviour.decode_reservation=floor";
    let short = "behaviour.decode_reservation=one_short";
    let physical = "behaviour.decode_reservation=by_physical_page";
    let (eight, twelve) = (&*first(8), &*second(12));
    let (one, two) = (&*first(1), &*second(2));
    check(
        "decode_reservation",
        &[
            (&[floor], true),
            (&[floor, eight], true),
            (&[floor, eight, twelve], false),
            // With two pages the pool runs out, and what resumes is of another length.
            (&[floor, eight, twelve, "decode.pages=3"], true),
            (&[floor, "layout.page_size=1", "layout.ranks=1"], false),
            (&[TRACE, floor], true),
            (&[short], false),
            (&[short, eight], true),
            (&[TRACE, short], true),
            (&[physical], true),
            (&[physical, "layout.ranks=1"], false),
            (&[physical, one, two], false),
        ],
    );
}

#[test]
fn piece_cursors_matter_where_there_can_be_a_second_piece() {
    for (switch, assignment) in [
        ("destination_list", "behaviour.destination_list=sliced_by_chunk"),
        ("source_offset", "behaviour.source_offset=pages_of_chunk"),
    ] {
        check(
            switch,
            &[
                (&[assignment], false),
                // Eight and ten tokens in whole pages wait together.
                (&[assignment, "prefill.chunk_tokens=20"], false),
                (&[assignment, "prefill.chunk_tokens=19"], true),
                (&[assignment, "link.pack_tokens=8"], true),
                (&[assignment, "link.pack_tokens=8", "behaviour.send_split=no"], false),
                (&[assignment, "behaviour.early_send=settled_cut"], true),
                (&[assignment, "behaviour.early_send=settled_cut", "prefill.cache=none"], false),
                (&[DRAWN, assignment], false),
                (&[DRAWN, assignment, "prefill.chunk_tokens=23"], true),
                (&[TRACE, assignment], true),
            ],
        );
    }
    let zero = "behaviour.source_offset=pages_from_zero";
    check("source_offset", &[(&[zero], true), (&[zero, "decode.cache=none"], false)]);
}

#[test]
fn a_partial_send_matters_where_chunks_are_cut_inside_a_page() {
    let none = "behaviour.send_cut=none";
    let exact = "behaviour.chunk_cut=exact_budget";
    check(
        "send_cut",
        &[
            (&[TRACE, none], false),
            (&[TRACE, none, exact], true),
            (&[TRACE, none, exact, "layout.page_size=1"], false),
            (&[none, exact], false),
            (&[none, exact, "prefill.chunk_tokens=5"], true),
        ],
    );
}

#[test]
fn early_sends_matter_with_a_prefill_cache() {
    for variant in ["launched", "settled_rest_dropped"] {
        let early = &*format!("behaviour.early_send={variant}");
        check("early_send", &[(&[early], true), (&[early, "prefill.cache=none"], false)]);
    }
}

#[test]
fn a_dropped_empty_message_matters_for_full_hits_and_idle_ranks() {
    let dropped = "behaviour.empty_last=dropped";
    check(
        "empty_last",
        &[
            (&[dropped], true),
            (&[dropped, "decode.cache=none"], false),
            (&[dropped, "decode.cache=none", "layout.ranks=8"], true),
            (&[dropped, "decode.cache=none", "prefill.chunk_tokens=8"], true),
            (&[TRACE, dropped, "decode.cache=none"], true),
            (&[TRACE, dropped, "decode.cache=none", "layout.ranks=1"], false),
        ],
    );
}

#[test]
fn early_release_matters_with_aborts_and_with_refusals() {
    for variant in ["at_once", "timeout"] {
        let release = &*format!("behaviour.release_on_abort={variant}");
        let abort = "faults=[{abort={request=0}}]";
        check("release_on_abort", &[(&[release], false), (&[release, abort], true)]);
        let floor = "behaviour.decode_reservation=floor";
        let expected = ["decode_reservation", "release_on_abort"];
        assert_eq!(objected(&[release, floor]), expected);
    }
}

#[test]
fn what_an_abort_leaves_behind_matters_where_a_request_can_fail() {
    for (switch, variant) in
        [("source_release", "landed_or_aborted"), ("aborted_chunk", "sent_if_last")]
    {
        let set = &*format!("behaviour.{switch}={variant}");
        let fault = |fault: &str| format!("faults=[{{{fault}={{request=0}}}}]");
        check(switch, &[(&[set], false), (&[set, &*fault("abort")], true)]);
        let lost = "faults=[{lose={request=0,message=0}}]";
        check(switch, &[(&[set, lost], true)]);
    }
}

#[test]
fn what_a_retracted_request_waits_for_matters_where_decode_pages_run_out() {
    let turn = "behaviour.decode_turn=between_steps";
    let alone = "workload={requests=[{prompt=[{content=1,len=7}],output=2}]}";
    // Eleven tokens each at the most: three pages, six for both.
    let (six, five) = ("decode.pages=6", "decode.pages=5");
    check(
        "decode_turn",
        &[
            (&[turn], false),
            (&[turn, six], false),
            (&[turn, five], true),
            (&[turn, five, alone], false),
            (&[TRACE, turn], true),
        ],
    );
    let reserved = "behaviour.resumption_demand=reserved";
    let one = "decode.reserved_tokens=1";
    check(
        "resumption_demand",
        &[
            (&[reserved, one], false),
            (&[reserved, five], false),
            (&[reserved, five, one], true),
            (&[reserved, five, one, alone], false),
            (&[TRACE, reserved, one], true),
        ],
    );
}

#[test]
fn margins_matter_where_a_request_is_near_the_size_of_a_pool() {
    // The longest prompt has 9 tokens, and 11 with its output; prefill pages of 2, decode of 4.
    let demand = "behaviour.admission_demand=with_output";
    check(
        "admission_demand",
        &[
            (&[demand], false),
            (&[demand, "decode.pages=3"], false),
            (&[demand, "workload.requests.1.output=4", "decode.pages=3"], true),
            (&[DRAWN, demand], false),
            (&[TRACE, demand], true),
            (&[DRAWN, demand, "behaviour.retraction=send_again"], false),
        ],
    );
    let at_once = "behaviour.prefill_batch=at_once";
    check(
        "prefill_batch",
        &[
            (&[at_once], false),
            (&[at_once, "prefill.pages=7"], false),
            (&[at_once, "prefill.pages=6"], true),
            (&[TRACE, at_once], true),
        ],
    );
    let length = "behaviour.front_check=input_length";
    check(
        "front_check",
        &[
            (&[length], false),
            (&[length, "prefill.pages=8"], false),
            (&[length, "prefill.pages=7"], true),
            (&[length, "decode.pages=4"], false),
            (&[length, "decode.pages=3"], true),
            (&[length, "decode.reserved_tokens=52"], false),
            (&[length, "decode.reserved_tokens=53"], true),
            (&[length, "workload.requests.1.output=57"], true),
            (&[TRACE, length], true),
        ],
    );
}

#[test]
fn an_unlocked_match_matters_where_the_decode_cache_is_evicted() {
    let none = "behaviour.lock_on_match=none";
    check(
        "lock_on_match",
        &[
            (&[none], false),
            // Eleven tokens each at the most: three pages, six for both.
            (&[none, "decode.pages=6"], false),
            (&[none, "decode.pages=5"], true),
            (&[none, "behaviour.eviction_demand=padded"], true),
            (&[none, "decode.pages=5", "decode.cache=none"], false),
            (&[none, "faults=[{flush={side=\"decode\",at=1}}]"], true),
            (&[TRACE, none], true),
        ],
    );
}

#[test]
fn double_frees_matter_with_a_prefill_cache() {
    let insert = "behaviour.duplicate_insert=free_without_remap";
    let check_off = "behaviour.free_check=none";
    check(
        "duplicate_insert",
        &[(&[insert], true), (&[insert, "prefill.cache=none"], false), (&[check_off], false)],
    );
    assert_eq!(objected(&[insert, check_off]), ["duplicate_insert", "free_check"]);
}

#[test]
fn early_completion_matters_with_reordering_or_with_several_parts() {
    let last = "behaviour.transfer_completion=last_part_seen";
    let any = "behaviour.transfer_completion=any_part";
    let delay = ["link.delay_every=3", "link.delay_ticks=100"];
    check(
        "transfer_completion",
        &[
            (&[TRACE, last], false),
            (&[TRACE, last, delay[0]], false),
            (&[TRACE, last, delay[0], delay[1]], true),
            (&[last, delay[0], delay[1]], false),
            (&[any], true),
            (&[any, "layout.ranks=1"], false),
            (&[any, "layout.ranks=1", "prefill.chunk_tokens=6"], true),
        ],
    );
}

#[test]
fn demand_in_tokens_matters_where_several_requests_can_be_short() {
    let tokens = "behaviour.next_step_demand=tokens";
    check(
        "next_step_demand",
        &[
            (&[tokens], false),
            (&[tokens, "decode.pages=7"], false),
            (&[tokens, "decode.pages=6"], true),
            (&[TRACE, tokens], true),
            (&[TRACE, tokens, "layout.page_size=1", "layout.ranks=1"], false),
        ],
    );
}

#[test]
fn a_key_without_namespace_matters_where_there_are_several() {
    let without = "behaviour.cache_key=without_namespace";
    let other = "workload.requests.1.namespace=3";
    check(
        "cache_key",
        &[
            (&[without], false),
            (&[TRACE, without], false),
            (&[DRAWN, without], false),
            (&[without, other], true),
            (&[without, other, "workload.requests.0.namespace=3"], false),
            (&[without, other, "decode.cache=none"], true),
            (&[without, other, "decode.cache=none", "prefill.cache=none"], false),
        ],
    );
}

#[test]
fn a_physical_hash_matters_for_a_decode_cache_over_several_ranks() {
    let physical = "behaviour.cache_hash_unit=physical_page";
    check(
        "cache_hash_unit",
        &[
            (&[physical], true),
            (&[TRACE, physical], true),
            (&[physical, "layout.ranks=1"], false),
            (&[physical, "decode.cache=none"], false),
        ],
    );
}

#[test]
fn a_hash_of_a_chunk_alone_matters_where_a_chunk_begins_inside_a_prompt() {
    let own = "behaviour.chunk_hash=own_tokens";
    let alone = "workload={requests=[{prompt=[{content=1,len=7}],output=2}]}";
    check(
        "chunk_hash",
        &[
            // The second request's first chunk begins behind a hit.
            (&[own], true),
            (&[own, "prefill.cache=none"], false),
            (&[alone, own], false),
            (&[alone, own, "prefill.chunk_tokens=6"], true),
            (&[TRACE, own], true),
        ],
    );
}

#[test]
fn untranslated_rows_matter_for_several_ranks() {
    for (switch, assignment) in
        [("relayout", "behaviour.relayout=none"), ("rows", "behaviour.rows=virtual_as_local")]
    {
        check(
            switch,
            &[
                (&[assignment], true),
                (&[TRACE, assignment], true),
                (&[assignment, "layout.ranks=1"], false),
            ],
        );
    }
}

#[test]
fn a_token_too_many_matters_where_a_prompt_fills_its_virtual_pages() {
    let more = "behaviour.source_length=one_more";
    check(
        "source_length",
        &[
            (&[more], false),
            (&[more, "workload.requests.0.prompt.0.len=8"], true),
            // With two pages the pool runs out, and what resumes is of another length.
            (&[more, "decode.pages=3"], true),
            (&[TRACE, more], true),
        ],
    );
    // The send that fits the pack buffer without it does not fit with it.
    let buffer = "behaviour.packing=buffer_checked";
    let whole = "behaviour.send_split=no";
    let pack = "link.pack_tokens=9";
    check("packing", &[(&[buffer, whole, pack], false), (&[more, buffer, whole, pack], true)]);
}

#[test]
fn a_capacity_in_another_unit_matters_where_the_units_differ() {
    let rank = "behaviour.capacity_unit=rank_rows";
    let uncut = "behaviour.capacity_unit=not_cut_to_pages";
    let (kept, one) = ("decode.reserved_tokens=1", "layout.ranks=1");
    check(
        "capacity_unit",
        &[
            (&[rank], true),
            (&[rank, one], false),
            (&[rank, one, "decode.leftover_rows=1"], true),
            (&[rank, one, kept], true),
            (&[uncut], false),
            (&[uncut, "decode.leftover_rows=1"], true),
            (&[uncut, kept], true),
            (&[uncut, kept, one, "layout.page_size=1"], false),
        ],
    );
}

#[test]
fn segments_matter_where_an_output_begins_inside_a_page() {
    let any = "behaviour.free_segment=any_start";
    let (eight, twelve) =
        ("workload.requests.0.prompt.0.len=8", "workload.requests.1.prompt.0.len=12");
    let single = ["workload.requests.0.output=1", "workload.requests.1.output=1"];
    check(
        "free_segment",
        &[
            (&[any], true),
            (&[any, eight], true),
            (&[any, eight, twelve], false),
            (&[any, single[0], single[1]], false),
            (&[TRACE, any], true),
            (&[TRACE, any, "layout.page_size=1", "layout.ranks=1"], false),
        ],
    );
    let check_off = "behaviour.free_check=none";
    assert_eq!(objected(&[any, check_off]), ["free_check", "free_segment"]);
}

#[test]
fn draft_kv_matters_over_several_ranks() {
    let kept = ["behaviour.planner=indexed", "decode.draft=true"];
    for (switch, assignment) in [
        ("draft_rows", "behaviour.draft_rows=by_target_list"),
        ("replicated_pool", "behaviour.replicated_pool=rows_and_one_page"),
    ] {
        check(
            switch,
            &[
                (&[kept[0], assignment], false),
                (&[kept[0], kept[1], assignment], true),
                (&[kept[0], kept[1], assignment, "layout.ranks=1"], false),
            ],
        );
    }
}

#[test]
fn a_buffer_check_matters_where_a_send_can_be_larger_than_the_buffer() {
    let (buffer, whole) = ("behaviour.packing=buffer_checked", "behaviour.send_split=no");
    check(
        "packing",
        &[
            (&[TRACE, buffer], false),
            (&[TRACE, buffer, whole], true),
            (&[TRACE, buffer, whole, "layout.ranks=1"], false),
            (&[buffer, whole, "link.pack_tokens=9"], false),
            (&[buffer, whole, "link.pack_tokens=8"], true),
            // Without a prefix, a send is a chunk and at most the page that waited.
            (&[TRACE, buffer, whole, "prefill.cache=none", "link.pack_tokens=8193"], false),
            (&[TRACE, buffer, whole, "prefill.cache=none"], true),
        ],
    );
}
