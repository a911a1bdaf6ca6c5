//! The command as tests call it.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

/// What a command printed and how it ended.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn kvseam(words: &[&str]) -> Ended {
    with_input(words, "")
}

pub(crate) fn with_input(words: &[&str], input: &str) -> Ended {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("kvseam"));
    // The tests may be a job of a cluster themselves.
    for variable in ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX", "KVSEAM_SHARDS"] {
        command.env_remove(variable);
    }
    let output = command.args(words).write_stdin(input).output().unwrap();
    Ended {
        code: output.status.code().expect("the command was not killed"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ended {
    /// The standard output of a command that ends with `code` and without a message.
    #[track_caller]
    pub(crate) fn data(self, code: i32) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (code, ""), "{}", self.stdout);
        self.stdout
    }

    #[track_caller]
    pub(crate) fn json(self, code: i32) -> Value {
        serde_json::from_str(&self.data(code)).unwrap()
    }

    /// The message of a command that is refused, with nothing on standard output.
    #[track_caller]
    pub(crate) fn message(self) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (2, ""), "{}", self.stderr);
        self.stderr
    }
}

/// An empty folder of this test.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("the target folder has a UTF-8 path")
}
