//! The engines: what is one serving engine's own, a folder each.

pub mod connection;
pub mod sglang;
pub mod texts;
