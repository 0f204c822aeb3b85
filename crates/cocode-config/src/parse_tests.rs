//! Entries in both languages: every key of the table, every way to get it wrong.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::keys::{JSON_ONLY, Kind};

const FILE: &str = "/f";

/// The servers of a text, and what is wrong with the file.
fn read(text: &str, format: Format) -> (Vec<Found>, Vec<Problem>) {
    let root = crate::read::parsed(Path::new(FILE), text, format).unwrap();
    let mut problems = Vec::new();
    let found = servers(&root, format, &Origin::file(FILE), &mut problems);
    (found, problems)
}

/// One server with this body, and whatever it needs besides.
fn toml(body: &str) -> Found {
    let (found, problems) = read(&format!("[mcp_servers.s]\n{body}"), Format::Toml);
    assert_eq!(problems, []);
    found.into_iter().next().unwrap()
}

fn json(body: &str) -> Found {
    let (found, _) = read(
        &format!("{{\"mcpServers\": {{\"s\": {{\n{body}}}}}}}"),
        Format::Json,
    );
    found.into_iter().next().unwrap()
}

fn said(found: &Found) -> Vec<String> {
    found.problems.iter().map(ToString::to_string).collect()
}

/// A value that fits a key, as JSON, and what it becomes among the lines of an entry.
fn fitting(key: &Key) -> &'static str {
    match (key.name, &key.kind) {
        ("protocol", _) => "\"modern\"",
        ("isolation", _) => "\"per-session\"",
        ("sandbox", _) => "\"read-only\"",
        ("transport", _) => "\"sse\"",
        ("registration", _) => "\"dcr\"",
        ("grant", _) => "\"jwt_bearer\"",
        ("signing_algorithm", _) => "\"EdDSA\"",
        ("dpop", _) => "\"never\"",
        (_, Kind::Text | Kind::OneOf(_)) => "\"text\"",
        (_, Kind::TextList) => "[\"one\", \"two\"]",
        (_, Kind::TextMap) => "{\"K\": \"v\"}",
        (_, Kind::Boolean) => "true",
        (_, Kind::Seconds) => "2.5",
        (_, Kind::Millis) => "2500",
        (_, Kind::SecondsMap) => "{\"K\": 2.5}",
        (_, Kind::Port) => "8080",
        (_, Kind::Table(_)) => "{\"client_id\": \"text\"}",
    }
}

/// The same in TOML.
fn in_toml(value: &str) -> String {
    value.replace(": ", " = ")
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| {
        let (initial, rest) = part.split_at(1);
        name + &initial.to_uppercase() + rest
    })
}

/// Keys whose value is somewhere else in the entry.
fn line_name(key: &Key) -> &str {
    match key.name {
        "scopes" => "oauth.scopes",
        "disabled" => "enabled",
        "timeout" => "tool_timeout_sec",
        name => name,
    }
}

fn has_line(found: &Found, name: &str) -> bool {
    let lines = found.entry.lines();
    let inside = format!("{name}.");
    lines
        .iter()
        .any(|line| line.key == name || line.key.starts_with(&inside))
}

#[test]
fn every_key_in_every_spelling_is_read() {
    for key in keys::SERVER {
        let camel = camel_case(key.name);
        let spellings = [key.name, &camel]
            .into_iter()
            .chain(key.aliases.iter().copied());
        for spelling in spellings.chain(key.json_aliases.iter().copied()) {
            let found = json(&format!("\"{spelling}\": {}", fitting(key)));
            assert!(
                has_line(&found, line_name(key)),
                "{spelling}: {:?}",
                said(&found)
            );
            assert_eq!(found.lines.get(key.name), Some(&2), "{spelling}");
        }
        if JSON_ONLY.contains(&key.name) {
            continue;
        }
        for spelling in std::iter::once(key.name).chain(key.aliases.iter().copied()) {
            let found = toml(&format!("{spelling} = {}\n", in_toml(fitting(key))));
            assert!(
                has_line(&found, line_name(key)),
                "{spelling}: {:?}",
                said(&found)
            );
            assert_eq!(found.lines.get(key.name), Some(&2), "{spelling}");
        }
    }
    for key in keys::OAUTH {
        let name = format!("oauth.{}", key.name);
        let found = json(&format!(
            "\"oauth\": {{\"{}\": {}}}",
            camel_case(key.name),
            fitting(key)
        ));
        assert!(has_line(&found, &name), "{name}: {:?}", said(&found));
        let found = toml(&format!("{name} = {}\n", fitting(key)));
        assert!(has_line(&found, &name), "{name}: {:?}", said(&found));
    }
}

#[test]
fn a_wrong_type_for_any_key_is_an_error_at_its_line() {
    let wrong = |kind: &Kind| match kind {
        Kind::Text | Kind::OneOf(_) | Kind::TextMap | Kind::SecondsMap | Kind::Table(_) => "7",
        Kind::TextList => "[7]",
        Kind::Boolean | Kind::Seconds | Kind::Millis | Kind::Port => "\"hunter2\"",
    };
    let check = |found: &Found, name: &str, line| {
        let about = |problem: &&Problem| {
            let key = problem.key.as_deref().unwrap_or_default();
            key == name || key.starts_with(&format!("{name}["))
        };
        let problem = found.problems.iter().find(about);
        let problem = problem.unwrap_or_else(|| panic!("{name}: {:?}", said(found)));
        assert!(problem.is_error());
        assert_eq!(problem.origin, Origin::file(FILE).at(line), "{name}");
        assert!(
            problem
                .to_string()
                .starts_with(&format!("{FILE}:{line}: server `s`, key `"))
        );
        assert!(!problem.to_string().contains("hunter2"));
    };
    for key in keys::SERVER {
        let body = format!(
            "\"command\": \"x\",\n\"{}\": {}",
            key.name,
            wrong(&key.kind)
        );
        let body = if key.name == "command" {
            "\n\"command\": 7".to_owned()
        } else {
            body
        };
        check(&json(&body), key.name, 3);
        if !JSON_ONLY.contains(&key.name) {
            let body = format!("\n{} = {}\n", key.name, wrong(&key.kind));
            check(&toml(&body), key.name, 3);
        }
    }
    for key in keys::OAUTH {
        let name = format!("oauth.{}", key.name);
        check(
            &toml(&format!("command = \"x\"\n{name} = {}\n", wrong(&key.kind))),
            &name,
            3,
        );
    }
}

#[test]
fn an_unknown_key_is_an_error_in_our_files_and_a_warning_in_others() {
    let found = toml("command = \"x\"\ncomand = \"x\"\n");
    let problem = found.problems.first().unwrap();
    assert!(found.is_broken());
    assert_eq!(problem.hint.as_deref(), Some("did you mean `command`?"));
    assert_eq!(problem.origin.line, Some(3));
    let found = json("\"command\": \"x\", \"tpye\": \"stdio\"");
    assert!(!found.is_broken());
    assert_eq!(
        found.problems.first().unwrap().hint.as_deref(),
        Some("did you mean `type`?")
    );
    for (key, hint) in [
        ("disabled", "enabled = false"),
        ("timeout", "tool_timeout_sec"),
        ("type", "transport"),
    ] {
        let found = toml(&format!("command = \"x\"\n{key} = 1\n"));
        let problem = found.problems.first().unwrap();
        assert!(problem.hint.as_deref().unwrap().contains(hint));
    }
    let many: Vec<_> = (0..1000).map(|at| format!("unknown{at} = 1")).collect();
    assert!(toml(&many.join("\n")).problems.len() <= MAX_UNKNOWN_KEYS + 2);
}

#[test]
fn what_cannot_both_be_meant_is_an_error() {
    for body in [
        "\"command\": \"x\", \"url\": \"https://h\"",
        "\"command\": \"x\", \"program\": \"y\"",
        "\"url\": \"https://h\", \"headers\": {}, \"httpHeaders\": {}",
        "\"command\": \"x\", \"enabled\": true, \"disabled\": true",
        "\"command\": \"x\", \"timeout\": 1, \"toolTimeoutSec\": 1",
        "\"url\": \"https://h\", \"scopes\": [\"a\"], \"oauth\": {\"scopes\": [\"b\"]}",
        "\"url\": \"https://h\", \"type\": \"stdio\"",
        "\"command\": \"x\", \"type\": \"http\"",
        "\"args\": []",
    ] {
        assert!(json(body).is_broken(), "{body}");
    }
    for body in [
        "\"command\": \"x\", \"program\": null",
        "\"command\": \"x\", \"enabled\": true, \"disabled\": false",
        "\"command\": \"x\", \"url\": null, \"oauth\": {\"client_id\": null}",
    ] {
        assert_eq!(said(&json(body)), Vec::<String>::new(), "{body}");
    }
}

#[test]
fn a_word_that_there_is_not_is_answered_with_the_nearest_one() {
    for (key, word, meant) in [
        ("registration", "cmid", "cimd"),
        ("grant", "client_credential", "client_credentials"),
        ("signing_algorithm", "es256", "ES256"),
        ("signing_algorithm", "HS256", "ES256"),
        ("dpop", "allways", "always"),
    ] {
        let found = toml(&format!("url = \"https://h\"\noauth.{key} = \"{word}\"\n"));
        let problem = found.problems.first().unwrap();
        let said = problem.to_string();
        assert!(
            said.starts_with(&format!(
                "{FILE}:3: server `s`, key `oauth.{key}`: `{word}` is not"
            )),
            "{said}"
        );
        assert!(problem.is_error());
        let hint = format!("did you mean `{meant}`?");
        assert_eq!(problem.hint.as_deref(), Some(hint.as_str()));
    }
}

#[test]
fn what_is_for_another_way_to_sign_in_is_said_to_do_nothing() {
    let warned = |body: &str| {
        let found = toml(&format!(
            "url = \"https://h\"\n[mcp_servers.s.oauth]\n{body}"
        ));
        assert!(!found.is_broken(), "{:?}", said(&found));
        let problems = found.problems.iter();
        let keys = problems.map(|problem| problem.key.clone().unwrap_or_default());
        keys.collect::<Vec<_>>()
    };
    let all = "assertion_env = \"A\"\nassertion_file = \"a\"\nassertion_command = \"a\"\n\
               idp_issuer = \"i\"\nidp_token_endpoint = \"t\"\nidp_client_id = \"c\"\n\
               idp_client_secret_env = \"S\"\n";
    let of_assertion = ["assertion_env", "assertion_file", "assertion_command"];
    let of_provider = [
        "idp_issuer",
        "idp_token_endpoint",
        "idp_client_id",
        "idp_client_secret_env",
    ];
    let named = |keys: &[&str]| -> Vec<String> {
        let keys = keys.iter();
        keys.map(|key| format!("oauth.{key}")).collect()
    };
    let both = [of_assertion.as_slice(), &of_provider].concat();
    assert_eq!(warned(all), named(&both));
    let of_client = format!("{all}grant = \"client_credentials\"\n");
    assert_eq!(warned(&of_client), named(&both));
    let of_jwt = format!("{all}grant = \"jwt_bearer\"\n");
    assert_eq!(warned(&of_jwt), named(&of_provider));
    let of_enterprise = format!("{all}grant = \"enterprise\"\n");
    assert_eq!(warned(&of_enterprise), named(&[]));
    let signing = "signing_algorithm = \"ES256\"\n";
    assert_eq!(warned(signing), named(&["signing_algorithm"]));
    let with_key = format!("{signing}private_key_env = \"K\"\n");
    assert_eq!(warned(&with_key), named(&[]));
    let found = toml("url = \"https://h\"\n[mcp_servers.s.oauth]\nassertion_env = \"A\"\n");
    assert_eq!(
        said(&found),
        [format!(
            "{FILE}:4: server `s`, key `oauth.assertion_env`: this is for the grants jwt_bearer \
             and enterprise, and does nothing here"
        )]
    );
}

#[test]
fn of_duplicates_the_last_counts_and_is_said() {
    let found = json("\"command\": \"x\",\n\"command\": \"y\"");
    assert_eq!(found.entry.command.as_deref(), Some("y"));
    assert_eq!((found.is_broken(), found.problems.len()), (false, 1));
    let text =
        r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}, "a": {"command": "y"}}}"#;
    let (found, problems) = read(text, Format::Json);
    let commands: Vec<_> = found
        .iter()
        .map(|found| found.entry.command.as_deref())
        .collect();
    assert_eq!(commands, [Some("y"), Some("x")]);
    assert_eq!(problems.len(), 1);
    assert!(problems.iter().all(|problem| !problem.is_error()));
}

#[test]
fn one_broken_entry_hides_no_other() {
    let text = "[mcp_servers]\na = 1\nb = { command = \"x\" }\nc = { url = 1 }\n\"\" = { command = \"x\" }\n";
    let (found, problems) = read(text, Format::Toml);
    let broken: Vec<_> = found
        .iter()
        .map(|one| (one.name.as_str(), one.is_broken()))
        .collect();
    assert_eq!(broken, [("a", true), ("b", false), ("c", true), ("", true)]);
    assert_eq!(problems, []);
}

#[test]
fn values_mean_what_other_tools_mean() {
    let found = json(
        "\"command\": \"x\", \"timeout\": 1500, \"disabled\": true, \"type\": \"local\", \"env\": {\"A\": 1, \"B\": true}",
    );
    assert_eq!(said(&found), Vec::<String>::new());
    assert_eq!(found.entry.tool_timeout_sec, Some(crate::Seconds(1.5)));
    assert_eq!(found.entry.enabled, Some(false));
    assert_eq!(found.entry.transport, Some(Transport::Stdio));
    let env: Vec<_> = found
        .entry
        .env
        .values()
        .map(|text| text.0.as_str())
        .collect();
    assert_eq!(env, ["1", "true"]);
    let found = toml("url = \"https://h\"\nscopes = \"a b\"\n");
    assert_eq!(found.entry.oauth.scopes, ["a", "b"]);
    for number in ["0", "-1", "nan", "inf", "1e300"] {
        assert!(toml(&format!("command = \"x\"\ntool_timeout_sec = {number}\n")).is_broken());
    }
}

#[test]
fn times_of_single_tools_are_read_each_at_its_line() {
    let found = toml(
        "command = \"x\"\n[mcp_servers.s.tool_timeouts_sec]\nsearch = 5\n\"export_*\" = 0.5\n",
    );
    assert_eq!(said(&found), Vec::<String>::new());
    let times = [("export_*", 0.5), ("search", 5.0)];
    let times = times.map(|(tool, seconds)| (tool.to_owned(), crate::Seconds(seconds)));
    assert_eq!(found.entry.tool_timeouts_sec, BTreeMap::from(times.clone()));
    assert_eq!(found.origin_of("tool_timeouts_sec.export_*").line, Some(5));
    let found = json("\"command\": \"x\", \"toolTimeoutsSec\": {\"search\": 5, \"export_*\": 0.5}");
    assert_eq!(found.entry.tool_timeouts_sec, BTreeMap::from(times));
    let found = toml(
        "command = \"x\"\ntool_timeouts_sec = { good = 1, none = 0, word = \"hunter2\", \"\" = 1 }\n",
    );
    assert_eq!(
        said(&found),
        [
            "/f:3: server `s`, key `tool_timeouts_sec.none`: it must be more than zero, and less than forever",
            "/f:3: server `s`, key `tool_timeouts_sec.word`: it is a text, but must be a number",
            "/f:3: server `s`, key `tool_timeouts_sec`: one of its names is empty",
        ]
        .map(|problem| problem.replace("/f", FILE))
    );
}

const TOML: &str = "[mcp_servers.a]\ncommand = \"x\"\nargs = [\"${A:-b}\"]\nenv = { A = \"hunter2\" }\n\n[mcp_servers.b]\nurl = \"https://h/\"\nheaders.X = \"hunter2\"\n[mcp_servers.b.oauth]\nscopes = [\"a\"]\n";
const JSON: &str = "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\"${A:-b}\"], \"env\": {\"A\": \"hunter2\"}},\n\"b\": {\"type\": \"http\", \"url\": \"https://h/\", \"timeout\": 5, \"headers\": {\"X\": \"hunter2\"}}}}";

/// A good file with some bytes changed, taken out or put in.
fn mutated() -> impl Strategy<Value = (Vec<u8>, Format)> {
    let change = (
        any::<prop::sample::Index>(),
        0..4_u8,
        any::<u8>(),
        prop::sample::select(b"\"'[]{}=,:.$#\\\n\0\xff".as_slice()),
    );
    let file = prop::sample::select(&[(TOML, Format::Toml), (JSON, Format::Json)][..]);
    (file, prop::collection::vec(change, 1..6)).prop_map(|((text, format), changes)| {
        let mut bytes = text.as_bytes().to_vec();
        for (index, how, byte, special) in changes {
            let at = index.index(bytes.len().max(1)).min(bytes.len());
            match how {
                0 => bytes.insert(at, byte),
                1 => bytes.insert(at, special),
                2 if at < bytes.len() => bytes[at] = special,
                _ => bytes.truncate(bytes.len().max(1) - 1),
            }
        }
        (bytes, format)
    })
}

/// Reads bytes as a file would be, and checks what must hold for any.
fn read_any(bytes: &[u8], format: Format) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("f");
    std::fs::write(&file, bytes).unwrap();
    let place = crate::scope::Place::new(crate::Scope::Project, file.clone(), format);
    let layer = crate::layers::layer(&place);
    let of_servers = layer.servers.iter().flat_map(|found| &found.problems);
    for problem in layer.problems.iter().chain(of_servers) {
        assert_eq!(*problem.origin.file, *file, "{problem}");
    }
    for found in layer.servers.iter().filter(|found| !found.is_broken()) {
        match crate::check_entry(&found.name, &found.entry, &|_| None) {
            Ok(spec) => assert_eq!(spec.name.as_str(), found.name),
            Err(problems) => assert!(!problems.is_empty()),
        }
        assert!(!format!("{found:?}").is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_mutation_of_a_file_makes_reading_panic((bytes, format) in mutated()) {
        read_any(&bytes, format);
    }

    #[test]
    fn no_bytes_make_reading_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), is_json in any::<bool>()) {
        read_any(&bytes, if is_json { Format::Json } else { Format::Toml });
    }
}
