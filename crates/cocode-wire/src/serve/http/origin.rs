//! Who may talk to this server: the checks of Host and Origin that keep web pages out which reach
//! it by DNS rebinding or from a foreign site, and the answers to those that are welcome.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, HOST,
    ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use super::options::HttpServerOptions;
use super::upgrade;

const REQUEST_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-allow-private-network");

/// Header names that a page asks to send; more is no honest question.
const MAX_REQUESTED_HEADERS_BYTES: usize = 4096;

/// Decides who is let in.
#[derive(Debug)]
pub(super) struct Gate {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// The address that is listened on. Whoever names it has not been led here by a name.
    address: Option<IpAddr>,
    /// What pages of this server begin with.
    scheme: &'static str,
}

/// Why a request is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It does not say, or not clearly, whom it is for.
    NoHost,
    /// It is for somebody else.
    Host,
    /// It comes from a page that has no business here.
    Origin,
}

impl Gate {
    /// The gate of a server that listens there.
    pub(super) fn new(options: &HttpServerOptions, listen: IpAddr) -> Self {
        Self {
            hosts: options.allowed_hosts.clone(),
            origins: options.allowed_origins.clone(),
            address: (!listen.is_unspecified()).then_some(listen),
            scheme: match options.tls {
                Some(_) => "https://",
                None => "http://",
            },
        }
    }

    /// Lets a request in or not. Gives the origin, if it is of a page that may read the answer.
    ///
    /// Browsers keep what is answered from pages that may not read it. With a WebSocket they do not
    /// do that, so only our own pages and those that may read are let in there.
    pub(super) fn admit(&self, parts: &Parts) -> Result<Option<HeaderValue>, Refused> {
        let host = self.admit_host(&parts.headers, &parts.uri)?;
        let is_upgrade = upgrade::is_wanted(parts);
        let is_own = |origin: &str| {
            if is_upgrade {
                origin.strip_prefix(self.scheme) == Some(host)
            } else {
                self.is_of_this_machine(origin)
            }
        };
        let mut readable = None;
        for origin in parts.headers.get_all(ORIGIN) {
            let text = origin.to_str().map_err(|_opaque| Refused::Origin)?;
            if self
                .origins
                .iter()
                .any(|one| one.eq_ignore_ascii_case(text))
            {
                readable = Some(origin.clone());
            } else if !is_own(text) {
                return Err(Refused::Origin);
            }
        }
        Ok(readable)
    }

    /// Gives whom the request is for.
    fn admit_host<'a>(&self, headers: &'a HeaderMap, uri: &Uri) -> Result<&'a str, Refused> {
        let mut named = headers.get_all(HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return Err(Refused::NoHost);
        };
        let host = host.to_str().map_err(|_opaque| Refused::Host)?;
        if !self.is_ours(host) {
            return Err(Refused::Host);
        }
        // A request may also name the host in its first line, and that one counts.
        match uri.authority() {
            Some(authority) if !self.is_ours(authority.as_str()) => Err(Refused::Host),
            _ => Ok(host),
        }
    }

    fn is_of_this_machine(&self, origin: &str) -> bool {
        let rest = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        rest.is_some_and(|host| self.is_ours(host))
    }

    /// Whether `host`, with or without a port, means this server.
    fn is_ours(&self, host: &str) -> bool {
        let Some((name, has_port)) = split(host) else {
            return false;
        };
        is_loopback(name)
            || self.address.is_some_and(|own| address(name) == Some(own))
            || self.hosts.iter().any(|one| {
                one.eq_ignore_ascii_case(name) || (has_port && one.eq_ignore_ascii_case(host))
            })
    }
}

/// The name before the port, and whether there is a port.
fn split(host: &str) -> Option<(&str, bool)> {
    let name_bytes = if host.starts_with('[') {
        host.find(']')? + 1
    } else {
        host.find(':').unwrap_or(host.len())
    };
    let (name, rest) = host.split_at_checked(name_bytes)?;
    match rest.strip_prefix(':') {
        Some(port) => port
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then_some((name, true)),
        None => rest.is_empty().then_some((name, false)),
    }
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name == "127.0.0.1"
        || address(name).is_some_and(|address| address.is_loopback())
}

fn address(name: &str) -> Option<IpAddr> {
    match name.strip_prefix('[') {
        Some(inner) => {
            let inner = inner.strip_suffix(']')?;
            inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
        }
        None => name.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    }
}

/// Lets the page of `origin` read an answer.
pub(super) fn make_readable(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("Origin"));
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate"),
    );
}

/// What a browser wants to know before it sends what a page asks it to send.
pub(super) fn preflight(asked: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST, DELETE"),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    // Tools name headers of their own, so there is no list that would be complete.
    let names = asked.get(ACCESS_CONTROL_REQUEST_HEADERS);
    let honest = |names: &&HeaderValue| names.len() <= MAX_REQUESTED_HEADERS_BYTES;
    if let Some(names) = names.filter(honest) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    if asked.contains_key(REQUEST_PRIVATE_NETWORK) {
        headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::{Gate, HttpServerOptions, Refused};
    use http::Request;

    fn gate() -> Gate {
        let mut options = HttpServerOptions::new(([192, 168, 1, 5], 80).into());
        options.allowed_hosts = vec!["gate.example".into(), "only.example:8443".into()];
        options.allowed_origins = vec!["https://page.example".into(), "vscode-webview://x".into()];
        Gate::new(&options, options.listen.ip())
    }

    #[track_caller]
    fn check(headers: &[(&str, &str)], uri: &str, expected: Result<bool, Refused>) {
        let gate = gate();
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let admitted = gate.admit(&parts).map(|readable| readable.is_some());
        assert_eq!(admitted, expected, "for {headers:?} {uri}");
    }

    #[test]
    fn only_names_of_this_machine_and_allowed_ones_are_hosts() {
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1",
            "127.0.0.1:8080",
            "127.8.9.1:1",
            "[::1]",
            "[::1]:99",
            "192.168.1.5:80",
            "gate.example",
            "Gate.Example:1234",
            "only.example:8443",
        ] {
            check(&[("host", host)], "/mcp", Ok(false));
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "evil.example:80",
            "127.0.0.1.evil.example",
            "only.example",
            "only.example:80",
            "192.168.1.6",
            "[::2]",
            "[::1",
            "::1",
            "localhost:x",
            "localhost:80:80",
            "",
            "localhost@evil.example",
            "[::1]evil.example",
            "0.0.0.0",
        ] {
            check(&[("host", host)], "/mcp", Err(Refused::Host));
        }
        check(&[], "/mcp", Err(Refused::NoHost));
        check(
            &[("host", "localhost"), ("host", "localhost")],
            "/mcp",
            Err(Refused::NoHost),
        );
        check(
            &[("host", "localhost")],
            "http://evil.example/mcp",
            Err(Refused::Host),
        );
        check(&[("host", "localhost")], "http://localhost/mcp", Ok(false));
    }

    #[test]
    fn only_pages_of_this_machine_and_allowed_ones_are_origins() {
        let with =
            |origin, expected| check(&[("host", "localhost"), ("origin", origin)], "/", expected);
        for origin in [
            "http://localhost:3000",
            "https://127.0.0.1",
            "http://[::1]:5",
            "https://gate.example",
        ] {
            with(origin, Ok(false));
        }
        for origin in [
            "https://page.example",
            "HTTPS://PAGE.EXAMPLE",
            "vscode-webview://x",
        ] {
            with(origin, Ok(true));
        }
        for origin in [
            "null",
            "",
            "http://evil.example",
            "https://page.example.evil",
            "http://page.example",
            "https://page.example:444",
            "file://localhost",
            "http://localhost@evil.example",
            "http://localhost/",
            "localhost",
        ] {
            with(origin, Err(Refused::Origin));
        }
        let both = [
            ("host", "localhost"),
            ("origin", "http://localhost"),
            ("origin", "http://evil.example"),
        ];
        check(&both, "/", Err(Refused::Origin));
    }
    #[test]
    fn only_own_pages_and_allowed_ones_open_sockets() {
        let with = |host, origin, expected| {
            let headers = [("host", host), ("origin", origin), ("upgrade", "websocket")];
            check(&headers, "/mcp", expected);
        };
        with("localhost:7777", "http://localhost:7777", Ok(false));
        with("gate.example", "http://gate.example", Ok(false));
        with("localhost:7777", "https://page.example", Ok(true));
        for origin in [
            "http://localhost:3000",
            "http://localhost",
            "https://localhost:7777",
            "http://127.0.0.1:7777",
            "http://[::1]:7777",
            "http://gate.example",
            "null",
        ] {
            with("localhost:7777", origin, Err(Refused::Origin));
        }
        check(
            &[("host", "localhost"), ("upgrade", "websocket")],
            "/mcp",
            Ok(false),
        );
        let mut secure = gate();
        secure.scheme = "https://";
        let request = Request::builder()
            .header("host", "localhost")
            .header("origin", "https://localhost")
            .header("upgrade", "websocket");
        let (parts, ()) = request.body(()).unwrap().into_parts();
        assert_eq!(secure.admit(&parts), Ok(None));
    }
}
