//! `cocode mcp auth status`: who is signed in where, by what is configured and what is stored. Nobody
//! is contacted, and nothing secret is shown.

use std::collections::BTreeSet;

use cocode_auth::oauth::{Grant as StoredGrant, Listed, Listing, Record, canonical_url};
use cocode_client::Url;
use cocode_config::{Config, State as ServerState};
use cocode_core::{Grant, Reach, Remote};
use serde::Serialize;

use super::report::{SignInReport, now};
use crate::admission::Way;
use crate::args::auth::AuthStatusArgs;
use crate::configured;
use crate::environment;
use crate::error::{CliError, Exit};
use crate::interrupt::Interrupts;
use crate::printer::{Style, print_json};
use crate::session::{interrupted, on_runtime};
use crate::stores;
use crate::table::{Cell, table};
use crate::target::{is_address, shown};
use crate::workspace::Workspace;

/// How it stands with one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    SignedIn,
    /// The token has ended, and the next request gets a new one.
    Renewable,
    /// The token has ended, and somebody has to sign in.
    Ended,
    SignedOut,
    /// Nothing is stored; whether the server wants anything is not known.
    NotSignedIn,
    /// What is stored belongs to another client or authorization server than its file names.
    Unusable,
    /// Tokens come without anybody when they are needed.
    OnDemand,
    FixedToken,
    Helper,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::SignedIn => "signed-in",
            Self::Renewable => "renewable",
            Self::Ended => "ended",
            Self::SignedOut => "signed-out",
            Self::NotSignedIn => "not-signed-in",
            Self::Unusable => "unusable",
            Self::OnDemand => "on-demand",
            Self::FixedToken => "fixed-token",
            Self::Helper => "helper",
        }
    }

    /// By what is stored.
    fn of(report: &SignInReport, grant: &StoredGrant) -> Self {
        if grant.tokens.is_none() {
            // Whoever signs out leaves no trace of the sign-in.
            return match grant.signed_in_at {
                Some(_) => Self::Ended,
                None => Self::SignedOut,
            };
        }
        match (report.expires_in_seconds, report.renewable) {
            (Some(0), true) => Self::Renewable,
            (Some(0), false) => Self::Ended,
            _ => Self::SignedIn,
        }
    }
}

#[derive(Serialize)]
struct Report {
    store: StoreReport,
    servers: Vec<Line>,
    /// What is stored for servers that are in no file.
    others: Vec<Line>,
    unreadable: Vec<UnreadableReport>,
}

#[derive(Serialize)]
struct StoreReport {
    place: &'static str,
    description: String,
    file: String,
}

#[derive(Serialize)]
struct UnreadableReport {
    ids: Vec<String>,
    reason: String,
}

/// One server.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    url: String,
    state: &'static str,
    /// What its file says instead of signing in.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(flatten)]
    sign_in: Option<SignInReport>,
    #[serde(skip)]
    kind: State,
}

pub(crate) fn run(args: &AuthStatusArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let unknown = args
        .names
        .iter()
        .find(|name| !is_address(name) && !config.servers.contains_key(*name));
    if let Some(unknown) = unknown {
        return Err(configured::unknown(unknown, config));
    }
    on_runtime(workspace, Box::pin(show(args, config, workspace)))
}

async fn show(
    args: &AuthStatusArgs,
    config: &Config,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let mut interrupts = Interrupts::catch()?;
    let vault = workspace.admissions()?.vault();
    let (listing, description) = tokio::select! {
        biased;
        exit = interrupts.next() => return Err(interrupted(&workspace.printer, exit)),
        both = async { tokio::join!(vault.list(), vault.describe()) } => both,
    };
    let listing = listing.map_err(|error| {
        let message = "stored credentials cannot be listed";
        CliError::with(Exit::Auth, "credentials-unavailable", message).because(&error)
    })?;
    let seen = Seen {
        config,
        listing: &listing,
        wanted: args.names.iter().map(String::as_str).collect(),
        now: now(),
        workspace,
    };
    let servers = seen.servers()?;
    let others = seen.others();
    let report = Report {
        store: StoreReport {
            place: stores::place_name(description.place),
            description: stores::told(&description, workspace),
            file: description.file.display().to_string(),
        },
        servers,
        others,
        unreadable: listing
            .unreadable
            .iter()
            .map(|unreadable| UnreadableReport {
                ids: unreadable.ids.clone(),
                reason: unreadable.error.to_string(),
            })
            .collect(),
    };
    print(&report, !args.names.is_empty(), workspace).map(|()| Exit::Ok)
}

/// What there is to look at.
struct Seen<'a> {
    config: &'a Config,
    listing: &'a Listing,
    /// Everything, if empty.
    wanted: BTreeSet<&'a str>,
    now: u64,
    workspace: &'a Workspace,
}

impl Seen<'_> {
    fn servers(&self) -> Result<Vec<Line>, CliError> {
        let mut lines = Vec::new();
        for (name, remote) in self.remotes() {
            if self.wanted.is_empty() || self.wanted.contains(name) {
                lines.extend(self.line(name, &remote)?);
            }
        }
        Ok(lines)
    }

    /// All configured servers that have an address, also those that may not be used.
    fn remotes(&self) -> impl Iterator<Item = (&str, Box<Remote>)> {
        self.config.servers.iter().filter_map(|(name, server)| {
            let spec = match &server.state {
                ServerState::Ready(spec) => (**spec).clone(),
                _ => server.winner.specify(&environment::text_variable).ok()?,
            };
            match spec.reach {
                Reach::Remote(remote) => Some((name.as_str(), remote)),
                Reach::Program(_) => None,
            }
        })
    }

    fn line(&self, name: &str, remote: &Remote) -> Result<Option<Line>, CliError> {
        let line = |kind: State, url: String, key, sign_in| Line {
            name: Some(name.to_owned()),
            url,
            state: kind.as_str(),
            key,
            sign_in,
            kind,
        };
        let address = || Url::parse(&remote.url).map_or_else(|_| String::new(), |url| shown(&url));
        let url = match Way::of(remote) {
            Way::Nothing => return Ok(None),
            Way::Fixed(key) => {
                return Ok(Some(line(State::FixedToken, address(), Some(key), None)));
            }
            Way::Helper(_) => {
                let key = Some("headers_helper".to_owned());
                return Ok(Some(line(State::Helper, address(), key, None)));
            }
            Way::OAuth(url) => url,
        };
        let oauth = remote.oauth.clone();
        let needs_nobody = oauth.grant != Grant::AuthorizationCode;
        let site = self
            .workspace
            .admissions()?
            .site(name, url.clone(), oauth, remote);
        let Some(listed) = self.stored(&site.sign_in().http_url()) else {
            let kind = if needs_nobody {
                State::OnDemand
            } else {
                State::NotSignedIn
            };
            return Ok(Some(line(kind, shown(&url), None, None)));
        };
        let Listed { record, place } = listed;
        let report = |issuer: &str, grant| {
            let report = SignInReport::of_grant(issuer, grant, *place, self.now);
            (report, grant)
        };
        let (kind, sign_in) = match site.usable(record) {
            Some((issuer, grant)) => {
                let (report, grant) = report(issuer, grant);
                (State::of(&report, grant), Some(report))
            }
            None => match record.issuer.as_deref().zip(record.current()) {
                Some((slot, grant)) if grant.tokens.is_some() => {
                    let issuer = Record::issuer_of(slot);
                    (State::Unusable, Some(report(issuer, grant).0))
                }
                _ => (State::SignedOut, None),
            },
        };
        let kind = match kind {
            State::Ended | State::SignedOut if needs_nobody => State::OnDemand,
            kind => kind,
        };
        Ok(Some(line(kind, shown(&url), None, sign_in)))
    }

    fn stored(&self, url: &Url) -> Option<&Listed> {
        let url = canonical_url(url);
        let mut records = self.listing.records.iter();
        records.find(|listed| listed.record.url == url.as_str())
    }

    /// What is stored for addresses that no configured server has.
    fn others(&self) -> Vec<Line> {
        let configured: BTreeSet<String> = self
            .remotes()
            .filter_map(|(name, remote)| {
                let admissions = self.workspace.admissions().ok()?;
                let url = Url::parse(&remote.url).ok()?;
                let site = admissions.site(name, url, remote.oauth.clone(), &remote);
                Some(canonical_url(&site.sign_in().http_url()).into())
            })
            .collect();
        let wanted: BTreeSet<String> = self
            .wanted
            .iter()
            .filter_map(|word| Some(canonical_url(&Url::parse(word).ok()?).into()))
            .collect();
        let is_shown = |listed: &&Listed| {
            let url = &listed.record.url;
            if self.wanted.is_empty() {
                !configured.contains(url)
            } else {
                wanted.contains(url)
            }
        };
        let records = self.listing.records.iter().filter(is_shown);
        records.filter_map(|listed| self.other(listed)).collect()
    }

    fn other(&self, listed: &Listed) -> Option<Line> {
        let Listed { record, place } = listed;
        let url = Url::parse(&record.url).ok()?;
        let current = record.issuer.as_deref().zip(record.current());
        let (kind, sign_in) = match current {
            Some((slot, grant)) => {
                let issuer = Record::issuer_of(slot);
                let report = SignInReport::of_grant(issuer, grant, *place, self.now);
                (State::of(&report, grant), Some(report))
            }
            None => (State::SignedOut, None),
        };
        Some(Line {
            name: None,
            url: shown(&url),
            state: kind.as_str(),
            key: None,
            sign_in,
            kind,
        })
    }
}

fn print(report: &Report, asked: bool, workspace: &Workspace) -> Result<(), CliError> {
    let printer = &workspace.printer;
    if printer.json() {
        return print_json(printer, report);
    }
    let store = &report.store.description;
    printer.out_line(&crate::text::plain(&format!(
        "new sign-ins are kept in the {store}"
    )))?;
    let all = report.servers.iter().chain(&report.others);
    let rows: Vec<Vec<Cell>> = all.map(cells).collect();
    if rows.is_empty() {
        printer.note(if asked {
            "that has no address to sign in to, and nothing is stored for it"
        } else {
            "no server that has an address is configured, and nothing is stored"
        });
    } else {
        let head = [
            "NAME", "STATE", "ENDS", "SCOPES", "ISSUER", "CLIENT", "KEPT IN",
        ];
        printer.out(table(&head, &rows, printer.paint()))?;
    }
    for unreadable in &report.unreadable {
        let count = unreadable.ids.len();
        let reason = &unreadable.reason;
        printer.warn(&format!("{count} stored sign-ins cannot be read: {reason}"));
    }
    for line in &report.servers {
        let name = line.name.as_deref().unwrap_or(&line.url);
        match line.kind {
            State::Ended => printer.note(&format!("`cocode mcp login {name}` signs in again")),
            State::Unusable => printer.note(&format!(
                "what is stored for `{name}` belongs to another client, issuer or resource than its \
                 file names: `cocode mcp login {name}`"
            )),
            _ => {}
        }
    }
    if let Some(other) = report.others.first() {
        let url = &other.url;
        printer.note(&format!(
            "addresses are those of servers in no file; `cocode mcp logout {url}` forgets one"
        ));
    }
    Ok(())
}

fn cells(line: &Line) -> Vec<Cell> {
    let name = line.name.as_deref().unwrap_or(&line.url);
    let state = Cell::new(line.state);
    let state = match line.kind {
        State::SignedIn | State::Renewable | State::OnDemand => state,
        State::FixedToken | State::Helper | State::NotSignedIn => state.styled(Style::Dim),
        State::Ended | State::SignedOut | State::Unusable => state.styled(Style::Yellow),
    };
    let mut cells = vec![Cell::new(name).styled(Style::Bold), state];
    let Some(report) = &line.sign_in else {
        cells.extend(["-", "-", "-", "-"].map(Cell::new));
        cells.push(Cell::new(line.key.as_deref().unwrap_or("-")));
        return cells;
    };
    let has_tokens = line.kind != State::SignedOut;
    let or_dash = |text: String| Cell::new(if has_tokens { text } else { "-".to_owned() });
    let mut scopes = report.scopes();
    if !report.wanted_scopes.is_empty() {
        scopes = format!("{scopes} (wants {})", report.wanted_scopes.join(" "));
    }
    cells.extend([
        or_dash(report.lasts()),
        or_dash(scopes),
        Cell::new(&report.issuer),
        Cell::new(report.client.told()),
        Cell::new(report.kept_in),
    ]);
    cells
}
