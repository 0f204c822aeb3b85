//! Which addresses may be connected to. Owns the seam between a rule about addresses and the
//! resolver that every connection goes through, so that what was checked is what is connected to.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Url;

/// What an [`AddressFilter`] leaves over, now or later.
pub type Admitted<'a> = Pin<Box<dyn Future<Output = Vec<SocketAddr>> + Send + 'a>>;

/// A rule about the addresses that names stand for. It is asked each time a name was resolved for a
/// new connection, and only what it leaves over is tried.
///
/// It does not see addresses that stand in a URL as they are: whoever has the URL can check those.
/// Nor does it see what a proxy connects to, because then the proxy resolves the name.
pub trait AddressFilter: fmt::Debug + Send + Sync + 'static {
    /// Those of the addresses that may be connected to.
    fn admit(&self, addresses: Vec<SocketAddr>) -> Admitted<'_>;
}

/// A name stands for addresses, and none of them may be connected to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("refused to connect to {host}: {}", listed(addresses))]
pub struct AddressRefused {
    /// The name.
    pub host: String,
    /// What it stands for.
    pub addresses: Vec<IpAddr>,
}

fn listed(addresses: &[IpAddr]) -> String {
    let addresses: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    format!("it is at {}", addresses.join(", "))
}

impl AddressRefused {
    /// The refusal that led to an error, if one did.
    pub(crate) fn behind<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(refused) = error.downcast_ref() {
                return Some(refused);
            }
            cause = error.source();
        }
        None
    }
}

/// Resolves names as the system does, and keeps what the filter admits.
pub(crate) struct FilteringResolver {
    pub(crate) filter: Arc<dyn AddressFilter>,
    /// The proxies that the user configured. They may be anywhere: they stand between us and the
    /// names that are filtered. A request to one of these names is checked by [`check_target`].
    pub(crate) proxies: BTreeSet<String>,
}

/// Asks the filter about a request to the name of a proxy. The resolver cannot tell whether it is the
/// proxy that is looked for, or what the request is for, perhaps at another port.
pub(crate) async fn check_target(
    filter: &dyn AddressFilter,
    proxies: &BTreeSet<String>,
    url: &Url,
) -> Result<(), AddressRefused> {
    let Some(host) = url.domain().filter(|host| proxies.contains(*host)) else {
        return Ok(());
    };
    // A name that stands for nothing fails as such when it is connected to.
    let Ok(resolved) = tokio::net::lookup_host((host, 0)).await else {
        return Ok(());
    };
    admitted(filter, host, resolved.collect()).await.map(drop)
}

/// What the filter leaves over of what a name stands for.
async fn admitted(
    filter: &dyn AddressFilter,
    host: &str,
    resolved: Vec<SocketAddr>,
) -> Result<Vec<SocketAddr>, AddressRefused> {
    let admitted = filter.admit(resolved.clone()).await;
    if admitted.is_empty() && !resolved.is_empty() {
        return Err(AddressRefused {
            host: host.to_owned(),
            addresses: resolved.iter().map(SocketAddr::ip).collect(),
        });
    }
    Ok(admitted)
}

impl Resolve for FilteringResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let filter = (!self.proxies.contains(&host)).then(|| Arc::clone(&self.filter));
        Box::pin(async move {
            let resolved: Vec<SocketAddr> =
                tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let Some(filter) = filter else {
                return Ok(Box::new(resolved.into_iter()) as Addrs);
            };
            let admitted = admitted(&*filter, &host, resolved).await?;
            Ok(Box::new(admitted.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use bytes::Bytes;
    use http::Request;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::{AddressFilter, AddressRefused, Admitted};
    use crate::http::client::{HttpClient, HttpSettings};
    use crate::http::fetch::FetchError;

    #[derive(Debug)]
    struct Loopback {
        admitted: bool,
    }

    impl AddressFilter for Loopback {
        fn admit(&self, mut addresses: Vec<SocketAddr>) -> Admitted<'_> {
            addresses.retain(|address| self.admitted || !address.ip().is_loopback());
            Box::pin(std::future::ready(addresses))
        }
    }

    fn filtered(settings: HttpSettings, admitted: bool) -> HttpClient {
        HttpClient::new(settings).with_address_filter(Arc::new(Loopback { admitted }))
    }

    async fn listening() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    fn get(url: &str) -> Request<Bytes> {
        Request::get(url).body(Bytes::new()).unwrap()
    }

    /// The first line of the one request that is answered.
    async fn answer(listener: &TcpListener) -> String {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(b"\r\n\r\n") {
            assert!(socket.read_buf(&mut heard).await.unwrap() > 0);
        }
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        socket.write_all(answer).await.unwrap();
        let heard = String::from_utf8(heard).unwrap();
        heard.lines().next().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_name_at_a_refused_address_is_not_connected_to() {
        let (listener, port) = listening().await;
        let client = filtered(HttpSettings::default(), false);
        for client in [client.with_own_connections(), client] {
            let fetched = client.fetch(get(&format!("http://localhost:{port}/")), 1);
            let Err(FetchError::Refused(refused)) = fetched.await else {
                panic!("it was not refused");
            };
            assert_eq!(refused.host, "localhost");
            assert!(refused.to_string().contains("127.0.0.1"), "{refused}");
        }
        let nobody_came = std::future::poll_fn(|context| {
            std::task::Poll::Ready(listener.poll_accept(context).is_pending())
        });
        assert!(nobody_came.await);
    }

    #[tokio::test]
    async fn a_name_at_an_admitted_address_is_connected_to() {
        let (listener, port) = listening().await;
        let client = filtered(HttpSettings::default(), true);
        let url = format!("http://localhost:{port}/here");
        let (fetched, heard) = tokio::join!(client.fetch(get(&url), 1), answer(&listener));
        assert_eq!(fetched.unwrap().status(), 200);
        assert_eq!(heard, "GET /here HTTP/1.1");
    }

    #[tokio::test]
    async fn a_proxy_may_be_at_an_address_that_names_must_not_have() {
        let (listener, port) = listening().await;
        let settings = HttpSettings {
            http_proxy: Some(format!("http://localhost:{port}")),
            ..HttpSettings::default()
        };
        let client = filtered(settings, false);
        let request = get("http://mcp.invalid/there");
        let (fetched, heard) = tokio::join!(client.fetch(request, 1), answer(&listener));
        assert_eq!(fetched.unwrap().status(), 200);
        assert_eq!(heard, "GET http://mcp.invalid/there HTTP/1.1");
    }

    #[tokio::test]
    async fn what_has_the_name_of_a_proxy_is_no_proxy() {
        for no_proxy in [Some("localhost".to_owned()), None] {
            let settings = HttpSettings {
                http_proxy: Some("http://localhost:1".to_owned()),
                no_proxy,
                ..HttpSettings::default()
            };
            let client = filtered(settings.clone(), false);
            let fetched = client.fetch(get("http://localhost:2/"), 1).await;
            assert!(
                matches!(fetched, Err(FetchError::Refused(_))),
                "{settings:?}: {fetched:?}"
            );
            let client = filtered(settings.clone(), true);
            let fetched = client.fetch(get("http://localhost:2/"), 1).await;
            assert!(
                matches!(fetched, Err(FetchError::Link(_))),
                "{settings:?}: {fetched:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_name_that_stands_for_nothing_is_not_a_refusal() {
        let client = filtered(HttpSettings::default(), true);
        let fetched = client.fetch(get("http://name.invalid/"), 1).await;
        assert!(matches!(fetched, Err(FetchError::Link(_))), "{fetched:?}");
    }

    #[test]
    fn a_refusal_names_all_addresses() {
        let refused = AddressRefused {
            host: "name.example".to_owned(),
            addresses: vec![[10, 0, 0, 1].into(), [169, 254, 0, 1].into()],
        };
        assert_eq!(
            refused.to_string(),
            "refused to connect to name.example: it is at 10.0.0.1, 169.254.0.1"
        );
    }
}
