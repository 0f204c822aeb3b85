//! The dashboard of a real gateway, used by a person with a real browser: Debian's Chromium, driven by
//! the scripts of `peers/dashboard`, each of which ends with an error if the page complains of anything.

mod hostile;

use std::path::Path;
use std::process::Command;

use cocode_testkit::Script;
use serde_json::{Value, json};

use crate::gateway::Running;
use crate::gateway_peers::{NODE, installed, script};
use crate::harness::Finished;
use crate::home::Home;
use crate::sign_in::{NOTES, SignIn};
use crate::status::entry;

/// The reference server, which reports progress and asks questions.
const EVERYTHING: &str = "everything";

/// Adds the reference server.
fn with_everything(home: &Home) {
    let program = installed(NODE);
    let directory = "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    let program = [program, installed(directory)].map(|path| path.to_str().unwrap().to_owned());
    let words = ["mcp", "add", EVERYTHING, "--"].map(str::to_owned);
    home.run(words.iter().chain(&program)).with_code(0);
}

/// A gateway, in which the reference server is ready.
fn gateway_with_everything(home: &Home) -> Running {
    with_everything(home);
    let mut gateway = Running::start(home, &[]);
    gateway.until_state(EVERYTHING, "ready");
    gateway
}

/// Runs a scenario, which has to go through to its end, and gives its steps.
#[track_caller]
fn drive(gateway: &Running, scenario: &str, settings: &[(&str, &str)]) -> Vec<Value> {
    let mut command = driver(gateway, scenario);
    for (name, value) in settings {
        command.env(format!("COCODE_DASHBOARD_{name}"), value);
    }
    let finished = Finished::of(command.output().unwrap());
    assert_eq!(finished.code, Some(0), "{scenario}: {finished:#?}");
    let steps = finished.stdout.lines().map(serde_json::from_str);
    let steps: Vec<Value> = steps.map(Result::unwrap).collect();
    let last = steps.last().unwrap();
    assert_eq!(last["step"], "end", "{steps:#?}");
    for complaints in ["console_errors", "csp_violations", "foreign_requests"] {
        assert_eq!(last[complaints], json!([]), "{steps:#?}");
    }
    steps
}

#[expect(clippy::disallowed_methods, reason = "the script is the test")]
fn driver(gateway: &Running, scenario: &str) -> Command {
    let mut command = Command::new(installed(NODE));
    let dashboard = &gateway.first["dashboard"];
    command
        .arg(script(&format!("dashboard/{scenario}.mjs")))
        .env("COCODE_PEERS", installed("."))
        .env("COCODE_DASHBOARD_URL", dashboard["url"].as_str().unwrap())
        .env("COCODE_DASHBOARD_CODE", dashboard["code"].as_str().unwrap());
    command
}

#[test]
fn system_a_server_is_added_and_seen_to_connect() {
    let home = Home::new();
    let gateway = Running::start(&home, &[]);
    let everything = "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    let command = format!(
        "{} {}",
        installed(NODE).display(),
        installed(everything).display()
    );
    drive(&gateway, "add-server-and-connect", &[("COMMAND", &command)]);
    let listed = home.json(&["mcp", "list"]);
    assert!(listed.to_string().contains("added"), "{listed}");
}

#[test]
fn system_a_tool_is_called_with_progress_and_the_plot_moves() {
    let home = Home::new();
    let gateway = gateway_with_everything(&home);
    let settings = [
        ("SERVER", EVERYTHING),
        ("TOOL", "trigger-long-running-operation"),
        ("ARGUMENTS", r#"{"duration":3,"steps":6}"#),
    ];
    drive(&gateway, "call-with-progress-and-plot", &settings);
}

#[test]
fn system_a_server_of_the_project_is_approved() {
    let home = Home::new();
    let good = Script::new().stdio();
    let both = [entry("shared", &good), entry("other", &good)].concat();
    home.project_file(".mcp.toml", &both);
    let mut gateway = Running::start(&home, &[]);
    let settings = [("SERVER", "shared"), ("REJECT", "other")];
    drive(&gateway, "approve-trust", &settings);
    gateway.until_state("shared", "ready");
}

#[test]
fn system_what_has_changed_about_an_approved_server_is_shown_line_by_line() {
    let home = Home::new();
    let good = Script::new().stdio();
    let with = |more: &str| format!("{}{more}\n", entry("shared", &good));
    home.project_file(".mcp.toml", &with("description = 'As it was.'"));
    home.run(["mcp", "trust", "--yes", "shared"]).with_code(0);
    home.project_file(".mcp.toml", &with("description = 'As it is.'"));
    let mut gateway = Running::start(&home, &[]);
    let settings = [("SERVER", "shared"), ("GONE", "As it was.")];
    drive(&gateway, "approve-trust", &settings);
    gateway.until_state("shared", "ready");
}

/// Makes five calls that somebody has to allow, with this said besides.
fn drive_many_calls(more: &[(&str, &str)]) {
    let home = Home::new();
    home.user_file(
        "config.toml",
        "[permissions]\nask = ['mcp__everything__*']\n",
    );
    let gateway = gateway_with_everything(&home);
    let tools = json!([
        ["echo", { "message": "a" }],
        ["get-sum", { "a": 1, "b": 2 }],
        ["get-env", {}],
        ["get-tiny-image", {}],
        ["get-structured-content", { "location": "New York" }],
    ]);
    let tools = tools.to_string();
    let settings = [("SERVER", EVERYTHING), ("TOOLS", tools.as_str())];
    let settings: Vec<_> = settings.iter().chain(more).copied().collect();
    drive(&gateway, "many-calls", &settings);
}

#[test]
fn system_calls_that_wait_never_keep_their_answers_out() {
    drive_many_calls(&[]);
}

#[test]
fn system_calls_that_wait_keep_no_answers_out_where_tabs_cannot_agree() {
    drive_many_calls(&[("LOCKS", "no")]);
}

#[test]
fn system_views_follow_what_happens_and_keep_what_is_open() {
    let home = Home::new();
    let gateway = gateway_with_everything(&home);
    let settings = [
        ("SERVER", EVERYTHING),
        ("TOOL", "trigger-long-running-operation"),
        ("ARGUMENTS", r#"{"duration":3,"steps":3}"#),
    ];
    drive(&gateway, "live", &settings);
}

#[test]
fn system_whoever_comes_is_told_how_to_get_in_and_what_is_wrong() {
    let home = Home::new();
    home.user_file("config.toml", "no_such_setting = 1\n");
    let gateway = Running::start(&home, &[]);
    drive(&gateway, "words", &[("PROBLEM", "no_such_setting")]);
}

#[test]
fn system_the_question_of_a_server_is_answered_in_the_inbox() {
    let home = Home::new();
    let gateway = gateway_with_everything(&home);
    let settings = [
        ("SERVER", EVERYTHING),
        ("TOOL", "trigger-elicitation-request"),
        ("ANSWER", r#"{"name":"Ana of the inbox"}"#),
        ("EXPECT", "Ana of the inbox"),
    ];
    drive(&gateway, "answer-elicitation", &settings);
}

#[test]
fn system_a_call_is_allowed_by_somebody_who_sees_what_and_why() {
    let home = Home::new();
    home.user_file(
        "config.toml",
        "[permissions]\nask = ['mcp__everything__echo']\n",
    );
    let gateway = gateway_with_everything(&home);
    let settings = [
        ("SERVER", EVERYTHING),
        ("TOOL", "echo"),
        (
            "ARGUMENTS",
            r#"{"message":"first\nsecond","extra":{"a":[1,2]}}"#,
        ),
        ("EXPECT", "second"),
        ("RULE", "mcp__everything__echo"),
    ];
    drive(&gateway, "allow-call", &settings);
}

#[test]
fn system_settings_are_approved_once_all_of_them_was_shown() {
    let home = Home::new();
    let file = home.project_file(".cocode/config.toml", "# nothing\n");
    let gateway = Running::start(&home, &[]);
    let settings = [("FILE", file.to_str().unwrap())];
    drive(&gateway, "trust-settings", &settings);
}

#[test]
fn system_forms_are_made_of_schemas_of_every_kind() {
    let home = Home::new();
    let gateway = Running::start(&home, &[]);
    drive(&gateway, "forms", &[]);
}

#[test]
fn system_only_addresses_of_web_pages_become_links() {
    let home = Home::new();
    let gateway = Running::start(&home, &[]);
    drive(&gateway, "links", &[]);
}

#[test]
fn system_logs_go_on_and_calls_do_not_hang() {
    let home = Home::new();
    let gateway = gateway_with_everything(&home);
    let settings = [("SERVER", EVERYTHING), ("TOOL", "echo")];
    drive(&gateway, "logs", &settings);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the script is the test")]
fn system_parts_that_need_no_browser_do_what_they_should() {
    let mut command = Command::new(installed(NODE));
    let finished = Finished::of(command.arg(script("dashboard/pure.mjs")).output().unwrap());
    assert_eq!(finished.code, Some(0), "{finished:#?}");
}

#[test]
fn system_somebody_logs_in_to_a_server_that_wants_it() {
    let signing = SignIn::new();
    let mut gateway = Running::start(&signing.home, &[]);
    gateway.until_state(NOTES, "needs-auth");
    drive(&gateway, "log-in", &[("SERVER", NOTES)]);
    gateway.until_state(NOTES, "ready");
}

#[test]
fn system_a_token_is_made_works_and_is_revoked() {
    let home = Home::new();
    let gateway = Running::start(&home, &[]);
    drive(&gateway, "revoke-token", &[]);
}

#[test]
fn system_every_view_can_be_used_by_everybody() {
    let home = Home::new();
    // Something waits in the inbox, and for approval.
    let rules = "[permissions]\nask = ['mcp__everything__get-sum']\n";
    home.user_file("config.toml", rules);
    home.project_file(".cocode/config.toml", rules);
    home.project_file(".mcp.toml", &entry("shared", &Script::new().stdio()));
    let gateway = gateway_with_everything(&home);
    let settings = [
        ("SERVER", EVERYTHING),
        ("TOOL", "echo"),
        ("ARGUMENTS", r#"{"message":"looked at"}"#),
        ("ASKS", r#"["get-sum",{"a":1,"b":2}]"#),
    ];
    drive(&gateway, "axe-all-views", &settings);
}

#[test]
fn system_the_keyboard_is_enough() {
    let home = Home::new();
    let gateway = gateway_with_everything(&home);
    drive(&gateway, "keyboard", &[("SERVER", EVERYTHING)]);
}

#[test]
fn system_a_lost_stream_is_said_and_found_again() {
    let home = Home::new();
    let gateway = gateway_with_everything(&home);
    drive(&gateway, "lost-stream", &[("SERVER", EVERYTHING)]);
}

#[test]
fn system_pictures_are_taken_of_every_view() {
    let home = Home::new();
    let gateway = gateway_with_everything(&home);
    let directory = home.home().join("pictures");
    std::fs::create_dir(&directory).unwrap();
    let settings = [
        ("DIRECTORY", directory.to_str().unwrap()),
        ("SERVER", EVERYTHING),
        ("TOOL", "echo"),
    ];
    drive(&gateway, "screenshots", &settings);
    let pictures = std::fs::read_dir(&directory).unwrap().count();
    assert!(pictures >= 8, "{pictures}");
    keep(&directory);
}

/// Keeps the pictures where somebody has asked for them, to be looked at.
#[expect(clippy::disallowed_methods, reason = "who runs the test asks for it")]
fn keep(directory: &Path) {
    let Some(wanted) = std::env::var_os("COCODE_TEST_PICTURES") else {
        return;
    };
    for picture in std::fs::read_dir(directory).unwrap() {
        let picture = picture.unwrap();
        let to = Path::new(&wanted).join(picture.file_name());
        std::fs::copy(picture.path(), to).unwrap();
    }
}
