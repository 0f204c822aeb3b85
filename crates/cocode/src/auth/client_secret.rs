//! The secret of a client that was registered beforehand: from a variable, from the store of secrets,
//! or typed unseen. Never from the command line, and never in a file of configuration.

use std::io::{IsTerminal as _, stdin};

use cocode_auth::oauth::{Site, Vault};
use cocode_auth::{Secret, SecretName};
use cocode_client::Url;

use crate::environment::text_variable;
use crate::error::{CliError, Code};
use crate::govern::secrets::unseen;
use crate::session::on_runtime;
use crate::stores;
use crate::workspace::Workspace;

/// The variable that other tools take the secret from as well.
pub(crate) const VARIABLE: &str = "MCP_CLIENT_SECRET";

/// Where the secret comes from that somebody says there is.
pub(crate) enum Given {
    /// It is in [`VARIABLE`].
    Variable(Secret),
    /// It was typed.
    Typed(Secret),
}

/// The secret that `--client-secret` speaks of.
pub(crate) fn given(workspace: &Workspace) -> Result<Given, CliError> {
    let filled = |value: &String| !value.trim().is_empty();
    if let Some(value) = text_variable(VARIABLE).filter(filled) {
        return Ok(Given::Variable(Secret::new(value.trim())));
    }
    if can_ask(workspace) {
        return typed("the client", workspace).map(Given::Typed);
    }
    let message = format!("`--client-secret` needs the variable `{VARIABLE}`, which is not set");
    Err(CliError::new(Code::InvalidUsage, message)
        .hint("at a terminal it is asked for")
        .hint("another variable is named by `client_secret_env` in [oauth] of the server, which `cocode mcp add --client-secret-env NAME` writes"))
}

/// The secret to sign in with, besides what the library finds by itself. It is asked for if the
/// configuration says that there is one, and it is nowhere.
pub(super) fn for_login(site: &Site, workspace: &Workspace) -> Result<Option<Secret>, CliError> {
    let oauth = &site.sign_in().oauth;
    let Some(id) = &oauth.client_id else {
        return Ok(None);
    };
    let kept = on_runtime(workspace, kept(site, workspace))?;
    let is_missing = kept.is_none() && oauth.client_secret_env.is_some() && !is_in_variable(site);
    if is_missing && can_ask(workspace) {
        return typed(&format!("client `{id}`"), workspace).map(Some);
    }
    Ok(kept)
}

/// Whether the library finds the secret by itself.
fn is_in_variable(site: &Site) -> bool {
    let variable = site.sign_in().oauth.client_secret_env.as_deref();
    let value = variable.and_then(text_variable);
    value.is_some_and(|value| !value.trim().is_empty())
}

/// Keeps a secret for the sign-in at this address, and says where.
pub(crate) fn keep(
    url: &Url,
    id: &str,
    secret: &Secret,
    workspace: &Workspace,
) -> Result<String, CliError> {
    let store = stores::secrets(workspace)?;
    let name = name(url, id)?;
    on_runtime(workspace, async {
        store.set(&name, secret).await.map_err(|error| {
            let message = "the secret of the client cannot be kept";
            CliError::new(Code::SecretUnavailable, message).because(&error)
        })?;
        let description = stores::told(&store.describe().await, workspace);
        Ok(format!("{description} (as `{name}`)"))
    })
}

/// What [`keep`] kept, or what an earlier sign-in of the same client left.
/// Nothing, if no client was registered beforehand, or its secret is in a variable.
pub(crate) async fn kept(site: &Site, workspace: &Workspace) -> Result<Option<Secret>, CliError> {
    let Some(id) = site.sign_in().oauth.client_id.as_deref() else {
        return Ok(None);
    };
    if is_in_variable(site) {
        return Ok(None);
    }
    let name = name(&site.sign_in().url, id)?;
    let secret = stores::secrets(workspace)?.get(&name).await;
    let secret = secret.map_err(|error| {
        let message = "the secret of the client cannot be looked up";
        CliError::new(Code::SecretUnavailable, message).because(&error)
    })?;
    if secret.is_some() {
        return Ok(secret);
    }
    // A record that cannot be read comes up when it is to be changed.
    let Ok(Some(record)) = site.vault().read(&site.sign_in().http_url()).await else {
        return Ok(None);
    };
    // Only what belongs to the authorization server in use: a secret is shown to no other.
    let client = site.usable(&record).map(|(_, grant)| &grant.client);
    let client = client.filter(|client| client.id == id);
    Ok(client.and_then(|client| client.secret.clone()))
}

/// A secret belongs to a client at an address, so that no other client and no other server of the same
/// name ever gets it.
fn name(url: &Url, id: &str) -> Result<SecretName, CliError> {
    let host = url.host_str().unwrap_or_default();
    let name = format!("client-secret:{host}:{}:{id}", Vault::id(url));
    name.parse().map_err(|error| {
        CliError::new(
            Code::InvalidTarget,
            "no secret can be kept for this address",
        )
        .because(&error)
    })
}

fn can_ask(workspace: &Workspace) -> bool {
    stdin().is_terminal() && workspace.printer.stderr_is_terminal()
}

fn typed(whose: &str, workspace: &Workspace) -> Result<Secret, CliError> {
    let text = unseen::line(&format!("Secret of {whose} (not shown): "), workspace)?;
    if text.trim().is_empty() {
        let message = "no secret was typed";
        return Err(CliError::new(Code::InvalidUsage, message));
    }
    Ok(Secret::new(text.trim()))
}
