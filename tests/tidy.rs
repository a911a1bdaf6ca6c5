//! Rules of style, read from the source: lines within 100 columns, functions within 70 lines, no
//! documentation that only asks.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{LineColumn, Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

const COLUMNS_MAX: usize = 100;
const FUNCTION_LINES_MAX: usize = 70;
const FOLDERS: &[&str] = &["src", "tests", "benches", "examples", "fuzz/src", "fuzz/fuzz_targets"];

/// A question is no documentation: "Whose.", "By whom.".
const QUESTIONS: &[&str] =
    &["who", "whose", "whom", "which", "where", "when", "what", "why", "how", "this"];

/// What breaks a rule in a file of this text: the line, from 1, and what is wrong with it.
fn untidy(text: &str) -> Vec<(usize, String)> {
    let file = syn::parse_file(text).expect("the source compiles");
    let mut reader = Reader::default();
    reader.literals(text.parse().expect("the source compiles"));
    reader.visit_file(&file);
    let Reader { with_text, mut found } = reader;
    for (number, line) in (1..).zip(text.lines()) {
        let columns = line.chars().count();
        // rustfmt breaks no text, and one that stands in a line of its own can be searched for.
        if columns > COLUMNS_MAX && !with_text.contains(&number) {
            found.push((number, format!("{columns} columns")));
        }
        let doc = line.trim().strip_prefix("///").unwrap_or_default();
        let words: Vec<String> =
            doc.trim_end_matches('.').split_whitespace().map(str::to_lowercase).collect();
        if words.len() <= 2 && words.last().is_some_and(|last| QUESTIONS.contains(&last.as_str())) {
            found.push((number, format!("\"{}\" says nothing", doc.trim())));
        }
    }
    found.sort();
    found
}

#[derive(Default)]
struct Reader {
    /// Lines that hold a part of a text.
    with_text: BTreeSet<usize>,
    found: Vec<(usize, String)>,
}

impl Reader {
    fn literals(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.literals(group.stream()),
                TokenTree::Literal(literal) if literal.to_string().contains('"') => {
                    self.text(literal.span());
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    /// A comment for documentation is a text to the parser, too, but not one that cannot be broken.
    fn text(&mut self, span: Span) {
        let is_comment = span.source_text().is_some_and(|text| text.starts_with("//"));
        if !is_comment {
            self.with_text.extend(span.start().line..=span.end().line);
        }
    }

    fn function(&mut self, name: &syn::Ident, (start, end): (LineColumn, LineColumn)) {
        let lines = end.line - start.line + 1;
        if lines > FUNCTION_LINES_MAX {
            self.found.push((start.line, format!("{name} has {lines} lines")));
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig.ident, (item.sig.span().start(), item.block.span().end()));
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig.ident, (item.sig.span().start(), item.block.span().end()));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig.ident, (item.sig.span().start(), block.span().end()));
        }
        visit::visit_trait_item_fn(self, item);
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_source_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    FOLDERS.iter().for_each(|folder| sources(&root.join(folder), &mut files));
    assert!(files.len() > 100, "the source was found");
    files.sort();
    let mut found = Vec::new();
    for file in &files {
        let path = file.strip_prefix(root).unwrap();
        let text = fs::read_to_string(file).unwrap();
        for (line, problem) in untidy(&text) {
            found.push(format!("{}:{line}: {problem}", path.display()));
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn what_breaks_a_rule_is_seen() {
    let long = ["x"; 60].join(" ");
    let body = "    f();\n".repeat(70);
    for (text, line, problem) in [
        (format!("// {long}\n"), 1, "122 columns"),
        (format!("/// {long}\nstruct A;\n"), 1, "123 columns"),
        (format!("fn f() {{\n{body}}}\n"), 1, "f has 72 lines"),
        (format!("struct A;\nimpl A {{\n    fn f() {{\n{body}    }}\n}}\n"), 3, "f has 72 lines"),
        (format!("trait A {{\n    fn f() {{\n{body}    }}\n}}\n"), 2, "f has 72 lines"),
        (
            format!("mod tests {{\n    #[test]\n    fn f() {{\n{body}    }}\n}}\n"),
            3,
            "f has 72 lines",
        ),
        (
            "struct A {\n    /// By whom.\n    b: u8,\n}\n".to_owned(),
            2,
            "\"By whom.\" says nothing",
        ),
    ] {
        let found = untidy(&text);
        assert!(
            found.iter().any(|(at, what)| (*at, what.as_str()) == (line, problem)),
            "{text}: {found:?}"
        );
    }
    let fine = [
        format!("const A: &str = \"{long}\";\n"),
        format!("fn f() {{\n{}}}\n", "    f();\n".repeat(68)),
        "struct A {\n    /// The server from where.\n    b: u8,\n}\n".to_owned(),
    ];
    for text in fine {
        assert_eq!(untidy(&text), [], "{text}");
    }
}
