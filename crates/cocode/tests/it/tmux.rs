//! A terminal that tests can type into and look at.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Far longer than anything takes, also on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);
/// Between two looks at the screen.
const LOOK_AGAIN: Duration = Duration::from_millis(30);

/// What the input shows when nothing is typed.
pub(crate) const INPUT: &str = "> ask for something, / for commands, @ for files";

/// A tmux of its own with one window of 100 columns and 40 rows.
pub(crate) struct Tmux {
    folder: tempfile::TempDir,
}

impl Tmux {
    /// Runs a command with exactly this environment, says how it ended, and keeps the terminal open.
    pub(crate) fn start(directory: &Path, variables: &[(&str, &str)], command: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut line = format!("cd {} && env -i", quoted(&directory.to_string_lossy()));
        for (name, value) in variables {
            write!(line, " {name}={}", quoted(value)).unwrap();
        }
        for word in command {
            write!(line, " {}", quoted(word)).unwrap();
        }
        line.push_str("; echo ended with $?; exec cat");
        let tmux = Self { folder };
        tmux.run(&["new-session", "-d", "-x", "100", "-y", "40", &line]);
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
            .unwrap();
        assert!(
            output.status.success(),
            "tmux {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
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

    /// Types text into the input, waits until it is there, and presses Enter.
    #[track_caller]
    pub(crate) fn enter(&self, text: &str) {
        self.text(text);
        self.wait_for(&format!("> {text}"));
        self.keys(&["Enter"]);
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

    /// Waits until a text is there, and the session waits for input below it.
    #[track_caller]
    pub(crate) fn wait_for_answer(&self, text: &str) -> String {
        self.wait_until(&format!("{text}, and an input below"), |screen| {
            let after = screen.rsplit_once(text).map(|(_, after)| after);
            after.is_some_and(|after| after.contains(INPUT))
        })
    }

    /// Waits until what can be seen ends with exactly these rows.
    #[track_caller]
    pub(crate) fn wait_for_end(&self, expected: &[&str]) {
        let expected = expected.join("\n");
        self.wait_until(&format!("\n{expected}\n\n"), |screen| {
            screen.ends_with(&expected)
        });
    }
}

impl Tmux {
    /// The programs that run in the terminal.
    pub(crate) fn programs(&self) -> Vec<String> {
        let shell = self.run(&["display-message", "-p", "#{pane_pid}"]);
        let children = Command::new("pgrep").args(["-P", shell.trim()]).output();
        let children = String::from_utf8(children.unwrap().stdout).unwrap();
        children.lines().map(str::to_owned).collect()
    }
}

impl Drop for Tmux {
    /// Whatever still runs hears that its terminal is gone, and is waited for: it writes its files.
    fn drop(&mut self) {
        let programs = self.programs();
        self.run(&["kill-server"]);
        let deadline = Instant::now() + DEADLINE;
        let runs = |pid: &String| Path::new("/proc").join(pid).exists();
        while programs.iter().any(runs) && Instant::now() < deadline {
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
