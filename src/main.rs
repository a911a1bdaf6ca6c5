//! The `kvseam` command.

use std::process::ExitCode;

use kvseam::cli::Cli;
use mimalloc::MiMalloc;

/// A run of a sweep is mostly small allocations.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match Cli::of_arguments() {
        Ok(command) => command.run(),
        Err(ended) => ended,
    }
}
