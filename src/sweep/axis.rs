//! An *axis*: one thing that varies, with the points that it takes.
//!
//! ```toml
//! [[axes]]                            # one setting, as a list
//! path = "layout.page_size"
//! values = [16, 64]
//!
//! [[axes]]                            # one setting, as a range: 100, 150, 200
//! path = "prefill.pages"
//! range = { from = 100, to = 200, step = 50 }
//!
//! [[axes]]                            # the same by doubling: 1, 2, 4, 8
//! path = "layout.ranks"
//! range = { from = 1, to = 8, doubling = true }
//!
//! [[axes]]                            # settings that change together
//! name = "behaviour"
//! points = [
//!   { name = "sound", set = {} },
//!   { name = "padded up", set = { "behaviour.decode_prefix_cut" = "padded_up" } },
//! ]
//! ```

use std::collections::BTreeSet;

use serde::Deserialize;
use toml::{Table, Value};

use crate::limits;

/// One thing that varies.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The setting's path, or the name given to linked settings.
    pub name: String,
    /// What it takes, in order.
    pub points: Vec<Point>,
}

/// One place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The value, or the name given to linked values.
    pub name: String,
    /// Settings of the base scenario, by path.
    pub set: Vec<(String, Value)>,
}

/// An axis as the file spells it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AxisFile {
    path: Option<String>,
    values: Option<Vec<Value>>,
    range: Option<Range>,
    name: Option<String>,
    points: Option<Vec<PointFile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PointFile {
    name: String,
    set: Table,
}

/// Whole numbers up to `to` included.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    from: i64,
    to: i64,
    step: Option<i64>,
    #[serde(default)]
    doubling: bool,
}

impl AxisFile {
    /// One of the three spellings; the error is a path below the axis and a reason.
    pub(super) fn check(self) -> Result<Axis, (&'static str, String)> {
        let axis = match (self.path, self.values, self.range, self.name, self.points) {
            (Some(path), Some(values), None, None, None) => of_values(path, values),
            (Some(path), None, Some(range), None, None) => {
                let values = range.values().map_err(|reason| (".range", reason))?;
                of_values(path, values.into_iter().map(Value::from).collect())
            }
            (None, None, None, Some(name), Some(points)) => Axis {
                points: points
                    .into_iter()
                    .map(|point| Point { name: point.name, set: point.set.into_iter().collect() })
                    .collect(),
                name,
            },
            _ => {
                let reason =
                    "must have either `path` with `values` or `range`, or `name` and `points`";
                return Err(("", reason.to_owned()));
            }
        };
        let names: BTreeSet<&str> = axis.points.iter().map(|point| point.name.as_str()).collect();
        if names.is_empty() || names.len() < axis.points.len() {
            let reason = format!(
                "must be one or more different points, got {} of which {} differ",
                axis.points.len(),
                names.len()
            );
            return Err(("", reason));
        }
        if names.len() > limits::AXIS_POINTS {
            return Err(("", too_many(names.len())));
        }
        Ok(axis)
    }
}

impl Range {
    fn values(&self) -> Result<Vec<i64>, String> {
        let (from, to) = (self.from, self.to);
        if from > to {
            return Err(format!("`to` must be `from` ({from}) or more, got {to}"));
        }
        let next: Box<dyn Fn(i64) -> Option<i64>> = match (self.step, self.doubling) {
            (Some(step), false) if step > 0 => Box::new(move |value| value.checked_add(step)),
            (Some(step), false) => return Err(format!("`step` must be 1 or more, got {step}")),
            (None, true) if from > 0 => Box::new(|value| value.checked_mul(2)),
            (None, true) => {
                return Err(format!("`from` must be 1 or more where it doubles, got {from}"));
            }
            (None, false) | (Some(_), true) => {
                return Err("must have either `step` or `doubling = true`".to_owned());
            }
        };
        let values = std::iter::successors(Some(from), |&value| next(value));
        let values: Vec<i64> =
            values.take_while(|&value| value <= to).take(limits::AXIS_POINTS + 1).collect();
        if values.len() > limits::AXIS_POINTS {
            return Err(too_many(values.len()));
        }
        Ok(values)
    }
}

fn of_values(path: String, values: Vec<Value>) -> Axis {
    let point = |value: Value| Point { name: plain(&value), set: vec![(path.clone(), value)] };
    Axis { points: values.into_iter().map(point).collect(), name: path }
}

fn too_many(points: usize) -> String {
    format!("must be at most {} points, got {points} or more", limits::AXIS_POINTS)
}

/// A value as people write it: texts without quotes.
pub(super) fn plain(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    }
}

/// No two axes may set the same thing, or the later one would hide the earlier one.
pub(super) fn check_paths(axes: &[Axis]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for axis in axes {
        if !names.insert(axis.name.as_str()) {
            return Err(format!("two axes are called \"{}\"", axis.name));
        }
        let paths: BTreeSet<&str> = axis
            .points
            .iter()
            .flat_map(|point| &point.set)
            .map(|(path, _)| path.as_str())
            .collect();
        for path in paths {
            if path == "seed" {
                return Err("`seed` is set by `seeds`, it cannot be an axis".to_owned());
            }
            if !taken.insert(path) {
                return Err(format!("two axes set \"{path}\""));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(text: &str) -> Result<Axis, String> {
        let file: AxisFile = toml::from_str(text).unwrap();
        file.check().map_err(|(path, reason)| format!("{path}: {reason}"))
    }

    fn names(range: &str) -> Vec<String> {
        let axis = axis(&format!("path = \"layout.ranks\"\nrange = {range}")).unwrap();
        axis.points.into_iter().map(|point| point.name).collect()
    }

    fn refused(range: &str) -> String {
        axis(&format!("path = \"layout.ranks\"\nrange = {range}")).unwrap_err()
    }

    #[test]
    fn ranges_go_by_step_or_by_doubling_up_to_their_end() {
        assert_eq!(names("{ from = 100, to = 200, step = 50 }"), ["100", "150", "200"]);
        assert_eq!(names("{ from = 100, to = 199, step = 50 }"), ["100", "150"]);
        assert_eq!(names("{ from = -1, to = 1, step = 1 }"), ["-1", "0", "1"]);
        assert_eq!(names("{ from = 3, to = 24, doubling = true }"), ["3", "6", "12", "24"]);
        assert_eq!(names("{ from = 3, to = 3, doubling = true }"), ["3"]);
        let end = i64::MAX;
        assert_eq!(names(&format!("{{ from = {end}, to = {end}, step = 1 }}")).len(), 1);
    }

    #[test]
    fn a_range_without_an_end_or_a_way_is_refused() {
        assert!(refused("{ from = 2, to = 1, step = 1 }").contains("must be `from` (2) or more"));
        assert!(refused("{ from = 1, to = 2, step = 0 }").contains("must be 1 or more, got 0"));
        assert!(refused("{ from = 0, to = 2, doubling = true }").contains("must be 1 or more"));
        assert!(refused("{ from = 1, to = 2 }").contains("either `step` or"));
        assert!(refused("{ from = 1, to = 2, step = 1, doubling = true }").contains("either"));
        let many = refused("{ from = 1, to = 9000000000, step = 1 }");
        assert_eq!(many, ".range: must be at most 10000 points, got 10001 or more");
    }
}
