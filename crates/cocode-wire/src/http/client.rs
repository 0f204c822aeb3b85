//! HTTP clients as every link uses them: pooled, no delay, kept alive, same-origin redirects, our
//! own roots.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderMap;
use reqwest::redirect::{Attempt, Policy};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use url::Url;

use super::addresses::{self, AddressFilter, AddressRefused, FilteringResolver};
#[cfg(target_os = "linux")]
use crate::limits::TCP_UNACKNOWLEDGED_TIMEOUT;
use crate::limits::{
    CONNECT_TIMEOUT, HTTP2_PING_TIMEOUT, KEEP_ALIVE_INTERVAL, MAX_REDIRECTS, POOL_IDLE_TIMEOUT,
    TCP_PROBE_INTERVAL, TCP_PROBES,
};

/// What the outside decides about HTTP: proxies and extra certificate authorities. The library
/// reads no proxy variables itself; the roots of the system (`SSL_CERT_FILE` and `SSL_CERT_DIR`
/// included) are always used.
#[derive(Clone, Default)]
pub struct HttpSettings {
    /// The proxy for `http:` and `ws:` URLs.
    pub http_proxy: Option<String>,
    /// The proxy for `https:` and `wss:` URLs.
    pub https_proxy: Option<String>,
    /// Hosts that are reached directly, as in the variable `NO_PROXY`.
    pub no_proxy: Option<String>,
    /// PEM files with certificate authorities to trust beside those of the system.
    pub extra_ca_files: Vec<PathBuf>,
}

impl fmt::Debug for HttpSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            http_proxy,
            https_proxy,
            no_proxy,
            extra_ca_files,
        } = self;
        let host = |address: &Option<String>| address.as_deref().map(proxy_host);
        formatter
            .debug_struct("HttpSettings")
            .field("http_proxy", &host(http_proxy))
            .field("https_proxy", &host(https_proxy))
            .field("no_proxy", no_proxy)
            .field("extra_ca_files", extra_ca_files)
            .finish()
    }
}

/// Why an HTTP client could not be made.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpSetupError {
    /// A CA file cannot be read or holds no certificate.
    #[error("cannot use the CA file {}: {reason}", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A proxy address is not understood.
    #[error("cannot use the proxy address {address}: {reason}")]
    Proxy {
        /// Its host: the rest can hold credentials.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// TLS or the client could not be set up.
    #[error("cannot set up HTTP: {0}")]
    Setup(String),
}

/// Shared by all links of a program, so that connections are pooled. Certificates are loaded when
/// the first `https:` or `wss:` URL needs them; what cannot be set up is tried again for the next link.
#[derive(Clone)]
pub struct HttpClient(Arc<Shared>);

struct Shared {
    settings: HttpSettings,
    /// Where everybody is found, whatever a URL says.
    socket: Option<PathBuf>,
    filter: Option<Arc<dyn AddressFilter>>,
    plain: Once<reqwest::Client>,
    secure: Once<reqwest::Client>,
    tls: Arc<Once<Arc<rustls::ClientConfig>>>,
}

impl Shared {
    fn new(
        settings: HttpSettings,
        filter: Option<Arc<dyn AddressFilter>>,
        tls: Arc<Once<Arc<rustls::ClientConfig>>>,
    ) -> Self {
        Self {
            settings,
            socket: None,
            filter,
            plain: Once::new(),
            secure: Once::new(),
            tls,
        }
    }
}

/// Something that is made when it is first needed. A failure is not kept: the file that is missing
/// now may be there the next time, and a program may run for weeks.
struct Once<T>(Mutex<Option<T>>);

impl<T: Clone> Once<T> {
    fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn get(&self, make: impl FnOnce() -> Result<T, HttpSetupError>) -> Result<T, HttpSetupError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = &*kept {
            return Ok(made.clone());
        }
        let made = make()?;
        *kept = Some(made.clone());
        Ok(made)
    }
}

impl HttpClient {
    /// Makes nothing yet.
    pub fn new(settings: HttpSettings) -> Self {
        Self::with(settings, None, Arc::new(Once::new()))
    }

    /// A client of whoever listens at a unix socket, whatever the host of a URL is. There are no proxies
    /// on the way.
    pub fn at_socket(path: impl Into<PathBuf>) -> Self {
        let mut shared = Shared::new(HttpSettings::default(), None, Arc::new(Once::new()));
        shared.socket = Some(path.into());
        Self(Arc::new(shared))
    }

    /// A client with the same settings and certificates, but with connections of its own: for an
    /// attempt that must not meet a dead connection which an earlier one has left in the pool.
    #[must_use]
    pub fn with_own_connections(&self) -> Self {
        let Shared {
            settings,
            socket,
            filter,
            tls,
            plain: _,
            secure: _,
        } = &*self.0;
        let mut shared = Shared::new(settings.clone(), filter.clone(), Arc::clone(tls));
        shared.socket.clone_from(socket);
        Self(Arc::new(shared))
    }

    /// A client with the same settings and certificates that connects only to what the filter
    /// admits. Its connections are its own, so that none is used again that the filter has not seen.
    /// Links that are no HTTP are not filtered.
    #[must_use]
    pub fn with_address_filter(&self, filter: Arc<dyn AddressFilter>) -> Self {
        let tls = Arc::clone(&self.0.tls);
        Self::with(self.0.settings.clone(), Some(filter), tls)
    }

    /// A client with the same settings that trusts the certificate authorities in this file, too.
    #[must_use]
    pub fn with_ca_file(&self, file: PathBuf) -> Self {
        let mut settings = self.0.settings.clone();
        settings.extra_ca_files.push(file);
        Self::with(settings, self.0.filter.clone(), Arc::new(Once::new()))
    }

    fn with(
        settings: HttpSettings,
        filter: Option<Arc<dyn AddressFilter>>,
        tls: Arc<Once<Arc<rustls::ClientConfig>>>,
    ) -> Self {
        Self(Arc::new(Shared::new(settings, filter, tls)))
    }

    pub(crate) fn for_url(&self, url: &Url) -> Result<reqwest::Client, HttpSetupError> {
        let settings = &self.0.settings;
        let secure_proxy = settings
            .http_proxy
            .as_ref()
            .is_some_and(|proxy| proxy.starts_with("https:"));
        if url.scheme() == "http" && !secure_proxy {
            let make = || {
                let no_roots = tls_config(rustls::RootCertStore::empty())?;
                build(&self.0, Arc::new(no_roots))
            };
            return self.0.plain.get(make);
        }
        let make = || build(&self.0, self.tls()?);
        self.0.secure.get(make)
    }

    /// Whether the filter lets us go there, as far as connecting does not find that out.
    pub(crate) async fn check_target(&self, url: &Url) -> Result<(), AddressRefused> {
        match &self.0.filter {
            Some(filter) => {
                let proxies = proxy_hosts(&self.0.settings);
                addresses::check_target(&**filter, &proxies, url).await
            }
            None => Ok(()),
        }
    }

    pub(crate) fn settings(&self) -> &HttpSettings {
        &self.0.settings
    }

    /// The TLS setup for links that are not HTTP.
    pub(crate) fn tls(&self) -> Result<Arc<rustls::ClientConfig>, HttpSetupError> {
        let make = || Ok(Arc::new(tls_config(roots(&self.0.settings)?)?));
        self.0.tls.get(make)
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The clients inside show their proxies with everything.
        formatter
            .debug_tuple("HttpClient")
            .field(&self.0.settings)
            .finish()
    }
}

impl Default for HttpClient {
    fn default() -> Self {
        Self::new(HttpSettings::default())
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the shared builder")]
fn build(
    shared: &Shared,
    tls: Arc<rustls::ClientConfig>,
) -> Result<reqwest::Client, HttpSetupError> {
    let Shared {
        settings,
        socket,
        filter,
        ..
    } = shared;
    let mut tls = Arc::unwrap_or_clone(tls);
    // A setup of our own is taken as it is, so it has to offer both versions itself.
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut builder = kept_alive(reqwest::Client::builder())
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("cocode/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .redirect(Policy::custom(same_origin_only))
        .referer(false)
        .no_proxy();
    if let Some(filter) = filter {
        builder = builder.dns_resolver(Arc::new(FilteringResolver {
            filter: Arc::clone(filter),
            proxies: proxy_hosts(settings),
        }));
    }
    let no_proxy = settings
        .no_proxy
        .as_deref()
        .and_then(reqwest::NoProxy::from_string);
    let bad = |address: &str, error: &reqwest::Error| HttpSetupError::Proxy {
        address: proxy_host(address),
        reason: error.to_string(),
    };
    if let Some(address) = &settings.http_proxy {
        let proxy = reqwest::Proxy::http(address).map_err(|error| bad(address, &error))?;
        builder = builder.proxy(proxy.no_proxy(no_proxy.clone()));
    }
    if let Some(address) = &settings.https_proxy {
        let proxy = reqwest::Proxy::https(address).map_err(|error| bad(address, &error))?;
        builder = builder.proxy(proxy.no_proxy(no_proxy));
    }
    if let Some(path) = socket {
        builder = builder.unix_socket(path.as_path());
    }
    builder
        .build()
        .map_err(|error| HttpSetupError::Setup(chain(&error)))
}

/// Long streams outlive the patience of what is between us and the server, and a dead peer is
/// noticed on them although nobody sends anything.
fn kept_alive(builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    let builder = builder
        .tcp_keepalive(KEEP_ALIVE_INTERVAL)
        .tcp_keepalive_interval(TCP_PROBE_INTERVAL)
        .tcp_keepalive_retries(TCP_PROBES)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_timeout(HTTP2_PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT);
    #[cfg(target_os = "linux")]
    let builder = builder.tcp_user_timeout(TCP_UNACKNOWLEDGED_TIMEOUT);
    builder
}

/// Bodies and credentials go to the origin they were meant for, or nowhere. Only 307 and 308 keep
/// the method and body of the request.
fn same_origin_only(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps_request = matches!(attempt.status().as_u16(), 307 | 308);
    let same = attempt
        .previous()
        .last()
        .is_some_and(|from| same_origin(from, attempt.url()));
    if keeps_request && same && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

pub(crate) fn same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

fn tls_config(roots: rustls::RootCertStore) -> Result<rustls::ClientConfig, HttpSetupError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| HttpSetupError::Setup(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn roots(settings: &HttpSettings) -> Result<rustls::RootCertStore, HttpSetupError> {
    let mut store = rustls::RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        tracing::warn!(%error, "cannot read a certificate of the system");
    }
    let (_added, ignored) = store.add_parsable_certificates(system.certs);
    if ignored > 0 {
        tracing::debug!(ignored, "certificates of the system that cannot be used");
    }
    for path in &settings.extra_ca_files {
        let bad = |reason: String| HttpSetupError::CaFile {
            path: path.clone(),
            reason,
        };
        let text = std::fs::read(path).map_err(|error| bad(error.to_string()))?;
        let before = store.len();
        for certificate in CertificateDer::pem_slice_iter(&text) {
            let certificate = certificate.map_err(|error| bad(error.to_string()))?;
            store
                .add(certificate)
                .map_err(|error| bad(error.to_string()))?;
        }
        if store.len() == before {
            return Err(bad("it holds no certificate".into()));
        }
    }
    Ok(store)
}

/// A URL fit to be shown: credentials, query and fragment can hold secrets.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // These fail only for URLs that have no host, and those carry no credentials.
    let _cannot_have_any = url.set_username("").and_then(|()| url.set_password(None));
    if url.query().is_some() {
        url.set_query(Some("…"));
    }
    url.set_fragment(None);
    url.to_string()
}

fn proxy_hosts(settings: &HttpSettings) -> BTreeSet<String> {
    let proxies = [&settings.http_proxy, &settings.https_proxy];
    let hosts = proxies.into_iter().flatten();
    hosts.map(|address| proxy_host(address)).collect()
}

/// The host of a proxy. Its address may lack the scheme, and then `Url` takes a name for one.
pub(crate) fn proxy_host(address: &str) -> String {
    let host_of = |text: &str| Url::parse(text).ok()?.host_str().map(str::to_owned);
    host_of(address)
        .or_else(|| host_of(&format!("http://{address}")))
        .unwrap_or_else(|| "(not a URL)".to_owned())
}

/// Shows where something points, as `Debug`: the URL and the values of headers can hold secrets.
pub(crate) fn debug_target(
    formatter: &mut fmt::Formatter<'_>,
    name: &str,
    url: &Url,
    headers: &HeaderMap,
) -> fmt::Result {
    let names: Vec<&str> = headers.keys().map(http::HeaderName::as_str).collect();
    formatter
        .debug_struct(name)
        .field("host", &url.host_str())
        .field("headers", &names)
        .finish_non_exhaustive()
}

/// The error and its causes in one line: many errors say little at the top.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
