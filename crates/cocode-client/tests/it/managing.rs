//! Many servers through one manager: starts, calls, changes, ends.

use std::time::Duration;

use cocode_client::{
    CallContext, CallError, CallResult, Content, Event, Manager, ManagerOptions, RawJson,
    ServerState, StateKind,
};
use cocode_core::ServerSpec;
use cocode_testkit::{Script, StdioServer};

/// A specification for a scripted server.
fn spec(name: &str, server: &StdioServer) -> ServerSpec {
    let program = server.program().to_str().unwrap();
    ServerSpec::program(name.parse().unwrap(), program, server.args())
}

fn text(result: &CallResult) -> String {
    match result.content().as_slice() {
        [Content::Text(text)] => text.clone(),
        other => panic!("{other:?}"),
    }
}

fn options() -> ManagerOptions {
    ManagerOptions::with_environment(std::env::vars_os())
}

#[tokio::test]
async fn a_tool_is_called_by_its_qualified_name() {
    let server = Script::new().on("tools/call").text_result("hello").stdio();
    let manager = Manager::new(options());
    let applied = manager.apply([spec("one", &server)]).await;
    assert_eq!(applied.started.len(), 1);
    let startup = manager.wait_for_startup().await;
    assert_eq!(startup.ready.len(), 1, "{startup:?}");
    let arguments = RawJson::parse(r#"{"text":"x"}"#).unwrap();
    let called = manager
        .call("mcp__one__echo", Some(&arguments), CallContext::default())
        .await
        .unwrap();
    assert_eq!(text(&called.result), "hello");
    manager.shutdown().await;
}

#[tokio::test]
async fn a_killed_server_comes_back_and_the_next_call_waits_for_it() {
    let server = Script::new().on("tools/call").text_result("hello").stdio();
    let manager = Manager::new(options());
    manager.apply([spec("one", &server)]).await;
    manager.wait_for_startup().await;
    let mut events = manager.events();
    let pid = manager.status()[0]
        .connection
        .as_ref()
        .unwrap()
        .pid
        .unwrap();
    kill(pid);
    loop {
        if let Event::ServerStateChanged {
            state: ServerState::Reconnecting { attempt, .. },
            ..
        } = events.next().await.unwrap()
        {
            assert_eq!(attempt, 1);
            break;
        }
    }
    let called = manager
        .call("mcp__one__echo", None, CallContext::default())
        .await;
    assert_eq!(text(&called.unwrap().result), "hello");
    assert_eq!(manager.status()[0].reconnects, 1);
    assert_eq!(manager.status()[0].state.kind(), StateKind::Ready);
}

#[tokio::test]
async fn an_unknown_tool_is_told_from_a_known_one() {
    let server = Script::new().stdio();
    let manager = Manager::new(options());
    manager.apply([spec("one", &server)]).await;
    manager.wait_for_startup().await;
    let error = manager
        .call("mcp__one__ecko", None, CallContext::default())
        .await
        .unwrap_err();
    match &error {
        CallError::UnknownTool { near, .. } => assert_eq!(near, &["mcp__one__echo"]),
        other => panic!("{other:?}"),
    }
    assert!(error.for_model().contains("Did you mean `mcp__one__echo`?"));
    tokio::time::timeout(Duration::from_secs(10), manager.shutdown())
        .await
        .unwrap();
}

fn kill(pid: u32) {
    let killed = std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_last_clone_that_is_dropped_ends_every_server() {
    let server = Script::new().stdio();
    let manager = Manager::new(options());
    manager.apply([spec("one", &server)]).await;
    manager.wait_for_startup().await;
    let connection = manager.status()[0].connection.clone().unwrap();
    let process = format!("/proc/{}", connection.pid.unwrap());
    let clone = manager.clone();
    drop(manager);
    assert_eq!(clone.status()[0].state.kind(), StateKind::Ready);
    drop(clone);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while std::path::Path::new(&process).exists() {
        assert!(tokio::time::Instant::now() < deadline, "it still runs");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
