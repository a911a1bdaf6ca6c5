//! A slice of the recorded answers: every line passes, and no answer can be changed unnoticed.

use serde_json::{Value, json};

use super::{LineError, alloc, radix};
use crate::behaviour::SplitStamp;

const ALLOC: &str = include_str!("../../tests/vectors/alloc.jsonl");
const RADIX: &str = include_str!("../../tests/vectors/radix.jsonl");
const TAILS: &str = include_str!("../../tests/vectors/radix-tlru.jsonl");
const UNIFIED: &str = include_str!("../../tests/vectors/radix-unified.jsonl");

type Check = fn(&str) -> Result<(), LineError>;

/// The fields of an op that are answers.
fn answers(op: &str) -> &'static [&'static str] {
    match op {
        "extend" | "decode" | "alloc" => &["rows", "available"],
        "free" => &["available"],
        "match" => &["rows", "evictable", "protected"],
        "insert" | "lock" => &["matched", "evictable", "protected"],
        "unlock" => &["evictable", "protected"],
        "evict" => &["evicted", "freed", "evictable", "protected"],
        other => panic!("no op {other}"),
    }
}

/// The answer with one number changed, once for each number; and null for a list and back.
fn changed(answer: &Value) -> Vec<Value> {
    match answer {
        Value::Number(number) => {
            let number = number.as_u64().expect("answers are whole numbers");
            let mut others = vec![json!(number + 1), json!(number + 64)];
            others.extend(number.checked_sub(1).map(|less| json!(less)));
            others
        }
        Value::Array(list) => {
            let mut others = vec![Value::Null];
            for (at, element) in list.iter().enumerate() {
                others.extend(changed(element).into_iter().map(|element| {
                    let mut list = list.clone();
                    list[at] = element;
                    Value::Array(list)
                }));
            }
            others
        }
        Value::Null => vec![json!([]), json!([1])],
        other => panic!("no answer is {other}"),
    }
}

fn assert_every_change_is_noticed(text: &str, check: Check) {
    for line in text.lines() {
        assert_eq!(check(line), Ok(()), "{line}");
        let recorded: Value = serde_json::from_str(line).unwrap();
        for (at, op) in recorded["ops"].as_array().unwrap().iter().enumerate() {
            for field in answers(op["op"].as_str().unwrap()) {
                for other in changed(&op[field]) {
                    let mut line = recorded.clone();
                    line["ops"][at][field] = other;
                    assert!(check(&line.to_string()).is_err(), "ops[{at}].{field} of {line}");
                }
            }
        }
    }
}

#[test]
fn recorded_allocators_pass_and_every_changed_answer_fails() {
    assert_every_change_is_noticed(ALLOC, alloc::check);
}

#[test]
fn recorded_trees_pass_and_every_changed_answer_fails() {
    assert_every_change_is_noticed(RADIX, |line| radix::check(line, SplitStamp::New));
    // The first of these splits a node whose age then decides what goes.
    let first = UNIFIED.lines().next().unwrap();
    assert!(radix::check(first, SplitStamp::New).is_err());
    assert_every_change_is_noticed(UNIFIED, |line| radix::check(line, SplitStamp::Inherited));
    assert_every_change_is_noticed(TAILS, |line| radix::check(line, SplitStamp::Inherited));
}

fn assert_malformed(check: Check, line: &Value, reason: &str) {
    match check(&line.to_string()) {
        Err(error @ LineError::Malformed { .. }) => {
            let text = error.to_string();
            assert!(text.contains(reason), "{text}");
        }
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn an_impossible_allocator_line_is_refused_with_its_reason() {
    let line = |allocator: &str, page_size: u32, pages: u32, op: Value| {
        json!({"allocator": allocator, "need_sort": false, "page_size": page_size, "pages": pages,
               "ops": [op]})
    };
    let alloc = json!({"op": "alloc", "request": 1, "tokens": 4, "rows": null, "available": 0});
    let extend = |prefix: u32, length: u32, last_row: i64| {
        json!({"op": "extend", "requests": [1], "prefix_lens": [prefix], "seq_lens": [length],
               "last_rows": [last_row], "rows": null, "available": 0})
    };
    let decode = |length: u32, last_row: i64| {
        json!({"op": "decode", "requests": [1], "seq_lens": [length], "last_rows": [last_row],
               "rows": null, "available": 0})
    };
    let free = |row: u32| json!({"op": "free", "request": 1, "rows": [row], "available": 0});
    let cases = [
        (line("paged", 0, 4, alloc.clone()), "page_size: must be"),
        (line("paged", 1, 4, alloc.clone()), "page_size: must be"),
        (line("token", 2, 4, alloc.clone()), "page_size: must be"),
        (line("paged", 4, 0, alloc.clone()), "pages: must be"),
        (line("paged", 4, u32::MAX, alloc.clone()), "pages: must be"),
        (line("paged", 3, 4, alloc), "ops[0].tokens: must be a multiple of 3"),
        (line("token", 1, 4, extend(0, 1, -1)), "ops[0].op: must be alloc or free"),
        (line("token", 1, 4, decode(1, -1)), "ops[0].op: must be alloc or free"),
        (line("paged", 4, 4, extend(5, 4, 8)), "ops[0].seq_lens: must be 5 to"),
        (line("paged", 4, 4, extend(0, u32::MAX, -1)), "ops[0].seq_lens: must be 0 to"),
        (line("paged", 4, 4, decode(0, -1)), "ops[0].seq_lens: must be 1 to"),
        (line("paged", 4, 4, extend(0, 3, 5)), "ops[0].last_rows: must be -1"),
        (line("paged", 4, 4, extend(2, 3, -1)), "ops[0].last_rows: must lie in"),
        (line("paged", 4, 4, extend(2, 3, 6)), "ops[0].last_rows: must be at offset 1"),
        (line("paged", 4, 4, decode(3, 20)), "ops[0].last_rows: must lie in"),
        (line("paged", 4, 4, free(3)), "ops[0].rows: must lie in"),
        (line("paged", 4, 4, free(20)), "ops[0].rows: must lie in"),
        (line("paged", 4, 4, json!({"op": "grow"})), "must be one of"),
    ];
    for (line, reason) in cases {
        assert_malformed(alloc::check, &line, reason);
    }
    let mut uneven = extend(0, 1, -1);
    uneven["last_rows"] = json!([]);
    assert_malformed(alloc::check, &line("paged", 4, 4, uneven), "last_rows: must have 1");
    let mut unanswered = decode(1, -1);
    unanswered.as_object_mut().unwrap().remove("rows");
    assert_malformed(alloc::check, &line("paged", 4, 4, unanswered), "must be given");
    let mut unknown = free(4);
    unknown["row"] = json!(4);
    assert_malformed(alloc::check, &line("paged", 4, 4, unknown), "must be ");
}

#[test]
fn an_impossible_tree_line_is_refused_with_its_reason() {
    let line = |page_size: u32, op: Value| {
        let mut op = op;
        op["evictable"] = json!(0);
        op["protected"] = json!(0);
        json!({"policy": "lru", "page_size": page_size, "ops": [op]})
    };
    let insert = |rows: Value| {
        let key = [5, 6, 7];
        json!({"op": "insert", "key": key, "rows": rows, "priority": 0, "matched": 0})
    };
    let unlock = json!({"op": "unlock", "lock": 1});
    let cases = [
        (line(0, unlock.clone()), "page_size: must be"),
        (line(2, unlock), "ops[0].lock: must be a label that is held, got 1"),
        (line(2, insert(json!([2]))), "ops[0].rows: must be 2"),
        (line(2, insert(json!([2, 3, 4]))), "ops[0].rows: must be 2"),
        (line(2, insert(json!([3, 4]))), "ops[0].rows: must be whole pages"),
        (line(2, insert(json!([3, 2]))), "ops[0].rows: must be whole pages"),
        (line(2, insert(json!([0, 1]))), "ops[0].rows: must be whole pages"),
        (line(2, json!({"op": "flush"})), "must be one of"),
    ];
    for (line, reason) in cases {
        assert_malformed(|line| radix::check(line, SplitStamp::New), &line, reason);
    }
    let mut unknown = line(2, json!({"op": "unlock", "lock": 1}));
    unknown["policy"] = json!("random");
    assert_malformed(|line| radix::check(line, SplitStamp::New), &unknown, "must be ");
    let lock = json!({"op": "lock", "key": [], "lock": 1, "matched": 0, "evictable": 0,
                      "protected": 0});
    let twice = json!({"policy": "lru", "page_size": 1, "ops": [lock, lock]});
    assert_malformed(
        |line| radix::check(line, SplitStamp::New),
        &twice,
        "ops[1].lock: must be a label that is not held",
    );
}

#[test]
fn a_request_that_grows_by_nothing_takes_nothing() {
    let op = json!({"op": "extend", "requests": [1], "prefix_lens": [0], "seq_lens": [0],
                    "last_rows": [-1], "rows": [], "available": 16});
    let line = json!({"allocator": "paged", "need_sort": false, "page_size": 4, "pages": 4,
                      "ops": [op]});
    assert_eq!(alloc::check(&line.to_string()), Ok(()));
}
