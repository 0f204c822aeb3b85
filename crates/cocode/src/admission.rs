//! What lets us in at remote servers: decided by their specification, one for each server, and kept
//! for the whole command, so that what is known of tokens outlives a connection.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cocode_auth::oauth::{OAuthCredentials, SignIn, Site, Sources, Vault};
use cocode_auth::{CommandSettings, HeadersHelper};
use cocode_client::{Credentials, HttpClient, Url};
use cocode_core::{OAuth, Reach, Remote, ServerSpec};
use futures_util::future::join_all;

use crate::environment::Variables;
use crate::error::CliError;
use crate::stores;
use crate::target::shown;
use crate::workspace::Workspace;

/// All that let us in, by the servers that they belong to.
pub(crate) struct Admissions {
    http: HttpClient,
    vault: Vault,
    variables: Variables,
    /// Where commands run that are told no directory.
    directory: Option<PathBuf>,
    defaults: Defaults,
    held: Mutex<BTreeMap<String, Held>>,
}

/// What holds where a server does not say otherwise.
#[derive(Clone, Debug, Default)]
struct Defaults {
    client_metadata_url: Option<String>,
    callback_port: Option<u16>,
}

struct Held {
    /// What it was made of. If that is another now, so is who is let in.
    remote: Remote,
    admission: Admission,
}

/// What lets us in at one server, besides headers that never change.
#[derive(Clone, Debug)]
pub(crate) enum Admission {
    /// What a command of the user prints.
    Helper(HeadersHelper),
    /// What signing in brings.
    OAuth(OAuthCredentials),
}

/// How a server is to let us in, by its specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way<'a> {
    /// By a header that this key of its file gives.
    Fixed(String),
    /// By what this command prints.
    Helper(&'a str),
    /// By signing in, should it want that, at this address.
    OAuth(Url),
    /// By nothing that we could show.
    Nothing,
}

impl<'a> Way<'a> {
    pub(crate) fn of(remote: &'a Remote) -> Self {
        if let Some(line) = &remote.headers_helper {
            return Self::Helper(line);
        }
        let is_authorization = |name: &&String| name.eq_ignore_ascii_case("authorization");
        if remote.bearer_token_env_var.is_some() {
            return Self::Fixed("bearer_token_env_var".to_owned());
        }
        if let Some(name) = remote.headers.keys().find(is_authorization) {
            return Self::Fixed(format!("headers.{name}"));
        }
        if let Some(name) = remote.env_headers.keys().find(is_authorization) {
            return Self::Fixed(format!("env_http_headers.{name}"));
        }
        match Url::parse(&remote.url) {
            Ok(url) if matches!(url.scheme(), "http" | "https" | "ws" | "wss") => Self::OAuth(url),
            _ => Self::Nothing,
        }
    }
}

impl Admission {
    /// As links want it.
    pub(crate) fn credentials(&self) -> Arc<dyn Credentials> {
        match self {
            Self::Helper(helper) => Arc::new(helper.clone()),
            Self::OAuth(credentials) => Arc::new(credentials.clone()),
        }
    }
}

impl Admissions {
    pub(crate) fn new(workspace: &Workspace) -> Result<Self, CliError> {
        let settings = &workspace.config()?.settings.oauth;
        let metadata_url = settings.client_metadata_url.as_ref();
        let callback_port = settings.callback_port.as_ref();
        Ok(Self {
            http: HttpClient::new(workspace.environment.http.clone()),
            vault: stores::credentials(workspace)?,
            variables: workspace.environment.variables.clone(),
            directory: workspace.places.directory.clone(),
            defaults: Defaults {
                client_metadata_url: metadata_url.map(|setting| setting.value.clone()),
                callback_port: callback_port.map(|setting| setting.value),
            },
            held: Mutex::default(),
        })
    }

    /// How HTTP is spoken. Whoever uses it shares certificates.
    pub(crate) fn http(&self) -> &HttpClient {
        &self.http
    }

    /// Where credentials are kept.
    pub(crate) fn vault(&self) -> &Vault {
        &self.vault
    }

    /// What lets us in at a server; nothing, if all that it wants is said already.
    pub(crate) fn of(&self, spec: &ServerSpec) -> Option<Admission> {
        let Reach::Remote(remote) = &spec.reach else {
            return None;
        };
        self.found(spec.name.as_str(), remote)
    }

    /// What lets us in at an address that stands in no file.
    pub(crate) fn at(&self, url: &Url) -> Option<Admission> {
        self.found(&shown(url), &unlisted(url))
    }

    fn found(&self, name: &str, remote: &Remote) -> Option<Admission> {
        let mut all = self.held();
        if let Some(held) = all.get(name)
            && held.remote == *remote
        {
            return Some(held.admission.clone());
        }
        let admission = match Way::of(remote) {
            Way::Fixed(_) | Way::Nothing => return None,
            Way::Helper(line) => {
                let commands = self.commands(remote);
                Admission::Helper(HeadersHelper::new(name.into(), line.into(), commands))
            }
            Way::OAuth(url) => {
                let site = self.site(name, url, remote.oauth.clone(), remote);
                Admission::OAuth(OAuthCredentials::new(site, None))
            }
        };
        let held = Held {
            remote: remote.clone(),
            admission: admission.clone(),
        };
        all.insert(name.to_owned(), held);
        Some(admission)
    }

    /// A server to sign in at, with what the user has decided.
    pub(crate) fn site(&self, name: &str, url: Url, mut oauth: OAuth, remote: &Remote) -> Site {
        let Defaults {
            client_metadata_url,
            callback_port,
        } = &self.defaults;
        if oauth.client_metadata_url.is_none() {
            oauth.client_metadata_url.clone_from(client_metadata_url);
        }
        if oauth.callback_url.is_none() && oauth.callback_port.is_none() {
            oauth.callback_port = *callback_port;
        }
        let variables = self.variables.clone();
        let sign_in = SignIn {
            server: name.to_owned(),
            url,
            oauth,
            sources: Sources {
                variable: Arc::new(move |name: &str| variables.text(name)),
                commands: self.commands(remote),
            },
        };
        let own_client = remote.oauth.client_id.clone();
        Site::new(sign_in, self.http.clone(), self.vault.clone()).for_entry(own_client)
    }

    /// Reads what is stored for these servers, so that it is known who is signed in.
    pub(crate) async fn recall<'a>(&self, specs: impl IntoIterator<Item = &'a ServerSpec>) {
        let recalled = specs.into_iter().filter_map(|spec| match self.of(spec)? {
            Admission::OAuth(credentials) => Some(async move { credentials.recall().await }),
            Admission::Helper(_) => None,
        });
        join_all(recalled).await;
    }

    /// Forgets what is known of a server besides what is stored: whoever connects to it anew has what is
    /// there then. Whether anything was known.
    pub(crate) fn forget(&self, server: &str) -> bool {
        let known = self.held().remove(server);
        known.is_some()
    }

    /// Waits until tokens that are being renewed are stored.
    pub(crate) async fn settle(&self) {
        let all: Vec<Admission> = {
            let held = self.held();
            held.values().map(|held| held.admission.clone()).collect()
        };
        for admission in all {
            if let Admission::OAuth(credentials) = admission {
                credentials.settle().await;
            }
        }
        self.vault.settle().await;
    }

    /// Commands of a server run where its other commands do.
    fn commands(&self, remote: &Remote) -> CommandSettings {
        let mut commands = CommandSettings::new(self.variables.for_servers());
        let own = remote.base.clone();
        commands.directory = own.or_else(|| self.directory.clone());
        commands
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Admissions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Admissions").finish_non_exhaustive()
    }
}

/// An address and nothing else.
pub(crate) fn unlisted(url: &Url) -> Remote {
    Remote {
        transport: cocode_core::RemoteTransport::HttpWithFallback,
        url: url.to_string(),
        headers: BTreeMap::new(),
        env_headers: BTreeMap::new(),
        bearer_token_env_var: None,
        headers_helper: None,
        oauth: OAuth::default(),
        base: None,
    }
}

#[cfg(test)]
mod tests {
    use cocode_core::{Remote, Template};

    use super::{Way, unlisted};

    fn remote(url: &str) -> Remote {
        unlisted(&url.parse().unwrap())
    }

    type Change = fn(&mut Remote);

    #[test]
    fn who_sends_a_token_of_their_own_does_not_sign_in() {
        let plain = remote("https://a.example/mcp");
        let way = |change: Change| {
            let mut remote = plain.clone();
            change(&mut remote);
            match Way::of(&remote) {
                Way::Fixed(key) => key,
                Way::Helper(line) => format!("by `{line}`"),
                Way::OAuth(url) => url.to_string(),
                Way::Nothing => "nothing".to_owned(),
            }
        };
        let table: [(Change, &str); 7] = [
            (|_| {}, "https://a.example/mcp"),
            (
                |remote| remote.bearer_token_env_var = Some("T".into()),
                "bearer_token_env_var",
            ),
            (
                |remote| {
                    let name = "AUTHORIZATION".to_owned();
                    remote.headers.insert(name, Template::default());
                },
                "headers.AUTHORIZATION",
            ),
            (
                |remote| {
                    let name = "authorization".to_owned();
                    remote.env_headers.insert(name, "T".into());
                },
                "env_http_headers.authorization",
            ),
            (
                |remote| {
                    let name = "X-Api-Key".to_owned();
                    remote.headers.insert(name, Template::default());
                },
                "https://a.example/mcp",
            ),
            (
                |remote| {
                    remote.headers_helper = Some("print".into());
                    remote.bearer_token_env_var = Some("T".into());
                },
                "by `print`",
            ),
            (|remote| remote.url = "unix:///run/a".into(), "nothing"),
        ];
        for (change, expected) in table {
            assert_eq!(way(change), expected);
        }
    }
}
