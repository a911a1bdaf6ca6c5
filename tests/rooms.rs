//! The layering of the library, read from its source: a room uses what stands below it, never what
//! stands above, and the oracle shares no code with what it judges.

use std::fs;
use std::path::{Path, PathBuf};

/// From the ground up.
const ROOMS: &[&str] = &[
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
    "scenario",
    "workload",
    "oracle",
    "world",
    "witness",
    "minimize",
    "conform",
    "sweep",
    "report",
    "picture",
    "explain",
    "claims",
    "fuzzing",
    "cli",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The rooms that `text` names, tests left out.
fn used(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let mut rooms = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let names = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap(),
            None => rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap(),
        };
        let name = |path: &str| path.split("::").next().unwrap().trim().to_owned();
        rooms.extend(names.split(',').map(name));
    }
    rooms
}

/// Room, file and the rooms it uses.
fn uses() -> Vec<(String, PathBuf, Vec<String>)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&source, &mut files);
    let only_for_tests = ["tests.rs", "laws.rs", "hazards.rs", "recorded.rs"];
    let is_code = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        !only_for_tests.contains(&name) && name != "lib.rs" && name != "main.rs"
    };
    files
        .into_iter()
        .filter(is_code)
        .map(|path| {
            let inside = path.strip_prefix(&source).unwrap();
            let room = inside.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
            let text = fs::read_to_string(&path).unwrap();
            let used = used(&text);
            (room.to_owned(), path, used)
        })
        .collect()
}

#[test]
fn no_room_uses_one_above_it() {
    let height = |room: &str| ROOMS.iter().position(|known| *known == room);
    let uses = uses();
    assert!(uses.len() > 40, "the source was found");
    for (room, path, used) in uses {
        let own = height(&room).unwrap_or_else(|| panic!("{room} is not in the list of rooms"));
        for other in used {
            let Some(other_height) = height(&other) else { continue };
            assert!(other_height <= own, "{} uses {other}, which is above", path.display());
        }
    }
}

#[test]
fn the_oracle_shares_no_code_with_what_it_judges() {
    let judged = ["layout", "planner", "cache", "scenario", "workload", "world"];
    for (room, path, used) in uses().into_iter().filter(|(room, ..)| room == "oracle") {
        for other in used {
            assert!(!judged.contains(&other.as_str()), "{room}: {} uses {other}", path.display());
        }
    }
}
