//! Addresses of databases: from text to what a connection is made with, and to what people are shown.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use url::Url;
use url::form_urlencoded;

use crate::error::DatabaseError;
use crate::limits::{
    CONNECT_TIMEOUT, IDLE_TRANSACTION_TIMEOUT, LOCK_TIMEOUT, PROBE_AFTER, PROBE_INTERVAL, PROBES,
    STATEMENT_TIMEOUT, UNACKNOWLEDGED_TIMEOUT,
};

const DEFAULT_PORT: u16 = 5432;

/// An address that was understood.
pub(crate) struct Address {
    /// What a connection is made with: the password is in it.
    pub(crate) config: Config,
    /// The address for people, without its password.
    pub(crate) place: String,
    /// A file with certificate authorities to trust besides those of the system.
    pub(crate) ca_file: Option<PathBuf>,
}

impl Address {
    /// Reads `postgres://user:password@host:port/database?...`.
    ///
    /// `sslmode` says whether the connection is encrypted: `disable`; `prefer`, if the server can; and
    /// `require`, `verify-ca` and `verify-full`, which are the same here: whenever there is TLS, the
    /// certificate has to be good for the host. Without it, the connection is encrypted unless the
    /// database is on this machine. `sslrootcert` names a file with certificate authorities.
    pub(crate) fn parse(text: &str) -> Result<Self, DatabaseError> {
        let invalid = |why: String| DatabaseError::Address { why };
        let mut url = Url::parse(text).map_err(|error| invalid(error.to_string()))?;
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return Err(invalid("it does not begin with postgres://".to_owned()));
        }
        url.set_fragment(None);
        let Ours {
            mode,
            ca_file,
            others,
        } = Ours::taken_from(url.query().unwrap_or_default())?;
        url.set_query((!others.is_empty()).then_some(others.as_str()));
        let mut config: Config = url
            .as_str()
            .parse()
            .map_err(|error: tokio_postgres::Error| invalid(cocode_wire::chain(&error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            let why = "it names no host; for a socket in a directory, write ?host=/run/postgresql";
            return Err(invalid(why.to_owned()));
        }
        let mode = mode.unwrap_or_else(|| default_mode(&config));
        config.ssl_mode(if all_sockets(&config) {
            // PostgreSQL speaks no TLS there.
            SslMode::Disable
        } else {
            mode
        });
        bound(&mut config);
        Ok(Self {
            place: place(&config),
            config,
            ca_file,
        })
    }
}

/// What we read of the parameters ourselves, and the others as they were.
struct Ours {
    mode: Option<SslMode>,
    ca_file: Option<PathBuf>,
    others: String,
}

impl Ours {
    fn taken_from(query: &str) -> Result<Self, DatabaseError> {
        let mut ours = Self {
            mode: None,
            ca_file: None,
            others: String::new(),
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let Some((key, value)) = form_urlencoded::parse(pair.as_bytes()).next() else {
                continue;
            };
            match &*key {
                "sslmode" => ours.mode = Some(mode(&value)?),
                "sslrootcert" => ours.ca_file = Some(PathBuf::from(&*value)),
                _ => {
                    if !ours.others.is_empty() {
                        ours.others.push('&');
                    }
                    ours.others.push_str(pair);
                }
            }
        }
        Ok(ours)
    }
}

fn mode(word: &str) -> Result<SslMode, DatabaseError> {
    match word {
        "disable" => Ok(SslMode::Disable),
        "prefer" => Ok(SslMode::Prefer),
        "require" | "verify-ca" | "verify-full" => Ok(SslMode::Require),
        _ => Err(DatabaseError::Address {
            why: "sslmode is one of disable, prefer, require and verify-full".to_owned(),
        }),
    }
}

fn default_mode(config: &Config) -> SslMode {
    let addresses = config.get_hostaddrs();
    let is_here = if addresses.is_empty() {
        config.get_hosts().iter().all(is_here)
    } else {
        addresses.iter().all(IpAddr::is_loopback)
    };
    if is_here {
        SslMode::Disable
    } else {
        SslMode::Require
    }
}

fn is_here(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            let address = name.parse::<IpAddr>();
            name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

fn all_sockets(config: &Config) -> bool {
    let is_socket = |host: &Host| !matches!(host, Host::Tcp(_));
    config.get_hostaddrs().is_empty() && config.get_hosts().iter().all(is_socket)
}

/// Every wait gets an end, on this side and on the other.
fn bound(config: &mut Config) {
    let mut options = config.get_options().unwrap_or_default().to_owned();
    let settings = [
        ("statement_timeout", STATEMENT_TIMEOUT.as_millis()),
        ("lock_timeout", LOCK_TIMEOUT.as_millis()),
        (
            "idle_in_transaction_session_timeout",
            IDLE_TRANSACTION_TIMEOUT.as_millis(),
        ),
        ("tcp_keepalives_idle", u128::from(PROBE_AFTER.as_secs())),
        (
            "tcp_keepalives_interval",
            u128::from(PROBE_INTERVAL.as_secs()),
        ),
        ("tcp_keepalives_count", u128::from(PROBES)),
        ("tcp_user_timeout", UNACKNOWLEDGED_TIMEOUT.as_millis()),
    ];
    for (name, value) in settings {
        // Writing into a text does not fail.
        let _written = write!(options, " -c {name}={value}");
    }
    config
        .options(options.trim_start())
        .application_name("cocode")
        .connect_timeout(CONNECT_TIMEOUT)
        .keepalives(true)
        .keepalives_idle(PROBE_AFTER)
        .keepalives_interval(PROBE_INTERVAL)
        .keepalives_retries(PROBES)
        .tcp_user_timeout(UNACKNOWLEDGED_TIMEOUT);
}

/// The address for people: who, where, which, and nothing else.
fn place(config: &Config) -> String {
    let mut place = "postgres://".to_owned();
    if let Some(user) = config.get_user() {
        place.push_str(user);
        place.push('@');
    }
    let ports = config.get_ports();
    let port = |index: usize| {
        let port = ports.get(index).or_else(|| ports.first());
        port.copied().unwrap_or(DEFAULT_PORT)
    };
    let mut hosts: Vec<String> = config.get_hosts().iter().map(host_name).collect();
    if hosts.is_empty() {
        hosts = config
            .get_hostaddrs()
            .iter()
            .map(ToString::to_string)
            .collect();
    }
    let hosts: Vec<String> = hosts
        .iter()
        .enumerate()
        .map(|(index, host)| {
            let host = if host.contains(':') && !host.contains('/') {
                format!("[{host}]")
            } else {
                host.clone()
            };
            format!("{host}:{}", port(index))
        })
        .collect();
    place.push_str(&hosts.join(","));
    if let Some(name) = config.get_dbname() {
        place.push('/');
        place.push_str(name);
    }
    place
}

fn host_name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
