//! Adds a server to a scope: what `codex mcp add` and `claude mcp add` take, and the rest.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cocode_config::{
    Config, Entry, IfExists, OAuthEntry, Scope, Seconds, Text, Transport as FileTransport,
    add_server, format_of, is_variable_name,
};
use cocode_core::ServerName;
use serde::Serialize;

use super::trust;
use crate::args::Transport;
use crate::args::manage::{AddArgs, OAuthArgs, WritableScope};
use crate::configured::blocked;
use crate::environment::text_variable;
use crate::error::{CliError, Code, Exit};
use crate::printer::print_json;
use crate::target::is_address;
use crate::text::plain;
use crate::workspace::Workspace;

pub(crate) fn run(args: &AddArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let entry = entry(args)?;
    add(&args.name, &entry, args.scope, args.force, workspace)
}

#[derive(Serialize)]
struct Report<'a> {
    name: &'a str,
    scope: &'static str,
    file: String,
}

/// Writes a server, and says where.
pub(crate) fn add(
    name: &str,
    entry: &Entry,
    scope: WritableScope,
    force: bool,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let file = write(name, entry, scope.into(), force, workspace)?;
    let printer = &workspace.printer;
    let scope = Scope::from(scope);
    if printer.json() {
        let report = Report {
            name,
            scope: scope.as_str(),
            file: file.display().to_string(),
        };
        print_json(printer, &report)?;
    } else {
        let file = file.display();
        printer.out_line(&plain(&format!(
            "added `{name}` to the {scope} scope, in {file}"
        )))?;
    }
    warn_if_not_used(name, scope, workspace);
    warn_of_plain_secrets(entry, workspace);
    if scope == Scope::Local {
        mention_ignoring(&file, workspace);
    }
    Ok(Exit::Ok)
}

/// Writes a server into the file of a scope, and approves it where that is needed.
pub(crate) fn write(
    name: &str,
    entry: &Entry,
    scope: Scope,
    force: bool,
    workspace: &Workspace,
) -> Result<PathBuf, CliError> {
    let config = workspace.config()?;
    may_add(name, entry, config, workspace)?;
    let places = &workspace.places;
    let scope = if places.explicit.is_empty() {
        scope
    } else {
        Scope::Explicit
    };
    let Some(file) = places.servers_file(scope) else {
        let message = format!("the {scope} scope has no file here");
        return Err(CliError::new(Code::FileError, message)
            .hint("the directory you are in is gone; `--scope user` works everywhere"));
    };
    let if_exists = if force {
        IfExists::Replace
    } else {
        IfExists::Fail
    };
    let written = add_server(
        &workspace.edits(),
        &file,
        format_of(&file),
        name,
        entry,
        if_exists,
    );
    written.map_err(|error| not_written(&error))?;
    if scope.needs_trust() {
        trust::approve_written(&file, name, entry, workspace)?;
    }
    Ok(file)
}

/// An edit that could not be made.
pub(crate) fn not_written(error: &cocode_config::EditError) -> CliError {
    use cocode_config::EditError;
    let code = match error {
        EditError::Exists { .. } => Code::AlreadyThere,
        EditError::NoServer { .. } => Code::UnknownServer,
        _ => Code::FileError,
    };
    let mut told = CliError::new(code, error.to_string());
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        told.causes.push(cause.to_string());
        source = cause.source();
    }
    match code {
        Code::AlreadyThere => told.hint("`--force` replaces it"),
        _ => told,
    }
}

/// Whether a server may be added at all: a name that can be one, an entry that is in order, and an
/// organization that has nothing against it.
fn may_add(
    name: &str,
    entry: &Entry,
    config: &Config,
    workspace: &Workspace,
) -> Result<(), CliError> {
    let what = format!("server `{}`", plain(name));
    name.parse::<ServerName>().map_err(|error| {
        CliError::new(Code::InvalidUsage, "this cannot be the name of a server").because(&error)
    })?;
    if let Some(file) = &config.managed_by {
        let file = file.display();
        let reason = format!("all servers are fixed by your organization, in {file}");
        return Err(blocked(&what, &reason));
    }
    // A variable that is not set now may be set when the server is used, which is checked again then.
    let unset = RefCell::new(BTreeSet::new());
    let lookup = |variable: &str| {
        let value = text_variable(variable);
        if value.is_none() {
            unset.borrow_mut().insert(variable.to_owned());
        }
        value
    };
    let checked = cocode_config::check_entry(name, entry, &lookup);
    let missing = unset.into_inner();
    match checked {
        Ok(spec) => match config.refuses_unlisted(&spec) {
            Some(reason) => Err(blocked(&what, &reason)),
            None => Ok(()),
        },
        Err(_) if !missing.is_empty() => {
            for variable in missing {
                let message = format!("{what} needs the variable `{variable}`, which is not set");
                workspace.printer.warn(&message);
            }
            Ok(())
        }
        Err(problems) => {
            let mut error = CliError::new(
                Code::InvalidUsage,
                format!("{what} cannot be added as it is given"),
            );
            for problem in &problems {
                let key = problem.key.as_deref().unwrap_or_default();
                error.causes.push(format!("`{key}`: {}", problem.message));
                error.hints.extend(problem.hint.clone());
            }
            Err(error)
        }
    }
}

/// Says so if another scope has a server of this name that counts more.
fn warn_if_not_used(name: &str, scope: Scope, workspace: &Workspace) {
    let config = workspace.reloaded();
    let Some(server) = config.servers.get(name) else {
        workspace
            .printer
            .warn("the server was written, but is not found again");
        return;
    };
    if workspace.places.explicit.is_empty() && server.winner.scope != scope {
        let message = format!(
            "the {} scope has a server `{name}` too, which counts more: {}",
            server.winner.scope, server.winner.found.origin
        );
        workspace.printer.warn(&message);
    } else if let Some(reason) = super::report::reason(name, server) {
        let state = server.state.as_str();
        workspace
            .printer
            .warn(&format!("`{name}` is {state}: {reason}"));
    }
}

/// A value that looks like a secret should not be in a file for everybody to read.
fn warn_of_plain_secrets(entry: &Entry, workspace: &Workspace) {
    for line in entry.lines() {
        if line.is_secret && looks_secret(&line.key) {
            let key = &line.key;
            let message = format!(
                "the value of `{key}` is in the file as plain text; `cocode secret set NAME` and \
                 `keyring:NAME`, or `${{VAR}}`, keep it out"
            );
            workspace.printer.warn(&message);
            return;
        }
    }
}

/// The local file is for one user alone, and git should not have it.
fn mention_ignoring(file: &Path, workspace: &Workspace) {
    let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
        return;
    };
    let name = name.to_string_lossy();
    let is_mentioned = |list: &str| {
        let text = std::fs::read_to_string(directory.join(list)).unwrap_or_default();
        text.lines()
            .any(|line| line.trim().trim_start_matches('/') == name)
    };
    let is_repository = directory.join(".git").exists();
    if is_repository && !is_mentioned(".gitignore") && !is_mentioned(".git/info/exclude") {
        let message = format!("`{name}` is for you alone: add it to .gitignore");
        workspace.printer.note(&message);
    }
}

pub(super) fn looks_secret(key: &str) -> bool {
    let key = key.to_lowercase();
    let words = [
        "token",
        "secret",
        "password",
        "key",
        "authorization",
        "credential",
    ];
    words.iter().any(|word| key.contains(word))
}

fn entry(args: &AddArgs) -> Result<Entry, CliError> {
    let AddArgs {
        name: _,
        words,
        command,
        url,
        scope: _,
        transport,
        env,
        cwd,
        header,
        bearer_token_env_var,
        headers_helper,
        oauth,
        startup_timeout,
        connect_timeout,
        tool_timeout,
        enabled_tools,
        disabled_tools,
        protocol,
        description,
        required,
        disabled,
        force: _,
    } = args;
    let (program, address) = what_is_given(words, command, url.as_deref())?;
    let (program, arguments) = match program.split_first() {
        Some((program, arguments)) => (Some(program.clone()), arguments.to_vec()),
        None => (None, Vec::new()),
    };
    let (env, env_vars) = variables(env)?;
    let OAuthArgs {
        client_id,
        client_secret_env,
        callback_port,
        scopes,
        resource,
    } = oauth;
    let seconds = |duration: &Option<Duration>| {
        duration.and_then(|duration| Seconds::new(duration.as_secs_f64()))
    };
    Ok(Entry {
        transport: transport.and_then(|transport| file_transport(transport, program.is_some())),
        command: program,
        args: arguments,
        env,
        env_vars,
        cwd: cwd.clone(),
        url: address,
        headers: headers(header)?,
        env_http_headers: BTreeMap::new(),
        bearer_token_env_var: bearer_token_env_var.clone(),
        headers_helper: headers_helper.clone(),
        oauth: OAuthEntry {
            client_id: client_id.clone(),
            client_secret_env: client_secret_env.clone(),
            callback_port: *callback_port,
            scopes: scopes.clone(),
            resource: resource.clone(),
        },
        enabled: disabled.then_some(false),
        required: required.then_some(true),
        startup_timeout_sec: seconds(startup_timeout),
        connect_timeout_sec: seconds(connect_timeout),
        tool_timeout_sec: seconds(tool_timeout),
        enabled_tools: (!enabled_tools.is_empty()).then(|| enabled_tools.clone()),
        disabled_tools: disabled_tools.clone(),
        protocol: protocol.as_ref().map(|protocol| protocol_name(*protocol)),
        isolation: None,
        always_load: None,
        idle_stop_sec: None,
        sandbox: None,
        description: description.clone(),
    })
}

/// The program with its arguments, or the address: after `--`, after `--url`, or as plain words.
fn what_is_given(
    words: &[String],
    command: &[String],
    url: Option<&str>,
) -> Result<(Vec<String>, Option<String>), CliError> {
    let usage = |message: &str| CliError::new(Code::InvalidUsage, message);
    let mut all: Vec<String> = words.to_vec();
    match (url, words.split_first()) {
        (Some(url), None) if command.is_empty() => Ok((Vec::new(), Some(url.to_owned()))),
        (Some(_), _) => Err(usage("both a command and `--url` are given")
            .hint("a server is either a program or an address")),
        (None, Some((address, rest))) if is_address(address) => {
            if rest.is_empty() && command.is_empty() {
                Ok((Vec::new(), Some(address.clone())))
            } else {
                Err(usage("an address takes no arguments")
                    .hint("options such as --header come before or after it"))
            }
        }
        (None, _) => {
            all.extend_from_slice(command);
            match all.as_slice() {
                [] => Err(usage("neither a command nor an address is given")
                    .hint("as in: cocode mcp add files -- npx -y @modelcontextprotocol/server-filesystem .")
                    .hint("or: cocode mcp add docs --url https://example.com/mcp")),
                [address] if is_address(address) => Ok((Vec::new(), Some(address.clone()))),
                _ => Ok((all, None)),
            }
        }
    }
}

type Variables = (BTreeMap<String, Text>, Vec<String>);

/// `NAME=VALUE` is kept; `NAME` is passed on from wherever the server is started.
fn variables(given: &[String]) -> Result<Variables, CliError> {
    let mut values = BTreeMap::new();
    let mut names = Vec::new();
    for one in given {
        let (name, value) = match one.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (one.as_str(), None),
        };
        if !is_variable_name(name) {
            let message = "a variable in `--env` has no name, or one that variables cannot have";
            return Err(CliError::new(Code::InvalidUsage, message)
                .hint("write --env NAME=VALUE, or --env NAME to pass it on each time"));
        }
        match value {
            Some(value) => {
                values.insert(name.to_owned(), Text::from(value));
            }
            None => names.push(name.to_owned()),
        }
    }
    Ok((values, names))
}

fn headers(given: &[String]) -> Result<BTreeMap<String, Text>, CliError> {
    let mut headers = BTreeMap::new();
    for (index, header) in given.iter().enumerate() {
        // `codex` and `gemini` users write an equals sign, `claude` users a colon.
        let Some((name, value)) = header.split_once(':').or_else(|| header.split_once('=')) else {
            let message = format!("header number {} has no colon", index + 1);
            return Err(
                CliError::new(Code::InvalidUsage, message).hint("write --header 'Name: value'")
            );
        };
        headers.insert(name.trim().to_owned(), Text::from(value.trim()));
    }
    Ok(headers)
}

/// What has to be written: a program needs no saying.
fn file_transport(transport: Transport, is_program: bool) -> Option<FileTransport> {
    match transport {
        Transport::Stdio if is_program => None,
        Transport::Stdio => Some(FileTransport::Stdio),
        Transport::Http => Some(FileTransport::Http),
        Transport::Sse => Some(FileTransport::Sse),
        Transport::Ws => Some(FileTransport::Ws),
        Transport::Unix => Some(FileTransport::Unix),
    }
}

fn protocol_name(protocol: cocode_client::Protocol) -> String {
    use cocode_client::Protocol;
    match protocol {
        Protocol::Auto => "auto".to_owned(),
        Protocol::Legacy => "legacy".to_owned(),
        Protocol::Modern => "modern".to_owned(),
        Protocol::Exact(revision) => revision.to_string(),
    }
}
