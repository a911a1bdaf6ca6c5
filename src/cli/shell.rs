//! `kvseam completions` and `kvseam man`: what a shell and a reader of manuals are to know of the
//! arguments.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::output::print;
use super::{Cli, CliError, Exit};

/// Prints the completions of a shell, to be saved where it looks for them.
#[derive(Args)]
pub(super) struct CompletionsArgs {
    /// Which shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn completions(args: &CompletionsArgs) -> Result<Exit, CliError> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "kvseam", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Clean)
}

/// Prints the manual page of a command, or of kvseam as a whole, for `man -l -`.
#[derive(Args)]
pub(super) struct ManArgs {
    /// The command; without one the page of kvseam itself.
    command: Option<String>,
}

pub(super) fn man(args: &ManArgs) -> Result<Exit, CliError> {
    let mut whole = Cli::command();
    whole.build();
    let page = match &args.command {
        None => whole.clone(),
        Some(name) => {
            let known = whole.get_subcommands().map(clap::Command::get_name);
            let known = known.filter(|&name| name != "help").collect::<Vec<_>>().join(", ");
            let found = whole.find_subcommand(name);
            let unknown = || format!("command: must be one of {known}, got \"{name}\"");
            found.ok_or_else(|| CliError::Input(unknown()))?.clone()
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text).map_err(CliError::failure)?;
    print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Clean)
}
