//! Which addresses may be used for signing in: nothing that others on the way could read or change.

use url::{Host, Url};

/// What an address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Browsers are sent back to it.
    Callback,
    /// It describes a client, and is its ID.
    Document,
    /// It is the name of an authorization server.
    Issuer,
    /// Tokens come from it.
    Endpoint,
}

/// Why an address cannot be used for this.
pub(crate) fn objection(text: &str, purpose: Purpose) -> Option<&'static str> {
    let Ok(url) = Url::parse(text) else {
        return Some("it is not a URL");
    };
    let is_plain = url.scheme() == "http" && is_here(&url);
    let message = match purpose {
        Purpose::Document if url.scheme() != "https" => "it must begin with https://",
        Purpose::Callback | Purpose::Issuer | Purpose::Endpoint
            if url.scheme() != "https" && !is_plain =>
        {
            "it must begin with https://, or with http:// and be on this machine"
        }
        _ if !url.username().is_empty() || url.password().is_some() => {
            "it must not hold credentials"
        }
        Purpose::Issuer if url.query().is_some() || url.fragment().is_some() => {
            "it must have neither a query nor a fragment"
        }
        _ if url.fragment().is_some() => "it must not have a fragment",
        Purpose::Document if url.path() == "/" => {
            "it must have a path, as in https://example.com/client.json"
        }
        _ => return None,
    };
    Some(message)
}

fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
