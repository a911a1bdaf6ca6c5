//! A *selection*: some of a plan's cells, by points of its axes. Filters and expected rates use it.
//!
//! ```toml
//! where = { behaviour = "padded up", "layout.page_size" = [4, 16], "layout.ranks" = { min = 2 } }
//! ```
//!
//! A cell is selected where every condition holds; without conditions every cell is.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Value;

use super::axis::{Axis, plain};
use crate::wording;

/// Conditions by axis, as the file spells them.
pub(super) type Conditions = BTreeMap<String, Condition>;

/// What a point must be.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Condition {
    /// One of these. First, as a list of two would do for bounds, too.
    OneOf(Vec<Value>),
    /// Within these bounds, both included.
    Within(Within),
    /// Exactly this value.
    Is(Value),
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Within {
    #[serde(default = "lowest")]
    min: i64,
    #[serde(default = "highest")]
    max: i64,
}

fn lowest() -> i64 {
    i64::MIN
}

fn highest() -> i64 {
    i64::MAX
}

/// Some of a plan's cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// For each axis, for each of its points, whether it may be.
    allowed: Vec<Vec<bool>>,
    /// In words.
    text: String,
}

impl Selection {
    /// The error is the name of an axis and a reason.
    pub(super) fn new(
        axes: &[Axis],
        conditions: &Conditions,
    ) -> Result<Selection, (String, String)> {
        let mut allowed: Vec<Vec<bool>> =
            axes.iter().map(|axis| vec![true; axis.points.len()]).collect();
        let mut texts = Vec::new();
        for (name, condition) in conditions {
            let fail = |reason: String| (name.clone(), reason);
            let index = axes.iter().position(|axis| axis.name == *name).ok_or_else(|| {
                let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
                let wanted = wording::one_of(&names, "the plan has no axis");
                fail(format!("must be {wanted}, got \"{name}\""))
            })?;
            allowed[index] = condition.points(&axes[index]).map_err(fail)?;
            texts.push(format!("{name} {}", condition.text()));
        }
        Ok(Selection { allowed, text: texts.join(", ") })
    }

    /// Whether the cell with these points, by index for each axis, is one of them.
    pub fn has(&self, indices: &[usize]) -> bool {
        self.allowed.iter().zip(indices).all(|(allowed, &index)| allowed[index])
    }

    /// The conditions in words; empty where there is none.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Condition {
    /// Which points of `axis` it allows: one at least, or it would be a slip of the pen.
    fn points(&self, axis: &Axis) -> Result<Vec<bool>, String> {
        let allowed = match self {
            Condition::Is(value) => named(axis, std::slice::from_ref(value))?,
            Condition::OneOf(values) => named(axis, values)?,
            Condition::Within(within) => {
                let numbers = axis.points.iter().map(|point| match point.set.as_slice() {
                    [(path, Value::Integer(number))] if *path == axis.name => Ok(*number),
                    _ => Err(format!(
                        "bounds must be on an axis of whole numbers, got one with \"{}\"",
                        point.name
                    )),
                });
                let numbers: Vec<i64> = numbers.collect::<Result<_, _>>()?;
                numbers.iter().map(|number| (within.min..=within.max).contains(number)).collect()
            }
        };
        if allowed.contains(&true) {
            return Ok(allowed);
        }
        Err(format!("must select one of its points at least ({}), got none", points(axis)))
    }

    fn text(&self) -> String {
        match self {
            Condition::Is(value) => format!("= {}", plain(value)),
            Condition::OneOf(values) => {
                format!("= {}", values.iter().map(plain).collect::<Vec<_>>().join(" or "))
            }
            Condition::Within(Within { min: i64::MIN, max }) => format!("<= {max}"),
            Condition::Within(Within { min, max: i64::MAX }) => format!(">= {min}"),
            Condition::Within(Within { min, max }) => format!("in {min}..={max}"),
        }
    }
}

fn named(axis: &Axis, values: &[Value]) -> Result<Vec<bool>, String> {
    let mut allowed = vec![false; axis.points.len()];
    for value in values {
        let name = plain(value);
        let index = axis.points.iter().position(|point| point.name == name).ok_or_else(|| {
            format!("must be one of its points ({}), got \"{name}\"", points(axis))
        })?;
        allowed[index] = true;
    }
    Ok(allowed)
}

/// The names of the first points.
fn points(axis: &Axis) -> String {
    /// Names that a message lists.
    const SHOWN: usize = 12;
    let names: Vec<&str> =
        axis.points.iter().take(SHOWN).map(|point| point.name.as_str()).collect();
    let more = if axis.points.len() > SHOWN { ", …" } else { "" };
    names.join(", ") + more
}
