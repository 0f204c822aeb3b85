//! What models are shown of the tools of real servers, what they find, and how they call it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cocode_client::{
    CallContext, Catalog, Dialect, Loading, Manager, ManagerOptions, RawJson, Said, SearchPolicy,
    Searcher, ServerSpec, ToolSearchMode, Toolbox, ToolboxOptions, Unrepairable,
};
use cocode_testkit::{HttpServer, Script};
use serde_json::{Value, json};

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

/// Servers that are there.
struct Servers {
    manager: Manager,
    specs: Vec<ServerSpec>,
    running: Vec<HttpServer>,
}

impl Servers {
    fn new() -> Self {
        Self {
            manager: Manager::new(ManagerOptions::with_environment(std::env::vars_os())),
            specs: Vec::new(),
            running: Vec::new(),
        }
    }

    async fn of(servers: impl IntoIterator<Item = (&str, Value)>) -> Self {
        let mut all = Self::new();
        all.add(servers).await;
        all
    }

    async fn add<'a>(&mut self, servers: impl IntoIterator<Item = (&'a str, Value)>) {
        for (name, tools) in servers {
            let script = Script::new().on("tools/list");
            let server = script.result(json!({"tools": tools})).http();
            let spec = ServerSpec::remote(name.parse().unwrap(), server.url());
            self.specs.push(spec);
            self.running.push(server);
        }
        self.manager.apply(self.specs.clone()).await;
        let startup = self.manager.wait_for_startup().await;
        assert_eq!(startup.ready.len(), self.specs.len(), "{startup:?}");
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.manager.catalog()
    }
}

fn tool(name: &str, about: &str, schema: &Value) -> Value {
    json!({"name": name, "description": about, "inputSchema": schema})
}

fn plain(name: &str, about: &str) -> Value {
    tool(name, about, &json!({"type": "object"}))
}

fn files() -> Value {
    json!([
        plain("read_file", "Reads a file."),
        plain("write_file", "Writes a text to a file."),
        plain("list_directory", "Lists what is in a directory."),
    ])
}

fn mail() -> Value {
    json!([
        plain("send_mail", "Sends an email to somebody."),
        plain("list_mail", "Lists the emails in a folder."),
    ])
}

/// Options with which a model searches.
fn searching(dialect: Dialect) -> ToolboxOptions {
    ToolboxOptions {
        policy: SearchPolicy {
            mode: ToolSearchMode::On,
            ..SearchPolicy::default()
        },
        ..ToolboxOptions::new(dialect)
    }
}

/// Options with which a model searches from 8,000 characters on.
fn seeing_little() -> ToolboxOptions {
    ToolboxOptions {
        searcher: Searcher {
            context_window: Some(32_000),
            calls_tools: true,
        },
        ..ToolboxOptions::new(Dialect::Plain)
    }
}

fn long(n_tools: usize) -> Value {
    let about = "Does one of many things to what is there. ".repeat(10);
    let tools = (0..n_tools).map(|number| plain(&format!("thing_{number}"), &about));
    tools.collect()
}

fn shown(toolbox: &Toolbox) -> Vec<&str> {
    let tools = toolbox.definitions().into_iter();
    tools.map(|tool| tool.name.as_str()).collect()
}

fn bytes(toolbox: &Toolbox) -> Vec<String> {
    let tools = toolbox.definitions().into_iter();
    tools.map(|tool| tool.definition().to_string()).collect()
}

fn search(toolbox: &mut Toolbox, query: &str, limit: usize) -> Value {
    let arguments = json!({"query": query, "limit": limit});
    match toolbox.handle("tool_search", &arguments) {
        Said::Answer(text) => serde_json::from_str(&text).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn called(said: Said) -> (String, Value) {
    match said {
        Said::Call { name, arguments } => (name.to_string(), arguments),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn few_tools_are_all_shown_by_name() {
    let servers = Servers::of([("mail", mail()), ("files", files())]).await;
    let mut toolbox = Toolbox::new(seeing_little());
    assert!(toolbox.definitions().is_empty());
    let change = toolbox.update(&servers.catalog());
    let expected = [
        "mcp__files__list_directory",
        "mcp__files__read_file",
        "mcp__files__write_file",
        "mcp__mail__list_mail",
        "mcp__mail__send_mail",
    ];
    assert_eq!(shown(&toolbox), expected);
    assert_eq!(change.added, expected);
    assert!(!toolbox.decision().is_search(), "{}", toolbox.decision());
    assert_eq!(toolbox.tokens().shown, toolbox.tokens().all);
    assert!(toolbox.update(&servers.catalog()).is_empty());
    // Who searches all the same finds, and is shown no more than before.
    let answer = search(&mut toolbox, "read a file", 1);
    assert_eq!(answer["tools"][0]["name"], "mcp__files__read_file");
    assert_eq!(shown(&toolbox), expected);
}

#[tokio::test]
async fn of_too_many_tools_those_are_shown_that_are_found() {
    let servers = Servers::of([("files", files()), ("many", long(20)), ("mail", mail())]).await;
    let mut toolbox = Toolbox::new(seeing_little());
    toolbox.update(&servers.catalog());
    assert!(toolbox.decision().is_search(), "{}", toolbox.decision());
    assert_eq!(shown(&toolbox), ["tool_search"]);
    let about = toolbox.definitions()[0].description.clone();
    for server in ["files", "mail", "many"] {
        assert!(about.contains(&format!("\n- {server}")), "{about}");
    }
    assert!(!about.contains("tool_call"), "{about}");

    let answer = search(&mut toolbox, "send an email", 1);
    let expected = json!({"tools": [{
        "name": "mcp__mail__send_mail",
        "server": "mail",
        "description": "Sends an email to somebody.",
    }]});
    assert_eq!(answer, expected);
    assert_eq!(shown(&toolbox), ["tool_search", "mcp__mail__send_mail"]);

    let answer = search(&mut toolbox, "qqqq zzzz", 5);
    assert_eq!(answer["tools"], json!([]));
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("files, mail, many"), "{message}");
}

#[tokio::test]
async fn what_is_found_comes_last_and_stays_where_it_is() {
    let servers = Servers::of([("files", files()), ("mail", mail())]).await;
    let mut one = Toolbox::new(searching(Dialect::Anthropic));
    let mut other = Toolbox::new(searching(Dialect::Anthropic));
    one.update(&servers.catalog());
    other.update(&servers.catalog());
    let mut before = bytes(&one);
    for query in [
        "write a file",
        "send an email",
        "write a file",
        "list a directory",
    ] {
        search(&mut one, query, 1);
        let after = bytes(&one);
        assert_eq!(after[..before.len()], before, "{query}");
        search(&mut other, query, 1);
        assert_eq!(bytes(&other), after, "{query}");
        before = after;
    }
    let expected = [
        "tool_search",
        "mcp__files__write_file",
        "mcp__mail__send_mail",
        "mcp__files__list_directory",
    ];
    assert_eq!(shown(&one), expected);
    let loaded = one.loaded().map(ToString::to_string);
    assert_eq!(loaded.collect::<Vec<_>>(), expected[1..]);
}

#[tokio::test]
async fn a_list_that_changes_changes_what_is_found_and_shown() {
    let before = json!([
        plain("read_file", "Reads a file."),
        plain("delete_file", "Deletes a file."),
        plain("count_words", "Counts the words of a text."),
    ]);
    let after = json!([
        plain("read_file", "Reads a file, whatever its size."),
        plain("count_words", "Counts the words of a text."),
        plain("translate_text", "Translates a text."),
    ]);
    let server = Script::new()
        .on("tools/list")
        .nth(1)
        .result(json!({"tools": before}))
        .on("tools/list")
        .result(json!({"tools": after}))
        .on("tools/call")
        .notify(TOOLS_CHANGED, "{}")
        .text_result("done")
        .stdio();
    let mut others = Servers::of([("mail", mail())]).await;
    let program = server.program().to_str().unwrap();
    let spec = ServerSpec::program("files".parse().unwrap(), program, server.args());
    others.specs.push(spec);
    others.add([]).await;

    let mut toolbox = Toolbox::new(searching(Dialect::Anthropic));
    toolbox.update(&others.catalog());
    for query in ["delete_file", "read_file", "count_words"] {
        search(&mut toolbox, query, 1);
    }
    assert!(search(&mut toolbox, "translate", 5)["message"].is_string());

    let mut catalogs = others.manager.watch_catalog();
    catalogs.mark_unchanged();
    let (name, arguments) = called(toolbox.handle("mcp__files__read_file", &json!({})));
    let arguments = RawJson::of(&arguments).unwrap();
    let context = CallContext::default();
    let result = others.manager.call(&name, Some(&arguments), context).await;
    result.unwrap();
    let is_new = |catalog: &Arc<Catalog>| catalog.resolve("mcp__files__translate_text").is_some();
    let waiting = catalogs.wait_for(is_new);
    let catalog = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    let catalog = Arc::clone(&catalog.unwrap().unwrap());

    let change = toolbox.update(&catalog);
    assert_eq!(change.removed, ["mcp__files__delete_file"]);
    assert_eq!(change.changed, ["mcp__files__read_file"]);
    assert!(change.added.is_empty(), "{change:?}");
    let expected = [
        "tool_search",
        "mcp__files__read_file",
        "mcp__files__count_words",
    ];
    assert_eq!(shown(&toolbox), expected);
    let read = toolbox.definitions()[1];
    assert_eq!(read.description, "Reads a file, whatever its size.");
    let answer = search(&mut toolbox, "translate", 1);
    assert_eq!(answer["tools"][0]["name"], "mcp__files__translate_text");
    let answer = search(&mut toolbox, "delete_file", 20).to_string();
    assert!(!answer.contains("mcp__files__delete_file"), "{answer}");
    // An index that was changed finds the same as a new one.
    let mut fresh = Toolbox::new(searching(Dialect::Anthropic));
    fresh.update(&catalog);
    for query in ["a text", "file", "count mail", "list"] {
        assert_eq!(
            search(&mut toolbox, query, 20),
            search(&mut fresh, query, 20)
        );
    }
    let answer = search(&mut toolbox, "send an email", 1);
    assert_eq!(answer["tools"][0]["name"], "mcp__mail__send_mail");
}

#[tokio::test]
async fn some_servers_are_always_shown() {
    let mut servers = Servers::of([("files", files()), ("mail", mail())]).await;
    servers.specs[1].always_load = true;
    servers.specs[0].description = Some("Everything on this disk.".to_owned());
    let options = searching(Dialect::Gemini).with_servers(&servers.specs);
    assert_eq!(
        options.always_load,
        BTreeSet::from(["mail".parse().unwrap()])
    );
    let mut toolbox = Toolbox::new(options);
    toolbox.update(&servers.catalog());
    let standing = [
        "tool_search",
        "mcp__mail__list_mail",
        "mcp__mail__send_mail",
    ];
    assert_eq!(shown(&toolbox), standing);
    let about = &toolbox.definitions()[0].description;
    let expected = "Servers:\n- files: Everything on this disk.";
    assert!(about.ends_with(expected), "{about}");
    // What is shown already is found, and not shown twice.
    let answer = search(&mut toolbox, "send_mail", 1);
    assert_eq!(answer["tools"][0]["name"], "mcp__mail__send_mail");
    assert_eq!(shown(&toolbox), standing);
    search(&mut toolbox, "read_file", 1);
    assert_eq!(shown(&toolbox)[3..], ["mcp__files__read_file"]);
}

#[tokio::test]
async fn the_least_recently_used_makes_room() {
    let servers = Servers::of([("files", files()), ("mail", mail())]).await;
    let mut toolbox = Toolbox::new(ToolboxOptions {
        max_loaded: 2,
        ..searching(Dialect::OpenAi)
    });
    toolbox.update(&servers.catalog());
    search(&mut toolbox, "read_file", 1);
    search(&mut toolbox, "write_file", 1);
    called(toolbox.handle("mcp__files__read_file", &json!({})));
    search(&mut toolbox, "send_mail", 1);
    let expected = [
        "tool_search",
        "mcp__files__read_file",
        "mcp__mail__send_mail",
    ];
    assert_eq!(shown(&toolbox), expected);
    // No more is found than can be shown.
    let answer = search(&mut toolbox, "list", 20);
    assert_eq!(answer["tools"].as_array().unwrap().len(), 2);
    assert_eq!(toolbox.definitions().len(), 3);
    // What has left can be called.
    let (name, _) = called(toolbox.handle("mcp__files__write_file", &json!({})));
    assert_eq!(name, "mcp__files__write_file");
}

#[tokio::test]
async fn arguments_find_the_way_back_whichever_way_they_come() {
    let strict = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "depth": {"type": "integer"}},
        "required": ["path"],
        "additionalProperties": false,
    });
    let free = json!({"type": "object", "properties": {"any": {}}});
    let tools = json!([tool("walk", "Walks.", &strict), tool("put", "Puts.", &free)]);
    let servers = Servers::of([("files", tools)]).await;
    let all = json!({"query": "walk", "limit": 1, "server": null});
    let expected = json!({"path": "/"});
    for (loading, dialect) in [
        (Loading::Listed, Dialect::OpenAiStrict),
        (Loading::Answered, Dialect::OpenAiStrict),
        (Loading::Answered, Dialect::Gemini),
        (Loading::Answered, Dialect::Anthropic),
    ] {
        let mut toolbox = Toolbox::new(ToolboxOptions {
            loading,
            ..searching(dialect)
        });
        toolbox.update(&servers.catalog());
        let Said::Answer(answer) = toolbox.handle("tool_search", &all) else {
            panic!("no answer");
        };
        let given = match dialect {
            Dialect::OpenAiStrict => json!({"path": "/", "depth": null}),
            _ => expected.clone(),
        };
        let said = toolbox.handle("mcp__files__walk", &given);
        let whole = ("mcp__files__walk".to_owned(), expected.clone());
        assert_eq!(called(said), whole, "{dialect:?}");
        if loading == Loading::Listed {
            assert_eq!(shown(&toolbox), ["tool_search", "mcp__files__walk"]);
            assert_eq!(toolbox.definitions()[1].dialect(), Dialect::OpenAiStrict);
            search(&mut toolbox, "put", 1);
            assert_eq!(toolbox.definitions()[2].dialect(), Dialect::OpenAi);
            continue;
        }
        // What is shown does not grow: the answer says it all.
        assert_eq!(shown(&toolbox), ["tool_search", "tool_call"]);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let schema = &answer["tools"][0]["inputSchema"];
        assert!(schema["properties"]["path"].is_object(), "{answer}");
        let call = json!({"name": "mcp__files__walk", "arguments": given});
        let definitions = toolbox.definitions();
        let call = definitions[1].arguments_forth(call);
        assert_eq!(
            called(toolbox.handle("tool_call", &call)),
            whole,
            "{dialect:?}"
        );
    }
    // No arguments are an object without members.
    let mut toolbox = Toolbox::new(searching(Dialect::Plain));
    toolbox.update(&servers.catalog());
    let said = toolbox.handle("mcp__files__put", &Value::Null);
    assert_eq!(called(said).1, json!({}));
}

#[tokio::test]
async fn what_nobody_has_is_answered_with_what_there_is() {
    let servers = Servers::of([("files", files()), ("mail", mail())]).await;
    let mut toolbox = Toolbox::new(searching(Dialect::Plain));
    toolbox.update(&servers.catalog());
    for name in ["mcp__files__read_fil", "read_file"] {
        let begin = format!("There is no tool `{name}`. Did you mean `mcp__files__read_file`");
        let by_name = toolbox.handle(name, &json!({}));
        let by_call = toolbox.handle("tool_call", &json!({"name": name}));
        assert_eq!(by_name, by_call);
        match by_name {
            Said::Unknown(text) => {
                assert!(text.starts_with(&begin), "{text}");
                assert!(text.contains("? `tool_search` finds tools"), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }
    for (name, arguments, expected) in [
        ("tool_search", json!({"query": 7}), "`query` is a text"),
        (
            "tool_search",
            json!({"query": "x", "server": "file"}),
            "Did you mean `files`?",
        ),
        (
            "tool_search",
            json!({"query": "x", "server": "weather"}),
            "There are: files, mail.",
        ),
        ("tool_call", json!({}), "needs the `name`"),
    ] {
        match toolbox.handle(name, &arguments) {
            Said::Mistaken(text) => assert!(text.contains(expected), "{text}"),
            other => panic!("{other:?}"),
        }
    }
    let mut toolbox = Toolbox::new(seeing_little());
    toolbox.update(&servers.catalog());
    match toolbox.handle("nothing_like_it", &json!({})) {
        Said::Unknown(text) => assert!(text.ends_with("that are listed."), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_tool_that_cannot_be_described_harms_no_other() {
    let tools = json!([
        plain("read_file", "Reads a file."),
        tool("read_text", "Reads a text.", &json!({"type": "string"})),
    ]);
    let servers = Servers::of([("files", tools)]).await;
    for options in [searching(Dialect::OpenAi), seeing_little()] {
        let is_searching = options.policy.mode == ToolSearchMode::On;
        let mut toolbox = Toolbox::new(options);
        toolbox.update(&servers.catalog());
        let [(name, why)] = toolbox.quarantined() else {
            panic!("{:?}", toolbox.quarantined());
        };
        assert_eq!(name.as_str(), "mcp__files__read_text");
        assert!(matches!(why, Unrepairable::NoObject { .. }), "{why:?}");
        let answer = search(&mut toolbox, "read text", 5).to_string();
        assert!(!answer.contains("mcp__files__read_text"), "{answer}");
        let own = usize::from(is_searching);
        assert_eq!(shown(&toolbox)[own..], ["mcp__files__read_file"]);
        match toolbox.handle("mcp__files__read_text", &json!({})) {
            Said::Unknown(text) => assert!(text.contains("takes no object"), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn whether_a_model_searches_is_decided_anew_only_where_that_is_wanted() {
    let mut anew = Toolbox::new(seeing_little());
    let mut once = Toolbox::new(ToolboxOptions {
        on_list_changed: false,
        ..seeing_little()
    });
    // Without tools, nothing is decided.
    let mut servers = Servers::new();
    anew.update(&servers.catalog());
    once.update(&servers.catalog());
    servers.add([("files", files())]).await;
    anew.update(&servers.catalog());
    once.update(&servers.catalog());
    let decision = once.decision();
    assert!(!decision.is_search());
    servers.add([("many", long(20))]).await;
    let change = anew.update(&servers.catalog());
    assert_eq!(change.added, ["tool_search"]);
    assert_eq!(change.removed.len(), 3);
    assert!(anew.decision().is_search());
    let change = once.update(&servers.catalog());
    assert_eq!(change.added.len(), 20);
    assert_eq!(once.decision(), decision);
    assert_eq!(once.definitions().len(), 23);

    let mut late = Toolbox::new(ToolboxOptions {
        on_list_changed: false,
        ..seeing_little()
    });
    late.update(&servers.catalog());
    assert!(late.decision().is_search());
    search(&mut late, "read_file", 1);
    servers.specs.pop();
    servers.add([]).await;
    late.update(&servers.catalog());
    assert!(late.decision().is_search());
    assert_eq!(shown(&late), ["tool_search", "mcp__files__read_file"]);
    let change = anew.update(&servers.catalog());
    assert!(!anew.decision().is_search());
    assert_eq!(change.removed, ["tool_search"]);
}

#[tokio::test]
async fn of_a_thousand_tools_a_model_sees_a_twentieth_of_the_tokens() {
    let things = [
        "invoice", "ticket", "branch", "message", "page", "event", "contact", "folder", "job",
        "metric",
    ];
    let names: Vec<_> = (0..50)
        .map(|number| format!("service-{number:02}"))
        .collect();
    let tools = |server: &str| -> Value {
        let each = things.iter().flat_map(|thing| {
            ["create", "find"].into_iter().map(move |verb| {
                let about = format!(
                    "{verb}s one {thing} in {server}, with all that belongs to it. Needs the right \
                     to do so, which whoever signed in has or has not."
                );
                let schema = json!({"type": "object", "properties": {
                    "id": {"type": "string", "description": format!("Which {thing}")},
                    "fields": {"type": "array", "items": {"type": "string"}},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 100},
                    "dry_run": {"type": "boolean", "description": "Only say what would be done"},
                }, "required": ["id"]});
                tool(&format!("{verb}_{thing}"), &about, &schema)
            })
        });
        each.collect()
    };
    let servers = Servers::of(names.iter().map(|name| (name.as_str(), tools(name)))).await;
    let catalog = servers.catalog();
    assert_eq!(catalog.tools().count(), 1_000);
    let ways = Dialect::ALL.map(|dialect| (dialect, Loading::Listed));
    for (dialect, loading) in ways
        .into_iter()
        .chain([(Dialect::Plain, Loading::Answered)])
    {
        let mut toolbox = Toolbox::new(ToolboxOptions {
            searcher: Searcher {
                context_window: Some(200_000),
                calls_tools: true,
            },
            loading,
            ..ToolboxOptions::new(dialect)
        });
        toolbox.update(&catalog);
        assert!(toolbox.decision().is_search(), "{}", toolbox.decision());
        let before = toolbox.tokens();
        assert!(before.shown * 20 <= before.all, "{dialect:?}: {before:?}");
        let answer = search(&mut toolbox, "create a ticket", 5);
        assert_eq!(answer["tools"].as_array().unwrap().len(), 5, "{answer}");
        let after = toolbox.tokens();
        assert!(after.shown * 20 <= after.all, "{dialect:?}: {after:?}");
        let grows = loading == Loading::Listed;
        assert_eq!(toolbox.definitions().len(), if grows { 6 } else { 2 });
    }
}
