//! Everything this program takes from the environment of its process, read once.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the environment"
)]

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use cocode_client::{HttpSettings, baseline_environment};

/// The variables that matter, as they were when the program started.
#[derive(Debug)]
pub(crate) struct Environment {
    /// Proxies and extra certificate authorities.
    pub(crate) http: HttpSettings,
    /// Whether `NO_COLOR` asks for plain text, or the terminal knows nothing else.
    pub(crate) no_color: bool,
    /// The log filter in `COCODE_LOG`.
    pub(crate) log_filter: Option<String>,
}

impl Environment {
    pub(crate) fn read() -> Self {
        Self::from(&|name| std::env::var_os(name))
    }

    fn from(lookup: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let filled = |name: &str| lookup(name).filter(|value| !value.is_empty());
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
        }
    }
}

/// The part of our environment that every server may see.
pub(crate) fn for_servers() -> Vec<(OsString, OsString)> {
    baseline_environment(std::env::vars_os())
}

/// A variable that the user wants to pass on to a server.
pub(crate) fn variable(name: &OsStr) -> Option<OsString> {
    std::env::var_os(name)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use super::Environment;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        let lookup = |wanted: &str| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| OsString::from(value))
        };
        Environment::from(&lookup)
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
