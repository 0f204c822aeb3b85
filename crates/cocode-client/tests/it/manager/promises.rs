//! What is true at the moment when it is said: tools of ready servers, restarts that are done,
//! servers that have ended. Also where several threads look.

use std::time::Duration;

use cocode_client::{
    CallContext, Manager, Protocol, SANDBOX_STATE_CAPABILITY, SANDBOX_STATE_METHOD, StateKind,
    Wanted,
};
use cocode_core::{ServerName, ServerSpec};
use cocode_testkit::{Gate, Script, StdioServer};
use serde_json::json;
use tokio::task::JoinSet;

use crate::manager::faulty::{Faulty, Transport};
use crate::manager::story::{
    ONE, Story, assert_echoed, assert_unavailable, begun, echo, for_each, listing, only,
    over_every_transport, quick, ready, state, tools, without_pings,
};
use crate::support::{raw, soon};

use StateKind::{Disabled, Ready, Reconnecting, Starting, Stopped};

const MANY: usize = 8;
const TOOLS_OF_EACH: usize = 200;

fn many_servers() -> (Vec<Faulty>, Vec<ServerSpec>) {
    let script = Script::new().tools(TOOLS_OF_EACH, TOOLS_OF_EACH);
    let servers: Vec<_> = (0..MANY)
        .map(|_| Faulty::start(Transport::Unix, &script))
        .collect();
    let specs = servers.iter().enumerate();
    let specs = specs.map(|(number, server)| server.spec(&format!("server-{number}")));
    let specs = specs.collect();
    (servers, specs)
}

/// Calls from another thread, perhaps.
async fn call_from_elsewhere(manager: Manager, name: String) {
    let arguments = raw(r#"{"word":"hello"}"#);
    let calling = manager.call(&name, Some(&arguments), CallContext::default());
    let outcome = soon("the end of a call", calling).await;
    assert_echoed(&name, outcome);
}

async fn all_end(mut calls: JoinSet<()>) {
    while let Some(ended) = calls.join_next().await {
        ended.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_sees_that_servers_are_ready_sees_their_tools() {
    let (_servers, specs) = many_servers();
    for round in 0..10 {
        let (manager, _story) = begun(quick(), specs.clone()).await;
        let startup = soon("the start", manager.wait_for_startup()).await;
        let seen = tools(&manager).len();
        assert_eq!(startup.ready.len(), MANY, "{round}: {startup:?}");
        assert_eq!(seen, MANY * TOOLS_OF_EACH, "{round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_tool_of_a_server_that_is_still_starting_can_be_called() {
    let (_servers, specs) = many_servers();
    for _ in 0..10 {
        let (manager, _story) = begun(quick(), specs.clone()).await;
        let mut calls = JoinSet::new();
        for number in 0..MANY {
            let name = format!("mcp__server-{number}__tool-{}", TOOLS_OF_EACH - 1);
            calls.spawn(call_from_elsewhere(manager.clone(), name));
        }
        all_end(calls).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_from_many_threads_wait_for_servers_that_were_killed_or_are_restarted() {
    over_every_transport(|transport| async move {
        let (server, manager, mut story) = only(transport, &Script::new(), quick()).await;
        let name = ONE.parse().unwrap();
        for _ in 0..3 {
            server.take_down();
            story.reaches(ONE, Reconnecting).await;
            let mut calls = JoinSet::new();
            for _ in 0..4 {
                calls.spawn(call_from_elsewhere(
                    manager.clone(),
                    "mcp__one__echo".to_owned(),
                ));
            }
            server.restart(&Script::new());
            all_end(calls).await;
            story.reaches(ONE, Ready).await;
            soon("the restart", manager.restart(&name)).await.unwrap();
            assert_echoed(transport, echo(&manager).await);
            story.reaches(ONE, Ready).await;
        }
        assert_eq!(tools(&manager), ["mcp__one__echo"], "{transport:?}");
    })
    .await;
}

/// What takes a server away for good.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Remove,
    Shutdown,
}

const ENDINGS: [Ending; 2] = [Ending::Remove, Ending::Shutdown];

impl Ending {
    async fn come(self, manager: &Manager) {
        match self {
            Self::Remove => {
                manager.apply([] as [ServerSpec; 0]).await;
            }
            Self::Shutdown => soon("the end", manager.shutdown()).await,
        }
    }
}

#[tokio::test]
async fn a_call_that_waits_for_a_server_ends_with_it() {
    let cases = Transport::ALL
        .into_iter()
        .flat_map(|transport| ENDINGS.map(|ending| (transport, ending)));
    for_each(cases, |case| async move {
        let (transport, ending) = case;
        let gate = Gate::new();
        let script = Script::new().on("tools/list").hold(&gate).as_usual();
        let server = Faulty::start(transport, &script);
        let (manager, _story) = begun(without_pings(), vec![server.spec(ONE)]).await;
        let (outcome, ()) = tokio::join!(echo(&manager), async {
            gate.reached().await;
            ending.come(&manager).await;
        });
        let error = outcome.unwrap_err();
        assert_unavailable(case, &error);
    })
    .await;
}

#[tokio::test]
async fn a_call_that_is_to_be_repeated_does_not_wait_for_a_server_that_takes_its_time_to_end() {
    for_each(ENDINGS, |ending| async move {
        let gate = Gate::new();
        let script = listing(Script::new(), r#""annotations":{"readOnlyHint":true}"#);
        let script = script.on("tools/call").hold(&gate).as_usual();
        let script = script.stay_after_eof().ignore_sigterm();
        let (_server, manager, mut story) = only(Transport::Stdio, &script, without_pings()).await;
        let (outcome, ()) = tokio::join!(echo(&manager), async {
            gate.reached().await;
            ending.come(&manager).await;
        });
        let error = outcome.unwrap_err();
        assert_unavailable(ending, &error);
        let states = story.states(ONE).await;
        assert_eq!(states, [Stopped], "{ending:?}");
    })
    .await;
}

#[tokio::test]
async fn a_call_that_comes_while_everything_ends_fails_at_once() {
    let script = Script::new().stay_after_eof().ignore_sigterm();
    let (server, manager, mut story) = only(Transport::Stdio, &script, without_pings()).await;
    let ((), error) = tokio::join!(soon("the end", manager.shutdown()), async {
        story.reaches(ONE, Stopped).await;
        echo(&manager).await.unwrap_err()
    });
    assert_unavailable("the call", &error);
    assert_eq!(server.heard("tools/call"), 0);
    // What is over is over for everybody.
    assert_eq!(tools(&manager), [""; 0]);
    assert!(manager.status().is_empty());
}

/// The run of the program that was called last.
async fn last_called(server: &StdioServer, calls: usize) -> u32 {
    let called = |all: &[cocode_testkit::Message]| {
        let calls = all.iter().filter(|message| message.is("tools/call"));
        calls.map(|message| message.run).collect::<Vec<_>>()
    };
    let received = server.received();
    received.wait_until(|all| called(all).len() >= calls).await;
    *called(&received.all()).last().unwrap()
}

fn pid(manager: &Manager) -> u32 {
    let connection = manager.status()[0].connection.clone().unwrap();
    connection.pid.unwrap()
}

/// Whether the process is there. Elsewhere nobody knows.
fn runs(pid: u32) -> bool {
    cfg!(target_os = "linux") && std::path::Path::new(&format!("/proc/{pid}")).exists()
}

async fn restarts_are_done_when_they_are_said_to_be() {
    let server = Script::new().stdio();
    let program = server.program().to_str().unwrap();
    let mut spec = ServerSpec::program(ONE.parse().unwrap(), program, server.args());
    let (manager, _story) = ready(quick(), vec![spec.clone()]).await;
    assert_echoed("the first", echo(&manager).await);
    assert_eq!(last_called(&server, 1).await, 1);
    // Another server of the same name.
    let first = pid(&manager);
    spec.protocol = Protocol::Legacy;
    let applied = manager.apply([spec]).await;
    assert_eq!(applied.restarted.len(), 1, "{applied:?}");
    let startup = soon("the start", manager.wait_for_startup()).await;
    assert_eq!(startup.ready.len(), 1, "{startup:?}");
    assert_eq!(tools(&manager), ["mcp__one__echo"]);
    let second = pid(&manager);
    assert_ne!(second, first);
    assert!(!runs(first));
    assert_echoed("the second", echo(&manager).await);
    assert_eq!(last_called(&server, 2).await, 2);
    // The same server anew. A restart does not wait for it; whoever calls it does.
    manager.restart(&ONE.parse().unwrap()).await.unwrap();
    assert_ne!(state(&manager).kind(), Ready);
    assert_echoed("the third", echo(&manager).await);
    assert_eq!(last_called(&server, 3).await, 3);
    assert!(!runs(second));
    manager.restart(&ONE.parse().unwrap()).await.unwrap();
    let startup = soon("the start", manager.wait_for_startup()).await;
    assert_eq!(startup.ready.len(), 1, "{startup:?}");
    assert_echoed("the fourth", echo(&manager).await);
    assert_eq!(last_called(&server, 4).await, 4);
}

#[tokio::test]
async fn a_server_that_was_restarted_is_another_process_at_once() {
    restarts_are_done_when_they_are_said_to_be().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_was_restarted_is_another_process_for_all_threads() {
    restarts_are_done_when_they_are_said_to_be().await;
}

#[tokio::test]
async fn of_two_wishes_for_one_server_the_last_counts() {
    let server = Faulty::start(Transport::Stdio, &Script::new());
    let name: ServerName = ONE.parse().unwrap();
    let run = || Wanted::from(server.spec(ONE));
    let off = || Wanted::Disabled(name.clone());
    let manager = Manager::new(quick());
    for (wanted, kind) in [
        ([run(), off()], Disabled),
        ([off(), run()], Ready),
        ([run(), off()], Disabled),
    ] {
        manager.apply(wanted).await;
        soon("the start", manager.wait_for_startup()).await;
        assert_eq!(state(&manager).kind(), kind);
    }
    assert_eq!(tools(&manager), [""; 0]);
}

#[tokio::test]
async fn the_first_call_comes_after_the_word_about_the_sandbox() {
    let gate = Gate::new();
    let script = Script::new().on("initialize").result(json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, SANDBOX_STATE_CAPABILITY: {}},
        "serverInfo": {"name": "scripted", "version": "1"},
    }));
    // The second message is the request.
    let script = script.on(SANDBOX_STATE_METHOD).nth(1).ignore();
    let script = script.on(SANDBOX_STATE_METHOD).hold(&gate).result("{}");
    let server = Faulty::start(Transport::Unix, &script);
    let manager = Manager::new(without_pings());
    manager.set_sandbox_state(raw(r#"{"policy":"first"}"#));
    let mut story = Story::of(&manager);
    manager.apply([server.spec(ONE)]).await;
    let (outcome, ()) = tokio::join!(echo(&manager), async {
        gate.reached().await;
        assert_eq!(state(&manager).kind(), Starting);
        assert_eq!(server.heard("tools/call"), 0);
        gate.open();
    });
    assert_echoed("the call", outcome);
    assert_eq!(story.states(ONE).await, [Ready]);
}

#[tokio::test]
async fn times_without_end_are_no_trouble() {
    let forever = Duration::MAX;
    over_every_transport(|transport| async move {
        let server = Faulty::start(transport, &Script::new());
        let mut spec = server.spec(ONE);
        spec.startup_timeout = forever;
        spec.connect_timeout = forever;
        spec.tool_timeout = forever;
        spec.idle_stop = Some(forever);
        let mut options = quick();
        options.health.ping_interval = forever;
        options.health.ping_timeout = forever;
        options.health.stable_after = forever;
        options.health.retry_failed = Some(forever);
        let (manager, _story) = ready(options, vec![spec]).await;
        for deadlines in [
            None,
            Some(cocode_client::Deadlines {
                idle: forever,
                total: forever,
            }),
        ] {
            let context = CallContext {
                deadlines,
                ..CallContext::default()
            };
            let arguments = raw(r#"{"word":"hello"}"#);
            let calling = manager.call("mcp__one__echo", Some(&arguments), context);
            let outcome = soon("the end of a call", calling).await;
            assert_echoed(transport, outcome);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_is_stopped_all_the_time_is_there_for_every_call() {
    let server = Faulty::start(Transport::Unix, &Script::new());
    let mut spec = server.spec(ONE);
    spec.idle_stop = Some(Duration::from_millis(1));
    let (manager, _story) = begun(without_pings(), vec![spec]).await;
    let mut calls = JoinSet::new();
    for caller in 0..4 {
        let manager = manager.clone();
        calls.spawn(async move {
            for number in 0..150 {
                call_from_elsewhere(manager.clone(), "mcp__one__echo".to_owned()).await;
                // Sometimes long enough for the server to idle, and sometimes just not.
                let pause = Duration::from_micros((number * 37 + caller * 500) % 2500);
                tokio::time::sleep(pause).await;
            }
        });
    }
    all_end(calls).await;
}
