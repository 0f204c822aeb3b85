//! How servers and the gateway are shown.

use std::sync::atomic::Ordering;

use cocode_admin::model::{Authentication, ServerState};
use cocode_admin::{House as _, RefusalStatus};
use cocode_testkit::Script;

use super::stage::{Files, ana, entry, play};

#[tokio::test]
async fn a_server_is_shown_with_all_that_is_known_and_without_its_secrets() {
    let script = Script::new().tools(3, 10);
    let more = "description = 'For tests.'\n[mcp_servers.good.env]\nAPI_TOKEN = 'hunter2'";
    let files = Files::with(&entry("good", &script, more));
    files.user(
        "config.toml",
        "[permissions]\ndeny = ['mcp__good__tool-1']\n",
    );
    play(files, async |stage| {
        stage.connected("good").await;
        stage.house.prompts("good").await.unwrap();
        stage.house.resources("good").await.unwrap();
        let server = stage.house.server("good").await.unwrap();
        assert_eq!((server.tools, server.hidden_tools), (2, 1));
        assert_eq!((server.resources, server.prompts), (Some(1), Some(1)));
        assert_eq!(server.transport, "stdio");
        assert_eq!(server.era.as_deref(), Some("legacy"));
        assert_eq!(server.scope, "user");
        assert!(server.file.as_deref().unwrap().ends_with("home/mcp.toml"));
        assert_eq!(server.description.as_deref(), Some("For tests."));
        assert_eq!(server.sharing, "shared");
        assert!(server.pid.is_some() && server.uptime_seconds.is_some());
        assert!(server.ready_milliseconds.unwrap() > 0.0);
        assert_eq!(server.server_info.as_ref().unwrap().name, "scripted");
        assert!(
            server.target.contains("cocode-scripted-server"),
            "{}",
            server.target
        );
        assert!(!server.can_login && !server.is_built_in);
        assert_eq!((server.is_signed_in, server.reason.clone()), (None, None));
        let tools = stage.house.tools("good").await.unwrap();
        let seen = tools.iter().filter(|tool| tool.name != "tool-1");
        let tokens: u64 = seen.map(|tool| tool.tokens).sum();
        assert!(tokens > 0);
        assert_eq!(server.tokens, tokens);
        let text = serde_json::to_string(&server).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
    })
    .await;
}

#[tokio::test]
async fn servers_that_cannot_be_used_say_why() {
    let files = Files::with(
        "[mcp_servers.off]\ncommand = 'true'\nenabled = false\n\
         [mcp_servers.missing]\ncommand = '/nonexistent/server'\n\
         [mcp_servers.exits]\ncommand = 'sh'\nargs = ['-c', 'echo oh dear >&2; exit 3']\n\
         [mcp_servers.empty]\ndescription = 'Neither a program nor an address.'\n",
    );
    files.project(".mcp.toml", "[mcp_servers.shared]\ncommand = 'true'\n");
    play(files, async |stage| {
        let missing = stage.server_in("missing", ServerState::Failed).await;
        let reason = missing.reason.unwrap();
        assert_eq!(reason.code, "spawn-failed");
        assert!(
            reason.message.contains("/nonexistent/server"),
            "{}",
            reason.message
        );
        let exits = stage.server_in("exits", ServerState::Failed).await;
        let reason = exits.reason.unwrap();
        assert_eq!(reason.stderr, ["oh dear"]);
        for (name, state, code) in [
            ("off", ServerState::Disabled, "server-disabled"),
            ("empty", ServerState::Invalid, "invalid-config"),
            ("shared", ServerState::Pending, "pending-trust"),
        ] {
            let server = stage.house.server(name).await.unwrap();
            assert_eq!(server.state, state, "{server:?}");
            let reason = server.reason.unwrap();
            assert_eq!(reason.code, code, "{name}");
        }
        let all = stage.house.servers().await.unwrap();
        let names: Vec<&str> = all.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["empty", "exits", "missing", "off", "shared"]);
        let unknown = stage.house.server("of").await.unwrap_err();
        assert_eq!(unknown.status, RefusalStatus::Unknown);
        assert_eq!(unknown.code, "unknown-server");
        assert!(
            unknown.hints.iter().any(|hint| hint.contains("`off`")),
            "{unknown:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn servers_that_are_not_selected_and_those_within_the_gateway_are_told_apart() {
    let script = Script::new();
    let mut files = Files::with(&[entry("a", &script, ""), entry("b", &script, "")].concat());
    files.selection = Some(vec!["a"]);
    files.has_built_in = true;
    play(files, async |stage| {
        stage.connected("a").await;
        let left_out = stage.house.server("b").await.unwrap();
        assert_eq!(left_out.state, ServerState::Disabled);
        let reason = left_out.reason.unwrap();
        assert!(
            reason.message.contains("not among those"),
            "{}",
            reason.message
        );
        let built_in = stage.connected("workspace").await;
        assert!(built_in.is_built_in && built_in.tools > 0);
        assert_eq!((built_in.scope.as_str(), built_in.file), ("built-in", None));
        let removed = stage.house.remove_server(ana(), "workspace").await;
        assert_eq!(removed.unwrap_err().status, RefusalStatus::Conflict);
    })
    .await;
}

#[tokio::test]
async fn the_gateway_says_what_it_is_and_ends_when_it_is_told() {
    let files = Files::with(&entry("good", &Script::new(), ""));
    play(files, async |stage| {
        stage.connected("good").await;
        let facts = stage.house.facts();
        assert_eq!(facts.version, env!("CARGO_PKG_VERSION"));
        assert_eq!(facts.pid, std::process::id());
        assert_eq!(facts.url, stage.url);
        assert!(facts.directory.trim_end_matches('/').ends_with("project"));
        assert_eq!(facts.authentication, Authentication::Open);
        assert_eq!(facts.tool_search, "auto");
        assert_eq!(facts.processes, 1);
        assert!(stage.house.readiness().ready);
        for _twice in 0..2 {
            stage.house.stop(ana()).await.unwrap();
        }
        let readiness = stage.house.readiness();
        assert!(!readiness.ready);
        assert_eq!(readiness.waiting_for, ["the gateway is about to end"]);
        // Once it was heard, twice is as good as once.
        while stage.n_ends.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
