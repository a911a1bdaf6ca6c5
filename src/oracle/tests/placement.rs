//! Where copies write.

use std::collections::BTreeMap;

use super::*;

#[test]
fn a_transfer_that_landed_in_its_rows_is_right() {
    let mut scene = Scene::reserved(CONFIG);
    scene.transfer();
    scene.activate();
    scene.finish(LENGTH);
    assert_eq!(scene.found(), []);
    assert_eq!(scene.oracle.rows_judged, 10);
    scene.oracle.chance(Chance::Planned);
    let chances = [
        (Chance::Requests, 2),
        (Chance::Reservations, 1),
        (Chance::Planned, 1),
        (Chance::Taken, 5),
        (Chance::Read, 2),
        (Chance::Landed, 2),
        (Chance::Activated, 1),
    ];
    let had = scene.oracle.chances.iter().filter(|&(_, count)| count > 0);
    assert_eq!(had.collect::<BTreeMap<_, _>>(), chances.into());
}

#[test]
fn a_wrong_row_is_found_under_its_code_once_a_transfer() {
    let mut scene = Scene::reserved(CONFIG);
    scene.transfer();
    // Row 1 of the first page stores positions 2 and 3; row 0 of the second 8 and 9.
    scene.store(0, &[Write { start: 1, ..scene.write(0, 3, 1, 4, 2) }]);
    scene.store(1, &[Write { start: 1, ..scene.write(1, 3, 1, 3, 2) }, scene.write(1, 1, 1, 9, 2)]);
    scene.activate();
    scene.finish(LENGTH);
    assert_eq!(scene.found(), [(Code::PlacedShifted, 1), (Code::PlacedForeign, 1)]);
    let shifted = scene.evidence(Code::PlacedShifted);
    assert_eq!((shifted.rank, &*shifted.expected), (Some(Rank(0)), "position 2 in its row"));
    let foreign = scene.evidence(Code::PlacedForeign);
    assert_eq!((foreign.rank, &*foreign.expected), (Some(Rank(1)), "position 3 in its row"));
    assert!(
        foreign.found.ends_with("2 of the 10 rows that had to be sent, at activation"),
        "{}",
        foreign.found
    );

    // Nothing was sent by the next transfer.
    scene.reserve(ME, 1, Tokens(0));
    scene.finish(LENGTH);
    assert_eq!(scene.oracle.findings().count(Code::PlacedMissing), 1);
}

#[test]
fn rows_copied_without_the_striping_are_shifted_behind_the_first() {
    let mut scene = Scene::reserved(CONFIG);
    scene.queue(part(0));
    scene.queue(part(1));
    // Positions 0, 1, 2, 3 where 0, 2, 4, 6 belong.
    scene.land(part(0), &[scene.write(0, 3, 4, 0, 1), scene.own(0)[1]]);
    scene.land(part(1), &scene.own(1));
    scene.activate();
    assert_eq!(scene.found(), [(Code::PlacedShifted, 1)]);
    let shifted = scene.evidence(Code::PlacedShifted);
    assert_eq!((shifted.rank, &*shifted.expected), (Some(Rank(0)), "position 2 in its row"));
    assert!(
        shifted.found.ends_with("3 of the 10 rows that had to be sent, at activation"),
        "{}",
        shifted.found
    );
}

#[test]
fn a_copy_to_another_s_page_is_found_with_the_owner() {
    let mut scene = Scene::reserved(CONFIG);
    let pages = [PageId(2)];
    scene.tell(&Event::Taken { server: DECODE, request: OTHER, first: Pages(0), pages: &pages });
    scene.queue(part(0));
    scene.land(part(0), &[scene.write(0, 3, 4, 0, 2), scene.write(0, 2, 1, 8, 2)]);
    assert_eq!(scene.found(), [(Code::PlacedOutside, 1)]);
    let found = &scene.evidence(Code::PlacedOutside).found;
    assert_eq!(found, "rows of page 2, owned by Request(RequestId(1), Pages(0))");
}

#[test]
fn rows_written_again_with_others_are_found() {
    let mut scene = Scene::reserved(CONFIG);
    scene.queue(part(0));
    scene.land(part(0), &scene.own(0));
    let second = Part { piece: 1, ..part(0) };
    scene.queue(second);
    scene.land(second, &scene.own(0));
    assert_eq!(scene.found(), [], "the same again");
    let third = Part { piece: 2, ..part(0) };
    scene.queue(third);
    scene.land(third, &[scene.write(0, 3, 2, 4, 2)]);
    assert_eq!(scene.found(), [(Code::PlacedTwice, 1)]);
    let found = &scene.evidence(Code::PlacedTwice).found;
    assert_eq!(found, "2 rows of piece 2 written over with others");
}

#[test]
fn what_lands_after_its_request_ended_is_outside() {
    let ended = Event::Ended { request: ME, outcome: Outcome::Aborted };
    for after in [Event::Retracted { request: ME }, ended] {
        let mut scene = Scene::reserved(CONFIG);
        scene.queue(part(0));
        scene.tell(&after);
        scene.land(part(0), &scene.own(0));
        assert_eq!(scene.found(), [(Code::PlacedOutside, 1)], "{after:?}");
    }
    // The next attempt does not make the copies of the last one its own.
    let mut scene = Scene::reserved(CONFIG);
    scene.queue(part(0));
    scene.reserve(ME, 1, Tokens(0));
    scene.land(part(0), &scene.own(0));
    assert_eq!(scene.found(), [(Code::PlacedOutside, 1)]);
}
