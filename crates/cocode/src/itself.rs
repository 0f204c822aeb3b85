//! cocode as a server of cocode: it would serve itself, again and again, without end. Other tools are
//! told of cocode as a server, and what they know can be imported, so this happens easily.

use std::net::{IpAddr, SocketAddr};

use url::{Host, Url};

use crate::error::{CliError, Code};
use crate::workspace::Workspace;

/// Tells a program that cocode started it, as the server of this name.
pub(crate) const VARIABLE: &str = "COCODE_SERVER";

/// An error if this process was started by cocode as one of its servers.
pub(crate) fn is_no_server_of_ours(workspace: &Workspace) -> Result<(), CliError> {
    let Some(name) = workspace.environment.variables.text(VARIABLE) else {
        return Ok(());
    };
    let message = format!("server `{name}` is cocode itself, which would serve itself without end");
    Err(CliError::new(Code::InvalidConfig, message)
        .hint(format!("`cocode mcp explain {name}` says where it stands"))
        .hint(format!(
            "`cocode mcp remove {name}` removes it, or start it without the variable {VARIABLE}"
        )))
}

/// Whether an address is that of a gateway which listens there.
pub(crate) fn is_own_address(url: &str, own: SocketAddr) -> bool {
    let Ok(url) = Url::parse(url) else {
        return false;
    };
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => is_same(address.into(), own.ip()),
        Some(Host::Ipv6(address)) => is_same(address.into(), own.ip()),
        None => false,
    };
    is_here && url.port_or_known_default() == Some(own.port())
}

fn is_same(one: IpAddr, own: IpAddr) -> bool {
    one == own || one.is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::is_own_address;

    #[test]
    fn an_address_is_our_own_by_any_name_of_it() {
        let own = "127.0.0.1:7777".parse().unwrap();
        for url in [
            "http://127.0.0.1:7777/mcp",
            "http://localhost:7777/mcp/files",
            "ws://127.0.0.1:7777/ws",
            "http://0.0.0.0:7777/sse",
        ] {
            assert!(is_own_address(url, own), "{url}");
        }
        for url in [
            "http://127.0.0.1:7778/mcp",
            "http://127.0.0.2:7777/mcp",
            "http://[::1]:7777/mcp",
            "http://example.com:7777/mcp",
            "http://localhost/mcp",
            "no address",
        ] {
            assert!(!is_own_address(url, own), "{url}");
        }
        assert!(is_own_address(
            "http://[::1]:80/",
            "[::1]:80".parse().unwrap()
        ));
        assert!(is_own_address("http://[::1]/", "[::1]:80".parse().unwrap()));
    }
}
