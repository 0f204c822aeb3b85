//! One server as a file describes it: nothing expanded, nothing filled in. The common form of all
//! file formats, of what is written, and of what is approved.

mod line;
mod masked;
mod secrets;
mod shown;

use std::collections::BTreeMap;
use std::fmt;

use cocode_core::{Dpop, Grant, Registration};
use sha2::{Digest as _, Sha256};

pub use line::EntryLine;
use line::Lines;
pub use shown::visible;

/// A value that may be a secret somebody wrote into a file: it has no [`fmt::Debug`] of its text.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(pub String);

/// What a file says about one server. Its [`fmt::Debug`] leaves out what may be secret.
#[derive(Clone, Default, PartialEq)]
pub struct Entry {
    /// How to talk to it, if it was said.
    pub transport: Option<Transport>,
    /// The program.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables for the program.
    pub env: BTreeMap<String, Text>,
    /// Variables passed on to the program.
    pub env_vars: Vec<String>,
    /// Where the program starts.
    pub cwd: Option<String>,
    /// The address.
    pub url: Option<String>,
    /// Headers for every request.
    pub headers: BTreeMap<String, Text>,
    /// Headers whose values are in variables.
    pub env_http_headers: BTreeMap<String, String>,
    /// The variable with a bearer token.
    pub bearer_token_env_var: Option<String>,
    /// A command that prints headers.
    pub headers_helper: Option<String>,
    /// What is fixed about signing in.
    pub oauth: OAuthEntry,
    /// Whether it is used.
    pub enabled: Option<bool>,
    /// Whether a start without it is a failure.
    pub required: Option<bool>,
    /// See [`cocode_core::ServerSpec`], as are the rest.
    pub startup_timeout_sec: Option<Seconds>,
    /// When an attempt to connect ends.
    pub connect_timeout_sec: Option<Seconds>,
    /// How long a tool may be silent.
    pub tool_timeout_sec: Option<Seconds>,
    /// How long single tools may be silent, by name or pattern.
    pub tool_timeouts_sec: BTreeMap<String, Seconds>,
    /// Total timeout of a call.
    pub tool_total_timeout_sec: Option<Seconds>,
    /// Only these tools.
    pub enabled_tools: Option<Vec<String>>,
    /// Not these tools.
    pub disabled_tools: Vec<String>,
    /// What to speak.
    pub protocol: Option<String>,
    /// `shared` or `per-session`.
    pub isolation: Option<String>,
    /// Always shown to models.
    pub always_load: Option<bool>,
    /// Its annotations count also after data outside of a workspace was read.
    pub trust_annotations: Option<bool>,
    /// When an idle server is stopped.
    pub idle_stop_sec: Option<Seconds>,
    /// `off`, `read-only` or `workspace-write`.
    pub sandbox: Option<String>,
    /// What it is for.
    pub description: Option<String>,
}

/// What a file says about signing in. Its [`fmt::Debug`] leaves out what may be secret.
#[derive(Clone, Default, PartialEq)]
pub struct OAuthEntry {
    /// A client registered beforehand.
    pub client_id: Option<String>,
    /// The variable with the secret of that client.
    pub client_secret_env: Option<String>,
    /// The port of the callback.
    pub callback_port: Option<u16>,
    /// The redirect URL.
    pub callback_url: Option<String>,
    /// What to ask for.
    pub scopes: Vec<String>,
    /// The resource to ask for.
    pub resource: Option<String>,
    /// How to become a client.
    pub registration: Option<Registration>,
    /// The URL of a document that describes the client.
    pub client_metadata_url: Option<String>,
    /// The authorization server.
    pub issuer: Option<String>,
    /// How to come by a token.
    pub grant: Option<Grant>,
    /// The file with the private key of the client.
    pub private_key_file: Option<String>,
    /// The variable with the private key of the client.
    pub private_key_env: Option<String>,
    /// One of [`cocode_core::SIGNING_ALGORITHMS`].
    pub signing_algorithm: Option<String>,
    /// The variable with the assertion.
    pub assertion_env: Option<String>,
    /// The file with the assertion.
    pub assertion_file: Option<String>,
    /// A command that prints the assertion.
    pub assertion_command: Option<String>,
    /// The identity provider.
    pub idp_issuer: Option<String>,
    /// Where the identity provider gives out tokens.
    pub idp_token_endpoint: Option<String>,
    /// The client that the identity provider knows.
    pub idp_client_id: Option<String>,
    /// The variable with the secret of that client.
    pub idp_client_secret_env: Option<String>,
    /// Whether tokens are bound to a key.
    pub dpop: Option<Dpop>,
    /// Whether a public server may name private addresses.
    pub allow_private_network: Option<bool>,
}

/// The transports a file can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A program's standard streams.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE.
    Sse,
    /// A WebSocket.
    Ws,
    /// A unix socket.
    Unix,
}

/// A number of seconds, more than none and less than forever.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Seconds(pub f64);

impl Entry {
    /// Everything the entry says, in one fixed order and form.
    pub fn lines(&self) -> Vec<EntryLine> {
        let Self {
            transport,
            command,
            args,
            env,
            env_vars,
            cwd,
            url,
            headers,
            env_http_headers,
            bearer_token_env_var,
            headers_helper,
            oauth,
            enabled,
            required,
            startup_timeout_sec,
            connect_timeout_sec,
            tool_timeout_sec,
            tool_timeouts_sec,
            tool_total_timeout_sec,
            enabled_tools,
            disabled_tools,
            protocol,
            isolation,
            always_load,
            trust_annotations,
            idle_stop_sec,
            sandbox,
            description,
        } = self;
        let mut lines = Lines::default();
        lines.text("transport", transport.map(Transport::as_str));
        lines.text("command", command.as_deref());
        lines.words("args", args);
        lines.secrets("env", env);
        lines.variables("env_vars", env_vars);
        lines.text("cwd", cwd.as_deref());
        lines.url("url", url.as_deref());
        lines.secrets("headers", headers);
        for (header, variable) in env_http_headers {
            lines.variable(&format!("env_http_headers.{header}"), Some(variable));
        }
        lines.variable("bearer_token_env_var", bearer_token_env_var.as_deref());
        lines.command("headers_helper", headers_helper.as_deref());
        lines.oauth(oauth);
        lines.plain("enabled", *enabled);
        lines.plain("required", *required);
        lines.plain("startup_timeout_sec", *startup_timeout_sec);
        lines.plain("connect_timeout_sec", *connect_timeout_sec);
        lines.plain("tool_timeout_sec", *tool_timeout_sec);
        for (tool, seconds) in tool_timeouts_sec {
            lines.plain(&format!("tool_timeouts_sec.{tool}"), Some(seconds));
        }
        lines.plain("tool_total_timeout_sec", *tool_total_timeout_sec);
        if let Some(tools) = enabled_tools {
            lines.list_even_empty("enabled_tools", tools);
        }
        lines.list("disabled_tools", disabled_tools);
        lines.text("protocol", protocol.as_deref());
        lines.text("isolation", isolation.as_deref());
        lines.plain("always_load", *always_load);
        lines.plain("trust_annotations", *trust_annotations);
        lines.plain("idle_stop_sec", *idle_stop_sec);
        lines.text("sandbox", sandbox.as_deref());
        lines.text("description", description.as_deref());
        lines.0
    }

    /// What an approval is bound to: it changes when anything the entry says changes.
    pub fn content_hash(&self) -> String {
        let mut hasher = Sha256::new();
        for EntryLine { key, value, .. } in self.lines() {
            for part in [key.as_str(), value.0.as_str()] {
                hasher.update((part.len() as u64).to_be_bytes());
                hasher.update(part);
            }
        }
        let digest = hasher.finalize();
        digest.iter().fold(String::new(), |mut text, byte| {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
            text
        })
    }

    /// How the server is reached in one short piece: the command line or the address, without what
    /// looks like a secret. For lists; to decide about an entry, show its [`lines`](Self::lines).
    pub fn summary(&self) -> String {
        match (&self.command, &self.url) {
            (Some(command), _) => {
                let words = std::iter::once(command).chain(&self.args);
                shown::shown_words(words.map(String::as_str))
            }
            (None, Some(url)) => visible(&masked::url(url)),
            (None, None) => String::new(),
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = formatter.debug_map();
        map.entry(&"reach", &self.summary());
        for line in self.lines() {
            map.entry(&line.key, &line.shown());
        }
        map.finish()
    }
}

impl fmt::Debug for OAuthEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Lines::default();
        lines.oauth(self);
        let lines = lines.0.iter();
        let shown = lines.map(|line| (&line.key, line.shown()));
        formatter.debug_map().entries(shown).finish()
    }
}

impl Transport {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Stdio, Self::Http, Self::Sse, Self::Ws, Self::Unix];

    /// The name in our own files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
            Self::Ws => "ws",
            Self::Unix => "unix",
        }
    }

    /// The transport of this name, in any spelling that is in use.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "stdio" | "local" => Some(Self::Stdio),
            "http" | "streamable-http" | "streamable_http" | "streamableHttp" => Some(Self::Http),
            "sse" => Some(Self::Sse),
            "ws" | "websocket" => Some(Self::Ws),
            "unix" => Some(Self::Unix),
            _ => None,
        }
    }
}

impl Seconds {
    /// A number of seconds that can be waited for.
    pub fn new(seconds: f64) -> Option<Self> {
        let duration = std::time::Duration::try_from_secs_f64(seconds).ok()?;
        (!duration.is_zero()).then_some(Self(seconds))
    }

    /// From a number of milliseconds.
    pub fn from_millis(millis: f64) -> Option<Self> {
        Self::new(millis / 1000.0)
    }

    /// As the clock has it.
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::try_from_secs_f64(self.0).unwrap_or_default()
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Text(…)")
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text)
    }
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
