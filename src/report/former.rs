//! A *former report*: the page that lies in the folder where a new one is written, and its charts.
//!
//! The page itself says which charts are its own, so that no file of anyone else is ever removed.

use std::collections::BTreeSet;
use std::path::Path;

const BEFORE: &str = "<p class=\"files\"><a href=\"";
const BETWEEN: &str = ".svg\">SVG</a> <a href=\"";
const AFTER: &str = ".png\">PNG</a></p>";

/// The line of a page that names a chart's files.
pub(crate) fn link(name: &str) -> String {
    format!("{BEFORE}{name}{BETWEEN}{name}{AFTER}\n")
}

/// Names of the charts that a page names so.
pub(crate) fn charts(html: &str) -> BTreeSet<String> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    html.lines()
        .filter_map(|line| {
            let (name, again) =
                line.strip_prefix(BEFORE)?.strip_suffix(AFTER)?.split_once(BETWEEN)?;
            let own = name == again && !name.is_empty() && name.chars().all(plain);
            own.then(|| name.to_owned())
        })
        .collect()
}

/// Removes the files of these charts from the folder. What is gone already need not be removed.
pub(crate) fn remove<'a>(
    folder: &Path,
    names: impl Iterator<Item = &'a String>,
) -> std::io::Result<()> {
    for name in names {
        for extension in ["svg", "png"] {
            match std::fs::remove_file(folder.join(format!("{name}.{extension}"))) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_its_charts_and_nothing_else() {
        let html =
            format!("<h1>a</h1>\n{}<a href=\"mine.svg\">x</a>\n{}", link("a-b"), link("../c"));
        assert_eq!(charts(&html).into_iter().collect::<Vec<_>>(), ["a-b"]);
    }
}
