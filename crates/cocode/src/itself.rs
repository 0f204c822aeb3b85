//! cocode as a server of cocode: it would serve itself, again and again, without end. Other tools are
//! told of cocode as a server, and what they know can be imported, so this happens easily.

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use cocode_config::{Config, Entry};
use url::{Host, Url};

use crate::daemon::{Holder, Place, holder};
use crate::error::{CliError, Code};
use crate::gateway::listen;
use crate::session::on_runtime;
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

/// Whether an entry is cocode as a server: its program, or a gateway at one of these addresses.
pub(crate) fn is_cocode(entry: &Entry, gateways: &[SocketAddr]) -> bool {
    if let Some(url) = &entry.url {
        return serves_mcp(url) && gateways.iter().any(|own| is_own_address(url, *own));
    }
    let program = entry.command.as_deref().map(Path::new);
    let is_ours = program.and_then(Path::file_name) == Some(OsStr::new("cocode"));
    let mut words = entry.args.iter();
    is_ours && words.any(|word| word == "mcp") && words.any(|word| word == "serve")
}

/// Whether a gateway has a server at this path.
fn serves_mcp(url: &str) -> bool {
    let url = Url::parse(url).ok();
    let first = url.as_ref().and_then(|url| url.path_segments()?.next());
    first.is_some_and(|first| matches!(first, "mcp" | "sse" | "ws"))
}

/// Where gateways listen: as the configuration says, and the one that serves fronts.
pub(crate) fn gateways(config: &Config, workspace: &Workspace) -> Vec<SocketAddr> {
    let settings = &config.settings.gateway;
    let set = settings.listen.as_ref().map(|setting| &setting.value);
    let of_profiles = settings.profiles.values();
    let of_profiles = of_profiles.filter_map(|profile| profile.listen.as_ref());
    let set = set.into_iter().chain(of_profiles);
    let mut addresses: Vec<SocketAddr> = set
        .filter_map(|text| listen::address(text, true).ok())
        .chain([listen::DEFAULT])
        .collect();
    addresses.extend(running(workspace));
    addresses
}

/// The address of a gateway that serves fronts.
fn running(workspace: &Workspace) -> Option<SocketAddr> {
    let place = Place::of(workspace)?;
    let holder = on_runtime(workspace, async { Ok(holder(&place).await) });
    let Ok(Holder::Gateway { url, .. }) = holder else {
        return None;
    };
    let url = Url::parse(&url).ok()?;
    url.socket_addrs(|| None).ok()?.first().copied()
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
    use cocode_config::Entry;

    use super::{is_cocode, is_own_address};

    #[test]
    fn an_entry_is_cocode_by_its_program_or_by_the_address_of_a_gateway() {
        let program = |command: &str, args: &[&str]| Entry {
            command: Some(command.to_owned()),
            args: args.iter().map(|&word| word.to_owned()).collect(),
            ..Entry::default()
        };
        let at = |url: &str| Entry {
            url: Some(url.to_owned()),
            ..Entry::default()
        };
        let gateways = ["127.0.0.1:7777".parse().unwrap()];
        for entry in [
            program("cocode", &["mcp", "serve"]),
            program(
                "/usr/local/bin/cocode",
                &["-q", "mcp", "serve", "--server", "a"],
            ),
            at("http://127.0.0.1:7777/mcp"),
            at("http://localhost:7777/mcp/files"),
            at("ws://127.0.0.1:7777/ws"),
        ] {
            assert!(is_cocode(&entry, &gateways), "{entry:?}");
        }
        for entry in [
            program("cocode", &["mcp", "status"]),
            program("other", &["mcp", "serve"]),
            at("http://127.0.0.1:7778/mcp"),
            at("http://127.0.0.1:7777/other"),
            at("https://example.com/mcp"),
        ] {
            assert!(!is_cocode(&entry, &gateways), "{entry:?}");
        }
    }

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
