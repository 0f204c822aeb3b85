//! Edits of arbitrary files: what is added and removed again leaves no trace.

use std::fs;

use cocode_config::{
    EditContext, Entry, Format, IfExists, RuleText, Text, add_rule, add_server, forget, remember,
    remove_server, set_enabled,
};
use cocode_core::{Answer, ToolRef, Verdict};
use proptest::prelude::*;

/// Pieces that any TOML file may be made of; `@` becomes a number that is used once. Those at the
/// root come first, as they must.
const ROOT: &[&str] = &[
    "# a comment\n",
    "#:schema ./schema.json\n",
    "\n",
    "  \t\n",
    "key@ = 1 # why\n",
    "key@=[ 1,\n  # inside\n  2, ]\n",
    "text@ = \"\"\"\n# no comment\n[mcp_servers.no]\n\"\"\"\n",
    "text@ = '''\n# no comment'''\n",
    "a@.b.c = 1\n",
    "table@ = {x=1,y={z=2}}\n",
];
const TABLES: &[&str] = &[
    "# a comment\n",
    "\n",
    "# attached\n[t@]\n",
    "  [ t@ . \"x y\" ] # odd\nx = 1\n",
    "[t@]\nx.y = 1\nz = 2\nx.w = 3\n",
    "[[list@]]\nx = 1\n[[list@]]\n[list@.sub]\n",
    "[mcp_servers.s@]\ncommand = \"x\"\n# args = []\n",
    "[mcp_servers.s@.env]\nX = \"1\"\n\n# above\n[mcp_servers.s@]\ncommand='y'\n",
    "[mcp_servers.s@]\nurl = \"https://example.com\" # address\n[mcp_servers.s@.headers]\nX = \"1\"\n",
    "[t@]\ntext = \"\"\"\n\n# no comment\"\"\"\n",
];

/// A valid file. Line ends, the mark and the end of the last line vary.
fn document() -> impl Strategy<Value = String> {
    let pieces =
        |from: &'static [&'static str]| prop::collection::vec(prop::sample::select(from), 0..6);
    let servers = prop::sample::select(
        &[
            "",
            "[mcp_servers]\n",
            "[mcp_servers]\nin = { command = \"x\" } # one\n",
            "[mcp_servers]\n# dotted\ndot.command = \"x\"\ndot.env.X = \"1\"\n",
        ][..],
    );
    let form = (any::<bool>(), any::<bool>(), any::<bool>());
    (pieces(ROOT), servers, pieces(TABLES), form).prop_map(|(root, servers, tables, form)| {
        let (is_crlf, has_mark, is_open) = form;
        let mut text = String::new();
        for (index, piece) in root.iter().chain([&servers]).chain(&tables).enumerate() {
            text.push_str(&piece.replace('@', &index.to_string()));
        }
        if is_open && text.ends_with('\n') {
            text.pop();
        }
        if is_crlf {
            text = text.replace('\n', "\r\n");
        }
        if has_mark {
            text.insert(0, '\u{feff}');
        }
        text
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    let text = || any::<String>();
    let word = || "[a-zA-Z0-9_./-]{1,12}";
    (
        word(),
        prop::collection::vec(text(), 0..4),
        prop::collection::btree_map(text(), text().prop_map(Text), 0..4),
        prop::option::of(any::<bool>()),
    )
        .prop_map(|(command, args, env, enabled)| Entry {
            command: Some(command),
            args,
            env,
            enabled,
            ..Entry::default()
        })
}

/// What may be left of an edit that was undone: the end of the last line, which then had none,
/// and an empty line less.
fn trimmed(text: &str) -> &str {
    text.trim_end()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_server_that_is_added_and_removed_leaves_no_trace(text in document(), entry in entry()) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mcp.toml");
        let context = EditContext::new(directory.path().join("locks"));
        fs::write(&file, &text).unwrap();
        add_server(&context, &file, Format::Toml, "new", &entry, IfExists::Fail).unwrap();
        let added = fs::read_to_string(&file).unwrap();
        prop_assert!(added.starts_with(&text), "{:?}\n{:?}", text, added);
        remove_server(&context, &file, Format::Toml, "new").unwrap();
        let removed = fs::read_to_string(&file).unwrap();
        prop_assert_eq!(trimmed(&removed), trimmed(&text));
        let last = text.trim_start_matches('\u{feff}').lines().next_back();
        let is_usual = text.ends_with('\n') && last.is_some_and(|last| !last.trim().is_empty());
        if is_usual {
            prop_assert_eq!(removed, text);
        }
    }

    #[test]
    fn a_server_that_is_disabled_and_enabled_is_as_before(text in document(), entry in entry()) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mcp.toml");
        let context = EditContext::new(directory.path().join("locks"));
        let entry = Entry { enabled: None, ..entry };
        fs::write(&file, &text).unwrap();
        add_server(&context, &file, Format::Toml, "new", &entry, IfExists::Fail).unwrap();
        let before = fs::read_to_string(&file).unwrap();
        let others = [("in", "\nin = {"), ("dot", "\ndot.command")];
        let others = others.into_iter().filter(|(_, line)| text.contains(line));
        for name in others.map(|(name, _)| name).chain(["new"]) {
            prop_assert!(set_enabled(&context, &file, Format::Toml, name, false).unwrap());
            prop_assert!(set_enabled(&context, &file, Format::Toml, name, true).unwrap());
            prop_assert_eq!(&fs::read_to_string(&file).unwrap(), &before);
        }
    }

    #[test]
    fn an_answer_that_is_remembered_and_forgotten_leaves_other_lines_alone(text in document(), tool in "[a-z_ü ]{1,12}") {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.toml");
        let context = EditContext::new(directory.path().join("locks"));
        fs::write(&file, &text).unwrap();
        remember(&context, &file, ToolRef::BuiltIn { name: "first" }, Answer::Allow).unwrap();
        add_rule(&context, &file, Verdict::Deny, &RuleText::new("x")).unwrap();
        let before = fs::read_to_string(&file).unwrap();
        prop_assert!(before.starts_with(&text));
        let tool = ToolRef::BuiltIn { name: &tool };
        prop_assert!(remember(&context, &file, tool, Answer::Deny).unwrap());
        prop_assert!(forget(&context, &file, tool).unwrap());
        prop_assert_eq!(fs::read_to_string(&file).unwrap(), before);
    }

    #[test]
    fn a_json_server_that_is_added_and_removed_leaves_no_trace(entry in entry(), is_crlf in any::<bool>()) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(".mcp.json");
        let context = EditContext::new(directory.path().join("locks"));
        let mut text = "// top\n{\n  // all\n  \"mcpServers\": {\n    \"b\": { \"command\": \"x\" } // b\n  },\n  \"z\": null\n}\n".to_owned();
        if is_crlf {
            text = text.replace('\n', "\r\n");
        }
        fs::write(&file, &text).unwrap();
        add_server(&context, &file, Format::Json, "new", &entry, IfExists::Fail).unwrap();
        remove_server(&context, &file, Format::Json, "new").unwrap();
        prop_assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}
