//! The frame of a page: texts, anchors, and the document around its content.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::chart;

/// A text whose per cent signs stay with their numbers.
pub(crate) fn prose(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

/// A name as a file name and an anchor: small letters, digits and hyphens, on any file system.
pub(crate) fn slug(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    name.chars().map(|letter| plain(letter).to_ascii_lowercase()).collect()
}

/// The names as slugs of which no two are equal.
pub(crate) fn slugs<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut slugs: Vec<String> = Vec::new();
    for (number, name) in names.enumerate() {
        let mut name = slug(name);
        while slugs.contains(&name) {
            name += &format!("-{number}");
        }
        slugs.push(name);
    }
    slugs
}

/// A text as the beginning of a sentence.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// The page around its content. The charts' ink and paper are exchanged in the dark.
pub(crate) fn document(title: &str, body: &Markup) -> String {
    let style = chart::THEME
        .iter()
        .fold(STYLE.to_owned(), |style, &(name, color)| style.replace(name, &chart::hex(color)));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body { main { (body) } }
        }
    };
    page.into_string()
}

const STYLE: &str = include_str!("html.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_can_be_no_markup() {
        let page = document("</title><b a=\"&\">", &html! {});
        assert!(
            page.contains("<title>&lt;/title&gt;&lt;b a=&quot;&amp;&quot;&gt;</title>"),
            "{page}"
        );
    }

    #[test]
    fn slugs_are_file_names_and_differ() {
        let names = ["padded up", "Padded_up", "../x", "padded-up-1"];
        assert_eq!(slugs(names.into_iter()), ["padded-up", "padded-up-1", "---x", "padded-up-1-3"]);
    }

    #[test]
    fn every_colour_of_the_theme_is_in_the_style() {
        let html = document("a", &html! { "b" });
        for (name, color) in chart::THEME {
            assert!(STYLE.contains(&format!("\"{name}\"")), "{name}");
            assert!(html.contains(&format!("[fill=\"{}\"]", chart::hex(color))), "{name}");
        }
    }
}
