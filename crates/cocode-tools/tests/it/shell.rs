//! `shell`: output, exit, time, and what is left behind.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::Mutex;

use cocode_tools::{NoProgress, Progress, Workspace};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

use crate::{ALL, House};

#[tokio::test]
async fn output_and_exit_code_are_reported() {
    let house = House::new();
    let command = "echo out; echo err >&2; printf end; exit 3";
    let output = house
        .call("shell", json!({ "command": command }))
        .await
        .unwrap();
    assert_eq!(crate::text(&output), "out\nerr\nend\n[exit code 3]");
    assert!(!output.is_error);
    assert_eq!(
        output.structured,
        Some(json!({
            "output": "out\nerr\nend", "exit_code": 3, "timed_out": false, "truncated": false,
        }))
    );
    let text = house
        .text("shell", json!({ "command": "kill -9 $$" }))
        .await;
    assert_eq!(text, "[signal 9 (SIGKILL)]");
}

#[tokio::test]
async fn commands_run_in_the_root_without_input_and_with_the_given_environment() {
    let house = House::new();
    let text = house
        .text(
            "shell",
            json!({ "command": "cat; pwd -P; env | grep -c SECRET" }),
        )
        .await;
    let root = house.workspace.root().display();
    assert_eq!(text, format!("{root}\n0\n[exit code 1]"));

    let environment = [("PATH", "/usr/bin:/bin"), ("GREETING", "hello")]
        .map(|(name, value)| (name.into(), value.into()));
    let workspace = Workspace::open(&house.inside("."), ALL)
        .unwrap()
        .with_environment(environment);
    let output = workspace
        .call(
            "shell",
            &json!({ "command": "echo $GREETING" }),
            &NoProgress,
        )
        .await
        .unwrap();
    assert_eq!(crate::text(&output), "hello\n[exit code 0]");
    assert!(!format!("{workspace:?}").contains("hello"));
}

#[tokio::test]
async fn odd_commands_are_run_as_they_are() {
    let house = House::new();
    for (command, expected) in [
        ("-x", None),
        ("echo \"'$((1 + 1))\" # `", Some("'2\n[exit code 0]")),
        ("echo 'a\nb'", Some("a\nb\n[exit code 0]")),
        ("if", None),
    ] {
        let text = house.text("shell", json!({ "command": command })).await;
        match expected {
            Some(expected) => assert_eq!(text, expected),
            None => assert!(!text.ends_with("[exit code 0]"), "{text}"),
        }
    }
}

#[tokio::test]
async fn of_long_output_the_ends_are_kept() {
    let house = House::new();
    let command = "echo begin; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end";
    let output = house
        .call("shell", json!({ "command": command }))
        .await
        .unwrap();
    let text = crate::text(&output);
    assert!(text.starts_with("begin\nxxx") && text.ends_with("xxx\nend\n[exit code 0]"));
    assert!(text.contains("bytes left out") && text.len() < 70_000);
    assert_eq!(output.structured.unwrap()["truncated"], true);
}

/// Whether a process still exists.
#[cfg(target_os = "linux")]
fn is_alive(pid: &str) -> bool {
    fs::exists(format!("/proc/{}", pid.trim())).unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn processes_left_behind_are_ended_with_the_command() {
    let house = House::new();
    let command = "setsid sleep 1000 & echo $! > pid; echo started";
    let text = house.text("shell", json!({ "command": command })).await;
    assert_eq!(text, "started\n[exit code 0]");
    let pid = fs::read_to_string(house.inside("pid")).unwrap();
    assert!(!is_alive(&pid));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn commands_that_take_too_long_are_stopped_with_all_their_processes() {
    let house = House::new();
    let command = "trap '' TERM; sleep 1000 & echo $! > pid; echo started; wait; sleep 1000";
    let arguments = json!({ "command": command, "timeout_seconds": 1 });
    let output = house.call("shell", arguments).await.unwrap();
    assert!(output.is_error);
    let text = crate::text(&output);
    assert!(
        text.starts_with("started\n[stopped after 1 second: signal "),
        "{text}"
    );
    assert_eq!(output.structured.unwrap()["timed_out"], true);
    let pid = fs::read_to_string(house.inside("pid")).unwrap();
    assert!(!is_alive(&pid));
}

/// Hears reports, and says when there have been two.
struct Heard {
    reports: Mutex<Vec<(u64, Option<u64>, String)>>,
    twice: Notify,
}

impl Progress for Heard {
    fn report(&self, done: u64, total: Option<u64>, message: &str) {
        let mut reports = self.reports.lock().unwrap();
        reports.push((done, total, message.to_owned()));
        if reports.len() == 2 {
            self.twice.notify_one();
        }
    }
}

#[tokio::test]
async fn running_commands_are_reported() {
    let house = House::new();
    let heard = Heard {
        reports: Mutex::default(),
        twice: Notify::new(),
    };
    house.text("shell", json!({ "command": "mkfifo go" })).await;
    let arguments = json!({ "command": "echo working; cat go" });
    let call = house.workspace.call("shell", &arguments, &heard);
    let go = house.inside("go");
    let release = async {
        heard.twice.notified().await;
        // Waits for the reader, which is there or will be.
        spawn_blocking(move || fs::write(go, "done"))
            .await
            .unwrap()
            .unwrap();
    };
    let (output, ()) = tokio::join!(call, release);
    assert_eq!(
        crate::text(&output.unwrap()),
        "working\ndone\n[exit code 0]"
    );
    let reports = heard.reports.into_inner().unwrap();
    assert!(
        reports.is_sorted_by(|left, right| left.0 < right.0),
        "{reports:?}"
    );
    assert!(
        reports.iter().all(|(_, total, _)| *total == Some(120_000)),
        "{reports:?}"
    );
    assert_eq!(reports[1].2, "working");
}

#[tokio::test]
async fn dropping_the_call_ends_its_processes() {
    let house = House::new();
    house
        .text("shell", json!({ "command": "mkfifo alive" }))
        .await;
    // Every process holds the pipe, which ends when the last of them does.
    let command =
        "exec 3>alive; sleep 1000 & (trap '' TERM HUP; sleep 1000) & echo started >&3; wait";
    let arguments = json!({ "command": command });
    let call = house.workspace.call("shell", &arguments, &NoProgress);
    let alive = house.inside("alive");
    let mut started = spawn_blocking(move || {
        let mut reader = BufReader::new(File::open(alive).unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        (reader, line)
    });
    let (mut reader, line) = tokio::select! {
        output = call => panic!("{output:?}"),
        started = &mut started => started.unwrap(),
    };
    assert_eq!(line, "started\n");
    let rest = spawn_blocking(move || {
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        rest
    });
    assert_eq!(rest.await.unwrap(), "");
}

#[tokio::test]
async fn a_root_that_was_replaced_runs_no_commands() {
    let house = House::new();
    let root = house.workspace.root();
    fs::rename(root, house.outside("moved")).unwrap();
    fs::create_dir(root).unwrap();
    let refusal = house
        .refusal("shell", json!({ "command": "touch a" }))
        .await;
    assert_eq!(
        refusal,
        "the workspace was moved or removed; commands cannot be run in it"
    );
    assert!(!house.inside("a").exists());
}
