//! What patterns of addresses mean, and what hostile addresses cannot make them mean.

use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{InvalidUrlPattern, MAX_URL_PATTERN_BYTES, UrlPattern};

fn pattern(text: &str) -> UrlPattern {
    match text.parse() {
        Ok(pattern) => pattern,
        Err(error) => panic!("{text}: {error}"),
    }
}

fn check(text: &str, allowed: &[&str], others: &[&str]) {
    let pattern = pattern(text);
    for url in allowed {
        assert!(pattern.allows(url), "{text} allows {url}");
        assert!(pattern.denies(url), "{text} denies {url}");
    }
    for url in others {
        assert!(!pattern.allows(url), "{text} does not allow {url}");
    }
}

#[test]
fn hosts_below_a_domain_are_meant_and_nothing_else() {
    check(
        "https://*.example.com/*",
        &[
            "https://a.example.com/",
            "https://a.example.com",
            "https://a.b.example.com/mcp?x=1",
            "HTTPS://A.EXAMPLE.COM:443/mcp",
            "https://a.example.com./mcp",
            "https://user:secret@a.example.com/mcp",
            "https://a.example.com/mcp#fragment",
            "https://ａ.example.com/",
            "https://%61.example.com/",
        ],
        &[
            "https://example.com/",
            "https://example.com.evil.org/",
            "https://a.example.com.evil.org/",
            "https://evil.org/?x=.example.com/",
            "https://evil.org/.example.com/",
            "https://evil.org#.example.com/",
            "https://a.example.com@evil.org/",
            "https://a.example.com:443@evil.org/",
            "https://evil.org\\.example.com/",
            "https://evil.org/\\.example.com/",
            "https://evil.org\\@a.example.com/",
            "https://evil.org%2f.example.com/",
            "https://evil.org%23.example.com/",
            "https://evil.org%00.example.com/",
            "https://evil.org\t.example.com\n/",
            "http://a.example.com/",
            "wss://a.example.com/",
            "https://a.example.com:8443/",
            "https://a.example.com:80/",
            "https://aexample.com/",
            "https://a.example.com\u{ff0f}.evil.org/",
            "https://a.example.com\u{2024}evil.org/",
            "a.example.com",
            "//a.example.com/",
            "javascript:https://a.example.com/",
            "unix:///a.example.com/x",
            "",
        ],
    );
}

#[test]
fn without_a_path_any_path_is_meant_and_with_one_that_one() {
    check(
        "https://example.com",
        &["https://example.com/", "https://example.com/a/b?c=d"],
        &["https://example.com:8443/"],
    );
    check(
        "https://example.com/",
        &["https://example.com", "https://example.com/"],
        &["https://example.com/a", "https://example.com/?a"],
    );
    check(
        "https://example.com/mcp",
        &[
            "https://example.com/mcp",
            "https://example.com/x/../mcp",
            "https://example.com/./mcp",
            "https://example.com/%6dcp",
            "https://example.com/x/%2e%2E/mcp",
        ],
        &[
            "https://example.com/mcp/",
            "https://example.com/MCP",
            "https://example.com/mcp?x",
            "https://example.com/mcp/../admin",
        ],
    );
}

#[test]
fn a_star_in_the_path_stays_below_it() {
    check(
        "https://example.com/team/*",
        &[
            "https://example.com/team/a/b",
            "https://example.com/team/a?x=/../..",
            "https://example.com/team/100%25",
        ],
        &[
            "https://example.com/team",
            "https://example.com/team/../admin",
            "https://example.com/team/%2e%2e/admin",
            "https://example.com/team/..%2fadmin",
            "https://example.com/team/..%5cadmin",
            "https://example.com/team/..%252fadmin",
            "https://example.com/team/..\\admin",
            "https://example.com/team/x%00",
        ],
    );
    check(
        "https://example.com/*/mcp",
        &["https://example.com/a/mcp", "https://example.com/a/b/mcp"],
        &[
            "https://example.com/a?/mcp",
            "https://example.com/a#/mcp",
            "https://example.com/a/mcp?x",
        ],
    );
    check(
        "https://example.com/mcp?tenant=*",
        &[
            "https://example.com/mcp?tenant=a",
            "https://example.com/mcp?tenant=",
        ],
        &[
            "https://example.com/mcp",
            "https://example.com/mcp?user=a&tenant=b",
        ],
    );
}

#[test]
fn ports_and_schemes_are_compared_apart() {
    check(
        "http://localhost:8080",
        &["http://localhost:8080/mcp", "http://LOCALHOST:8080"],
        &[
            "http://localhost/",
            "http://localhost:80801/",
            "http://localhost:8080@evil.org/",
        ],
    );
    check(
        "http://localhost:*/*",
        &["http://localhost:1/", "http://localhost/"],
        &["http://localhost.evil.org:1/"],
    );
    check(
        "*://example.com",
        &[
            "https://example.com",
            "http://example.com",
            "wss://example.com/x",
        ],
        &["unix:///example.com", "https://example.com:80/"],
    );
    check(
        "wss://*.example.com",
        &["wss://a.example.com/socket", "wss://a.example.com:443/"],
        &["ws://a.example.com/", "https://a.example.com/"],
    );
}

#[test]
fn addresses_are_not_names_and_names_are_not_addresses() {
    check(
        "http://10.*:*",
        &["http://10.0.0.1/", "http://10.1:9/", "http://0xa000001/"],
        &[
            "http://10.evil.org/",
            "http://100.0.0.1/",
            "http://[::10.0]/",
        ],
    );
    check(
        "http://127.0.0.1",
        &["http://127.1/", "http://2130706433/", "http://0x7f.1/"],
        &["http://127.0.0.1.evil.org/", "http://127.0.0.2/"],
    );
    check(
        "http://[::1]:9",
        &["http://[::1]:9/", "http://[0:0:0:0:0:0:0:1]:9/"],
        &["http://[::1]/", "http://[::2]:9/"],
    );
    check(
        "https://*beef",
        &["https://roastbeef/"],
        &["https://[::beef]/"],
    );
}

#[test]
fn international_names_have_one_form() {
    check(
        "https://*.bücher.example/*",
        &[
            "https://a.xn--bcher-kva.example/",
            "https://a.BÜCHER.example/",
        ],
        &["https://a.bucher.example/"],
    );
    check(
        "https://XN--BCHER-KVA.example",
        &["https://bücher.example/"],
        &["https://bucher.example/"],
    );
}

#[test]
fn unix_sockets_are_matched_by_path() {
    check(
        "unix:///run/cocode/*",
        &[
            "unix:///run/cocode/a.sock",
            "unix:/run/cocode/a.sock",
            "unix:///run/cocode/x/../b.sock",
        ],
        &[
            "unix:///run/cocode/../evil.sock",
            "unix:///run/cocode/..%2fevil.sock",
            "unix://host/run/cocode/a.sock",
            "https://run/cocode/a.sock",
        ],
    );
}

#[test]
fn a_star_alone_means_every_address() {
    check(
        "*",
        &[
            "https://example.com:1/x",
            "unix:///x",
            "ws://a",
            "https://a\\b",
        ],
        &["no address", ""],
    );
}

#[test]
fn denying_reads_in_doubt_for_the_pattern() {
    for (text, urls) in [
        (
            "https://evil.org/*",
            &[
                "https://evil.org:8443/x",
                "https://evil.org./",
                "https://evil.org\\x",
                "https://user@EVIL.org/",
                "https:evil.org",
                "\thttps://evil.org/",
                "no address at all",
            ] as &[&str],
        ),
        (
            "https://example.com/admin",
            &[
                "https://example.com/admin?x",
                "https://example.com/%61dmin",
                "https://example.com/a/..%2fadmin",
                "https://example.com/a/..%252fadmin",
                "https://example.com/a/..\\admin",
                "https://example.com/%2561dmin",
            ],
        ),
        (
            "http://127.0.0.1",
            &["http://[::ffff:127.0.0.1]/", "http://0177.0.0.1/"],
        ),
        ("http://[::ffff:7f00:1]", &["http://127.0.0.1/"]),
        ("*", &["anything"]),
    ] {
        let pattern = pattern(text);
        for url in urls {
            assert!(pattern.denies(url), "{text} denies {url}");
        }
    }
    assert!(!pattern("https://evil.org").denies("https://good.org/evil.org"));
    assert!(!pattern("https://evil.org:1").denies("https://evil.org:2/"));
    assert!(!pattern("https://a.org/x?y=*").denies("https://a.org/x?z=1"));
}

#[test]
fn what_cannot_be_a_pattern_is_refused() {
    use InvalidUrlPattern as Invalid;
    for (text, expected) in [
        ("", Invalid::Empty),
        ("example.com", Invalid::NoScheme),
        ("ftp://example.com", Invalid::Scheme("ftp".to_owned())),
        ("htt*://example.com", Invalid::Scheme("htt*".to_owned())),
        ("https://", Invalid::NoHost),
        ("https:///x", Invalid::NoHost),
        ("https://a@b/", Invalid::Credentials),
        ("https://*@b/", Invalid::Credentials),
        ("https://a b/", Invalid::Character(' ')),
        ("https://a\\b/", Invalid::Character('\\')),
        ("https://a/#x", Invalid::Character('#')),
        ("https://a:0/", Invalid::Port("0".to_owned())),
        ("https://a:+1/", Invalid::Port("+1".to_owned())),
        ("https://a:8*/", Invalid::Port("8*".to_owned())),
        ("https://a:/", Invalid::Port(String::new())),
        ("https://a/../b", Invalid::Path("/../b".to_owned())),
        ("https://a/%2E./b", Invalid::Path("/%2E./b".to_owned())),
        ("https://a?x=*", Invalid::Path("?x=*".to_owned())),
        ("https://*..com", Invalid::Host("*..com".to_owned())),
        ("https://bü*.com", Invalid::Host("bü*.com".to_owned())),
        ("https://[::*]", Invalid::Host("[::*]".to_owned())),
        ("https://a%2eb", Invalid::Host("a%2eb".to_owned())),
        ("unix://run/x", Invalid::UnixHost),
        ("unix://", Invalid::UnixHost),
    ] {
        assert_eq!(text.parse::<UrlPattern>(), Err(expected), "{text}");
    }
    let long = format!("https://{}", "a".repeat(MAX_URL_PATTERN_BYTES));
    assert_eq!(long.parse::<UrlPattern>(), Err(Invalid::TooLong));
}

/// Pieces that hostile addresses are made of.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("example.com"),
        Just(".example.com"),
        Just("a.example.com"),
        Just("evil.org"),
        Just("@"),
        Just("/"),
        Just("\\"),
        Just("?"),
        Just("#"),
        Just(":"),
        Just(":443"),
        Just(":80"),
        Just("%2f"),
        Just("%2e"),
        Just("%40"),
        Just("%00"),
        Just("\t"),
        Just("\n"),
        Just(" "),
        Just("\u{3002}"),
        Just("\u{ff0f}"),
        Just(".."),
        Just("[::1]"),
        Just("*"),
    ];
    let start = prop_oneof![
        Just("https://"),
        Just("https:"),
        Just("https:/"),
        Just("https:\\\\"),
        Just("http://"),
        Just(" https://"),
        Just("unix://")
    ];
    (start, proptest::collection::vec(piece, 0..8))
        .prop_map(|(start, pieces)| format!("{start}{}", pieces.concat()))
}

proptest! {
    /// Whatever is allowed is an address whose true host, as the connecting side sees it, is below
    /// the domain.
    #[test]
    fn no_hostile_address_is_allowed(text in hostile()) {
        let pattern = pattern("https://*.example.com/*");
        if pattern.allows(&text) {
            let url = url::Url::parse(&text).unwrap();
            let host = url.host_str().unwrap();
            let host = host.strip_suffix('.').unwrap_or(host);
            prop_assert!(host.ends_with(".example.com"), "{text} has the host {host}");
            prop_assert_eq!(url.scheme(), "https");
            prop_assert_eq!(url.port_or_known_default(), Some(443));
        }
    }

    /// Denying never lets through what allowing would have meant.
    #[test]
    fn what_is_allowed_is_also_denied(
        text in hostile(),
        pattern_text in prop_oneof![
            Just("https://*.example.com/*"), Just("https://a.example.com"), Just("*"),
            Just("*://evil.org/*"), Just("https://*/*"), Just("http://*:*"), Just("unix:///*"),
            Just("https://evil.org/../*"), Just("https://evil.org/a*?*"),
        ],
    ) {
        if let Ok(pattern) = pattern_text.parse::<UrlPattern>() {
            prop_assert!(!pattern.allows(&text) || pattern.denies(&text));
        }
    }

    /// An address says itself: as a pattern without stars it allows itself.
    #[test]
    fn an_address_matches_itself(
        host in "[a-z][a-z0-9-]{0,8}[a-z](\\.[a-z]{2,5}){1,2}",
        port in proptest::option::of(1..=u16::MAX),
        path in "(/[a-zA-Z0-9._~-]{1,6}){0,3}",
    ) {
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        let text = format!("https://{host}{port}{path}");
        if let Ok(pattern) = text.parse::<UrlPattern>() {
            let upper = format!("HTTPS://{}{port}{path}", host.to_uppercase());
            prop_assert!(pattern.allows(&text) || url::Url::parse(&text).is_err(), "{}", text);
            prop_assert_eq!(pattern.allows(&upper), pattern.allows(&text));
        }
    }

    /// No text makes the parser or the matching fail otherwise than by its result.
    #[test]
    fn any_text_can_be_tried(pattern in ".{0,40}", target in ".{0,40}") {
        if let Ok(pattern) = pattern.parse::<UrlPattern>() {
            let _result = (pattern.allows(&target), pattern.denies(&target));
        }
    }
}
