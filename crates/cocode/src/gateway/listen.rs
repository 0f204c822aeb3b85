//! Where the gateway may listen: on this machine, and elsewhere if it can tell who connects.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use cocode_wire::serve::HttpServerOptions;
use url::{Host, Url};

use crate::error::{CliError, Code};

/// The port where nobody says otherwise. No well-known service has it.
pub(crate) const DEFAULT_PORT: u16 = 7777;

/// Where the gateway listens if nobody says otherwise.
pub(crate) const DEFAULT: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT);

/// The address that a text names: `127.0.0.1:7777`, `[::1]:7777`, `localhost:7777`, or only a port,
/// as in `:7777` or `7777`. One that others can reach is refused unless clients have to say who they
/// are.
pub(crate) fn address(text: &str, is_asked: bool) -> Result<SocketAddr, CliError> {
    let address = parsed(text).ok_or_else(|| {
        let message = format!("`{text}` is nothing to listen at");
        CliError::new(Code::InvalidUsage, message)
            .hint("write an address and a port, as in 127.0.0.1:7777, or :0 for any free port")
    })?;
    if is_asked || !is_reached_by_others(address) {
        return Ok(address);
    }
    let message = format!("the gateway does not listen at {address}, where others could reach it");
    Err(refused(message).hint(format!(
        "or listen at 127.0.0.1:{} and let others in by ssh: `ssh -L {0}:127.0.0.1:{0} HOST`",
        address.port()
    )))
}

/// Whoever is let in could do everything.
fn refused(message: String) -> CliError {
    CliError::new(Code::ListenRefused, message)
        .hint("whoever reaches it could use every server, and it asks nobody who they are")
        .hint("`cocode gateway token add NAME` makes a token, which clients then have to show")
        .hint("[gateway.oauth] of config.toml lets those in whom an authorization server knows")
}

/// Refuses names and origins of others where clients need not say who they are: whoever gives them means
/// that others come, by a proxy or a page, wherever the gateway listens.
pub(crate) fn check_names(http: &HttpServerOptions, is_asked: bool) -> Result<(), CliError> {
    match foreign_name(http) {
        Some((option, name)) if !is_asked => {
            let message = format!("`{option} {name}` lets others reach the gateway");
            let error = refused(message);
            Err(error.hint(format!(
                "without `{option} {name}`, only programs of this machine reach it"
            )))
        }
        _ => Ok(()),
    }
}

/// A name or an origin that is not of this machine, and the option that gives it.
fn foreign_name(http: &HttpServerOptions) -> Option<(&'static str, &str)> {
    let host_of = |origin: &str| Url::parse(origin).ok().as_ref().is_some_and(is_of_machine);
    let mut hosts = http.allowed_hosts.iter();
    let host = hosts.find(|host| !host_of(&format!("http://{host}/")));
    let mut origins = http.allowed_origins.iter();
    let origin = origins.find(|origin| !host_of(origin));
    let host = host.map(|host| ("--allow-host", host.as_str()));
    host.or_else(|| Some(("--allow-origin", origin?.as_str())))
}

fn is_of_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).to_canonical().is_loopback(),
        None => false,
    }
}

/// Whether others than the programs of this machine are meant to use what listens like this.
pub(crate) fn is_for_others(http: &HttpServerOptions) -> bool {
    is_reached_by_others(http.listen) || foreign_name(http).is_some()
}

/// The address by which whoever is on this machine finds what listens there: at all addresses is nowhere
/// that one could go to.
pub(crate) fn found_at(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Whether anybody but the programs of this machine can connect.
pub(crate) fn is_reached_by_others(address: SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

/// What to say of an address before it is listened at: who can read along, and what clients may call it.
pub(crate) fn warnings(
    address: SocketAddr,
    has_tls: bool,
    allowed_hosts: &[String],
) -> Vec<String> {
    if !is_reached_by_others(address) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    if !has_tls {
        warnings.push(format!(
            "at {address} tokens and everything else can be read by whoever is on the way; let it speak \
             https (`--tls-cert FILE --tls-key FILE`), or let only a proxy that does so reach it"
        ));
    }
    if address.ip().is_unspecified() && allowed_hosts.is_empty() {
        warnings.push(format!(
            "at {address} no name but localhost is answered to; `--allow-host NAME`, or `allow_hosts` in \
             [gateway] of config.toml, is the name that others know this machine by"
        ));
    }
    warnings
}

fn parsed(text: &str) -> Option<SocketAddr> {
    let here = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let port = text.strip_prefix("localhost").unwrap_or(text);
    let port = port.strip_prefix(':').unwrap_or(port);
    if let Ok(port) = port.parse() {
        return Some(here(port));
    }
    if text == "localhost" {
        return Some(DEFAULT);
    }
    let only_ip = || Some(SocketAddr::new(text.parse().ok()?, DEFAULT_PORT));
    text.parse().ok().or_else(only_ip)
}

#[cfg(test)]
mod tests {
    use cocode_wire::serve::HttpServerOptions;

    use super::{DEFAULT, address, check_names, found_at, is_for_others, warnings};

    #[track_caller]
    fn check(text: &str, expected: &str) {
        check_if(false, text, expected);
    }

    #[track_caller]
    fn check_if(is_asked: bool, text: &str, expected: &str) {
        let found = address(text, is_asked).map(|address| address.to_string());
        let found = found.unwrap_or_else(|error| error.code.to_owned());
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn an_address_can_be_written_in_many_ways() {
        check("127.0.0.1:7000", "127.0.0.1:7000");
        check("[::1]:0", "[::1]:0");
        check("localhost:80", "127.0.0.1:80");
        check("localhost", "127.0.0.1:7777");
        check("127.0.0.2", "127.0.0.2:7777");
        check(":0", "127.0.0.1:0");
        check("8080", "127.0.0.1:8080");
    }

    #[test]
    fn what_others_could_reach_is_refused() {
        for everywhere in [
            "0.0.0.0:7777",
            "[::]:0",
            "192.168.1.2",
            "[::ffff:10.0.0.1]:1",
        ] {
            check(everywhere, "listen-refused");
        }
        check("[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:1");
    }

    #[test]
    fn others_may_reach_a_gateway_that_asks_who_they_are() {
        check_if(true, "0.0.0.0:7777", "0.0.0.0:7777");
        check_if(true, "192.168.1.2", "192.168.1.2:7777");
        check_if(true, ":0", "127.0.0.1:0");
        check_if(true, "example.com:80", "invalid-usage");
    }

    #[test]
    fn a_refusal_says_how_others_can_be_let_in() {
        let error = address("0.0.0.0:1", false).unwrap_err();
        let hints = error.hints.join("\n");
        for way in ["cocode gateway token add", "[gateway.oauth]", "ssh -L"] {
            assert!(hints.contains(way), "{hints}");
        }
    }

    #[test]
    fn names_of_others_mean_that_others_come() {
        let named = |hosts: &[&str], origins: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let mut http = HttpServerOptions::new(DEFAULT);
            http.allowed_hosts = owned(hosts);
            http.allowed_origins = owned(origins);
            http
        };
        for (hosts, origins) in [
            (&[][..], &[][..]),
            (&["localhost:7777", "127.0.0.3", "[::1]:80"], &[]),
            (
                &["app.localhost"],
                &["http://localhost:3000", "https://[::1]"],
            ),
        ] {
            let http = named(hosts, origins);
            assert!(check_names(&http, false).is_ok(), "{hosts:?} {origins:?}");
            assert!(!is_for_others(&http));
        }
        for (hosts, origins, option) in [
            (
                &["localhost", "mcp.example.com"][..],
                &[][..],
                "--allow-host mcp.example.com",
            ),
            (&["10.0.0.1:7777"], &[], "--allow-host 10.0.0.1:7777"),
            (&["localhost.example"], &[], "--allow-host"),
            (
                &[],
                &["https://page.example"],
                "--allow-origin https://page.example",
            ),
        ] {
            let http = named(hosts, origins);
            let error = check_names(&http, false).unwrap_err();
            assert_eq!(error.code, "listen-refused");
            assert!(error.message.contains(option), "{}", error.message);
            assert!(error.hints.join("").contains("cocode gateway token add"));
            assert!(check_names(&http, true).is_ok());
            assert!(is_for_others(&http));
        }
        let mut http = named(&[], &[]);
        http.listen = "0.0.0.0:1".parse().unwrap();
        assert!(is_for_others(&http));
    }

    #[test]
    fn all_addresses_are_found_at_one_of_them() {
        for (address, found) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("192.0.2.1:80", "192.0.2.1:80"),
        ] {
            assert_eq!(found_at(address.parse().unwrap()).to_string(), found);
        }
    }

    #[test]
    fn who_can_read_along_is_said() {
        let warned = |text: &str, has_tls: bool, hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            warnings(address(text, true).unwrap(), has_tls, &hosts)
        };
        assert_eq!(warned("127.0.0.1:1", false, &[]), [""; 0]);
        assert_eq!(warned("0.0.0.0:1", true, &["gate.example"]), [""; 0]);
        assert_eq!(warned("192.0.2.1:1", true, &[]), [""; 0]);
        let in_the_clear = warned("192.0.2.1:1", false, &[]);
        assert!(
            in_the_clear.join("").contains("--tls-cert"),
            "{in_the_clear:?}"
        );
        let without_name = warned("[::]:1", true, &[]);
        assert!(
            without_name.join("").contains("--allow-host"),
            "{without_name:?}"
        );
        assert_eq!(warned("0.0.0.0:1", false, &[]).len(), 2);
    }

    #[test]
    fn what_is_no_address_is_said_to_be_none() {
        for bad in ["", ":", "example.com:80", "localhost:x", "127.0.0.1:99999"] {
            check(bad, "invalid-usage");
        }
    }
}
