//! Both revisions of the planner: the hazards that are theirs, and laws.

use super::*;

mod hazards;
pub(crate) mod laws;
