//! The tokens that let clients in at a gateway. One is shown when it is made, alone on stdout, and never
//! again: only its hash is kept.

use std::time::{Duration, SystemTime};

use cocode_access::{PrincipalName, Token, TokenRecord};
use cocode_admin::{Moment, OPERATOR};
use cocode_config::PrincipalSettings;
use serde::Serialize;

use crate::access::token_trouble;
use crate::args::access::TokenVerb;
use crate::error::{CliError, Code, Exit};
use crate::operate::own_gateways;
use crate::printer::{Style, print_json};
use crate::records::records;
use crate::session::on_runtime;
use crate::table::{Cell, table};
use crate::text::{age, plain};
use crate::workspace::Workspace;

pub(crate) fn run(verb: &TokenVerb, workspace: &Workspace) -> Result<Exit, CliError> {
    let work = async {
        match verb {
            TokenVerb::Add {
                name,
                admin,
                expires,
            } => add(&parsed(name)?, *admin, *expires, workspace).await,
            TokenVerb::List => list(workspace).await,
            TokenVerb::Revoke { name } => revoke(&parsed(name)?, workspace).await,
        }
    };
    on_runtime(workspace, work)
}

pub(crate) fn parsed(name: &str) -> Result<PrincipalName, CliError> {
    name.parse().map_err(|error| {
        let message = format!("`{}` cannot be the name of a token", plain(name));
        CliError::new(Code::InvalidUsage, message).because(&error)
    })
}

/// What is told of a token.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    name: &'a str,
    /// Only when it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    admin: bool,
    created_at: Moment,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<Moment>,
}

impl<'a> Told<'a> {
    fn of(record: &'a TokenRecord) -> Self {
        Self {
            name: record.name.as_str(),
            token: None,
            admin: record.is_admin,
            created_at: record.created.into(),
            expires_at: record.expires.map(Moment::from),
            last_used_at: record.last_used.map(Moment::from),
        }
    }
}

/// A new token, and what is to be kept of it.
pub(crate) fn made(
    name: &PrincipalName,
    admin: bool,
    expires: Option<Duration>,
) -> Result<(Token, TokenRecord), CliError> {
    if name.as_str() == OPERATOR {
        let message = format!(
            "`{OPERATOR}` cannot be the name of a token: the audit log calls those so who sign in to the \
             dashboard with a code"
        );
        return Err(CliError::new(Code::InvalidUsage, message).hint("choose another name"));
    }
    let token = Token::generate().map_err(|error| {
        CliError::new(Code::SetupFailed, "a token cannot be made").because(&error)
    })?;
    let record = TokenRecord::new(name.clone(), token.hash()).admin(admin);
    let until = expires.and_then(|wait| record.created.checked_add(wait));
    Ok((token, record.expiring(until)))
}

async fn add(
    name: &PrincipalName,
    admin: bool,
    expires: Option<Duration>,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let (token, record) = made(name, admin, expires)?;
    let store = records(workspace).await?.tokens();
    store
        .add(&record)
        .await
        .map_err(|error| token_trouble(&error))?;
    apply_to_running(workspace).await;
    let printer = &workspace.printer;
    if printer.json() {
        let told = Told {
            token: Some(token.expose()),
            ..Told::of(&record)
        };
        return print_json(printer, &told).map(|()| Exit::Ok);
    }
    printer.out_line(token.expose())?;
    let until = match record.expires {
        Some(until) => format!("good until {}", Moment::from(until)),
        None => "good until it is revoked".to_owned(),
    };
    printer.note(&format!(
        "this is the token of `{name}`, {until}; it is shown this once"
    ));
    printer
        .note("clients send it as `Authorization: Bearer TOKEN`, and from now on each needs one");
    if let Some(table) = table_of(name, workspace)? {
        printer.note(&table);
    }
    Ok(Exit::Ok)
}

/// Returns when the running gateways of this user have read the tokens anew. Other gateways with the same store do so
/// by themselves.
async fn apply_to_running(workspace: &Workspace) {
    let mut running = own_gateways(workspace).await;
    for (gateway, _) in &running.gateways {
        let applied = gateway.get::<serde::de::IgnoredAny>(&["tokens"]).await;
        running.errors.extend(applied.err());
    }
    for error in running.errors {
        workspace.printer.warn(&format!(
            "a gateway or daemon that runs was not told; a gateway applies this within seconds: {}",
            error.message
        ));
    }
}

/// What the settings say of whoever has the token, if that is not all that everybody may.
fn table_of(name: &PrincipalName, workspace: &Workspace) -> Result<Option<String>, CliError> {
    let gateway = &workspace.config()?.settings.gateway;
    let Some(table) = gateway.principal(name.as_str()) else {
        return Ok(None);
    };
    let PrincipalSettings {
        from, is_broken, ..
    } = &*table;
    Ok(Some(if *is_broken {
        format!("`{name}` may do nothing until what is written at {from} is mended")
    } else {
        format!("what `{name}` may do is written at {from}")
    }))
}

#[derive(Serialize)]
struct Listing<'a> {
    tokens: Vec<Told<'a>>,
}

async fn list(workspace: &Workspace) -> Result<Exit, CliError> {
    let records = records(workspace).await?.tokens().list().await;
    let records = records.map_err(|error| token_trouble(&error))?;
    let printer = &workspace.printer;
    if printer.json() {
        let tokens = records.iter().map(Told::of).collect();
        return print_json(printer, &Listing { tokens }).map(|()| Exit::Ok);
    }
    if records.is_empty() {
        printer.note("there are no tokens: `cocode gateway token add NAME` makes one");
        return Ok(Exit::Ok);
    }
    let now = SystemTime::now();
    let rows: Vec<Vec<Cell>> = records.iter().map(|record| row(record, now)).collect();
    let head = ["NAME", "MAY", "MADE", "LAST USED", "EXPIRES"];
    printer.out(table(&head, &rows, printer.paint()))?;
    Ok(Exit::Ok)
}

fn row(record: &TokenRecord, now: SystemTime) -> Vec<Cell> {
    let ago = |time: SystemTime| {
        let since = now.duration_since(time).unwrap_or_default();
        format!("{} ago", age(since))
    };
    let expires = match record.expires {
        None => Cell::new("never"),
        Some(_) if record.has_expired(now) => Cell::new("has expired").styled(Style::Red),
        Some(time) => {
            let left = time.duration_since(now).unwrap_or_default();
            Cell::new(format!("in {}", age(left)))
        }
    };
    vec![
        Cell::new(record.name.as_str()).styled(Style::Bold),
        Cell::new(if record.is_admin { "manage" } else { "use" }),
        Cell::new(ago(record.created)),
        Cell::new(record.last_used.map_or_else(|| "never".to_owned(), ago)),
        expires,
    ]
}

#[derive(Serialize)]
struct Revoked<'a> {
    name: &'a str,
    revoked: bool,
}

async fn revoke(name: &PrincipalName, workspace: &Workspace) -> Result<Exit, CliError> {
    let store = records(workspace).await?.tokens();
    store
        .revoke(name)
        .await
        .map_err(|error| token_trouble(&error))?;
    apply_to_running(workspace).await;
    let printer = &workspace.printer;
    if printer.json() {
        let report = Revoked {
            name: name.as_str(),
            revoked: true,
        };
        return print_json(printer, &report).map(|()| Exit::Ok);
    }
    printer.out_line(&plain(&format!("revoked `{name}`")))?;
    let left = store.list().await;
    let has_oauth = workspace.config()?.settings.gateway.oauth.is_some();
    if left.is_ok_and(|left| left.is_empty()) && !has_oauth {
        printer.note(
            "that was the last token: a gateway that runs lets nobody in, and one that is started now \
             lets in every program of this machine, or makes a token if clients could change files or run commands",
        );
    }
    Ok(Exit::Ok)
}
