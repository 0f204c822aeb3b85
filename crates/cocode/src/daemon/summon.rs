//! Finds the daemon of the user, or starts it: exactly one, however many want it at once.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use cocode_process::{ProcessSpec, RestrictionsError, SpawnError, spawn_detached};
use cocode_wire::serve::{FirstLineError, UnixServerError, read_first_line};
use serde::Serialize;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::asking::Asking;
use super::build::program;
use super::connect::{LOOK_WITHIN, PayloadKind, connect, peer};
use super::hello::{self, CHANNEL, Hello, MAX_HELLO_BYTES, Refusal, Welcome};
use super::place::Place;
use crate::api_client::ApiError;
use crate::environment::Variables;
use crate::logging;

/// How long a daemon may take to let a front in: it reads the configuration before that, and may ask
/// for credentials.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// How long a daemon may take until it listens.
const UP_WITHIN: Duration = Duration::from_secs(10);
/// How long somebody else may take to start it.
const STARTED_WITHIN: Duration = Duration::from_secs(15);
/// How often a daemon that ends just now is taken for bad luck.
const MAX_ATTEMPTS: usize = 5;
/// What a daemon writes down unless told otherwise.
const LOG_FILTER: &str = "warn,cocode=info";

/// Why there is no daemon.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unavailable {
    /// Nothing listens, or nothing that would be ours.
    #[error("cannot connect to the daemon at {}", path.display())]
    Connect {
        path: std::path::PathBuf,
        #[source]
        source: io::Error,
    },
    /// Somebody else could take its place, so it is not used.
    #[error("{0}, so no daemon is used there")]
    NotPrivate(UnixServerError),
    /// Another user, or a program in a sandbox, has taken its place.
    #[error("the process that listens at {} {reason}, so it is not used; stop it and remove the socket", path.display())]
    Untrusted {
        path: std::path::PathBuf,
        reason: &'static str,
    },
    /// It may be anything.
    #[error("the process that listens at {} cannot be checked, so it is not used", path.display())]
    Unchecked {
        path: std::path::PathBuf,
        #[source]
        source: RestrictionsError,
    },
    /// It refuses this process, as it says.
    #[error("the daemon refuses: {message}")]
    RefusedByDaemon { message: String },
    /// It would turn us away.
    #[error("this runs in a sandbox that the daemon at {} is not in", path.display())]
    Sandboxed { path: std::path::PathBuf },
    /// It takes the connection, and says nothing.
    #[error("{} does not answer", called(*pid))]
    Hangs { pid: Option<i32> },
    /// It did not answer as a daemon does.
    #[error("{} does not answer", called(*pid))]
    Silent {
        pid: Option<i32>,
        #[source]
        source: FirstLineError,
    },
    /// It answers as no daemon does.
    #[error("the daemon's answer is not understood")]
    Answer(#[source] serde_json::Error),
    /// It does not want to.
    #[error("the daemon refuses: {}", told(*refusal, build))]
    Refused {
        refusal: Refusal,
        /// What it is of.
        build: String,
    },
    /// It has not answered what was asked.
    #[error(transparent)]
    Asked(ApiError),
    /// Its socket cannot be named.
    #[error("the socket of the daemon has no address")]
    Nameless,
    /// It could not be started.
    #[error("the daemon could not be started")]
    Start(#[source] StartError),
    /// It comes and goes.
    #[error("the daemon ended {MAX_ATTEMPTS} times in a row")]
    ComesAndGoes,
}

impl Unavailable {
    /// Whether `cocode mcp daemon stop` helps: it ends daemons of this user whose process it knows.
    pub(crate) fn can_be_ended(&self) -> bool {
        match self {
            Self::Hangs { pid } => pid.is_some(),
            Self::Refused { .. } => true,
            Self::Connect { .. }
            | Self::NotPrivate(_)
            | Self::Untrusted { .. }
            | Self::Unchecked { .. }
            | Self::RefusedByDaemon { .. }
            | Self::Sandboxed { .. }
            | Self::Silent { .. }
            | Self::Answer(_)
            | Self::Asked(_)
            | Self::Nameless
            | Self::Start(_)
            | Self::ComesAndGoes => false,
        }
    }
}

/// Why a daemon could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("cannot {action} {}", path.display())]
    Io {
        action: &'static str,
        path: std::path::PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("this program cannot be started again")]
    Program(#[source] SpawnError),
    #[error("somebody else has been starting it for too long")]
    TooLong,
    #[error("it did not say that it listens")]
    NotUp(#[source] FirstLineError),
}

/// A connection to a daemon that has agreed to serve.
#[derive(Debug)]
pub(crate) struct Summoned {
    pub(crate) stream: UnixStream,
    /// What the daemon said after its first line.
    pub(crate) unread: Bytes,
    pub(crate) welcome: Welcome,
}

/// A daemon, with its process if that is known.
fn called(pid: Option<i32>) -> String {
    match pid {
        Some(pid) => format!("the daemon (process {pid})"),
        None => "the daemon".to_owned(),
    }
}

fn told(refusal: Refusal, build: &str) -> String {
    let other = || {
        let version = build.split('+').next().unwrap_or_default();
        match env!("CARGO_PKG_VERSION") {
            own if own == version => format!("it is of another build of version {version}"),
            own => format!("it is of version {version}, and this is {own}"),
        }
    };
    match refusal {
        Refusal::OtherBuild => format!("{}, and it serves others", other()),
        Refusal::SteppingAside => format!("{}, and it ends", other()),
        Refusal::OtherCertificates => "it trusts other certificates".to_owned(),
        Refusal::OtherWorld => "it is in another sandbox or container".to_owned(),
        Refusal::Failed => "the servers could not be served".to_owned(),
        Refusal::Ending => "it is about to end".to_owned(),
        Refusal::NotUnderstood => "it does not understand what is wanted".to_owned(),
    }
}

/// Says what is wanted, and hears whether it is granted, all of it within this time.
pub(super) async fn greet(
    stream: UnixStream,
    hello: &Hello<impl Serialize>,
    within: Duration,
) -> Result<Summoned, Unavailable> {
    let mut stream = stream;
    let (welcome, unread) = heard(&mut stream, hello, within).await?;
    Ok(Summoned {
        stream,
        unread,
        welcome,
    })
}

/// The same, where the connection is needed even if it is not granted.
pub(super) async fn heard(
    stream: &mut UnixStream,
    hello: &Hello<impl Serialize>,
    within: Duration,
) -> Result<(Welcome, Bytes), Unavailable> {
    let line = hello::line(hello).map_err(Unavailable::Answer)?;
    let pid = peer(stream);
    let speaking = async {
        let sent = stream.write_all(&line).await;
        // One that refuses says so, and may have closed its end before anything was sent.
        let first = read_first_line(stream, MAX_HELLO_BYTES, within).await;
        first.map_err(|error| sent.map_err(FirstLineError::Io).err().unwrap_or(error))
    };
    // A daemon that hangs does not even read.
    let first = match tokio::time::timeout(within, speaking).await {
        Ok(Ok(first)) => first,
        Ok(Err(FirstLineError::TimedOut { .. })) | Err(_) => {
            return Err(Unavailable::Hangs { pid });
        }
        Ok(Err(source)) => return Err(Unavailable::Silent { pid, source }),
    };
    let welcome: Welcome = match serde_json::from_slice(&first.line) {
        Ok(welcome) => welcome,
        Err(error) => {
            if let Some(message) = hello::refusal_in(&first.line) {
                return Err(Unavailable::RefusedByDaemon { message });
            }
            // One of another build may have other things to say, but begins like us.
            let (_channel, build) = Hello::head(&first.line).ok_or(Unavailable::Answer(error))?;
            let refusal = Refusal::OtherBuild;
            return Err(Unavailable::Refused { refusal, build });
        }
    };
    let refused = welcome.refused;
    let refused = refused.or((welcome.channel != CHANNEL).then_some(Refusal::OtherBuild));
    if let Some(refusal) = refused {
        if refusal == Refusal::SteppingAside {
            until_end(stream).await;
        }
        let build = welcome.build;
        return Err(Unavailable::Refused { refusal, build });
    }
    Ok((welcome, first.rest))
}

/// The same for a front, who has to be patient: but not with a daemon that answers nobody.
async fn let_in(
    stream: UnixStream,
    place: &Place,
    hello: &Hello<impl Serialize>,
) -> Result<Summoned, Unavailable> {
    let hangs = async {
        loop {
            tokio::time::sleep(LOOK_WITHIN).await;
            let asked = match Asking::of(place).await {
                Ok(asking) => asking.look().await,
                Err(error) => Err(error),
            };
            if let Err(error @ Unavailable::Hangs { .. }) = asked {
                return error;
            }
        }
    };
    tokio::select! {
        biased;
        answer = greet(stream, hello, ANSWER_WITHIN) => answer,
        error = hangs => Err(error),
    }
}

/// A daemon that steps aside keeps the connection until its place is free.
async fn until_end(stream: &mut UnixStream) {
    let end = read_first_line(stream, MAX_HELLO_BYTES, UP_WITHIN).await;
    tracing::debug!(?end, "the other daemon has stepped aside");
}

/// A daemon that serves this front. It is started if there is none.
pub(crate) async fn summon(
    place: &Place,
    hello: &Hello<impl Serialize>,
    variables: &Variables,
) -> Result<Summoned, Unavailable> {
    for _attempt in 0..MAX_ATTEMPTS {
        place.check_directory()?;
        let stream = match connect(place, PayloadKind::Environment).await {
            Ok(stream) => stream,
            Err(Unavailable::Connect { .. }) => started(place, variables).await?,
            Err(error) => return Err(error),
        };
        match let_in(stream, place, hello).await {
            // It has ended, or is about to; the next one is ours.
            Err(
                Unavailable::Refused {
                    refusal: Refusal::SteppingAside | Refusal::Ending,
                    ..
                }
                | Unavailable::Silent {
                    source: FirstLineError::Ended | FirstLineError::Io(_),
                    ..
                },
            ) => {}
            answer => return answer,
        }
    }
    Err(Unavailable::ComesAndGoes)
}

/// Starts a daemon, unless somebody else does.
async fn started(place: &Place, variables: &Variables) -> Result<UnixStream, Unavailable> {
    let lock = start_lock(place).await.map_err(Unavailable::Start)?;
    // Somebody may have been quicker.
    if let Ok(stream) = connect(place, PayloadKind::Environment).await {
        return Ok(stream);
    }
    let up = start(place, variables).await;
    let connected = connect(place, PayloadKind::Environment).await;
    drop(lock);
    match (connected, up) {
        (Err(Unavailable::Connect { .. }), Err(error)) => Err(Unavailable::Start(error)),
        (connected, _) => connected,
    }
}

/// The right to start a daemon.
async fn start_lock(place: &Place) -> Result<File, StartError> {
    let path = place.starting();
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |source| StartError::Io {
            action,
            path,
            source,
        }
    };
    if let Some(directory) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(failed("make the directory", directory))?;
        if let Err(error) = place.check_directory() {
            return Err(failed("trust the directory", directory)(io::Error::other(
                error,
            )));
        }
    }
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(failed("open", &path))?;
    let locking = tokio::task::spawn_blocking(move || file.lock().map(|()| file));
    let locked = tokio::time::timeout(STARTED_WITHIN, locking).await;
    let locked = locked.map_err(|_elapsed| StartError::TooLong)?;
    let locked = locked.map_err(io::Error::other).and_then(|locked| locked);
    locked.map_err(failed("lock", &path))
}

/// Starts a daemon, and waits until it listens.
async fn start(place: &Place, variables: &Variables) -> Result<(), StartError> {
    let program = program().map_err(|source| StartError::Io {
        action: "find",
        path: "this program".into(),
        source,
    })?;
    let log = open_log(&place.log);
    let mut spec = ProcessSpec::new(program);
    if log.is_some() {
        spec.args = vec!["--log-file".into(), place.log.clone().into()];
    }
    spec.args
        .extend(["mcp", "daemon", "run"].map(OsString::from));
    spec.env = variables.all();
    if variables.get("COCODE_LOG".as_ref()).is_none() {
        spec.env.push(("COCODE_LOG".into(), LOG_FILTER.into()));
    }
    if let Some(home) = &place.home {
        // From where it starts, a relative one is another.
        spec.env.retain(|(name, _)| name != "COCODE_HOME");
        spec.env.push(("COCODE_HOME".into(), home.into()));
    }
    spec.cwd = Some("/".into());
    let up = spawn_detached(&spec, log).map_err(StartError::Program)?;
    let up = pipe::Receiver::from_owned_fd(OwnedFd::from(up));
    let mut up = up.map_err(|source| StartError::Io {
        action: "hear",
        path: "the daemon".into(),
        source,
    })?;
    let line = read_first_line(&mut up, MAX_HELLO_BYTES, UP_WITHIN).await;
    line.map(drop).map_err(StartError::NotUp)
}

/// The log, for what the daemon may have to say before it writes there itself. Without one, it says
/// nothing.
fn open_log(path: &Path) -> Option<File> {
    let directory = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let opened = directory.and_then(|()| logging::open(path));
    match opened {
        Ok(file) => Some(file),
        Err(error) => {
            tracing::debug!(%error, path = %path.display(), "the daemon has no log");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Refusal, told};

    #[test]
    fn whoever_is_refused_hears_whether_it_is_the_version_or_the_build() {
        let own = concat!(env!("CARGO_PKG_VERSION"), "+1.2.3");
        let told = |build| told(Refusal::OtherBuild, build);
        assert!(
            told(own).contains("another build of version"),
            "{}",
            told(own)
        );
        let older = told("0.0.1+1.2.3");
        assert!(
            older.contains("it is of version 0.0.1, and this is"),
            "{older}"
        );
    }
}
