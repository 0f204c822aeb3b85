//! Everything this program takes from the environment of its process, read once.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the environment"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cocode_auth::session_bus_address;
use cocode_client::{HttpSettings, baseline_environment};
use cocode_process::is_baseline;

use crate::telemetry::TelemetrySettings;

/// The variables of this process, as they were when the program started.
static OF_PROCESS: OnceLock<Variables> = OnceLock::new();

/// Variables besides the baseline that stay in the environment of this process, since libraries read them. They hold
/// no secrets.
const READ_BY_LIBRARIES: &str = "CI CLICOLOR CLICOLOR_FORCE COLORTERM COLUMNS GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM \
    NO_COLOR RUST_BACKTRACE SSL_CERT_DIR SSL_CERT_FILE TOKIO_WORKER_THREADS TZDIR XDG_CONFIG_HOME";

/// Variables besides the baseline, `OTEL_*` and `XDG_*` that cocode itself reads as a daemon. `docs/daemon.md` lists
/// them.
const READ_BY_DAEMON: &str = "ALL_PROXY CLAUDE_CONFIG_DIR COCODE_CA_FILE COCODE_HOME COCODE_LOG CODEX_HOME \
    DBUS_SESSION_BUS_ADDRESS ENABLE_TOOL_SEARCH HTTPS_PROXY HTTP_PROXY MAX_MCP_OUTPUT_TOKENS MCP_TOOL_TIMEOUT \
    NODE_EXTRA_CA_CERTS NO_PROXY SSL_CERT_DIR SSL_CERT_FILE all_proxy http_proxy https_proxy no_proxy";

fn is_in(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|known| known == name)
}

/// The variables that matter, as they were when the program started.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// All variables, for what configuration refers to and what servers are given.
    pub(crate) variables: Variables,
    /// Proxies and extra certificate authorities.
    pub(crate) http: HttpSettings,
    /// Whether `NO_COLOR` asks for plain text, or the terminal knows nothing else.
    pub(crate) no_color: bool,
    /// The log filter in `COCODE_LOG`.
    pub(crate) log_filter: Option<String>,
    /// Where things are kept.
    pub(crate) homes: Homes,
    /// The D-Bus session bus, which has the keyring.
    pub(crate) session_bus: Option<String>,
    /// How long any tool may be silent, in milliseconds: `MCP_TOOL_TIMEOUT`.
    pub(crate) tool_timeout: Option<String>,
    /// How large a result may be: `MAX_MCP_OUTPUT_TOKENS`.
    pub(crate) max_output_tokens: Option<String>,
    /// What the variables of OpenTelemetry ask for, if anything.
    pub(crate) telemetry: Option<TelemetrySettings>,
}

/// All variables of an environment, be it that of this process or that of another who asks us to
/// serve. Values may be secrets.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Variables(Arc<BTreeMap<OsString, OsString>>);

impl Variables {
    /// Those of this process.
    fn of_process() -> &'static Self {
        OF_PROCESS.get_or_init(|| std::env::vars_os().collect())
    }

    /// The part that the shared daemon is sent: what every server may see, what cocode reads itself, and
    /// those that are named.
    pub(crate) fn for_daemon(&self, named: &BTreeSet<String>) -> Self {
        let is_sent = |name: &OsStr| {
            let text = name.to_str().unwrap_or_default();
            is_baseline(name)
                || is_in(READ_BY_DAEMON, text)
                || text.starts_with("OTEL_")
                || text.starts_with("XDG_")
                || named.contains(text)
        };
        self.iter().filter(|(name, _)| is_sent(name)).collect()
    }

    /// A variable that the user wants to pass on to a server.
    pub(crate) fn get(&self, name: &OsStr) -> Option<OsString> {
        self.0.get(name).cloned()
    }

    /// A variable that configuration refers to.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name.as_ref())?.into_string().ok()
    }

    /// The part that every server may see.
    pub(crate) fn for_servers(&self) -> Vec<(OsString, OsString)> {
        baseline_environment(self.iter())
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<(OsString, OsString)> {
        self.iter().collect()
    }

    fn iter(&self) -> impl Iterator<Item = (OsString, OsString)> {
        let all = self.0.iter();
        all.map(|(name, value)| (name.clone(), value.clone()))
    }
}

impl FromIterator<(OsString, OsString)> for Variables {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(all: I) -> Self {
        Self(Arc::new(all.into_iter().collect()))
    }
}

impl std::fmt::Debug for Variables {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

/// The directories that variables name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Homes {
    /// `COCODE_HOME`: everything of ours in one directory.
    pub(crate) cocode: Option<PathBuf>,
    /// The home directory of the user.
    pub(crate) home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`, where it is an absolute path.
    pub(crate) xdg_config: Option<PathBuf>,
    /// `XDG_STATE_HOME`, where it is an absolute path.
    pub(crate) xdg_state: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`, where it is an absolute path.
    pub(crate) xdg_runtime: Option<PathBuf>,
    /// `CODEX_HOME`.
    pub(crate) codex: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`.
    pub(crate) claude: Option<PathBuf>,
}

impl Homes {
    /// Where we keep the user's configuration, and what we note for ourselves.
    pub(crate) fn of_cocode(&self, directory: Option<&Path>) -> Option<(PathBuf, PathBuf)> {
        if let Some(own) = &self.cocode {
            let own = directory.map_or_else(|| own.clone(), |directory| directory.join(own));
            let state = own.join("state");
            return Some((own, state));
        }
        let under_home = |rest: &str| self.home.as_ref().map(|home| home.join(rest));
        let config = self.xdg_config.clone().or_else(|| under_home(".config"))?;
        let state = self
            .xdg_state
            .clone()
            .or_else(|| under_home(".local/state"))?;
        Some((config.join("cocode"), state.join("cocode")))
    }
}

impl Environment {
    pub(crate) fn read() -> Self {
        // The system knows where users without the variable are at home.
        Self::of(Variables::of_process().clone(), std::env::home_dir())
    }

    /// What these variables say. Without one of them, the user is at home in `home`.
    pub(crate) fn of(variables: Variables, home: Option<PathBuf>) -> Self {
        let filled = |name: &str| {
            let value = variables.get(name.as_ref());
            value.filter(|value| !value.is_empty())
        };
        let text = |name: &str| filled(name).and_then(|value| value.into_string().ok());
        // As curl does: the lower-case name wins.
        let either = |lower: &str| text(lower).or_else(|| text(&lower.to_uppercase()));
        let any = either("all_proxy");
        let files = ["NODE_EXTRA_CA_CERTS", "COCODE_CA_FILE"];
        Self {
            http: HttpSettings {
                http_proxy: either("http_proxy").or_else(|| any.clone()),
                https_proxy: either("https_proxy").or(any),
                no_proxy: either("no_proxy"),
                extra_ca_files: files
                    .into_iter()
                    .filter_map(filled)
                    .map(PathBuf::from)
                    .collect(),
            },
            no_color: filled("NO_COLOR").is_some() || text("TERM").as_deref() == Some("dumb"),
            log_filter: text("COCODE_LOG"),
            session_bus: session_bus_address(
                text("DBUS_SESSION_BUS_ADDRESS").as_deref(),
                filled("XDG_RUNTIME_DIR").as_deref().map(Path::new),
            ),
            tool_timeout: text("MCP_TOOL_TIMEOUT"),
            max_output_tokens: text("MAX_MCP_OUTPUT_TOKENS"),
            telemetry: TelemetrySettings::read(&text),
            homes: Homes {
                cocode: filled("COCODE_HOME").map(PathBuf::from),
                home: filled("HOME").map(PathBuf::from).or(home),
                // The specification of these wants relative paths ignored.
                xdg_config: absolute(filled("XDG_CONFIG_HOME")),
                xdg_state: absolute(filled("XDG_STATE_HOME")),
                xdg_runtime: absolute(filled("XDG_RUNTIME_DIR")),
                codex: filled("CODEX_HOME").map(PathBuf::from),
                claude: filled("CLAUDE_CONFIG_DIR").map(PathBuf::from),
            },
            variables,
        }
    }
}

/// Removes from the environment of this process, and from its memory, what no library reads. What was read stays known
/// here. To be called before there are other threads.
pub(crate) fn clear() -> io::Result<()> {
    let _captured = Variables::of_process();
    cocode_process::clear_environment(|name| {
        let text = name.to_str().unwrap_or_default();
        // Where telemetry goes is read by its library, too; headers and addresses of it may hold secrets.
        let is_telemetry = text.starts_with("OTEL_") && !text.starts_with("OTEL_EXPORTER_");
        is_baseline(name) || is_telemetry || is_in(READ_BY_LIBRARIES, text)
    })
}

/// The part of our environment that every server may see.
pub(crate) fn for_servers() -> Vec<(OsString, OsString)> {
    Variables::of_process().for_servers()
}

/// All of our environment, for programs that are the user's own, such as a browser.
pub(crate) fn all() -> Vec<(OsString, OsString)> {
    Variables::of_process().all()
}

/// A variable that the user wants to pass on to a server.
pub(crate) fn variable(name: &OsStr) -> Option<OsString> {
    Variables::of_process().get(name)
}

/// A variable that configuration refers to.
pub(crate) fn text_variable(name: &str) -> Option<String> {
    Variables::of_process().text(name)
}

fn absolute(path: Option<OsString>) -> Option<PathBuf> {
    path.map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use super::Environment;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        let variables = variables.iter();
        let variables =
            variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Environment::of(variables.collect(), None)
    }

    #[test]
    fn proxies_come_from_either_spelling() {
        let http = environment(&[
            ("http_proxy", "http://lower:1"),
            ("HTTP_PROXY", "http://upper:1"),
            ("ALL_PROXY", "socks5://all:1"),
            ("NO_PROXY", "localhost"),
        ])
        .http;
        assert_eq!(http.http_proxy.as_deref(), Some("http://lower:1"));
        assert_eq!(http.https_proxy.as_deref(), Some("socks5://all:1"));
        assert_eq!(http.no_proxy.as_deref(), Some("localhost"));
    }

    #[test]
    fn empty_variables_count_as_unset() {
        let environment = environment(&[("NO_COLOR", ""), ("HTTPS_PROXY", ""), ("COCODE_LOG", "")]);
        assert!(!environment.no_color);
        assert_eq!(environment.http.https_proxy, None);
        assert_eq!(environment.log_filter, None);
    }

    #[test]
    fn values_are_never_shown() {
        let environment = environment(&[("TOKEN", "hunter2"), ("HOME", "/house/me")]);
        let shown = format!("{:?}", environment.variables);
        assert_eq!(shown, r#"{"HOME", "TOKEN"}"#);
    }

    #[test]
    fn colors_can_be_refused_by_the_user_and_by_the_terminal() {
        assert!(environment(&[("NO_COLOR", "1")]).no_color);
        assert!(environment(&[("TERM", "dumb")]).no_color);
        assert!(!environment(&[("TERM", "xterm")]).no_color);
    }

    #[test]
    fn certificate_files_of_both_variables_are_used() {
        let variables = [
            ("COCODE_CA_FILE", "/b.pem"),
            ("NODE_EXTRA_CA_CERTS", "/a.pem"),
        ];
        let files = environment(&variables).http.extra_ca_files;
        assert_eq!(files, [PathBuf::from("/a.pem"), PathBuf::from("/b.pem")]);
    }
}
