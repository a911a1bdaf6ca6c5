//! What pool, prefix caches, handoff and planner must answer, each defined anew in plain terms.
//!
//! A *reference model* shares no code with what it judges, and prefers the plain to the fast:
//! lists, tables, one token after the other. Each subject has one. A *case* is what is told to the
//! subject, as plain data, and `check` tells it to the subject and to the model and panics where an
//! answer differs. Property tests draw cases that shrink; fuzz targets draw the same cases out of
//! bytes.

pub mod allocator;
pub mod handoff;
pub mod planner;
pub mod prefix_cache;
