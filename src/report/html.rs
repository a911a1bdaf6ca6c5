//! The frame of a page: escaped texts, anchors, and the document around its content.

use super::chart;

/// Texts go into the page through this only, so that nothing of a plan can be markup.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A text whose per cent signs stay with their numbers.
pub(crate) fn prose(text: &str) -> String {
    escape(text).replace(" %", "\u{a0}%")
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
pub(crate) fn document(title: &str, body: &str) -> String {
    let style = chart::THEME
        .iter()
        .fold(STYLE.to_owned(), |style, &(name, color)| style.replace(name, &chart::hex(color)));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}</main>\n\
         </body>\n</html>\n",
        escape(title)
    )
}

const STYLE: &str = include_str!("html.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_plan_can_be_markup() {
        assert_eq!(escape("<b a=\"'\">&"), "&lt;b a=&quot;&#39;&quot;&gt;&amp;");
    }

    #[test]
    fn slugs_are_file_names_and_differ() {
        let names = ["padded up", "Padded_up", "../x", "padded-up-1"];
        assert_eq!(slugs(names.into_iter()), ["padded-up", "padded-up-1", "---x", "padded-up-1-3"]);
    }

    #[test]
    fn every_colour_of_the_theme_is_in_the_style() {
        let html = document("a", "b");
        for (name, color) in chart::THEME {
            assert!(STYLE.contains(&format!("\"{name}\"")), "{name}");
            assert!(html.contains(&format!("[fill=\"{}\"]", chart::hex(color))), "{name}");
        }
    }
}
