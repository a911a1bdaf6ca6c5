//! The `kvseam` command.

use std::process::ExitCode;

use kvseam::cli::Cli;
use mimalloc::MiMalloc;

/// Short runs allocate as much as they compute: the system's allocator costs them a sixth more.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match Cli::of_arguments() {
        Ok(command) => command.run(),
        Err(ended) => ended,
    }
}
