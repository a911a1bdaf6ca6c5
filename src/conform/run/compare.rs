//! The comparison: lane by lane, level by level, and the first difference with what is around it.

use std::collections::BTreeSet;
use std::fmt;

use super::happening::{Happening, Lane, Level};

/// The first difference of two runs, at the coarsest level at which they differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The level.
    pub level: Level,
    /// The recorded happening with those around it, one a line; the one that differs begins with
    /// `>`. Where it is missing, a line with that mark says so.
    pub recorded: Vec<String>,
    /// The same of the model.
    pub model: Vec<String>,
    /// What differs, without numbers: two scenarios of one kind tend to have one cause.
    pub kind: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.level.number();
        write!(f, "differs at level {number} ({})", self.level.doc())?;
        for (name, lines) in [("recorded", &self.recorded), ("model", &self.model)] {
            write!(f, "\n  {name}")?;
            for line in lines {
                write!(f, "\n  {line}")?;
            }
        }
        Ok(())
    }
}

/// How far the sides agree up to `most`: the last level that does, and the first difference behind
/// it.
pub(super) fn compare(
    recorded: &[Happening],
    model: &[Happening],
    most: Level,
) -> (Option<Level>, Option<Difference>) {
    let mut agreed = None;
    for &level in Level::ALL.iter().filter(|level| **level <= most) {
        if let Some(difference) = first_difference(recorded, model, level) {
            return (agreed, Some(difference));
        }
        agreed = Some(level);
    }
    (agreed, None)
}

/// One side of a lane at a level: each happening with its place in the whole.
type Track = Vec<(usize, Happening)>;

fn track(side: &[Happening], lane: Lane, level: Level) -> Track {
    let of_lane = side.iter().enumerate().filter(|(_, happening)| happening.lane == lane);
    of_lane.filter_map(|(at, happening)| Some((at, happening.at(level)?))).collect()
}

fn first_difference(
    recorded: &[Happening],
    model: &[Happening],
    level: Level,
) -> Option<Difference> {
    let lanes: BTreeSet<Lane> =
        recorded.iter().chain(model).map(|happening| happening.lane).collect();
    let places = lanes.into_iter().filter_map(|lane| {
        let left = track(recorded, lane, level);
        let right = track(model, lane, level);
        let at = (0..left.len().max(right.len())).find(|&at| {
            left.get(at).map(|(_, what)| what) != right.get(at).map(|(_, what)| what)
        })?;
        Some((place(&left, at), place(&right, at)))
    });
    let tick = |side: &[Happening], place: Result<usize, usize>| {
        let at = place.ok().and_then(|at| side.get(at));
        at.map_or(u64::MAX, |happening| happening.tick.unwrap_or(u64::MAX))
    };
    let (left, right) =
        places.min_by_key(|&(left, right)| tick(recorded, left).min(tick(model, right)))?;
    let name = |side: &[Happening], place: Result<usize, usize>| match place {
        Ok(at) => side[at].what.name(),
        Err(_) => "nothing",
    };
    let kind = format!("{} instead of {}", name(recorded, left), name(model, right));
    let (recorded, model) = (around(recorded, left), around(model, right));
    Some(Difference { level, recorded, model, kind })
}

/// The place in the whole of the `at`-th of a track, or where it would have been.
fn place(track: &Track, at: usize) -> Result<usize, usize> {
    match track.get(at) {
        Some(&(place, _)) => Ok(place),
        None => Err(track.last().map_or(0, |&(place, _)| place + 1)),
    }
}

/// What is around a place.
fn around(side: &[Happening], place: Result<usize, usize>) -> Vec<String> {
    /// Happenings that are shown before, and after.
    const NEAR: usize = 3;
    let (Ok(at) | Err(at)) = place;
    let line = |mark: char, index: usize| format!("{mark} {}", side[index]);
    let mut lines: Vec<String> =
        (at.saturating_sub(NEAR)..at).map(|index| line(' ', index)).collect();
    let behind = match place {
        Ok(at) => {
            lines.push(line('>', at));
            at + 1
        }
        Err(at) => {
            lines.push("> nothing more of this request or server".to_owned());
            at
        }
    };
    lines.extend((behind..side.len().min(behind + NEAR)).map(|index| line(' ', index)));
    lines
}
