//! `cocode mcp logout`: forgets what lets us in, after giving it back if that is wanted.

use std::time::Duration;

use cocode_auth::oauth::{SignedOut, VaultError};
use cocode_client::Url;
use cocode_config::State;
use cocode_core::Reach;
use serde::Serialize;

use super::subject::{self, Subject};
use crate::admission::unlisted;
use crate::args::auth::LogoutArgs;
use crate::daemon::ask_all;
use crate::error::{CliError, Exit};
use crate::interrupt::Interrupts;
use crate::printer::print_json;
use crate::session::{interrupted, on_runtime};
use crate::target::shown;
use crate::text::plain;
use crate::workspace::Workspace;

/// How long others may take to let go of connections.
const FORGOTTEN_WITHIN: Duration = Duration::from_secs(30);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    server: &'a str,
    was_signed_in: bool,
    /// The authorization servers that took their tokens back.
    revoked: &'a [String],
    /// Those that did not.
    not_revoked: Vec<NotRevoked<'a>>,
}

#[derive(Serialize)]
struct NotRevoked<'a> {
    issuer: &'a str,
    reason: &'a str,
}

pub(crate) fn run(args: &LogoutArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let subject = match &args.server {
        Some(word) => Some(subject::to_sign_out(word, workspace)?),
        None => None,
    };
    on_runtime(workspace, Box::pin(all(args, subject, workspace)))
}

async fn all(
    args: &LogoutArgs,
    subject: Option<Subject>,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let mut interrupts = Interrupts::catch()?;
    let subjects = match subject {
        Some(subject) => vec![subject],
        None => stored(workspace).await?,
    };
    let printer = &workspace.printer;
    if subjects.is_empty() {
        if printer.json() {
            return Ok(Exit::Ok);
        }
        printer.out_line("there is no sign-in that could be ended")?;
    }
    for subject in subjects {
        tokio::select! {
            biased;
            exit = interrupts.next() => return Err(interrupted(printer, exit)),
            outcome = one(&subject, args.revoke, workspace) => outcome?,
        }
    }
    Ok(Exit::Ok)
}

/// Everything that is stored.
async fn stored(workspace: &Workspace) -> Result<Vec<Subject>, CliError> {
    let listing = workspace.admissions()?.vault().list().await;
    let listing = listing.map_err(|error| unavailable("cannot be listed", &error))?;
    for unreadable in &listing.unreadable {
        let message = format!(
            "{} stored sign-ins stay, because they cannot be read: {}",
            unreadable.ids.len(),
            unreadable.error
        );
        workspace.printer.warn(&message);
    }
    let subjects = listing.records.iter().filter_map(|listed| {
        let url = Url::parse(&listed.record.url).ok()?;
        Some(Subject {
            name: shown(&url),
            remote: unlisted(&url),
            url,
            spec: None,
        })
    });
    Ok(subjects.collect())
}

async fn one(subject: &Subject, revoke: bool, workspace: &Workspace) -> Result<(), CliError> {
    let outcome = sign_out(subject, revoke, workspace).await?;
    tell(&subject.name, &outcome, workspace)?;
    if outcome.was_signed_in {
        pass_on(&subject.url, workspace).await?;
    }
    Ok(())
}

/// Has the gateway or daemon of this user let go of what it knows. It would notice by itself, but only
/// with the next request to that server.
async fn pass_on(url: &Url, workspace: &Workspace) -> Result<(), CliError> {
    let (running, mut errors) = ask_all(workspace).await;
    for asking in running {
        for name in names_at(url, workspace)? {
            let told = asking.forget_credentials(name, FORGOTTEN_WITHIN).await;
            errors.extend(told.err());
        }
    }
    for error in errors {
        workspace.printer.warn(&format!(
            "a gateway or daemon that runs was not told, and notices with its next request: {}",
            error.message
        ));
    }
    Ok(())
}

/// The servers that are at an address.
fn names_at<'a>(
    url: &'a Url,
    workspace: &'a Workspace,
) -> Result<impl Iterator<Item = &'a str>, CliError> {
    let servers = workspace.config()?.servers.iter();
    Ok(servers.filter_map(move |(name, server)| {
        let State::Ready(spec) = &server.state else {
            return None;
        };
        let Reach::Remote(remote) = &spec.reach else {
            return None;
        };
        let is_there = Url::parse(&remote.url).is_ok_and(|there| there == *url);
        is_there.then_some(name.as_str())
    }))
}

/// Forgets what lets us in at a server, after giving it back if that is wanted.
pub(crate) async fn sign_out(
    subject: &Subject,
    revoke: bool,
    workspace: &Workspace,
) -> Result<SignedOut, CliError> {
    let Subject {
        name, url, remote, ..
    } = subject;
    let oauth = remote.oauth.clone();
    let site = workspace
        .admissions()?
        .site(name, url.clone(), oauth, remote);
    let outcome = site.log_out(revoke).await;
    outcome.map_err(|error| unavailable("cannot be forgotten", &error))
}

fn tell(name: &str, outcome: &SignedOut, workspace: &Workspace) -> Result<(), CliError> {
    let SignedOut {
        was_signed_in,
        revoked,
        kept_valid,
    } = outcome;
    let printer = &workspace.printer;
    if printer.json() {
        let report = Report {
            server: name,
            was_signed_in: *was_signed_in,
            revoked,
            not_revoked: kept_valid
                .iter()
                .map(|(issuer, reason)| NotRevoked { issuer, reason })
                .collect(),
        };
        return print_json(printer, &report);
    }
    if !was_signed_in {
        return printer.out_line(&plain(&format!("nobody was signed in to `{name}`")));
    }
    let mut line = format!("signed out of `{name}`");
    if !revoked.is_empty() {
        line = format!("{line}; {} took the tokens back", revoked.join(" and "));
    }
    printer.out_line(&plain(&line))?;
    for (issuer, reason) in kept_valid {
        printer.warn(&format!(
            "{issuer} did not take the tokens back, which stay valid until they end: {reason}"
        ));
    }
    Ok(())
}

fn unavailable(what: &str, error: &VaultError) -> CliError {
    let message = format!("stored credentials {what}");
    CliError::with(Exit::Auth, "credentials-unavailable", message).because(error)
}
