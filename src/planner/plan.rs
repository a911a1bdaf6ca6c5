//! The plan: pairs of source and destination rows, one a token or as runs.

use crate::units::Row;

/// A plan in long form: one pair of rows a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// This rank's share of the piece.
    pub target: RowPairs,
    /// The draft rows, the same on every rank, where the revision lays them out.
    pub draft: Option<RowPairs>,
}

/// Two equally long lists: `src[k]` is copied to `dst[k]`, in order of position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowPairs {
    /// Rows of the prefill pool.
    pub src: Vec<Row>,
    /// Rows of this rank's decode pool.
    pub dst: Vec<Row>,
}

/// A plan in compact form: runs in order of position, no two of which could be one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunPlan {
    /// The runs.
    pub runs: Vec<RowRun>,
}

/// `len` tokens whose source rows are `src_step` apart and whose destination rows are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRun {
    /// The first token's source row.
    pub src: Row,
    /// From one source row to the next: N for a rank's share, 1 for draft rows.
    pub src_step: u32,
    /// The first token's destination row.
    pub dst: Row,
    /// Tokens, at least 1.
    pub len: u32,
}

impl RunPlan {
    /// Tokens of the plan.
    pub fn tokens(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.len)).sum()
    }

    /// The long form of these runs.
    pub fn expand(&self) -> RowPairs {
        let rows = self.runs.iter().flat_map(|run| (0..run.len).map(move |at| run.at(at)));
        let (src, dst) = rows.unzip();
        RowPairs { src, dst }
    }

    /// Appends a run, as part of the last one where it goes on.
    pub fn push(&mut self, run: RowRun) {
        if let Some(last) = self.runs.last_mut()
            && let Some(len) = last.len.checked_add(run.len)
            && last.src_step == run.src_step
            && last.following() == Some((run.src, run.dst))
        {
            last.len = len;
        } else {
            self.runs.push(run);
        }
    }
}

impl RowRun {
    /// The pair of the run's token `at`, counted from 0.
    pub fn at(&self, at: u32) -> (Row, Row) {
        (Row(self.src.0 + at * self.src_step), Row(self.dst.0 + at))
    }

    /// The pair that would continue the run, where such rows exist.
    fn following(&self) -> Option<(Row, Row)> {
        let src = self.src_step.checked_mul(self.len)?.checked_add(self.src.0)?;
        let dst = self.dst.0.checked_add(self.len)?;
        Some((Row(src), Row(dst)))
    }
}
