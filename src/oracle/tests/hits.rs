//! What a prefix hit brought.

use super::*;

/// [`ME`] hits page 3, of which rank 1's rows are of the text of number `cached`, and runs on it.
fn hit(cached: usize) -> Scene {
    let mut scene = Scene::new(CONFIG);
    scene.store(0, &[scene.write(0, 3, 4, 0, 2)]);
    scene.store(1, &[scene.write(cached, 3, 4, 1, 2)]);
    scene.tell(&Event::Hit { server: DECODE, request: ME, pages: &TABLE[..1] });
    scene.reserve(ME, 0, Tokens(8));
    scene.finish(Tokens(8));
    scene
}

#[test]
fn a_page_that_was_right_when_it_was_hit_must_stay_so() {
    let mut scene = hit(0);
    assert_eq!(scene.found(), []);
    scene.store(1, &[scene.write(1, 3, 1, 1, 2)]);
    scene.finish(Tokens(8));
    assert_eq!(scene.found(), [(Code::PlacedForeign, 1)]);
}

#[test]
fn a_wrong_hit_is_the_cache_s_fault_and_not_the_transfer_s() {
    let scene = hit(1);
    assert_eq!(scene.found(), [(Code::CacheWrongHit, 1)]);
    let found = &scene.evidence(Code::CacheWrongHit).found;
    let first = "4 of 8 rows are not; position 1 holds position 1 of request 1, token 1 of \
                 content 2, copied for request 0 ";
    assert!(found.starts_with(first), "{found}");
}

#[test]
fn a_hit_s_draft_rows_are_judged_on_every_rank() {
    for (wrong, expected) in [
        (None, vec![]),
        (Some(0), vec![(Code::CacheWrongHit, 1)]),
        (Some(1), vec![(Code::CacheWrongHit, 1)]),
    ] {
        let mut scene = Scene::new(ServerConfig { draft_rows: Some(40), ..CONFIG });
        for rank in 0..2 {
            scene.store(rank, &[scene.write(0, 3, 4, rank as u32, 2)]);
            scene.store(2 + rank, &[scene.write(usize::from(wrong == Some(rank)), 3, 8, 0, 1)]);
        }
        scene.tell(&Event::Hit { server: DECODE, request: ME, pages: &TABLE[..1] });
        assert_eq!(scene.found(), expected, "{wrong:?}");
    }
}

#[test]
fn a_hit_counts_every_wrong_row_whatever_it_holds() {
    let mut scene = Scene::new(CONFIG);
    // Positions 0 and 2 of another text, 4 and 6 never written; 3, 5, 7 and 9 where 1, 3, 5, 7
    // belong.
    scene.store(0, &[scene.write(1, 3, 2, 0, 2)]);
    scene.store(1, &[scene.write(0, 3, 4, 3, 2)]);
    scene.tell(&Event::Hit { server: DECODE, request: ME, pages: &TABLE[..1] });
    let found = &scene.evidence(Code::CacheWrongHit).found;
    assert!(found.starts_with("8 of 8 rows are not; position 0 holds"), "{found}");
}

#[test]
fn a_hit_past_the_end_of_the_text_is_wrong() {
    let mut scene = Scene::new(CONFIG);
    let pages: Vec<PageId> = (1..=4).map(PageId).collect();
    for (ordinal, page) in (0..3).zip(1..) {
        for rank in 0..2 {
            scene.store(rank, &[scene.write(0, page, 4, ordinal * 8 + rank as u32, 2)]);
        }
    }
    scene.tell(&Event::Hit { server: DECODE, request: ME, pages: &pages[..3] });
    assert_eq!(scene.found(), []);
    scene.tell(&Event::Hit { server: DECODE, request: ME, pages: &pages });
    assert_eq!(scene.evidence(Code::CacheWrongHit).found, "32 tokens of a text of 24");
}

#[test]
fn a_dense_hit_is_judged_densely_and_what_it_brought_is_not_a_read_of_nothing() {
    for (text, again, expected) in [
        (0, None, vec![(Code::ReadUnwritten, 1)]),
        (1, None, vec![(Code::CacheWrongHit, 1)]),
        // The prompt is looked up anew, and is right.
        (1, Some(0), vec![(Code::ReadUnwritten, 1), (Code::CacheWrongHit, 1)]),
    ] {
        let mut scene = Scene::reserved(CONFIG);
        for text in [Some(text), again].into_iter().flatten() {
            let hit = Event::Hit { server: PREFILL, request: ME, pages: &SOURCE[..1] };
            let mut memory = Memory::new(CONFIG.prefill_pages);
            let cached = scene.write(text, SOURCE[0].0, 4, 0, 1);
            memory.write(SOURCE[0], cached.extent().unwrap());
            scene.oracle.observe(Tick(1), &hit, &[memory]);
        }
        scene.queue(part(0));
        let foreign = scene.write(1, 3, 2, 0, 2);
        scene.tell(&Event::Read { part: part(0), writes: Writes(&[foreign]) });
        assert_eq!(scene.found(), expected, "{text} {again:?}");
    }
}
