//! The servers of the fault matrix do what it relies on, seen by a single session.

use std::sync::Arc;

use cocode_client::{RequestError, Session, SessionOptions};
use cocode_testkit::{Gate, Script};

use crate::manager::faulty::{Faulty, Transport};
use crate::support::{assert_timeout, call, call_with, connect, soon, text_of, within};

async fn tool_names(session: &Session) -> Vec<String> {
    let tools = session.tools().await.unwrap().items;
    tools.into_iter().map(|tool| tool.name).collect()
}

#[tokio::test]
async fn a_killed_server_fails_what_is_under_way_and_comes_back_as_another() {
    for transport in Transport::ALL {
        let gate = Gate::new();
        let script = Script::new().on("tools/call").nth(2).hold(&gate).as_usual();
        let server = Faulty::start(transport, &script);
        assert_eq!(server.spec("any").name.as_str(), "any");
        let session = Arc::new(connect(server.target()).await);
        assert_eq!(tool_names(&session).await, ["echo"], "{transport:?}");
        let answer = text_of(&call(&session).await.unwrap());
        assert_eq!(answer, r#"{"word":"hello"}"#, "{transport:?}");
        let (outcome, ()) = tokio::join!(soon("the end of the call", call(&session)), async {
            gate.reached().await;
            server.hears("tools/call", 2).await;
            assert_eq!(server.heard("tools/call"), 2, "{transport:?}");
            server.take_down();
        });
        assert!(
            matches!(
                outcome,
                Err(RequestError::Closed { .. } | RequestError::Link { .. })
            ),
            "{transport:?}: {outcome:?}"
        );
        if transport.is_connected() {
            soon("the end of the session", session.closed()).await;
        }
        let refused = Session::connect(server.target(), SessionOptions::default()).await;
        assert!(refused.is_err(), "{transport:?}");
        server.restart(&Script::new().tools(2, 10));
        let session = connect(server.target()).await;
        let tools = tool_names(&session).await;
        assert_eq!(tools, ["tool-0", "tool-1"], "{transport:?}");
    }
}

#[tokio::test]
async fn a_server_that_hangs_answers_nothing_until_it_goes_on() {
    for transport in Transport::ALL {
        let server = Faulty::start(transport, &Script::new());
        let session = connect(server.target()).await;
        call(&session).await.unwrap();
        server.hang();
        assert_timeout(call_with(&session, within(50)).await);
        server.resume();
        server.hears("tools/call", 2).await;
        call(&session).await.unwrap();
        server.kill();
    }
}
