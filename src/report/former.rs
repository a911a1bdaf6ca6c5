//! A *former report*: the page that lies in the folder where a new one is written, and its files.
//!
//! The page itself says which files are its own, so that no file of anyone else is ever removed.

use std::collections::BTreeSet;
use std::path::Path;

use maud::{Markup, html};

/// How a list of files begins and ends in a page, one of an earlier version included.
const BEFORE: &str = "<p class=\"files\">";
const AFTER: &str = "</p>";
const EXTENSIONS: [&str; 3] = ["svg", "png", "csv"];

/// The list of files in a page: one for each of these extensions.
pub(crate) fn link(name: &str, extensions: &[&str]) -> Markup {
    html! {
        p.files {
            @for (number, extension) in extensions.iter().enumerate() {
                @if number > 0 { " " }
                a href={ (name) "." (extension) } { (extension.to_uppercase()) }
            }
        }
    }
}

/// The files that a page names so.
pub(crate) fn files(html: &str) -> BTreeSet<String> {
    let lists = html.split(BEFORE).skip(1).filter_map(|rest| rest.split_once(AFTER));
    let targets = lists.flat_map(|(list, _)| list.split("<a href=\"").skip(1));
    let names = targets.filter_map(|target| Some(target.split_once('"')?.0));
    names.filter(|name| is_own(name)).map(str::to_owned).collect()
}

/// A chart's name without any path, so that nothing outside of the folder is meant.
fn is_own(file: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    file.split_once('.').is_some_and(|(name, extension)| {
        !name.is_empty() && name.chars().all(plain) && EXTENSIONS.contains(&extension)
    })
}

/// Removes these files from the folder. What is gone already need not be removed.
pub(crate) fn remove(folder: &Path, names: &BTreeSet<String>) -> std::io::Result<()> {
    for name in names {
        match std::fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_its_files_and_nothing_else() {
        let html = format!(
            "<h1>a</h1>\n{}<a href=\"mine.svg\">x</a>\n{}{}",
            link("a-b", &["svg", "csv"]).into_string(),
            link("../c", &["png"]).into_string(),
            link("notes", &["txt"]).into_string()
        );
        assert_eq!(files(&html).into_iter().collect::<Vec<_>>(), ["a-b.csv", "a-b.svg"]);
    }
}
