//! Who may use a gateway: which files say so, what is refused, and that nothing broken opens anything.

use std::path::Path;

use cocode_core::{Answer, Narrowed, RuleSet, ToolName, ToolRef, ToolUse, Verdict};

use super::{GatewaySettings, GatewayStore, is_about_access, is_owners_alone};
use crate::document::{Format, parse};
use crate::problem::{Origin, Problem};
use crate::settings::parse::parse_settings;
use crate::settings::{LayerTrust, SettingOrigin, SettingsFile, SettingsLayer, merge_settings};

use Verdict::{Allow, Ask, Deny};

fn layer(scope: &'static str, trust: LayerTrust, text: &str) -> (SettingsLayer, Vec<Problem>) {
    let root = parse(text, Format::Toml).unwrap();
    let origin = Origin::file(format!("{scope}.toml"));
    let (settings, problems) = parse_settings(&root, &origin, SettingsFile::Alone);
    (
        SettingsLayer {
            scope,
            trust,
            settings,
        },
        problems,
    )
}

/// The settings of files, and all that is wrong with them.
fn of(files: &[(&'static str, LayerTrust, &str)]) -> (GatewaySettings, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut layers = Vec::new();
    for (scope, trust, text) in files {
        let (layer, found) = layer(scope, *trust, text);
        layers.push(layer);
        problems.extend(found);
    }
    let (settings, found) = merge_settings(&layers);
    problems.extend(found);
    (settings.gateway, problems)
}

fn own(text: &str) -> (GatewaySettings, Vec<Problem>) {
    of(&[("user", LayerTrust::Own, text)])
}

#[track_caller]
fn good(text: &str) -> GatewaySettings {
    let (settings, problems) = own(text);
    assert_eq!(problems, [], "{text}");
    settings
}

#[test]
fn everything_can_be_said_in_one_file() {
    let gateway = good(
        r#"
        [gateway]
        admin_listen = "127.0.0.1:7778"
        admin_url = "https://gate.example.com"
        allow_hosts = ["mcp.example.com", "10.0.0.11:7777"]
        allow_origins = ["https://mcp.example.com"]
        store = "postgres://cocode:${DB_PASSWORD}@db.example.com/cocode"
        [gateway.oauth]
        issuers = ["https://login.example.com", "https://other.example.com/realm"]
        resource = "https://mcp.example.com/mcp"
        audiences = ["mcp"]
        algorithms = ["ES256"]
        principal_claim = "email"
        required_scopes = ["mcp:use"]
        admin_scope = "mcp:admin"
        leeway_sec = 0
        [gateway.principals.ci]
        servers = ["github"]
        allow = ["mcp__github__*"]
        deny = [{ server = "github", tool = "delete_*" }]
        calls_per_minute = 60
        max_concurrent = 4
        max_sessions = 2
        [gateway.principals.ana]
        admin = true
        [gateway.principals."*"]
        ask = ["*"]
        [gateway.limits]
        calls_per_minute = 600
        max_concurrent = 64
        [gateway.limits.servers.github]
        max_concurrent = 8
        [gateway.audit]
        enabled = true
        directory = "audit"
        arguments = true
        max_file_mb = 64
        keep_files = 30
        on_failure = "continue"
        "#,
    );
    assert_eq!(gateway.max_sessions_of("ci"), 2);
    assert_eq!(gateway.max_sessions_of("ana"), 256);
    assert_eq!(gateway.admin_listen.unwrap().value, "127.0.0.1:7778");
    assert_eq!(gateway.admin_url.unwrap().value, "https://gate.example.com");
    assert_eq!(
        gateway.allow_hosts.value,
        ["mcp.example.com", "10.0.0.11:7777"]
    );
    assert_eq!(gateway.allow_origins.value, ["https://mcp.example.com"]);
    let oauth = gateway.oauth.unwrap();
    assert_eq!(oauth.issuers.value.len(), 2);
    assert_eq!(oauth.principal_claim.value, "email");
    assert_eq!(oauth.algorithms.value, ["ES256"]);
    assert!(oauth.leeway.value.is_zero());
    let ci = gateway.principals.get("ci").unwrap();
    assert_eq!(
        (ci.calls_per_minute, ci.max_concurrent),
        (Some(60), Some(4))
    );
    assert_eq!(ci.admin, None);
    assert_eq!(gateway.principals.get("ana").unwrap().admin, Some(true));
    let github = gateway.limits.servers.get("github").unwrap();
    assert_eq!(
        (github.calls_per_minute, github.max_concurrent),
        (None, Some(8))
    );
    assert!(gateway.audit.is_enabled(false));
    assert_eq!(gateway.audit.on_failure.value.as_str(), "continue");
    assert_eq!(gateway.audit.max_file_mb.unwrap().value, 64);
}

#[test]
fn what_nobody_says_is_what_is_safe() {
    let gateway = good("");
    assert_eq!(gateway.store.value, GatewayStore::Sqlite);
    assert_eq!(gateway.oauth, None);
    assert_eq!(gateway.principal("anybody"), None);
    assert_eq!(gateway.max_sessions_of("anybody"), 256);
    assert_eq!(gateway.metrics.value.as_str(), "admin");
    assert!(!gateway.audit.is_enabled(false));
    assert!(
        gateway.audit.is_enabled(true),
        "somebody can be held to account"
    );
    assert!(!gateway.audit.arguments.value);
    assert_eq!(gateway.audit.on_failure.value.as_str(), "refuse");
    let oauth = "[gateway.oauth]\nissuers = ['https://i']\nresource = 'https://r'";
    let oauth = good(oauth).oauth.unwrap();
    assert_eq!(oauth.principal_claim.value, "sub");
    assert_eq!(oauth.leeway.value.as_secs(), 60);
    let none_or_shared = |name: &String| name == "none" || name.starts_with("HS");
    assert!(!oauth.algorithms.value.iter().any(none_or_shared));
    let of_retention = good("[retention]\naudit_max_mb = 5");
    assert_eq!(of_retention.audit.max_file_mb.unwrap().value, 5);
}

/// What is written, what is said about it, and the hint.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "[gateway]\nstore = 'postgres://cocode:hunter2@db/cocode'",
        "user.toml:2: key `gateway.store`: a password cannot be written here, only where it is",
        "write `${VAR}` or `${keyring:NAME}` in its place",
    ),
    (
        "[gateway]\nstore = 'postgres://db/cocode?user=me&password=hunter2'",
        "user.toml:2: key `gateway.store`: a password cannot be written here, only where it is",
        "write `${VAR}` or `${keyring:NAME}` in its place",
    ),
    (
        "[gateway]\nstore = 'postgres://cocode:${PW:-hunter2}@db/cocode'",
        "user.toml:2: key `gateway.store`: a password cannot be written here, only where it is",
        "write `${VAR}` or `${keyring:NAME}` in its place",
    ),
    (
        "[gateway]\nallow_hosts = ['mcp.example.com', 'https://mcp.example.com']",
        "user.toml:2: key `gateway.allow_hosts[1]`: this is no host: write a name or an address, as in \
         example.com or example.com:7777, without a scheme or a path",
        "",
    ),
    (
        "[gateway]\nallow_origins = ['https://mcp.example.com/']",
        "user.toml:2: key `gateway.allow_origins[0]`: this is no origin: write a scheme and a host, as in \
         https://example.com or http://localhost:3000, without a path",
        "",
    ),
    (
        "[gateway]\nallow_host = ['mcp.example.com']",
        "user.toml:2: key `gateway.allow_host`: there is no such key",
        "did you mean `allow_hosts`?",
    ),
    (
        "[gateway]\nstore = 'mysql://db/cocode'",
        "user.toml:2: key `gateway.store`: this is no store",
        "write \"sqlite\", \"memory\", or an address that begins with postgres://",
    ),
    (
        "[gateway]\nstore = 'postgres://db:port/cocode'",
        "user.toml:2: key `gateway.store`: this is no address of a database",
        "write it as in postgres://cocode:${DB_PASSWORD}@db.example.com:5432/cocode",
    ),
    (
        "[gateway.oauth]\nresource = 'https://r'",
        "user.toml:2: key `gateway.oauth`: it has no `issuers`, so no token would be believed",
        "name the authorization server, as in issuers = [\"https://login.example.com\"]",
    ),
    (
        "[gateway.oauth]\nissuers = ['https://i']",
        "user.toml:2: key `gateway.oauth`: it has no `resource`, so tokens that were made for others \
         would be let in",
        "write the address of this gateway, as in resource = \"https://mcp.example.com/mcp\"",
    ),
    (
        "[gateway.oauth]\nissuers = ['https://i', 'https://j']\nresource = 'https://r'\n\
         jwks_uri = 'https://i/keys'",
        "user.toml:4: key `gateway.oauth.jwks_uri`: it names the keys of one issuer, but there are several",
        "leave it out: the metadata of each issuer says where its keys are",
    ),
    (
        "[gateway.oauth]\nissuers = ['https://i']\nresource = 'https://r'\nalgorithms = ['HS256']",
        "user.toml:4: key `gateway.oauth.algorithms[0]`: `HS256` is not one of RS256, RS384, RS512, \
         PS256, PS384, PS512, ES256, ES384, EdDSA",
        "did you mean `ES256`?",
    ),
    (
        "[gateway.oauth]\nissuers = ['https://i', 'http://example.com']\nresource = 'https://r'",
        "user.toml:2: key `gateway.oauth.issuers[1]`: it must begin with https://, or with http:// \
         and be on this machine",
        "",
    ),
    (
        "[gateway.oauth]\nissuers = ['https://i']\nresource = 'https://r'\nrequired_scopes = ['a b']",
        "user.toml:4: key `gateway.oauth.required_scopes[0]`: it must not have blanks in it",
        "",
    ),
    (
        "[gateway.oauth]\nissuers = ['https://i']\nresource = 'https://r'\nleeway_sec = 301",
        "user.toml:4: key `gateway.oauth.leeway_sec`: it must be from 0 to 300",
        "",
    ),
    (
        "[gateway.principals.ci]\nalow = ['*']",
        "user.toml:2: key `gateway.principals.ci.alow`: there is no such key",
        "did you mean `allow`?",
    ),
    (
        "[gateway.principals.\"*\"]\nadmin = true",
        "user.toml:1: key `gateway.principals.*.admin`: everybody who is let in could manage the gateway",
        "write `admin = true` under the names of those who may",
    ),
    (
        "[gateway.principals.\"\"]\nadmin = true",
        "user.toml:1: key `gateway.principals.`: nobody has an empty name",
        "`[gateway.principals.\"*\"]` means those who have no table",
    ),
    (
        "[gateway.principals.\"ana  https://i\"]\nallow = []",
        "user.toml:1: key `gateway.principals.ana  https://i`: nobody has this name: names have no spaces",
        "who signs in elsewhere is named by their name there, one space, and the issuer, as in \
         \"ana https://login.example.com\"",
    ),
    (
        "[gateway.oauth]\nissuers = ['https://i']\nresource = 'https://r'\n\
         [gateway.principals.\"ana https://i/\"]\nallow = []",
        "user.toml:4: key `gateway.principals.ana https://i/`: `https://i/` is not among the `issuers` of \
         [gateway.oauth]",
        "write the issuer to the letter as it stands there",
    ),
    (
        "[gateway.principals]\nci = true",
        "user.toml:2: key `gateway.principals.ci`: it is a boolean, but must be a table",
        "",
    ),
    (
        "[gateway.limits.servers.s]\nmax_concurrent = 0",
        "user.toml:2: key `gateway.limits.servers.s.max_concurrent`: it must be more than zero",
        "",
    ),
    (
        "[gateway.audit]\non_failure = 'ignore'",
        "user.toml:2: key `gateway.audit.on_failure`: `ignore` is not one of refuse, continue",
        "",
    ),
    (
        "[gateway.principal.ci]\nallow = []",
        "user.toml:1: key `gateway.principal`: there is no such key",
        "did you mean `principals`?",
    ),
    (
        "[gatway.oauth]\nissuers = ['https://i']",
        "user.toml:1: key `gatway`: there is no such key",
        "did you mean `gateway`?",
    ),
];

#[test]
fn what_is_wrong_is_said_and_puts_access_in_doubt() {
    for (text, expected, hint) in WRONG {
        let (_, problems) = own(text);
        // What follows from it may be said, too.
        let problem = problems.first().unwrap();
        assert_eq!(problem.to_string(), *expected);
        assert_eq!(problem.hint.as_deref().unwrap_or_default(), *hint, "{text}");
        assert!(is_about_access(problem), "{text}");
        assert!(!problem.to_string().contains("hunter2"));
    }
}

#[test]
fn mistakes_elsewhere_put_nobody_in_doubt() {
    for text in [
        "[gateway]\nprefix = 'sometimes'",
        "[gateway]\nmax_sessions = 0",
        "[gateway.profiles.p]\nserver = []",
        "[health]\nmax_failures = 0",
        "modell = 'm'",
    ] {
        let (_, problems) = own(text);
        assert!(!problems.is_empty(), "{text}");
        assert!(
            !problems.iter().any(is_about_access),
            "{text}: {problems:?}"
        );
    }
}

#[test]
fn addresses_of_databases_may_hold_references() {
    for text in [
        "postgres://db/cocode",
        "postgresql://cocode@db:5432/cocode?sslmode=require",
        "postgres://cocode:${keyring:db}@${DB_HOST}:${DB_PORT}/cocode",
        "postgres://cocode@%2Frun%2Fpostgresql/cocode",
        "postgres:///cocode?host=/run/postgresql&password=${PW}",
        "keyring:database",
        "cmd:pass show database",
        "${DATABASE_URL}",
    ] {
        let gateway = good(&format!("[gateway]\nstore = '{text}'"));
        assert_eq!(gateway.store.value, GatewayStore::Postgres(text.to_owned()));
    }
    assert_eq!(
        good("[gateway]\nstore = 'memory'").store.value,
        GatewayStore::Memory
    );
}

#[test]
fn one_name_of_a_token_and_of_two_issuers_has_three_tables() {
    let gateway = good(
        "[gateway.oauth]\nissuers = ['https://one', 'https://two']\nresource = 'https://r'\n\
         [gateway.principals.ana]\nservers = ['a']\n\
         [gateway.principals.\"ana https://one\"]\nservers = ['b']\n\
         [gateway.principals.\"bob https://one\"]\nservers = ['c']\n\
         [gateway.principals.\"*\"]\nservers = ['d']\n",
    );
    for (id, server) in [
        ("ana", Some("a")),
        ("ana https://one", Some("b")),
        // Whether the table of the token is meant for them, too, nobody knows.
        ("ana https://two", None),
        ("bob https://one", Some("c")),
        ("bob https://two", Some("d")),
        ("bob", Some("d")),
    ] {
        let table = gateway.principal(id).unwrap();
        let seen = ["a", "b", "c", "d"].into_iter();
        let seen: Vec<&str> = seen.filter(|server| table.may_use(server)).collect();
        assert_eq!(seen, Vec::from_iter(server), "{id}");
        assert_eq!(gateway.unclear_for(id).is_some(), server.is_none(), "{id}");
        assert_eq!(table.admin, server.is_none().then_some(false), "{id}");
    }
}

/// Everything that belongs to the owner of a gateway.
const OWNERS: &str = "[gateway]\nadmin_listen = '127.0.0.1:1'\nstore = 'memory'\n\
     allow_hosts = ['evil.example']\nallow_origins = ['https://evil.example']\n\
     [gateway.oauth]\nissuers = ['https://evil']\nresource = 'https://r'\n\
     [gateway.principals.mallory]\nadmin = true\n\
     [gateway.limits]\ncalls_per_minute = 1\n[gateway.limits.servers.s]\nmax_concurrent = 1\n\
     [gateway.audit]\nenabled = false\n";

#[test]
fn a_work_tree_cannot_say_who_may_use_a_gateway() {
    for trust in [LayerTrust::Approved, LayerTrust::Unapproved] {
        let (gateway, problems) = of(&[("project", trust, OWNERS)]);
        assert_eq!(gateway, good(""), "{trust:?}");
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), 10, "{lines:#?}");
        for key in [
            "project.toml:2: key `gateway.admin_listen`",
            "project.toml:3: key `gateway.store`",
            "project.toml:4: key `gateway.allow_hosts`",
            "project.toml:5: key `gateway.allow_origins`",
            "project.toml:7: key `gateway.oauth.issuers`",
            "project.toml:9: key `gateway.principals.mallory`",
            "project.toml:13: key `gateway.limits.servers.s`",
            "project.toml:16: key `gateway.audit.enabled`",
        ] {
            let is_said = |line: &String| line.starts_with(key) && line.contains("work tree");
            assert!(lines.iter().any(is_said), "{key} in {lines:#?}");
        }
        assert!(problems.iter().all(Problem::is_error));
    }
    // What belongs to nobody in particular counts as ever.
    let (gateway, problems) = of(&[(
        "project",
        LayerTrust::Approved,
        "[gateway]\nlisten = '127.0.0.1:1'",
    )]);
    assert_eq!(problems, []);
    assert_eq!(gateway.listen.unwrap().value, "127.0.0.1:1");
}

#[test]
fn the_organization_counts_before_the_user() {
    let (gateway, problems) = of(&[
        (
            "enterprise",
            LayerTrust::Organization,
            "[gateway.oauth]\nissuers = ['https://org']\nresource = 'https://r'\n\
             [gateway.principals.ci]\nservers = ['a']\n[gateway.limits]\nmax_concurrent = 3",
        ),
        (
            "user",
            LayerTrust::Own,
            "[gateway.oauth]\nissuers = ['https://me']\nresource = 'https://r'\n\
             jwks_uri = 'https://me/keys'\n[gateway.principals.ci]\nadmin = true\n\
             [gateway.limits]\nmax_concurrent = 9\ncalls_per_minute = 9",
        ),
    ]);
    assert_eq!(problems, []);
    let oauth = gateway.oauth.unwrap();
    assert_eq!(oauth.issuers.value, ["https://org"]);
    assert_eq!(
        oauth.jwks_uri, None,
        "nobody's keys speak for another's issuer"
    );
    let ci = gateway.principals.get("ci").unwrap();
    assert_eq!(ci.admin, None);
    assert_eq!(ci.from.to_string(), "enterprise.toml:4 (enterprise)");
    assert_eq!(gateway.limits.max_concurrent.unwrap().value, 3);
    assert_eq!(gateway.limits.calls_per_minute.unwrap().value, 9);
}

fn rules(text: &str, principal: &str, server: &str) -> Narrowed<SettingOrigin> {
    let (gateway, _) = own(text);
    let own = gateway.principal(principal);
    let own = own.map_or_else(RuleSet::new, |own| own.rules_for(server));
    Narrowed::new(RuleSet::new(), own)
}

fn verdict(rules: &Narrowed<SettingOrigin>, server: &str, tool: &str) -> Verdict {
    let (server, tool) = (server.parse().unwrap(), ToolName::new(tool));
    rules.decide(&ToolUse::mcp(&server, &tool)).verdict
}

#[test]
fn a_list_of_what_is_allowed_is_all_that_is_allowed() {
    let text = "[gateway.principals.ci]\nallow = ['mcp__git__*', 'mcp__files__read']\n\
                ask = ['mcp__git__push', 'mcp__web__get']\ndeny = ['mcp__git__reset']\n\
                [gateway.principals.none]\nallow = []\n\
                [gateway.principals.some]\ndeny = ['mcp__git__reset']\n";
    let of = |principal: &str, server: &str, tool: &str| {
        verdict(&rules(text, principal, server), server, tool)
    };
    assert_eq!(of("ci", "git", "log"), Allow);
    assert_eq!(of("ci", "git", "push"), Ask, "ask beats allow");
    assert_eq!(of("ci", "git", "reset"), Deny, "deny wins");
    assert_eq!(of("ci", "files", "write"), Deny, "not in the list");
    assert_eq!(of("ci", "web", "get"), Ask, "named under ask");
    assert_eq!(
        of("none", "git", "log"),
        Deny,
        "an empty list allows nothing"
    );
    assert_eq!(of("some", "git", "log"), Allow);
    assert_eq!(of("some", "git", "reset"), Deny);
    assert_eq!(of("somebody else", "git", "reset"), Allow);
}

#[test]
fn those_without_a_table_have_that_of_all_others() {
    let text = "[gateway.principals.\"*\"]\nservers = ['files']\n[gateway.principals.ana]\n";
    let (gateway, problems) = own(text);
    assert_eq!(problems, []);
    let others = gateway.principal("bob").unwrap();
    assert!(others.may_use("files") && !others.may_use("git"));
    assert_eq!(verdict(&rules(text, "bob", "git"), "git", "log"), Deny);
    assert!(gateway.principal("ana").unwrap().may_use("git"));
    assert_eq!(verdict(&rules(text, "ana", "git"), "git", "log"), Allow);
}

#[test]
fn whose_table_is_broken_may_do_nothing() {
    let text = "[gateway.principals.ci]\ndeny = ['mcp__']\nadmin = true\n\
                [gateway.principals.\"*\"]\ncalls_per_minute = 5\n";
    let (gateway, problems) = own(text);
    assert_eq!(problems.len(), 1);
    let ci = gateway.principal("ci").unwrap();
    assert!(ci.is_broken && ci.admin == Some(false) && !ci.may_use("git"));
    assert_eq!(ci.from.to_string(), "user.toml:1 (user)");
    assert_eq!(verdict(&rules(text, "ci", "git"), "git", "log"), Deny);
    assert_eq!(verdict(&rules(text, "bob", "git"), "git", "log"), Allow);
    // A more important file that can be understood has the last word, and one that cannot be, too.
    let org = "[gateway.principals.ci]\nservers = ['git']\n";
    let both = |first: &str, second: &str| {
        of(&[
            ("enterprise", LayerTrust::Organization, first),
            ("user", LayerTrust::Own, second),
        ])
        .0
    };
    assert!(!both(org, text).principal("ci").unwrap().is_broken);
    assert!(both(text, org).principal("ci").unwrap().is_broken);
}

#[test]
fn no_remembered_answer_answers_for_somebody_else() {
    let (server, tool) = ("git".parse().unwrap(), ToolName::new("push"));
    let mut general: RuleSet<SettingOrigin> = RuleSet::new();
    let from = SettingOrigin {
        scope: "user",
        origin: Origin::file("config.toml"),
    };
    let tool_ref = ToolRef::Mcp {
        server: &server,
        tool: &tool,
    };
    general.remember(tool_ref, Answer::Allow, from);
    let (gateway, _) = own("[gateway.principals.ci]\nask = ['mcp__git__push']\n");
    let own = gateway.principal("ci").unwrap().rules_for("git");
    assert_eq!(verdict(&Narrowed::new(general, own), "git", "push"), Ask);
}

#[test]
fn the_files_of_the_audit_log_are_where_somebody_says() {
    let (home, state) = (Some(Path::new("/people/ana")), Path::new("/state"));
    let directory = |text: &str| {
        let gateway = good(&format!("[gateway.audit]\n{text}"));
        let directory = gateway.audit.directory_in(home, state);
        directory.display().to_string()
    };
    assert_eq!(directory(""), "/state/audit");
    assert_eq!(
        directory("directory = '/var/log/cocode'"),
        "/var/log/cocode"
    );
    assert_eq!(directory("directory = '~/audit'"), "/people/ana/audit");
    assert_eq!(
        directory("directory = 'audit'"),
        "audit",
        "beside user.toml"
    );
}

#[test]
fn only_what_is_below_a_table_is_of_that_table() {
    for path in ["gateway.oauth", "gateway.oauth.issuers", "gateway.store"] {
        assert!(is_owners_alone(path), "{path}");
    }
    for path in [
        "gateway",
        "gateway.listen",
        "gateway.storeroom",
        "gateway.oauthx.y",
    ] {
        assert!(!is_owners_alone(path), "{path}");
    }
}
