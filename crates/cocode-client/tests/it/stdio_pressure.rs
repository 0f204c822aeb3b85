//! Servers on pipes that take nothing, give too much, or half close: bounded memory, no hang.

use cocode_client::{Closed, Protocol, RequestError, Session, SessionOptions};
#[cfg(target_os = "linux")]
use cocode_testkit::Script;
use tokio::task::JoinSet;

use crate::peer::Peer;
#[cfg(target_os = "linux")]
use crate::support::{assert_timeout, assert_works, connect, resident_memory, stdio, text_of};
use crate::support::{call, call_with, connect_with, environment, raw, soon, speaking, within};

#[cfg(target_os = "linux")]
const MIB: usize = 1024 * 1024;

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_server_that_stops_reading_costs_deadlines_but_no_memory() {
    let server = Script::new().on("ping").stop_reading().stdio();
    let session = connect(stdio(&server)).await;
    assert_timeout(session.ping(within(50)).await);
    let arguments = raw(&format!(r#"{{"x":"{}"}}"#, "x".repeat(MIB)));
    let before = resident_memory();
    for _ in 0..64 {
        let outcome = session
            .call_tool("echo", Some(&arguments), within(20))
            .await;
        assert_timeout(outcome);
    }
    let grown = resident_memory().saturating_sub(before);
    assert!(grown < 16 * MIB, "{grown} bytes more after 64 MiB offered");
    soon("the end of the session", session.close()).await;
}

#[tokio::test]
async fn a_peer_that_reads_late_gets_every_message_whole() {
    let (session, mut peer) = Peer::legacy(SessionOptions::default()).await;
    let mut calls = JoinSet::new();
    for number in 0..8 {
        let session = session.clone();
        calls.spawn(async move {
            let text = number.to_string().repeat(900_000);
            let params = raw(&format!(r#"{{"text":"{text}"}}"#));
            let request = session.request("measure", Some(&params), within(60_000));
            assert_eq!(request.await.unwrap().as_str(), "900000");
        });
    }
    // Every call gets as far as it can before the peer begins to read.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    for _ in 0..8 {
        let request = peer.expect("measure").await;
        let text = request["params"]["text"].as_str().unwrap();
        peer.result(&request, &text.len().to_string()).await;
    }
    while let Some(outcome) = calls.join_next().await {
        outcome.unwrap();
    }
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_flood_on_stderr_neither_blocks_nor_grows() {
    let server = Script::new()
        .on("tools/call")
        .stderr(100 * MIB)
        .text_result("done")
        .stdio();
    let session = connect(stdio(&server)).await;
    let before = resident_memory();
    assert_eq!(text_of(&call(&session).await.unwrap()), "done");
    let grown = resident_memory().saturating_sub(before);
    assert!(
        grown < 16 * MIB,
        "{grown} bytes more after 100 MiB of stderr"
    );
    assert_eq!(session.stderr_lines().last().unwrap().len(), 79);
    assert_works(&session).await;
}

/// A server that greets and then does this, after it has read that the handshake is over.
async fn greeting_and_then(program: &str) -> Session {
    let greeting = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"sh"}}}"#;
    let program = format!("read hello; echo '{greeting}'; read initialized; {program}");
    let target = cocode_client::stdio("sh", ["-c", program.as_str()], environment());
    connect_with(target, speaking(Protocol::Legacy)).await
}

#[tokio::test]
async fn a_closed_stdout_ends_the_session_even_if_the_server_lives_on() {
    let session = greeting_and_then("read call; exec >&-; cat >/dev/null").await;
    match call(&session).await {
        Err(RequestError::Closed {
            reason: Closed::ByPeer,
            ..
        }) => {}
        other => panic!("{other:?}"),
    }
    soon("the end of the session", session.close()).await;
}

#[tokio::test]
async fn a_closed_stdin_ends_the_session_even_if_the_server_lives_on() {
    let session = greeting_and_then("exec <&-; echo '{}'; sleep 600").await;
    let refused = async {
        // Until the server has closed it, the pipe takes a request that nobody reads.
        while let Err(RequestError::Timeout { .. }) = call_with(&session, within(100)).await {}
        session.closed().await
    };
    let reason = soon("the news that nothing can be sent", refused).await;
    assert!(matches!(reason, Closed::ByPeer), "{reason:?}");
    let again = call(&session).await;
    assert!(
        matches!(again, Err(RequestError::Closed { .. })),
        "{again:?}"
    );
    soon("the end of the session", session.close()).await;
}
