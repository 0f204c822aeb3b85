//! The gateway that is looked after: the user's own, found at its socket, or one elsewhere, at its
//! address and with a token.

use cocode_admin::model::SharedServers;
use cocode_wire::Url;
use http::StatusCode;
use serde::de::DeserializeOwned;

use super::ANSWER_WITHIN;
use crate::api_client::{ApiClient, ApiError, ApiEvents};
use crate::args::operate::{TOKEN_VARIABLE, WhomArgs, address as same_gateway};
use crate::daemon::{Asking, Place, ask_all};
use crate::error::{CliError, Code, Exit};
use crate::gateway::listen::is_reached_by_others;
use crate::workspace::Workspace;

/// A gateway that answers.
#[derive(Debug)]
pub(super) enum Contact {
    Here(Asking),
    There { api: ApiClient, url: String },
}

impl Contact {
    pub(super) async fn find(whom: &WhomArgs, workspace: &Workspace) -> Result<Self, CliError> {
        let Some(url) = &whom.url else {
            return Self::here(workspace).await;
        };
        let is_set = |name| workspace.environment.variables.text(name).is_some();
        if whom.token_env.is_none() && !is_set(TOKEN_VARIABLE) {
            let mut gateways = own_gateways(workspace).await.gateways.into_iter();
            let is_meant = |(_, own): &(Asking, String)| same_gateway(own).as_ref() == Ok(url);
            if let Some((asking, _)) = gateways.find(is_meant) {
                return Ok(Self::Here(asking));
            }
        }
        Self::there(url, whom, workspace)
    }

    async fn here(workspace: &Workspace) -> Result<Self, CliError> {
        let OwnGateways {
            mut gateways,
            daemon,
            errors,
        } = own_gateways(workspace).await;
        // One that cannot be asked may be the one that is meant.
        if let Some(error) = errors.into_iter().next() {
            return Err(error);
        }
        match (gateways.pop(), daemon) {
            (Some((asking, _)), _) if gateways.is_empty() => Ok(Self::Here(asking)),
            (Some((_, last)), _) => {
                let urls = gateways.iter().map(|(_, url)| url).chain([&last]);
                let urls: Vec<&str> = urls.map(String::as_str).collect();
                let message = format!(
                    "{} gateways of yours run here: {}",
                    urls.len(),
                    urls.join(", ")
                );
                Err(CliError::new(Code::InvalidUsage, message)
                    .hint("`--url URL` chooses one of them"))
            }
            (None, Some(pid)) => Err(none(format!(
                "no gateway of yours runs here, only the daemon behind `cocode mcp serve` (process {pid})"
            ))),
            (None, None) => Err(none("no gateway of yours runs here")),
        }
    }

    fn there(url: &Url, whom: &WhomArgs, workspace: &Workspace) -> Result<Self, CliError> {
        let name = whom.token_env.as_deref().unwrap_or(TOKEN_VARIABLE);
        let token = workspace.environment.variables.text(name);
        if token.is_none() && whom.token_env.is_some() {
            let message = format!("the variable `{name}` is not set, or is no text");
            return Err(CliError::new(Code::InvalidUsage, message)
                .hint("it is to hold the token of an administrator of that gateway"));
        }
        let in_the_clear = url.scheme() == "http"
            && url.socket_addrs(|| None).map_or(true, |addresses| {
                addresses.into_iter().any(is_reached_by_others)
            });
        if in_the_clear && token.is_some() {
            workspace.printer.warn(&format!(
                "{url} is no https: whoever is on the way can read the token"
            ));
        }
        let settings = workspace.environment.http.clone();
        let token = token.as_deref().map(str::trim);
        let api = ApiClient::at_url(url.clone(), token, settings).map_err(|_bad| {
            let message = format!("the variable `{name}` holds nothing that can be a token");
            CliError::new(Code::InvalidUsage, message)
        })?;
        let url = url.to_string();
        Ok(Self::There { api, url })
    }

    /// Its socket, if it is one of this user.
    pub(super) fn place(&self) -> Option<&Place> {
        match self {
            Self::Here(asking) => Some(asking.place()),
            Self::There { .. } => None,
        }
    }

    /// Where it is, if that is elsewhere.
    pub(super) fn elsewhere(&self) -> Option<&str> {
        match self {
            Self::Here(_) => None,
            Self::There { url, .. } => Some(url),
        }
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, CliError> {
        match self {
            Self::Here(asking) => asking.get(path).await,
            Self::There { api, url } => {
                let answer = api.get(path, ANSWER_WITHIN).await;
                answer.map_err(|error| failed(url, &error))
            }
        }
    }

    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        path: &[&str],
        limit: u64,
    ) -> Result<T, CliError> {
        match self {
            Self::Here(asking) => asking.list(path, limit).await,
            Self::There { api, url } => {
                let answer = api.list(path, limit, ANSWER_WITHIN).await;
                answer.map_err(|error| failed(url, &error))
            }
        }
    }

    pub(super) async fn post<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, CliError> {
        match self {
            Self::Here(asking) => asking.post(path, ANSWER_WITHIN).await,
            Self::There { api, url } => {
                let answer = api.post(path, ANSWER_WITHIN).await;
                answer.map_err(|error| failed(url, &error))
            }
        }
    }

    pub(super) async fn events(&self) -> Result<ApiEvents, CliError> {
        match self {
            Self::Here(asking) => asking.events().await,
            Self::There { api, url } => {
                let events = api.events(ANSWER_WITHIN).await;
                events.map_err(|error| failed(url, &error))
            }
        }
    }
}

/// Processes of this user that listen at a control socket.
pub(crate) struct OwnGateways {
    /// Gateways, with their addresses.
    pub(crate) gateways: Vec<(Asking, String)>,
    /// The process of the daemon, if it is none of them.
    daemon: Option<u32>,
    /// Why others cannot be asked.
    pub(crate) errors: Vec<CliError>,
}

/// Finds the gateways of this user.
pub(crate) async fn own_gateways(workspace: &Workspace) -> OwnGateways {
    let (running, mut errors) = ask_all(workspace).await;
    let (mut gateways, mut daemon) = (Vec::new(), None);
    for asking in running {
        match asking.shared().await {
            Ok(SharedServers { url: Some(url), .. }) => gateways.push((asking, url)),
            Ok(SharedServers { pid, .. }) => daemon = Some(pid),
            Err(error) => errors.push(error),
        }
    }
    OwnGateways {
        gateways,
        daemon,
        errors,
    }
}

/// There is nobody to look after.
fn none(message: impl Into<String>) -> CliError {
    CliError::new(Code::NoGateway, message)
        .hint("`cocode gateway` starts one")
        .hint(format!(
            "`--url URL` asks one elsewhere, with the token of an administrator in {TOKEN_VARIABLE}"
        ))
}

/// Why a gateway elsewhere does not do what it was asked.
fn failed(url: &str, error: &ApiError) -> CliError {
    match error {
        ApiError::Refused { status, problem } => {
            let message = format!("the gateway at {url} refuses: {}", problem.message);
            let told = CliError::new(Code::GatewayRefused, message);
            let (exit, hint) = match *status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    let how = "there, `cocode gateway token add NAME --admin` makes the token of an administrator";
                    let hint = format!(
                        "{how}; put it into {TOKEN_VARIABLE}, or name its variable with `--token-env`"
                    );
                    (Exit::Auth, vec![hint])
                }
                _ => (Exit::Server, problem.hints.clone()),
            };
            let told = hint.into_iter().fold(told, CliError::hint);
            CliError { exit, ..told }
        }
        ApiError::TimedOut { .. } => {
            let message = format!("the gateway at {url} does not answer");
            let told = CliError::new(Code::GatewayUnavailable, message).because(error);
            let exit = Exit::Timeout;
            CliError { exit, ..told }
        }
        ApiError::Stranger { .. } | ApiError::Answer(_) => {
            let message = format!("at {url} is no gateway, or one of another version");
            CliError::new(Code::GatewayUnavailable, message)
                .because(error)
                .hint("the address is that of the dashboard, which may be another than that of clients")
        }
        ApiError::Fetch(_) | ApiError::Question(_) => {
            let message = format!("the gateway at {url} cannot be reached");
            CliError::new(Code::GatewayUnavailable, message).because(error)
        }
    }
}
