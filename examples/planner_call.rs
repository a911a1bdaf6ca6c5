//! One planner call: a piece of five tokens, on pages of four rows, for two decode ranks.
//!
//! Run it with `cargo run --example planner_call`.

use std::error::Error;

use kvseam::engine::sglang::Checked;
use kvseam::layout::Layout;
use kvseam::planner::{Piece, PlanInput, Planner};
use kvseam::units::{PageId, Pages, Rank, Tokens};

fn main() -> Result<(), Box<dyn Error>> {
    // P = 4 rows a page and N = 2 ranks, so that a virtual page has V = 8 tokens.
    let layout = Layout::striped(4, 2)?;
    // The first piece of its prompt, of which decode has cached nothing.
    let piece =
        Piece { src_page_offset: Pages(0), decode_prefix_len: Tokens(0), num_kv_tokens: Some(5) };
    let (source, target) = ([PageId(7), PageId(9)], [PageId(3)]);
    for rank in [Rank(0), Rank(1)] {
        let input = PlanInput::new(layout, rank, piece, &source, &target)?;
        let rows = Checked.plan(&input)?.target;
        println!("rank {rank}:");
        for (from, to) in rows.src.iter().zip(&rows.dst) {
            println!("  source row {from} to row {to}");
        }
    }
    // One page too few is a refusal, with the text of the engine.
    let input = PlanInput::new(layout, Rank(0), piece, &source[..1], &target)?;
    if let Err(refusal) = Checked.plan(&input) {
        println!("refused: {refusal}");
    }
    Ok(())
}
