//! What is known beforehand about being let in at one server, and where its secrets come from.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cocode_core::{Grant, OAuth};
use url::Url;

use super::key::{KeyError, SigningKey};
use crate::command::{self, CommandError, CommandSettings};
use crate::reference::Reference;
use crate::secret::Secret;

/// No key or assertion is longer.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// What is fixed about one server.
#[derive(Clone, Debug)]
pub struct SignIn {
    /// How messages call the server.
    pub server: String,
    /// Where it is.
    pub url: Url,
    /// What its user has decided.
    pub oauth: OAuth,
    /// Where secrets are looked up.
    pub sources: Sources,
}

/// Gives the value of a variable of the environment.
pub type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Where secrets are looked up, each time that they are needed.
#[derive(Clone)]
pub struct Sources {
    /// The variables of the environment.
    pub variable: Variables,
    /// How commands are run.
    pub commands: CommandSettings,
}

impl fmt::Debug for Sources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sources").finish_non_exhaustive()
    }
}

/// Why something that the configuration names cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The variable is not there.
    #[error("the variable `{name}`, named by `oauth.{key}`, is not set")]
    Variable {
        /// Which variable.
        name: String,
        /// Who names it.
        key: &'static str,
    },
    /// The file cannot be read.
    #[error("the file {}, named by `oauth.{key}`, cannot be read", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Who names it.
        key: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The command gave nothing.
    #[error("the command of `oauth.{key}` ({reference}) gave nothing")]
    Command {
        /// Which command; its first word is all that is shown.
        reference: Reference,
        /// Who names it.
        key: &'static str,
        /// Why.
        #[source]
        source: CommandError,
    },
    /// The key cannot be used.
    #[error("the private key of `oauth.{key}` cannot be used")]
    Key {
        /// Who names it.
        key: &'static str,
        /// Why.
        #[source]
        source: KeyError,
    },
    /// Nothing says where it comes from.
    #[error("`oauth.grant` needs `{needed}`, and it is not set")]
    Missing {
        /// What is missing.
        needed: &'static str,
    },
}

impl SourceError {
    /// Whether it may be there at the next attempt.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::File { .. } | Self::Command { .. })
    }
}

impl SignIn {
    /// The address by which tokens are asked for and kept. That of a WebSocket is the one that its
    /// handshake goes to.
    pub fn http_url(&self) -> Url {
        let scheme = match self.url.scheme() {
            "ws" => "http",
            "wss" => "https",
            _ => return self.url.clone(),
        };
        let mut url = self.url.clone();
        match url.set_scheme(scheme) {
            Ok(()) => url,
            Err(()) => self.url.clone(),
        }
    }

    /// The secret of the client that was registered beforehand, if it has one: what its variable
    /// holds now, or what an earlier sign-in at the same authorization server has kept.
    pub(super) fn client_secret(
        &self,
        kept: Option<&Secret>,
    ) -> Result<Option<Secret>, SourceError> {
        let name = self.oauth.client_secret_env.as_deref();
        let found = name
            .map(|name| self.variable(name, "client_secret_env"))
            .transpose();
        match (found, kept) {
            (Ok(Some(secret)), _) => Ok(Some(secret)),
            // A program uses what its variable says now, or nothing.
            (found @ Err(_), _) if self.oauth.grant != Grant::AuthorizationCode => found,
            (_, Some(kept)) => Ok(Some(kept.clone())),
            (found, None) => found,
        }
    }

    /// The secret of the client at the identity provider, if it has one.
    pub(super) fn idp_client_secret(&self) -> Result<Option<Secret>, SourceError> {
        let name = self.oauth.idp_client_secret_env.as_deref();
        name.map(|name| self.variable(name, "idp_client_secret_env"))
            .transpose()
    }

    /// The key of the client that was registered beforehand, if it has one.
    pub(super) async fn signing_key(&self) -> Result<Option<SigningKey>, SourceError> {
        let (pem, key) = if let Some(path) = &self.oauth.private_key_file {
            let key = "private_key_file";
            (read(path, key).await?, key)
        } else if let Some(name) = &self.oauth.private_key_env {
            let key = "private_key_env";
            (self.variable(name, key)?, key)
        } else {
            return Ok(None);
        };
        let algorithm = self.oauth.signing_algorithm.as_deref();
        let unusable = |source| SourceError::Key { key, source };
        let algorithm = algorithm.map(str::parse).transpose().map_err(unusable)?;
        let made = SigningKey::from_pem(&pem, algorithm);
        made.map(Some).map_err(unusable)
    }

    /// The token that somebody signed for us.
    pub(super) async fn assertion(&self) -> Result<Secret, SourceError> {
        let OAuth {
            assertion_env,
            assertion_file,
            assertion_command,
            ..
        } = &self.oauth;
        if let Some(name) = assertion_env {
            return self.variable(name, "assertion_env");
        }
        if let Some(path) = assertion_file {
            return read(path, "assertion_file").await;
        }
        let key = "assertion_command";
        let Some(line) = assertion_command else {
            let needed = "oauth.assertion_env, assertion_file or assertion_command";
            return Err(SourceError::Missing { needed });
        };
        let printed = command::run(line, &self.sources.commands).await;
        printed.map_err(|source| SourceError::Command {
            reference: Reference::Command(line.clone()),
            key,
            source,
        })
    }

    fn variable(&self, name: &str, key: &'static str) -> Result<Secret, SourceError> {
        let value = (self.sources.variable)(name).filter(|value| !value.trim().is_empty());
        let value = value.ok_or_else(|| SourceError::Variable {
            name: name.to_owned(),
            key,
        })?;
        Ok(Secret::new(value.trim()))
    }
}

async fn read(path: &Path, key: &'static str) -> Result<Secret, SourceError> {
    let owned = path.to_owned();
    let text = tokio::task::spawn_blocking(move || read_now(&owned)).await;
    let failed = |source| SourceError::File {
        path: path.to_owned(),
        key,
        source,
    };
    text.map_err(|error| failed(error.into()))?.map_err(failed)
}

fn read_now(path: &Path) -> std::io::Result<Secret> {
    use std::io::Read as _;

    let mut text = zeroize::Zeroizing::new(String::new());
    let file = std::fs::File::open(path)?;
    file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
    if text.trim().is_empty() {
        return Err(std::io::Error::other("it is empty"));
    }
    Ok(Secret::new(text.trim()))
}
