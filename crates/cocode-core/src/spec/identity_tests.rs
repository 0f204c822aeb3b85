//! What makes another server, and what does not.

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::{Dpop, Isolation, Revision};

type Change = (&'static str, fn(&mut ServerSpec));

fn program() -> ServerSpec {
    ServerSpec::program("files".parse().unwrap(), "mcp-files", ["--root", "."])
}

fn remote() -> ServerSpec {
    ServerSpec::remote("web".parse().unwrap(), "https://example.com/mcp")
}

fn of_program(spec: &mut ServerSpec) -> &mut Program {
    match &mut spec.reach {
        Reach::Program(program) => program,
        Reach::Remote(_) => panic!("it is a program"),
    }
}

fn of_remote(spec: &mut ServerSpec) -> &mut Remote {
    match &mut spec.reach {
        Reach::Remote(remote) => remote,
        Reach::Program(_) => panic!("it is an address"),
    }
}

fn of_sign_in(spec: &mut ServerSpec) -> &mut OAuth {
    &mut of_remote(spec).oauth
}

fn text() -> String {
    "A".to_owned()
}

fn template(part: TemplatePart) -> BTreeMap<String, Template> {
    let parts = vec![part];
    BTreeMap::from([("A".to_owned(), Template { parts })])
}

/// What can be changed while a server runs, and says nothing about which server it is.
const IN_PLACE: &[Change] = &[
    ("required", |spec| spec.required = true),
    ("startup_timeout", |spec| {
        spec.startup_timeout = Duration::ZERO;
    }),
    ("connect_timeout", |spec| {
        spec.connect_timeout = Duration::ZERO;
    }),
    ("tool_timeout", |spec| spec.tool_timeout = Duration::ZERO),
    ("tool_total_timeout", |spec| {
        spec.tool_total_timeout = Some(Duration::ZERO);
    }),
    ("tool_timeouts", |spec| {
        spec.tool_timeouts.insert("a".to_owned(), Duration::ZERO);
    }),
    ("tools", |spec| spec.tools.disabled.push("a".to_owned())),
    ("always_load", |spec| spec.always_load = true),
    ("trust_annotations", |spec| spec.trust_annotations = true),
    ("idle_stop", |spec| spec.idle_stop = Some(Duration::ZERO)),
    ("description", |spec| {
        spec.description = Some("d".to_owned());
    }),
];

/// What makes another server of any.
const OTHER: &[Change] = &[
    ("name", |spec| spec.name = "other".parse().unwrap()),
    ("legacy", |spec| spec.protocol = Protocol::Legacy),
    ("modern", |spec| spec.protocol = Protocol::Modern),
    ("exact", |spec| {
        spec.protocol = Protocol::Exact(Revision::LATEST_LEGACY);
    }),
    ("read-only", |spec| spec.sandbox = Sandbox::ReadOnly),
    ("write", |spec| spec.sandbox = Sandbox::WorkspaceWrite),
];

const OTHER_PROGRAM: &[Change] = &[
    ("command", |spec| of_program(spec).command.push('2')),
    ("args", |spec| of_program(spec).args.push(String::new())),
    ("joined args", |spec| {
        of_program(spec).args = vec!["--root.".to_owned()];
    }),
    ("fewer args", |spec| of_program(spec).args.clear()),
    ("literal", |spec| {
        of_program(spec).env = template(TemplatePart::Literal("x".to_owned()));
    }),
    ("keyring", |spec| {
        of_program(spec).env = template(TemplatePart::Keyring("x".to_owned()));
    }),
    ("helper", |spec| {
        of_program(spec).env = template(TemplatePart::Command("x".to_owned()));
    }),
    ("env_vars", |spec| {
        of_program(spec).env_vars.push("A".to_owned());
    }),
    ("cwd", |spec| of_program(spec).cwd = Some("/a".into())),
    ("base", |spec| of_program(spec).base = Some("/a".into())),
    ("beside", |spec| of_program(spec).beside = Some("/a".into())),
    ("an address", |spec| spec.reach = remote().reach),
];

const OTHER_REMOTE: &[Change] = &[
    ("http", |spec| {
        of_remote(spec).transport = RemoteTransport::Http;
    }),
    ("sse", |spec| {
        of_remote(spec).transport = RemoteTransport::Sse;
    }),
    ("ws", |spec| {
        of_remote(spec).transport = RemoteTransport::WebSocket;
    }),
    ("unix", |spec| {
        of_remote(spec).transport = RemoteTransport::Unix;
    }),
    ("url", |spec| of_remote(spec).url.push('2')),
    ("headers", |spec| {
        of_remote(spec).headers = template(TemplatePart::Literal("x".to_owned()));
    }),
    ("env_headers", |spec| {
        let header = ("A".to_owned(), "B".to_owned());
        of_remote(spec).env_headers = BTreeMap::from([header]);
    }),
    ("bearer_token_env_var", |spec| {
        of_remote(spec).bearer_token_env_var = Some("A".to_owned());
    }),
    ("headers_helper", |spec| {
        of_remote(spec).headers_helper = Some("A".to_owned());
    }),
    ("base", |spec| of_remote(spec).base = Some("/a".into())),
];

/// What decides as whom we sign in.
const OTHER_SIGN_IN: &[Change] = &[
    ("client_id", |spec| {
        of_sign_in(spec).client_id = Some(text());
    }),
    ("client_secret_env", |spec| {
        of_sign_in(spec).client_secret_env = Some(text());
    }),
    ("scopes", |spec| of_sign_in(spec).scopes.push(text())),
    ("resource", |spec| of_sign_in(spec).resource = Some(text())),
    ("registration", |spec| {
        of_sign_in(spec).registration = Registration::Cimd;
    }),
    ("registration", |spec| {
        of_sign_in(spec).registration = Registration::Dcr;
    }),
    ("client_metadata_url", |spec| {
        of_sign_in(spec).client_metadata_url = Some(text());
    }),
    ("issuer", |spec| of_sign_in(spec).issuer = Some(text())),
    ("grant", |spec| {
        of_sign_in(spec).grant = Grant::ClientCredentials;
    }),
    ("grant", |spec| of_sign_in(spec).grant = Grant::JwtBearer),
    ("grant", |spec| of_sign_in(spec).grant = Grant::Enterprise),
    ("private_key_file", |spec| {
        of_sign_in(spec).private_key_file = Some(text().into());
    }),
    ("private_key_env", |spec| {
        of_sign_in(spec).private_key_env = Some(text());
    }),
    ("assertion_env", |spec| {
        of_sign_in(spec).assertion_env = Some(text());
    }),
    ("assertion_file", |spec| {
        of_sign_in(spec).assertion_file = Some(text().into());
    }),
    ("assertion_command", |spec| {
        of_sign_in(spec).assertion_command = Some(text());
    }),
    ("idp_issuer", |spec| {
        of_sign_in(spec).idp_issuer = Some(text());
    }),
    ("idp_token_endpoint", |spec| {
        of_sign_in(spec).idp_token_endpoint = Some(text());
    }),
    ("idp_client_id", |spec| {
        of_sign_in(spec).idp_client_id = Some(text());
    }),
    ("idp_client_secret_env", |spec| {
        of_sign_in(spec).idp_client_secret_env = Some(text());
    }),
];

/// What only decides how signing in is done.
const SAME_SIGN_IN: &[Change] = &[
    ("callback_port", |spec| {
        of_sign_in(spec).callback_port = Some(1);
    }),
    ("callback_url", |spec| {
        of_sign_in(spec).callback_url = Some(text());
    }),
    ("signing_algorithm", |spec| {
        of_sign_in(spec).signing_algorithm = Some(text());
    }),
    ("dpop", |spec| of_sign_in(spec).dpop = Dpop::Always),
    ("dpop", |spec| of_sign_in(spec).dpop = Dpop::Never),
    ("allow_private_network", |spec| {
        of_sign_in(spec).allow_private_network = true;
    }),
];

fn changed(mut spec: ServerSpec, change: fn(&mut ServerSpec)) -> ServerSpec {
    change(&mut spec);
    spec
}

#[test]
fn what_decides_which_server_is_reached_gives_another_fingerprint_each() {
    let of_addresses = [OTHER_REMOTE, OTHER_SIGN_IN].concat();
    for (spec, changes) in [(program(), OTHER_PROGRAM), (remote(), &of_addresses)] {
        let mut seen = BTreeSet::from([spec.fingerprint()]);
        for (what, change) in OTHER.iter().chain(changes) {
            let other = changed(spec.clone(), *change);
            assert!(seen.insert(other.fingerprint()), "{what}");
            assert!(spec.needs_restart(&other), "{what}");
            assert!(other.needs_restart(&spec), "{what}");
        }
    }
}

#[test]
fn what_can_change_while_a_server_runs_changes_neither_fingerprint_nor_connection() {
    for spec in [program(), remote()] {
        for (what, change) in IN_PLACE {
            let other = changed(spec.clone(), *change);
            assert_ne!(spec, other, "{what}");
            assert_eq!(spec.fingerprint(), other.fingerprint(), "{what}");
            assert!(!spec.needs_restart(&other), "{what}");
        }
    }
}

#[test]
fn how_sessions_share_a_connection_makes_no_other_server_but_another_connection() {
    let shared = program();
    let own = changed(program(), |spec| spec.isolation = Isolation::PerSession);
    assert_eq!(shared.fingerprint(), own.fingerprint());
    assert!(shared.needs_restart(&own));
}

#[test]
fn how_signing_in_is_done_makes_no_other_server_but_another_connection() {
    let plain = remote();
    for (what, change) in SAME_SIGN_IN {
        let other = changed(remote(), *change);
        assert_eq!(plain.fingerprint(), other.fingerprint(), "{what}");
        assert!(plain.needs_restart(&other), "{what}");
    }
}

/// The names are those that debugging shows, which takes every field apart.
#[test]
fn every_field_about_signing_in_is_either_part_of_the_fingerprint_or_known_not_to_be() {
    let shown = format!("{:#?}", OAuth::default());
    let fields = shown.lines().filter_map(|line| line.split_once(':'));
    let fields: BTreeSet<&str> = fields.map(|(name, _)| name.trim()).collect();
    let tried = OTHER_SIGN_IN.iter().chain(SAME_SIGN_IN);
    let tried: BTreeSet<&str> = tried.map(|(name, _)| *name).collect();
    assert_eq!(fields, tried);
}

/// Written down once, and computed apart from the code here: what is kept under it must be found
/// again by every later version.
#[test]
fn the_fingerprint_is_the_same_forever() {
    assert_eq!(program().fingerprint(), PROGRAM);
    assert_eq!(remote().fingerprint(), REMOTE);
}

const PROGRAM: &str = "2249465dcc25650ff9917a1e07337184d4879af6a6f6df23433dbc4ba6bdf5ac";
const REMOTE: &str = "c7b20752b902535ee358e8e2b3540d3cb44d1ae266747aa6e4e47a7091a8ea2f";
