//! A user with a home and a project of their own, both empty at first.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Finished, Scratch, program};

/// Where a test user lives and works.
#[derive(Debug)]
pub(crate) struct Home {
    scratch: Scratch,
}

impl Home {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new();
        for name in ["home", "project/.git", "project/sub"] {
            std::fs::create_dir_all(scratch.path().join(name)).unwrap();
        }
        Self { scratch }
    }

    /// The work tree.
    pub(crate) fn project(&self) -> PathBuf {
        self.scratch.path().join("project")
    }

    /// The directory of `COCODE_HOME`.
    pub(crate) fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    /// Writes a file of the project.
    pub(crate) fn project_file(&self, name: &str, text: &str) -> PathBuf {
        written(&self.project().join(name), text)
    }

    /// Writes a file of the user.
    pub(crate) fn user_file(&self, name: &str, text: &str) -> PathBuf {
        written(&self.home().join(name), text)
    }

    /// The program as this user would run it in the project.
    pub(crate) fn command<I, S>(&self, words: I) -> Command
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = program(words);
        command
            .env("COCODE_HOME", self.home())
            .env("HOME", self.scratch.path())
            .current_dir(self.project());
        command
    }

    /// Runs the program in the project.
    pub(crate) fn run<I, S>(&self, words: I) -> Finished
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        Finished::of(self.command(words).output().unwrap())
    }

    /// Runs `cocode mcp WORDS…` in the project.
    pub(crate) fn mcp(&self, words: &[&str]) -> Finished {
        self.run(["mcp"].iter().chain(words))
    }

    /// What `cocode mcp WORDS… --json` printed.
    #[track_caller]
    pub(crate) fn json(&self, words: &[&str]) -> serde_json::Value {
        let text = self
            .run(words.iter().chain(&["--json"]))
            .with_code(0)
            .stdout;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

fn written(path: &Path, text: &str) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    path.to_owned()
}
