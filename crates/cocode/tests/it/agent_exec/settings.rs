//! What an agent may do: rules, settings, profiles, what an organization allows, and the sandbox.

use cocode_testkit::{ModelFormat, ModelScript, ModelTurn, Script};
use serde_json::json;

use super::{FORMATS, Stage, assert_contains, calls, says, shell};
use crate::fronts::Client;
use crate::harness::with_system_files;
use crate::permissions::asked;

#[test]
fn a_tool_that_a_rule_denies_is_not_shown_and_not_called() {
    for format in FORMATS {
        let script = ModelScript::new()
            .turn(shell("c1", "touch called"))
            .turn(says("I may not."));
        let stage = Stage::new(format, script);
        stage
            .home
            .run(["permissions", "deny", "shell"])
            .with_code(0);
        let events = stage.events(&["--sandbox", "workspace-write", "Touch it."], 0);
        let tools = stage.tools(0);
        assert!(tools.iter().any(|tool| tool == "read"), "{tools:?}");
        assert!(!tools.iter().any(|tool| tool == "shell"), "{tools:?}");
        assert_eq!(events.of("call_ended")[0]["is_error"], true);
        assert_contains(&stage.results(1)[0], "Not called");
        assert!(!stage.home.project().join("called").exists(), "{format:?}");
    }
}

#[test]
fn where_a_rule_wants_to_ask_and_nobody_is_asked_nothing_is_done() {
    let server = Script::new().on("tools/call").text_result("done").http();
    let two = ModelTurn::new()
        .call("c1", "read", &json!({"path": "a"}))
        .call("c2", "mcp__web__echo", &json!({"text": "x"}));
    let script = ModelScript::new()
        .turn(calls("w", "wait_for_servers", &json!({})))
        .turn(two)
        .turn(says("Neither."));
    let stage = Stage::new(ModelFormat::Responses, script);
    let entry = format!("[mcp_servers.web]\nurl = '{}'\n", server.url());
    stage.home.user_file("mcp.toml", &entry);
    stage.home.project_file("a", "text of a");
    for rule in ["read", "mcp__web__*"] {
        stage.home.run(["permissions", "ask", rule]).with_code(0);
    }
    stage
        .run(&["--sandbox", "danger-full-access", "Do both."])
        .with_code(0);
    for result in stage.results(2) {
        assert_contains(&result, "Not called");
    }
    assert_eq!(
        server.requests().count(|request| request.is("tools/call")),
        0
    );
    // What is asked about is shown all the same.
    assert!(stage.tools(1).iter().any(|tool| tool == "mcp__web__echo"));
}

#[test]
fn tools_of_servers_that_may_write_are_not_called_read_only() {
    let server = Script::new().on("tools/call").text_result("done").http();
    let turn = |id: &str| calls(id, "mcp__web__echo", &json!({"text": "x"}));
    let script = ModelScript::new()
        .turn(calls("w1", "wait_for_servers", &json!({})))
        .turn(turn("c1"))
        .turn(says("No."))
        .turn(calls("w2", "wait_for_servers", &json!({})))
        .turn(turn("c2"))
        .turn(says("Yes."));
    let stage = Stage::new(ModelFormat::Anthropic, script);
    let entry = format!("[mcp_servers.web]\nurl = '{}'\n", server.url());
    stage.home.user_file("mcp.toml", &entry);
    stage.run(&["Call it."]).with_code(0);
    assert_contains(&stage.results(2)[0], "Not called");
    stage
        .run(&["--sandbox", "workspace-write", "Call it."])
        .with_code(0);
    assert_contains(&stage.results(5)[0], "done");
}

#[test]
fn what_is_configured_for_agents_counts_and_the_command_line_counts_more() {
    let write = |id: &str| calls(id, "write", &json!({"path": id, "content": "x"}));
    let script = ModelScript::new()
        .turn(write("c1"))
        .turn(says("Written."))
        .turn(write("c2"))
        .turn(says("Not written."));
    let stage = Stage::new(ModelFormat::Chat, script);
    stage.home.user_file(
        "config.toml",
        "[agent]\nsandbox = 'workspace-write'\ninstructions = 'Speak of kiwis.'\n",
    );
    let events = stage.events(&["Write."], 0);
    assert_eq!(events.0[0]["sandbox"], "workspace-write");
    assert!(stage.home.project().join("c1").exists());
    assert_contains(&stage.bodies()[0].to_string(), "Speak of kiwis.");
    stage
        .run(&["--sandbox", "read-only", "Write."])
        .with_code(0);
    assert_contains(&stage.results(3)[0], "read-only");
    assert!(!stage.home.project().join("c2").exists());
}

#[test]
fn a_profile_counts_and_is_kept_with_the_conversation() {
    let mut script = ModelScript::new();
    for n in 0..4 {
        script = script.turn(shell(&format!("c{n}"), &format!("echo {n}")));
    }
    let stage = Stage::new(ModelFormat::Anthropic, script);
    stage.home.user_file(
        "config.toml",
        "[agent.profiles.short]\nmodel = 'claude-tiny'\nprovider = 'anthropic'\nmax_steps = 2\n\
         sandbox = 'workspace-write'\ninstructions = 'Be short.'\n",
    );
    let words = ["exec", "--json", "--profile", "short", "Go."];
    let output = stage.cocode(&words).output().unwrap();
    let finished = crate::harness::Finished::of(output).with_code(1);
    let events = super::Events::read(&finished.stdout);
    assert_eq!(events.end()["ending"], "too_many_steps");
    let body = &stage.bodies()[0];
    assert_eq!(body["model"], "claude-tiny");
    assert_contains(&body.to_string(), "Be short.");
    let words = ["exec", "--json", "--resume", &events.id(), "Go on."];
    let output = stage.cocode(&words).output().unwrap();
    let finished = crate::harness::Finished::of(output).with_code(1);
    let events = super::Events::read(&finished.stdout);
    // Who does not name the profile again gets no more than a script usually does.
    assert_eq!(events.0[0]["sandbox"], "read-only");
    assert_eq!(stage.bodies()[3]["model"], "claude-tiny");
    let finished = stage.run(&["--profile", "shrot", "Go."]).with_code(2);
    finished.complains(&["there is no profile `shrot`", "did you mean `short`?"]);
}

#[test]
fn the_project_can_tell_the_model_and_cannot_free_the_agent() {
    let script = ModelScript::new().turn(says("I see."));
    let stage = Stage::new(ModelFormat::Anthropic, script);
    stage.home.project_file("AGENTS.md", "Tabs, never spaces.");
    let free = "[agent]\nsandbox = 'danger-full-access'\n";
    stage.home.project_file(".cocode/config.toml", free);
    let events = stage.events(&["Hello."], 0);
    assert_eq!(events.0[0]["sandbox"], "read-only");
    assert_contains(&stage.bodies()[0].to_string(), "Tabs, never spaces.");
}

/// A directory that is not among the places for temporary files.
#[cfg(target_os = "linux")]
fn outside() -> tempfile::TempDir {
    tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_writes_only_where_the_sandbox_lets_it() {
    let (outside, other) = (outside(), outside());
    let all = |id: &str| {
        let places = [
            "inside".to_owned(),
            outside.path().join("new").display().to_string(),
            other.path().join("new").display().to_string(),
        ];
        let commands = places.map(|place| format!("touch '{place}' && echo wrote {place}"));
        shell(id, &format!("{}; true", commands.join("; ")))
    };
    let script = ModelScript::new()
        .turn(all("c1"))
        .turn(says("One."))
        .turn(all("c2"))
        .turn(says("Two."))
        .turn(all("c3"))
        .turn(says("Three."));
    let stage = Stage::new(ModelFormat::Responses, script);
    let inside = stage.home.project().join("inside");
    let [out, added] = [&outside, &other].map(|place| place.path().join("new"));
    let exist = || [&inside, &out, &added].map(|path| path.exists());
    stage.run(&["Touch."]).with_code(0);
    assert_eq!(exist(), [false, false, false], "{}", stage.results(1)[0]);
    let directory = other.path().to_str().unwrap();
    let words = [
        "--sandbox",
        "workspace-write",
        "--add-dir",
        directory,
        "Touch.",
    ];
    stage.run(&words).with_code(0);
    assert_eq!(exist(), [true, false, true], "{}", stage.results(3)[0]);
    stage
        .run(&["--sandbox", "danger-full-access", "Touch."])
        .with_code(0);
    assert_eq!(exist(), [true, true, true], "{}", stage.results(5)[0]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_model_cannot_leave_the_sandbox_where_nobody_is_asked() {
    let outside = outside();
    let file = outside.path().join("new");
    let command = format!("touch '{}'", file.display());
    let arguments = json!({"command": command, "unconfined": true, "justification": "please"});
    let script = ModelScript::new()
        .turn(calls("c1", "shell", &arguments))
        .turn(calls("c2", "write", &json!({"path": file, "content": "x"})))
        .turn(calls(
            "c3",
            "write",
            &json!({"path": "../escaped", "content": "x"}),
        ))
        .turn(says("No."));
    let stage = Stage::new(ModelFormat::Chat, script);
    stage
        .run(&["--sandbox", "workspace-write", "Get out."])
        .with_code(0);
    assert!(!file.exists());
    assert!(!stage.home.project().join("../escaped").exists());
    assert!(!stage.bodies()[0].to_string().contains("unconfined"));
}

#[test]
fn system_an_organization_bounds_what_anybody_may_ask_for() {
    let write = |id: &str| calls(id, "write", &json!({"path": id, "content": "x"}));
    let script = ModelScript::new()
        .turn(write("before"))
        .turn(says("Written."))
        .turn(write("lowered"))
        .turn(says("Not written."))
        .turn(write("resumed"))
        .turn(says("Not written any more."));
    let stage = Stage::new(ModelFormat::Anthropic, script);
    let config = "[agent]\nsandbox = 'workspace-write'\n\n\
                  [agent.profiles.free]\nsandbox = 'danger-full-access'\n";
    stage.home.user_file("config.toml", config);
    let id = stage.events(&["Write."], 0).id();
    assert!(stage.home.project().join("before").exists());
    let policy = "[agent]\nmax_sandbox = 'read-only'\napproval_policies = ['never']\n";
    let system = with_system_files(&[("policy.toml", policy)]);
    for words in [
        &["--sandbox", "workspace-write", "Write."][..],
        &["--profile", "free", "Write."],
        &["--approval-policy", "on-request", "Write."],
    ] {
        let finished = system.run(&stage.exec(words)).with_code(6);
        finished.complains(&["your organization", "code: blocked-by-policy"]);
    }
    system.run(&stage.exec(&["Write."])).with_code(0);
    system
        .run(&stage.exec(&["--resume", &id, "Write."]))
        .with_code(0);
    for name in ["lowered", "resumed"] {
        assert!(!stage.home.project().join(name).exists(), "{name}");
    }
}

#[test]
fn conversation_does_not_go_on_in_a_directory_that_has_become_a_link() {
    let script = ModelScript::new()
        .turn(says("Begun."))
        .turn(says("Gone on."));
    let stage = Stage::new(ModelFormat::Anthropic, script);
    let inside = |name: &str| stage.home.project().join(name);
    for name in ["one", "target"] {
        std::fs::create_dir(inside(name)).unwrap();
    }
    let one = inside("one");
    let one = one.to_str().unwrap();
    let id = stage.events(&["-C", one, "Begin."], 0).id();
    std::fs::rename(inside("one"), inside("old")).unwrap();
    std::os::unix::fs::symlink(inside("target"), inside("one")).unwrap();
    let finished = stage.run(&["--resume", &id, "Go on."]).with_code(2);
    finished.complains(&["has become a link to", "`-C DIR` names the directory"]);
    let resumed = stage.events(&["--resume", &id, "-C", one, "Go on."], 0);
    assert!(resumed.0[0]["cwd"].as_str().unwrap().ends_with("/target"));
}

#[test]
fn a_served_conversation_goes_on_within_what_is_allowed_now() {
    let write = |id: &str| calls(id, "write", &json!({"path": id, "content": "x"}));
    let script = ModelScript::new()
        .turn(write("before"))
        .turn(says("Written."))
        .turn(write("after"))
        .turn(says("Not written."));
    let stage = Stage::new(ModelFormat::Anthropic, script);
    let serve = |more: &[&str]| {
        let words = ["mcp", "serve", "--agent", "--provider", "anthropic"];
        let words: Vec<&str> = words.iter().chain(more).copied().collect();
        let mut client = Client::start(&mut stage.cocode(&words));
        client.open(&json!({}));
        client.skip_notifications();
        client
    };
    let mut client = serve(&[]);
    let arguments = json!({
        "prompt": "Write.", "sandbox": "workspace-write", "approval-policy": "never",
    });
    let begun = json!({"name": "cocode", "arguments": arguments});
    let answer = client.ask(1, "tools/call", &begun);
    let id = answer["result"]["structuredContent"]["session_id"].clone();
    assert!(stage.home.project().join("before").exists(), "{answer}");
    assert_eq!(client.leave().0, Some(0));
    let mut client = serve(&["--max-sandbox", "read-only"]);
    let arguments = json!({"session_id": id, "message": "Write again."});
    let gone_on = json!({"name": "cocode-reply", "arguments": arguments});
    let answer = client.ask(1, "tools/call", &gone_on);
    assert_eq!(
        answer["result"]["structuredContent"]["response"],
        "Not written."
    );
    assert!(!stage.home.project().join("after").exists());
    assert_contains(&stage.results(3)[0], "read-only");
    assert_eq!(client.leave().0, Some(0));
    // It is the conversation of those clients, and of nobody else.
    let finished = stage.run(&["--resume", id.as_str().unwrap(), "Mine?"]);
    finished
        .with_code(2)
        .complains(&["there is no conversation", "code: conversation-failed"]);
}

#[test]
fn served_callers_get_workspace_write_at_most_by_default() {
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let made = outside.path().join("made");
    let touch = json!({"command": format!("touch {}", made.display())});
    let script = || {
        let turn = ModelScript::new().turn(calls("c1", "shell", &touch));
        turn.turn(says("Done."))
    };
    let ask = |more: &[&str], wanted: &serde_json::Value| {
        let stage = Stage::new(ModelFormat::Anthropic, script());
        let words = ["mcp", "serve", "--agent", "--provider", "anthropic"];
        let words: Vec<&str> = words.iter().chain(more).copied().collect();
        let mut client = Client::start(&mut stage.cocode(&words));
        client.open(&json!({}));
        client.skip_notifications();
        let mut arguments = json!({"prompt": "Touch it.", "approval-policy": "never"});
        for (key, value) in wanted.as_object().unwrap() {
            arguments[key] = value.clone();
        }
        let call = json!({"name": "cocode", "arguments": arguments});
        let answer = client.ask(1, "tools/call", &call);
        assert_eq!(client.leave().0, Some(0));
        answer["result"].to_string()
    };
    let full = json!({"sandbox": "danger-full-access"});
    let answer = ask(&[], &full);
    assert!(answer.contains("`workspace-write` at most"), "{answer}");
    let elsewhere = json!({"cwd": outside.path(), "sandbox": "workspace-write"});
    let answer = ask(&[], &elsewhere);
    assert!(answer.contains("which is not below"), "{answer}");
    assert!(!made.exists());
    let answer = ask(&["--max-sandbox", "danger-full-access"], &full);
    assert!(made.exists(), "{answer}");
}

#[test]
fn a_model_that_calls_no_tools_is_shown_none() {
    for format in FORMATS {
        let stage = Stage::new(format, ModelScript::new().turn(says("Words only.")));
        let blind = format!("[models.{}]\ntools = false\n", stage.model_name());
        stage.home.user_file("config.toml", &blind);
        stage.run(&["Hello."]).with_code(0);
        assert!(stage.tools(0).is_empty(), "{format:?}");
    }
}

#[test]
fn a_person_at_the_terminal_is_asked_where_the_policy_wants_it() {
    for (typed, is_written) in [("y\n", true), ("n\n", false)] {
        let write = calls("c1", "write", &json!({"path": "new", "content": "x"}));
        let script = ModelScript::new().turn(write).turn(says("So be it."));
        let stage = Stage::new(ModelFormat::Anthropic, script);
        let words = ["--approval-policy", "untrusted", "Write."];
        let mut command = stage.exec(&words);
        command.args(["--sandbox", "workspace-write"]);
        let (code, stdout, seen) = asked(command, typed);
        assert_eq!((code, stdout.as_str()), (Some(0), "So be it.\n"), "{seen}");
        assert_contains(&seen, "May this be done?");
        let file = stage.home.project().join("new");
        assert_eq!(file.exists(), is_written, "{seen}");
    }
}

#[test]
fn a_setting_that_cannot_be_read_is_said_and_a_script_goes_on_without_it() {
    let script = ModelScript::new().turn(ModelTurn::new().text("Hello."));
    let stage = Stage::new(ModelFormat::Anthropic, script);
    let wrong = "[agent]\nsandbox = \"workspace-writ\"\n";
    stage.home.user_file("config.toml", wrong);
    let finished = stage.run(&["--json", "hi"]).with_code(0);
    assert_contains(&finished.stderr, "workspace-writ");
    let events = super::Events::read(&finished.stdout);
    assert_eq!(events.0[0]["sandbox"], "read-only");
    assert_eq!(events.end()["ending"], "done");
}

#[test]
fn a_setting_that_cannot_be_read_makes_a_served_agent_ask_before_anything() {
    // Whoever serves an agent may have a person to ask: nobody is asked about what only reads, unless
    // somebody seems to have wanted that. This client can ask nobody.
    for (config, shown) in [
        ("[agent]\nmax_steps = 9\n", "all is well"),
        ("[agent]\napproval_policy = 'untrusdet'\n", "Not called"),
        ("[agent]\nmax_steps = 'nine'\n", "Not called"),
    ] {
        let script = ModelScript::new()
            .turn(shell("c1", "echo all is well"))
            .turn(says("So it is."));
        let stage = Stage::new(ModelFormat::Anthropic, script);
        stage.home.user_file("config.toml", config);
        let words = ["mcp", "serve", "--agent", "--provider", "anthropic"];
        let mut client = Client::start(&mut stage.cocode(&words));
        client.open(&json!({}));
        client.skip_notifications();
        let begun = json!({"name": "cocode", "arguments": {"prompt": "Say it."}});
        let answer = client.ask(1, "tools/call", &begun);
        assert_eq!(
            answer["result"]["structuredContent"]["response"], "So it is.",
            "{answer}"
        );
        assert_contains(&stage.results(1)[0], shown);
        assert_eq!(client.leave().0, Some(0));
    }
}
