//! Commands that ask the daemon: it is never started for that.

use std::time::Duration;

use cocode_wire::serve::read_first_line;
use serde::de::DeserializeOwned;

use super::control::{Ask, Report};
use super::hello::{Hello, MAX_HELLO_BYTES, Wants, Welcome};
use super::place::Place;
use super::summon::{ANSWER_WITHIN, LOOK_WITHIN, Summoned, Unavailable, connect, greet};
use crate::error::{CliError, Code};

/// Longer than anybody watches.
const FOREVER: Duration = Duration::from_hours(24 * 365);

/// A daemon that is asked something.
#[derive(Debug)]
pub(crate) struct Asking {
    summoned: Summoned,
}

/// Asks the daemon at a place. Nothing if none runs.
pub(crate) async fn ask(ask: Ask, place: Option<&Place>) -> Result<Option<Asking>, CliError> {
    let Some(place) = place else {
        return Ok(None);
    };
    // Whoever listens there may be anybody.
    if let Some(path) = place.distrusted() {
        return Err(failed(&Unavailable::NotPrivate { path }));
    }
    let stream = match connect(place).await {
        Ok(stream) => stream,
        Err(Unavailable::Connect { source, .. }) => {
            tracing::debug!(%source, "no daemon runs");
            return Ok(None);
        }
        Err(error) => return Err(failed(&error)),
    };
    let within = match ask {
        Ask::Status | Ask::Watch | Ask::Stop => LOOK_WITHIN,
        // Servers take their time, and are given it.
        Ask::Restart(_) => ANSWER_WITHIN,
    };
    let hello = Hello::new(Wants::Control(ask));
    let summoned = greet(stream, &hello, within).await;
    let summoned = summoned.map_err(|error| failed(&error))?;
    Ok(Some(Asking { summoned }))
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
    let asked = self::ask(Ask::Status, Some(place)).await;
    let report =
        asked.and_then(|asking| asking.map(|asking| asking.answer::<Report>()).transpose());
    match report {
        Ok(Some(Report { pid, url, .. })) => match url {
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

impl Asking {
    /// What it answered.
    pub(crate) fn answer<T: DeserializeOwned>(&self) -> Result<T, CliError> {
        read(&self.summoned.welcome)
    }

    /// What it says next. Nothing when it has ended.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, CliError> {
        let Summoned { stream, unread, .. } = &mut self.summoned;
        let mut source = tokio::io::AsyncReadExt::chain(&unread[..], stream);
        // It may be silent for as long as nothing happens.
        let first = read_first_line(&mut source, MAX_HELLO_BYTES, FOREVER).await;
        let Ok(first) = first else {
            return Ok(None);
        };
        let welcome: Welcome = serde_json::from_slice(&first.line)
            .map_err(|error| failed(&Unavailable::Answer(error)))?;
        *unread = first.rest;
        read(&welcome).map(Some)
    }
}

fn read<T: DeserializeOwned>(welcome: &Welcome) -> Result<T, CliError> {
    let answer = welcome
        .answer
        .as_ref()
        .map_or("null", |answer| answer.get());
    serde_json::from_str(answer).map_err(|error| failed(&Unavailable::Answer(error)))
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
        Unavailable::NotPrivate { path } => {
            let path = path.display();
            told.hint(format!(
                "`chmod go-w {path}` lets fronts share a daemon there"
            ))
        }
        _ => told,
    }
}
