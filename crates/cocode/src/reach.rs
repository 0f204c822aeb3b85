//! From a server's specification to a target: the one place where variables are passed on, secrets
//! are looked up, and headers are made, right before the server is contacted, each time anew.

mod sandboxed;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue};
use cocode_auth::{CommandSettings, Reference, References, SecretStore};
use cocode_client::{
    Answer, Connector, HttpSettings, ReachError, ReachErrorKind, Reached, StdioTarget, Target, Url,
    stdio,
};
use cocode_core::{Program, Reach, Remote, RemoteTransport, ServerSpec, Template, TemplatePart};
use cocode_process::confinement_support;

pub(crate) use self::sandboxed::refused_sandbox;

use crate::admission::{Admission, Admissions};
use crate::args::TargetArgs;
use crate::environment::Variables;
use crate::error::{CliError, Code};
use crate::itself;
use crate::printer::Printer;
use crate::sharing;
use crate::stores;
use crate::target::Server;
use crate::text::plain;
use crate::workspace::Workspace;

/// After how long a server is tried again that refused what a helper printed.
const HELPER_PAUSE: Duration = Duration::from_mins(1);

/// How long looking up all secrets of one server may take.
const SECRETS_LIMIT: Duration = Duration::from_mins(1);

/// Reaches servers that stand in files.
#[derive(Clone, Debug)]
pub(crate) struct Configured {
    store: SecretStore,
    admissions: Arc<Admissions>,
    variables: Variables,
    /// Where programs start that are told no directory.
    directory: Option<PathBuf>,
    /// Our own data and configuration, which servers in a sandbox are kept from.
    state: PathBuf,
    user: PathBuf,
    /// Everything else that decides as whom, and over which ways, servers are reached.
    ways: Vec<String>,
    printer: Arc<Printer>,
}

/// Reaches the one server that the command line gives.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) args: TargetArgs,
    pub(crate) http: HttpSettings,
    pub(crate) admissions: Arc<Admissions>,
    pub(crate) printer: Arc<Printer>,
}

impl Configured {
    pub(crate) fn new(workspace: &Workspace) -> Result<Self, CliError> {
        Ok(Self {
            store: stores::secrets(workspace)?,
            admissions: Arc::clone(workspace.admissions()?),
            variables: workspace.environment.variables.clone(),
            directory: workspace.places.directory.clone(),
            state: workspace.places.state.clone(),
            user: workspace.places.user.clone(),
            ways: sharing::ways(workspace)?,
            printer: Arc::clone(&workspace.printer),
        })
    }

    /// The headers that a server gets besides what lets us in.
    pub(crate) async fn headers(
        &self,
        spec: &ServerSpec,
        remote: &Remote,
    ) -> Result<HeaderMap, CliError> {
        let work = Work {
            spec,
            by: self,
            references: self.references(spec),
        };
        work.headers(remote).await
    }

    /// Reads what is stored for servers, without which it cannot be told as whom they are reached.
    pub(crate) async fn recall<'a>(&self, specs: impl IntoIterator<Item = &'a ServerSpec>) {
        self.admissions.recall(specs).await;
    }

    /// The same, but a store that asks its user something is not waited for any longer than this.
    pub(crate) async fn recall_within<'a>(
        &self,
        limit: Duration,
        specs: impl IntoIterator<Item = &'a ServerSpec>,
    ) {
        if tokio::time::timeout(limit, self.recall(specs))
            .await
            .is_err()
        {
            tracing::warn!("the store of credentials takes long");
        }
    }

    async fn target(&self, spec: &ServerSpec) -> Result<Reached, CliError> {
        let work = Work {
            spec,
            by: self,
            references: self.references(spec),
        };
        match &spec.reach {
            Reach::Program(program) => work.program(program).await,
            Reach::Remote(remote) => work.remote(remote).await,
        }
    }

    /// Commands run where the server starts: a script that they name is one beside the entry, not
    /// one that lies where the user happens to be.
    fn references(&self, spec: &ServerSpec) -> References {
        let mut commands = CommandSettings::new(self.variables.for_servers());
        let own = match &spec.reach {
            Reach::Program(program) => program.directory().map(Path::to_owned),
            Reach::Remote(remote) => remote.base.clone(),
        };
        commands.directory = own.or_else(|| self.directory.clone());
        References::new(self.store.clone(), commands)
    }
}

impl Connector for Configured {
    fn reach<'a>(&'a self, spec: &'a ServerSpec) -> Answer<'a, Result<Reached, ReachError>> {
        Box::pin(async move {
            let reached = tokio::time::timeout(SECRETS_LIMIT, self.target(spec)).await;
            let reached = reached.unwrap_or_else(|_elapsed| {
                let message = format!("the secrets of server `{}` took too long", spec.name);
                Err(CliError::new(Code::SecretUnavailable, message))
            });
            reached.map_err(for_manager)
        })
    }

    /// Secrets are not looked up for this, since that could ask the user something: who they belong
    /// to cannot be told.
    fn identity(&self, spec: &ServerSpec) -> Option<Vec<String>> {
        let (names, directory): (Vec<&String>, _) = match &spec.reach {
            Reach::Program(program) => {
                let directory = program.directory().map(Path::to_owned);
                let directory = directory.or_else(|| self.directory.clone());
                (program.env_vars.iter().collect(), directory)
            }
            Reach::Remote(remote) => {
                let headers = remote.env_headers.values();
                let names = headers.chain(remote.bearer_token_env_var.as_ref());
                (names.collect(), None)
            }
        };
        if has_references(spec) {
            return None;
        }
        let account = match self.admissions.of(spec) {
            None => None,
            Some(Admission::Helper(_)) => return None,
            // Nobody is no account.
            Some(Admission::OAuth(credentials)) => {
                Some(credentials.identity()?).filter(|account| !account.is_empty())
            }
        };
        let values = names.into_iter().map(|name| {
            let value = self.variables.get(name.as_ref());
            value.map_or_else(String::new, |value| value.to_string_lossy().into_owned())
        });
        let directory = directory.map(|directory| directory.display().to_string());
        Some(values.chain(directory).chain(account).collect())
    }

    fn sharing(&self, spec: &ServerSpec) -> Option<Vec<String>> {
        let directory = self.directory.as_deref();
        Some(sharing::key(spec, &self.variables, directory, &self.ways))
    }

    fn admitted<'a>(&'a self, spec: &'a ServerSpec) -> Answer<'a, ()> {
        Box::pin(async move {
            match self.admissions.of(spec) {
                Some(Admission::OAuth(credentials)) => credentials.changed().await,
                // What a helper prints can change without anybody telling us.
                Some(Admission::Helper(_)) => tokio::time::sleep(HELPER_PAUSE).await,
                None => std::future::pending().await,
            }
        })
    }
}

/// Whether something of the server is known only when it is contacted.
fn has_references(spec: &ServerSpec) -> bool {
    let refers = |template: &Template| template.as_literal().is_none();
    match &spec.reach {
        Reach::Program(program) => program.env.values().any(refers),
        Reach::Remote(remote) => {
            remote.headers_helper.is_some() || remote.headers.values().any(refers)
        }
    }
}

impl Connector for Given {
    fn reach<'a>(&'a self, _spec: &'a ServerSpec) -> Answer<'a, Result<Reached, ReachError>> {
        Box::pin(async move {
            let server = Server::of(&self.args, &self.http, &self.printer);
            let reached = server.map(|server| {
                let admission = self.address().and_then(|url| self.admissions.at(&url));
                Reached {
                    target: with_admission(server.target, admission.as_ref()),
                    sse_fallback: server.sse_fallback,
                }
            });
            reached.map_err(for_manager)
        })
    }
}

impl Given {
    /// The address of the server, if somebody could sign in there.
    fn address(&self) -> Option<Url> {
        let after_dashes = self.args.command.first().and_then(|word| word.to_str());
        let word = self.args.url.as_deref().or(after_dashes)?;
        let url = Url::parse(word).ok();
        url.filter(|_| !sends_authorization(&self.args))
    }
}

/// Whether the command line gives the header that would let us in.
pub(crate) fn sends_authorization(args: &TargetArgs) -> bool {
    args.header.iter().any(|header| {
        let name = header.split(':').next().unwrap_or_default();
        name.trim().eq_ignore_ascii_case("authorization")
    })
}

fn with_admission(target: Target, admission: Option<&Admission>) -> Target {
    match admission {
        Some(admission) => cocode_client::with_credentials(target, admission.credentials()),
        None => target,
    }
}

/// The error as the manager knows it; [`trouble`](crate::trouble) makes it ours again.
pub(crate) fn for_manager(error: CliError) -> ReachError {
    let CliError {
        code,
        message,
        causes,
        hints,
        ..
    } = error;
    ReachError {
        // A store or command that failed may work at the next attempt. Without such a cause, a variable is not set or
        // a value cannot be used, which stays so.
        kind: if code == Code::SecretUnavailable.as_str() && !causes.is_empty() {
            ReachErrorKind::Temporary
        } else {
            ReachErrorKind::Unusable
        },
        code,
        message,
        causes,
        hints,
    }
}

struct Work<'a> {
    spec: &'a ServerSpec,
    by: &'a Configured,
    references: References,
}

impl Work<'_> {
    async fn program(&self, program: &Program) -> Result<Reached, CliError> {
        let Program {
            command: _,
            args,
            env,
            env_vars,
            cwd: _,
            base: _,
            beside: _,
        } = program;
        let cwd = program.directory().or(self.by.directory.as_deref());
        if let Some(error) = refused_sandbox(self.spec, confinement_support()) {
            return Err(error);
        }
        let mut variables = self.by.variables.for_servers();
        let mut set = |name: OsString, value: OsString| {
            variables.retain(|(other, _)| *other != name);
            variables.push((name, value));
        };
        for name in env_vars {
            if let Some(value) = self.by.variables.get(name.as_ref()) {
                set(name.into(), value);
            }
        }
        for (name, template) in env {
            let value = self.text(template, &format!("env.{name}")).await?;
            set(name.into(), value.into());
        }
        set(itself::VARIABLE.into(), self.spec.name.as_str().into());
        let mut target = stdio(program.path(), args, variables);
        if let Target::Stdio(StdioTarget { process, .. }) = &mut target {
            process.cwd = cwd.map(Path::to_owned);
            let sets_temporary = env.contains_key("TMPDIR");
            sandboxed::confine(process, self.spec, self.by, sets_temporary).map_err(|error| {
                let message = format!("server `{}` cannot run in a sandbox", self.spec.name);
                CliError::new(Code::InvalidConfig, message).because(&error)
            })?;
            if self.by.printer.verbose() {
                let printer = Arc::clone(&self.by.printer);
                process.stderr_tap = Some(Arc::new(move |line: &str| {
                    printer.err_line(&format!("server: {}", plain(line)));
                }));
            }
        }
        Ok(Reached {
            target,
            sse_fallback: false,
        })
    }

    async fn remote(&self, remote: &Remote) -> Result<Reached, CliError> {
        let bad = |message: &str| {
            let message = format!("server `{}`: {message}", self.spec.name);
            CliError::new(Code::InvalidTarget, message)
        };
        let url = Url::parse(&remote.url).map_err(|_bad| bad("its `url` is no URL"))?;
        let made_headers = self.headers(remote).await?;
        // What an earlier attempt has left in a pool may be dead.
        let client = self.by.admissions.http().with_own_connections();
        let target = cocode_client::remote(remote.transport, url, made_headers, client)
            .map_err(|error| bad(&error.to_string()))?;
        Ok(Reached {
            target: with_admission(target, self.by.admissions.of(self.spec).as_ref()),
            sse_fallback: remote.transport == RemoteTransport::HttpWithFallback,
        })
    }

    async fn headers(&self, remote: &Remote) -> Result<HeaderMap, CliError> {
        let Remote {
            transport: _,
            url: _,
            headers,
            env_headers,
            bearer_token_env_var,
            // What it prints is shown by the links themselves, which know when it is refused.
            headers_helper: _,
            oauth: _,
            base: _,
        } = remote;
        let mut made = HeaderMap::new();
        for (name, template) in headers {
            let key = format!("headers.{name}");
            let value = self.text(template, &key).await?;
            self.header(&mut made, name, &value, &key)?;
        }
        for (name, variable) in env_headers {
            let key = format!("env_http_headers.{name}");
            let value = self.variable(variable, &key)?;
            self.header(&mut made, name, &value, &key)?;
        }
        if let Some(variable) = bearer_token_env_var {
            let key = "bearer_token_env_var";
            let token = self.variable(variable, key)?;
            let value = format!("Bearer {}", token.trim());
            self.header(&mut made, "authorization", &value, key)?;
        }
        Ok(made)
    }

    fn header(
        &self,
        headers: &mut HeaderMap,
        name: &str,
        value: &str,
        key: &str,
    ) -> Result<(), CliError> {
        let bad = || {
            self.unavailable(&format!(
                "the value of `{key}` has characters that no header can have"
            ))
        };
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_bad| bad())?;
        let mut value = HeaderValue::from_str(value.trim()).map_err(|_bad| bad())?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(())
    }

    fn variable(&self, name: &str, key: &str) -> Result<String, CliError> {
        let value = self
            .by
            .variables
            .text(name)
            .filter(|value| !value.is_empty());
        value.ok_or_else(|| {
            self.unavailable(&format!(
                "the variable `{name}`, named by `{key}`, is not set"
            ))
        })
    }

    async fn text(&self, template: &Template, key: &str) -> Result<String, CliError> {
        let mut text = String::new();
        for part in &template.parts {
            match part {
                TemplatePart::Literal(literal) => text.push_str(literal),
                TemplatePart::Keyring(name) => {
                    let name = name.parse().map_err(|error| {
                        let message = format!("`{key}` refers to no secret that can be kept");
                        self.unavailable(&message).because(&error)
                    })?;
                    text.push_str(&self.resolve(&Reference::Keyring(name), key).await?);
                }
                TemplatePart::Command(line) => {
                    let reference = Reference::Command(line.clone());
                    text.push_str(&self.resolve(&reference, key).await?);
                }
            }
        }
        Ok(text)
    }

    async fn resolve(&self, reference: &Reference, key: &str) -> Result<String, CliError> {
        let secret = self.references.resolve(reference).await;
        let secret = secret.map_err(|error| {
            let message = format!("the value of `{key}` could not be looked up");
            self.unavailable(&message).because(&error)
        })?;
        Ok(secret.expose().to_owned())
    }

    fn unavailable(&self, message: &str) -> CliError {
        let message = format!("server `{}`: {message}", self.spec.name);
        CliError::new(Code::SecretUnavailable, message).hint(format!(
            "`cocode mcp explain {}` shows the file",
            self.spec.name
        ))
    }
}
