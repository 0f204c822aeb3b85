//! Tools listed and one call made on each real server.

use std::path::{Path, PathBuf};

use cocode_client::{
    Content, Era, Protocol, RawJson, RequestOptions, Session, SessionOptions, Target, http,
    legacy_sse, stdio, websocket,
};
use serde_json::{Value, json};

use crate::install::{environment, installed, npm, script};
use crate::running::Running;

/// What a server is expected to show.
struct Expected<'a> {
    tools: &'a [&'a str],
    call: &'a str,
    arguments: Value,
    /// Part of the text that the call answers with.
    text: &'a str,
    era: Option<Era>,
    transport: &'a str,
}

async fn check(target: Target, protocol: Protocol, expected: Expected<'_>) {
    let options = SessionOptions {
        protocol,
        ..SessionOptions::default()
    };
    let session = Session::connect(target, options).await.expect("a session");
    let facts = session.server();
    assert_eq!(facts.transport, expected.transport);
    if let Some(era) = expected.era {
        assert_eq!(facts.era(), era);
    }
    let tools = session.tools().await.expect("a list of tools");
    assert!(tools.quarantined.is_empty(), "{:?}", tools.quarantined);
    let names: Vec<&str> = tools.items.iter().map(|tool| tool.name.as_str()).collect();
    for wanted in expected.tools {
        assert!(names.contains(wanted), "{wanted} is not among {names:?}");
    }
    let arguments = RawJson::of(&expected.arguments).expect("JSON");
    let result = session
        .call_tool(expected.call, Some(&arguments), RequestOptions::default())
        .await;
    let result = result.expect("a result");
    assert!(!result.is_error, "{}", result.raw);
    let text: String = result
        .content()
        .into_iter()
        .filter_map(|block| {
            if let Content::Text(text) = block {
                Some(text)
            } else {
                None
            }
        })
        .collect();
    assert!(
        text.contains(expected.text),
        "{:?} is not in {text:?}",
        expected.text
    );
    session
        .ping(RequestOptions::default())
        .await
        .expect("a sign of life");
    session.close().await;
}

fn child(program: PathBuf, args: &[&str]) -> Target {
    stdio(program, args.iter().copied(), environment())
}

fn url(text: &str) -> url::Url {
    text.parse().expect("a URL")
}

fn everything(transport: &str) -> Expected<'_> {
    Expected {
        tools: &["echo", "get-sum"],
        call: "get-sum",
        arguments: json!({ "a": 2, "b": 40 }),
        text: "42",
        era: Some(Era::Legacy),
        transport,
    }
}

#[tokio::test]
async fn peer_everything_over_stdio() {
    let target = child(npm("mcp-server-everything"), &["stdio"]);
    check(target, Protocol::Auto, everything("stdio")).await;
}

#[tokio::test]
async fn peer_everything_over_streamable_http() {
    let server = Running::on_port(&npm("mcp-server-everything"), |command, port| {
        command.arg("streamableHttp").env("PORT", port.to_string());
    });
    let target = http(url(&format!("http://127.0.0.1:{}/mcp", server.port)));
    check(target, Protocol::Auto, everything("http")).await;
}

#[tokio::test]
async fn peer_everything_over_http_and_sse_found_by_fallback_or_named() {
    let server = Running::on_port(&npm("mcp-server-everything"), |command, port| {
        command.arg("sse").env("PORT", port.to_string());
    });
    let address = url(&format!("http://127.0.0.1:{}/sse", server.port));
    check(http(address.clone()), Protocol::Auto, everything("sse")).await;
    check(legacy_sse(address), Protocol::Auto, everything("sse")).await;
}

#[tokio::test]
async fn peer_filesystem() {
    let folder = scratch("filesystem");
    std::fs::write(folder.join("note.txt"), "forty-two").expect("a file");
    let file = folder.join("note.txt");
    let expected = Expected {
        tools: &["read_text_file", "write_file", "list_directory"],
        call: "read_text_file",
        arguments: json!({ "path": file }),
        text: "forty-two",
        era: Some(Era::Legacy),
        transport: "stdio",
    };
    let folder = folder.to_str().expect("a plain path").to_owned();
    check(
        child(npm("mcp-server-filesystem"), &[&folder]),
        Protocol::Auto,
        expected,
    )
    .await;
}

#[tokio::test]
async fn peer_memory() {
    let folder = scratch("memory");
    let Target::Stdio(mut target) = child(npm("mcp-server-memory"), &[]) else {
        unreachable!()
    };
    target.process.env.push((
        "MEMORY_FILE_PATH".into(),
        folder.join("memory.jsonl").into(),
    ));
    let expected = Expected {
        tools: &["create_entities", "read_graph"],
        call: "create_entities",
        arguments: json!({ "entities": [
            { "name": "Ada", "entityType": "person", "observations": ["writes programs"] },
        ] }),
        text: "Ada",
        era: Some(Era::Legacy),
        transport: "stdio",
    };
    check(Target::Stdio(target), Protocol::Auto, expected).await;
}

#[tokio::test]
async fn peer_time_in_both_eras() {
    let expected = |era| Expected {
        tools: &["get_current_time", "convert_time"],
        call: "convert_time",
        arguments: json!({
            "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo",
        }),
        text: "21:00",
        era: Some(era),
        transport: "stdio",
    };
    let program = installed("python/bin/mcp-server-time");
    let args = ["--local-timezone", "UTC"];
    check(
        child(program.clone(), &args),
        Protocol::Modern,
        expected(Era::Modern),
    )
    .await;
    check(
        child(program, &args),
        Protocol::Legacy,
        expected(Era::Legacy),
    )
    .await;
}

#[tokio::test]
async fn peer_fastmcp_over_http_in_every_revision() {
    let python = installed("python/bin/python");
    let server = Running::announced(&python, &[&script("fastmcp_server.py"), Path::new("0")]);
    let address = url(&format!("http://127.0.0.1:{}/mcp", server.port));
    let expected = |era| Expected {
        tools: &["add"],
        call: "add",
        arguments: json!({ "a": 2, "b": 40 }),
        text: "42",
        era: Some(era),
        transport: "http",
    };
    check(http(address.clone()), Protocol::Auto, expected(Era::Modern)).await;
    for revision in cocode_client::Revision::ALL {
        let protocol = Protocol::Exact(revision);
        check(http(address.clone()), protocol, expected(revision.era())).await;
    }
}

#[tokio::test]
async fn peer_python_sdk_over_websocket() {
    let python = installed("websocket/bin/python");
    let server = Running::announced(&python, &[&script("websocket_server.py"), Path::new("0")]);
    let expected = Expected {
        tools: &["add"],
        call: "add",
        arguments: json!({ "a": 2, "b": 40 }),
        text: "42",
        era: Some(Era::Legacy),
        transport: "ws",
    };
    let address = url(&format!("ws://127.0.0.1:{}/ws", server.port));
    check(websocket(address), Protocol::Auto, expected).await;
}

#[tokio::test]
async fn peer_supergateway_over_websocket() {
    let server = Running::on_port(&npm("supergateway"), |command, port| {
        let stdio = format!("{} stdio", npm("mcp-server-everything").display());
        command.args([
            "--stdio",
            &stdio,
            "--outputTransport",
            "ws",
            "--port",
            &port.to_string(),
        ]);
    });
    let address = url(&format!("ws://127.0.0.1:{}/message", server.port));
    check(websocket(address), Protocol::Auto, everything("ws")).await;
}

/// Needs the program `git`.
#[tokio::test]
async fn system_peer_git() {
    let folder = scratch("git");
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        let done = command
            .args(args)
            .current_dir(&folder)
            .output()
            .expect("git runs");
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "--quiet", "--initial-branch", "trunk"]);
    let folder = folder.to_str().expect("a plain path").to_owned();
    let expected = Expected {
        tools: &["git_status", "git_log"],
        call: "git_status",
        arguments: json!({ "repo_path": folder }),
        text: "trunk",
        era: None,
        transport: "stdio",
    };
    let target = child(
        installed("python/bin/mcp-server-git"),
        &["--repository", &folder],
    );
    check(target, Protocol::Auto, expected).await;
}

/// An empty folder for one test.
fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("peer-{name}"));
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder.canonicalize().expect("a real path")
}
