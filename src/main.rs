//! The `kvseam` command.

use std::process::ExitCode;

use kvseam::cli::Cli;

fn main() -> ExitCode {
    match Cli::of_arguments() {
        Ok(command) => command.run(),
        Err(ended) => ended,
    }
}
