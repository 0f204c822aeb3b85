//! A daemon that does not answer: nobody waits for it for long, and it can be ended.

use std::io::Write as _;
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use cocode_testkit::Script;
use serde_json::{Value, json};

use crate::fronts::{Client, Site, is_alive, wait_while};
use crate::harness::Finished;
use crate::interrupting::signal_to;
use crate::status::entry;

const ONE: &[&str] = &["--server", "one"];

#[test]
fn commands_that_look_say_that_the_daemon_does_not_answer() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let mut front = site.front(ONE);
    front.open(&json!({}));
    front.skip_notifications();
    let daemon = site.daemon();
    signal_to(daemon, "-STOP");
    let told = format!("the daemon (process {daemon}) does not answer");
    let asked = site.home.mcp(&["daemon", "status"]).with_code(3);
    asked.complains(&[&told, "`cocode mcp daemon stop` ends it"]);
    site.home
        .mcp(&["restart", "one"])
        .with_code(3)
        .complains(&[&told]);
    // Servers are looked at without it.
    let status = site.home.mcp(&["status", "--json"]).with_code(0);
    status.complains(&[&told]);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["servers"][0]["state"], json!("ready"), "{status}");
    // So it can be ended, which takes its servers along.
    let stopped = site.home.mcp(&["daemon", "stop"]).with_code(0);
    assert!(stopped.stdout.contains("did not answer"), "{stopped:?}");
    // Its connections end a moment before it does.
    wait_while(|| is_alive(daemon));
    assert_eq!(front.call_or_again(1, "echo"), r#"{"n":1}"#);
}

#[test]
fn a_front_does_not_wait_for_a_daemon_that_hangs_however_much_it_has_to_say() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let mut first = site.front(ONE);
    first.open(&json!({}));
    let daemon = site.daemon();
    signal_to(daemon, "-STOP");
    let mut command = site.command(ONE);
    // More than a socket takes that nobody reads from.
    for number in 0..8 {
        command.env(format!("LARGE_{number}"), "x".repeat(100_000));
    }
    let mut front = Client::start(&mut command);
    front.open(&json!({}));
    assert_eq!(front.call(1, "echo"), r#"{"n":1}"#);
    let (code, told) = front.leave();
    assert_eq!(code, Some(0));
    let hangs = format!("the daemon (process {daemon}) does not answer");
    assert!(told.contains(&hangs), "{told}");
    assert!(told.contains("`cocode mcp daemon stop` ends it"), "{told}");
    signal_to(daemon, "-CONT");
    assert_eq!(first.call(2, "echo"), r#"{"n":2}"#);
}

#[test]
fn a_place_that_is_not_trusted_is_said_by_whoever_looks() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let runtime = site.home.home().join("runtime");
    let open = runtime.join("cocode");
    std::fs::create_dir_all(&open).unwrap();
    let_others(&open, 0o777);
    let look = |words: &[&str]| {
        let mut command = site.home.command(["mcp"].iter().chain(words));
        Finished::of(command.env("XDG_RUNTIME_DIR", &runtime).output().unwrap())
    };
    let why = "can be changed by other users";
    look(&["status"]).with_code(0).complains(&[why, "chmod"]);
    look(&["daemon", "status"]).with_code(3).complains(&[why]);
    look(&["daemon", "stop"]).with_code(0);
}

fn let_others(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn nobody_is_ended_who_may_be_no_daemon() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let mut front = site.front(ONE);
    front.open(&json!({}));
    let status = site.status();
    let socket = Path::new(status["socket"].as_str().unwrap());
    front.leave();
    site.home.mcp(&["daemon", "stop"]).with_code(0);
    // This process is what would get the signals.
    let listener = UnixListener::bind(socket).unwrap();
    let directory = socket.parent().unwrap();
    let_others(directory, 0o777);
    let why = "can be changed by other users";
    for words in [["daemon", "stop"], ["daemon", "status"]] {
        let refused = site.home.mcp(&words).with_code(3);
        refused.complains(&[why, "chmod"]);
    }
    let_others(directory, 0o700);
    let answering = std::thread::spawn(move || {
        for connected in listener.incoming() {
            let mut stream = connected.unwrap();
            if stream.write_all(b"hello, what do you want?\n").is_err() {
                continue;
            }
            // As long as it stays, it could be told to end.
            let mut said = Vec::new();
            let ended = std::io::Read::read_to_end(&mut stream, &mut said);
            if ended.is_ok() && said == b"enough" {
                return;
            }
        }
    });
    let hint = "`cocode mcp daemon stop` ends it";
    for words in [["daemon", "status"], ["daemon", "stop"]] {
        let refused = site.home.mcp(&words).with_code(3);
        refused.complains(&["the daemon's answer is not understood"]);
        assert!(!refused.stderr.contains(hint), "{}", refused.stderr);
    }
    let mut end = UnixStream::connect(socket).unwrap();
    end.write_all(b"enough").unwrap();
    end.shutdown(Shutdown::Write).unwrap();
    // What was not read would be an error at the other end.
    std::io::copy(&mut end, &mut std::io::sink()).unwrap();
    answering.join().unwrap();
    std::fs::remove_file(socket).unwrap();
}
