//! What commands show and change of the servers that run in the daemon, and what fronts are served.

use std::io::{BufRead, BufReader, Lines};
use std::process::Stdio;

use cocode_testkit::{Gate, Script};
use serde_json::{Value, json};

use crate::fronts::{Client, Site, kill, wait_while};
use crate::harness::{received, start};
use crate::status::entry;

const ONE: &[&str] = &["--server", "one"];

/// The names of all tools that a client sees.
fn tools(client: &mut Client) -> Vec<String> {
    let answer = client.ask(9, "tools/list", &json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

#[test]
fn all_servers_are_served_as_one_or_those_that_are_wanted() {
    let (one, two) = (Script::new().stdio(), Script::new().stdio());
    let site = Site::new(&format!("{}{}", entry("one", &one), entry("two", &two)));
    let profile = "[gateway.profiles.plain]\nservers = [\"two\"]\nprefix = \"never\"\n";
    site.home.user_file("config.toml", profile);
    let check = |words: &[&str], expected: &[&str]| {
        let mut front = site.front(words);
        front.open(&json!({}));
        front.skip_notifications();
        assert_eq!(tools(&mut front), expected, "{words:?}");
        front
    };
    let mut all = check(&[], &["mcp__one__echo", "mcp__two__echo"]);
    let _one = check(&["--servers", "one"], &["mcp__one__echo"]);
    let _profile = check(&["--profile", "plain"], &["echo"]);
    let _only = check(&["--server", "two"], &["echo"]);
    let shown = site.home.mcp(&["daemon", "status"]).clean();
    for serves in [
        "  all  ",
        "  one  ",
        "  profile plain  ",
        "  two, as it is  ",
    ] {
        assert!(shown.contains(serves), "{serves:?} is not in:\n{shown}");
    }
    let fronts = &site.status()["fronts"];
    assert_eq!(fronts[1]["servers"], json!(["one"]), "{fronts}");
    assert_eq!(fronts[2]["profile"], json!("plain"), "{fronts}");
    assert_eq!(all.call(1, "mcp__two__echo"), r#"{"n":1}"#);
    assert_eq!((one.runs().all(), two.runs().all()), (vec![1], vec![1]));
    for (words, code) in [
        (["--servers", "three"], "unknown-server"),
        (["--profile", "none"], "invalid-usage"),
    ] {
        let (exit, told) = site.front(&words).leave();
        assert_eq!(exit, Some(2), "{told}");
        assert!(told.contains(code), "{told}");
    }
}

#[test]
fn rules_and_files_count_for_fronts_as_they_are_now() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let mut front = site.front(&[]);
    front.open(&json!({}));
    front.skip_notifications();
    assert_eq!(tools(&mut front), ["mcp__one__echo"]);
    site.home
        .run(["permissions", "deny", "one.echo"])
        .with_code(0);
    wait_while(|| !tools(&mut front).is_empty());
    let answer = front.ask(2, "tools/call", &json!({"name": "mcp__one__echo"}));
    assert!(answer["error"].is_object(), "{answer}");
}

#[test]
fn a_front_is_told_of_files_that_change_while_it_runs() {
    let (server, other) = (Script::new().stdio(), Script::new().stdio());
    let site = Site::new(&entry("one", &server));
    for alone in [&[][..], &["--standalone"]] {
        let mut front = site.front(alone);
        front.open(&json!({}));
        front.skip_notifications();
        // A server that nobody has approved.
        let file = site.home.project_file(".mcp.toml", &entry("new", &other));
        let told = front.until_told("`new`");
        assert!(told.contains("is not approved"), "{told}");
        std::fs::remove_file(file).unwrap();
        // A file that is broken, whose servers go on.
        site.home.user_file("mcp.toml", "[mcp_servers.one");
        let told = front.until_told("counts as before");
        assert!(!told.contains("missing"), "{told}");
        assert_eq!(front.call(1, "mcp__one__echo"), r#"{"n":1}"#);
        site.home.user_file("mcp.toml", &entry("one", &server));
        // Everything was said once.
        assert_eq!(front.leave(), (Some(0), String::new()));
    }
    let log = std::fs::read_to_string(site.home.home().join("state/daemon.log")).unwrap();
    assert_eq!(log.matches("is not approved").count(), 1, "{log}");
    assert_eq!(log.matches("counts as before").count(), 1, "{log}");
    assert_eq!(other.runs().all(), [0; 0]);
}

#[test]
fn a_front_with_nothing_to_serve_says_so() {
    let site = Site::new("");
    for words in [&[][..], &["--standalone"]] {
        let (code, told) = site.front(words).leave();
        assert_eq!(code, Some(0), "{told}");
        assert!(told.contains("no servers are configured"), "{told}");
        assert!(told.contains("cocode mcp add"), "{told}");
    }
}

#[test]
fn status_shows_what_runs_in_the_daemon_and_starts_no_second_one() {
    let (one, two) = (Script::new().stdio(), Script::new().stdio());
    let site = Site::new(&format!("{}{}", entry("one", &one), entry("two", &two)));
    let mut front = site.front(ONE);
    front.open(&json!({}));
    let status = site.home.json(&["mcp", "status"]);
    let line = |name: &str| -> Value {
        let lines = status["servers"].as_array().unwrap();
        let line = lines.iter().find(|line| line["name"] == json!(name));
        line.unwrap_or_else(|| panic!("{status}")).clone()
    };
    assert_eq!(line("one")["state"], json!("ready"));
    assert_eq!(line("one")["daemon"]["sharing"], json!("shared"));
    assert_eq!(line("one")["daemon"]["fronts"], json!([front.child().id()]));
    assert_eq!(line("one")["tools"], json!(1));
    assert_eq!(line("two")["daemon"], Value::Null);
    assert_eq!((one.runs().all(), two.runs().all()), (vec![1], vec![1]));
    let table = site.home.mcp(&["status"]).clean();
    assert!(table.contains("shared in the daemon, 1 front"), "{table}");
    // In another directory it is another server.
    let mut elsewhere = site.home.command(["mcp", "status", "one", "--json"]);
    elsewhere.current_dir(site.home.project().join("sub"));
    let status = crate::harness::Finished::of(elsewhere.output().unwrap()).with_code(0);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["servers"][0]["state"], json!("ready"), "{status}");
    assert_eq!(status["servers"][0]["daemon"], Value::Null, "{status}");
}

#[test]
fn how_a_server_is_shared_is_shown_and_why() {
    let asks = Script::new().on("notifications/initialized");
    let asks = asks.ask("roots/list", json!({})).stdio();
    let site = Site::new(&entry("one", &asks));
    let mut front = site.front(ONE);
    front.open(&json!({}));
    let reason = "it asks its clients for roots without saying which of them";
    wait_while(|| site.status()["servers"][0]["sharing"] != json!("one-at-a-time"));
    let status = site.status();
    assert_eq!(status["servers"][0]["sharingReason"], json!(reason));
    let shown = site.home.mcp(&["daemon", "status"]).clean();
    let told = format!("`one` is one-at-a-time because {reason}");
    assert!(shown.contains(&told), "{shown}");
    let status = site.home.json(&["mcp", "status"]);
    let line = &status["servers"][0]["daemon"];
    assert_eq!(line["sharing"], json!("one-at-a-time"));
    assert_eq!(line["sharingReason"], json!(reason));
    let shown = site.home.mcp(&["status"]).with_code(0);
    shown.complains(&[&told]);
    // Whoever can be asked has one of its own.
    let mut able = site.front(ONE);
    able.open(&json!({"roots": {}}));
    able.skip_notifications();
    able.request(
        1,
        "tools/call",
        &json!({"name": "echo", "arguments": {"n": 1}}),
    );
    loop {
        let message = able.receive();
        if message.get("method").is_none() {
            break;
        }
        let roots = json!({"roots": []});
        able.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": roots}));
    }
    let status = site.status();
    let servers = status["servers"].as_array().unwrap();
    let own = servers
        .iter()
        .find(|server| server["sharing"] == json!("per-session"));
    assert_eq!(own.unwrap()["sharingReason"], json!(reason), "{status}");
}

#[test]
fn whoever_watches_hears_of_the_daemon_and_starts_nothing_that_it_has() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let mut front = site.front(ONE);
    front.open(&json!({}));
    let mut command = site.home.command(["mcp", "status", "--watch", "--json"]);
    let mut watching = start(&mut command);
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut other = site.front(ONE);
    other.open(&json!({}));
    let both = until_shared_by(&mut lines, 2);
    assert_eq!(both["event"], json!("state"), "{both}");
    assert_eq!(server.runs().all(), [1]);
    crate::interrupting::signal(&watching, "-INT");
    assert_eq!(watching.wait().unwrap().code(), Some(130));
}

#[test]
fn whoever_watches_hears_of_daemons_that_come_and_go() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let mut command = site.home.command(["mcp", "status", "--watch", "--json"]);
    let mut watching = start(&mut command);
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let own = until(&mut lines, |event| event["server"]["state"] == "ready");
    assert_eq!(own["server"]["daemon"], Value::Null, "{own}");
    let mut front = site.front(ONE);
    front.open(&json!({}));
    until_shared_by(&mut lines, 1);
    front.skip_notifications();
    kill(site.daemon());
    let gone = until(&mut lines, |event| {
        event["event"] == "state" && event["server"]["daemon"].is_null()
    });
    assert_eq!(gone["server"]["state"], json!("stopped"), "{gone}");
    let why = gone["server"]["reason"].as_str().unwrap();
    assert!(why.contains("no daemon runs"), "{gone}");
    assert_eq!(front.call_or_again(1, "echo"), r#"{"n":1}"#);
    until_shared_by(&mut lines, 1);
    // The own one at the beginning, and one for each daemon.
    received(&server, 3, "tools/call");
    assert_eq!(server.runs().all(), [1, 2, 3]);
    crate::interrupting::signal(&watching, "-INT");
    assert_eq!(watching.wait().unwrap().code(), Some(130));
}

#[test]
fn whoever_watches_leaves_to_the_daemon_what_starts_there() {
    let gate = Gate::new();
    let held = Script::new().on("initialize").run(2).hold(&gate);
    let server = held.as_usual().stdio();
    let site = Site::new(&entry("one", &server));
    let mut front = site.front(ONE);
    front.open(&json!({}));
    let mut command = site.home.command(["mcp", "status", "--watch", "--json"]);
    let mut watching = start(&mut command);
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    until_shared_by(&mut lines, 1);
    let mut restarting = site.home.command(["mcp", "restart", "one"]);
    let mut restarting = restarting.spawn().unwrap();
    let is_in_daemon = |event: &Value, state: &str| {
        event["server"]["state"] == state && event["server"]["daemon"].is_object()
    };
    until(&mut lines, |event| is_in_daemon(event, "starting"));
    let mut asking = site.home.command(["mcp", "status", "--json"]);
    let asking = start(&mut asking);
    gate.open();
    until(&mut lines, |event| is_in_daemon(event, "ready"));
    assert!(restarting.wait().unwrap().success());
    // Whoever asks only once waits for it.
    let status = crate::harness::Finished::of(asking.wait_with_output().unwrap());
    let status: Value = serde_json::from_str(&status.with_code(0).stdout).unwrap();
    assert_eq!(status["servers"][0]["state"], json!("ready"), "{status}");
    assert!(status["servers"][0]["daemon"].is_object(), "{status}");
    assert_eq!(server.runs().all(), [1, 2]);
    crate::interrupting::signal(&watching, "-INT");
    assert_eq!(watching.wait().unwrap().code(), Some(130));
}

/// The next event that is as it should be.
fn until(lines: &mut Lines<impl BufRead>, is_so: impl Fn(&Value) -> bool) -> Value {
    loop {
        let line = lines.next().unwrap().unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        if is_so(&event) {
            return event;
        }
    }
}

/// The next event that tells of a server in the daemon with so many fronts.
fn until_shared_by(lines: &mut Lines<impl BufRead>, n_fronts: usize) -> Value {
    until(lines, |event| {
        let fronts = event["server"]["daemon"]["fronts"].as_array();
        fronts.is_some_and(|fronts| fronts.len() == n_fronts)
    })
}

#[test]
fn restart_starts_the_server_of_the_daemon_anew() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let idle = site.home.mcp(&["restart", "one"]).with_code(0);
    idle.complains(&["does not run in the daemon"]);
    site.home.mcp(&["restart", "two"]).with_code(2);
    let mut front = site.front(ONE);
    front.open(&json!({}));
    let restarted = site.home.mcp(&["restart", "one"]).clean();
    assert_eq!(restarted, "restarted `one`\n");
    front.skip_notifications();
    assert_eq!(front.call(1, "echo"), r#"{"n":1}"#);
    received(&server, 2, "tools/call");
    assert_eq!(server.runs().all(), [1, 2]);
}

#[test]
fn restart_starts_a_server_that_is_stopped_and_says_so() {
    let server = Script::new().stdio();
    let site = Site::new(&format!("{}idle_stop_sec = 1\n", entry("one", &server)));
    let _front = site.front(ONE);
    wait_while(|| server.runs().all().is_empty());
    wait_while(|| site.status()["servers"][0]["state"] != json!("stopped"));
    let shown = site.home.mcp(&["daemon", "status"]).clean();
    assert!(shown.contains("starts when it is needed"), "{shown}");
    let started = site.home.mcp(&["restart", "one"]).clean();
    assert_eq!(started, "started `one`, which was stopped\n");
    wait_while(|| server.runs().all() != [1, 2]);
}

#[test]
fn logs_of_servers_in_the_daemon_can_be_followed() {
    let server = Script::new().stdio();
    let site = Site::new(&entry("one", &server));
    let mut following = site.home.command(["mcp", "logs", "-f", "one"]);
    let mut following = following.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut front = site.front(ONE);
    front.open(&json!({}));
    let ready = lines
        .map_while(Result::ok)
        .find(|line| line.contains("ready"));
    assert!(ready.is_some());
    following.kill().unwrap();
    following.wait().unwrap();
}
