//! Where discovery may lead: a server must not be able to send us to places that only we can reach.
//!
//! The rules hold for the addresses that stand in URLs, and for those that names turn out to stand
//! for at the moment of connecting. Behind a proxy the proxy resolves names, and then it is the one
//! who decides about the latter.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use cocode_wire::{AddressFilter, AddressRefused, Admitted, Network};
use url::{Host, Url};

use super::http::shown;

/// The rules for the addresses that belong to one MCP server.
#[derive(Clone, Debug)]
pub struct Guard {
    home: Home,
    private_network: bool,
}

/// Where the MCP server is.
#[derive(Clone, Debug)]
enum Home {
    /// At an address, or on this machine.
    Known(Network),
    /// Where its name leads.
    Named(Arc<str>),
}

/// Why we do not go to an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// Tokens and codes would be readable on the way.
    #[error("refused to use {url}: only https is safe there")]
    Plain {
        /// Where to.
        url: String,
    },
    /// The server points at this machine and is not on it.
    #[error("refused to use {url}: a server elsewhere must not send us to this machine")]
    Loopback {
        /// Where to.
        url: String,
    },
    /// The server points into a private network and is not in it.
    #[error(
        "refused to use {url}: {address} is in a private network, and the server is not; if that \
         is meant to be, set `allow_private_network = true` in the `oauth` table of the server"
    )]
    Private {
        /// Where to.
        url: String,
        /// Where that is.
        address: IpAddr,
    },
    /// No host can have that address.
    #[error("refused to use {url}: {address} is not the address of a host")]
    Nowhere {
        /// Where to.
        url: String,
        /// Where that is.
        address: IpAddr,
    },
    /// Names and passwords in addresses mislead those who read them.
    #[error("refused to use {url}: the address has a user name or a password in it")]
    Credentials {
        /// Where to, without them.
        url: String,
    },
}

impl Guard {
    /// The rules for what the MCP server at this address points at.
    pub fn for_server(server: &Url) -> Self {
        let home = match server.host() {
            _ if is_loopback(server) || is_under_localhost(server) => {
                Home::Known(Network::Loopback)
            }
            Some(Host::Ipv4(address)) => Home::Known(Network::of(address.into())),
            Some(Host::Ipv6(address)) => Home::Known(Network::of(address.into())),
            Some(Host::Domain(name)) => Home::Named(name.into()),
            None => Home::Known(Network::Public),
        };
        Self {
            home,
            private_network: false,
        }
    }

    /// Says whether the user lets the server point at private addresses and at this machine.
    #[must_use]
    pub fn with_private_network(mut self, allowed: bool) -> Self {
        self.private_network = allowed;
        self
    }

    /// Checks an address as far as that goes without asking for the addresses of names. What is
    /// private is refused if only the name of the MCP server could allow it: see [`Guard::admit`].
    pub fn check(&self, url: &Url) -> Result<(), GuardError> {
        let known = match &self.home {
            Home::Known(network) => BTreeSet::from([*network]),
            Home::Named(_) => BTreeSet::new(),
        };
        self.judge(url, &known)
    }

    /// Checks an address before it is used. If it is private, the MCP server has to be in such a
    /// network too, by its own address or by all that its name stands for now.
    pub async fn admit(&self, url: &Url) -> Result<(), GuardError> {
        match self.check(url) {
            Err(GuardError::Private { .. }) => self.judge(url, &self.home_networks().await),
            checked => checked,
        }
    }

    /// Why the addresses of a name were refused.
    pub(super) fn explain(url: &Url, refused: &AddressRefused) -> GuardError {
        let url = shown(url);
        let found = |wanted: fn(Network) -> bool| {
            let mut addresses = refused.addresses.iter().copied();
            addresses.find(|address| wanted(Network::of(*address)))
        };
        if let Some(address) = found(Network::is_private) {
            return GuardError::Private { url, address };
        }
        match found(|network| network == Network::Nowhere) {
            Some(address) => GuardError::Nowhere { url, address },
            None => GuardError::Loopback { url },
        }
    }

    fn judge(&self, url: &Url, home: &BTreeSet<Network>) -> Result<(), GuardError> {
        let local = is_loopback(url);
        let url_shown = || shown(url);
        if !url.username().is_empty() || url.password().is_some() {
            return Err(GuardError::Credentials { url: url_shown() });
        }
        if (local || is_under_localhost(url)) && !self.allows(Network::Loopback, home) {
            return Err(GuardError::Loopback { url: url_shown() });
        }
        if url.scheme() != "https" && !(local && url.scheme() == "http") {
            return Err(GuardError::Plain { url: url_shown() });
        }
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        let network = Network::of(address);
        if self.allows(network, home) {
            return Ok(());
        }
        let url = url_shown();
        Err(match network {
            Network::Nowhere => GuardError::Nowhere { url, address },
            Network::Loopback => GuardError::Loopback { url },
            Network::Public | Network::Site | Network::LinkLocal | Network::Benchmark => {
                GuardError::Private { url, address }
            }
        })
    }

    fn allows(&self, network: Network, home: &BTreeSet<Network>) -> bool {
        match network {
            Network::Public => true,
            Network::Nowhere => false,
            Network::Loopback => self.private_network || home.contains(&Network::Loopback),
            // Whoever runs on this machine reaches what we reach, without our help.
            Network::Site | Network::LinkLocal | Network::Benchmark => {
                self.private_network || home.contains(&network) || home.contains(&Network::Loopback)
            }
        }
    }

    /// Where the MCP server is now. A name that also stands for a public address is not in a private
    /// network: whoever owns a name can add private addresses to it. Nor is a name that leads to this
    /// machine on it: only a URL says that.
    async fn home_networks(&self) -> BTreeSet<Network> {
        let name = match &self.home {
            Home::Known(network) => return BTreeSet::from([*network]),
            Home::Named(name) => name,
        };
        let Ok(addresses) = tokio::net::lookup_host((&**name, 0)).await else {
            return BTreeSet::new();
        };
        let networks: BTreeSet<Network> =
            addresses.map(|address| Network::of(address.ip())).collect();
        if networks.iter().all(|network| network.is_private()) {
            networks
        } else {
            BTreeSet::new()
        }
    }
}

impl AddressFilter for Guard {
    fn admit(&self, mut addresses: Vec<SocketAddr>) -> Admitted<'_> {
        Box::pin(async move {
            let private = |address: &SocketAddr| Network::of(address.ip()).is_private();
            let home = match &self.home {
                Home::Named(_) if !addresses.iter().any(private) => BTreeSet::new(),
                Home::Named(_) | Home::Known(_) => self.home_networks().await,
            };
            addresses.retain(|address| self.allows(Network::of(address.ip()), &home));
            addresses
        })
    }
}

/// Whether an address is one of this machine, so that nobody on the way reads what is sent there.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.strip_suffix('.').unwrap_or(name) == "localhost",
        Some(Host::Ipv4(address)) => Network::of(address.into()) == Network::Loopback,
        Some(Host::Ipv6(address)) => Network::of(address.into()) == Network::Loopback,
        None => false,
    }
}

/// Whether an address has a name that is kept for this machine. Browsers go by that, but others may
/// ask a name server, so what is sent there needs https as anywhere else.
fn is_under_localhost(url: &Url) -> bool {
    let name = url.domain().unwrap_or_default();
    name.strip_suffix('.')
        .unwrap_or(name)
        .ends_with(".localhost")
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
