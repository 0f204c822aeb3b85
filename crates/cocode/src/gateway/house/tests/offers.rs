//! What servers offer, what of it is found, and what it costs.

use cocode_admin::model::Verdict;
use cocode_admin::{House as _, RefusalStatus};
use cocode_testkit::Script;
use serde_json::{Value, json};

use super::stage::{Files, entry, play};

fn with_tools() -> Script {
    Script::new().on("tools/list").result(json!({ "tools": [
        {
            "name": "write_file", "title": "Write", "description": "Writes text into a file.",
            "inputSchema": { "type": "object" },
            "annotations": { "destructiveHint": true, "mood": "grim" },
        },
        { "name": "read_file", "description": "Reads a file.", "inputSchema": { "type": "object" } },
        { "name": "secret", "inputSchema": { "type": "object" }, "outputSchema": 7 },
        { "name": "hidden", "inputSchema": { "type": "object" } },
    ] }))
}

#[tokio::test]
async fn tools_are_listed_with_what_rules_and_filters_say() {
    let files = Files::with(&entry(
        "files",
        &with_tools(),
        "disabled_tools = ['hidden']",
    ));
    files.user(
        "config.toml",
        "[permissions]\ndeny = ['mcp__files__secret']\nask = ['mcp__files__write_file']\n",
    );
    play(files, async |stage| {
        let tools = stage.house.tools("files").await.unwrap();
        let told: Vec<(&str, &str, Verdict)> = tools
            .iter()
            .map(|tool| {
                (
                    tool.name.as_str(),
                    tool.qualified_name.as_str(),
                    tool.verdict,
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("hidden", "mcp__files__hidden", Verdict::Deny),
                ("read_file", "mcp__files__read_file", Verdict::Allow),
                ("secret", "mcp__files__secret", Verdict::Deny),
                ("write_file", "mcp__files__write_file", Verdict::Ask),
            ]
        );
        let last = tools.last().unwrap();
        assert_eq!(last.title.as_deref(), Some("Write"));
        let annotations: Value = last.annotations.decode().unwrap();
        assert_eq!(
            annotations,
            json!({ "destructiveHint": true, "mood": "grim" })
        );
        // What is no schema is not passed off as one.
        assert_eq!(tools[2].output_schema, None);
        assert_eq!(tools[2].annotations.as_str(), "{}");
        let prompts = stage.house.prompts("files").await.unwrap().prompts;
        assert_eq!(prompts.len(), 1);
        let resources = stage.house.resources("files").await.unwrap();
        assert_eq!(
            (resources.resources.len(), resources.templates.len()),
            (1, 0)
        );
        for refused in [
            stage.house.tools("none").await.map(drop),
            stage.house.resources("none").await.map(drop),
            stage.house.prompts("none").await.map(drop),
        ] {
            assert_eq!(refused.unwrap_err().status, RefusalStatus::Unknown);
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_not_there_offers_nothing_and_says_why() {
    let files = Files::with(
        "[mcp_servers.missing]\ncommand = '/nonexistent/server'\n\
         [mcp_servers.off]\ncommand = 'true'\nenabled = false\n",
    );
    play(files, async |stage| {
        let refused = stage.house.tools("missing").await.unwrap_err();
        assert_eq!(
            (refused.status, refused.code.as_str()),
            (RefusalStatus::ServerFailed, "spawn-failed")
        );
        let refused = stage.house.tools("off").await.unwrap_err();
        assert_eq!(refused.status, RefusalStatus::Conflict);
    })
    .await;
}

#[tokio::test]
async fn tools_of_all_servers_are_found_and_weighed() {
    let (many, some) = (entry("many", &Script::new().tools(3, 2), ""), with_tools());
    let files = Files::with(&[many, entry("files", &some, "")].concat());
    files.user(
        "config.toml",
        "[permissions]\ndeny = ['mcp__files__secret']\n",
    );
    play(files, async |stage| {
        stage.connected("many").await;
        stage.connected("files").await;
        let found = stage
            .house
            .search_tools("put text into a file", 2)
            .await
            .unwrap();
        assert_eq!(found.len(), 2);
        let first = &found[0];
        assert_eq!(
            (first.server.as_str(), first.name.as_str()),
            ("files", "write_file")
        );
        assert_eq!(first.qualified_name, "mcp__files__write_file");
        assert!(first.score > 0.0 && first.tokens > 0);
        assert!(found[1].score <= first.score);
        let all = stage.house.search_tools(" ", 100).await.unwrap();
        let names: Vec<&str> = all.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "hidden",
                "read_file",
                "write_file",
                "tool-0",
                "tool-1",
                "tool-2"
            ]
        );
        assert!(stage.house.search_tools("", 1).await.unwrap().len() == 1);
        // What is denied is not found.
        let denied = stage.house.search_tools("secret", 10).await.unwrap();
        assert!(
            denied.iter().all(|tool| tool.name != "secret"),
            "{denied:?}"
        );

        let budget = stage.house.budget().await.unwrap();
        let counted: Vec<(&str, u64)> = budget
            .servers
            .iter()
            .map(|server| (server.name.as_str(), server.tools))
            .collect();
        assert_eq!(counted, [("files", 3), ("many", 3)]);
        let of = |name: &str| {
            let of_server = all.iter().filter(|tool| tool.server == name);
            of_server.map(|tool| tool.tokens).sum::<u64>()
        };
        assert_eq!(budget.servers[0].tokens, of("files"));
        assert_eq!(budget.total, of("files") + of("many"));
        assert_eq!(budget.window, None);
    })
    .await;
}
