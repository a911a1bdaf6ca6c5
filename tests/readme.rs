//! The README says of the codes what the code says.

use std::fs;
use std::path::Path;

use kvseam::finding::{Code, Named, Severity};

#[test]
fn the_readme_lists_every_code_as_it_is_counted() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let listed = readme.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(listed, Code::ALL.len());
    for &code in Code::ALL {
        let severity = match code.severity() {
            Severity::Defect => "defect",
            Severity::Expected => "expected",
        };
        let (name, doc, unit) = (code.name(), code.doc(), code.unit());
        let row = format!("| `{name}` | {doc} | {severity} | {unit} of {} |", code.chance().name());
        assert!(readme.contains(&row), "the README lacks: {row}");
    }
}
