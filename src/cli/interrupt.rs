//! Ctrl-C, and a polite kill.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};

use super::{CliError, Exit};

/// A flag that Ctrl-C sets; a second Ctrl-C ends the process, as the runs under way can be long. So
/// does the signal by which systems end a process.
pub(super) fn stop_on_interrupt() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    let code = Exit::Interrupted as i32;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| CliError::failure(format!("Ctrl-C: {error}")))?;
    }
    Ok(stop)
}
