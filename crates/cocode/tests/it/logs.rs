//! The logs of servers, as `cocode mcp logs` shows them.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::Finished;
use crate::home::Home;
use crate::interrupting::signal;
use crate::terminal::{open, pseudo_terminal, watch};

const LINES: [&str; 4] = [
    "2026-11-16T03:04:05.000Z state starting",
    "2026-11-16T03:04:05.123Z stderr listening",
    "2026-11-16T03:04:06.000Z message:warning it is late",
    "2026-11-16T03:04:07.000Z state stopped",
];

/// A user with the servers `files` and `docs`.
fn home() -> Home {
    let home = Home::new();
    let servers = "[mcp_servers.files]\ncommand = 'x'\n[mcp_servers.docs]\ncommand = 'x'\n";
    home.user_file("mcp.toml", servers);
    home
}

fn log_path(home: &Home, name: &str) -> PathBuf {
    home.home().join("state/logs").join(name)
}

fn write_log(home: &Home, name: &str, lines: &[&str]) -> PathBuf {
    let path = log_path(home, name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("{}\n", lines.join("\n"))).unwrap();
    path
}

fn add(path: &PathBuf, line: &str) {
    let mut file = File::options()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

#[test]
fn the_last_lines_are_shown_through_files_that_were_put_aside() {
    let home = home();
    write_log(&home, "files.log.1", &LINES[..3]);
    write_log(&home, "files.log", &LINES[3..]);
    let all = format!("{}\n", LINES.join("\n"));
    assert_eq!(home.mcp(&["logs", "files"]).clean(), all);
    let last = home.mcp(&["logs", "files", "-n", "2"]).clean();
    assert_eq!(last, format!("{}\n", LINES[2..].join("\n")));
    assert_eq!(home.mcp(&["logs", "files", "--lines", "0"]).clean(), "");
}

#[test]
fn scripts_get_one_object_for_each_line() {
    let home = home();
    let foreign = ["Traceback"];
    write_log(&home, "files.log", &[&LINES[1..3], &foreign].concat());
    let text = home.mcp(&["logs", "files", "--json"]).clean();
    let objects: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        objects,
        [
            json!({"time": "2026-11-16T03:04:05.123Z", "source": "stderr", "text": "listening"}),
            json!({
                "time": "2026-11-16T03:04:06.000Z", "source": "message", "level": "warning",
                "text": "it is late",
            }),
            json!({"text": "Traceback"}),
        ]
    );
}

#[test]
fn a_server_that_was_never_started_has_no_log_and_that_is_no_error() {
    let home = home();
    let finished = home.mcp(&["logs", "files"]).with_code(0);
    assert_eq!(finished.stdout, "");
    assert_eq!(
        finished.stderr,
        "`files` has no log yet: it begins when the server is started or contacted\n"
    );
    assert_eq!(home.mcp(&["logs", "files", "--json"]).clean(), "");
    let cleared = home.mcp(&["logs", "files", "--clear"]).with_code(0);
    cleared.complains(&["`files` has no log yet"]);
    assert!(!log_path(&home, "").exists());
}

#[test]
fn a_server_that_nobody_knows_is_an_error_unless_it_left_a_log() {
    let home = home();
    let finished = home.mcp(&["logs", "filse"]).with_code(2);
    finished.complains(&["there is no server `filse`", "did you mean `files`?"]);
    let error = home
        .mcp(&["logs", "filse", "-f", "--json"])
        .with_code(2)
        .error();
    assert_eq!(error["code"], "unknown-server");
    write_log(&home, "gone.log", &LINES[..1]);
    assert_eq!(home.mcp(&["logs", "gone"]).clean().lines().count(), 1);
}

#[test]
fn names_that_look_like_paths_lead_nowhere_else() {
    let home = home();
    write_log(&home, "files.log", &LINES);
    for name in ["../logs/files", "/etc/passwd", ".."] {
        home.mcp(&["logs", name]).with_code(2);
        home.mcp(&["logs", name, "--clear"]).with_code(2);
    }
}

#[test]
fn the_place_of_a_log_can_be_asked_for() {
    let home = home();
    let path = log_path(&home, "files.log").display().to_string();
    let shown = home.mcp(&["logs", "files", "--path"]).clean();
    assert_eq!(shown, format!("{path}\n"));
    assert_eq!(
        home.json(&["mcp", "logs", "files", "--path"]),
        json!({"name": "files", "path": path, "exists": false})
    );
    home.mcp(&["logs", "files", "--path", "--clear"])
        .with_code(2);
    home.mcp(&["logs", "files", "--path", "-f"]).with_code(2);
}

#[test]
fn a_log_can_be_removed_and_others_stay() {
    let home = home();
    let files = [
        write_log(&home, "files.log", &LINES),
        write_log(&home, "files.log.1", &LINES),
    ];
    let other = write_log(&home, "docs.log", &LINES);
    let said = home.mcp(&["logs", "files", "--clear"]).clean();
    assert_eq!(said, "removed the log of `files`\n");
    assert!(files.iter().all(|file| !file.exists()));
    assert!(other.exists());
    assert_eq!(
        home.json(&["mcp", "logs", "docs", "--clear"]),
        json!({"name": "docs", "removed": 1})
    );
}

#[test]
fn following_shows_what_comes_through_a_rotation_until_ctrl_c() {
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let home = home();
        let path = write_log(&home, "files.log", &LINES[..2]);
        let mut command = home.command(["mcp", "logs", "files", "-f", "-n", "1"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut is_next = |expected: &str| {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            assert_eq!(line.trim_end(), expected);
        };
        is_next(LINES[1]);
        add(&path, LINES[2]);
        is_next(LINES[2]);
        fs::rename(&path, log_path(&home, "files.log.1")).unwrap();
        add(&path, LINES[3]);
        is_next(LINES[3]);
        fs::remove_file(&path).unwrap();
        add(&path, LINES[2]);
        is_next(LINES[2]);
        signal(&child, name);
        let finished = Finished::of(child.wait_with_output().unwrap()).with_code(code);
        assert_eq!(finished.stderr, "");
    }
}

#[test]
fn following_can_begin_before_the_server_does() {
    let home = home();
    fs::create_dir_all(log_path(&home, "")).unwrap();
    let mut command = home.command(["mcp", "logs", "docs", "-f", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    add(&log_path(&home, "docs.log"), LINES[1]);
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let object: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(object["text"], "listening");
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn following_ends_when_nobody_reads_any_more() {
    let home = home();
    let path = write_log(&home, "files.log", &LINES[..1]);
    let mut command = home.command(["mcp", "logs", "files", "-f"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line.trim_end(), LINES[0]);
    // The reader is gone with the line.
    add(&path, LINES[1]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_log_does_not_steer_a_terminal_whoever_wrote_it() {
    let home = home();
    let line = "2026-11-16T03:04:05.123Z stderr \x1b]0;owned\x07\u{202e}txt";
    write_log(&home, "files.log", &[line]);
    let shown = |color: &str| {
        let (person, name) = pseudo_terminal();
        let terminal = open(&name);
        let mut command = home.command(["mcp", "logs", "files", "--color", color]);
        let mut child = command.stdout(terminal).spawn().unwrap();
        drop(command);
        let seen = watch(person, Vec::new()).join().unwrap();
        assert!(child.wait().unwrap().success());
        seen
    };
    let text = "\u{fffd}]0;owned\u{fffd}\\u{202e}txt\r\n";
    assert_eq!(
        shown("never"),
        format!("2026-11-16T03:04:05.123Z stderr {text}")
    );
    assert_eq!(
        shown("always"),
        format!("\x1b[2m2026-11-16T03:04:05.123Z stderr \x1b[0m{text}")
    );
    // Whoever is no terminal gets the file as it is.
    assert_eq!(home.mcp(&["logs", "files"]).clean(), format!("{line}\n"));
}
