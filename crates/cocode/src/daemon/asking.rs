//! Commands that ask the daemon, or the gateway in its place, by its management API. It is never started
//! for that.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cocode_admin::model::{SharedServers, Stopping};
use cocode_wire::FetchError;
use cocode_wire::serve::UnixServerError;
use http::StatusCode;
#[cfg(target_os = "linux")]
use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::connect::{LOOK_WITHIN, PayloadKind, connect, connect_at, peer};
use super::hello::Hello;
use super::place::Place;
use super::summon::{Unavailable, heard};
use crate::api_client::{ApiClient, ApiError, ApiEvents};
use crate::error::{CliError, Code};
use crate::workspace::Workspace;

/// A daemon or a gateway that is there to be asked.
#[derive(Debug)]
pub(crate) struct Asking {
    api: ApiClient,
    place: Place,
    pid: Option<i32>,
    _held: Option<OwnedFd>,
}

/// A path to a socket that stays the same, even if another takes its name, and what it needs to do so.
fn pin_socket_path(socket: &Path) -> io::Result<(PathBuf, Option<OwnedFd>)> {
    #[cfg(target_os = "linux")]
    {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::open(socket, flags, Mode::empty())?;
        let path = format!("/proc/self/fd/{}", held.as_raw_fd());
        Ok((path.into(), Some(held)))
    }
    #[cfg(not(target_os = "linux"))]
    Ok((socket.to_owned(), None))
}

/// Whoever is at a place. Nothing if nobody is.
pub(crate) async fn ask(place: Option<&Place>) -> Result<Option<Asking>, CliError> {
    let Some(place) = place else {
        return Ok(None);
    };
    match Asking::of(place).await {
        Ok(asking) => Ok(Some(asking)),
        Err(Unavailable::Connect { source, .. }) => {
            tracing::debug!(%source, "no daemon runs");
            Ok(None)
        }
        Err(error) => Err(failed(&error)),
    }
}

/// The daemon and every gateway of this user that answers, and why others do not.
pub(crate) async fn ask_all(workspace: &Workspace) -> (Vec<Asking>, Vec<CliError>) {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for place in Place::of(workspace)
        .iter()
        .flat_map(|daemon| std::iter::once(daemon.clone()).chain(daemon.of_gateways()))
    {
        match ask(Some(&place)).await {
            Ok(asking) => found.extend(asking),
            Err(error) => errors.push(error),
        }
    }
    (found, errors)
}

impl Asking {
    /// Its socket.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) async fn of(place: &Place) -> Result<Self, Unavailable> {
        place.check_directory()?;
        // Says whose it is, and whether anybody is there. All connections lead to this socket, whatever has its
        // name later.
        let (path, held) =
            pin_socket_path(&place.socket).map_err(|source| Unavailable::Connect {
                path: place.socket.clone(),
                source,
            })?;
        let stream = connect_at(&path, place, PayloadKind::Commands).await?;
        let api = ApiClient::at_socket(&path).ok_or(Unavailable::Nameless)?;
        Ok(Self {
            api,
            place: place.clone(),
            pid: peer(&stream),
            _held: held,
        })
    }

    /// Reads something that needs nothing but the other process.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, CliError> {
        let answer = self.api.get(path, LOOK_WITHIN).await;
        self.understood(answer).await
    }

    /// The same for a list of at most so many.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        path: &[&str],
        limit: u64,
    ) -> Result<T, CliError> {
        let answer = self.api.list(path, limit, LOOK_WITHIN).await;
        self.understood(answer).await
    }

    /// Has something done.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        within: Duration,
    ) -> Result<T, CliError> {
        let answer = self.api.post(path, within).await;
        self.understood(answer).await
    }

    /// Hears what happens from now on.
    pub(crate) async fn events(&self) -> Result<ApiEvents, CliError> {
        let answer = self.api.events(LOOK_WITHIN).await;
        self.understood(answer).await
    }

    /// Who shares which servers.
    pub(crate) async fn shared(&self) -> Result<SharedServers, CliError> {
        self.get(&["shared"]).await
    }

    /// Has it forget what it knows of the credentials for a server. One that it does not have is none.
    pub(crate) async fn forget_credentials(
        &self,
        server: &str,
        within: Duration,
    ) -> Result<(), CliError> {
        let path = ["servers", server, "credentials"];
        match self.api.delete(&path, within).await {
            Err(ApiError::Refused { status, .. }) if status == StatusCode::NOT_FOUND => Ok(()),
            answer => self.understood(answer).await,
        }
    }

    /// Whether it answers at all.
    pub(super) async fn look(&self) -> Result<(), Unavailable> {
        let answer: Result<SharedServers, _> = self.api.get(&["shared"], LOOK_WITHIN).await;
        match answer {
            Ok(_) => Ok(()),
            Err(error) => Err(self.why(error).await),
        }
    }

    /// Tells it to end, which it then does in its own time.
    pub(super) async fn stop(&self) -> Result<(), Unavailable> {
        match self.api.post::<Stopping>(&["stop"], LOOK_WITHIN).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.why(error).await),
        }
    }

    async fn understood<T>(&self, answer: Result<T, ApiError>) -> Result<T, CliError> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => Err(failed(&self.why(error).await)),
        }
    }

    /// Why there is no answer.
    async fn why(&self, error: ApiError) -> Unavailable {
        let pid = self.pid;
        match error {
            ApiError::TimedOut { .. } | ApiError::Fetch(FetchError::NoAnswer { .. }) => {
                Unavailable::Hangs { pid }
            }
            error @ (ApiError::Fetch(_) | ApiError::Stranger { .. }) => {
                // One that is older knows nothing of HTTP, but understands who we are.
                match self.introduced().await {
                    Some(unavailable) => unavailable,
                    None => Unavailable::Asked(error),
                }
            }
            error => Unavailable::Asked(error),
        }
    }

    /// What it says to somebody who only introduces themselves, if that explains something.
    async fn introduced(&self) -> Option<Unavailable> {
        #[derive(Serialize)]
        #[serde(rename_all = "kebab-case")]
        enum Nothing {
            Nothing,
        }
        let mut stream = connect(&self.place, PayloadKind::Commands).await.ok()?;
        let hello = Hello::new(Nothing::Nothing);
        heard(&mut stream, &hello, LOOK_WITHIN).await.err()
    }
}

/// Who holds a place that is taken.
#[derive(Debug)]
pub(crate) enum Holder {
    Daemon {
        pid: u32,
    },
    Gateway {
        pid: u32,
        url: String,
    },
    /// It does not say what it is.
    Unknown,
}

/// Who listens at a place.
pub(crate) async fn holder(place: &Place) -> Holder {
    let shared = match ask(Some(place)).await {
        Ok(Some(asking)) => asking.shared().await.map(Some),
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    match shared {
        Ok(Some(SharedServers { pid, url, .. })) => match url {
            Some(url) => Holder::Gateway { pid, url },
            None => Holder::Daemon { pid },
        },
        Ok(None) => Holder::Unknown,
        Err(error) => {
            tracing::debug!(?error, "it is not known who holds the place of the daemon");
            Holder::Unknown
        }
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Daemon { pid } => write!(formatter, "a daemon (process {pid})"),
            Self::Gateway { pid, url } => write!(formatter, "a gateway (process {pid}, at {url})"),
            Self::Unknown => formatter.write_str("another daemon"),
        }
    }
}

fn failed(error: &Unavailable) -> CliError {
    let told = unavailable(error);
    if error.can_be_ended() {
        told.hint("`cocode mcp daemon stop` ends it, and the next front starts another")
    } else {
        told
    }
}

/// The same for somebody who has tried to end it.
pub(super) fn unavailable(error: &Unavailable) -> CliError {
    let told = CliError::new(Code::DaemonUnavailable, "the daemon cannot be asked").because(error);
    match error {
        Unavailable::NotPrivate(UnixServerError::NotPrivate { path, .. }) => {
            let path = path.display();
            told.hint(format!(
                "make {path} a directory of yours that others cannot change (`chmod go-w {path}`)"
            ))
        }
        Unavailable::Asked(ApiError::Refused { problem, .. }) => {
            let hints = problem.hints.iter().cloned();
            hints.fold(told, CliError::hint)
        }
        _ => told,
    }
}
