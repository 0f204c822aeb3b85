//! Edits of all kinds, as text before and after.

use std::collections::BTreeMap;
use std::fs;

use cocode_core::{Answer, Condition, Dpop, Grant, Registration, ToolRef, Verdict};

use super::*;
use crate::entry::{OAuthEntry, Seconds, Text, Transport};

struct Room {
    directory: tempfile::TempDir,
    context: EditContext,
}

impl Room {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let context = EditContext::new(directory.path().join("locks"));
        Self { directory, context }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("config/file")
    }

    /// Does something to a file with this text, and gives the new text.
    fn with<T>(
        &self,
        text: &str,
        edit: impl FnOnce(&EditContext, &Path) -> Result<T, EditError>,
    ) -> Result<String, EditError> {
        fs::create_dir_all(self.file().parent().unwrap()).unwrap();
        fs::write(self.file(), text).unwrap();
        let result = edit(&self.context, &self.file());
        let after = fs::read_to_string(self.file()).unwrap();
        if result.is_err() {
            assert_eq!(after, text, "a failed edit leaves the file alone");
        }
        result.map(|_| after)
    }
}

fn npx() -> Entry {
    Entry {
        command: Some("npx".to_owned()),
        args: vec!["-y".to_owned(), "server".to_owned()],
        ..Entry::default()
    }
}

/// An entry with everything.
fn full() -> Entry {
    let text = |text: &str| Some(text.to_owned());
    let pair = |name: &str, value: &str| (name.to_owned(), Text::from(value));
    Entry {
        transport: Some(Transport::Stdio),
        command: text("npx"),
        args: vec!["a\nb".to_owned(), "C:\\x \"y\" 'z' \u{1b}".to_owned()],
        env: BTreeMap::from([pair("TOKEN", "${TOKEN}"), pair("WEIRD KEY", "\r\n\t")]),
        env_vars: vec!["HOME".to_owned()],
        cwd: text("/srv"),
        url: None,
        headers: BTreeMap::from([pair("X-Key", "ü")]),
        env_http_headers: BTreeMap::from([("X-Other".to_owned(), "VAR".to_owned())]),
        bearer_token_env_var: text("BEARER"),
        headers_helper: text("helper --json"),
        oauth: OAuthEntry {
            client_id: text("id"),
            client_secret_env: text("SECRET"),
            callback_port: Some(8080),
            scopes: vec!["read".to_owned(), "write".to_owned()],
            resource: text("https://example.com/"),
            callback_url: text("http://127.0.0.1:8080/back"),
            registration: Some(Registration::Dcr),
            client_metadata_url: text("https://example.com/client.json"),
            issuer: text("https://issuer.example.com"),
            grant: Some(Grant::Enterprise),
            private_key_file: text("~/key.pem"),
            private_key_env: text("KEY"),
            signing_algorithm: text("ES256"),
            assertion_env: text("ASSERTION"),
            assertion_file: text("./token"),
            assertion_command: text("print 'token'"),
            idp_issuer: text("https://idp.example.com"),
            idp_token_endpoint: text("https://idp.example.com/token"),
            idp_client_id: text("other"),
            idp_client_secret_env: text("OTHER_SECRET"),
            dpop: Some(Dpop::Always),
            allow_private_network: Some(false),
        },
        enabled: Some(false),
        required: Some(true),
        startup_timeout_sec: Seconds::new(10.0),
        connect_timeout_sec: Seconds::new(0.1),
        tool_timeout_sec: Seconds::new(1.5),
        tool_total_timeout_sec: Seconds::new(90.0),
        tool_timeouts_sec: BTreeMap::from([
            ("search".to_owned(), Seconds(5.0)),
            ("exp\"ört. *".to_owned(), Seconds(0.25)),
        ]),
        enabled_tools: Some(Vec::new()),
        disabled_tools: vec!["drop_*".to_owned()],
        protocol: text("auto"),
        isolation: text("shared"),
        always_load: Some(true),
        trust_annotations: Some(true),
        idle_stop_sec: Seconds::new(1e18),
        sandbox: text("read-only"),
        description: text("Everything at once"),
    }
}

fn add(text: &str, name: &str, entry: &Entry, if_exists: IfExists) -> Result<String, EditError> {
    Room::new().with(text, |context, file| {
        add_server(context, file, Format::Toml, name, entry, if_exists)
    })
}

fn remove(text: &str, name: &str) -> Result<String, EditError> {
    Room::new().with(text, |context, file| {
        remove_server(context, file, Format::Toml, name)
    })
}

fn enable(text: &str, format: Format, is_enabled: bool) -> String {
    let edited = Room::new().with(text, |context, file| {
        set_enabled(context, file, format, "a", is_enabled)
    });
    edited.unwrap()
}

const A: &str = "[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"-y\", \"server\"]\n";

#[test]
fn a_server_is_written_as_people_write_it() {
    let mut entry = npx();
    entry.env.insert("TOKEN".to_owned(), Text::from("${TOKEN}"));
    assert_eq!(
        add("", "a", &entry, IfExists::Fail).unwrap(),
        format!("{A}env = {{ TOKEN = \"${{TOKEN}}\" }}\n")
    );
    entry.args.push("x".repeat(90));
    entry.env.insert("LONG".to_owned(), Text(("y").repeat(80)));
    let long = format!(
        "[mcp_servers.a]\ncommand = \"npx\"\nargs = [\n    \"-y\",\n    \"server\",\n    \"{}\",\n]\n\n\
         [mcp_servers.a.env]\nLONG = \"{}\"\nTOKEN = \"${{TOKEN}}\"\n",
        "x".repeat(90),
        "y".repeat(80)
    );
    assert_eq!(add("", "a", &entry, IfExists::Fail).unwrap(), long);
}

#[test]
fn an_entry_with_everything_is_read_back_the_same() {
    for format in [Format::Toml, Format::Json] {
        let room = Room::new();
        let file = room.file();
        let add = |name: &str, entry: &Entry| {
            add_server(&room.context, &file, format, name, entry, IfExists::Fail)
        };
        add("full", &full()).unwrap();
        add("plain", &npx()).unwrap();
        let node = crate::read::tree(&file, format).unwrap().unwrap();
        let mut problems = Vec::new();
        let found = parse::servers(&node, format, &Origin::file(&file), &mut problems);
        assert_eq!(problems, []);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].entry, full());
        assert_eq!(found[1].entry, npx());
    }
}

#[test]
fn everything_around_a_new_server_stays_byte_for_byte() {
    let text =
        "# My file.\n\n[mcp_servers]\nb = { command=\"x\" } # why\n\n  [other] # kept\nx=1\n# end";
    let added = add(text, "a", &npx(), IfExists::Fail).unwrap();
    assert_eq!(added, format!("{text}\n\n{A}"));
    assert_eq!(remove(&added, "a").unwrap(), format!("{text}\n"));
}

#[test]
fn names_are_quoted_where_they_need_it() {
    let added = add("", "a.b", &npx(), IfExists::Fail);
    // Whether such a name is one is not for the writer to say.
    match added {
        Ok(text) => assert!(text.starts_with("[mcp_servers.\"a.b\"]\n"), "{text}"),
        Err(error) => assert!(matches!(error, EditError::Invalid(_)), "{error}"),
    }
}

#[test]
fn an_existing_server_is_left_or_replaced() {
    let text =
        "# about a\n[mcp_servers.a]\ncommand = \"old\"\n[mcp_servers.a.env]\nX = \"1\"\n\n[z]\n";
    let error = add(text, "a", &npx(), IfExists::Fail).unwrap_err();
    let EditError::Exists { origin, server } = &error else {
        panic!("{error:?}");
    };
    assert_eq!((origin.line, server.as_str()), (Some(2), "a"));
    assert_eq!(
        add(text, "a", &npx(), IfExists::Replace).unwrap(),
        format!("# about a\n{A}\n[z]\n")
    );
    // The same entry, however it is written, is left as it is.
    let nice = "[mcp_servers.a]\nargs = [ \"-y\",\n \"server\" ]\ncommand = 'npx'\n";
    assert_eq!(add(nice, "a", &npx(), IfExists::Replace).unwrap(), nice);
}

#[test]
fn a_server_in_any_form_is_replaced_and_removed() {
    let forms = [
        "[mcp_servers]\na = { command = \"old\" }\nb = { command = \"b\" }\n",
        "[mcp_servers]\na.command = \"old\"\na.args = [\"1\"]\nb.command = \"b\"\n",
        "mcp_servers.a.command = \"old\"\nmcp_servers.b.command = \"b\"\n",
        "mcp_servers = { a = { command = \"old\" }, b = { command = \"b\" } }\n",
        "mcp_servers.a = { command = \"old\" }\nmcp_servers.b = { command = \"b\" }\n",
        "[mcp_servers.b]\ncommand = \"b\"\n\n[mcp_servers.a]\ncommand = \"old\"\n",
    ];
    let b = Entry {
        command: Some("b".to_owned()),
        ..Entry::default()
    };
    for form in forms {
        for (text, has_a) in [
            (add(form, "a", &npx(), IfExists::Replace).unwrap(), true),
            (remove(form, "a").unwrap(), false),
        ] {
            let node = crate::document::parse(&text, Format::Toml).unwrap();
            let origin = Origin::file("file");
            let found = parse::servers(&node, Format::Toml, &origin, &mut Vec::new());
            let found: BTreeMap<_, _> = found
                .into_iter()
                .map(|found| (found.name, found.entry))
                .collect();
            let mut expected = BTreeMap::from([("b".to_owned(), b.clone())]);
            if has_a {
                expected.insert("a".to_owned(), npx());
            }
            assert_eq!(found, expected, "{form}\n{text}");
        }
        let both = add(form, "c", &npx(), IfExists::Fail).unwrap();
        assert!(
            both.contains("\"old\"") && both.contains("\"npx\""),
            "{both}"
        );
    }
}

#[test]
fn a_removed_server_takes_its_comments_and_one_empty_line() {
    let text = "#:schema x\n# about a\n[mcp_servers.a]\ncommand = \"x\"\n# args = []\n\n\
                [mcp_servers.a.env]\nX = \"1\"\n\n# about b\n[mcp_servers.b]\ncommand = \"y\"\n";
    assert_eq!(
        remove(text, "a").unwrap(),
        "#:schema x\n\n# about b\n[mcp_servers.b]\ncommand = \"y\"\n"
    );
    assert_eq!(
        remove(text, "b").unwrap(),
        text.split("\n# about b").next().unwrap()
    );
    // The last line of a text is no comment, whatever it looks like.
    let tricky = "x = \"\"\"\n# no comment\"\"\"\n[mcp_servers.a]\ncommand = \"x\"\n";
    assert_eq!(
        remove(tricky, "a").unwrap(),
        "x = \"\"\"\n# no comment\"\"\"\n"
    );
}

#[test]
fn a_server_that_is_not_there_cannot_be_removed() {
    let error = remove(A, "b").unwrap_err();
    assert!(matches!(error, EditError::NoServer { .. }), "{error:?}");
    assert!(error.to_string().contains("`b`"), "{error}");
    let room = Room::new();
    let missing = remove_server(&room.context, &room.file(), Format::Json, "b");
    assert!(matches!(missing, Err(EditError::NoServer { .. })));
    assert!(!room.file().exists());
}

#[test]
fn a_broken_file_is_refused_with_its_line() {
    for (format, text) in [
        (Format::Toml, "a = 1\nb =\n"),
        (Format::Json, "{\n  \"a\" 1\n}"),
        (Format::Toml, "a = 1\n\0"),
    ] {
        let result = Room::new().with(text, |context, file| {
            add_server(context, file, format, "a", &npx(), IfExists::Replace)
        });
        let Err(EditError::Unreadable(problem)) = result else {
            panic!("{result:?}");
        };
        assert_eq!(problem.origin.line, Some(2), "{problem}");
    }
}

#[test]
fn an_entry_that_would_not_be_read_is_not_written() {
    let neither = Entry::default();
    let error = add(A, "b", &neither, IfExists::Fail).unwrap_err();
    assert!(matches!(error, EditError::Invalid(_)), "{error:?}");
    let both = Entry {
        url: Some("https://example.com".to_owned()),
        ..npx()
    };
    let error = add(A, "b", &both, IfExists::Fail).unwrap_err();
    assert!(matches!(error, EditError::Invalid(_)), "{error:?}");
    let error = add("[[mcp_servers]]\n", "b", &npx(), IfExists::Fail).unwrap_err();
    assert!(matches!(error, EditError::Unsupported(_)), "{error:?}");
    let error = add("mcp_servers = 1\n", "b", &npx(), IfExists::Fail).unwrap_err();
    assert!(matches!(error, EditError::Unsupported(_)), "{error:?}");
}

#[test]
fn line_ends_and_the_byte_order_mark_stay() {
    let text = "\u{feff}# top\r\n[mcp_servers.b]\r\ncommand = \"b\"\r\n";
    let added = add(text, "a", &full(), IfExists::Fail).unwrap();
    assert!(added.starts_with(text));
    assert!(!added.replace("\r\n", "").contains('\n'), "{added:?}");
    assert_eq!(remove(&added, "a").unwrap(), text);
    let text =
        "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"b\": { \"command\": \"b\" }\r\n  }\r\n}\r\n";
    let room = Room::new();
    let added = room.with(text, |context, file| {
        add_server(context, file, Format::Json, "a", &full(), IfExists::Fail)
    });
    let added = added.unwrap();
    assert!(added.starts_with('\u{feff}'));
    assert!(!added.replace("\r\n", "").contains('\n'), "{added:?}");
    let removed = room.with(&added, |context, file| {
        remove_server(context, file, Format::Json, "a")
    });
    assert_eq!(removed.unwrap(), text);
}

#[test]
fn json_keeps_its_comments_and_its_form() {
    let text = "// top\n{\n  \"mcpServers\": {\n    // about b\n    \"b\": { \"command\": \"b\" }, // why\n  },\n  \"more\": [1]\n}\n";
    let room = Room::new();
    let added = room.with(text, |context, file| {
        add_server(context, file, Format::Json, "a", &npx(), IfExists::Fail)
    });
    let added = added.unwrap();
    for kept in ["// top", "// about b", "// why", "\"more\": [1]"] {
        assert!(added.contains(kept), "{added}");
    }
    let removed = room.with(&added, |context, file| {
        remove_server(context, file, Format::Json, "a")
    });
    assert_eq!(removed.unwrap(), text);
}

#[test]
fn a_new_json_file_is_as_other_tools_write_it() {
    let room = Room::new();
    let mut entry = npx();
    entry.tool_timeout_sec = Seconds::new(30.0);
    entry.transport = Some(Transport::Stdio);
    add_server(
        &room.context,
        &room.file(),
        Format::Json,
        "a",
        &entry,
        IfExists::Fail,
    )
    .unwrap();
    assert_eq!(
        fs::read_to_string(room.file()).unwrap(),
        "{\n  \"mcpServers\": {\n    \"a\": {\n      \"type\": \"stdio\",\n      \"command\": \"npx\",\n      \
         \"args\": [\"-y\", \"server\"],\n      \"timeout\": 30000\n    }\n  }\n}\n"
    );
}

#[test]
fn a_disabled_server_says_so_and_an_enabled_one_need_not() {
    let off = enable(A, Format::Toml, false);
    assert_eq!(off, format!("{A}enabled = false\n"));
    assert_eq!(enable(&off, Format::Toml, true), A);
    let said = format!("{A}enabled = true # said\n\n[z]\n");
    assert_eq!(enable(&said, Format::Toml, true), said);
    assert_eq!(
        enable(&said, Format::Toml, false),
        format!("{A}enabled = false # said\n\n[z]\n")
    );
    let forms = [
        (
            "[mcp_servers]\na.command = \"x\"\nb.command = \"y\"\n",
            "[mcp_servers]\na.command = \"x\"\na.enabled = false\nb.command = \"y\"\n",
        ),
        (
            "[mcp_servers]\na = { command = \"x\" }\n",
            "[mcp_servers]\na = { command = \"x\", enabled = false }\n",
        ),
        (
            "mcp_servers = { a = { command = \"x\" } }",
            "mcp_servers = { a = { command = \"x\", enabled = false } }",
        ),
        (
            "[mcp_servers.a]\ncommand = \"x\"\n# note\n[mcp_servers.a.env]\nX = \"1\"",
            "[mcp_servers.a]\ncommand = \"x\"\nenabled = false\n# note\n[mcp_servers.a.env]\nX = \"1\"",
        ),
    ];
    for (on, off) in forms {
        assert_eq!(enable(on, Format::Toml, false), off);
        assert_eq!(enable(off, Format::Toml, true), on);
    }
}

#[test]
fn json_servers_are_disabled_in_the_spelling_they_have() {
    let text = "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }\n}\n";
    let off = enable(text, Format::Json, false);
    assert!(off.contains("\"disabled\": true"), "{off}");
    assert_eq!(enable(&off, Format::Json, true), text);
    let own = text.replace("\"x\"", "\"x\",\n      \"enabled\": true");
    let off = enable(&own, Format::Json, false);
    assert_eq!(off, own.replace("true", "false"));
}

#[test]
fn overrides_are_set_changed_and_taken_back() {
    let room = Room::new();
    let key = OverrideKey {
        server: "a".to_owned(),
        project: Some(PathBuf::from("/srv/me/project")),
        plugin: None,
    };
    let set = |text: &str, key: &OverrideKey, is_enabled| {
        let edited = room.with(text, |context, file| {
            set_override(context, file, key, is_enabled)
        });
        edited.unwrap()
    };
    let off = set(A, &key, Some(false));
    assert_eq!(
        off,
        format!(
            "{A}\n[[overrides]]\nserver = \"a\"\nproject = \"/srv/me/project\"\nenabled = false\n"
        )
    );
    assert_eq!(set(&off, &key, Some(true)), off.replace("false", "true"));
    let other = OverrideKey {
        project: None,
        plugin: Some("p".to_owned()),
        ..key.clone()
    };
    let both = set(&off, &other, Some(false));
    assert_eq!(
        both,
        format!("{off}\n[[overrides]]\nserver = \"a\"\nplugin = \"p\"\nenabled = false\n")
    );
    assert_eq!(set(&both, &other, None), off);
    assert_eq!(set(&off, &key, None), A);
    assert_eq!(set(A, &key, None), A);
    let inline = "overrides = []\n";
    let one = set(inline, &other, Some(true));
    assert_eq!(
        one,
        "overrides = [{ server = \"a\", plugin = \"p\", enabled = true }]\n"
    );
    assert_eq!(set(&one, &other, None), inline);
    assert_eq!(
        set(
            "overrides = [{ server = \"a\", plugin = \"p\" }]\n",
            &other,
            Some(true)
        ),
        one
    );
}

#[test]
fn rules_are_added_once_and_removed() {
    let room = Room::new();
    let plain = RuleText::new("mcp__github__*");
    let read_only = RuleText {
        condition: Condition {
            read_only: Some(true),
            destructive: None,
        },
        ..plain.clone()
    };
    let add = |text: &str, rule: &RuleText| {
        let edited = room.with(text, |context, file| {
            add_rule(context, file, Verdict::Allow, rule)
        });
        edited.unwrap()
    };
    let remove = |text: &str, rule: &RuleText| {
        let edited = room.with(text, |context, file| {
            remove_rule(context, file, Verdict::Allow, rule)
        });
        edited.unwrap()
    };
    let one = add("", &plain);
    assert_eq!(one, "[permissions]\nallow = [\"mcp__github__*\"]\n");
    assert_eq!(add(&one, &plain), one);
    let two = add(&one, &read_only);
    assert_eq!(
        two,
        "[permissions]\nallow = [\"mcp__github__*\", { tool = \"mcp__github__*\", read_only = true }]\n"
    );
    assert_eq!(add(&two, &read_only), two);
    assert_eq!(remove(&two, &read_only), one);
    assert_eq!(remove(&one, &plain), "[permissions]\nallow = []\n");
    assert_eq!(remove("", &plain), "");
    let lists = [
        (
            "[permissions]\nallow = [\n  \"a\", # first\n  \"b\", # second\n]\n",
            "[permissions]\nallow = [\n  \"a\", # first\n  \"b\", # second\n  \"mcp__github__*\",\n]\n",
        ),
        (
            "[permissions]\r\nallow = [\r\n  \"a\" # last\r\n]\r\n",
            "[permissions]\r\nallow = [\r\n  \"a\", # last\r\n  \"mcp__github__*\"\r\n]\r\n",
        ),
        (
            "[permissions]\ndeny = [] # none\n\n[permissions.remembered]\n",
            "[permissions]\ndeny = [] # none\nallow = [\"mcp__github__*\"]\n\n[permissions.remembered]\n",
        ),
        (
            "[permissions.remembered]\nx = \"allow\"\n",
            "[permissions.remembered]\nx = \"allow\"\n\n[permissions]\nallow = [\"mcp__github__*\"]\n",
        ),
        (
            "permissions.ask = []\n",
            "permissions.ask = []\npermissions.allow = [\"mcp__github__*\"]\n",
        ),
    ];
    for (before, after) in lists {
        assert_eq!(add(before, &plain), after);
        let back = remove(after, &plain);
        if before.contains("allow = [") {
            assert_eq!(back.replace("\"a\", # last", "\"a\" # last"), before);
        }
    }
    let commented =
        "[permissions]\nallow = [\n  \"mcp__github__*\", # first\n  \"b\", # second\n]\n";
    assert_eq!(
        remove(commented, &plain),
        "[permissions]\nallow = [\n  \"b\", # second\n]\n"
    );
}

#[test]
fn answers_are_remembered_and_forgotten() {
    let room = Room::new();
    let (a, b) = ("a".parse().unwrap(), "b".into());
    let (odd, x) = ("git hub".parse().unwrap(), "x".into());
    let (ambiguous, y) = ("a__b".parse().unwrap(), "y".into());
    let plain = ToolRef::Mcp {
        server: &a,
        tool: &b,
    };
    let odd = ToolRef::Mcp {
        server: &odd,
        tool: &x,
    };
    let ambiguous = ToolRef::Mcp {
        server: &ambiguous,
        tool: &y,
    };
    let remembered = room.with("", |context, file| {
        remember(context, file, plain, Answer::Allow)?;
        remember(context, file, odd, Answer::Allow)?;
        assert!(remember(context, file, odd, Answer::Deny)?);
        assert!(!remember(context, file, odd, Answer::Deny)?);
        remember(context, file, ambiguous, Answer::Allow)
    });
    let remembered = remembered.unwrap();
    assert_eq!(
        remembered,
        "[permissions.remembered]\nmcp__a__b = \"allow\"\n\"mcp__git hub__x\" = \"deny\"\n\n\
         [permissions.remembered.a__b]\ny = \"allow\"\n"
    );
    let forgotten = room.with(&remembered, |context, file| {
        assert!(forget(context, file, odd)?);
        assert!(!forget(context, file, odd)?);
        assert!(forget(context, file, ambiguous)?);
        Ok(())
    });
    assert_eq!(
        forgotten.unwrap(),
        "[permissions.remembered]\nmcp__a__b = \"allow\"\n\n[permissions.remembered.a__b]\n"
    );
}

#[test]
fn an_answer_in_the_other_spelling_is_replaced() {
    let room = Room::new();
    let (server, tool) = ("a".parse().unwrap(), "b".into());
    let tool = ToolRef::Mcp {
        server: &server,
        tool: &tool,
    };
    let by_hand = "[permissions.remembered.a]\nb = \"deny\"\nc = \"deny\"\n";
    let remembered = room.with(by_hand, |context, file| {
        remember(context, file, tool, Answer::Allow)
    });
    let remembered = remembered.unwrap();
    assert!(!remembered.contains("b = \"deny\""), "{remembered}");
    assert!(remembered.contains("c = \"deny\""), "{remembered}");
    assert!(remembered.contains("mcp__a__b = \"allow\""), "{remembered}");
}

#[test]
fn settings_are_set_where_they_belong() {
    let room = Room::new();
    let set = |text: &str, key: &str, value: SettingValue| {
        room.with(text, |context, file| set_value(context, file, key, &value))
    };
    let text = |text: &str| SettingValue::Text(text.to_owned());
    let changed = [
        ("", "a", SettingValue::Boolean(true), "a = true\n"),
        (
            "# top\n[t]\n",
            "a",
            SettingValue::Integer(1),
            "a = 1\n\n# top\n[t]\n",
        ),
        (
            "b = 1 # b\n[t]\n",
            "a",
            SettingValue::Float(0.5),
            "b = 1 # b\na = 0.5\n[t]\n",
        ),
        (
            "[t]\nx = 'old' # why\n",
            "t.x",
            text("new\n"),
            "[t]\nx = \"new\\n\" # why\n",
        ),
        ("[t]\n", "t.u.x", text("v"), "[t]\n\n[t.u]\nx = \"v\"\n"),
        (
            "t = { u = { } }\n",
            "t.u.x",
            SettingValue::Integer(1),
            "t = { u = { x = 1 } }\n",
        ),
        (
            "[t]",
            "t.x",
            SettingValue::Texts(vec!["a".to_owned(), "b".to_owned()]),
            "[t]\nx = [\"a\", \"b\"]\n",
        ),
    ];
    for (before, key, value, after) in changed {
        assert_eq!(set(before, key, value).unwrap(), after);
    }
    for key in ["", "a..b", "a b", "."] {
        let error = set("", key, SettingValue::Integer(1)).unwrap_err();
        assert!(
            matches!(error, EditError::BadKey { .. }),
            "{key}: {error:?}"
        );
    }
    for (before, key) in [("[t]\n", "t"), ("t = 1\n", "t.x"), ("[[t]]\n", "t.x")] {
        let error = set(before, key, SettingValue::Integer(1)).unwrap_err();
        assert!(
            matches!(error, EditError::Unsupported(_)),
            "{key}: {error:?}"
        );
    }
    let unset = room.with("a = 1\n[t]\nx = 1\n", |context, file| {
        unset_value(context, file, "t.x")
    });
    assert_eq!(unset.unwrap(), "a = 1\n[t]\n");
}

#[test]
fn new_files_have_the_mode_of_the_context() {
    use std::os::unix::fs::PermissionsExt as _;
    let room = Room::new();
    let context = room.context.clone().private();
    add_server(
        &context,
        &room.file(),
        Format::Toml,
        "a",
        &npx(),
        IfExists::Fail,
    )
    .unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&room.file()), 0o600);
    assert_eq!(mode(room.file().parent().unwrap()), 0o700);
}

#[test]
fn a_new_file_with_values_that_may_be_secret_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let with_value = |value: &str| Entry {
        env: BTreeMap::from([("A".to_owned(), Text::from(value))]),
        ..npx()
    };
    let made = |entry: &Entry| {
        let room = Room::new();
        let (context, file) = (&room.context, room.file());
        add_server(context, &file, Format::Toml, "a", entry, IfExists::Fail).unwrap();
        mode(&file)
    };
    let public = made(&npx());
    assert_eq!(made(&with_value("hush")), 0o600);
    assert_eq!(made(&with_value("Bearer ${TOKEN}")), 0o600);
    assert_eq!(made(&with_value("${TOKEN}")), public);
    assert_eq!(made(&with_value("keyring:a")), public);
    // A file that is there keeps its mode.
    let room = Room::new();
    let (context, file) = (&room.context, room.file());
    add_server(context, &file, Format::Toml, "a", &npx(), IfExists::Fail).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let entry = with_value("hush");
    add_server(context, &file, Format::Toml, "b", &entry, IfExists::Fail).unwrap();
    assert_eq!(mode(&file), 0o640);
}

#[test]
fn errors_bring_the_hint_of_their_problem() {
    let room = Room::new();
    let added = room.with("\u{0}", |context, file| {
        add_server(context, file, Format::Toml, "a", &npx(), IfExists::Fail)
    });
    let error = added.unwrap_err();
    assert!(error.hint().unwrap().contains("backup"), "{error}");
    let removed = room.with("", |context, file| {
        remove_server(context, file, Format::Toml, "a")
    });
    assert_eq!(removed.unwrap_err().hint(), None);
}

#[test]
fn a_rule_is_told_with_the_text_before_and_after() {
    let room = Room::new();
    let rule = RuleText::new("x");
    let text = |text: &str| Some(Text::from(text));
    let add = || add_rule(&room.context, &room.file(), Verdict::Deny, &rule).unwrap();
    let one = "[permissions]\ndeny = [\"x\"]\n";
    let (before, after) = (None, text(one));
    assert_eq!(add(), Edited { before, after });
    let (before, after) = (text(one), None);
    assert_eq!(add(), Edited { before, after });
    let removed = remove_rule(&room.context, &room.file(), Verdict::Deny, &rule).unwrap();
    assert_eq!(removed.before, text(one));
    assert!(removed.is_changed());
    let found = fs::read_to_string(room.file()).unwrap();
    assert_eq!(removed.after, text(&found));
}
