//! Servers that die, idle or at work, and come back as they were or as others: over every transport.

use cocode_client::{CallEnd, CallError, Retry, ServerState, StateKind};
use cocode_testkit::{Gate, Script};

use crate::manager::faulty::{Faulty, Transport};
use crate::manager::story::{
    ONE, assert_echoed, begun, call, echo, echo_within, for_each, giving_up_after, kinds, listing,
    only, over_every_transport, quick, ready, state, tools, without_pings,
};
use crate::support::text_of;

use StateKind::{Failed, Ready, Reconnecting, Starting};

#[tokio::test]
async fn a_server_that_is_killed_while_idle_is_missed_and_the_next_call_waits_for_it() {
    over_every_transport(|transport| async move {
        let script = Script::new();
        let (server, manager, mut story) = only(transport, &script, quick()).await;
        server.take_down();
        let states = story.reaches(ONE, Reconnecting).await;
        assert_eq!(kinds(&states), [Reconnecting], "{transport:?}");
        let (outcome, ()) = tokio::join!(echo(&manager), async {
            story.call_started().await;
            server.restart(&script);
        });
        assert_echoed(transport, outcome);
        let states = story.reaches(ONE, Ready).await;
        let (last, before) = states.split_last().unwrap();
        assert_eq!(last.kind(), Ready, "{transport:?}");
        assert!(
            kinds(before).iter().all(|kind| *kind == Reconnecting),
            "{transport:?}: {states:?}"
        );
        assert_eq!(manager.status()[0].reconnects, 1, "{transport:?}");
        assert_eq!(story.ends().await, [CallEnd::Ok], "{transport:?}");
        // An absence of a moment is none for those who look at the catalog.
        assert_eq!(story.catalog_changes().await, [], "{transport:?}");
        server.hears("tools/call", 1).await;
        assert_eq!(server.heard("tools/call"), 1, "{transport:?}");
    })
    .await;
}

#[tokio::test]
async fn a_call_that_its_server_does_not_survive_fails_at_once_and_once() {
    over_every_transport(|transport| async move {
        let gate = Gate::new();
        let script = Script::new().on("tools/call").hold(&gate).as_usual();
        let (server, manager, mut story) = only(transport, &script, without_pings()).await;
        let (outcome, ()) = tokio::join!(echo(&manager), async {
            gate.reached().await;
            server.take_down();
        });
        let error = outcome.unwrap_err();
        let CallError::Request { error: reason, .. } = &error else {
            panic!("{transport:?}: {error:?}");
        };
        assert_eq!(
            reason.retry(),
            Retry::MayHaveRun,
            "{transport:?}: {reason:?}"
        );
        assert!(
            error.for_model().contains("may have run or not"),
            "{transport:?}: {error:?}"
        );
        story.reaches(ONE, Reconnecting).await;
        // The next one waits, within its own time.
        let late = echo_within(&manager, 100).await.unwrap_err();
        match &late {
            CallError::Unavailable { state, in_time, .. } => {
                assert_eq!(
                    (state.kind(), *in_time),
                    (Reconnecting, false),
                    "{transport:?}"
                );
            }
            other => panic!("{transport:?}: {other:?}"),
        }
        let (outcome, ()) = tokio::join!(echo(&manager), async {
            story.call_started().await;
            server.restart(&Script::new());
        });
        assert_echoed(transport, outcome);
        let failed = CallEnd::Failed(error.code());
        let late = CallEnd::Failed(late.code());
        assert_eq!(
            story.ends().await,
            [failed, late, CallEnd::Ok],
            "{transport:?}"
        );
        server.hears("tools/call", 2).await;
        assert_eq!(server.heard("tools/call"), 2, "{transport:?}");
    })
    .await;
}

#[tokio::test]
async fn a_call_of_a_tool_that_may_be_repeated_survives_its_server() {
    for hint in ["readOnlyHint", "idempotentHint"] {
        over_every_transport(|transport| async move {
            let gate = Gate::new();
            let annotated = format!(r#""annotations":{{"{hint}":true}}"#);
            let script = listing(Script::new(), &annotated);
            let holding = script.clone().on("tools/call").hold(&gate).as_usual();
            let (server, manager, mut story) = only(transport, &holding, without_pings()).await;
            let (outcome, ()) = tokio::join!(echo(&manager), async {
                gate.reached().await;
                server.take_down();
                story.reaches(ONE, Reconnecting).await;
                server.restart(&script);
            });
            assert_eq!(
                outcome.as_ref().map(|called| called.attempts > 1).ok(),
                Some(true),
                "{transport:?}: {outcome:?}"
            );
            assert_echoed(transport, outcome);
            assert_eq!(story.ends().await, [CallEnd::Ok], "{transport:?}");
            server.hears("tools/call", 2).await;
            assert_eq!(server.heard("tools/call"), 2, "{transport:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_call_that_may_be_repeated_was_lost_if_its_server_stays_away() {
    over_every_transport(|transport| async move {
        let gate = Gate::new();
        let script = Script::new().on("tools/call").hold(&gate).as_usual();
        let script = listing(script, r#""annotations":{"readOnlyHint":true}"#);
        let (server, manager, _story) = only(transport, &script, giving_up_after(1)).await;
        let (outcome, ()) = tokio::join!(echo(&manager), async {
            gate.reached().await;
            server.take_down();
        });
        let error = outcome.unwrap_err();
        let CallError::Request { error: reason, .. } = &error else {
            panic!("{transport:?}: nobody may say that nothing was sent: {error:?}");
        };
        assert_eq!(
            reason.retry(),
            Retry::MayHaveRun,
            "{transport:?}: {reason:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_is_reset_in_the_middle_of_an_answer_fails_its_call() {
    over_every_transport(|transport| async move {
        for repeatable in [false, true] {
            let annotations = format!(r#""annotations":{{"idempotentHint":{repeatable}}}"#);
            let script = listing(Script::new(), &annotations).on("tools/call");
            // Once: where there is a connection, in the first of them.
            let script = if transport.is_connected() && transport != Transport::Sse {
                script.run(1)
            } else {
                script.nth(1)
            };
            let half = r#"{"jsonrpc":"2.0","id":1,"res"#;
            let script = match transport {
                Transport::Stdio => script.text(half).exit(1),
                Transport::Http | Transport::ModernHttp => {
                    script.stream().text(format!("data: {half}")).reset()
                }
                Transport::Sse => script.raw("HTTP/1.1 202 Acc").reset(),
                Transport::Unix => script.text(half).disconnect(),
                Transport::WebSocket => script.raw([0x81, 0x7e]).reset(),
            };
            let (server, manager, mut story) = only(transport, &script, without_pings()).await;
            let outcome = echo(&manager).await;
            if repeatable {
                assert_eq!(
                    outcome.as_ref().map(|called| called.attempts > 1).ok(),
                    Some(true),
                    "{transport:?}: {outcome:?}"
                );
                assert_echoed(transport, outcome);
            } else {
                let error = outcome.unwrap_err();
                let CallError::Request { error: reason, .. } = &error else {
                    panic!("{transport:?}: {error:?}");
                };
                assert_eq!(
                    reason.retry(),
                    Retry::MayHaveRun,
                    "{transport:?}: {reason:?}"
                );
                assert_eq!(
                    story.ends().await,
                    [CallEnd::Failed(error.code())],
                    "{transport:?}"
                );
                assert_echoed(transport, echo(&manager).await);
            }
            server.hears("tools/call", 2).await;
            assert_eq!(server.heard("tools/call"), 2, "{transport:?}");
            assert_eq!(state(&manager).kind(), Ready, "{transport:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_comes_back_with_other_tools_has_another_catalog() {
    over_every_transport(|transport| async move {
        let (server, manager, mut story) = only(transport, &Script::new(), quick()).await;
        assert_eq!(tools(&manager), ["mcp__one__echo"], "{transport:?}");
        server.take_down();
        story.reaches(ONE, Reconnecting).await;
        server.restart(&Script::new().tools(2, 1));
        story.reaches(ONE, Ready).await;
        let new = ["mcp__one__tool-0", "mcp__one__tool-1"];
        assert_eq!(tools(&manager), new, "{transport:?}");
        let changes = story.catalog_changes().await;
        let [change] = changes.as_slice() else {
            panic!("{transport:?}: {changes:?}");
        };
        let names = |all: &[cocode_core::QualifiedName]| {
            all.iter()
                .map(|name| name.as_str().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&change.added), new, "{transport:?}");
        assert_eq!(names(&change.removed), ["mcp__one__echo"], "{transport:?}");
        assert_eq!(names(&change.changed), [""; 0], "{transport:?}");
        let called = call(&manager, "mcp__one__tool-1").await.unwrap();
        assert_eq!(
            text_of(&called.result),
            r#"{"word":"hello"}"#,
            "{transport:?}"
        );
        let gone = echo(&manager).await.unwrap_err();
        assert_eq!(gone.code(), "unknown-tool", "{transport:?}: {gone:?}");
    })
    .await;
}

#[tokio::test]
async fn a_server_that_dies_again_and_again_is_given_up() {
    // Those that can end a connection by themselves.
    let transports = [Transport::Stdio, Transport::WebSocket, Transport::Unix];
    for_each(transports, |transport| async move {
        let gate = Gate::new();
        let script = Script::new().on("prompts/list").hold(&gate);
        let script = match transport {
            Transport::Stdio => script.exit(1),
            _ => script.disconnect(),
        };
        let server = Faulty::start(transport, &script);
        let (manager, mut story) = begun(giving_up_after(3), vec![server.spec(ONE)]).await;
        story.reaches(ONE, Ready).await;
        gate.open();
        let states = story.reaches(ONE, Failed).await;
        assert_eq!(attempts(&states), [1, 2, 3], "{transport:?}: {states:?}");
        server.restart(&Script::new());
        assert_echoed(transport, echo(&manager).await);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_stays_away_is_given_up_until_somebody_needs_it() {
    over_every_transport(|transport| async move {
        let (server, manager, mut story) =
            only(transport, &Script::new(), giving_up_after(5)).await;
        server.take_down();
        let states = story.reaches(ONE, Failed).await;
        assert_eq!(
            attempts(&states),
            [1, 2, 3, 4, 5],
            "{transport:?}: {states:?}"
        );
        assert_eq!(kinds(&states), [Reconnecting, Failed], "{transport:?}");
        assert_eq!(tools(&manager), [""; 0], "{transport:?}");
        // Known, though not offered: somebody who calls it has it tried once more.
        let error = echo(&manager).await.unwrap_err();
        match &error {
            CallError::Unavailable { state, in_time, .. } => {
                assert_eq!((state.kind(), *in_time), (Failed, true), "{transport:?}");
            }
            other => panic!("{transport:?}: {other:?}"),
        }
        let text = error.for_model();
        assert!(text.contains("was not called"), "{transport:?}: {text}");
        let states = story.reaches(ONE, Failed).await;
        assert_eq!(
            kinds(&states),
            [Starting, Failed],
            "{transport:?}: {states:?}"
        );
        server.restart(&Script::new());
        assert_echoed(transport, echo(&manager).await);
        let states = story.reaches(ONE, Ready).await;
        assert_eq!(
            kinds(&states),
            [Starting, Ready],
            "{transport:?}: {states:?}"
        );
        assert_eq!(tools(&manager), ["mcp__one__echo"], "{transport:?}");
        // It has all its chances again.
        server.take_down();
        let states = story.reaches(ONE, Failed).await;
        assert_eq!(
            attempts(&states),
            [1, 2, 3, 4, 5],
            "{transport:?}: {states:?}"
        );
    })
    .await;
}

fn attempts(states: &[ServerState]) -> Vec<u32> {
    let attempts = states.iter().filter_map(|state| match state {
        ServerState::Reconnecting { attempt, .. } => Some(*attempt),
        _ => None,
    });
    attempts.collect()
}

#[tokio::test]
async fn the_death_of_one_server_is_nothing_to_the_others() {
    over_every_transport(|transport| async move {
        let (dying, living) = (
            Faulty::start(transport, &Script::new()),
            Faulty::start(transport, &Script::new()),
        );
        let specs = vec![dying.spec(ONE), living.spec("two")];
        let (manager, mut story) = ready(quick(), specs).await;
        dying.take_down();
        story.reaches(ONE, Reconnecting).await;
        assert_echoed(transport, call(&manager, "mcp__two__echo").await);
        assert_eq!(story.states("two").await, [], "{transport:?}");
    })
    .await;
}
