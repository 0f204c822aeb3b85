//! From what a file says to what is done: expands variables, fills in what was left out, and
//! checks what can be checked without contacting anybody.

mod sign_in;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cocode_core::{
    DEFAULT_CONNECT_TIMEOUT, DEFAULT_STARTUP_TIMEOUT, DEFAULT_TOOL_TIMEOUT, Isolation, Program,
    Protocol, Reach, Remote, RemoteTransport, Sandbox, ServerName, ServerSpec, Template,
    TemplatePart, ToolFilter,
};
use url::Url;

use crate::entry::{Entry, Seconds, Text, Transport};
use crate::expand::{ExpandError, Variables, expand_plain, expand_secret, is_variable_name};
use crate::keys::{ISOLATIONS, SANDBOXES};
use crate::parse::Found;
use crate::problem::Problem;

/// Where relative paths of an entry begin.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base<'a> {
    /// Nobody knows yet: the entry stands in no file.
    Unknown,
    /// In this directory, where a program also starts that names none.
    Start(&'a Path),
    /// In this directory, but a program that names none starts where the user is.
    Beside(&'a Path),
}

/// Makes a specification, or says everything that stands in the way.
pub(crate) fn specify(
    found: &Found,
    variables: Variables<'_>,
    base: Base<'_>,
) -> Result<ServerSpec, Vec<Problem>> {
    let mut work = Work {
        found,
        variables,
        problems: Vec::new(),
    };
    let spec = work.spec(base);
    match spec {
        Some(spec) if work.problems.is_empty() => Ok(spec),
        _ => Err(work.problems),
    }
}

impl Base<'_> {
    fn start(self) -> Option<PathBuf> {
        match self {
            Self::Start(directory) => Some(directory.to_owned()),
            Self::Unknown | Self::Beside(_) => None,
        }
    }

    fn beside(self) -> Option<PathBuf> {
        match self {
            Self::Beside(directory) => Some(directory.to_owned()),
            Self::Unknown | Self::Start(_) => None,
        }
    }
}

struct Work<'a> {
    found: &'a Found,
    variables: Variables<'a>,
    problems: Vec<Problem>,
}

impl Work<'_> {
    fn spec(&mut self, base: Base<'_>) -> Option<ServerSpec> {
        let Entry {
            transport: _,
            command: _,
            args: _,
            env: _,
            env_vars: _,
            cwd: _,
            url: _,
            headers: _,
            env_http_headers: _,
            bearer_token_env_var: _,
            headers_helper: _,
            oauth: _,
            enabled: _,
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
        } = &self.found.entry;
        self.check_values();
        let reach = self.reach(base)?;
        let seconds =
            |given: &Option<Seconds>, default: Duration| given.map_or(default, Seconds::duration);
        Some(ServerSpec {
            name: self.found.name.parse().ok()?,
            reach,
            required: required.unwrap_or(false),
            startup_timeout: seconds(startup_timeout_sec, DEFAULT_STARTUP_TIMEOUT),
            connect_timeout: seconds(connect_timeout_sec, DEFAULT_CONNECT_TIMEOUT),
            tool_timeout: seconds(tool_timeout_sec, DEFAULT_TOOL_TIMEOUT),
            tool_timeouts: tool_timeouts_sec
                .iter()
                .map(|(tool, seconds)| (tool.clone(), seconds.duration()))
                .collect(),
            tool_total_timeout: tool_total_timeout_sec.map(Seconds::duration),
            tools: ToolFilter {
                enabled: enabled_tools.clone(),
                disabled: disabled_tools.clone(),
            },
            // Names that are none were refused before.
            protocol: protocol.as_deref().unwrap_or("auto").parse().ok()?,
            isolation: match isolation.as_deref() {
                Some("per-session") => Isolation::PerSession,
                _ => Isolation::Shared,
            },
            always_load: always_load.unwrap_or(false),
            trust_annotations: trust_annotations.unwrap_or(false),
            idle_stop: idle_stop_sec.map(Seconds::duration),
            sandbox: sandbox.as_deref().map_or(Sandbox::Off, sandbox_of),
            description: description.clone(),
        })
    }

    fn reach(&mut self, base: Base<'_>) -> Option<Reach> {
        let entry = &self.found.entry;
        match (&entry.command, &entry.url) {
            (Some(_), Some(_)) => {
                self.error("url", "it has both `command` and `url`");
                None
            }
            (Some(command), None) => {
                let command = self.plain("command", command)?;
                Some(Reach::Program(Program {
                    command: self.home("command", command)?,
                    args: self.args(&entry.args),
                    env: self.env(&entry.env),
                    env_vars: self.names("env_vars", &entry.env_vars),
                    cwd: self.path("cwd", entry.cwd.as_deref(), base),
                    base: base.start(),
                    beside: base.beside(),
                }))
            }
            (None, Some(url)) => {
                let url = self.plain("url", url)?;
                let token = entry.bearer_token_env_var.as_slice();
                Some(Reach::Remote(Box::new(Remote {
                    transport: self.remote_transport(&url, entry.transport)?,
                    url,
                    headers: self.headers(&entry.headers),
                    env_headers: self.env_headers(&entry.env_http_headers),
                    bearer_token_env_var: self.names("bearer_token_env_var", token).pop(),
                    headers_helper: entry.headers_helper.clone(),
                    oauth: self.oauth(&entry.oauth, base),
                    base: base.start(),
                })))
            }
            (None, None) => {
                self.error("command", "it has neither `command` nor `url`");
                None
            }
        }
    }

    /// What the parser refuses in a file, and nobody yet in an entry that was made otherwise.
    fn check_values(&mut self) {
        if let Err(error) = self.found.name.parse::<ServerName>() {
            let problem = Problem::error(self.found.origin.clone(), error.to_string());
            self.problems.push(problem.server(&self.found.name));
        }
        let entry = &self.found.entry;
        if let Some(Err(error)) = entry.protocol.as_deref().map(str::parse::<Protocol>) {
            self.error("protocol", error.to_string());
        }
        for (key, value, known) in [
            ("isolation", entry.isolation.as_deref(), ISOLATIONS),
            ("sandbox", entry.sandbox.as_deref(), SANDBOXES),
        ] {
            if value.is_some_and(|value| !known.contains(&value)) {
                self.error(key, format!("it must be one of {}", known.join(", ")));
            }
        }
    }

    fn plain(&mut self, key: &str, text: &str) -> Option<String> {
        match expand_plain(text, self.variables) {
            Ok(text) if text.contains('\0') => {
                self.error(key, "it has a NUL character after expansion");
                None
            }
            Ok(text) => Some(text),
            Err(error) => {
                self.unexpanded(key, &error);
                None
            }
        }
    }

    fn args(&mut self, args: &[String]) -> Vec<String> {
        let mut expanded = Vec::with_capacity(args.len());
        for (index, text) in args.iter().enumerate() {
            expanded.extend(self.plain(&format!("args[{index}]"), text));
        }
        expanded
    }

    fn env(&mut self, map: &BTreeMap<String, Text>) -> BTreeMap<String, Template> {
        for name in map.keys() {
            if name.is_empty() || name.contains(['=', '\0']) {
                let key = format!("env.{name}");
                self.error(&key, "this is not a name that a variable can have");
            }
        }
        self.secrets("env", map, &['\0'])
    }

    fn headers(&mut self, map: &BTreeMap<String, Text>) -> BTreeMap<String, Template> {
        for name in map.keys().filter(|name| !is_header_name(name)) {
            self.error(
                &format!("headers.{name}"),
                "this is not a name that a header can have",
            );
        }
        self.secrets("headers", map, &['\0', '\r', '\n'])
    }

    fn secrets(
        &mut self,
        key: &str,
        map: &BTreeMap<String, Text>,
        impossible: &[char],
    ) -> BTreeMap<String, Template> {
        let mut expanded = BTreeMap::new();
        for (name, Text(text)) in map {
            let key = format!("{key}.{name}");
            match expand_secret(text, self.variables) {
                Ok(template) if has_literal(&template, impossible) => {
                    self.error(&key, "it has a NUL character or line break after expansion");
                }
                Ok(template) => {
                    expanded.insert(name.clone(), template);
                }
                Err(error) => self.unexpanded(&key, &error),
            }
        }
        expanded
    }

    fn env_headers(&mut self, map: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        for (header, variable) in map {
            let key = format!("env_http_headers.{header}");
            if !is_header_name(header) {
                self.error(&key, "this is not a name that a header can have");
            }
            self.check_name(&key, variable);
        }
        map.clone()
    }

    fn names(&mut self, key: &str, names: &[String]) -> Vec<String> {
        for name in names {
            self.check_name(key, name);
        }
        names.to_vec()
    }

    /// A name, not the secret itself: people paste tokens where the name of a variable belongs.
    fn check_name(&mut self, key: &str, name: &str) {
        if !is_variable_name(name) {
            let origin = self.found.origin_of(key);
            let problem = Problem::error(origin, "its value is not the name of a variable")
                .server(&self.found.name)
                .key(key)
                .hint("write the name alone, as in `API_TOKEN`, not the value and not `${…}`");
            self.problems.push(problem);
        }
    }

    /// A path that begins where the entry stands, if it is relative.
    fn path(&mut self, key: &str, path: Option<&str>, base: Base<'_>) -> Option<PathBuf> {
        let path = self.plain(key, path?)?;
        let path = PathBuf::from(self.home(key, path)?);
        Some(match base {
            Base::Start(directory) | Base::Beside(directory) => directory.join(path),
            Base::Unknown => path,
        })
    }

    /// A path that may begin with `~/`.
    fn home(&mut self, key: &str, path: String) -> Option<String> {
        let Some(rest) = path.strip_prefix("~/") else {
            return Some(path);
        };
        let home = self.plain(key, "${HOME}")?;
        Some(format!("{home}/{rest}"))
    }

    fn remote_transport(
        &mut self,
        url: &str,
        transport: Option<Transport>,
    ) -> Option<RemoteTransport> {
        let Ok(parsed) = Url::parse(url) else {
            self.error("url", "it is not a URL");
            return None;
        };
        let chosen = match (parsed.scheme(), transport) {
            ("http" | "https", None) => Some(RemoteTransport::HttpWithFallback),
            ("http" | "https", Some(Transport::Http)) => Some(RemoteTransport::Http),
            ("http" | "https", Some(Transport::Sse)) => Some(RemoteTransport::Sse),
            ("ws" | "wss", None | Some(Transport::Ws)) => Some(RemoteTransport::WebSocket),
            ("unix", None | Some(Transport::Unix)) => Some(RemoteTransport::Unix),
            _ => None,
        };
        if chosen.is_none() {
            let message = match transport {
                Some(transport) => format!(
                    "a URL with `{}:` does not fit the transport {}",
                    parsed.scheme(),
                    transport.as_str()
                ),
                None => format!("a server cannot be reached by `{}:`", parsed.scheme()),
            };
            self.error("url", message);
        }
        chosen
    }

    fn unexpanded(&mut self, key: &str, error: &ExpandError) {
        let problem = Problem::error(self.found.origin_of(base_key(key)), error.to_string())
            .server(&self.found.name)
            .key(key)
            .hint(error.hint());
        self.problems.push(problem);
    }

    fn error(&mut self, key: &str, message: impl Into<String>) {
        let problem = Problem::error(self.found.origin_of(base_key(key)), message)
            .server(&self.found.name)
            .key(key);
        self.problems.push(problem);
    }
}

/// `args[2]` stands where `args` does.
fn base_key(key: &str) -> &str {
    key.split_once('[').map_or(key, |(base, _)| base)
}

fn has_literal(template: &Template, characters: &[char]) -> bool {
    template.parts.iter().any(|part| match part {
        TemplatePart::Literal(text) => text.contains(characters),
        TemplatePart::Keyring(_) | TemplatePart::Command(_) => false,
    })
}

fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

/// The sandbox that a word means. Words that are none were refused before.
pub(crate) fn sandbox_of(word: &str) -> Sandbox {
    match word {
        "read-only" => Sandbox::ReadOnly,
        "workspace-write" => Sandbox::WorkspaceWrite,
        _ => Sandbox::Off,
    }
}

#[cfg(test)]
#[path = "specify_tests.rs"]
mod tests;
