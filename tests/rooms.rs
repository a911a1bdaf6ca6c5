//! The layering of the library, read from its source: a room uses what stands below it, never what
//! stands above; within a room no files use each other in a circle; and the oracle shares no code
//! with what it judges.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

#[path = "rooms/source.rs"]
mod source;

use source::{ModulePath, Source};

/// From the ground up.
const ROOMS: &[&str] = &[
    "domain",
    "units",
    "limits",
    "stats",
    "wording",
    "rng",
    "behaviour",
    "layout",
    "prompt",
    "memory",
    "finding",
    "event",
    "pool",
    "cache",
    "planner",
    "engine",
    "scenario",
    "workload",
    "oracle",
    "world",
    "witness",
    "replay",
    "reference",
    "minimize",
    "conform",
    "live",
    "sweep",
    "report",
    "picture",
    "explain",
    "audit",
    "claims",
    "fuzzing",
    "cli",
];

/// What the oracle may use, itself or through what it uses: the vocabulary, and the memory that it
/// shares with the world. All else is what it judges, or stands above it.
const BELOW_THE_ORACLE: &[&str] = &["units", "limits", "prompt", "memory", "finding", "event"];

fn library() -> Source {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    Source::read(&|path| fs::read_to_string(root.join(path)).ok())
}

/// Files that use a room above their own, or are in a room that the list does not have.
fn upward(source: &Source) -> Vec<String> {
    let height = |room: &str| ROOMS.iter().position(|known| *known == room);
    let mut found = Vec::new();
    for (module, file) in source.files.iter().filter(|(module, _)| !module.is_empty()) {
        let path = file.path.display();
        match height(&module[0]) {
            None => found.push(format!("{path}: {} is not in the list of rooms", module[0])),
            Some(own) => {
                let named = source.rooms_named(module).into_iter();
                let above = named.filter(|room| height(room).is_none_or(|other| other > own));
                found.extend(above.map(|room| format!("{path} uses {room}, which is above")));
            }
        }
    }
    found
}

/// Rooms that the oracle uses, itself or through others.
fn used_by_the_oracle(source: &Source) -> BTreeSet<String> {
    let mut used: BTreeSet<String> = BTreeSet::from(["oracle".to_owned()]);
    loop {
        let more: BTreeSet<String> = source
            .files
            .keys()
            .filter(|module| module.first().is_some_and(|room| used.contains(room)))
            .flat_map(|module| source.rooms_named(module))
            .map(str::to_owned)
            .collect();
        if more.is_subset(&used) {
            break;
        }
        used.extend(more);
    }
    used.remove("oracle");
    used
}

/// Circles of files of one room, each as its uses of one file by another. A module is the frame
/// of the files below it, so that these may use what it defines.
fn circles(source: &Source) -> Vec<Vec<String>> {
    let edges: BTreeMap<&ModulePath, BTreeSet<ModulePath>> = source
        .files
        .keys()
        .map(|module| {
            let mut named = source.files_named(module);
            named.retain(|other| other.first() == module.first() && !module.starts_with(other));
            (module, named)
        })
        .collect();
    let reached = |from: &ModulePath| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(module) = next.pop() {
            let new = edges[&module].iter().filter(|other| seen.insert((*other).clone()));
            next.extend(new.cloned());
        }
        seen
    };
    let reach: BTreeMap<&ModulePath, BTreeSet<ModulePath>> =
        edges.keys().map(|&module| (module, reached(module))).collect();
    let path = |module: &ModulePath| source.files[module].path.display();
    let circle = |module: &ModulePath| -> Vec<String> {
        let is_in =
            |other: &&ModulePath| reach[module].contains(*other) && reach[other].contains(module);
        let members: Vec<&ModulePath> = edges.keys().copied().filter(is_in).collect();
        let uses = members.iter().flat_map(|from| edges[from].iter().map(move |to| (from, to)));
        uses.filter(|(_, to)| members.contains(to))
            .map(|(from, to)| format!("{} uses {}", path(from), path(to)))
            .collect()
    };
    let found: BTreeSet<Vec<String>> = edges.keys().map(|&module| circle(module)).collect();
    found.into_iter().filter(|circle| !circle.is_empty()).collect()
}

#[test]
fn no_room_uses_one_above_it() {
    let library = library();
    assert!(library.files.len() > 100, "the source was found");
    assert_eq!(upward(&library), Vec::<String>::new());
}

#[test]
fn no_files_of_a_room_use_each_other_in_a_circle() {
    let found: Vec<String> = circles(&library()).iter().map(|uses| uses.join("\n")).collect();
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

#[test]
fn the_oracle_shares_no_code_with_what_it_judges() {
    let below = BELOW_THE_ORACLE.iter().map(|&room| room.to_owned()).collect();
    assert_eq!(used_by_the_oracle(&library()), below);
}

#[test]
fn the_oracle_says_in_its_docs_what_it_uses() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/oracle/mod.rs");
    let text = fs::read_to_string(path).unwrap();
    let docs: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
    let docs = docs.concat();
    let names = BELOW_THE_ORACLE.join("`, `").replace(", `event", " and `event");
    assert!(
        docs.contains(&format!("All that it uses, itself or through others, are `{names}`:")),
        "{docs}"
    );
}

/// What stands in back quotes in `text`.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn the_architecture_page_has_the_rooms_and_names_files_and_functions_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let rooms: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    assert_eq!(rooms, ROOMS);
    // A function that is named stands in the file that was named last.
    let (mut text, mut files, mut functions) = (String::new(), 0, 0);
    for name in quoted(&page) {
        if name.ends_with(".rs") {
            files += 1;
            text = fs::read_to_string(root.join(name)).unwrap_or_else(|_| panic!("no file {name}"));
        } else if let Some(function) = name.strip_suffix("()") {
            functions += 1;
            let is_there = text.contains(&format!("fn {function}("));
            assert!(is_there, "no function {name} where the page has it");
        }
    }
    assert!(files > 20 && functions > 10, "the page says where the rules stand");
}

/// A crate of these files, each a room or a file of one.
fn planted(files: &[(&str, &str)]) -> Source {
    let files: BTreeMap<String, &str> =
        files.iter().map(|&(path, text)| (format!("src/{path}"), text)).collect();
    Source::read(&|path| files.get(path.to_str()?).map(|text| (*text).to_owned()))
}

#[test]
fn a_use_of_a_room_above_is_seen_in_every_form() {
    let root = "pub mod pool; pub mod planner; pub mod world; #[cfg(test)] mod tests;";
    let above = |pool: &str| {
        let source = planted(&[
            ("lib.rs", root),
            ("pool.rs", pool),
            ("planner.rs", "pub fn plan() {}"),
            ("world.rs", "use crate::planner::plan;"),
        ]);
        upward(&source)
    };
    for text in [
        "use crate::planner;",
        "use crate::planner::{self as other};",
        "use crate::{world, planner::{inner::{A, B}, C}};",
        "pub use crate::planner::Plan;",
        "use super::planner::Plan;",
        "use crate::planner::*;",
        "mod inner { use super::super::planner::Plan; }",
        "fn f() { use crate::planner::plan; plan() }",
        "fn f() { crate::planner::plan() }",
        "fn f() -> crate::planner::Plan { todo!() }",
        "fn f() { println!(\"{:?}\", [crate::planner::plan()]) }",
        "macro_rules! m { () => { $crate::planner::plan() } }",
        "#[cfg(feature = \"test\")] use crate::planner::Plan;",
    ] {
        let found = above(text);
        assert!(
            found.iter().any(|line| line == "src/pool.rs uses planner, which is above"),
            "{text}: {found:?}"
        );
    }
    for text in [
        "#[cfg(test)] mod tests { use crate::planner::plan; }",
        "#[cfg(test)] use crate::planner::plan;",
        "#[cfg(all(test, unix))] fn f() { crate::planner::plan() }",
        "struct A; impl A { #[cfg(test)] fn f() { crate::planner::plan() } }",
        "//! [`crate::planner::plan`]\n// use crate::planner;",
        "use crate::pool; use other::planner; fn planner() {}",
    ] {
        assert_eq!(above(text), Vec::<String>::new(), "{text}");
    }
    let unlisted = planted(&[("lib.rs", "mod cellar;"), ("cellar.rs", "")]);
    assert_eq!(upward(&unlisted), ["src/cellar.rs: cellar is not in the list of rooms"]);
}

#[test]
fn what_the_oracle_shares_is_seen_through_what_it_uses() {
    let shared = |oracle: &str, event: &str| {
        let source = planted(&[
            ("lib.rs", "mod event; mod pool; mod oracle;"),
            ("pool.rs", ""),
            ("event.rs", event),
            ("oracle/mod.rs", oracle),
        ]);
        used_by_the_oracle(&source)
    };
    let rooms = |names: &[&str]| names.iter().map(|&room| room.to_owned()).collect();
    let event: BTreeSet<String> = rooms(&["event"]);
    let both: BTreeSet<String> = rooms(&["event", "pool"]);
    assert_eq!(shared("use crate::event::Event;", "pub struct Event;"), event);
    assert_eq!(shared("use crate::{event, pool::Pool};", ""), both);
    assert_eq!(shared("use crate::event::Event;", "pub use crate::pool::Event;"), both);
}

#[test]
fn a_circle_of_files_is_seen_through_imports_that_are_passed_on() {
    let found = |world: &str, a: &str, b: &str| {
        let source = planted(&[
            ("lib.rs", "mod world;"),
            ("world/mod.rs", &format!("mod a; mod b; {world}")),
            ("world/a.rs", a),
            ("world/b.rs", b),
        ]);
        circles(&source)
    };
    let circle = ["src/world/a.rs uses src/world/b.rs", "src/world/b.rs uses src/world/a.rs"];
    for (world, a, b) in [
        ("", "use super::b::B; struct A;", "use super::a::A; struct B;"),
        ("pub use a::A; use b::B as C;", "use super::C; struct A;", "use super::A;"),
        ("pub use a::A;", "use super::b; fn f() -> b::B { b::B }", "use crate::world::A;"),
    ] {
        assert!(
            found(world, a, b).iter().any(|uses| uses.iter().eq(&circle)),
            "{world} {a} {b}: {:?}",
            found(world, a, b)
        );
    }
    let uncle = planted(&[
        ("lib.rs", "mod world;"),
        ("world/mod.rs", "mod a; mod b;"),
        ("world/a/mod.rs", "mod c; pub struct A; fn f() { super::b::f(c::C) }"),
        ("world/a/c.rs", "use super::A; pub struct C;"),
        ("world/b.rs", "use super::a; pub fn f() { g(a::A) }"),
    ]);
    let uses = ["src/world/a/mod.rs uses src/world/b.rs", "src/world/b.rs uses src/world/a/mod.rs"];
    assert_eq!(circles(&uncle), [uses]);
    // What a module defines is for the files below it.
    let frame = found("struct W; fn f() { a::f() }", "use super::W; fn f() {}", "");
    let chain = found("use a::A; use b::B;", "use super::b::B;", "struct B;");
    assert_eq!((frame.len(), chain.len()), (0, 0), "{frame:?} {chain:?}");
}
