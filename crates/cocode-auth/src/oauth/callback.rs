//! Where the browser comes back to: one address of this machine, for one answer.
//!
//! Decides which address that is, and opens its port. What browsers get there is decided in
//! `server`.

mod page;
mod server;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::timeout;
use url::{Host, Url};

use super::authorize::AuthorizationRequest;
use super::http::shown;
use super::user_agent::UserAgentError;
use crate::secret::Secret;
use server::Judge;

/// The path of redirect addresses, unless something else was asked for.
pub const CALLBACK_PATH: &str = "/callback";

/// How long somebody may take to sign in.
const DEFAULT_LIMIT: Duration = Duration::from_mins(5);

/// How often a port is looked for that is free for both families of addresses.
const PORT_ATTEMPTS: usize = 16;

/// How an answer is received.
#[derive(Clone, Debug)]
pub struct CallbackOptions {
    /// What one signs in to, for the page.
    pub server_name: String,
    /// The port to listen at, and no other.
    pub port: Option<u16>,
    /// The redirect address to send, as it is written. If it does not lead to [`port`](Self::port)
    /// of this machine by itself, somebody else sees to that: a tunnel, a forwarded port.
    pub url: Option<String>,
    /// How long somebody may take to sign in.
    pub limit: Duration,
}

impl CallbackOptions {
    /// Any port of this machine, and five minutes.
    pub fn new(server_name: impl Into<String>) -> Self {
        Self {
            server_name: server_name.into(),
            port: None,
            url: None,
            limit: DEFAULT_LIMIT,
        }
    }
}

/// Why no answer can be received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Somebody else has the port.
    #[error(
        "port {port}, where the browser would come back to, is in use; \
         end the program that uses it, or choose another port with --callback-port"
    )]
    Busy {
        /// Which.
        port: u16,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The port is not for everybody.
    #[error(
        "port {port}, where the browser would come back to, may not be used by ordinary programs; \
         choose one above 1023 with --callback-port"
    )]
    Forbidden {
        /// Which.
        port: u16,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The system gives no port.
    #[error("cannot listen on this machine for the browser to come back")]
    Listen(#[source] io::Error),
    /// No browser can, or may, be sent there.
    #[error("the callback address {url} cannot be used: {reason}")]
    Url {
        /// Where to.
        url: String,
        /// Why not.
        reason: &'static str,
    },
}

/// Listens for one answer. Dropping it closes the port.
#[derive(Debug)]
pub struct LoopbackCallback {
    listeners: Vec<TcpListener>,
    port: u16,
    redirect_uri: String,
    path: String,
    hosts: Vec<String>,
    server_name: String,
    limit: Duration,
}

impl LoopbackCallback {
    /// Opens a port. An address that an earlier registration used (`kept`) is used again if it can
    /// be; if only its port cannot, another port is used, which servers that follow RFC 8252 take.
    pub async fn bind(options: &CallbackOptions, kept: Option<&str>) -> Result<Self, ListenError> {
        let place = Place::choose(options, kept)?;
        let (listeners, port) = place.open().await?;
        let redirect_uri = place.redirect_uri(port);
        Ok(Self {
            hosts: hosts(&parsed(&redirect_uri)?, port),
            path: place.address.path().to_owned(),
            listeners,
            port,
            redirect_uri,
            server_name: options.server_name.clone(),
            limit: options.limit,
        })
    }

    /// The redirect address to send.
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// The port that is listened at.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits for the answer to this request and gives its query, which holds what
    /// [`AuthorizationRequest::accept`] wants. Answers with another state do not count.
    ///
    /// Dropping the future closes the port and all connections.
    pub async fn wait(self, request: &AuthorizationRequest) -> Result<Secret, UserAgentError> {
        let judge = Arc::new(Judge {
            request: request.clone(),
            path: self.path,
            hosts: self.hosts,
            server_name: self.server_name,
            answer: OnceLock::new(),
        });
        let served = timeout(self.limit, server::serve(&self.listeners, &judge)).await;
        if served.is_err() {
            tracing::debug!(limit = ?self.limit, "the wait for a browser to come back is over");
        }
        // An answer counts even if its page could not be sent in time.
        judge
            .answer
            .get()
            .cloned()
            .ok_or(UserAgentError::TimedOut { after: self.limit })
    }
}

/// Which names of this machine a redirect address uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    V4,
    V6,
    /// A name that a browser may take for either.
    Both,
}

impl Family {
    /// None, if the address is not one of this machine.
    fn of(url: &Url) -> Option<Self> {
        match url.host()? {
            Host::Ipv4(Ipv4Addr::LOCALHOST) => Some(Self::V4),
            Host::Ipv6(Ipv6Addr::LOCALHOST) => Some(Self::V6),
            Host::Domain("localhost") => Some(Self::Both),
            Host::Ipv4(_) | Host::Ipv6(_) | Host::Domain(_) => None,
        }
    }
}

/// Where to listen, and what to say about it.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    family: Family,
    /// The ports to try, zero for any. If the last one fails, all do.
    ports: Vec<u16>,
    address: Url,
    /// The address as somebody wrote it: servers compare texts, not what they mean.
    written: String,
    /// Whether the address is sent as it is written, whichever port is listened at.
    fixed: bool,
}

impl Place {
    fn choose(options: &CallbackOptions, kept: Option<&str>) -> Result<Self, ListenError> {
        if let Some(written) = &options.url {
            return Self::asked_for(written, options.port);
        }
        if let Some(written) = kept
            && let Some((family, address)) = kept_address(written)
            && (options.port.is_none()
                || address.port().is_none_or(|kept| options.port == Some(kept)))
        {
            let ports = match (options.port, address.port()) {
                (Some(port), _) => vec![port],
                (None, Some(kept)) => vec![kept, 0],
                // An address without a port is one for every port.
                (None, None) => vec![0],
            };
            return Ok(Self {
                family,
                ports,
                address,
                written: written.to_owned(),
                fixed: false,
            });
        }
        let written = format!("http://{}{CALLBACK_PATH}", Ipv4Addr::LOCALHOST);
        Ok(Self {
            family: Family::V4,
            ports: vec![options.port.unwrap_or(0)],
            address: parsed(&written)?,
            written,
            fixed: false,
        })
    }

    /// Where to listen for an address that the user wants.
    fn asked_for(written: &str, port: Option<u16>) -> Result<Self, ListenError> {
        let address = parsed(written)?;
        let refused = |reason| {
            Err(ListenError::Url {
                url: shown(&address),
                reason,
            })
        };
        if address.fragment().is_some() {
            return refused("browsers keep what stands after # to themselves");
        }
        if !address.username().is_empty() || address.password().is_some() {
            return refused("it must not name a user");
        }
        let (family, own) = match (address.scheme(), Family::of(&address)) {
            ("http", Some(family)) => (family, address.port_or_known_default()),
            ("http", None) => return refused("only https is safe outside of this machine"),
            // Whoever ends the encryption passes requests on to some name of this machine. Without
            // a port they reach nobody, but the address can still be pasted.
            ("https", _) => (Family::Both, None),
            _other => return refused("it must begin with https://, or with http://127.0.0.1"),
        };
        Ok(Self {
            family,
            ports: vec![port.or(own).unwrap_or(0)],
            address,
            written: written.to_owned(),
            fixed: true,
        })
    }

    async fn open(&self) -> Result<(Vec<TcpListener>, u16), ListenError> {
        let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
        let mut wanted = 0;
        for port in &self.ports {
            match open(self.family, *port).await {
                Ok(opened) => return Ok(opened),
                Err(error) => (wanted, failure) = (*port, error),
            }
        }
        Err(match failure.kind() {
            io::ErrorKind::AddrInUse if wanted != 0 => ListenError::Busy {
                port: wanted,
                source: failure,
            },
            io::ErrorKind::PermissionDenied if wanted != 0 => ListenError::Forbidden {
                port: wanted,
                source: failure,
            },
            _other => ListenError::Listen(failure),
        })
    }

    fn redirect_uri(&self, port: u16) -> String {
        if self.fixed || self.address.port() == Some(port) {
            return self.written.clone();
        }
        let mut address = self.address.clone();
        // This fails only for addresses without a host, and this one is an address of this machine.
        let _always_has_a_host = address.set_port(Some(port));
        address.to_string()
    }
}

fn parsed(written: &str) -> Result<Url, ListenError> {
    Url::parse(written).map_err(|_no_url| ListenError::Url {
        url: format!("{written:?}"),
        reason: "it is not a URL",
    })
}

/// An address of an earlier registration, if it is one that we can listen at.
fn kept_address(written: &str) -> Option<(Family, Url)> {
    let address = Url::parse(written).ok()?;
    let family = Family::of(&address)?;
    (address.scheme() == "http" && address.fragment().is_none()).then_some((family, address))
}

async fn open(family: Family, port: u16) -> io::Result<(Vec<TcpListener>, u16)> {
    let v4 = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let v6 = |port| TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, port)));
    let both = match family {
        Family::V4 => return alone(v4(port).await?),
        Family::V6 => return alone(v6(port).await?),
        Family::Both => async |port| {
            let first = v4(port).await?;
            let port = first.local_addr()?.port();
            match v6(port).await {
                Ok(second) => Ok((vec![first, second], port)),
                // The browser might go to whoever has the port there, and take the code along.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
                Err(error) => {
                    tracing::debug!(%error, "there is no IPv6 on this machine");
                    Ok((vec![first], port))
                }
            }
        },
    };
    let attempts = if port == 0 { PORT_ATTEMPTS } else { 1 };
    let mut opened = both(port).await;
    for _again in 1..attempts {
        match &opened {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => opened = both(port).await,
            Ok(_) | Err(_) => break,
        }
    }
    opened
}

fn alone(listener: TcpListener) -> io::Result<(Vec<TcpListener>, u16)> {
    let port = listener.local_addr()?.port();
    Ok((vec![listener], port))
}

/// The values of `Host` that mean us: every name of this machine with the port that is listened at
/// or the one that browsers are sent to, and the redirect address's own.
fn hosts(redirect: &Url, port: u16) -> Vec<String> {
    let mut hosts = Vec::new();
    let mut add = |host: &str, port: Option<u16>, default: Option<u16>| {
        hosts.extend(port.map(|port| format!("{host}:{port}")));
        if port == default {
            hosts.push(host.to_owned());
        }
    };
    let own = redirect.port_or_known_default();
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        add(host, Some(port), Some(80));
        if Family::of(redirect).is_some() {
            add(host, own, Some(80));
        }
    }
    if let Some(host) = redirect.host_str() {
        let default = if redirect.scheme() == "https" {
            443
        } else {
            80
        };
        add(host, own, Some(default));
    }
    hosts
}

#[cfg(test)]
#[path = "callback_tests.rs"]
pub(super) mod tests;
