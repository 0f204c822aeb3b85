//! From a specification to a target: the seam where a consumer decides about secrets, environment
//! and HTTP. [`PlainConnector`] is the one for those who have none of their own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use cocode_core::{Program, Reach, Remote, RemoteTransport, ServerSpec, Template};
use cocode_wire::{HttpClient, StdioTarget, Target, baseline_environment};
use http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use crate::handler::Answer;
use crate::target::{self, stdio};

/// Makes targets of specifications, right before a server is started or contacted.
pub trait Connector: Send + Sync + 'static {
    /// Called for every attempt to connect, so that secrets are as new as they can be.
    fn reach<'a>(&'a self, spec: &'a ServerSpec) -> Answer<'a, Result<Reached, ReachError>>;

    /// As whom, and from where, the server is reached: everything besides the specification that
    /// may decide what it lists, such as the values of variables and the directory we are in. What
    /// one identity was shown is never remembered for another. Nothing if that cannot be told;
    /// then lists that a server calls private are not remembered at all.
    fn identity(&self, _spec: &ServerSpec) -> Option<Vec<String>> {
        None
    }

    /// Everything besides the specification that makes a connection another: who agrees on it may
    /// share one. Unlike the [identity](Self::identity) it may be told without knowing whose the
    /// secrets are, as long as they are looked up in the same places. Nothing if that cannot be
    /// told; then nothing is shared.
    fn sharing(&self, spec: &ServerSpec) -> Option<Vec<String>> {
        self.identity(spec)
    }

    /// Ends when a server that did not let us in at the last attempt may do so now, because
    /// somebody has signed in meanwhile. Asked only while that is awaited; dropped at any time.
    fn admitted<'a>(&'a self, _spec: &'a ServerSpec) -> Answer<'a, ()> {
        Box::pin(std::future::pending())
    }
}

/// Where a server is.
#[derive(Debug)]
pub struct Reached {
    /// How to get there.
    pub target: Target,
    /// Whether a server that does not speak streamable HTTP is tried with HTTP+SSE.
    pub sse_fallback: bool,
}

/// Why no target could be made.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", self.told())]
pub struct ReachError {
    /// What is missing.
    pub kind: ReachErrorKind,
    /// The stable name of this kind of error.
    pub code: &'static str,
    /// What happened.
    pub message: String,
    /// What led to it, nearest first.
    pub causes: Vec<String>,
    /// What to do about it.
    pub hints: Vec<String>,
}

/// What is missing to reach a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReachErrorKind {
    /// Something in its specification cannot be used.
    Unusable,
    /// Something that may be there at the next attempt, such as the answer of a keyring.
    Temporary,
    /// Its user has to sign in.
    NeedsAuth,
    /// Its user has to register a client first.
    NeedsClientRegistration,
}

impl ReachError {
    fn told(&self) -> String {
        let mut text = self.message.clone();
        for cause in &self.causes {
            text = format!("{text}: {cause}");
        }
        text
    }

    /// Something in the specification cannot be used.
    pub fn unusable(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind: ReachErrorKind::Unusable,
            code,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
        }
    }
}

/// A connector that knows an environment and nothing of secret stores: a specification that refers
/// to a keyring or to commands is refused.
#[derive(Clone, Debug, Default)]
pub struct PlainConnector {
    /// The variables that programs get besides those of their specification; see
    /// [`baseline_environment`](crate::baseline_environment). Variables that a specification passes
    /// on (`env_vars`, `bearer_token_env_var` and the like) are looked up in `variables`.
    pub environment: Vec<(OsString, OsString)>,
    /// What specifications may refer to.
    pub variables: BTreeMap<String, String>,
    /// How HTTP is spoken. All servers, and all clones, share its certificates.
    pub http: HttpClient,
}

impl Connector for PlainConnector {
    fn reach<'a>(&'a self, spec: &'a ServerSpec) -> Answer<'a, Result<Reached, ReachError>> {
        let reached = match &spec.reach {
            Reach::Program(program) => self.program(spec, program),
            Reach::Remote(remote) => self.remote(spec, remote),
        };
        Box::pin(std::future::ready(reached))
    }

    fn identity(&self, spec: &ServerSpec) -> Option<Vec<String>> {
        let (names, directory): (Vec<&String>, _) = match &spec.reach {
            Reach::Program(program) => {
                // A program that is told no directory starts where we are.
                let directory = match program.directory() {
                    Some(directory) => Some(directory.to_owned()),
                    None => std::env::current_dir().ok(),
                };
                (program.env_vars.iter().collect(), directory)
            }
            Reach::Remote(remote) => {
                let headers = remote.env_headers.values();
                let names = headers.chain(remote.bearer_token_env_var.as_ref());
                (names.collect(), None)
            }
        };
        let values = names
            .into_iter()
            .map(|name| self.variables.get(name).cloned().unwrap_or_default());
        let directory = directory.map(|directory| directory.display().to_string());
        Some(values.chain(directory).collect())
    }
}

impl PlainConnector {
    /// A connector that gives programs what is usual of this environment, and specifications
    /// whatever they refer to.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let all: Vec<_> = variables.into_iter().collect();
        let texts = all.iter().filter_map(|(name, value)| {
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        });
        Self {
            variables: texts.collect(),
            environment: baseline_environment(all),
            http: HttpClient::default(),
        }
    }

    fn program(&self, spec: &ServerSpec, program: &Program) -> Result<Reached, ReachError> {
        let mut environment = self.environment.clone();
        let mut set = |name: &str, value: &str| {
            environment.retain(|(other, _)| other != name);
            environment.push((name.into(), value.into()));
        };
        for name in &program.env_vars {
            if let Some(value) = self.variables.get(name) {
                set(name, value);
            }
        }
        for (name, template) in &program.env {
            set(name, &literal(spec, template, &format!("env.{name}"))?);
        }
        let mut target = stdio(program.path(), &program.args, environment);
        if let Target::Stdio(StdioTarget { process, .. }) = &mut target {
            process.cwd = program.directory().map(Path::to_owned);
            target::confine(process, spec.sandbox)
                .map_err(|error| unusable(spec, &format!("it cannot run in a sandbox: {error}")))?;
        }
        Ok(Reached {
            target,
            sse_fallback: false,
        })
    }

    fn remote(&self, spec: &ServerSpec, remote: &Remote) -> Result<Reached, ReachError> {
        let url = Url::parse(&remote.url).map_err(|_bad| unusable(spec, "its `url` is no URL"))?;
        let made = self.headers(spec, remote)?;
        // What an earlier attempt has left in a pool may be dead.
        let client = self.http.with_own_connections();
        let target = target::remote(remote.transport, url, made, client)
            .map_err(|error| unusable(spec, &error.to_string()))?;
        Ok(Reached {
            target,
            sse_fallback: remote.transport == RemoteTransport::HttpWithFallback,
        })
    }

    fn headers(&self, spec: &ServerSpec, remote: &Remote) -> Result<HeaderMap, ReachError> {
        let mut made = HeaderMap::new();
        for (name, template) in &remote.headers {
            let key = format!("headers.{name}");
            let value = literal(spec, template, &key)?;
            insert(spec, &mut made, name, &value)?;
        }
        for (name, variable) in &remote.env_headers {
            let value = self.variable(spec, variable)?;
            insert(spec, &mut made, name, value)?;
        }
        if let Some(variable) = &remote.bearer_token_env_var {
            let token = self.variable(spec, variable)?.trim();
            insert(spec, &mut made, "authorization", &format!("Bearer {token}"))?;
        }
        if remote.headers_helper.is_some() {
            return Err(unusable(
                spec,
                "`headers_helper` needs a connector that runs commands",
            ));
        }
        Ok(made)
    }

    fn variable(&self, spec: &ServerSpec, name: &str) -> Result<&str, ReachError> {
        let value = self.variables.get(name).map(String::as_str);
        value.ok_or_else(|| unusable(spec, &format!("the variable `{name}` is not set")))
    }
}

fn insert(
    spec: &ServerSpec,
    headers: &mut HeaderMap,
    name: &str,
    value: &str,
) -> Result<(), ReachError> {
    let bad = || unusable(spec, &format!("`{name}` or its value is no header"));
    let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_bad| bad())?;
    let mut value = HeaderValue::from_str(value).map_err(|_bad| bad())?;
    value.set_sensitive(true);
    headers.insert(header, value);
    Ok(())
}

fn literal(spec: &ServerSpec, template: &Template, key: &str) -> Result<String, ReachError> {
    template.as_literal().ok_or_else(|| {
        unusable(
            spec,
            &format!("`{key}` refers to a secret, which needs a connector that looks it up"),
        )
    })
}

fn unusable(spec: &ServerSpec, why: &str) -> ReachError {
    ReachError::unusable("invalid-target", format!("server `{}`: {why}", spec.name))
}
