//! Secrets that configuration refers to by name. A value comes from stdin or is typed unseen, never
//! from the command line, which shells remember and other users can see.

pub(crate) mod unseen;

use std::io::{IsTerminal as _, Read as _, stdin};

use cocode_auth::{MAX_SECRET_BYTES, Secret, SecretName, SecretStore, StoreError};
use serde::Serialize;

use crate::args::govern::{SecretArgs, SecretVerb};
use crate::error::{CliError, Code, Exit};
use crate::printer::print_json;
use crate::stores::{self, place_name};
use crate::table::{Cell, table};
use crate::text::plain;
use crate::workspace::Workspace;

pub(crate) fn run(args: &SecretArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let store = stores::secrets(workspace)?;
    let cannot =
        |error| CliError::new(Code::SetupFailed, "cannot start the runtime").because(&error);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(cannot)?;
    match &args.verb {
        SecretVerb::Set { name } => {
            let name = parsed(name)?;
            // Before the runtime has anything to do: a person may take their time.
            let secret = read(&name, workspace)?;
            runtime.block_on(set(&store, &name, &secret, workspace))
        }
        SecretVerb::List => runtime.block_on(list(&store, workspace)),
        SecretVerb::Remove { name } => {
            let name = parsed(name)?;
            runtime.block_on(remove(&store, &name, workspace))
        }
    }
}

fn parsed(name: &str) -> Result<SecretName, CliError> {
    name.parse().map_err(|error| {
        CliError::new(Code::InvalidUsage, "this cannot be the name of a secret").because(&error)
    })
}

#[derive(Serialize)]
struct Kept<'a> {
    name: &'a str,
    place: &'static str,
    reason: String,
}

async fn set(
    store: &SecretStore,
    name: &SecretName,
    secret: &Secret,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let place = store
        .set(name, secret)
        .await
        .map_err(|error| failed(&error))?;
    let description = stores::told(&store.describe().await, workspace);
    let printer = &workspace.printer;
    if printer.json() {
        let report = Kept {
            name: name.as_str(),
            place: place_name(place),
            reason: description,
        };
        return print_json(printer, &report).map(|()| Exit::Ok);
    }
    let line = format!("kept `{name}` in the {description}");
    printer.out_line(&plain(&line))?;
    printer.note(&format!("configuration refers to it as keyring:{name}"));
    Ok(Exit::Ok)
}

#[derive(Serialize)]
struct Listing<'a> {
    secrets: Vec<Listed<'a>>,
}

#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    place: &'static str,
}

async fn list(store: &SecretStore, workspace: &Workspace) -> Result<Exit, CliError> {
    let secrets = store.list().await.map_err(|error| failed(&error))?;
    let listed: Vec<Listed<'_>> = secrets
        .iter()
        .map(|secret| Listed {
            name: secret.name.as_str(),
            place: place_name(secret.place),
        })
        .collect();
    let printer = &workspace.printer;
    if printer.json() {
        return print_json(printer, &Listing { secrets: listed }).map(|()| Exit::Ok);
    }
    if listed.is_empty() {
        printer.note("no secrets are kept: `cocode secret set NAME`");
        return Ok(Exit::Ok);
    }
    let rows: Vec<Vec<Cell>> = listed
        .iter()
        .map(|secret| vec![Cell::new(secret.name), Cell::new(secret.place)])
        .collect();
    printer.out(table(&["NAME", "KEPT IN"], &rows, printer.paint()))?;
    Ok(Exit::Ok)
}

#[derive(Serialize)]
struct Removed<'a> {
    name: &'a str,
    removed: bool,
}

async fn remove(
    store: &SecretStore,
    name: &SecretName,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let removed = store.remove(name).await.map_err(|error| failed(&error))?;
    if !removed {
        let message = format!("there is no secret `{}`", plain(name.as_str()));
        return Err(
            CliError::new(Code::InvalidUsage, message).hint("`cocode secret list` lists them")
        );
    }
    let printer = &workspace.printer;
    if printer.json() {
        let report = Removed {
            name: name.as_str(),
            removed,
        };
        print_json(printer, &report)?;
    } else {
        printer.out_line(&plain(&format!("removed `{name}`")))?;
    }
    Ok(Exit::Ok)
}

/// The value: typed at a terminal, else all of stdin without the end of its last line.
fn read(name: &SecretName, workspace: &Workspace) -> Result<Secret, CliError> {
    let text = if stdin().is_terminal() {
        unseen::line(&format!("Value of `{name}` (not shown): "), workspace)?
    } else {
        piped()?
    };
    if text.is_empty() {
        let message = format!(
            "no value is given for the secret `{}`",
            plain(name.as_str())
        );
        return Err(CliError::new(Code::InvalidUsage, message)
            .hint("pipe it in, as in: pass show token | cocode secret set NAME"));
    }
    Ok(Secret::new(text))
}

fn piped() -> Result<String, CliError> {
    // One byte more than is ever kept, besides the end of a line, is enough to be refused.
    let limit = MAX_SECRET_BYTES as u64 + 3;
    let mut bytes = Vec::new();
    let read = stdin().lock().take(limit).read_to_end(&mut bytes);
    read.map_err(|error| CliError::new(Code::FileError, "cannot read stdin").because(&error))?;
    let mut text = String::from_utf8(bytes).map_err(|_never_shown| {
        CliError::new(Code::InvalidUsage, "the value on stdin is not UTF-8 text")
    })?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

fn failed(error: &StoreError) -> CliError {
    let code = match error {
        StoreError::Empty(_) | StoreError::TooLong(_) => Code::InvalidUsage,
        StoreError::File(_) => Code::FileError,
        StoreError::Keyring(_) => Code::SecretUnavailable,
    };
    CliError::new(code, "the store of secrets cannot do this").because(error)
}
