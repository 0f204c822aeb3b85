//! What it takes to reach one server, complete and valid. Configuration makes these; whoever
//! connects uses them.

mod identity;
mod oauth;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use oauth::{Dpop, Grant, OAuth, Registration, SIGNING_ALGORITHMS};

use crate::names::ServerName;
use crate::protocol::Protocol;
use crate::wildcard::Wildcard;

/// How long nobody minds waiting for a server to be there.
pub const DEFAULT_STARTUP_TIMEOUT: Duration = Duration::from_secs(10);
/// When an attempt to connect ends; long enough for a first download by `npx` or `uvx`.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a tool may be silent.
pub const DEFAULT_TOOL_TIMEOUT: Duration = Duration::from_mins(1);

/// One server, as it is to be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSpec {
    /// What it is called.
    pub name: ServerName,
    /// Where it is.
    pub reach: Reach,
    /// Whether a start without it is a failure.
    pub required: bool,
    /// After this nobody waits for it any more.
    pub startup_timeout: Duration,
    /// After this the attempt to connect ends.
    pub connect_timeout: Duration,
    /// How long a tool may be silent.
    pub tool_timeout: Duration,
    /// How long single tools may be silent: by name, or by a pattern in which `*` matches any text.
    pub tool_timeouts: BTreeMap<String, Duration>,
    /// Total timeout of a call, also with progress; defaults to that of the manager.
    pub tool_total_timeout: Option<Duration>,
    /// Which of its tools count.
    pub tools: ToolFilter,
    /// What to speak.
    pub protocol: Protocol,
    /// Whether sessions may share one connection.
    pub isolation: Isolation,
    /// Whether its tools are always shown to models, whatever tool search decides.
    pub always_load: bool,
    /// Whether its `readOnlyHint` counts also after data outside of a workspace was read.
    pub trust_annotations: bool,
    /// How long it may idle before it is stopped; forever if not given.
    pub idle_stop: Option<Duration>,
    /// What it may touch.
    pub sandbox: Sandbox,
    /// What it is for, in the user's words.
    pub description: Option<String>,
}

impl ServerSpec {
    /// A program, with everything else as it is where nobody says otherwise.
    ///
    /// ```
    /// use cocode_core::{DEFAULT_TOOL_TIMEOUT, ServerSpec};
    ///
    /// let spec = ServerSpec::program("files".parse()?, "mcp-files", ["--root", "."]);
    /// assert_eq!(spec.timeout_of("read"), DEFAULT_TOOL_TIMEOUT);
    /// # Ok::<(), cocode_core::InvalidServerName>(())
    /// ```
    pub fn program<A: Into<String>>(
        name: ServerName,
        command: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let program = Program {
            command: command.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            env_vars: Vec::new(),
            cwd: None,
            base: None,
            beside: None,
        };
        Self::new(name, Reach::Program(program))
    }

    /// An address, with everything else as it is where nobody says otherwise. How to talk to it
    /// follows from its scheme: a WebSocket for `ws` and `wss`, a unix socket for `unix`, else
    /// streamable HTTP with a fallback to HTTP+SSE.
    pub fn remote(name: ServerName, url: impl Into<String>) -> Self {
        let url = url.into();
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        let transport = match scheme.to_ascii_lowercase().as_str() {
            "ws" | "wss" => RemoteTransport::WebSocket,
            "unix" => RemoteTransport::Unix,
            _ => RemoteTransport::HttpWithFallback,
        };
        let remote = Remote {
            transport,
            url,
            headers: BTreeMap::new(),
            env_headers: BTreeMap::new(),
            bearer_token_env_var: None,
            headers_helper: None,
            oauth: OAuth::default(),
            base: None,
        };
        Self::new(name, Reach::Remote(Box::new(remote)))
    }

    /// A server that is reached so, with everything else as it is where nobody says otherwise.
    pub fn new(name: ServerName, reach: Reach) -> Self {
        Self {
            name,
            reach,
            required: false,
            startup_timeout: DEFAULT_STARTUP_TIMEOUT,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            tool_timeout: DEFAULT_TOOL_TIMEOUT,
            tool_timeouts: BTreeMap::new(),
            tool_total_timeout: None,
            tools: ToolFilter::default(),
            protocol: Protocol::default(),
            isolation: Isolation::default(),
            always_load: false,
            trust_annotations: false,
            idle_stop: None,
            sandbox: Sandbox::default(),
            description: None,
        }
    }

    /// Whether it is contacted over a network protocol, rather than started here or reached by a unix socket.
    pub fn is_remote(&self) -> bool {
        matches!(&self.reach, Reach::Remote(remote) if remote.transport != RemoteTransport::Unix)
    }

    /// How long this tool may be silent: what is said of exactly its name, else of the pattern that
    /// fixes the most of it, else of all tools. Of two patterns that fix as much, the first in the
    /// order of texts counts.
    pub fn timeout_of(&self, tool: &str) -> Duration {
        if let Some(timeout) = self.tool_timeouts.get(tool) {
            return *timeout;
        }
        let n_fixed = |pattern: &str| pattern.bytes().filter(|byte| *byte != b'*').count();
        let patterns = self.tool_timeouts.iter();
        let matching =
            patterns.filter(|(pattern, _)| Wildcard::new(pattern.as_str()).matches(tool));
        // The last of the greatest, counted from the back, is the first.
        let best = matching.rev().max_by_key(|(pattern, _)| n_fixed(pattern));
        best.map_or(self.tool_timeout, |(_, timeout)| *timeout)
    }
}

/// The two kinds of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A program that is started.
    Program(Program),
    /// An address that is contacted.
    Remote(Box<Remote>),
}

/// A program that is a server, spoken to over its standard streams. Its [`fmt::Debug`] leaves out
/// what may be secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    /// The program: a name to be found in `PATH`, or a path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables it gets besides the basic ones.
    pub env: BTreeMap<String, Template>,
    /// Variables passed on to it from our own environment, where they are set.
    pub env_vars: Vec<String>,
    /// Where it starts, if that was said.
    pub cwd: Option<PathBuf>,
    /// Where it starts if nothing was said: the directory of the project file it stands in, or the
    /// folder of its plugin.
    pub base: Option<PathBuf>,
    /// The directory of any other file it stands in. It does not start there, but a relative path
    /// means something only there.
    pub beside: Option<PathBuf>,
}

impl Program {
    /// Where it starts; where we are, if nowhere.
    pub fn directory(&self) -> Option<&Path> {
        self.cwd.as_deref().or(self.base.as_deref())
    }

    /// What is started: a name to be found in `PATH`, or a path that means the same program
    /// wherever the user is.
    pub fn path(&self) -> PathBuf {
        match self.directory().or(self.beside.as_deref()) {
            Some(directory) if self.command.contains('/') => directory.join(&self.command),
            _ => PathBuf::from(&self.command),
        }
    }
}

/// A server with an address. Its [`fmt::Debug`] leaves out what may be secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    /// How to talk to it.
    pub transport: RemoteTransport,
    /// The address.
    pub url: String,
    /// Headers sent with every request.
    pub headers: BTreeMap<String, Template>,
    /// Headers whose values are in variables of our environment: header to variable.
    pub env_headers: BTreeMap<String, String>,
    /// The variable of our environment that holds a bearer token.
    pub bearer_token_env_var: Option<String>,
    /// A command that prints headers as a JSON object.
    pub headers_helper: Option<String>,
    /// What is fixed about signing in.
    pub oauth: OAuth,
    /// Where commands for secrets and headers run; where we are, if nowhere.
    pub base: Option<PathBuf>,
}

/// How to talk to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteTransport {
    /// Streamable HTTP, and HTTP+SSE if the server knows only that.
    HttpWithFallback,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of revision 2024-11-05.
    Sse,
    /// A WebSocket.
    WebSocket,
    /// A unix socket.
    Unix,
}

/// Which tools of a server count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Only these, if given; `*` matches any text.
    pub enabled: Option<Vec<String>>,
    /// Not these; wins over the others.
    pub disabled: Vec<String>,
}

/// Whether sessions may share one connection to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// One connection for all.
    #[default]
    Shared,
    /// One for each session.
    PerSession,
}

/// What a program may touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// Whatever the user may.
    #[default]
    Off,
    /// Nothing is written.
    ReadOnly,
    /// Only the work tree is written.
    WorkspaceWrite,
}

/// A value that may hold secrets, or name them: they are looked up when the server is contacted.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Template {
    /// What it is made of, in order.
    pub parts: Vec<TemplatePart>,
}

/// A piece of a [`Template`].
#[derive(Clone, PartialEq, Eq)]
pub enum TemplatePart {
    /// Text as it is.
    Literal(String),
    /// A secret in the keyring, by its name.
    Keyring(String),
    /// What a command prints.
    Command(String),
}

impl Template {
    /// A value without references.
    pub fn literal(text: impl Into<String>) -> Self {
        let parts = vec![TemplatePart::Literal(text.into())];
        Self { parts }
    }

    /// The text, if nothing has to be looked up.
    pub fn as_literal(&self) -> Option<String> {
        let literal = |part: &TemplatePart| match part {
            TemplatePart::Literal(text) => Some(text.clone()),
            TemplatePart::Keyring(_) | TemplatePart::Command(_) => None,
        };
        self.parts.iter().map(literal).collect()
    }
}

impl ToolFilter {
    /// Whether every tool counts.
    pub fn admits_all(&self) -> bool {
        self.enabled.is_none() && self.disabled.is_empty()
    }

    /// Whether a tool of this name counts.
    pub fn admits(&self, tool: &str) -> bool {
        let matches = |patterns: &[String]| {
            patterns
                .iter()
                .any(|pattern| Wildcard::new(pattern.as_str()).matches(tool))
        };
        let Self { enabled, disabled } = self;
        enabled.as_deref().is_none_or(matches) && !matches(disabled)
    }
}

/// Arguments may be secrets, and never show.
impl fmt::Debug for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Program")
            .field("command", &self.command)
            .field("args", &format_args!("[… {}]", self.args.len()))
            .field("env", &self.env)
            .field("env_vars", &self.env_vars)
            .field("cwd", &self.cwd)
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

/// Credentials and queries of addresses may be secrets, and never show; nor do commands.
impl fmt::Debug for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_helper = self.headers_helper.is_some();
        formatter
            .debug_struct("Remote")
            .field("transport", &self.transport)
            .field("url", &without_secrets(&self.url))
            .field("headers", &self.headers)
            .field("env_headers", &self.env_headers)
            .field("bearer_token_env_var", &self.bearer_token_env_var)
            .field("headers_helper", &has_helper)
            .field("oauth", &self.oauth)
            .finish_non_exhaustive()
    }
}

/// An address without credentials, query and fragment.
fn without_secrets(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (url, more) = url.split_at_checked(end).unwrap_or((url, ""));
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find(['/', '\\']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let (user, host) = match authority.rsplit_once('@') {
        Some((_, host)) => ("…@", host),
        None => ("", authority),
    };
    let more = if more.is_empty() { "" } else { "?…" };
    let mark = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{mark}{user}{host}{path}{more}")
}

impl fmt::Debug for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(&self.parts).finish()
    }
}

/// Literals may be secrets, and never show.
impl fmt::Debug for TemplatePart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(_) => formatter.write_str("Literal(…)"),
            Self::Keyring(name) => formatter.debug_tuple("Keyring").field(name).finish(),
            Self::Command(_) => formatter.write_str("Command(…)"),
        }
    }
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
