//! A terminal that tests can type into and look at.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Far longer than anything takes, also on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);
/// Between two looks at the screen.
const LOOK_AGAIN: Duration = Duration::from_millis(30);

/// A tmux of its own with one window.
pub(crate) struct Tmux {
    folder: tempfile::TempDir,
}

impl Tmux {
    /// Starts a shell command in a terminal of 100 columns and 30 rows.
    pub(crate) fn start(command: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let tmux = Self { folder };
        tmux.run(&["new-session", "-d", "-x", "100", "-y", "30", command]);
        tmux
    }

    /// Starts the demonstration, says when it has ended, and keeps the terminal open.
    pub(crate) fn demo(history: &Path) -> Self {
        let demo = demo();
        let history = history.display();
        let demo = demo.display();
        let tmux = Self::start(&format!(
            "sh -c '{demo} {history}; echo ended with $?; exec cat'"
        ));
        tmux.wait_for("> ask for something");
        tmux
    }

    /// Runs a command of tmux and gives what it prints.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(self.folder.path().join("socket"))
            .args(["-u", "-f", "/dev/null"])
            .args(arguments)
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env_remove("TMUX")
            .output()
            .expect("tmux is installed");
        assert!(
            output.status.success(),
            "tmux {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("tmux prints UTF-8")
    }

    /// Presses keys, by the names that tmux has for them.
    pub(crate) fn keys(&self, keys: &[&str]) {
        let mut arguments = vec!["send-keys"];
        arguments.extend(keys);
        self.run(&arguments);
    }

    /// Types text.
    pub(crate) fn text(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// Types text, waits until it is there, and presses Enter.
    pub(crate) fn enter(&self, text: &str) {
        self.text(text);
        self.wait_for(&format!("> {text}"));
        self.keys(&["Enter"]);
    }

    /// Pastes text as terminals do for programs that ask for brackets.
    pub(crate) fn paste(&self, text: &str) {
        self.run(&["set-buffer", text]);
        self.run(&["paste-buffer", "-p"]);
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.run(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// What can be seen, without the empty rows at the end.
    pub(crate) fn screen(&self) -> String {
        trimmed(&self.run(&["capture-pane", "-p"]))
    }

    /// All that was ever shown, lines that the terminal broke as one.
    pub(crate) fn scrollback(&self) -> String {
        trimmed(&self.run(&["capture-pane", "-p", "-J", "-S", "-"]))
    }

    /// What tmux knows of the terminal.
    pub(crate) fn fact(&self, name: &str) -> String {
        let fact = self.run(&["display-message", "-p", &format!("#{{{name}}}")]);
        fact.trim().to_owned()
    }

    /// Waits until the screen is as wanted.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is_right: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let screen = self.screen();
            if is_right(&screen) {
                return screen;
            }
            assert!(
                Instant::now() < deadline,
                "no {what} on the screen:\n{screen}"
            );
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> String {
        self.wait_until(text, |screen| screen.contains(text))
    }

    /// Waits until a text is no longer on the screen.
    #[track_caller]
    pub(crate) fn wait_until_gone(&self, text: &str) -> String {
        let what = format!("end of {text}");
        self.wait_until(&what, |screen| !screen.contains(text))
    }

    /// Waits until nothing runs: no line above the input says that it can be interrupted.
    #[track_caller]
    pub(crate) fn wait_until_idle(&self) {
        self.wait_until("end of the turn", |screen| {
            let last = screen.lines().rev().take(4);
            !last
                .into_iter()
                .any(|line| line.contains("Ctrl-C interrupts"))
        });
    }

    /// Waits until exactly this can be seen.
    #[track_caller]
    pub(crate) fn wait_for_screen(&self, expected: &[&str]) {
        let expected = expected.join("\n");
        self.wait_until(&format!("\n{expected}\n\n"), |screen| screen == expected);
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

/// The demonstration, which is built with the tests.
pub(crate) fn demo() -> PathBuf {
    let test = std::env::current_exe().expect("tests have a file");
    let folder = test.ancestors().nth(2).expect("it is in `deps`");
    let demo = folder.join("examples").join("demo");
    assert!(
        demo.is_file(),
        "{} is missing: build the examples of cocode-terminal",
        demo.display()
    );
    demo
}

/// The place for what is typed, in a folder of its own.
pub(crate) fn history() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history.jsonl");
    (folder, path)
}
