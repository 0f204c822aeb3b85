//! Where discovery may lead: a server must not be able to send us to places that only we can reach.

use url::{Host, Url};

use super::http::shown;

/// The rules for the addresses that belong to one MCP server.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Whether addresses of this machine may be used.
    loopback: bool,
}

/// Why we do not go to an address.
#[derive(Clone, Debug, thiserror::Error)]
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
}

impl Guard {
    /// The rules for what the MCP server at this address points at.
    pub fn for_server(server: &Url) -> Self {
        Self {
            loopback: is_loopback(server),
        }
    }

    /// Checks an address before it is used.
    pub fn check(&self, url: &Url) -> Result<(), GuardError> {
        let local = is_loopback(url);
        if local && !self.loopback {
            return Err(GuardError::Loopback { url: shown(url) });
        }
        if url.scheme() != "https" && !(local && url.scheme() == "http") {
            return Err(GuardError::Plain { url: shown(url) });
        }
        Ok(())
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
