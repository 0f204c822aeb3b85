//! No process outlives its session, however stubborn, and whoever ends first.

use std::sync::Arc;
use std::time::Duration;

use cocode_client::{ExitReport, RequestError, Session};
use cocode_testkit::{Script, StdioServer};

use crate::support::{Witness, call, connect, handled_by, raw, soon, stdio, within};

/// A server that ignores the end of its input and SIGTERM, and whose tool leaves three children
/// behind: in its process group, in a group and in a session of their own. All ignore SIGTERM.
fn stubborn() -> Script {
    Script::new()
        .ignore_sigterm()
        .stay_after_eof()
        .on("tools/call")
        .fork()
        .result(r#"{"content":[],"structuredContent":$pids}"#)
}

/// A session, and the server's process with its three children.
async fn started(script: Script) -> (StdioServer, Session, Vec<u32>) {
    let server = script.stdio();
    let session = connect(stdio(&server)).await;
    let result = call(&session).await.unwrap();
    let mut pids: Vec<u32> = result.structured().unwrap().decode().unwrap();
    assert_eq!(pids.len(), 3);
    pids.push(session.pid().unwrap());
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    (server, session, pids)
}

/// Whether the process exists and is no zombie.
fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

async fn gone(pids: &[u32]) {
    let polling = async {
        while pids.iter().any(|pid| is_alive(*pid)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("the end of all processes", polling).await;
}

#[tokio::test]
async fn closing_leaves_no_process() {
    let (_server, session, pids) = started(stubborn()).await;
    session.close().await;
    // No polling: all are gone when the session is.
    assert!(!pids.iter().any(|pid| is_alive(*pid)));
}

#[tokio::test]
async fn dropping_leaves_no_process() {
    let (_server, session, pids) = started(stubborn()).await;
    drop(session);
    gone(&pids).await;
}

#[tokio::test]
async fn dropping_while_a_request_is_in_flight_leaves_no_process() {
    let (server, session, pids) = started(stubborn().on("ping").ignore()).await;
    let sending = session.ping(within(60_000));
    tokio::select! {
        outcome = sending => panic!("{outcome:?}"),
        _ = server.wait_for(|message| message.is("ping")) => {}
    }
    drop(session);
    gone(&pids).await;
}

#[test]
fn the_end_of_the_runtime_leaves_no_process() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (_server, session, pids) = runtime.block_on(started(stubborn()));
    drop(runtime);
    drop(session);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(gone(&pids));
}

#[tokio::test]
async fn the_exit_of_a_server_leaves_no_process() {
    let (_server, session, pids) = started(stubborn().on("ping").exit(3)).await;
    match session.ping(within(20_000)).await {
        Err(RequestError::Closed {
            reason: cocode_client::Closed::Exited { report, .. },
            ..
        }) => assert_eq!(report, ExitReport::Code(3)),
        other => panic!("{other:?}"),
    }
    // The exit is reported when everything that it left behind is gone.
    assert!(!pids.iter().any(|pid| is_alive(*pid)));
}

#[tokio::test]
async fn a_connect_that_is_given_up_leaves_no_process() {
    let script = stubborn()
        .on("initialize")
        .fork()
        .notify("started", "$pids");
    let server = script.stdio();
    let witness = Arc::new(Witness::willing());
    let connecting = Session::connect(stdio(&server), handled_by(&witness));
    let started = tokio::select! {
        outcome = connecting => panic!("{outcome:?}"),
        started = witness.hears("started") => started,
    };
    let pids: Vec<u32> = raw(&started).decode().unwrap();
    assert_eq!(pids.len(), 3);
    gone(&pids).await;
}
