//! How long servers are put up with: those that fail for long, hang while they are used, idle, or
//! ask for time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cocode_client::{
    Answer, CallContext, CallError, Cause, Closed, Connector, Manager, ManagerOptions, ReachError,
    ReachErrorKind, Reached, RequestOptions, ResourceReference, ServerState, StateKind,
    TraceContext,
};
use cocode_core::ServerSpec;
use cocode_testkit::{Gate, Script};
use tokio::time::Instant;

use crate::manager::faulty::{Faulty, Transport};
use crate::manager::story::{
    NEVER, ONE, assert_echoed, assert_unavailable, begun, call, echo, echo_within, for_each,
    giving_up_after, listing, only, over_every_transport, quick, ready, tools, within,
    without_pings,
};
use crate::support::{raw, soon};

use StateKind::{Failed, Ready, Reconnecting, Starting, Stopped};

#[tokio::test]
async fn the_tools_of_a_dead_server_are_not_offered_while_it_is_tried_again() {
    over_every_transport(|transport| async move {
        let mut options = giving_up_after(1);
        options.health.retry_failed = Some(Duration::from_millis(20));
        let (server, manager, mut story) = only(transport, &Script::new(), options).await;
        server.take_down();
        story.reaches(ONE, Failed).await;
        assert_eq!(tools(&manager), [""; 0], "{transport:?}");
        story.forget().await;
        for _ in 0..3 {
            let states = story.reaches(ONE, Failed).await;
            assert_eq!(states[0].kind(), Starting, "{transport:?}: {states:?}");
        }
        // Somebody who calls it is no reason either.
        let error = echo(&manager).await.unwrap_err();
        assert_unavailable(transport, &error);
        assert_eq!(story.catalog_changes().await, [], "{transport:?}");
        server.restart(&Script::new());
        story.reaches(ONE, Ready).await;
        let changes = story.catalog_changes().await;
        assert_eq!(changes.len(), 1, "{transport:?}: {changes:?}");
        assert_eq!(tools(&manager), ["mcp__one__echo"], "{transport:?}");
    })
    .await;
}

/// Cannot reach anything, and notes when it was asked to.
#[derive(Default)]
struct Unreachable {
    asked: Mutex<Vec<Instant>>,
}

impl Connector for Unreachable {
    fn reach<'a>(&'a self, _spec: &'a ServerSpec) -> Answer<'a, Result<Reached, ReachError>> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Instant::now());
        Box::pin(std::future::ready(Err(ReachError {
            kind: ReachErrorKind::Temporary,
            code: "keyring-locked",
            message: "not now".to_owned(),
            causes: Vec::new(),
            hints: Vec::new(),
        })))
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_comes_is_tried_ever_less_often() {
    let connector = Arc::new(Unreachable::default());
    let mut options = ManagerOptions {
        connector: Arc::clone(&connector) as Arc<dyn Connector>,
        ..ManagerOptions::default()
    };
    options.health.reconnect.attempts = 0;
    let manager = Manager::new(options);
    let name = ONE.parse().unwrap();
    manager
        .apply([ServerSpec::program(name, "any", [""; 0])])
        .await;
    // Nothing but the clock of the test passes.
    tokio::time::sleep(Duration::from_hours(5)).await;
    let asked = connector.asked.lock().unwrap();
    let minutes: Vec<_> = asked
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs().div_ceil(60))
        .collect();
    // The clock counts whole milliseconds, and what is between them.
    let expected = [1, 2, 4, 8, 16, 32, 60, 60, 60];
    assert_eq!(minutes.get(..9).unwrap_or(&minutes), expected);
    assert!(minutes.len() <= 10, "{minutes:?}");
}

#[tokio::test]
async fn a_server_that_hangs_while_it_is_called_again_and_again_is_found_dead() {
    over_every_transport(|transport| async move {
        let mut options = without_pings();
        options.health.ping_timeout = Duration::from_millis(50);
        options.health.max_failures = 3;
        let server = Faulty::start(transport, &Script::new());
        let mut spec = server.spec(ONE);
        spec.connect_timeout = Duration::from_secs(2);
        let (manager, mut story) = ready(options, vec![spec]).await;
        server.hang();
        let calling = Box::pin(async {
            loop {
                let error = echo_within(&manager, 20).await.unwrap_err();
                if let CallError::Unavailable { state, .. } = error {
                    return state;
                }
                // The last of them may be under way when the verdict comes.
                assert!(
                    ["request-timeout", "connection-closed"].contains(&error.code()),
                    "{transport:?}: {error:?}"
                );
            }
        });
        let found = soon("the verdict", calling).await;
        assert_eq!(found.kind(), Reconnecting, "{transport:?}: {found:?}");
        let states = story.reaches(ONE, Reconnecting).await;
        let trouble = states.last().unwrap().trouble().unwrap();
        assert!(
            matches!(trouble.cause, Cause::Lost(Closed::Silent)),
            "{transport:?}: {trouble:?}"
        );
        if transport != Transport::Stdio {
            server.resume();
        }
        assert_echoed(transport, echo(&manager).await);
    })
    .await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_that_hung_is_gone_before_its_successor_is_there() {
    let mut options = quick();
    options.health.ping_timeout = Duration::from_millis(50);
    options.health.max_failures = 2;
    let (server, manager, mut story) = only(Transport::Stdio, &Script::new(), options).await;
    // Somebody has a session of their own, and keeps it.
    let until = Instant::now() + NEVER;
    let kept = manager.session(&ONE.parse().unwrap(), until).await.unwrap();
    let process = format!("/proc/{}", kept.pid().unwrap());
    assert!(std::path::Path::new(&process).exists());
    server.hang();
    story.reaches(ONE, Ready).await;
    assert!(!std::path::Path::new(&process).exists());
    assert!(kept.ping(RequestOptions::default()).await.is_err());
    assert_echoed("its successor", echo(&manager).await);
}

#[tokio::test]
async fn a_server_that_is_read_from_or_listened_to_does_not_idle() {
    over_every_transport(|transport| async move {
        let gate = Gate::new();
        let script = Script::new().on("resources/read").hold(&gate).as_usual();
        let read = Faulty::start(transport, &script);
        let heard = Faulty::start(transport, &Script::new());
        let idle = Faulty::start(transport, &Script::new());
        let mut specs = vec![read.spec("read"), heard.spec("heard"), idle.spec("idle")];
        for spec in &mut specs {
            spec.idle_stop = Some(Duration::from_millis(100));
        }
        let (manager, mut story) = begun(without_pings(), specs).await;
        let reference = |text: &str| ResourceReference::parse(text).unwrap();
        let (of_read, of_heard) = (
            reference("@read:scripted://hello"),
            reference("@heard:scripted://hello"),
        );
        let subscribing = manager.subscribe(&of_heard);
        soon("the subscription", subscribing).await.unwrap();
        story.forget().await;
        let reading = manager.read(&of_read, RequestOptions::default());
        let (outcome, ()) = tokio::join!(soon("the resource", reading), async {
            gate.reached().await;
            story.forget().await;
            // Used, stopped, and used again: time enough for the others to idle, if they did.
            for _ in 0..3 {
                let until = Instant::now() + NEVER;
                let session = manager.session(&"idle".parse().unwrap(), until).await;
                drop(session.unwrap());
                story.reaches("idle", Stopped).await;
            }
            for name in ["read", "heard"] {
                assert_eq!(story.states(name).await, [], "{transport:?}: {name}");
            }
            gate.open();
        });
        outcome.unwrap();
        story.reaches("read", Stopped).await;
        assert_eq!(story.states("heard").await, [], "{transport:?}");
        // Who does not listen any more lets it go.
        let leaving = manager.unsubscribe(&of_heard);
        soon("the end of listening", leaving).await.unwrap();
        story.reaches("heard", Stopped).await;
    })
    .await;
}

#[tokio::test]
async fn a_call_that_has_much_time_is_still_not_repeated_before_the_server_wants_it() {
    let transports = [Transport::Http, Transport::ModernHttp, Transport::Sse];
    for_each(transports, |transport| async move {
        let script = listing(Script::new(), r#""annotations":{"readOnlyHint":true}"#);
        let later = [("Retry-After", "3000")];
        let script = script.on("tools/call").respond(429, &later, "later");
        let (server, manager, _story) = only(transport, &script, without_pings()).await;
        let calling = manager.call("mcp__one__echo", None, within(300_000));
        let error = soon("the end of the call", calling).await.unwrap_err();
        assert_eq!(error.code(), "http-status", "{transport:?}: {error:?}");
        assert_eq!(server.heard("tools/call"), 1, "{transport:?}");
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_given_up_leaves_nobody_waiting() {
    let transports = [Transport::Http, Transport::ModernHttp];
    for_each(transports, |transport| async move {
        let gate = Gate::new();
        let mut options = giving_up_after(0);
        options.health.ping_interval = NEVER;
        options.health.max_failures = 1;
        let sick = |script: Script| script.respond(500, &[], "the disk is full");
        let script = Script::new().on("tools/call").nth(1).hold(&gate).as_usual();
        let script = sick(script.on("tools/call"));
        let script = sick(script.on("ping"));
        let script = script.on("server/discover").nth(1).as_usual();
        let script = sick(script.on("server/discover"));
        let (_server, manager, mut story) = only(transport, &script, options).await;
        let (waiting, ()) = tokio::join!(echo(&manager), async {
            gate.reached().await;
            let error = call(&manager, "mcp__one__echo").await.unwrap_err();
            assert_eq!(error.code(), "http-status", "{transport:?}: {error:?}");
            let states = story.reaches(ONE, Failed).await;
            assert!(
                matches!(states.as_slice(), [ServerState::Failed(_)]),
                "{transport:?}: {states:?}"
            );
        });
        let error = waiting.unwrap_err();
        assert_eq!(
            error.code(),
            "connection-closed",
            "{transport:?}: {error:?}"
        );
        assert!(error.for_model().contains("may have run"), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn what_is_no_object_cannot_be_sent_along() {
    let (server, manager, _story) = only(Transport::Unix, &Script::new(), without_pings()).await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for trace in [None, Some(TraceContext::parse(trace).unwrap())] {
        let context = CallContext {
            meta: Some(raw("[1]")),
            trace,
            ..CallContext::default()
        };
        let calling = manager.call("mcp__one__echo", None, context);
        let error = soon("the end of the call", calling).await.unwrap_err();
        assert_eq!(error.code(), "invalid-params", "{error:?}");
    }
    assert_eq!(server.heard("tools/call"), 0);
}

#[tokio::test]
async fn whoever_asks_for_a_resource_is_not_told_about_tools() {
    over_every_transport(|transport| async move {
        let (_server, manager, mut story) = only(transport, &Script::new(), quick()).await;
        let reference = ResourceReference::parse("@one:scripted://missing").unwrap();
        let reading = manager.read(&reference, RequestOptions::default());
        let error = soon("the resource", reading).await.unwrap_err();
        match &error {
            CallError::Asking { what, .. } => assert_eq!(what, "scripted://missing"),
            other => panic!("{transport:?}: {other:?}"),
        }
        let text = error.for_model();
        assert!(text.contains("scripted://missing"), "{transport:?}: {text}");
        assert!(!text.contains("tool"), "{transport:?}: {text}");
        assert_eq!(story.ends().await, [], "{transport:?}");
    })
    .await;
}
