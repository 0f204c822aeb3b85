//! Every verb, for people and for scripts.

use cocode_testkit::Script;
use serde_json::{Value, json};

use crate::harness::{Scratch, command, mcp, received};

fn tools_script() -> Script {
    Script::new().on("tools/list").result(
        r#"{"tools":[
            {"name":"read","description":"Reads.\n\nAt length.","annotations":{"readOnlyHint":true},
             "inputSchema":{"type":"object","required":["path"],"properties":{
                "path":{"type":"string","description":"Which file"},
                "limit":{"type":"integer","default":10}}}},
            {"name":"broken"},
            {"name":"write","title":"Writes","annotations":{"destructiveHint":true},"inputSchema":{"type":"object"}}]}"#
            .replace('\n', " "),
    )
}

#[test]
fn tools_are_listed_with_marks_and_the_unusable_ones_with_their_reason() {
    let server = tools_script().stdio();
    let finished = mcp(&["tools"], &server).with_code(0);
    assert_eq!(
        finished.stdout,
        "read    Reads.  [read-only]\n\
         write   Writes  [destructive]\n\
         broken  cannot be used: it has no inputSchema\n"
    );
    assert_eq!(
        finished.stderr,
        "warning: the tool `broken` cannot be used: it has no inputSchema\n"
    );
    assert_eq!(mcp(&["tools", "-q"], &server).clean(), finished.stdout);
    let warned = mcp(&["tools", "--json"], &server).with_code(0).stderr;
    assert_eq!(
        warned,
        "{\"warning\":\"the tool `broken` cannot be used: it has no inputSchema\"}\n"
    );
}

#[test]
fn one_tool_is_shown_in_full() {
    let server = tools_script().stdio();
    assert_eq!(
        mcp(&["tools", "read"], &server).clean(),
        "read  [read-only]\n  Reads.\n\n  At length.\n\narguments\n\
        \u{20}\u{20}path   string, required  Which file\n\
        \u{20}\u{20}limit  integer, default 10\n"
    );
    let raw = mcp(&["tools", "write", "--json"], &server).clean();
    assert_eq!(
        raw,
        "{\"name\":\"write\",\"title\":\"Writes\",\"annotations\":{\"destructiveHint\":true},\"inputSchema\":{\"type\":\"object\"}}\n"
    );
    mcp(&["tools", "raed"], &server).with_code(2).complains(&[
        "lists no tool `raed`",
        "did you mean `read`?",
        "code: unknown-tool",
    ]);
}

#[test]
fn lists_of_many_pages_are_joined_and_cut_off_ones_say_so() {
    let server = Script::new().tools(5, 2).stdio();
    let joined: Value = serde_json::from_str(&mcp(&["tools", "--json"], &server).clean()).unwrap();
    assert_eq!(joined["tools"].as_array().unwrap().len(), 5);
    assert_eq!(joined.as_object().unwrap().len(), 1);
    assert_eq!(mcp(&["tools"], &server).clean().lines().count(), 5);

    let endless = Script::new().on("tools/list").repeated_cursor().stdio();
    let finished = mcp(&["tools"], &endless).with_code(0);
    finished
        .complains(&["warning: the list is not complete: the server sent the same cursor twice"]);
}

#[test]
fn resources_and_templates_are_listed() {
    let server = Script::new()
        .on("resources/templates/list")
        .result(r#"{"resourceTemplates":[{"uriTemplate":"a://{x}","name":"A","description":"All.","mimeType":"text/plain"}]}"#)
        .stdio();
    assert_eq!(
        mcp(&["resources"], &server).clean(),
        "scripted://hello  hello\n"
    );
    assert_eq!(
        mcp(&["resources", "--templates"], &server).clean(),
        "a://{x}  A: All.  [text/plain]\n"
    );
    assert_eq!(
        mcp(&["resources", "--json"], &server).clean(),
        "{\"resources\":[{\"name\":\"hello\",\"uri\":\"scripted://hello\"}]}\n"
    );
    let none = Script::new().stdio();
    let finished = mcp(&["resources", "--templates"], &none).with_code(0);
    assert_eq!(
        (finished.stdout.as_str(), finished.stderr.as_str()),
        ("", "warning: the server has no resource templates\n")
    );
}

#[test]
fn resources_are_read_as_they_are() {
    let server = Script::new()
        .on("resources/read")
        .nth(1)
        .result(r#"{"contents":[{"uri":"b:","blob":"AP+A"}]}"#)
        .stdio();
    let output = command(&["read", "b:"], &server).output().unwrap();
    assert_eq!(output.stdout, [0, 255, 128]);
    let scratch = Scratch::new();
    let path = scratch.path().join("blob");
    let finished = mcp(&["read", "b:", "--output", path.to_str().unwrap()], &server).with_code(0);
    assert_eq!(std::fs::read(&path).unwrap(), [0, 255, 128]);
    assert_eq!(finished.stdout, "");
    finished.complains(&["wrote 3 B to"]);

    let text = Script::new().stdio();
    assert_eq!(mcp(&["read", "scripted://hello"], &text).clean(), "hello");
    let raw = mcp(&["read", "scripted://hello", "--json"], &text).clean();
    assert!(raw.starts_with("{\"contents\":[{"), "{raw}");
}

#[test]
fn one_tool_is_shown_with_members_and_limits_of_its_arguments() {
    let server = Script::new()
        .on("tools/list")
        .result(r##"{"tools":[{"name":"edit","inputSchema":{"type":"object","required":["edits"],"properties":{"edits":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/edit"}},"limit":{"type":"integer","minimum":1,"maximum":9}},"$defs":{"edit":{"type":"object","required":["old"],"properties":{"new":{"type":"string","maxLength":5},"old":{"type":"string"}}}}}}]}"##)
        .stdio();
    assert_eq!(
        mcp(&["tools", "edit"], &server).clean(),
        "edit\n\narguments\n  \
         edits  array of object, at least 1 items, required\n    \
           new  string, at most 5 characters\n    \
           old  string, required\n  \
         limit  integer, at least 1, at most 9\n"
    );
}

#[test]
fn a_tool_that_needs_tasks_is_marked_and_not_called() {
    let server = Script::new()
        .on("tools/list")
        .result(r#"{"tools":[{"name":"long","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},{"name":"short","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}]}"#)
        .stdio();
    assert_eq!(
        mcp(&["tools"], &server).clean(),
        "long   [needs tasks]\nshort\n"
    );
    mcp(&["call", "long"], &server)
        .with_code(2)
        .complains(&["can only be called as a task", "code: unusable-tool"]);
}

#[test]
fn one_prompt_is_shown_in_full_and_checked_before_it_is_asked_for() {
    let server = Script::new()
        .on("prompts/list")
        .result(r#"{"prompts":[{"name":"greet","title":"Greeting","description":"Greets.","arguments":[{"name":"who","description":"Whom.","required":true},{"name":"how"}]}]}"#)
        .stdio();
    assert_eq!(
        mcp(&["prompts", "greet"], &server).clean(),
        "greet - Greeting\n  Greets.\n\narguments\n  who  required  Whom.\n  how  optional\n"
    );
    for (words, parts) in [
        (
            &["prompt", "greet"][..],
            &["prompt `greet` needs `who`", "who (required), how"][..],
        ),
        (
            &["prompt", "greet", "who=x", "hwo=y"],
            &["prompt `greet` has no argument `hwo`", "did you mean `"],
        ),
        (
            &["prompt", "gret"],
            &[
                "no prompt `gret`",
                "did you mean `greet`?",
                "unknown-prompt",
            ],
        ),
        (&["prompts", "gret"], &["did you mean `greet`?"]),
    ] {
        mcp(words, &server).with_code(2).complains(parts);
    }
    received(&server, 5, "prompts/list");
    let asked = server.received().count(|message| message.is("prompts/get"));
    assert_eq!(asked, 0);
    mcp(&["prompt", "greet", "--no-check"], &server).with_code(0);
}

#[test]
fn prompts_are_listed_and_filled_in() {
    let server = Script::new()
        .on("prompts/list")
        .result(r#"{"prompts":[{"name":"greet","description":"Greets.","arguments":[{"name":"who","required":true},{"name":"how"}]}]}"#)
        .on("prompts/get")
        .result(r#"{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}},{"role":"assistant","content":{"type":"image","data":"AAAA","mimeType":"image/png"}}],"sent":$params}"#)
        .stdio();
    assert_eq!(
        mcp(&["prompts"], &server).clean(),
        "greet  Greets.  who=… [how=…]\n"
    );
    assert_eq!(
        mcp(&["prompt", "greet", "who=5"], &server).clean(),
        "user:\nHi\n\nassistant:\n[image image/png, 3 B]\n"
    );
    let raw: Value =
        serde_json::from_str(&mcp(&["--json", "prompt", "greet", "who=5"], &server).clean())
            .unwrap();
    assert_eq!(raw["sent"]["arguments"], json!({"who": "5"}));
}

#[test]
fn arguments_are_completed() {
    let server = Script::new()
        .on("completion/complete")
        .result(r#"{"completion":{"values":["paris","parma"],"total":7},"sent":$params}"#)
        .stdio();
    let words = ["complete", "--prompt", "travel", "city", "pa", "country=it"];
    let finished = mcp(&words, &server).with_code(0);
    assert_eq!(finished.stdout, "paris\nparma\n");
    assert_eq!(finished.stderr, "2 of 7 shown\n");
    let words = ["complete", "--json", "--resource", "a://{x}", "x", ""];
    let raw: Value = serde_json::from_str(&mcp(&words, &server).clean()).unwrap();
    assert_eq!(
        raw["sent"]["ref"],
        json!({"type": "ref/resource", "uri": "a://{x}"})
    );
    mcp(&["complete", "city", "pa"], &server)
        .with_code(2)
        .complains(&["--prompt"]);
}

#[test]
fn a_resource_that_cannot_be_decoded_leaves_no_file() {
    let scratch = Scratch::new();
    let path = scratch.path().join("out");
    let path = path.to_str().unwrap();
    for (contents, why) in [
        (r#"{"uri":"b:","blob":"***"}"#, "not valid base64"),
        (
            r#"{"uri":"a:","text":"fine"},{"uri":"b:"}"#,
            "neither text nor blob",
        ),
        ("", "has no contents"),
    ] {
        let server = Script::new()
            .on("resources/read")
            .result(format!(r#"{{"contents":[{contents}]}}"#))
            .stdio();
        for words in [
            &["read", "b:", "--output", path][..],
            &["read", "b:", "--output", path, "--json"],
            &["read", "b:"],
        ] {
            let finished = mcp(words, &server).with_code(3);
            finished.complains(&[why, "unexpected-answer"]);
            assert_eq!(finished.stdout, "");
            assert!(!std::path::Path::new(path).exists(), "{contents}");
        }
    }
}

#[test]
fn pings_say_how_long_they_took() {
    for script in [Script::new(), Script::modern()] {
        let server = script.stdio();
        let text = mcp(&["ping"], &server).clean();
        assert!(
            text.starts_with("the server answered within ") && text.ends_with("s\n"),
            "{text}"
        );
        let raw: Value = serde_json::from_str(&mcp(&["ping", "--json"], &server).clean()).unwrap();
        assert!(raw["milliseconds"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn inspect_shows_all_and_survives_a_list_that_fails() {
    let script = |script: Script| script.on("resources/list").error(-32603, "out of order");
    let server = script(Script::new()).stdio();
    let text = mcp(&["inspect"], &server).clean();
    for part in [
        "scripted 1.0.0\n",
        "protocol      2025-11-25 (legacy era)\n",
        "transport     stdio, process ",
        "capabilities  completions, logging, prompts, resources, tools\n",
        "instructions  A scripted server.\n",
        "tools         1\n",
        "resources     failed: the server refused `resources/list`: out of order (code -32603) (server-error)\n",
        "templates     0\n",
        "prompts       1\n",
        "timing        start ",
        " initialize ",
        " tools/list ",
        " total ",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    let server = script(Script::dual()).stdio();
    let report: Value =
        serde_json::from_str(&mcp(&["inspect", "--json"], &server).clean()).unwrap();
    assert_eq!(report["protocol"]["era"], "modern");
    assert_eq!(report["tools"], json!({"count": 1, "quarantined": []}));
    assert_eq!(report["resources"]["error"]["code"], "server-error");
    assert_eq!(report["greeting"]["instructions"], "A scripted server.");
    let steps: Vec<&str> = report["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        steps,
        [
            "start",
            "discover",
            "tools/list",
            "resources/list",
            "resources/templates/list",
            "prompts/list"
        ]
    );
}

#[test]
fn inspect_fails_after_the_report_when_the_server_is_gone_or_gives_no_list() {
    let dying = Script::new().on("resources/list").exit(9).stdio();
    let finished = mcp(&["inspect"], &dying).with_code(3);
    for part in ["tools         1\n", "prompts       failed: "] {
        assert!(finished.stdout.contains(part), "{}", finished.stdout);
    }
    finished.complains(&["exit code 9", "code: server-exited"]);
    let refusing = Script::new()
        .on("initialize")
        .result(
            r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"n","version":"1"}}"#,
        )
        .on("tools/list")
        .error(-32603, "no tools today")
        .on("prompts/list")
        .error(-32603, "no prompts today")
        .stdio();
    let finished = mcp(&["inspect", "--json"], &refusing).with_code(3);
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(report["prompts"]["error"]["code"], "server-error");
    assert_eq!(
        finished.error()["causes"][0],
        "no tools today (code -32603)"
    );
}

#[test]
fn inspect_asks_only_for_what_is_declared_and_names_the_unusable() {
    let server = Script::new()
        .on("initialize")
        .result(r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}"#)
        .on("tools/list")
        .result(r#"{"tools":[{"name":"broken"}]}"#)
        .stdio();
    let text = mcp(&["inspect"], &server).clean();
    assert!(text.starts_with("(a server without a name)\n"), "{text}");
    assert!(text.contains("tools         0\n"), "{text}");
    assert!(
        text.contains("cannot be used: broken, it has no inputSchema"),
        "{text}"
    );
    assert!(!text.contains("prompts"), "{text}");
    assert_eq!(
        server
            .received()
            .count(|message| message.is("prompts/list")),
        0
    );
}
