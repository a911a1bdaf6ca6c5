//! Builds the fuzz targets.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{CampaignError, files};

/// The targets that read a text; the others take decisions from their bytes.
pub const TEXT_TARGETS: &[&str] = &["plan_file", "scenario_file", "trace_files", "vector_lines"];

/// Where the targets of a checkout have their sources.
const SOURCES: &str = "fuzz/fuzz_targets";

/// Why there are no targets to run.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A program that builds them is missing.
    #[error("{what} is missing; `{install}` installs it")]
    Missing {
        /// The program that is missing.
        what: &'static str,
        /// The command that installs it.
        install: &'static str,
    },
    /// The current folder is not a checkout.
    #[error(
        "{}: must be there, as the fuzz targets are built from it; run this in the project's folder",
        .0.display()
    )]
    NoSources(PathBuf),
    /// A command failed.
    #[error("{0}: must succeed, ended with {1}")]
    Failed(String, String),
}

/// How libFuzzer watches a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Edges alone: right for decisions, in which there is no constant to guess.
    Edges,
    /// Comparisons, too: a text has words to guess.
    Comparisons,
}

impl Watch {
    /// How the target of this name is best watched.
    pub fn of(target: &str) -> Watch {
        if TEXT_TARGETS.contains(&target) { Watch::Comparisons } else { Watch::Edges }
    }

    /// What libFuzzer is told when it runs such a target. For decisions:
    /// - inputs of their full length from the start, or it draws scenarios of one request for a
    ///   long time;
    /// - no weighing of the corpus, which takes longer than the runs;
    /// - no hit counts: how often an edge is passed is new in every tenth scenario, and each such
    ///   input would be kept.
    pub fn flags(self) -> &'static [&'static str] {
        match self {
            Watch::Edges => &["-len_control=0", "-max_len=1024", "-entropic=0", "-use_counters=0"],
            Watch::Comparisons => &[],
        }
    }

    /// Its build folder. Each has its own, as flags that differ would build all anew each time.
    fn folder(self) -> &'static str {
        match self {
            Watch::Edges => "target/fuzz",
            Watch::Comparisons => "target/fuzz-comparisons",
        }
    }
}

/// The names of all targets of the checkout in the current folder.
pub fn targets() -> Result<Vec<String>, CampaignError> {
    let sources = files(Path::new(SOURCES), "rs")?;
    let stem = |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    Ok(sources.iter().filter_map(stem).collect())
}

/// Whether everything that a build needs is installed.
pub fn check() -> Result<(), BuildError> {
    let sources = Path::new(SOURCES);
    if !sources.is_dir() {
        return Err(BuildError::NoSources(sources.to_owned()));
    }
    if !succeeds("cargo", &["+stable", "fuzz", "--version"]) {
        let (what, install) = ("cargo-fuzz", "cargo install cargo-fuzz --locked");
        return Err(BuildError::Missing { what, install });
    }
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    if !succeeds(&compiler, &["--version"]) {
        let (what, install) = ("a C++ compiler", "apt-get install g++");
        return Err(BuildError::Missing { what, install });
    }
    Ok(())
}

/// Builds all targets and returns the folder with their programs. What cargo says goes to standard
/// error.
pub fn build(watch: Watch) -> Result<PathBuf, BuildError> {
    check()?;
    let mut words = vec!["+stable", "fuzz", "build", "-s", "none", "--target-dir", watch.folder()];
    match watch {
        Watch::Edges => words.push("--no-trace-compares"),
        Watch::Comparisons => {}
    }
    let line = format!("cargo {}", words.join(" "));
    let failed = |how: String| BuildError::Failed(line.clone(), how);
    let status = Command::new("cargo").args(&words).stdout(Stdio::null()).status();
    let status = status.map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed(status.to_string()));
    }
    Ok(Path::new(watch.folder()).join(host()?).join("release"))
}

/// The machine that targets are built for, which is the name of a folder of the build.
fn host() -> Result<String, BuildError> {
    let answer = said("rustc", &["+stable", "-vV"]);
    let host = answer
        .as_deref()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("host: ")));
    let failed = || BuildError::Failed("rustc +stable -vV".to_owned(), "no host".to_owned());
    host.map(str::to_owned).ok_or_else(failed)
}

/// The compiler's name and version, for reports.
pub fn compiler() -> String {
    said("rustc", &["+stable", "--version"])
        .map_or_else(|| "an unknown rustc".to_owned(), |text| text.trim().to_owned())
}

/// What a program says on standard output, if it succeeds.
fn said(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn succeeds(program: &str, words: &[&str]) -> bool {
    said(program, words).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_targets_that_read_a_text_are_those_that_say_so() {
        let mut names = targets().unwrap();
        assert!(names.len() >= 15, "{names:?}");
        names.retain(|name| {
            let source = Path::new(SOURCES).join(name).with_extension("rs");
            std::fs::read_to_string(source).unwrap().contains("texts::")
        });
        assert_eq!(names, TEXT_TARGETS);
    }

    #[test]
    fn readers_and_ci_are_told_the_same_flags() {
        let flags = Watch::Edges.flags().join(" ");
        for file in ["fuzz/README.md", ".ci/run"] {
            assert!(std::fs::read_to_string(file).unwrap().contains(&flags), "{file}: {flags}");
        }
    }
}
