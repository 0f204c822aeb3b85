//! Adds a server to a scope: what `codex mcp add` and `claude mcp add` take, and the rest.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use cocode_config::{
    Entry, OAuthEntry, Scope, Seconds, Text, Transport as FileTransport, is_variable_name,
};
use serde::Serialize;
use url::Url;

use super::writing::{Added, mention_ignoring, warn_if_not_used, warn_of_plain_secrets, write};
use crate::args::Transport;
use crate::args::manage::{AddArgs, OAuthArgs, WritableScope};
use crate::auth::client_secret::{self, Given};
use crate::error::{CliError, Code, Exit};
use crate::printer::print_json;
use crate::target::is_address;
use crate::text::plain;
use crate::workspace::Workspace;

pub(crate) fn run(args: &AddArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let mut entry = entry(args, workspace)?;
    if let Some(below) = settle_directory(&mut entry, args.scope, workspace) {
        let message = format!("it will start in `{below}`, where you are");
        workspace.printer.note(&message);
    }
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
    let added = write(name, entry, scope.into(), force, workspace)?;
    let Added {
        scope,
        file,
        warnings,
    } = added;
    let printer = &workspace.printer;
    for warning in &warnings {
        printer.warn(warning);
    }
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

fn entry(args: &AddArgs, workspace: &Workspace) -> Result<Entry, CliError> {
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
    let seconds = |duration: &Option<Duration>| {
        duration.and_then(|duration| Seconds::new(duration.as_secs_f64()))
    };
    let oauth = signing_in(oauth, address.as_deref(), workspace)?;
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
        oauth,
        enabled: disabled.then_some(false),
        required: required.then_some(true),
        startup_timeout_sec: seconds(startup_timeout),
        connect_timeout_sec: seconds(connect_timeout),
        tool_timeout_sec: seconds(tool_timeout),
        tool_timeouts_sec: BTreeMap::new(),
        tool_total_timeout_sec: None,
        enabled_tools: (!enabled_tools.is_empty()).then(|| enabled_tools.clone()),
        disabled_tools: disabled_tools.clone(),
        protocol: protocol.as_ref().map(|protocol| protocol_name(*protocol)),
        isolation: None,
        always_load: None,
        trust_annotations: None,
        idle_stop_sec: None,
        sandbox: None,
        description: description.clone(),
    })
}

fn signing_in(
    args: &OAuthArgs,
    url: Option<&str>,
    workspace: &Workspace,
) -> Result<OAuthEntry, CliError> {
    let OAuthArgs {
        client_id,
        client_secret_env,
        client_secret,
        oauth_client_secret,
        registration,
        client_metadata_url,
        callback_port,
        callback_url,
        scopes,
        resource,
    } = args;
    if oauth_client_secret.is_some() {
        let message = "the secret of a client is not kept in files";
        return Err(CliError::new(Code::InvalidUsage, message).hint(
            "put it in a variable, and name that: `--client-secret-env NAME` instead of \
             `--oauth-client-secret`",
        ));
    }
    let client_secret_env = if *client_secret {
        client_secret_variable(url, client_id.as_deref(), workspace)?
    } else {
        client_secret_env.clone()
    };
    Ok(OAuthEntry {
        client_id: client_id.clone(),
        client_secret_env,
        callback_port: *callback_port,
        callback_url: callback_url.clone(),
        scopes: scopes.clone(),
        resource: resource.clone(),
        registration: registration.map(Into::into),
        client_metadata_url: client_metadata_url.clone(),
        ..OAuthEntry::default()
    })
}

/// The variable that `claude mcp add --client-secret` takes the secret from. Where it is not set, the
/// secret is asked for and kept in the store of secrets, where signing in finds it.
pub(super) fn client_secret_variable(
    url: Option<&str>,
    client_id: Option<&str>,
    workspace: &Workspace,
) -> Result<Option<String>, CliError> {
    let secret = match client_secret::given(workspace)? {
        Given::Variable(_) => return Ok(Some(client_secret::VARIABLE.to_owned())),
        Given::Typed(secret) => secret,
    };
    let url = url.and_then(|url| Url::parse(url).ok()).ok_or_else(|| {
        let message = "the secret of a client is kept for an address, and none is given";
        CliError::new(Code::InvalidUsage, message)
    })?;
    let client_id = client_id.ok_or_else(|| {
        let message = "the secret of a client is kept for that client, and none is named";
        CliError::new(Code::InvalidUsage, message).hint("name it: `--client-id ID`")
    })?;
    let kept = client_secret::keep(&url, client_id, &secret, workspace)?;
    let message = format!("the secret of the client is kept in the {kept}");
    workspace.printer.note(&message);
    Ok(None)
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
                [word] => not_an_address(word).map(|()| (all, None)),
                _ => Ok((all, None)),
            }
        }
    }
}

/// Refuses a single word that is meant as an address, or as a whole command line.
fn not_an_address(word: &str) -> Result<(), CliError> {
    if Path::new(word).exists() {
        return Ok(());
    }
    let usage = |message: String| CliError::new(Code::InvalidUsage, message);
    let shown = plain(word);
    if word.contains("://") {
        let message = format!("`{shown}` is no address of a server");
        return Err(usage(message).hint("use http://, https://, ws://, wss:// or unix:///"));
    }
    if word.contains(char::is_whitespace) {
        let message = format!("`{shown}` is one word, and no program is called that");
        return Err(usage(message).hint("write the program and its arguments without quotes"));
    }
    let (host, path) = word.split_once('/').unwrap_or((word, ""));
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    let is_host = name == "localhost" || (name.contains('.') && !path.is_empty());
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if !name.starts_with('.') && !name.is_empty() && (is_host || is_port) {
        let scheme = if name == "localhost" { "http" } else { "https" };
        let message = format!("`{shown}` looks like an address, but is written as a program");
        return Err(usage(message).hint(format!("is it {scheme}://{shown}?")));
    }
    Ok(())
}

/// Programs of a work tree start beside their file. What was typed further down, and depends on
/// where it was typed, keeps its meaning: gives the directory that was written down for that.
pub(crate) fn settle_directory(
    entry: &mut Entry,
    scope: WritableScope,
    workspace: &Workspace,
) -> Option<String> {
    let is_relative = |word: &String| {
        matches!(word.as_str(), "." | "..") || word.starts_with("./") || word.starts_with("../")
    };
    let mut words = entry.command.iter().chain(&entry.args);
    if scope == WritableScope::User || entry.cwd.is_some() || !words.any(is_relative) {
        return None;
    }
    let places = &workspace.places;
    let (here, tree) = (places.directory.as_ref()?, places.work_tree()?);
    let below = here.strip_prefix(&tree).ok()?;
    if below.as_os_str().is_empty() || !places.explicit.is_empty() {
        return None;
    }
    let below = below.to_string_lossy().into_owned();
    entry.cwd = Some(below.clone());
    Some(below)
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
