//! Campaigns of the real fuzz targets: which unsound behaviours the hunts find, and how soon; and a
//! nightly run of everything that takes long.
//!
//! The targets are programs of their own, built by cargo-fuzz. They are started, watched and
//! stopped here, and what they say on standard error is read. Nothing else here needs cargo-fuzz.

use std::path::{Path, PathBuf};

pub mod build;
pub mod hunt;
pub mod libfuzzer;
pub mod night;

/// Why a campaign cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A file or folder cannot be read or written, or a program cannot be started.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line of a state file that this program did not write.
    #[error("{}:{line}: {reason}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A fuzz target ended neither at its limit nor with a crash.
    #[error("{program}: must end at its limit or with a crash, ended with {status}:\n{log}")]
    Ended {
        /// The target.
        program: String,
        /// Its exit status.
        status: String,
        /// The end of what it said.
        log: String,
    },
    /// The threads that watch the targets cannot be started.
    #[error("threads: {0}")]
    Threads(rayon::ThreadPoolBuildError),
    /// A scenario file that the campaign needs.
    #[error("{0}")]
    Scenario(String),
}

impl CampaignError {
    /// Makes the error of an operation on `path`, for `map_err`.
    pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> CampaignError {
        let path = path.to_owned();
        move |source| CampaignError::Io { path, source }
    }
}

/// The files in `folder` whose names end in `.EXTENSION`, in the order of their names.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, CampaignError> {
    let entries = std::fs::read_dir(folder).map_err(CampaignError::at(folder))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> =
        paths.collect::<Result<_, _>>().map_err(CampaignError::at(folder))?;
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    Ok(paths)
}
