use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::draw::Draw;
use super::driver::{Driver, Engine, Told, Trouble};
use super::judge::{Defect, judge};
use super::protocol::{Answer, Asked, CallKind, Can, Done, Hello, PROTOCOL, Question};
use super::session::{Seen, SessionError, Settings, run};
use crate::conform::{Level, told};
use crate::engine::Profile;
use crate::scenario::{Scenario, file};

fn can() -> Can {
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
    Can {
        calls: vec![CallKind::Plan],
        page_sizes: vec![1, 4, 16],
        ranks: vec![1, 2, 4],
        caches: names(&["radix", "none"]),
        evictions: names(&["lru", "fifo"]),
        admissions: names(&["first_come"]),
        aborts: true,
        namespaces: true,
        costs: false,
    }
}

fn hello() -> Hello {
    Hello {
        protocol: PROTOCOL,
        engine: "sglang".to_owned(),
        version: "0.5.23".to_owned(),
        can: can(),
        stubs: vec!["everything".to_owned()],
        changed: Vec::new(),
    }
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

// The protocol --------------------------------------------------------------------------------

const SMALL: &str = r#"
    version = 1
    title = "small"
    profile = "sglang-0.5.23"
    layout = { page_size = 2, ranks = 2 }
    prefill = { pages = 8, chunk_tokens = 4, eviction = "fifo" }
    decode = { pages = 9, cache = "none", reserved_tokens = 3 }
    [[workload.requests]]
    prompt = [{ content = 7, offset = 1, len = 2 }, { content = 8, len = 1 }]
    output = 2
    output_content = 9
    [[workload.requests]]
    at = 5
    prompt = [{ content = 7, len = 2 }, { content = 9, len = 1 }]
    output = 1
    namespace = 1
    [[faults]]
    abort = { request = 1, after = 11 }
"#;

#[test]
fn questions_are_spelled_as_documented() {
    let hello = serde_json::to_value(Question::Hello { protocol: 1 }).unwrap();
    assert_eq!(hello, json!({"hello": {"protocol": 1}}));
    let calls = serde_json::to_value(Question::Calls { kind: CallKind::Alloc, seed: 4 }).unwrap();
    assert_eq!(calls, json!({"calls": {"kind": "alloc", "seed": 4}}));
    let scenario = file::parse(SMALL, "small").unwrap();
    let asked = Question::Scenario(Box::new(Asked::of(&scenario).unwrap()));
    let expected = json!({"scenario": {
        "page_size": 2, "ranks": 2,
        "prefill": {"pages": 8, "cache": true, "eviction": "fifo", "admission": "first_come",
                    "chunk_tokens": 4, "step_ticks": 5_000, "token_ticks": 20},
        "decode": {"pages": 9, "cache": false, "eviction": "lru", "reserved_tokens": 3,
                   "step_ticks": 20_000, "request_ticks": 20},
        "link": {"copy_ticks": 50, "bytes_per_tick": 25_000, "token_bytes": 70_272,
                 "message_ticks": 100, "pack_tokens": 8_192},
        // The second prompt's second token is the first one's first, its last the first output.
        "requests": [
            {"at": 0, "prompt": [1, 2, 3], "output": [4, 5], "abort": null, "namespace": 0},
            {"at": 5, "prompt": [6, 1, 4], "output": [7], "abort": 11, "namespace": 1},
        ],
    }});
    assert_eq!(serde_json::to_value(asked).unwrap(), expected);
}

#[test]
fn answers_are_read_strictly() {
    let read = |value: Value| serde_json::from_value::<Answer>(value);
    let said = serde_json::to_value(hello()).unwrap();
    assert_eq!(read(json!({"hello": said})).unwrap(), Answer::Hello(Box::new(hello())));
    let event = json!({"t": 1, "ev": "arrives", "r": 0, "prompt": 3});
    assert_eq!(read(json!({"event": event})).unwrap(), Answer::Event(object(&event)));
    let done = |crashed: Option<&str>| Answer::Done(Done { crashed: crashed.map(str::to_owned) });
    assert_eq!(read(json!({"done": {"crashed": null}})).unwrap(), done(None));
    assert_eq!(read(json!({"done": {"crashed": "why"}})).unwrap(), done(Some("why")));
    assert_eq!(read(json!({"answer": {}})).unwrap(), Answer::Answer(Map::new()));
    assert_eq!(read(json!({"refused": "no"})).unwrap(), Answer::Refused("no".to_owned()));
    let mut more = serde_json::to_value(hello()).unwrap();
    more["can"]["fly"] = true.into();
    for wrong in [
        json!({"hello": more}),
        json!({"done": {}}),
        json!({"done": {"crashed": null, "well": true}}),
        json!({"event": 1}),
        json!({"other": {}}),
        json!({}),
    ] {
        assert!(read(wrong.clone()).is_err(), "{wrong}");
    }
}

// Drivers that are scripts --------------------------------------------------------------------

/// A driver that says who it is, and to every other question what `script` prints.
fn script(script: &str) -> Result<Driver, Trouble> {
    let hello = json!({"hello": serde_json::to_value(hello()).unwrap()});
    let command =
        format!("sh -c 'read q; echo '\\''{hello}'\\''; while read q; do {script}; done'");
    Driver::start(&command, Duration::from_secs(2))
}

fn asked(driver: Result<Driver, Trouble>) -> Told {
    driver.unwrap().run(&file::parse(SMALL, "small").unwrap())
}

#[test]
fn a_driver_s_events_come_in_order_and_end_with_done() {
    let event = |t: u64| object(&json!({"t": t}));
    let echo = r#"echo "{\"event\": {\"t\": 1}}"; echo "{\"event\": {\"t\": 2}}""#;
    let Told { events, end } = asked(script(&format!("{echo}; echo '\\''{}'\\''", DONE)));
    assert_eq!(events, [event(1), event(2)]);
    assert_eq!(end, Ok(Done { crashed: None }));
}

const DONE: &str = r#"{"done": {"crashed": null}}"#;

#[test]
fn a_driver_that_hangs_ends_or_talks_nonsense_is_told_apart_and_its_events_are_kept() {
    let event = r#"echo "{\"event\": {\"t\": 1}}""#;
    let end = |rest: &str| {
        let Told { events, end } = asked(script(&format!("{event}; {rest}")));
        assert_eq!(events.len(), 1, "{rest}");
        end.unwrap_err()
    };
    assert_eq!(end("sleep 100"), Trouble::Hangs(2));
    let Trouble::Ended(words) = end("echo farewell >&2; exit 7") else { panic!() };
    assert!(words.contains("farewell") && words.contains('7'), "{words}");
    for rest in ["echo words", r#"echo "{\"done\": {}}""#, r#"echo "{\"answer\": {}}""#] {
        assert!(matches!(end(rest), Trouble::Nonsense(_)), "{rest}");
    }
    assert_eq!(end(r#"echo "{\"refused\": \"tired\"}""#), Trouble::Refuses("tired".to_owned()));
}

#[test]
fn a_driver_must_say_who_it_is() {
    let start = |command: &str| match Driver::start(command, Duration::from_secs(2)) {
        Ok(_) => panic!("{command} is no driver"),
        Err(trouble) => trouble,
    };
    assert!(matches!(start("no-such-driver"), Trouble::Ended(_)));
    assert!(matches!(start("true"), Trouble::Ended(_)));
    assert_eq!(start("sleep 100"), Trouble::Hangs(2));
    assert!(matches!(start("echo hello"), Trouble::Nonsense(_)));
    let refuses = r#"sh -c 'echo "{\"refused\": \"0.1 is not known\"}"; exit 2'"#;
    assert_eq!(start(refuses), Trouble::Refuses("0.1 is not known".to_owned()));
    let mut other = hello();
    other.protocol = 2;
    let said = json!({"hello": serde_json::to_value(other).unwrap()});
    let Trouble::Nonsense(why) = start(&format!("sh -c 'read q; echo '\\''{said}'\\'''")) else {
        panic!()
    };
    assert_eq!(why, "protocol: must be 1, got 2");
}

// Scenarios -----------------------------------------------------------------------------------

#[test]
fn what_is_drawn_keeps_to_what_the_driver_can_do() {
    let can = can();
    let draw = Draw::new(Profile::named("sglang-0.5.23").unwrap(), &can, 3);
    let (mut aborts, mut ranks, mut fifo) = (0, 0, 0);
    for number in 0..200 {
        let scenario = draw.scenario(number).expect("one of a hundred draws is valid");
        assert!(draw.allows(&scenario), "{}", scenario.to_toml());
        assert_eq!(draw.scenario(number).as_ref(), Some(&scenario));
        aborts += scenario.faults.len();
        ranks += usize::from(scenario.layout.ranks > 1);
        fifo += usize::from(scenario.decode.eviction == "fifo");
    }
    assert!(aborts > 50 && ranks > 50 && fifo > 5, "{aborts} {ranks} {fifo}");
    let scenario = draw.scenario(0).unwrap();
    let mut other = scenario.clone();
    other.layout.page_size = 8;
    assert!(!draw.allows(&other));
    let other = Scenario { profile: Profile::SOUND, ..scenario };
    assert!(!draw.allows(&other));
}

// The judge -----------------------------------------------------------------------------------

#[test]
fn each_defect_of_an_engine_is_named_and_a_clean_run_has_none() {
    let census = |free: u64| {
        json!({"t": 9, "ev": "census", "r": null, "side": "decode", "total": 8, "free": free,
               "evictable": 2, "protected": 0})
    };
    let arrives = json!({"t": 0, "ev": "arrives", "r": 0, "prompt": 3});
    let judged = |events: &[Value], crashed: Option<&str>| {
        let events: Vec<_> = events.iter().map(object).collect();
        judge(&events, &Done { crashed: crashed.map(str::to_owned) })
    };
    assert_eq!(judged(&[arrives.clone(), census(6)], None), []);
    assert_eq!(judged(&[arrives.clone(), census(5)], None), [Defect::PagesLeft]);
    let wrong = json!({"t": 3, "ev": "WRONG", "r": 0, "rows": [[0, "content"]], "count": 1});
    assert_eq!(judged(&[arrives.clone(), wrong, census(6)], None), [Defect::RowsWrong]);
    assert_eq!(judged(&[arrives.clone(), census(5)], Some("ValueError")), [Defect::Raised]);
    let stuck = json!({"t": 9, "ev": "stuck", "r": null, "requests": [0]});
    let last = Defect::Stuck(["arrives".to_owned()].into());
    assert_eq!(last.kind(), "requests are stuck after: arrives");
    assert_eq!(
        judged(&[arrives.clone(), census(5), stuck.clone()], None),
        std::slice::from_ref(&last)
    );
    let died = json!({"t": 4, "ev": "thread_died", "r": 0, "error": "list index"});
    let both = judged(&[arrives, died, census(5), stuck], None);
    assert_eq!(both, [Defect::ThreadDied, Defect::Stuck(["arrives".to_owned()].into())]);
}

// Sessions with an engine that is the model ---------------------------------------------------

/// What is done to the events of the how-manieth scenario.
type Change = fn(u64, &mut Vec<Map<String, Value>>) -> Result<(), Trouble>;

/// The model as an engine, with a change.
struct Mirror {
    hello: Hello,
    change: Change,
    asked: Rc<Cell<u64>>,
}

impl Engine for Mirror {
    fn hello(&self) -> &Hello {
        &self.hello
    }

    fn run(&mut self, scenario: &Scenario) -> Told {
        self.asked.set(self.asked.get() + 1);
        let mut events = told::events(scenario);
        let changed = (self.change)(self.asked.get(), &mut events);
        Told { events, end: changed.map(|()| Done { crashed: None }) }
    }

    fn call(&mut self, _kind: CallKind, seed: u64) -> Result<Map<String, Value>, Trouble> {
        let vectors = include_str!("../../tests/vectors/plan.jsonl");
        let line = vectors.lines().nth(seed as usize).unwrap();
        Ok(serde_json::from_str(line).unwrap())
    }
}

fn session(
    name: &str,
    runs: u64,
    shrink: u64,
    change: Change,
) -> (Result<Seen, SessionError>, PathBuf) {
    let folder = tempfile::tempdir().unwrap().keep().join(name);
    let settings = Settings {
        command: "the model".to_owned(),
        runs,
        time: None,
        calls: 2,
        seed: 1,
        level: Level::Ticks,
        shrink,
        folder: folder.clone(),
    };
    let asked = Rc::new(Cell::new(0));
    let start = || {
        let asked = Rc::clone(&asked);
        Ok(Box::new(Mirror { hello: hello(), change, asked }) as Box<dyn Engine>)
    };
    (run(&settings, &start, &AtomicBool::new(false), |_| {}), folder)
}

/// The model refuses nothing under this profile, but may be stuck: then the mirror is, too.
fn only_stuck(seen: &Seen) -> bool {
    seen.finds.iter().all(|find| find.kind.starts_with("defect: requests are stuck"))
}

#[test]
fn an_engine_that_is_the_model_agrees_at_every_level() {
    let (seen, folder) = session("agrees", 60, 500, |_, _| Ok(()));
    let seen = seen.unwrap();
    assert!(only_stuck(&seen), "{:?}", seen.finds);
    assert_eq!((seen.runs, &seen.agree[..]), (60, &[60; 4][..]));
    assert_eq!(seen.calls[&CallKind::Plan], [2, 0]);
    let ledger = std::fs::read_to_string(folder.join("ledger.jsonl")).unwrap();
    let lines: Vec<Value> =
        ledger.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1 + 2 + 60);
    assert_eq!(lines[0]["driver"]["hello"]["version"], "0.5.23");
    assert_eq!(lines[1]["call"]["agrees"], true);
    assert_eq!(lines[62]["scenario"]["level"], 4);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Says that the second request of every scenario got a prefix of one page more.
#[test]
fn a_planted_difference_is_found_and_shrunk_with_both_streams_in_the_file() {
    let (seen, folder) = session("differs", 12, 500, |_, events| {
        for event in events.iter_mut().filter(|event| event["ev"] == "reserved") {
            if event["r"] == 1 {
                event["S"] = (event["S"].as_u64().unwrap() + 1).into();
            }
        }
        Ok(())
    });
    let seen = seen.unwrap();
    let find = seen.finds.iter().find(|find| find.kind.starts_with("difference")).unwrap();
    assert_eq!(find.kind, "difference at level 1: reserved instead of reserved");
    assert_eq!(find.requests[1], 2, "{find:?}");
    assert!(seen.shown[1] >= find.count && find.count > 3);
    let text = std::fs::read_to_string(&find.file).unwrap();
    assert!(text.contains("# the engine:\n") && text.contains("# the model:\n"), "{text}");
    assert!(text.contains("reserved S=1") && text.contains("reserved S=0"), "{text}");
    assert_eq!(file::parse(&text, "find").unwrap().faults, []);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_engine_that_fails_now_and_then_is_started_again() {
    let (seen, folder) = session("fails", 9, 0, |asked, _| match asked {
        3 => Err(Trouble::Hangs(1)),
        6 => Err(Trouble::Ended("killed".to_owned())),
        _ => Ok(()),
    });
    let seen = seen.unwrap();
    assert_eq!((seen.runs, seen.shown[2], seen.restarts), (9, 2, 2));
    let kinds: Vec<&str> = seen.finds.iter().map(|find| find.kind.as_str()).collect();
    assert!(kinds.contains(&"driver hangs") && kinds.contains(&"driver ended"), "{kinds:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_engine_that_fails_again_and_again_ends_the_session() {
    let (seen, folder) = session("hopeless", 50, 0, |_, _| Err(Trouble::Hangs(1)));
    assert!(matches!(seen, Err(SessionError::Hopeless(5, Trouble::Hangs(1)))));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn events_that_are_none_are_the_driver_s_trouble_and_a_defect_is_one_even_where_both_agree() {
    let (seen, folder) = session("nonsense", 5, 500, |_, events| {
        events.push(object(&json!({"t": 0, "ev": "sings", "r": 0})));
        Ok(())
    });
    let seen = seen.unwrap();
    assert_eq!((seen.shown[2], seen.agree[0]), (5, 0));
    std::fs::remove_dir_all(folder).unwrap();
    let (seen, folder) = session("defect", 3, 500, |_, events| {
        events.push(object(&json!({"t": 9, "ev": "thread_died", "r": 0, "error": "why"})));
        Ok(())
    });
    let seen = seen.unwrap();
    assert_eq!(seen.agree, [3; 4]);
    assert!(seen.finds.iter().any(|find| find.kind == "defect: a thread has died"));
    std::fs::remove_dir_all(folder).unwrap();
}
