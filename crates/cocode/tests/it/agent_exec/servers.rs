//! Tasks of many steps over servers that nobody here wrote. `cargo xtask peers` installs them.

use std::fs;
use std::path::{Path, PathBuf};

use cocode_testkit::{HttpRequest, ModelFormat, ModelScript, ModelTurn};
use serde_json::json;

use super::{Stage, assert_contains, calls, results, says};

const NODE: &str = "npm/node_modules/node/bin/node";
const FILES: &str = "npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";
const EVERYTHING: &str = "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
const TIME: &str = "python/bin/mcp-server-time";

/// Something that `cargo xtask peers` installed.
fn peer(path: &str) -> PathBuf {
    let root = std::env::var_os("COCODE_PEERS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"),
        PathBuf::from,
    );
    let file = root.join(path);
    assert!(file.exists(), "{path} is missing: run `cargo xtask peers`");
    file
}

/// Has three servers of others.
fn add_servers(stage: &Stage, directory: &Path) {
    let [node, files, everything, time] = [NODE, FILES, EVERYTHING, TIME].map(peer);
    // As long as a model waits for servers: on a busy machine they take their time.
    let patient = "startup_timeout_sec = 30\n";
    let entries = format!(
        "[mcp_servers.files]\ncommand = '{node}'\nargs = ['{files}', '{directory}']\n{patient}\n\
         [mcp_servers.everything]\ncommand = '{node}'\nargs = ['{everything}']\n{patient}\n\
         [mcp_servers.time]\ncommand = '{time}'\nargs = ['--local-timezone', 'UTC']\n{patient}",
        node = node.display(),
        files = files.display(),
        everything = everything.display(),
        time = time.display(),
        directory = directory.display(),
    );
    stage.home.user_file("mcp.toml", &entries);
    // So much that all tools are shown.
    let large = format!("[models.{}]\ncontext_window = 400000\n", stage.model_name());
    stage.home.user_file("config.toml", &large);
}

/// Reads a file, converts a time and adds numbers side by side, writes down what came of it with a
/// server and reads that with a tool of our own.
fn task(format: ModelFormat, directory: &Path) -> ModelScript {
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (read, written) = (path("numbers.txt"), path("report.txt"));
    let convert = json!({
        "source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo",
    });
    let side_by_side = ModelTurn::new()
        .text("I look at everything.")
        .call("a1", "mcp__files__read_text_file", &json!({ "path": read }))
        .call("a2", "mcp__time__convert_time", &convert)
        .call("a3", "mcp__everything__get-sum", &json!({"a": 19, "b": 23}))
        .call(
            "a4",
            "mcp__everything__echo",
            &json!({"message": "echo it"}),
        )
        .call("a5", "mcp__everything__get-tiny-image", &json!({}));
    let report = move |request: &HttpRequest| {
        let told = results(format, &request.json());
        let content = told.join("\n---\n");
        let arguments = json!({"path": written, "content": content});
        calls("b1", "mcp__files__write_file", &arguments)
    };
    let shown = path("report.txt");
    ModelScript::new()
        .turn(calls("w1", "wait_for_servers", &json!({})))
        .turn(side_by_side)
        .computed(report)
        .turn(calls(
            "c1",
            "mcp__files__read_text_file",
            &json!({ "path": shown }),
        ))
        .turn(calls(
            "d1",
            "mcp__files__read_text_file",
            &json!({"path": "/etc/passwd"}),
        ))
        .turn(says("The report is written."))
}

fn servers_of_others_do_a_task(format: ModelFormat) {
    let directory = tempfile::tempdir().unwrap();
    let directory = fs::canonicalize(directory.path()).map(|path| (directory, path));
    let (_kept, directory) = directory.unwrap();
    fs::write(directory.join("numbers.txt"), "19 and 23\n").unwrap();
    let stage = Stage::new(format, task(format, &directory));
    add_servers(&stage, &directory);
    let words = [
        "--sandbox",
        "workspace-write",
        "Write a report of everything.",
    ];
    let events = stage.events(&words, 0);
    assert_eq!(events.end()["response"], "The report is written.");
    assert_eq!(events.end()["steps"], 6);
    let told = stage.results(2);
    for (told, part) in told.iter().zip(["19 and 23", "21:30", "42", "echo it"]) {
        assert_contains(told, part);
    }
    assert_eq!(told.len(), 5);
    let is_image_seen = stage.bodies()[2].to_string().contains("iVBORw0KGgo");
    assert_eq!(is_image_seen, format != ModelFormat::Chat, "{told:?}");
    let report = fs::read_to_string(directory.join("report.txt")).unwrap();
    assert_contains(&report, "19 and 23\n");
    assert_contains(&report, "21:30");
    assert_contains(&stage.results(4)[0], "echo it");
    // What the server itself does not allow is told as an error, and the model goes on.
    let last = events.of("call_ended");
    let last = last.last().unwrap();
    assert_eq!(last["is_error"], true, "{last}");
    for tool in [
        "mcp__files__write_file",
        "mcp__time__convert_time",
        "read",
        "shell",
    ] {
        assert!(stage.tools(1).iter().any(|name| name == tool), "{tool}");
    }
}

#[test]
fn peers_do_a_task_for_a_model_of_anthropic() {
    servers_of_others_do_a_task(ModelFormat::Anthropic);
}

#[test]
fn peers_do_a_task_for_a_model_of_responses() {
    servers_of_others_do_a_task(ModelFormat::Responses);
}

#[test]
fn peers_do_a_task_for_a_model_of_chat_completions() {
    servers_of_others_do_a_task(ModelFormat::Chat);
}
