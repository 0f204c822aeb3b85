//! Tunnels through HTTP proxies, for links that are not HTTP.

use std::io;

use http::HeaderValue;
use hyper_util::client::proxy::matcher::Matcher;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use url::Url;

use super::client::{HttpSettings, HttpSetupError, proxy_host};
use crate::inbox::excerpt;
use crate::limits::MAX_PROXY_ANSWER_BYTES;

/// A proxy that makes tunnels.
pub(crate) struct Proxy {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Whether the proxy itself is reached over TLS.
    pub(crate) secure: bool,
    credentials: Option<HeaderValue>,
}

impl Proxy {
    /// The proxy that the settings name for a WebSocket to `url`, if any: the one for `http:` URLs
    /// if it is plain, that for `https:` URLs if it is secure.
    pub(crate) fn for_websocket(
        settings: &HttpSettings,
        url: &Url,
    ) -> Result<Option<Self>, HttpSetupError> {
        let secure = url.scheme() == "wss";
        let (scheme, address) = if secure {
            ("https", &settings.https_proxy)
        } else {
            ("http", &settings.http_proxy)
        };
        let Some(address) = address else {
            return Ok(None);
        };
        let bad = |reason: String| HttpSetupError::Proxy {
            address: proxy_host(address),
            reason,
        };
        // The matcher says nothing about an address that it does not understand.
        reqwest::Proxy::all(address).map_err(|error| bad(error.to_string()))?;
        let no_proxy = settings.no_proxy.as_deref().unwrap_or_default();
        let builder = Matcher::builder().no(no_proxy);
        let matcher = builder.http(address).https(address).build();
        let authority = url.host_str().unwrap_or_default();
        let destination = format!("{scheme}://{authority}/").parse::<http::Uri>();
        let destination = destination.map_err(|error| bad(error.to_string()))?;
        let Some(proxy) = matcher.intercept(&destination) else {
            return Ok(None);
        };
        let (secure, default_port) = match proxy.uri().scheme_str() {
            Some("http") => (false, 80),
            Some("https") => (true, 443),
            _ => return Err(bad("a WebSocket goes through HTTP proxies only".into())),
        };
        Ok(Some(Self {
            host: proxy.uri().host().unwrap_or_default().to_owned(),
            port: proxy.uri().port_u16().unwrap_or(default_port),
            secure,
            credentials: proxy.basic_auth().cloned(),
        }))
    }

    /// Asks the proxy at the other end of `stream` to connect it to `host`.
    pub(crate) async fn tunnel(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        host: &str,
        port: u16,
    ) -> io::Result<()> {
        let mut request =
            format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n").into_bytes();
        if let Some(credentials) = &self.credentials {
            request.extend_from_slice(b"Proxy-Authorization: ");
            request.extend_from_slice(credentials.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        stream.write_all(&request).await?;
        stream.flush().await?;
        let mut answer = Vec::new();
        // Byte by byte: what follows the empty line is not ours to read.
        while !answer.ends_with(b"\r\n\r\n") {
            if answer.len() == MAX_PROXY_ANSWER_BYTES {
                return Err(io::Error::other("the answer of the proxy has no end"));
            }
            answer.push(stream.read_u8().await?);
        }
        let line = answer.split(|&byte| byte == b'\r').next();
        let line = line.unwrap_or_default();
        let mut words = line.split(|&byte| byte == b' ');
        let is_http = words
            .next()
            .is_some_and(|word| word.starts_with(b"HTTP/1."));
        if is_http && words.next().is_some_and(|status| status.starts_with(b"2")) {
            return Ok(());
        }
        let refusal = format!("the proxy refused the tunnel: {}", excerpt(line));
        Err(io::Error::other(refusal))
    }
}
