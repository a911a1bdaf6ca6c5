use super::*;
use crate::sweep::execute::tests::{Scratch, swept};
use crate::sweep::plan::Plan;
use crate::sweep::plan::tests::{PLAN, small, sources};

#[test]
fn a_report_says_what_fails_and_needs_neither_network_nor_script() {
    let (path, out) = (Scratch::new("report-ledger"), Scratch::new("report"));
    let (ledger, _) = swept(&path, 1);
    let page = write(&[ledger], &Options::default(), &out.0).unwrap();
    let html = std::fs::read_to_string(page.page).unwrap();
    // Of 6 possible cells with 3 seeds, one cell fails at the odd seeds 5 and 7.
    let answer = "1 of 6 configurations fail, in 2 of 18 runs, 11 % (95 % interval 3.1 % to 33 %), \
                  most often by placed.missing (2 runs), and worst at layout.page_size = 16, \
                  layout.ranks = 2, behaviour = padded up (2 of 3 runs).";
    assert!(html.replace('\u{a0}', " ").contains(answer), "{html}");
    for part in ["<script", "http-equiv", "src=", "@import", "url("] {
        assert!(!html.contains(part), "{part}");
    }
    // One rank has no transfer to activate, two ranks do not fit with pages of 64.
    let map = std::fs::read_to_string(out.0.join("placed-missing-heat-map.svg")).unwrap();
    assert!(map.contains("not reached") && map.contains("left out"), "{map}");
    assert!(html.contains("<td colspan=\"4\">not reached</td>"));
    for text in ["(without this code)", "left out: ", "What fails by behaviour"] {
        assert!(html.contains(text), "{text}");
    }
    for name in ["summary.png", "any-defect-bars.svg", "placed-missing-bars.png"] {
        assert!(out.0.join(name).is_file(), "{name}");
    }
}

#[test]
fn only_charts_of_a_former_report_are_removed() {
    let (path, out) = (Scratch::new("stale-ledger"), Scratch::new("stale"));
    let (ledger, _) = swept(&path, 1);
    std::fs::create_dir_all(&out.0).unwrap();
    for file in ["old-bars.svg", "old-bars.png", "mine-bars.svg"] {
        std::fs::write(out.0.join(file), "a").unwrap();
    }
    std::fs::write(
        out.0.join("index.html"),
        former::link("old-bars", &["svg", "png"]).into_string(),
    )
    .unwrap();
    write(&[ledger], &Options::default(), &out.0).unwrap();
    assert!(!out.0.join("old-bars.svg").exists() && !out.0.join("old-bars.png").exists());
    assert!(out.0.join("mine-bars.svg").exists() && out.0.join("any-defect-bars.svg").exists());
}

#[test]
fn a_ledger_without_runs_says_that_nothing_was_run() {
    let (path, out) = (Scratch::new("empty-ledger"), Scratch::new("empty"));
    let ledger = Ledger::start(&path.0, &small(), |_| Ok(())).unwrap();
    let html = std::fs::read_to_string(write(&[ledger], &Options::default(), &out.0).unwrap().page)
        .unwrap();
    assert!(html.contains("Nothing was run yet") && html.contains(">not run yet<"), "{html}");
    let path = Scratch::new("impossible-ledger");
    let ledger = Ledger::start(&path.0, &small(), |_| Err("too <wide".to_owned())).unwrap();
    let html = std::fs::read_to_string(write(&[ledger], &Options::default(), &out.0).unwrap().page)
        .unwrap();
    assert!(html.contains("none of the 8 configurations can be run"), "{html}");
    assert!(html.contains("left out: too &lt;wide</td>"), "{html}");
    assert!(!html.contains("No configuration fails"), "{html}");
}

#[test]
fn every_chart_has_a_file_of_its_numbers() {
    let (path, out) = (Scratch::new("csv-ledger"), Scratch::new("csv"));
    let (ledger, _) = swept(&path, 1);
    write(&[ledger], &Options::default(), &out.0).unwrap();
    let files = std::fs::read_dir(&out.0).unwrap().map(|entry| entry.unwrap().path());
    let svgs: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "svg")).collect();
    assert!(svgs.len() > 10, "{svgs:?}");
    for svg in svgs {
        assert!(svg.with_extension("png").is_file(), "{svg:?}");
        let csv = std::fs::read_to_string(svg.with_extension("csv")).unwrap();
        assert!(csv.lines().count() > 1, "{svg:?}: {csv}");
    }
    // Two of the three runs of the cell that fails; it is the only one.
    let cells = std::fs::read_to_string(out.0.join("cells.csv")).unwrap();
    assert_eq!(
        cells
            .lines()
            .map(|line| line.split(',').take(6).collect::<Vec<_>>().join(","))
            .collect::<Vec<_>>(),
        ["layout.page_size,layout.ranks,behaviour,state,hits,chances", "16,2,padded up,ran,2,3"]
    );
    assert!(cells.contains(",placed.missing: 2,kvseam run base.toml --set "), "{cells}");
    let lines = std::fs::read_to_string(out.0.join("any-defect-over-layout-ranks.csv")).unwrap();
    assert!(lines.contains("\npadded up,2,ran,2,3,"), "{lines}");
    assert!(lines.contains("\nsound,1,ran,0,6,0,0,"), "{lines}");
}

#[test]
fn several_ledgers_have_a_part_each_and_share_no_file() {
    let (one, two) = (Scratch::new("part-one"), Scratch::new("part-two"));
    let out = Scratch::new("parts");
    let ledgers = [swept(&one, 1).0, swept(&two, 1).0];
    let page = write(&ledgers, &Options::default(), &out.0).unwrap();
    let html = std::fs::read_to_string(page.page).unwrap();
    assert!(html.contains("<h1>2 sweeps</h1>"), "{html}");
    for path in [&one.0, &two.0] {
        assert!(html.contains(&format!("</a> ({}): 1 of 6", path.display())), "{html}");
    }
    for prefix in ["a-small-sweep", "a-small-sweep-1"] {
        assert!(out.0.join(format!("{prefix}-summary.csv")).is_file());
        assert_eq!(html.matches(&format!("<h1 id=\"{prefix}-top\">")).count(), 1);
    }
    let ids: Vec<&str> =
        html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let different: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(ids.len(), different.len(), "{ids:?}");
    for link in html.split("href=\"#").skip(1) {
        let target = link.split('"').next().unwrap();
        assert!(ids.contains(&target), "{target}");
    }
}

#[test]
fn against_an_earlier_ledger_the_page_says_what_is_new() {
    let (new, old) = (Scratch::new("news-new"), Scratch::new("news-old"));
    let out = Scratch::new("news");
    let options = Options { against: Some(swept(&old, 1).0), ..Options::default() };
    let page = write(&[swept(&new, 1).0], &options, &out.0).unwrap();
    let html = std::fs::read_to_string(page.page).unwrap();
    // The cell that fails is tested for any defect and for its code.
    for text in ["0 of 2 frequencies changed beyond chance", "8 cells are in both", "Holm"] {
        assert!(html.contains(text), "{text}: {html}");
    }
    // Two cells of eight are impossible.
    assert!(html.contains("6 of them with runs in both, 0 only here, 0 only there."), "{html}");
    let tests = std::fs::read_to_string(out.0.join("news.csv")).unwrap();
    let rows: Vec<&str> = tests.lines().collect();
    assert!(rows[1].starts_with("16,2,padded up,any defect,2,3,2,3,1,"), "{tests}");
    assert_eq!(rows.len(), 3);
}

/// Nothing to compare: the earlier ledger has no runs yet, or is of other cells.
#[test]
fn against_a_ledger_without_a_common_run_the_page_says_how_much_there_is() {
    let (new, old, out) =
        (Scratch::new("lone-new"), Scratch::new("lone-old"), Scratch::new("lone"));
    let empty = Ledger::start(&old.0, &small(), |_| Ok(())).unwrap();
    let options = Options { against: Some(empty), ..Options::default() };
    let written = write(&[swept(&new, 1).0], &options, &out.0).unwrap();
    let cells = "8 cells are in both, 0 of them with runs in both, 0 only here, 0 only there.";
    let nothing = "Nothing can be compared with the earlier ledger, \"A small sweep\"";
    assert_eq!(
        written.news,
        [
            format!("{nothing}: {cells}"),
            "The earlier ledger is not finished: 24 of 24 runs are left.".to_owned()
        ]
    );
    let html = std::fs::read_to_string(&written.page).unwrap();
    for text in [cells, "24 of 24 runs are left."] {
        assert!(html.contains(text), "{text}: {html}");
    }
    let other = Plan::parse(sources(&PLAN.replace("[16, 64]", "[8, 32]"))).unwrap();
    drop(options);
    std::fs::remove_file(&old.0).unwrap();
    let other = Ledger::start(&old.0, &other, |_| Ok(())).unwrap();
    let options = Options { against: Some(other), ..Options::default() };
    let again = Scratch::new("lone-again");
    let written = write(&[swept(&again, 1).0], &options, &out.0).unwrap();
    let cells = "0 cells are in both, 0 of them with runs in both, 8 only here, 8 only there.";
    assert_eq!(written.news[0], format!("{nothing}: {cells}"));
}
