//! Servers that are there but do not answer: hung, slow to start, asleep with the machine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use cocode_client::{
    CallEnd, CallError, Cause, Closed, Event, ManagerOptions, ServerState, StateKind,
};
use cocode_testkit::{Gate, Script};

use crate::manager::faulty::{Faulty, Transport};
use crate::manager::story::{
    NEVER, ONE, assert_echoed, begun, call, echo, echo_within, kinds, over_every_transport, quick,
    ready, tools, within,
};
use crate::support::soon;

use StateKind::{Ready, Reconnecting, Starting};

/// Options under which a server that does not answer is soon taken for dead.
fn impatient() -> ManagerOptions {
    let mut options = quick();
    options.health.ping_timeout = Duration::from_millis(100);
    options
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up_and_connected_anew() {
    over_every_transport(|transport| async move {
        let server = Faulty::start(transport, &Script::new());
        let mut spec = server.spec(ONE);
        // Whoever hangs accepts connections, and says nothing on them.
        spec.connect_timeout = Duration::from_secs(2);
        let (manager, mut story) = ready(impatient(), vec![spec]).await;
        #[cfg(target_os = "linux")]
        let pid = manager.status()[0]
            .connection
            .as_ref()
            .and_then(|facts| facts.pid);
        server.hang();
        // A call has its own time, and does not wait for the verdict about the server.
        let error = echo_within(&manager, 50).await.unwrap_err();
        assert_eq!(error.code(), "request-timeout", "{transport:?}: {error:?}");
        let states = story.reaches(ONE, Reconnecting).await;
        let [
            ServerState::Reconnecting {
                attempt: 1,
                trouble,
            },
        ] = states.as_slice()
        else {
            panic!("{transport:?}: {states:?}");
        };
        assert!(
            matches!(trouble.cause, Cause::Lost(Closed::Silent)),
            "{transport:?}: {trouble:?}"
        );
        let (outcome, ()) = tokio::join!(echo(&manager), async {
            story.call_started().await;
            // A program was started anew, and only the old one hangs.
            if transport != Transport::Stdio {
                server.resume();
            }
        });
        assert_echoed(transport, outcome);
        let states = story.reaches(ONE, Ready).await;
        assert!(
            matches!(kinds(&states).as_slice(), [Ready] | [Reconnecting, Ready]),
            "{transport:?}: {states:?}"
        );
        let ends = [CallEnd::Failed("request-timeout"), CallEnd::Ok];
        assert_eq!(story.ends().await, ends, "{transport:?}");
        assert_eq!(story.catalog_changes().await, [], "{transport:?}");
        #[cfg(target_os = "linux")]
        if let Some(pid) = pid {
            let process = std::path::PathBuf::from(format!("/proc/{pid}"));
            soon("the end of the one that hung", async {
                while process.exists() {
                    tokio::task::yield_now().await;
                }
            })
            .await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_at_work_is_not_asked_for_signs_of_life() {
    over_every_transport(|transport| async move {
        let gate = Gate::new();
        // Signs of life are what the two eras use for them.
        let script = Script::new().on("ping").ignore();
        let script = script.on("server/discover").nth(1).as_usual();
        let script = script.on("server/discover").ignore();
        let script = script.on("tools/call").hold(&gate).as_usual();
        let idle = Faulty::start(transport, &script);
        let busy = Faulty::start(transport, &script);
        let mut specs = vec![idle.spec("idle"), busy.spec(ONE)];
        for spec in &mut specs {
            spec.connect_timeout = Duration::from_secs(2);
        }
        let mut options = impatient();
        options.health.ping_interval = Duration::from_millis(200);
        let (manager, mut story) = begun(options, specs).await;
        soon("the start", manager.wait_for_startup()).await;
        let (outcome, ()) = tokio::join!(echo(&manager), async {
            gate.reached().await;
            // The other one, which has nothing to do, shows that enough time has passed.
            story.reaches("idle", Reconnecting).await;
            assert_eq!(story.states(ONE).await, [Ready], "{transport:?}");
            gate.open();
        });
        assert_echoed(transport, outcome);
    })
    .await;
}

/// The first request that a server of this transport holds up when it is slow to start.
fn greeting(transport: Transport) -> &'static str {
    match transport {
        Transport::ModernHttp => "server/discover",
        _ => "initialize",
    }
}

#[tokio::test]
async fn a_slow_server_holds_up_nobody_but_those_who_need_it() {
    over_every_transport(|transport| async move {
        let gate = Gate::new();
        let script = Script::new().on(greeting(transport)).hold(&gate).as_usual();
        let slow = Faulty::start(transport, &script);
        let fast = Faulty::start(transport, &Script::new());
        let mut slow_spec = slow.spec(ONE);
        slow_spec.startup_timeout = Duration::from_millis(50);
        let specs = vec![slow_spec, fast.spec("two")];
        let (manager, mut story) = begun(quick(), specs).await;
        let startup = soon("the start", manager.wait_for_startup()).await;
        let names = |names: &[cocode_core::ServerName]| {
            names
                .iter()
                .map(|name| name.as_str().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&startup.ready), ["two"], "{transport:?}: {startup:?}");
        assert_eq!(names(&startup.slow), [ONE], "{transport:?}: {startup:?}");
        assert!(startup.check_required().is_ok(), "{transport:?}");
        let states = story.reaches(ONE, Starting).await;
        assert!(
            matches!(states.as_slice(), [ServerState::Starting { slow: true }]),
            "{transport:?}: {states:?}"
        );
        assert_echoed(transport, call(&manager, "mcp__two__echo").await);
        assert_eq!(tools(&manager), ["mcp__two__echo"], "{transport:?}");
        // Who cannot wait learns that it is still on its way.
        let error = echo_within(&manager, 50).await.unwrap_err();
        match &error {
            CallError::Unavailable { state, in_time, .. } => {
                assert_eq!((state.kind(), *in_time), (Starting, false), "{transport:?}");
            }
            other => panic!("{transport:?}: {other:?}"),
        }
        let (outcome, ()) = tokio::join!(echo(&manager), async {
            gate.reached().await;
            gate.open();
        });
        assert_echoed(transport, outcome);
        let states = story.reaches(ONE, Ready).await;
        assert_eq!(kinds(&states), [Ready], "{transport:?}: {states:?}");
        assert_eq!(
            tools(&manager),
            ["mcp__one__echo", "mcp__two__echo"],
            "{transport:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_given_up() {
    over_every_transport(|transport| async move {
        let gate = Gate::new();
        let script = Script::new().on(greeting(transport)).hold(&gate).as_usual();
        let server = Faulty::start(transport, &script);
        let mut spec = server.spec(ONE);
        spec.connect_timeout = Duration::from_millis(200);
        let (manager, mut story) = begun(quick(), vec![spec.clone()]).await;
        let states = story.reaches(ONE, Reconnecting).await;
        let [
            ServerState::Reconnecting {
                attempt: 1,
                trouble,
            },
        ] = states.as_slice()
        else {
            panic!("{transport:?}: {states:?}");
        };
        assert_eq!(
            trouble.code(),
            "connect-timeout",
            "{transport:?}: {trouble}"
        );
        // Another limit is no other server: the next attempts have more time.
        spec.connect_timeout = Duration::from_secs(20);
        let applied = manager.apply([spec]).await;
        assert_eq!(applied.kept.len(), 1, "{transport:?}: {applied:?}");
        gate.open();
        assert_echoed(transport, echo(&manager).await);
    })
    .await;
}

/// Seconds by which the time of day of these tests is ahead.
static AHEAD: AtomicU64 = AtomicU64::new(0);

fn time_of_day() -> SystemTime {
    SystemTime::now() + Duration::from_secs(AHEAD.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_machine_that_wakes_up_finds_out_who_is_still_there() {
    let mut options = impatient();
    // Enough for whoever is there, however busy the machine is.
    options.health.ping_timeout = Duration::from_secs(2);
    // So often that nobody is given up for not answering.
    options.health.max_failures = u32::MAX;
    options.time_of_day = time_of_day;
    let gone = Transport::ALL.map(|transport| Faulty::start(transport, &Script::new()));
    let there = Transport::ALL.map(|transport| Faulty::start(transport, &Script::new()));
    let name = |kind: &str, server: &Faulty| format!("{kind}-{:?}", server.transport);
    let mut specs = Vec::new();
    for (kind, servers) in [("gone", &gone), ("there", &there)] {
        for server in servers {
            let mut spec = server.spec(&name(kind, server));
            spec.connect_timeout = Duration::from_secs(2);
            specs.push(spec);
        }
    }
    let (manager, mut story) = ready(options, specs).await;
    for server in &gone {
        server.hang();
    }
    // All of them have been asked in vain by then.
    for server in &gone {
        let error = manager
            .call_tool(
                &name("gone", server).parse().unwrap(),
                "echo",
                None,
                within(50),
            )
            .await
            .unwrap_err();
        assert_eq!(error.code(), "request-timeout", "{server:?}");
    }
    AHEAD.fetch_add(NEVER.as_secs(), Ordering::SeqCst);
    let mut left: Vec<String> = gone.iter().map(|server| name("gone", server)).collect();
    while !left.is_empty() {
        let event = story.next("the ones that are gone to be missed").await;
        if let Event::ServerStateChanged { server, state } = event
            && state.kind() == Reconnecting
        {
            left.retain(|name| name != server.as_str());
        }
    }
    for server in &there {
        let name = name("there", server);
        assert_echoed(&name, call(&manager, &format!("mcp__{name}__echo")).await);
        assert_eq!(story.states(&name).await, [], "{name}");
    }
    for server in &gone {
        if server.transport != Transport::Stdio {
            server.resume();
        }
    }
    for server in &gone {
        let name = name("gone", server);
        assert_echoed(&name, call(&manager, &format!("mcp__{name}__echo")).await);
    }
}
