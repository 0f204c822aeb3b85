//! Where the gateway may listen: on this machine, until there is a way to tell who connects.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::error::{CliError, Code};

/// The port where nobody says otherwise. No well-known service has it.
pub(crate) const DEFAULT_PORT: u16 = 7777;

/// Where the gateway listens if nobody says otherwise.
pub(crate) const DEFAULT: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT);

/// The address that a text names: `127.0.0.1:7777`, `[::1]:7777`, `localhost:7777`, or only a port,
/// as in `:7777` or `7777`.
pub(crate) fn address(text: &str) -> Result<SocketAddr, CliError> {
    let address = parsed(text).ok_or_else(|| {
        let message = format!("`{text}` is nothing to listen at");
        CliError::new(Code::InvalidUsage, message)
            .hint("write an address and a port, as in 127.0.0.1:7777, or :0 for any free port")
    })?;
    if address.ip().to_canonical().is_loopback() {
        return Ok(address);
    }
    let message = format!("the gateway does not listen at {address}, where others could reach it");
    Err(CliError::new(Code::ListenRefused, message)
        .hint("whoever reaches it can use every server, and it cannot tell yet who that is")
        .hint(format!(
            "listen at 127.0.0.1:{} and let others in by ssh: `ssh -L {0}:127.0.0.1:{0} HOST`",
            address.port()
        )))
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
    use super::address;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = address(text).map(|address| address.to_string());
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
    fn what_is_no_address_is_said_to_be_none() {
        for bad in ["", ":", "example.com:80", "localhost:x", "127.0.0.1:99999"] {
            check(bad, "invalid-usage");
        }
    }
}
