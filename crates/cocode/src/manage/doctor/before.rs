//! The steps of one server that need no connection: its entry, its program or address, policy,
//! approval, variables. Nothing of a server is started or contacted here, and no name is looked
//! up for one that is not ready.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use cocode_client::Url;
use cocode_config::{
    Config, Entry, ExpandError, Loss, PolicyVerdict, Problem, Server, State, variables_of,
};
use cocode_core::{Program, Reach, Remote, RemoteTransport, Sandbox, ServerSpec};
use cocode_process::confinement_support;

use super::super::report::pending;
use super::check::Check;
use super::program;
use crate::environment;
use crate::error::{CliError, Code, Exit};
use crate::reach;
use crate::target::{shown, socket_path};
use crate::workspace::{Workspace, told, with_problems};

/// How long looking up the name of a host may take.
const LOOKUP_LIMIT: Duration = Duration::from_secs(5);

/// The entry itself. Variables that are not set have a step of their own.
pub(super) fn config(server: &Server) -> Check {
    let origin = &server.winner.found.origin;
    let scope = match &server.winner.plugin {
        Some(plugin) => format!("plugin {}", plugin.name),
        None => format!("{} scope", server.winner.scope),
    };
    let unset = unset(&server.winner.found.entry);
    let (wrong, odd): (Vec<&Problem>, Vec<&Problem>) = server
        .problems()
        .into_iter()
        .filter(|problem| !is_about(problem, &unset))
        .partition(|problem| problem.is_error() && matches!(server.state, State::Invalid(_)));
    if !wrong.is_empty() {
        let message = "its entry cannot be used as it is written";
        let error = CliError::new(Code::InvalidConfig, message);
        return Check::failed("config", with_problems(error, &wrong));
    }
    let mut sandboxed = "";
    if let State::Ready(spec) = &server.state {
        if let Some(error) = reach::refused_sandbox(spec, confinement_support()) {
            return Check::failed("config", error);
        }
        if spec.sandbox != Sandbox::Off && matches!(spec.reach, Reach::Program(_)) {
            sandboxed = ", in a sandbox";
        }
    }
    let message = format!("{origin} ({scope}){sandboxed}");
    if odd.is_empty() {
        return Check::ok("config", message);
    }
    Check::warning("config", message).details(odd.iter().map(|problem| told(problem)))
}

/// What it takes to reach a server, also where it is not ready: to look, not to use.
pub(super) fn specification(server: &Server) -> Option<ServerSpec> {
    match &server.state {
        State::Ready(spec) => return Some((**spec).clone()),
        State::Disabled(_) | State::Invalid(_) => return None,
        State::Pending | State::Blocked { .. } => {}
    }
    server.winner.specify(&environment::text_variable).ok()
}

/// Whether names of hosts may be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    Allowed,
    Forbidden,
}

/// The program, or the address.
pub(super) async fn place(spec: &ServerSpec, lookup: Lookup, workspace: &Workspace) -> Check {
    match &spec.reach {
        Reach::Program(program) => command(program),
        Reach::Remote(remote) => address(remote, lookup, workspace).await,
    }
}

fn command(program: &Program) -> Check {
    match program::find(program) {
        Ok(path) => Check::ok("command", path.display().to_string()),
        Err(error) => Check::failed("command", error),
    }
}

async fn address(remote: &Remote, lookup: Lookup, workspace: &Workspace) -> Check {
    let stage = "address";
    let Ok(url) = Url::parse(&remote.url) else {
        let error = CliError::new(Code::InvalidTarget, "its `url` is no URL");
        return Check::failed(stage, error);
    };
    let told = shown(&url);
    if remote.transport == RemoteTransport::Unix {
        return match socket_path(&url) {
            Ok(path) if path.exists() => Check::ok(stage, told),
            Ok(path) => {
                let message = format!("there is no socket {}", path.display());
                let error = CliError::with(Exit::Server, "unreachable", message);
                Check::failed(stage, error.hint("is the server running?"))
            }
            Err(error) => Check::failed(stage, error),
        };
    }
    let Some(host) = url.host_str() else {
        let error = CliError::new(Code::InvalidTarget, "its `url` names no host");
        return Check::failed(stage, error);
    };
    let is_plain = matches!(url.scheme(), "http" | "ws");
    let is_here = host == "localhost" || literal(host).is_some_and(|ip| ip.is_loopback());
    let has_credentials = !remote.headers.is_empty()
        || !remote.env_headers.is_empty()
        || remote.bearer_token_env_var.is_some()
        || remote.headers_helper.is_some();
    let http = &workspace.environment.http;
    let by_proxy = http.http_proxy.is_some() || http.https_proxy.is_some();
    if lookup == Lookup::Allowed
        && literal(host).is_none()
        && !by_proxy
        && let Err(error) = resolve(host, url.port_or_known_default().unwrap_or(443)).await
    {
        return Check::failed(stage, error);
    }
    if is_plain && !is_here && has_credentials {
        return Check::warning(stage, told)
            .details([
                "its headers travel unencrypted, for everybody on the way to read".to_owned(),
            ])
            .hint("use https:// or wss://");
    }
    Check::ok(stage, told)
}

/// A host that is written as an address.
fn literal(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

async fn resolve(host: &str, port: u16) -> Result<(), CliError> {
    let failed = || {
        let message = format!("the name of the host `{host}` could not be looked up");
        CliError::with(Exit::Server, "unreachable", message)
    };
    let hint = "check the address for typing mistakes, and whether the network or VPN is there";
    match tokio::time::timeout(LOOKUP_LIMIT, tokio::net::lookup_host((host, port))).await {
        Ok(Ok(mut addresses)) => match addresses.next() {
            Some(_) => Ok(()),
            None => Err(failed().hint(hint)),
        },
        Ok(Err(error)) => Err(failed().because(&error).hint(hint)),
        Err(_elapsed) => {
            let mut error = failed().hint(hint);
            error.exit = Exit::Timeout;
            Err(error)
        }
    }
}

/// What the organization says; blocked servers go no further.
pub(super) fn policy(server: &Server, config: &Config, workspace: &Workspace) -> (Check, bool) {
    let stage = "policy";
    match &server.policy {
        None => {
            let message = "cannot be told before the entry is in order";
            (Check::skipped(stage, message), true)
        }
        Some(PolicyVerdict::Blocked { reason, .. }) => {
            let check = Check::warning(stage, format!("blocked: {reason}"));
            (
                check.hint("`cocode policy check` shows what is allowed"),
                false,
            )
        }
        Some(PolicyVerdict::Allowed) if config.policy.is_present() => {
            let file = workspace.places.policy();
            (
                Check::ok(stage, format!("allowed by {}", file.display())),
                true,
            )
        }
        Some(PolicyVerdict::Allowed) => (Check::ok(stage, "there is none"), true),
    }
}

/// Whether the user approved it; servers that wait go no further.
pub(super) fn trust(name: &str, server: &Server) -> (Check, bool) {
    let stage = "trust";
    if matches!(server.state, State::Pending) {
        let message = pending(name, &server.winner);
        return (Check::warning(stage, message), false);
    }
    let message = if server.winner.scope.needs_trust() {
        "approved".to_owned()
    } else {
        format!("not needed for the {} scope", server.winner.scope)
    };
    let waiting: Vec<String> = server
        .others
        .iter()
        .filter(|(_, loss)| *loss == Loss::Pending)
        .map(|(other, _)| {
            let origin = &other.found.origin;
            format!("the entry at {origin} waits for approval and does not count")
        })
        .collect();
    if waiting.is_empty() {
        return (Check::ok(stage, message), true);
    }
    (Check::warning(stage, message).details(waiting), true)
}

/// Variables of our environment that the entry asks for.
pub(super) fn variables(server: &Server) -> Check {
    let stage = "variables";
    let entry = &server.winner.found.entry;
    let unset = unset(entry);
    if let State::Invalid(problems) = &server.state {
        let missing: Vec<&Problem> = problems
            .iter()
            .filter(|problem| is_about(problem, &unset))
            .collect();
        if !missing.is_empty() {
            let error = CliError::new(Code::InvalidConfig, not_set(&unset));
            return Check::failed(stage, with_problems(error, &missing));
        }
    }
    let is_set =
        |name: &&String| environment::text_variable(name).is_some_and(|value| !value.is_empty());
    // Without these the server cannot be contacted at all.
    let needed: BTreeSet<String> = entry
        .bearer_token_env_var
        .iter()
        .chain(entry.env_http_headers.values())
        .filter(|name| !is_set(name))
        .cloned()
        .collect();
    if !needed.is_empty() {
        let error = CliError::new(Code::SecretUnavailable, not_set(&needed));
        let hint = "set them before starting cocode, or keep the value with `cocode secret set` \
                    and write `headers.Authorization = \"Bearer ${keyring:NAME}\"`";
        return Check::failed(stage, error.hint(hint));
    }
    let wished: BTreeSet<String> = entry
        .env_vars
        .iter()
        .chain(&entry.oauth.client_secret_env)
        .chain(&entry.oauth.private_key_env)
        .chain(&entry.oauth.assertion_env)
        .chain(&entry.oauth.idp_client_secret_env)
        .filter(|name| environment::variable(name.as_ref()).is_none())
        .cloned()
        .collect();
    if !wished.is_empty() {
        return Check::warning(stage, not_set(&wished))
            .hint("the server starts without them; it may need them later");
    }
    let n_asked = texts(entry)
        .iter()
        .map(|text| variables_of(text).len())
        .sum::<usize>()
        + entry.env_vars.len()
        + entry.env_http_headers.len()
        + usize::from(entry.bearer_token_env_var.is_some());
    Check::ok(
        stage,
        match n_asked {
            0 => "none are needed",
            _ => "all that are needed are there",
        },
    )
}

fn not_set(names: &BTreeSet<String>) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [name] => format!("the variable {name} is not set"),
        names => format!("these variables are not set: {}", names.join(", ")),
    }
}

/// Whether a problem is nothing but one of these variables.
fn is_about(problem: &Problem, unset: &BTreeSet<String>) -> bool {
    unset
        .iter()
        .any(|name| problem.message == ExpandError::Unset(name.clone()).to_string())
}

/// The variables that an entry needs and that are not set.
fn unset(entry: &Entry) -> BTreeSet<String> {
    let all = texts(entry).into_iter().flat_map(variables_of);
    all.filter(|(name, has_default)| !has_default && environment::text_variable(name).is_none())
        .map(|(name, _)| name)
        .collect()
}

/// Every text of an entry that is expanded.
fn texts(entry: &Entry) -> Vec<&str> {
    let plain = [
        &entry.command,
        &entry.cwd,
        &entry.url,
        &entry.oauth.client_id,
        &entry.oauth.callback_url,
        &entry.oauth.resource,
        &entry.oauth.client_metadata_url,
        &entry.oauth.issuer,
        &entry.oauth.private_key_file,
        &entry.oauth.assertion_file,
        &entry.oauth.idp_issuer,
        &entry.oauth.idp_token_endpoint,
        &entry.oauth.idp_client_id,
    ];
    let plain = plain.into_iter().flatten().chain(&entry.args);
    let secret = entry.env.values().chain(entry.headers.values());
    plain
        .map(String::as_str)
        .chain(secret.map(|text| text.0.as_str()))
        .collect()
}
