//! A *former report*: the page that lies in the folder where a new one is written, and its files.
//!
//! The page itself says which files are its own, so that no file of anyone else is ever removed.

use std::collections::BTreeSet;
use std::path::Path;

const BEFORE: &str = "<p class=\"files\">";
const EXTENSIONS: [&str; 3] = ["svg", "png", "csv"];

/// The line of a page that names files: one for each of these extensions.
pub(crate) fn link(name: &str, extensions: &[&str]) -> String {
    let links: Vec<String> = extensions
        .iter()
        .map(|extension| format!("<a href=\"{name}.{extension}\">{}</a>", extension.to_uppercase()))
        .collect();
    format!("{BEFORE}{}</p>\n", links.join(" "))
}

/// The files that a page names so.
pub(crate) fn files(html: &str) -> BTreeSet<String> {
    let lines = html.lines().filter_map(|line| line.strip_prefix(BEFORE));
    let targets = lines.flat_map(|line| line.split("<a href=\"").skip(1));
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
            link("a-b", &["svg", "csv"]),
            link("../c", &["png"]),
            link("notes", &["txt"])
        );
        assert_eq!(files(&html).into_iter().collect::<Vec<_>>(), ["a-b.csv", "a-b.svg"]);
    }
}
