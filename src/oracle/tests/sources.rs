//! What copies read.

use super::*;

#[test]
fn a_source_page_given_back_is_found_once_a_copy() {
    for (holder, expected) in [(ME, vec![(Code::ReadFreed, 2)]), (OTHER, vec![])] {
        let mut scene = Scene::reserved(CONFIG);
        let others = [PageId(7)];
        let taken =
            Event::Taken { server: PREFILL, request: OTHER, first: Pages(0), pages: &others };
        scene.tell(&taken);
        scene.queue(part(0));
        scene.queue(part(1));
        let pages = if holder == ME { &SOURCE[1..2] } else { &others[..] };
        scene.tell(&Event::Freed { server: PREFILL, holder: Holder::Request(holder), pages });
        for rank in 0..2 {
            let writes = scene.own(rank);
            scene.tell(&Event::Read { part: part(rank), writes: Writes(&writes) });
            scene.land(part(rank), &writes);
        }
        assert_eq!(scene.found(), expected);
    }
}

#[test]
fn a_source_page_stays_while_it_is_its_request_s_or_the_cache_s() {
    let (server, pages, first) = (PREFILL, &SOURCE[..1], Pages(0));
    let freed = Event::Freed { server, holder: Holder::Request(ME), pages };
    let taken = |request| Event::Taken { server, request, first, pages };
    let cached = Event::Cached { server, request: ME, pages };
    for (events, gone) in [
        (vec![cached.clone()], 0),
        (vec![taken(OTHER)], 1),
        // Back in the same hands, it is another page.
        (vec![freed.clone(), taken(ME)], 1),
        (vec![freed, taken(ME), cached], 1),
    ] {
        let mut scene = Scene::reserved(CONFIG);
        scene.queue(part(0));
        for event in &events {
            scene.tell(event);
        }
        scene.land(part(0), &scene.own(0));
        assert_eq!(scene.oracle.findings().count(Code::ReadFreed), gone, "{events:?}");
    }
}

#[test]
fn page_0_is_nobody_s_and_cannot_go() {
    let mut scene = Scene::reserved(CONFIG);
    let (source, target) = (PREFILL, DECODE);
    let (source_pages, target_pages) = (&[SOURCE[0], PageId(0)], &TABLE);
    scene.tell(&Event::Queued {
        part: part(0),
        source,
        target,
        source_pages: SourcePages(source_pages),
        target_pages,
    });
    scene.land(part(0), &scene.own(0));
    assert_eq!(scene.found(), []);
}

#[test]
fn a_source_page_is_in_use_until_its_piece_has_landed_on_every_rank() {
    for landed in 0..=2 {
        let mut scene = Scene::reserved(CONFIG);
        scene.queue(part(0));
        scene.queue(part(1));
        for rank in 0..landed {
            scene.land(part(rank), &scene.own(rank));
        }
        let (server, pages) = (PREFILL, &SOURCE[..1]);
        scene.tell(&Event::Freed { server, holder: Holder::Request(ME), pages });
        scene.tell(&Event::Taken { server, request: OTHER, first: Pages(0), pages });
        let expected: &[_] = if landed < 2 { &[(Code::PageTwoOwners, 1)] } else { &[] };
        assert_eq!(scene.found(), expected, "{landed} of 2 parts landed");
    }
}

#[test]
fn every_page_given_back_is_checked() {
    let mut scene = Scene::reserved(CONFIG);
    let holder = Holder::Request(ME);
    scene.queue(part(0));
    scene.tell(&Event::Freed { server: DECODE, holder, pages: &TABLE });
    assert_eq!(scene.found(), [(Code::PageFreedInFlight, 2)]);
    scene.tell(&Event::Freed { server: DECODE, holder, pages: &TABLE[1..] });
    let twice = scene.evidence(Code::PageFreedTwice);
    assert_eq!((twice.request, &*twice.expected), (Some(ME), "page 1 held by request 0"));
    assert_eq!(scene.oracle.chances.get(Chance::Freed), 3);
}

#[test]
fn a_row_must_be_written_before_it_is_read_unless_it_lies_behind_the_end() {
    // The second page's row 0 stores positions 8 and 9, the last ones.
    for (row, rank, expected) in [
        (0, 0, vec![(Code::ReadUnwritten, 1)]),
        (0, 1, vec![(Code::ReadUnwritten, 1)]),
        (1, 0, vec![]),
    ] {
        let mut scene = Scene::reserved(CONFIG);
        scene.queue(part(rank));
        let empty = Write { page: TABLE[1], start: row, len: 1, content: None };
        scene.tell(&Event::Read { part: part(rank), writes: Writes(&[empty]) });
        assert_eq!(scene.found(), expected, "row {row} on rank {rank}");
    }
    // In another's page, no row lies behind the end of this request.
    let mut scene = Scene::reserved(CONFIG);
    let pages = [PageId(2)];
    scene.tell(&Event::Taken { server: DECODE, request: OTHER, first: Pages(2), pages: &pages });
    scene.queue(part(0));
    let empty = Write { page: pages[0], start: 0, len: 1, content: None };
    scene.tell(&Event::Read { part: part(0), writes: Writes(&[empty]) });
    assert_eq!(scene.found(), [(Code::ReadUnwritten, 1)]);
    // Read from its first row on, a page brings what it holds of this text and no more than that.
    let mut scene = Scene::reserved(CONFIG);
    scene.queue(part(0));
    let foreign = scene.write(1, 3, 4, 0, 2);
    scene.tell(&Event::Read { part: part(0), writes: Writes(&[scene.own(0)[1], foreign]) });
    assert_eq!(scene.found(), [(Code::ReadUnwritten, 1)]);
}
