//! Replayed files as JUnit XML, which CI systems read as test results.

use std::path::Path;

use maud::{PreEscaped, html};

use crate::replay::{Replayed, Verdict};

/// One suite with a case for each file: its folder is the class.
pub(super) fn of_replayed(replayed: &[Replayed]) -> String {
    let of = |verdict| replayed.iter().filter(|file| file.verdict == verdict).count();
    let (tests, failures, errors) = (replayed.len(), of(Verdict::Fail), of(Verdict::Error));
    let page = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name="kvseam replay" tests=(tests) failures=(failures) errors=(errors) {
            testsuite name="kvseam replay" tests=(tests) failures=(failures) errors=(errors) {
                @for file in replayed { (case(file)) }
            }
        }
    };
    page.into_string()
}

fn case(Replayed { file, verdict, reasons }: &Replayed) -> maud::Markup {
    let path = Path::new(file);
    let part =
        |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned());
    let name = part(path.file_stem()).unwrap_or_else(|| file.clone());
    let class = part(path.parent().map(Path::as_os_str)).unwrap_or_default();
    let said = printable(&reasons.join("\n"));
    let first = printable(reasons.first().map_or("", String::as_str));
    html! {
        testcase classname=(printable(&class)) name=(printable(&name)) file=(printable(file)) {
            @match verdict {
                Verdict::Pass => {}
                Verdict::Fail => { failure message=(first) { (said) } }
                Verdict::Error => { error message=(first) { (said) } }
            }
        }
    }
}

/// `text` without what XML cannot have in any form.
fn printable(text: &str) -> String {
    text.chars().filter(|&letter| !letter.is_control() || "\n\t".contains(letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_a_case_and_what_xml_cannot_have_is_left_out() {
        let file = |file: &str, verdict, reasons: &[&str]| Replayed {
            file: file.to_owned(),
            verdict,
            reasons: reasons.iter().map(|&reason| reason.to_owned()).collect(),
        };
        let text = of_replayed(&[
            file("sims/a.toml", Verdict::Pass, &[]),
            file("sims/b<&\".toml", Verdict::Fail, &["1 < 2 & \"3\"\u{1b}", "more"]),
            file("c.toml", Verdict::Error, &["no such file"]),
        ]);
        for part in [
            "tests=\"3\" failures=\"1\" errors=\"1\"",
            "<testcase classname=\"sims\" name=\"a\" file=\"sims/a.toml\"></testcase>",
            "name=\"b&lt;&amp;&quot;\"",
            "<failure message=\"1 &lt; 2 &amp; &quot;3&quot;\">1 &lt; 2 &amp; &quot;3&quot;\nmore</failure>",
            "<testcase classname=\"\" name=\"c\" file=\"c.toml\"><error message=\"no such file\">",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
