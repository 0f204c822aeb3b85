//! Where a server may send us, by what stands in URLs and by what names stand for.

use cocode_wire::AddressRefused;
use url::Url;

use super::{Guard, GuardError, Home, is_loopback};

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

fn kind(error: &GuardError) -> &'static str {
    match error {
        GuardError::Plain { .. } => "plain",
        GuardError::Loopback { .. } => "loopback",
        GuardError::Private { .. } => "private",
        GuardError::Nowhere { .. } => "nowhere",
        GuardError::Credentials { .. } => "credentials",
    }
}

/// A server by a name that stands for these addresses. `lookup_host` knows addresses without asking.
fn named(address: &str) -> Guard {
    Guard {
        home: Home::Named(address.into()),
        private_network: false,
    }
}

#[test]
fn a_server_elsewhere_sends_us_only_to_public_places_by_https() {
    let guard = Guard::for_server(&url("https://mcp.example/mcp"));
    let cases = [
        ("https://as.example/token", "ok"),
        ("https://8.8.8.8/token", "ok"),
        ("https://[2606:4700::1]/token", "ok"),
        ("http://as.example/token", "plain"),
        ("ftp://as.example/token", "plain"),
        ("file:///etc/passwd", "plain"),
        ("javascript:alert(1)", "plain"),
        ("http://localhost:1/", "loopback"),
        ("https://localhost/", "loopback"),
        ("https://LOCALHOST./", "loopback"),
        ("https://a.localhost/", "loopback"),
        ("https://a.localhost./", "loopback"),
        ("https://127.1/", "loopback"),
        ("https://2130706433/", "loopback"),
        ("https://0x7f.1/", "loopback"),
        ("https://[::1]/", "loopback"),
        ("https://[::ffff:127.0.0.1]/", "loopback"),
        ("https://10.0.0.1/", "private"),
        ("https://169.254.169.254/latest/meta-data", "private"),
        ("http://169.254.169.254/latest/meta-data", "plain"),
        ("https://[fe80::1]/", "private"),
        ("https://[fd00::1]/", "private"),
        ("https://[64:ff9b::a00:1]/", "private"),
        ("https://100.64.0.1/", "private"),
        ("https://0.0.0.0/", "nowhere"),
        ("https://224.0.0.1/", "nowhere"),
        ("https://192.0.2.1/", "nowhere"),
        ("https://user@as.example/", "credentials"),
        ("https://user:pass@as.example/", "credentials"),
        ("https://:pass@as.example/", "credentials"),
    ];
    for (text, expected) in cases {
        let checked = guard.check(&url(text));
        let found = checked.as_ref().map_or_else(kind, |()| "ok");
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn a_server_in_a_network_may_point_into_it() {
    let cases = [
        ("http://localhost:8000/mcp", "http://127.0.0.1:9000/", "ok"),
        ("http://127.0.0.1:8000/mcp", "http://localhost:9000/", "ok"),
        ("http://127.0.0.1:8000/mcp", "http://as.example/", "plain"),
        // Whether such names lead to this machine is up to who resolves them.
        ("http://localhost:8000/mcp", "http://a.localhost/", "plain"),
        ("http://localhost:8000/mcp", "https://a.localhost/", "ok"),
        ("https://a.localhost/mcp", "https://a.localhost/", "ok"),
        ("https://a.localhost/mcp", "http://a.localhost/", "plain"),
        ("http://[::1]:8000/mcp", "https://10.0.0.1/", "ok"),
        ("https://10.0.0.1/mcp", "https://192.168.0.1/", "ok"),
        ("https://10.0.0.1/mcp", "https://[fd00::1]/", "ok"),
        ("https://10.0.0.1/mcp", "http://10.0.0.1/", "plain"),
        (
            "https://10.0.0.1/mcp",
            "https://169.254.169.254/",
            "private",
        ),
        ("https://10.0.0.1/mcp", "https://127.0.0.1/", "loopback"),
        ("https://169.254.1.1/mcp", "https://169.254.1.2/", "ok"),
        ("https://169.254.1.1/mcp", "https://10.0.0.1/", "private"),
        ("https://8.8.8.8/mcp", "https://10.0.0.1/", "private"),
    ];
    for (server, target, expected) in cases {
        let checked = Guard::for_server(&url(server)).check(&url(target));
        let found = checked.as_ref().map_or_else(kind, |()| "ok");
        assert_eq!(found, expected, "{server} {target}");
    }
}

#[test]
fn a_user_may_allow_private_networks_and_nothing_else() {
    let guard = Guard::for_server(&url("https://mcp.example/")).with_private_network(true);
    for (target, expected) in [
        ("https://10.0.0.1/", "ok"),
        ("https://169.254.0.1/", "ok"),
        ("http://localhost:1/", "ok"),
        ("http://10.0.0.1/", "plain"),
        ("https://0.0.0.0/", "nowhere"),
        ("https://a@10.0.0.1/", "credentials"),
    ] {
        let checked = guard.check(&url(target));
        let found = checked.as_ref().map_or_else(kind, |()| "ok");
        assert_eq!(found, expected, "{target}");
    }
}

#[test]
fn only_names_that_nobody_else_answers_for_are_this_machine() {
    for (text, expected) in [
        ("http://localhost:1/", true),
        ("http://LOCALHOST./", true),
        ("http://127.1/", true),
        ("http://[::1]/", true),
        ("http://a.localhost/", false),
        ("http://notlocalhost/", false),
        ("http://localhost.example/", false),
        ("file:///localhost", false),
    ] {
        assert_eq!(is_loopback(&url(text)), expected, "{text}");
    }
}

#[tokio::test]
async fn a_server_is_where_its_name_leads() {
    let cases = [
        ("10.0.0.1", "https://192.168.0.1/", "ok"),
        ("10.0.0.1", "https://169.254.169.254/", "private"),
        ("8.8.8.8", "https://192.168.0.1/", "private"),
        ("name.invalid", "https://192.168.0.1/", "private"),
        // Whoever owns a name can let it lead to this machine.
        ("127.0.0.1", "https://127.0.0.1/", "loopback"),
        ("127.0.0.1", "https://10.0.0.1/", "private"),
    ];
    for (name, target, expected) in cases {
        let admitted = Guard::admit(&named(name), &url(target)).await;
        let found = admitted.as_ref().map_or_else(kind, |()| "ok");
        assert_eq!(found, expected, "{name} {target}");
    }
}

#[tokio::test]
async fn names_lead_only_where_addresses_may() {
    let all = [
        "8.8.8.8:0",
        "127.0.0.1:0",
        "10.0.0.1:0",
        "169.254.1.1:0",
        "0.0.0.0:0",
    ];
    let public = Guard::for_server(&url("https://8.8.8.8/"));
    let local = Guard::for_server(&url("http://localhost/"));
    let cases = [
        (&public, vec![0]),
        (&local, vec![0, 1, 2, 3]),
        (&named("10.0.0.1"), vec![0, 2]),
        (&named("127.0.0.1"), vec![0]),
        (&named("name.invalid"), vec![0]),
        (&public.clone().with_private_network(true), vec![0, 1, 2, 3]),
    ];
    for (guard, expected) in cases {
        let filter: &dyn cocode_wire::AddressFilter = guard;
        let addresses = all.map(|address| address.parse().unwrap());
        let admitted = filter.admit(addresses.to_vec()).await;
        let expected: Vec<_> = expected
            .into_iter()
            .map(|index: usize| addresses[index])
            .collect();
        assert_eq!(admitted, expected, "{guard:?}");
    }
}

#[test]
fn a_refusal_says_what_kind_of_address_it_was() {
    let explain = |addresses: &[&str]| {
        let refused = AddressRefused {
            host: "as.example".to_owned(),
            addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        };
        Guard::explain(&url("https://as.example/token?code=x"), &refused)
    };
    assert_eq!(kind(&explain(&["127.0.0.1"])), "loopback");
    assert_eq!(kind(&explain(&["0.0.0.0"])), "nowhere");
    let private = explain(&["127.0.0.1", "10.0.0.1"]).to_string();
    assert!(
        private.starts_with("refused to use https://as.example/token: 10.0.0.1 is in"),
        "{private}"
    );
    assert!(private.contains("allow_private_network"), "{private}");
    assert!(!private.contains("code"), "{private}");
}
