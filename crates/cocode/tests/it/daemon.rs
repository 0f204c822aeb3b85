//! The daemon that all fronts of a user share: what is shared and what is not, and how fronts live
//! through its end.

use std::fs::Permissions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use cocode_testkit::{Gate, Script, StdioServer};
use serde_json::{Value, json};

use crate::fronts::{Client, Site, another_build, is_alive, kill, wait_while};
use crate::harness::received;
use crate::status::entry;

const ONE: &[&str] = &["--server", "one"];

fn site(server: &StdioServer) -> Site {
    Site::new(&entry("one", server))
}

/// The same by another program.
fn as_another(program: &Path, command: &mut Command) -> Command {
    let mut other = Command::new(program);
    other.args(command.get_args()).env_clear();
    let variables = command.get_envs();
    other.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    other.current_dir(command.get_current_dir().unwrap());
    other
}

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// Subscribes without a session.
#[track_caller]
fn listen(front: &mut Client) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "agent", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let wanted = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
    front.request(1, "subscriptions/listen", &wanted);
    assert_eq!(front.receive()["method"], json!(ACKNOWLEDGED));
}

#[track_caller]
fn servers(status: &Value) -> &Vec<Value> {
    status["servers"].as_array().unwrap()
}

/// Fails unless the server was started so many times.
#[track_caller]
fn has_run(server: &StdioServer, times: u32) {
    received(server, times, "tools/call");
    let runs: Vec<u32> = (1..=times).collect();
    assert_eq!(server.runs().all(), runs);
}

/// The process of the only server.
#[track_caller]
fn server_process(site: &Site) -> u32 {
    let status = site.status();
    assert_eq!(servers(&status).len(), 1, "{status}");
    let pid = status["servers"][0]["pid"].as_u64();
    u32::try_from(pid.unwrap_or_else(|| panic!("{status}"))).unwrap()
}

#[test]
fn ten_fronts_at_once_share_one_daemon_and_one_server() {
    let server = Script::new().stdio();
    let site = site(&server);
    let fronts = thread::scope(|scope| {
        let fronts: Vec<_> = (0..10)
            .map(|_| {
                scope.spawn(|| {
                    let mut front = site.front(ONE);
                    front.open(&json!({}));
                    assert_eq!(front.call(7, "echo"), r#"{"n":7}"#);
                    front
                })
            })
            .collect();
        let fronts = fronts.into_iter().map(|front| front.join().unwrap());
        fronts.collect::<Vec<Client>>()
    });
    assert_eq!(site.n_daemons(), 1);
    has_run(&server, 1);
    let status = site.status();
    assert_eq!(status["fronts"].as_array().unwrap().len(), 10, "{status}");
    let only = &servers(&status)[0];
    assert_eq!(servers(&status).len(), 1, "{status}");
    assert_eq!(only["fronts"].as_array().unwrap().len(), 10, "{status}");
    assert_eq!(only["state"], json!("ready"));
    assert_eq!(only["sharing"], json!("shared"));
    let mut processes: Vec<u64> = fronts
        .iter()
        .map(|front| front.child().id().into())
        .collect();
    processes.sort_unstable();
    assert_eq!(only["fronts"], json!(processes));
    for front in fronts {
        assert_eq!(front.leave(), (Some(0), String::new()));
    }
    // Nobody uses the server any more.
    wait_while(|| !servers(&site.status()).is_empty());
}

#[test]
fn servers_are_shared_only_where_they_would_be_the_same() {
    let server = Script::new().stdio();
    let site = site(&server);
    let open = |change: &dyn Fn(&mut Command)| {
        let mut command = site.command(ONE);
        change(&mut command);
        let mut front = Client::start(&mut command);
        front.open(&json!({}));
        assert_eq!(front.call(1, "echo"), r#"{"n":1}"#);
        front
    };
    let _first = open(&|_| {});
    // A variable that no server gets to see.
    let _second = open(&|command| {
        command.env("SHLVL", "7");
    });
    has_run(&server, 1);
    let _another_directory = open(&|command| {
        command.current_dir(site.home.project().join("sub"));
    });
    has_run(&server, 2);
    let _another_environment = open(&|command| {
        command.env("LANG", "C");
    });
    has_run(&server, 3);
    let status = site.status();
    let mut shared: Vec<usize> = servers(&status)
        .iter()
        .map(|server| server["fronts"].as_array().unwrap().len())
        .collect();
    shared.sort_unstable();
    assert_eq!(shared, [1, 1, 2], "{status}");
    let shown = site.home.mcp(&["daemon", "status"]).clean();
    let why = "`one` is there 3 times because the variables that they are given differ";
    assert!(shown.contains(why), "{shown}");
    let shown = site.home.mcp(&["status"]).with_code(0);
    shown.complains(&["`one` is there more than once"]);
}

#[test]
fn what_a_front_sees_is_what_its_directory_and_variables_say() {
    let (one, other) = (Script::new().stdio(), Script::new().stdio());
    let site = site(&one);
    site.home.run(["mcp", "trust", "--all", "--yes"]);
    let mut elsewhere = site.command(&["--server", "local"]);
    let directory = site.home.project().join("sub");
    std::fs::write(directory.join(".mcp.toml"), entry("local", &other)).unwrap();
    let refused = Client::start(elsewhere.current_dir(&directory));
    let (code, told) = refused.leave();
    assert_eq!(code, Some(6), "{told}");
    assert!(told.contains("pending-trust"), "{told}");
    assert_eq!(other.runs().all(), [0; 0], "nothing of it was started");
    let trusted = site.home.command(["mcp", "trust", "local", "--yes"]);
    let trusted = { trusted }.current_dir(&directory).output().unwrap();
    assert!(trusted.status.success(), "{trusted:?}");
    let mut front = Client::start(&mut elsewhere);
    front.open(&json!({}));
    assert_eq!(front.call(1, "echo"), r#"{"n":1}"#);
    // Where there is no such server, there is none.
    let (code, told) = site.front(&["--server", "local"]).leave();
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("unknown-server"), "{told}");
}

#[test]
fn a_daemon_that_is_killed_costs_the_call_and_nothing_else() {
    let gate = Gate::new();
    let server = Script::new().on("tools/call").run(1).hold(&gate).stdio();
    let site = site(&server);
    let mut front = site.front(ONE);
    front.open(&json!({}));
    let (daemon, process) = (site.daemon(), server_process(&site));
    front.request(1, "tools/call", &json!({"name": "echo", "arguments": {}}));
    received(&server, 1, "tools/call");
    kill(daemon);
    let answer = front.receive();
    assert_eq!(answer["id"], json!(1), "{answer}");
    assert_eq!(answer["error"]["code"], json!(-32603), "{answer}");
    assert_eq!(
        answer["error"]["data"]["code"],
        json!("daemon-lost"),
        "{answer}"
    );
    // The session goes on: the client is not asked to open it again, nor told so twice.
    front.skip_notifications();
    assert_eq!(front.call(2, "echo"), r#"{"n":2}"#);
    received(&server, 2, "tools/call");
    let calls = server.received().count(|message| message.is("tools/call"));
    assert_eq!(calls, 2, "nothing is repeated");
    assert_ne!(site.daemon(), daemon);
    // Nothing is left of what the dead one had started.
    wait_while(|| is_alive(process));
    let (code, told) = front.leave();
    assert_eq!(code, Some(0));
    assert!(told.contains("the shared daemon was lost"), "{told}");
}

#[test]
fn what_only_reads_is_answered_by_the_next_daemon() {
    let gate = Gate::new();
    let server = Script::new().on("prompts/get").run(1).hold(&gate).stdio();
    let site = site(&server);
    let mut front = site.front(ONE);
    front.open(&json!({}));
    front.request(1, "prompts/get", &json!({"name": "greet"}));
    received(&server, 1, "prompts/get");
    front.skip_notifications();
    kill(site.daemon());
    let answer = front.receive();
    assert_eq!(answer["id"], json!(1), "{answer}");
    assert!(answer["result"]["messages"].is_array(), "{answer}");
    received(&server, 2, "prompts/get");
}

#[test]
fn subscriptions_without_a_session_go_on_when_the_daemon_is_stopped() {
    let server = Script::new().stdio();
    let site = site(&server);
    let mut front = site.front(ONE);
    listen(&mut front);
    let daemon = site.daemon();
    site.home.mcp(&["daemon", "stop"]).with_code(0);
    // Nobody told the client that it has ended, since it has not, nor that it begins.
    let told = front.receive();
    assert_eq!(told["method"], json!("notifications/tools/list_changed"));
    let whose = &told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(whose, &json!(1), "{told}");
    assert_ne!(site.daemon(), daemon);
    let (code, told) = front.leave();
    assert_eq!(code, Some(0), "{told}");
}

#[test]
fn what_a_client_wants_to_hear_of_survives_the_daemon() {
    let server = Script::new().stdio();
    let site = site(&server);
    let mut front = site.front(ONE);
    front.open(&json!({}));
    front.ask(1, "logging/setLevel", &json!({"level": "debug"}));
    front.ask(2, "resources/subscribe", &json!({"uri": "a:1"}));
    kill(site.daemon());
    received(&server, 2, "resources/subscribe");
    received(&server, 2, "logging/setLevel");
    // All that the client hears of it is that lists may be others.
    for list in ["tools", "prompts", "resources"] {
        let method = format!("notifications/{list}/list_changed");
        assert_eq!(front.receive()["method"], json!(method));
    }
    assert_eq!(front.call(3, "echo"), r#"{"n":3}"#);
}

#[test]
fn a_daemon_that_nobody_needs_ends_and_takes_its_socket_with_it() {
    let server = Script::new().stdio();
    let site = site(&server);
    site.home
        .user_file("config.toml", "[gateway]\nidle_stop_sec = 1\n");
    let mut front = site.front(ONE);
    front.open(&json!({}));
    let daemon = site.daemon();
    let socket = site.status()["socket"].as_str().map(PathBuf::from).unwrap();
    assert!(socket.exists());
    assert_eq!(front.leave().0, Some(0));
    wait_while(|| is_alive(daemon));
    assert!(!socket.exists());
    // And the next one finds what it needs.
    let mut front = site.front(ONE);
    front.open(&json!({}));
    assert_eq!(site.n_daemons(), 2);
}

#[test]
fn a_socket_that_a_dead_daemon_has_left_is_no_obstacle() {
    let server = Script::new().stdio();
    let site = site(&server);
    let mut front = site.front(ONE);
    front.open(&json!({}));
    let daemon = site.daemon();
    assert_eq!(front.leave().0, Some(0));
    kill(daemon);
    wait_while(|| is_alive(daemon));
    let mut front = site.front(ONE);
    front.open(&json!({}));
    assert_eq!(front.leave(), (Some(0), String::new()));
}

#[test]
fn the_daemon_outlives_the_process_group_that_started_it() {
    let server = Script::new().stdio();
    let site = site(&server);
    let mut first = Client::start(site.command(ONE).process_group(0));
    first.open(&json!({}));
    let mut second = site.front(ONE);
    second.open(&json!({}));
    let daemon = site.daemon();
    let group = format!("-{}", first.child().id());
    let killed = Command::new("kill").args(["-KILL", "--", &group]).status();
    assert!(killed.unwrap().success());
    drop(first);
    assert_eq!(second.call(1, "echo"), r#"{"n":1}"#);
    assert_eq!(site.daemon(), daemon);
    has_run(&server, 1);
    // It has nothing of who started it: no terminal, and a session without the front.
    let told = |column: &str| {
        let found = Command::new("ps")
            .args(["-o", &format!("{column}="), "-p", &daemon.to_string()])
            .output();
        String::from_utf8(found.unwrap().stdout)
            .unwrap()
            .trim()
            .to_owned()
    };
    assert!(told("tty").starts_with('?'), "{}", told("tty"));
    assert_ne!(told("pgid"), group.trim_start_matches('-'));
}

#[test]
fn a_front_that_stands_alone_shares_nothing_and_starts_no_daemon() {
    let server = Script::new().stdio();
    let site = site(&server);
    let mut alone = site.front(&["--server", "one", "--standalone"]);
    alone.open(&json!({}));
    assert_eq!(alone.call(1, "echo"), r#"{"n":1}"#);
    assert_eq!(site.status()["running"], json!(false));
    assert_eq!(alone.leave(), (Some(0), String::new()));
}

#[test]
fn all_servers_are_served_alone_as_well() {
    let (one, two) = (Script::new().stdio(), Script::new().stdio());
    let site = Site::new(&format!("{}{}", entry("one", &one), entry("two", &two)));
    let mut alone = site.front(&["--standalone"]);
    alone.open(&json!({}));
    alone.skip_notifications();
    for (id, tool) in [(1, "mcp__one__echo"), (2, "mcp__two__echo")] {
        assert_eq!(alone.call(id, tool), format!(r#"{{"n":{id}}}"#));
    }
    assert_eq!(site.status()["running"], json!(false));
    crate::interrupting::signal(alone.child(), "-TERM");
    let (code, told) = alone.wait();
    assert_eq!(code, Some(143), "{told}");
    assert_eq!((one.runs().all(), two.runs().all()), (vec![1], vec![1]));
}

#[test]
fn a_front_alone_ends_subscriptions_in_order() {
    let server = Script::new().stdio();
    let site = site(&server);
    let mut alone = site.front(&["--server", "one", "--standalone"]);
    listen(&mut alone);
    alone.skip_notifications();
    crate::interrupting::signal(alone.child(), "-TERM");
    let answer = alone.receive();
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(alone.wait().0, Some(143));
}

#[test]
fn where_no_daemon_can_be_had_the_front_stands_alone_and_says_so() {
    let server = Script::new().stdio();
    let site = site(&server);
    // There is no place for a socket.
    site.home.user_file("state/run", "in the way");
    let mut front = Client::start(site.command(ONE).env("XDG_RUNTIME_DIR", "/nonexistent"));
    front.open(&json!({}));
    assert_eq!(front.call(1, "echo"), r#"{"n":1}"#);
    let (code, told) = front.leave();
    assert_eq!(code, Some(0));
    assert!(told.contains("has servers of its own"), "{told}");
    // Clients that show log messages show why.
    let mut front = Client::start(site.command(&[]).env("XDG_RUNTIME_DIR", "/nonexistent"));
    front.open(&json!({}));
    let message = std::iter::repeat_with(|| front.receive())
        .find(|message| message["method"] == "notifications/message")
        .unwrap();
    assert_eq!(message["params"]["level"], "warning", "{message}");
    let data = message["params"]["data"].as_str().unwrap();
    assert!(data.contains("has servers of its own"), "{data}");
}

#[test]
fn a_place_that_others_can_change_is_not_trusted() {
    let server = Script::new().stdio();
    let site = site(&server);
    let runtime = site.home.home().join("runtime");
    let open = runtime.join("cocode");
    std::fs::create_dir_all(&open).unwrap();
    std::fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    let mut front = Client::start(site.command(ONE).env("XDG_RUNTIME_DIR", &runtime));
    front.open(&json!({}));
    assert_eq!(front.call(1, "echo"), r#"{"n":1}"#);
    let (code, told) = front.leave();
    assert_eq!(code, Some(0));
    assert!(told.contains("can be changed by other users"), "{told}");
    assert_eq!(std::fs::read_dir(&open).unwrap().count(), 0);
    // As it should be, it is used.
    std::fs::set_permissions(&open, Permissions::from_mode(0o700)).unwrap();
    let mut front = Client::start(site.command(ONE).env("XDG_RUNTIME_DIR", &runtime));
    front.open(&json!({}));
    let mut stop = site.home.command(["mcp", "daemon", "stop"]);
    let socket = std::fs::read_dir(&open).unwrap().find_map(|found| {
        let path = found.unwrap().path();
        path.extension()
            .is_some_and(|end| end == "sock")
            .then_some(path)
    });
    let mode = std::fs::metadata(socket.unwrap()).unwrap().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(front.leave(), (Some(0), String::new()));
    let stopped = stop.env("XDG_RUNTIME_DIR", &runtime).output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
}

#[test]
fn a_front_in_another_sandbox_is_not_served() {
    let server = Script::new().stdio();
    let site = site(&server);
    let mut front = site.front(ONE);
    front.open(&json!({}));
    let socket = site.status()["socket"].as_str().unwrap().to_owned();
    let say = |build: &str, wants: &Value| -> Value {
        let mut stream = UnixStream::connect(&socket).unwrap();
        let hello = json!({"channel": 1, "build": build, "wants": wants});
        stream.write_all(format!("{hello}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    };
    // Whoever is of another build hears which one the daemon is of.
    let refused = say("another", &json!({"control": "status"}));
    assert_eq!(refused["refused"], json!("other-build"), "{refused}");
    let build = refused["build"].as_str().unwrap();
    let wants = json!({"front": {
        "world": ["net:[1]"], "directory": "/", "home": null, "environment": [], "config": [],
        "strict": false, "store": null, "wanted": {"servers": [], "profile": null, "server": null},
    }});
    let refused = say(build, &wants);
    assert_eq!(refused["refused"], json!("other-world"), "{refused}");
    // What is not understood is refused, and does no harm.
    let refused = say(build, &json!({"dance": 1}));
    assert_eq!(refused["refused"], json!("not-understood"), "{refused}");
    assert_eq!(front.call(1, "echo"), r#"{"n":1}"#);
}

#[test]
fn a_front_whose_file_was_replaced_starts_the_daemon_that_it_knows() {
    let server = Script::new().stdio();
    let site = site(&server);
    let mut usual = site.command(ONE);
    let copy = another_build(&site.home.home());
    let mut front = Client::start(&mut as_another(&copy, &mut usual));
    front.open(&json!({}));
    let daemon = site.home.home().join("state/daemon.log");
    let pid = || -> u32 {
        // A daemon of another build tells us nothing; its log does.
        let log = std::fs::read_to_string(&daemon).unwrap();
        let line = log.lines().rfind(|line| line.contains("listening"));
        let pid = line.unwrap().split("process=").nth(1).unwrap();
        pid.split_whitespace().next().unwrap().parse().unwrap()
    };
    let first = pid();
    std::fs::remove_file(&copy).unwrap();
    front.skip_notifications();
    kill(first);
    assert_eq!(front.call_or_again(1, "echo"), r#"{"n":1}"#);
    // The log is written beside everything else.
    wait_while(|| pid() == first);
    let (code, told) = front.leave();
    assert_eq!(code, Some(0));
    assert!(told.contains("another one goes on"), "{told}");
}

#[test]
fn what_a_front_was_started_with_is_neither_logged_nor_shown() {
    let server = Script::new().stdio();
    let site = site(&server);
    let secret = "hunter2-hunter2";
    let mut command = site.command(ONE);
    command.env("API_TOKEN", secret).env("COCODE_LOG", "trace");
    let mut front = Client::start(&mut command);
    front.open(&json!({}));
    assert_eq!(front.call(1, "echo"), r#"{"n":1}"#);
    let status = site.status().to_string();
    assert!(!status.contains(secret), "{status}");
    front.skip_notifications();
    kill(site.daemon());
    assert_eq!(front.call_or_again(2, "echo"), r#"{"n":2}"#);
    let told = front.leave().1;
    assert!(!told.contains(secret), "{told}");
    let log = std::fs::read_to_string(site.home.home().join("state/daemon.log")).unwrap();
    assert!(log.contains("a front is served"), "{log}");
    assert!(!log.contains(secret), "{log}");
}

#[test]
fn a_server_that_is_one_clients_own_ends_with_its_front() {
    let server = Script::new().stdio();
    let own = format!("{}isolation = \"per-session\"\n", entry("one", &server));
    let site = Site::new(&own);
    let mut front = site.front(ONE);
    let mut other = site.front(ONE);
    for front in [&mut front, &mut other] {
        front.open(&json!({}));
        assert_eq!(front.call(1, "echo"), r#"{"n":1}"#);
    }
    let own = |status: &Value| -> Vec<u64> {
        let own = servers(status)
            .iter()
            .filter(|server| server["sharing"] == json!("per-session"));
        own.filter_map(|server| server["pid"].as_u64()).collect()
    };
    let before = own(&site.status());
    assert_eq!(before.len(), 2, "{}", site.status());
    kill(front.child().id());
    wait_while(|| own(&site.status()).len() > 1);
    let left = own(&site.status());
    for pid in before {
        if !left.contains(&pid) {
            wait_while(|| is_alive(u32::try_from(pid).unwrap()));
        }
    }
    assert_eq!(other.call(2, "echo"), r#"{"n":2}"#);
}

#[test]
fn fronts_go_on_when_their_daemon_is_stopped() {
    let server = Script::new().stdio();
    let site = site(&server);
    let mut front = site.front(ONE);
    front.open(&json!({}));
    let (daemon, process) = (site.daemon(), server_process(&site));
    let stopped = site.home.mcp(&["daemon", "stop"]).with_code(0);
    assert!(stopped.stdout.contains(&daemon.to_string()), "{stopped:?}");
    assert!(!is_alive(process), "it has ended before the command did");
    front.skip_notifications();
    assert_eq!(front.call(1, "echo"), r#"{"n":1}"#);
    assert_ne!(site.daemon(), daemon);
    let (code, told) = front.leave();
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("was stopped in order; another one"), "{told}");
    assert!(!told.contains("lost"), "{told}");
}

#[test]
fn a_front_of_another_build_replaces_an_idle_daemon_and_leaves_a_busy_one_alone() {
    let server = Script::new().stdio();
    let site = site(&server);
    let mut front = site.front(ONE);
    front.open(&json!({}));
    let daemon = site.daemon();
    let other = another_build(&site.home.home());
    let mut command = site.command(ONE);
    let mut newer = as_another(&other, &mut command);
    let mut guest = Client::start(&mut newer);
    guest.open(&json!({}));
    assert_eq!(server.runs().all(), [1, 2], "it does not share");
    let (code, told) = guest.leave();
    assert_eq!(code, Some(0));
    assert!(told.contains("another build of version"), "{told}");
    assert_eq!(site.daemon(), daemon);
    front.leave();
    wait_while(|| !site.status()["fronts"].as_array().unwrap().is_empty());
    let mut guest = Client::start(&mut newer);
    guest.open(&json!({}));
    assert_eq!(guest.leave(), (Some(0), String::new()));
    wait_while(|| is_alive(daemon));
    // And the older one comes back in the same way.
    let mut front = Client::start(&mut command);
    front.open(&json!({}));
    assert_eq!(front.leave(), (Some(0), String::new()));
}
