#![doc = include_str!("domain.md")]
