//! Leaks: a pool's own books, compared when its server is idle.

use super::{ForeignText, Found, Says, Writer};
use crate::explain::known::KnownSizes;
use crate::explain::pattern::Piece;
use crate::explain::words::number;
use crate::finding::Code;

pub(super) const ALL: &[ForeignText] = &[
    ForeignText {
        form: "req_to_token_pool memory leak detected! available_size={available}, \
               total_size={total}",
        patterns: &["req_to_token_pool memory leak detected"],
        writer: Writer { engine: Some("sglang"), part: "the scheduler's check when it is idle" },
        meaning: "Slots of requests were not given back: everything has ended, and the table of \
                  requests still has some.",
        says,
    },
    ForeignText {
        form: "token_to_kv_pool_allocator memory leak detected! \
               self.max_total_num_tokens={total}, available_size={available}, \
               evictable_size={evictable}, protected_size={protected}",
        patterns: &[
            "token_to_kv_pool_allocator memory leak detected",
            "token_to_kv_pool memory leak detected",
        ],
        writer: Writer {
            engine: Some("sglang"),
            part: "the scheduler's check when it is idle; reports have this form from 0.4 to 0.5.8",
        },
        meaning: "The pool's books do not add up when everything has ended: free, evictable and \
                  protected tokens are not the whole pool.",
        says,
    },
    ForeignText {
        form: "pool memory leak detected! [{pool}] total={total}, available={available}, \
               evictable={evictable}, protected={protected}, session_held={session}",
        patterns: &["pool memory leak detected", "kv cache pool leak detected"],
        writer: Writer {
            engine: Some("sglang"),
            part: "the scheduler's check when it is idle; a report has this form from 0.5.18",
        },
        meaning: "The books of one of the pools do not add up when everything has ended: free, \
                  evictable, protected and held tokens are not the whole pool.",
        says,
    },
];

/// The books of one pool, in its own units.
#[derive(Default)]
struct Books {
    name: String,
    total: Option<i128>,
    available: Option<i128>,
    /// What the first of two numbers of free tokens says, where there are two.
    available_first: Option<i128>,
    /// Name and number of everything else that is accounted for.
    held: Vec<(&'static str, i128)>,
}

/// What else a pool's tokens can be; a key of a line ends with its name.
const HELD: [&str; 5] = ["evictable", "protected", "session_held", "uncached", "withheld"];

impl Books {
    fn held(&self, name: &str) -> Option<i128> {
        self.held.iter().find(|(known, _)| *known == name).map(|&(_, number)| number)
    }

    /// Total less all that is accounted for.
    fn missing(&self) -> Option<i128> {
        let held: i128 = self.held.iter().map(|(_, number)| number).sum();
        Some(self.total? - self.available? - held)
    }

    /// What one of its units is called.
    fn unit(&self, count: i128) -> String {
        let (one, many) = match self.name.as_str() {
            "mamba" => ("state slot", "state slots"),
            "request" => ("request slot", "request slots"),
            _ => ("token", "tokens"),
        };
        format!("{count} {}", if count == 1 { one } else { many })
    }

    fn enter(&mut self, key: &str, number: i128) {
        let key = key.strip_suffix("_size").unwrap_or(key);
        if let Some(name) = HELD.into_iter().find(|name| key.ends_with(name)) {
            if self.held(name).is_none() {
                self.held.push((name, number));
            }
        } else if key.ends_with("available") {
            if self.available.is_some() {
                self.available_first = self.available;
            }
            self.available = Some(number);
        } else if is_total(key) {
            self.total = self.total.or(Some(number));
        }
    }
}

/// Whether a key, without `_size` at its end, is a pool's total.
fn is_total(key: &str) -> bool {
    ["size", "total", "total_capacity", "max_total_num_token", "max_total_num_tokens"]
        .contains(&key)
        || key.ends_with("tokens_per_layer")
}

/// The pools that a line has books of.
fn books(found: &Found) -> Vec<Books> {
    let text = found.text;
    let piece = Piece::new(text);
    let words: Vec<&str> = piece.words().collect();
    let mut all: Vec<Books> = Vec::new();
    let mut bracket = None;
    for (at, place) in piece.places().iter().enumerate() {
        let word = words[at];
        let behind = text[place.end..].chars().next();
        if text[..place.start].ends_with('[') && behind == Some(']') {
            bracket = Some(word.to_owned());
        }
        let Some(next) = piece.places().get(at + 1) else { break };
        let between = text[place.end..next.start].trim();
        let Some(number) = number(words[at + 1]).filter(|_| ["=", "()=", ":"].contains(&between))
        else {
            continue;
        };
        let owner = at.checked_sub(1).map_or("", |before| words[before]);
        let is_of = |pool: &str| word.starts_with(pool) || owner.starts_with(pool);
        let name = match &bracket {
            Some(name) => name.clone(),
            None if words[0].starts_with("req_to_token") => "request".to_owned(),
            None if is_of("mamba") => "mamba".to_owned(),
            None if is_of("swa") => "swa".to_owned(),
            None => "full".to_owned(),
        };
        let at = all.iter().position(|books| books.name == name).unwrap_or_else(|| {
            all.push(Books { name, ..Books::default() });
            all.len() - 1
        });
        all[at].enter(word, number);
    }
    all.retain(|books| books.total.is_some() && books.available.is_some());
    all
}

fn says(found: &Found, known: &KnownSizes) -> Says {
    let books = books(found);
    let mut says = Says::default();
    for one in &books {
        read(one, books.len() > 1, known, &mut says);
    }
    if books.is_empty() {
        says.numbers.push(
            "The line's numbers are not there: they may stand in the next line of the log."
                .to_owned(),
        );
        says.codes = vec![Code::PageLeaked, Code::CountDrift];
    }
    if says.codes.contains(&Code::PageLeaked) {
        says.checks.push(
            "Abort one request in each state (waiting, reserved, chunking, copying, running, \
             retracted) and compare the free pages after each: the state that costs pages is the \
             one whose cleanup is forgotten."
                .to_owned(),
        );
    }
    says.checks.push(
        "The check runs when the server is idle, long after the cause. Compare at every step, with \
         an owner for every page: the first step at which the sum is off names the request."
            .to_owned(),
    );
    let commands = says.codes.iter().map(|code| format!("kvseam run {}", code.example()));
    says.commands = commands.collect();
    says
}

/// What the books of one pool say.
fn read(books: &Books, several: bool, known: &KnownSizes, says: &mut Says) {
    let (Some(total), Some(available), Some(missing)) =
        (books.total, books.available, books.missing())
    else {
        return;
    };
    let pool = if several { format!("Pool {}: ", books.name) } else { String::new() };
    let held: Vec<(&str, i128)> = books
        .held
        .iter()
        .copied()
        .filter(|(name, number)| *number != 0 || HELD[..2].contains(name))
        .collect();
    let terms: String = held
        .iter()
        .map(|(name, number)| match number {
            0.. => format!(" - {number} {}", name.replace('_', " ")),
            _ => format!(" - ({number}) {}", name.replace('_', " ")),
        })
        .collect();
    let sum = format!("{pool}{total} in all - {available} free{terms} = {missing}");
    let negative: Vec<&(&str, i128)> = held.iter().filter(|(_, number)| *number < 0).collect();
    for (name, number) in &negative {
        let count = books.unit(-number);
        says.numbers.push(match *name {
            "protected" => format!(
                "{pool}protected is {number}: {count} were unlocked without a lock, or once more \
                 than they were locked."
            ),
            _ => format!("{pool}{name} is {number}: {count} were taken out twice."),
        });
    }
    if total == available {
        says.numbers
            .push(format!("{pool}free is the whole pool, so nothing is held and no page is lost."));
    }
    let explained: i128 = negative.iter().map(|(_, number)| -number).sum();
    let codes = balance(books, &sum, (missing - explained, explained), known, says);
    says.codes.extend(
        codes.iter().filter(|code| !says.codes.contains(code)).copied().collect::<Vec<_>>(),
    );
    if let Some(first) = books.available_first.filter(|&first| {
        Some(first) == books.held("evictable").map(|evictable| evictable + available)
            && first != available
    }) {
        says.numbers.push(format!(
            "The line's first available_size, {first}, is free and evictable together."
        ));
    }
}

/// What it means that so many tokens of a pool are `missing` once the numbers below zero are
/// explained; the codes that it points at.
fn balance(
    books: &Books,
    sum: &str,
    (missing, explained): (i128, i128),
    known: &KnownSizes,
    says: &mut Says,
) -> &'static [Code] {
    match missing {
        0 if explained > 0 => {
            says.numbers.push(format!(
                "{sum}: the difference is that number alone. Only the count of locks is wrong."
            ));
            &[Code::CountDrift]
        }
        0 => {
            says.numbers.push(format!("{sum}: this pool adds up."));
            &[]
        }
        more @ 1.. => {
            says.numbers.push(format!(
                "{sum}: {} neither free, evictable nor protected. They are held by nobody \
                 (page.leaked), or were counted away twice (count.drift).",
                are(&books.unit(more), more)
            ));
            says.numbers.extend(pages(more, known, &books.name));
            &[Code::PageLeaked, Code::CountDrift]
        }
        fewer => {
            let over = -fewer;
            says.numbers.push(format!(
                "{sum}: {} counted twice, as free and once more: given back twice \
                 (page.freed_twice), or free and still in the tree (count.drift).",
                are(&books.unit(over), over)
            ));
            says.numbers.extend(pages(over, known, &books.name));
            &[Code::CountDrift, Code::PageFreedTwice, Code::PageTwoOwners]
        }
    }
}

fn are(counted: &str, count: i128) -> String {
    format!("{counted} {}", if count == 1 { "is" } else { "are" })
}

/// How many pages a number of tokens is.
fn pages(tokens: i128, known: &KnownSizes, pool: &str) -> Option<String> {
    if ["mamba", "request"].contains(&pool) {
        return None;
    }
    let page = known.virtual_page().or(known.page_size.map(i64::from)).map(i128::from);
    Some(match page {
        Some(page) if tokens % page == 0 => {
            format!("{tokens} tokens are {} whole pages of {page}.", tokens / page)
        }
        Some(page) => format!(
            "{tokens} is no multiple of the page of {page} tokens: part of a page was lost, or counts \
             are kept in another unit."
        ),
        None => {
            let largest = 1_i128 << tokens.trailing_zeros().min(12);
            match largest {
                1 => format!("{tokens} is odd: no whole pages of more than one token were lost."),
                _ => format!(
                    "{tokens} is a multiple of {largest}: whole pages, if a page has that many tokens \
                     or fewer (give --page-size)."
                ),
            }
        }
    })
}
