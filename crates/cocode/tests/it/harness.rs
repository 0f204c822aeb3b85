//! Runs the program as a user would, and keeps what it printed.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use cocode_testkit::{Message, StdioServer};
use serde_json::Value;

/// What the program left behind.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Fails unless the program ended with this code.
    #[track_caller]
    pub(crate) fn with_code(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "stdout: {}\nstderr: {}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// What was printed by a program that had nothing to complain about.
    #[track_caller]
    pub(crate) fn clean(self) -> String {
        let finished = self.with_code(0);
        assert_eq!(finished.stderr, "", "stdout: {}", finished.stdout);
        finished.stdout
    }

    /// The error object of a program that was asked for JSON.
    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        let object: Value = serde_json::from_str(&self.stderr)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stderr));
        object["error"].clone()
    }

    #[track_caller]
    pub(crate) fn complains(&self, parts: &[&str]) {
        for part in parts {
            assert!(
                self.stderr.contains(part),
                "{part:?} is not in:\n{}",
                self.stderr
            );
        }
    }
}

/// The program with a clean environment, so that no proxy or color setting gets in.
pub(crate) fn program<I, S>(words: I) -> Command
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let mut command = Command::new(env!("CARGO_BIN_EXE_cocode"));
    command.args(words).env_clear().stdin(Stdio::null());
    // Nobody's own servers take part.
    command.env("COCODE_HOME", "/nonexistent/cocode");
    for name in ["PATH", "HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// Runs the program without a server.
pub(crate) fn run<I, S>(words: I) -> Finished
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    Finished::of(program(words).output().unwrap())
}

/// `cocode mcp WORDS… -- SERVER`.
pub(crate) fn command(words: &[&str], server: &StdioServer) -> Command {
    let mut command = program(["mcp"]);
    command
        .args(words)
        .arg("--")
        .arg(server.program())
        .args(server.args());
    command
}

/// Runs `cocode mcp WORDS… -- SERVER`.
pub(crate) fn mcp(words: &[&str], server: &StdioServer) -> Finished {
    Finished::of(command(words, server).output().unwrap())
}

/// Runs `cocode mcp WORDS… --url URL`.
pub(crate) fn mcp_at(words: &[&str], url: &str) -> Finished {
    run(["mcp"].iter().chain(words).chain(&["--url", url]))
}

/// Runs `cocode mcp WORDS… --url URL` as a client that has this token.
pub(crate) fn mcp_by(token: &str, words: &[&str], url: &str) -> Finished {
    let header = format!("Authorization: Bearer {token}");
    let words: Vec<&str> = words
        .iter()
        .chain(&["--header", &header])
        .copied()
        .collect();
    mcp_at(&words, url)
}

/// Runs `cocode mcp WORDS… -- SERVER` with this on stdin.
pub(crate) fn mcp_with_stdin(words: &[&str], server: &StdioServer, stdin: &str) -> Finished {
    let mut child = start(command(words, server).stdin(Stdio::piped()));
    child
        .stdin
        .take()
        .unwrap()
        .write_all(stdin.as_bytes())
        .unwrap();
    Finished::of(child.wait_with_output().unwrap())
}

/// Starts a command whose output is kept.
pub(crate) fn start(command: &mut Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The message of this method that a run of the server received. The record of a run comes by
/// itself and in order, so what came before this message is then there as well.
pub(crate) fn received(server: &StdioServer, run: u32, method: &str) -> Message {
    let recorder = server.received();
    recorder.wait_for_blocking(|message| message.run == run && message.is(method))
}

/// A directory that is removed at the end of the test.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::SeqCst);
        let name = format!("cocode-cli-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let removed = std::fs::remove_dir_all(&self.0);
        assert!(removed.is_ok() || std::thread::panicking());
    }
}

/// Files of an organization, at the one place where the program looks for them. Only what is
/// started through this sees them: the tests that do so need rights to mount, and are named
/// `system_…`.
#[derive(Debug)]
pub(crate) struct SystemFiles {
    scratch: Scratch,
    unshare: &'static [&'static str],
}

/// Has these files in `/etc/cocode`.
pub(crate) fn with_system_files(files: &[(&str, &str)]) -> SystemFiles {
    let scratch = Scratch::new();
    let directory = scratch.path();
    for name in ["old", "new/cocode"] {
        std::fs::create_dir_all(directory.join(name)).unwrap();
    }
    // A directory of links to what was there before, and ours besides.
    for entry in std::fs::read_dir("/etc").unwrap() {
        let name = entry.unwrap().file_name();
        if name != "cocode" {
            let (old, new) = (directory.join("old"), directory.join("new"));
            std::os::unix::fs::symlink(old.join(&name), new.join(&name)).unwrap();
        }
    }
    for (name, text) in files {
        std::fs::write(directory.join("new/cocode").join(name), text).unwrap();
    }
    // Root may mount without being mapped to itself, even where mapping is forbidden.
    let plain: &[&str] = &["--mount"];
    let probe = Command::new("unshare").args(plain).arg("true").output();
    let unshare = if probe.is_ok_and(|probe| probe.status.success()) {
        plain
    } else {
        &["--mount", "--map-root-user"]
    };
    SystemFiles { scratch, unshare }
}

impl SystemFiles {
    /// The same command, where these files are. The environment has to be given with the command,
    /// as [`program`] does.
    pub(crate) fn command(&self, command: &Command) -> Command {
        let script =
            r#"mount --bind /etc "$1/old" && mount --bind "$1/new" /etc && shift && exec "$@""#;
        let mut wrapped = Command::new("unshare");
        wrapped
            .args(self.unshare)
            .args(["sh", "-c", script, "sh"])
            .arg(self.scratch.path())
            .arg(command.get_program())
            .args(command.get_args())
            .env_clear()
            .stdin(Stdio::null());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                wrapped.env(name, value);
            }
        }
        if let Some(directory) = command.get_current_dir() {
            wrapped.current_dir(directory);
        }
        wrapped
    }

    /// Runs the command where these files are.
    pub(crate) fn run(&self, command: &Command) -> Finished {
        Finished::of(self.command(command).output().unwrap())
    }
}
