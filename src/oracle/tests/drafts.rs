//! Draft rows.

use super::*;

/// Draft pages have 8 rows; with 39 of them the last page, 4, lacks its last row.
#[test]
fn draft_rows_past_the_last_are_outside() {
    for (start, len, outside) in [(0, 7, false), (0, 8, true), (4, 3, false), (4, 4, true)] {
        let mut scene = Scene::reserved(ServerConfig { draft_rows: Some(39), ..CONFIG });
        let pages = [PageId(4)];
        scene.tell(&Event::Taken { server: DECODE, request: ME, first: Pages(2), pages: &pages });
        scene.queue(part(0));
        let last = Write { start, ..scene.write(0, 4, len, 16 + start, 1) };
        scene.land_drafts(part(0), &[scene.write(0, 3, 8, 0, 1), last]);
        scene.land(part(0), &[]);
        let expected: &[_] = if outside { &[(Code::PlacedOutside, 1)] } else { &[] };
        assert_eq!(scene.found(), expected, "{len} rows from {start} on");
        if outside {
            assert_eq!(scene.evidence(Code::PlacedOutside).found, "draft row 39 of 39");
        }
    }
}

#[test]
fn a_draft_row_in_another_s_page_is_outside() {
    let mut scene = Scene::reserved(ServerConfig { draft_rows: Some(40), ..CONFIG });
    let pages = [PageId(2)];
    scene.tell(&Event::Taken { server: DECODE, request: OTHER, first: Pages(0), pages: &pages });
    scene.queue(part(0));
    scene.land_drafts(part(0), &[scene.write(0, 3, 8, 0, 1), scene.write(0, 2, 2, 8, 1)]);
    scene.land(part(0), &scene.own(0));
    assert_eq!(scene.found(), [(Code::PlacedOutside, 1)]);
    let found = &scene.evidence(Code::PlacedOutside).found;
    assert_eq!(found, "draft rows of page 2, owned by Request(RequestId(1), Pages(0))");
}

#[test]
fn every_rank_s_draft_rows_are_judged() {
    for wrong in [None, Some(0), Some(1)] {
        let mut scene = Scene::reserved(ServerConfig { draft_rows: Some(40), ..CONFIG });
        for rank in 0..2 {
            scene.queue(part(rank));
            let text = usize::from(wrong == Some(rank));
            let drafts = [scene.write(0, 3, 8, 0, 1), scene.write(text, 1, 2, 8, 1)];
            scene.land_drafts(part(rank), &drafts);
            scene.land(part(rank), &scene.own(rank));
        }
        scene.activate();
        let Some(rank) = wrong else {
            assert_eq!(scene.found(), []);
            continue;
        };
        assert_eq!(scene.found(), [(Code::PlacedForeign, 1)]);
        let foreign = scene.evidence(Code::PlacedForeign);
        assert_eq!((foreign.rank, &*foreign.expected), (Some(Rank(rank)), "position 8 in its row"));
        let found = &foreign.found;
        assert!(found.ends_with("2 of the 10 rows of the draft KV, at activation"), "{found}");
    }
}

#[test]
fn draft_rows_written_again_with_others_are_found() {
    for rank in 0..2 {
        let mut scene = Scene::reserved(ServerConfig { draft_rows: Some(40), ..CONFIG });
        let right = [scene.write(0, 3, 8, 0, 1)];
        scene.queue(part(rank));
        scene.land_drafts(part(rank), &right);
        scene.land(part(rank), &scene.own(rank));
        let second = Part { piece: 1, ..part(rank) };
        scene.queue(second);
        scene.land_drafts(second, &right);
        scene.land(second, &[]);
        assert_eq!(scene.found(), [], "the same again");
        let third = Part { piece: 2, ..part(rank) };
        scene.queue(third);
        scene.land_drafts(third, &[scene.write(0, 3, 2, 1, 1)]);
        scene.land(third, &[]);
        assert_eq!(scene.found(), [(Code::PlacedTwice, 1)]);
        let found = &scene.evidence(Code::PlacedTwice).found;
        assert_eq!(found, "2 rows of piece 2 written over with others");
    }
}
