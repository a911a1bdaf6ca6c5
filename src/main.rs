//! The `kvseam` command.

use std::process::ExitCode;

use clap::Parser;
use kvseam::cli::Cli;

fn main() -> ExitCode {
    Cli::parse().run()
}
