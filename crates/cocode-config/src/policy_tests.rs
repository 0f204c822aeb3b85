//! What a policy blocks and why, and that it fails closed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cocode_core::{
    OAuth, Program, Reach, Remote, RemoteTransport, RuleSet, ServerSpec, Template, TemplatePart,
    ToolName, ToolUse, Verdict,
};
use proptest::prelude::{Strategy as _, prop_assert, prop_assert_eq, proptest};

use super::variables::changes_program;
use super::{Policy, PolicyVerdict};

const FILE: &str = "/etc/cocode/policy.toml";

fn spec(name: &str, reach: Reach) -> ServerSpec {
    ServerSpec::new(name.parse().unwrap(), reach)
}

fn program(words: &[&str]) -> Program {
    let (command, args) = words.split_first().unwrap();
    Program {
        command: (*command).to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: BTreeMap::new(),
        env_vars: Vec::new(),
        cwd: None,
        base: None,
        beside: None,
    }
}

fn command(name: &str, words: &[&str]) -> ServerSpec {
    spec(name, Reach::Program(program(words)))
}

fn remote(url: &str) -> Remote {
    Remote {
        transport: RemoteTransport::HttpWithFallback,
        url: url.to_owned(),
        headers: BTreeMap::new(),
        env_headers: BTreeMap::new(),
        bearer_token_env_var: None,
        headers_helper: None,
        oauth: OAuth::default(),
        base: None,
    }
}

fn address(name: &str, url: &str) -> ServerSpec {
    spec(name, Reach::Remote(Box::new(remote(url))))
}

fn with(name: &str, words: &[&str], change: impl FnOnce(&mut Program)) -> ServerSpec {
    let mut program = program(words);
    change(&mut program);
    spec(name, Reach::Program(program))
}

fn policy(text: &str) -> Policy {
    let policy = Policy::parse(text, Path::new(FILE));
    assert!(!policy.is_broken(), "{:?}", policy.problems());
    policy
}

/// The reason, or nothing if the server is allowed.
fn reason(policy: &Policy, spec: &ServerSpec) -> Option<String> {
    match policy.verdict(spec) {
        PolicyVerdict::Allowed => None,
        PolicyVerdict::Blocked { reason, origin } => {
            assert_eq!(&*origin.file, Path::new(FILE));
            assert!(origin.line.is_some(), "{reason}");
            Some(reason)
        }
    }
}

fn check(policy: &Policy, spec: &ServerSpec, expected: &str) {
    assert_eq!(reason(policy, spec).as_deref(), Some(expected));
}

#[test]
fn without_a_policy_everything_is_allowed() {
    let node = command("x", &["node"]);
    for policy in [Policy::none(), policy(""), policy("denied = []")] {
        assert!(policy.verdict(&node).is_allowed());
    }
    assert!(!Policy::none().is_present());
    assert!(policy("").is_present());
}

#[test]
fn an_empty_list_allows_nothing() {
    check(
        &policy("\nallowed = []"),
        &command("x", &["node"]),
        "it is not on the list of allowed servers at /etc/cocode/policy.toml:2",
    );
}

#[test]
fn claude_code_spelling_allows_and_denies() {
    let policy = policy(
        "allowedMcpServers = [{ serverCommand = [\"/bin/x\", \"-y\"] }, { serverName = \"docs\" }, \
         { serverUrl = \"https://*.example.com/*\" }]\n\
         deniedMcpServers = [{ serverUrl = \"https://evil.example.com/*\" }, { serverName = \"bad\" }]\n",
    );
    let allowed = |spec: &ServerSpec| reason(&policy, spec).is_none();
    assert!(allowed(&command("any", &["/bin/x", "-y"])));
    assert!(allowed(&address("any", "https://mcp.example.com/v1")));
    assert!(!allowed(&command("any", &["/bin/x", "-y", "more"])));
    assert!(!allowed(&address("any", "https://mcp.example.org/v1")));
    // A name alone does not count where the list has commands and URLs.
    assert!(!allowed(&command("docs", &["/bin/other"])));
    assert!(!allowed(&address("docs", "https://elsewhere.org/")));
    check(
        &policy,
        &address("any", "https://evil.example.com/v1"),
        "it is denied by the rule at /etc/cocode/policy.toml:2",
    );
    check(
        &policy,
        &command("bad", &["/bin/x", "-y"]),
        "it is denied by the rule at /etc/cocode/policy.toml:2",
    );
}

#[test]
fn claude_code_names_count_without_commands_and_urls() {
    let policy = policy("allowedMcpServers = [{ serverName = \"docs\" }]");
    assert_eq!(reason(&policy, &command("docs", &["/bin/x"])), None);
    assert!(reason(&policy, &command("other", &["/bin/x"])).is_some());
}

#[test]
fn both_spellings_count_together() {
    let policy = policy(
        "allowedMcpServers = [{ serverName = \"a\" }, { serverName = \"b\" }]\n\
         deniedMcpServers = [{ serverName = \"d\" }]\n\
         [[allowed]]\nname = \"b\"\n[[allowed]]\nname = \"c\"\n[[denied]]\nname = \"e\"\n",
    );
    let is_allowed = |name: &&str| reason(&policy, &command(name, &["/bin/x"])).is_none();
    let allowed: Vec<_> = ["a", "b", "c", "d", "e"]
        .into_iter()
        .filter(is_allowed)
        .collect();
    assert_eq!(allowed, ["b"]);
    for name in ["d", "e"] {
        let why = reason(&policy, &command(name, &["/bin/x"])).unwrap();
        assert!(why.starts_with("it is denied by the rule"), "{why}");
    }
    let closed = self::policy("allowedMcpServers = []\n[[allowed]]\nname = \"*\"");
    assert!(reason(&closed, &command("a", &["/bin/x"])).is_some());
}

#[test]
fn claude_code_entries_have_exactly_one_key() {
    for entry in [
        "",
        "serverName = \"x\", serverUrl = \"https://x/*\"",
        "name = \"x\"",
    ] {
        for list in ["allowedMcpServers", "deniedMcpServers"] {
            let policy = Policy::parse(&format!("{list} = [{{ {entry} }}]"), Path::new(FILE));
            assert!(policy.is_broken(), "{list}: {entry}");
            let said = policy.problems().first().unwrap().to_string();
            assert!(
                said.contains(&format!("policy.toml:1: key `{list}[0]")),
                "{said}"
            );
        }
    }
}

#[test]
fn denied_wins_over_allowed_and_says_why() {
    let policy = policy(
        "[[allowed]]\nname = \"*\"\n\n[[denied]]\nname = \"shell-*\"\nreason = \"ask security\"\n\
         [[denied]]\nurl = \"https://evil.org/*\"\n",
    );
    check(
        &policy,
        &command("shell-tools", &["x"]),
        "it is denied by the rule at /etc/cocode/policy.toml:4: ask security",
    );
    check(
        &policy,
        &address("fine", "https://evil.org:8443/mcp"),
        "it is denied by the rule at /etc/cocode/policy.toml:7",
    );
    assert_eq!(reason(&policy, &command("shell", &["x"])), None);
}

#[test]
fn commands_are_compared_word_by_word() {
    let policy = policy("[[allowed]]\ncommand = [\"npx\", \"-y\", \"@corp/server\"]");
    let words = ["npx", "-y", "@corp/server"];
    assert_eq!(reason(&policy, &command("any", &words)), None);
    for other in [
        &["npx", "-y", "@corp/server", "--evil"] as &[&str],
        &["npx", "-y"],
        &["npx", "-y @corp/server"],
        &["/tmp/npx", "-y", "@corp/server"],
        &["npx", "@corp/server", "-y"],
        &["NPX", "-y", "@corp/server"],
    ] {
        let reason = reason(&policy, &command("any", other)).unwrap();
        assert!(reason.contains("not on the list"), "{other:?}: {reason}");
    }
    let url = address("any", "https://npx/");
    assert!(reason(&policy, &url).is_some());
}

#[test]
fn all_keys_of_a_matcher_have_to_match() {
    let policy = policy(
        "[[allowed]]\nname = \"docs\"\nurl = \"https://*.example.com/*\"\n\
         [[denied]]\nname = \"old-*\"\ncommand = [\"node\", \"old.js\"]",
    );
    assert_eq!(
        reason(&policy, &address("docs", "https://a.example.com/")),
        None
    );
    assert!(reason(&policy, &address("other", "https://a.example.com/")).is_some());
    assert!(reason(&policy, &address("docs", "https://a.example.org/")).is_some());
    check(
        &policy,
        &command("old-x", &["node", "old.js"]),
        "it is denied by the rule at /etc/cocode/policy.toml:4",
    );
    let other = reason(&policy, &command("old-x", &["node", "new.js"])).unwrap();
    assert!(other.contains("not on the list"));
}

#[test]
fn sockets_and_websockets_are_matched_by_address() {
    let policy = policy(
        "[[allowed]]\nurl = \"unix:///run/mcp/*\"\n[[allowed]]\nurl = \"wss://*.example.com\"",
    );
    assert_eq!(
        reason(&policy, &address("a", "unix:///run/mcp/x.sock")),
        None
    );
    assert_eq!(
        reason(&policy, &address("a", "wss://a.example.com/s")),
        None
    );
    for url in [
        "unix:///run/mcp/../x.sock",
        "ws://a.example.com/",
        "https://a.example.com/",
    ] {
        assert!(reason(&policy, &address("a", url)).is_some(), "{url}");
    }
}

#[test]
fn an_allowed_command_cannot_be_turned_into_another_by_variables() {
    let strict = policy("[[allowed]]\ncommand = [\"node\"]\nreason = \"ask security\"");
    let loose =
        policy("[[allowed]]\ncommand = [\"node\"]\nallow_env = [\"node_options\", \"ld_*\"]");
    let named = policy("[[allowed]]\ncommand = [\"node\"]\n[[allowed]]\nname = \"x\"");
    let set = |name: &str| {
        with("x", &["node"], |program| {
            program
                .env
                .insert(name.to_owned(), Template::literal("value"));
        })
    };
    check(
        &strict,
        &set("NODE_OPTIONS"),
        "the rule at /etc/cocode/policy.toml:1 allows this command, but not with the variable \
         `NODE_OPTIONS`, which can change what is run: ask security",
    );
    for name in [
        "PATH",
        "Path",
        "LD_PRELOAD",
        "DYLD_INSERT_LIBRARIES",
        "npm_config_registry",
        "UV_INDEX_URL",
        "BASH_FUNC_x%%",
        "LD_PRELOAD=/x",
        "",
    ] {
        assert!(reason(&strict, &set(name)).is_some(), "{name}");
        assert_eq!(reason(&named, &set(name)), None, "{name}");
    }
    for name in ["API_KEY", "NODE_ENV", "PYTHONUNBUFFERED", "DEBUG"] {
        assert_eq!(reason(&strict, &set(name)), None, "{name}");
    }
    assert_eq!(reason(&loose, &set("NODE_OPTIONS")), None);
    assert_eq!(reason(&loose, &set("LD_PRELOAD")), None);
    assert!(reason(&loose, &set("PATH")).is_some());
}

#[test]
fn variables_passed_on_count_as_those_that_are_set() {
    let policy = policy("[[allowed]]\ncommand = [\"node\"]");
    let pass = |name: &str| {
        with("x", &["node"], |program| {
            program.env_vars.push(name.to_owned());
        })
    };
    assert!(reason(&policy, &pass("NODE_OPTIONS")).is_some());
    // Every program gets this one as the caller has it.
    assert_eq!(reason(&policy, &pass("PATH")), None);
    assert_eq!(reason(&policy, &pass("GITHUB_TOKEN")), None);
}

#[test]
fn a_directory_cannot_make_another_program_of_an_allowed_command() {
    let policy = policy(
        "[[allowed]]\ncommand = [\"node\", \"s.js\"]\n\
         [[allowed]]\ncommand = [\"bin/server\"]\n\
         [[allowed]]\ncommand = [\"bin/fixed\"]\ncwd = \"/srv/app\"",
    );
    let within = |words: &[&str], cwd: &str| {
        with("x", words, |program| program.cwd = Some(PathBuf::from(cwd)))
    };
    check(
        &policy,
        &within(&["node", "s.js"], "/evil"),
        "the rule at /etc/cocode/policy.toml:1 allows this command, but not in `/evil`",
    );
    check(
        &policy,
        &command("x", &["bin/server"]),
        "the rule at /etc/cocode/policy.toml:3 allows this command, but a relative path is another \
         program in every directory, so the rule needs `cwd`",
    );
    assert!(reason(&policy, &within(&["bin/server"], "/srv")).is_some());
    assert_eq!(reason(&policy, &within(&["bin/fixed"], "/srv/app")), None);
    assert!(reason(&policy, &within(&["bin/fixed"], "/srv")).is_some());
    // Where a project's file stands is no choice of the entry.
    let based = |words: &[&str], base: &str, cwd: Option<&str>| {
        with("x", words, |program| {
            program.base = Some(PathBuf::from(base));
            program.cwd = cwd.map(PathBuf::from);
        })
    };
    let node = ["node", "s.js"];
    assert_eq!(reason(&policy, &based(&node, "/srv", None)), None);
    assert_eq!(reason(&policy, &based(&node, "/srv", Some("/srv/."))), None);
    assert!(reason(&policy, &based(&node, "/srv", Some("/srv/x"))).is_some());
    assert!(reason(&policy, &based(&["bin/server"], "/srv", None)).is_some());
    assert_eq!(
        reason(&policy, &based(&["bin/fixed"], "/srv/app", None)),
        None
    );
    check(
        &policy,
        &command("x", &["bin/fixed"]),
        "the rule at /etc/cocode/policy.toml:5 allows this command only in `/srv/app`",
    );
}

#[test]
fn no_other_program_runs_beside_an_allowed_one() {
    let text = "[[allowed]]\ncommand = [\"node\"]\n[[allowed]]\nurl = \"https://a.example\"\n";
    let strict = policy(text);
    let loose = policy(&text.replace("]\n[[", "]\nallow_helpers = true\n[["));
    let secret = Template {
        parts: vec![TemplatePart::Command("evil".to_owned())],
    };
    let stored = Template {
        parts: vec![TemplatePart::Keyring("token".to_owned())],
    };
    let env = |template: &Template| {
        with("x", &["node"], |program| {
            program.env.insert("TOKEN".to_owned(), template.clone());
        })
    };
    check(
        &strict,
        &env(&secret),
        "the rule at /etc/cocode/policy.toml:1 allows this server, but not that it runs another \
         program, as its `env.TOKEN` does",
    );
    assert_eq!(reason(&strict, &env(&stored)), None);
    assert_eq!(reason(&loose, &env(&secret)), None);
    let mut helped = remote("https://a.example/");
    helped.headers_helper = Some("evil".to_owned());
    let helped = spec("x", Reach::Remote(Box::new(helped)));
    assert!(reason(&strict, &helped).unwrap().contains("headers_helper"));
    let mut asserted = remote("https://a.example/");
    asserted.oauth.assertion_command = Some("evil".to_owned());
    let asserted = spec("x", Reach::Remote(Box::new(asserted)));
    let objection = reason(&strict, &asserted).unwrap();
    assert!(objection.contains("oauth.assertion_command"), "{objection}");
    let mut headed = remote("https://a.example/");
    headed.headers.insert("X".to_owned(), secret);
    let headed = spec("x", Reach::Remote(Box::new(headed)));
    assert!(reason(&strict, &headed).unwrap().contains("headers.X"));
}

#[test]
fn whatever_is_not_understood_blocks_every_server_and_tool() {
    for (text, line, said) in [
        ("allowd = []", 1, "did you mean `allowed`?"),
        ("[[denied]]\nnme = \"x\"", 2, "did you mean `name`?"),
        ("[[denied]]\nreason = \"x\"", 1, ""),
        ("[[denied]]", 1, ""),
        ("[[denied]]\nname = 1", 2, ""),
        ("[[denied]]\nname = \"\"", 2, ""),
        ("[[denied]]\ncommand = \"npx x\"", 2, "write it as"),
        ("[[denied]]\ncommand = []", 2, ""),
        ("[[denied]]\ncommand = [\"a\", 1]", 2, ""),
        ("[[denied]]\nurl = \"example.com\"", 2, ""),
        ("[[denied]]\nname = \"x\"\nallow_env = []", 3, ""),
        ("[[denied]]\ncommand = [\"x\"]\nurl = \"https://x\"", 1, ""),
        ("[[allowed]]\nname = \"x\"\nallow_env = [\"PATH\"]", 1, ""),
        ("[[allowed]]\nname = \"x\"\ncwd = \"/x\"", 1, ""),
        ("[[allowed]]\ncommand = [\"x\"]\ncwd = \"x\"", 1, ""),
        ("[[allowed]]\nname = \"x\"\nallow_helpers = true", 1, ""),
        ("allowed = \"*\"", 1, ""),
        ("allowed = [\"github\"]", 1, ""),
        ("[permissions]\ndeny = [\"\"]", 2, ""),
        ("[permissions]\nalow = []", 2, "did you mean `allow`?"),
        ("[permissions]\nremembered = {}", 2, ""),
        ("[permissions]\ndefault = \"no\"", 2, ""),
        ("permissions = 1", 1, ""),
        ("[[allowed]\n", 1, ""),
    ] {
        let policy = Policy::parse(text, Path::new(FILE));
        assert!(policy.is_broken(), "{text}");
        let problem = policy.problems().first().unwrap();
        assert_eq!(problem.origin.line, Some(line), "{text}: {problem}");
        let hint = problem.hint.as_deref().unwrap_or_default();
        assert!(hint.contains(said), "{text}: {hint}");
        let reason = reason(&policy, &command("x", &["node"])).unwrap();
        let start = "every server is blocked because the policy cannot be used: ";
        let rest = reason.strip_prefix(start).unwrap();
        assert!(rest.starts_with(&format!("{FILE}:{line}: ")), "{rest}");
        assert_eq!(verdict(&policy, "read"), Verdict::Deny, "{text}");
    }
}

fn verdict(policy: &Policy, tool: &str) -> Verdict {
    let mut rules = RuleSet::new();
    policy.add_rules(&mut rules);
    let server = "files".parse().unwrap();
    let tool = ToolName::new(tool);
    rules.decide(&ToolUse::mcp(&server, &tool)).verdict
}

#[test]
fn the_organizations_rules_about_tools_are_read() {
    let policy = policy(
        "[permissions]\ndefault = \"ask\"\nallow = [\"mcp__files__read\"]\n\
         deny = [{ server = \"files\", tool = \"delete_*\" }]",
    );
    assert_eq!(verdict(&policy, "read"), Verdict::Allow);
    assert_eq!(verdict(&policy, "write"), Verdict::Ask);
    assert_eq!(verdict(&policy, "delete_all"), Verdict::Deny);
}

#[test]
fn the_organization_bounds_what_agents_may_be_asked() {
    use cocode_core::{ApprovalPolicy as Ask, SandboxMode as Mode};

    for free in [Policy::none(), policy(""), policy("[agent]")] {
        let bounds = free.agent_bounds();
        assert_eq!(bounds.objection_to_sandbox(Mode::DangerFullAccess), None);
        assert_eq!(bounds.objection_to_policy(Ask::Never), None);
    }
    let bounded =
        policy("[agent]\nmax_sandbox = \"workspace-write\"\napproval_policies = [\"on-request\"]");
    let bounds = bounded.agent_bounds();
    assert_eq!(bounds.objection_to_sandbox(Mode::WorkspaceWrite), None);
    assert_eq!(
        bounds.objection_to_sandbox(Mode::DangerFullAccess).unwrap(),
        "your organization allows no sandbox mode beyond `workspace-write`, at \
         /etc/cocode/policy.toml:2"
    );
    assert_eq!(bounds.objection_to_policy(Ask::OnRequest), None);
    // Who wants to be asked more may.
    assert_eq!(bounds.objection_to_policy(Ask::Untrusted), None);
    assert!(bounds.objection_to_policy(Ask::OnFailure).is_some());
    assert_eq!(
        bounds.objection_to_policy(Ask::Never).unwrap(),
        "your organization does not allow the approval policy `never`, only on-request, at \
         /etc/cocode/policy.toml:3"
    );
}

#[test]
fn bounds_of_agents_that_are_not_understood_are_the_closest() {
    use cocode_core::{ApprovalPolicy as Ask, SandboxMode as Mode};

    for text in [
        "[agent]\nmax_sandbox = \"most\"",
        "[agent]\nmax_sandbox = 3",
        "[agent]\nmax_sandbx = \"read-only\"",
        "[agent]\napproval_policies = []",
        "[agent]\napproval_policies = [\"allways\"]",
        "[agent]\napproval_policies = \"never\"",
        "agent = 3",
    ] {
        let broken = Policy::parse(text, Path::new(FILE));
        assert!(broken.is_broken(), "{text}");
        let bounds = broken.agent_bounds();
        assert!(bounds.objection_to_sandbox(Mode::WorkspaceWrite).is_some());
        assert_eq!(bounds.objection_to_sandbox(Mode::ReadOnly), None);
        assert!(bounds.objection_to_policy(Ask::OnRequest).is_some());
        assert!(bounds.objection_to_policy(Ask::Never).is_some());
        assert_eq!(bounds.objection_to_policy(Ask::Untrusted), None);
    }
}

#[test]
fn only_a_file_that_does_not_exist_is_no_policy() {
    let folder = std::env::temp_dir().join(format!("cocode-policy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let node = command("x", &["node"]);
    let blocks = |path: &Path| {
        let policy = Policy::read(path);
        let is_blocked = !policy.verdict(&node).is_allowed();
        assert_eq!(policy.is_broken(), is_blocked);
        is_blocked
    };
    assert!(!blocks(&folder.join("missing.toml")));
    assert!(blocks(&folder), "a directory");
    let binary = folder.join("binary.toml");
    std::fs::write(&binary, b"\xff\xfe\x00").unwrap();
    assert!(blocks(&binary));
    let fine = folder.join("fine.toml");
    std::fs::write(
        &fine,
        "\u{feff}\"$schema\" = \"x\"\r\n[[denied]]\r\nname = \"y\"\r\n",
    )
    .unwrap();
    assert!(!blocks(&fine));
    #[cfg(unix)]
    {
        let dangling = folder.join("dangling.toml");
        std::os::unix::fs::symlink(folder.join("missing.toml"), &dangling).unwrap();
        assert!(blocks(&dangling), "a link that leads nowhere");
        let circular = folder.join("circular.toml");
        std::os::unix::fs::symlink(&circular, &circular).unwrap();
        assert!(blocks(&circular), "a link to itself");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

proptest! {
    /// A deny rule is never undone, whatever is allowed beside it.
    #[test]
    fn what_is_denied_stays_denied(name in "[a-z]{1,4}", pattern in "[a-z*]{1,4}", allow in "[a-z*]{1,4}") {
        let denied = format!("[[denied]]\nname = \"{pattern}\"\n");
        let both = format!("{denied}[[allowed]]\nname = \"{allow}\"\n[[allowed]]\ncommand = [\"x\"]\n");
        let spec = command(&name, &["x"]);
        let alone = policy(&denied).verdict(&spec).is_allowed();
        prop_assert_eq!(policy(&both).verdict(&spec).is_allowed(), alone);
    }

    /// Exactly the words that are written are allowed.
    #[test]
    fn an_exact_command_allows_itself_alone(
        words in proptest::collection::vec("[a-z -]{1,3}", 1..4),
        other in proptest::collection::vec("[a-z -]{1,3}", 1..4),
    ) {
        let list = serde_json::to_string(&words).unwrap();
        let policy = policy(&format!("[[allowed]]\ncommand = {list}"));
        let spec = |words: &[String]| {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            command("x", &words)
        };
        prop_assert!(policy.verdict(&spec(&words)).is_allowed());
        prop_assert_eq!(policy.verdict(&spec(&other)).is_allowed(), words == other);
    }

    /// However it is spelled, a variable of the loader counts.
    #[test]
    fn variables_of_the_loader_are_known_in_any_case(
        name in "(ld|dyld|npm_config|uv|pip)_[a-zA-Z_]{1,10}".prop_flat_map(|name| {
            proptest::collection::vec(proptest::bool::ANY, name.len()).prop_map(move |upper| {
                let letters = name.chars().zip(upper);
                letters.map(|(letter, upper)| if upper { letter.to_ascii_uppercase() } else { letter }).collect::<String>()
            })
        })
    ) {
        prop_assert!(changes_program(&name));
    }

    /// No text makes the parser fail otherwise than by blocking.
    #[test]
    fn any_text_is_a_policy_or_a_block(text in "(\\[\\[(allowed|denied)\\]\\]\n|(name|url|command|x) = (\"[a-z*:/.]{0,9}\"|\\[\"x\"\\]|1)\n){0,6}") {
        let policy = Policy::parse(&text, Path::new(FILE));
        let is_allowed = policy.verdict(&command("x", &["y"])).is_allowed();
        prop_assert!(!policy.is_broken() || !is_allowed);
    }
}
