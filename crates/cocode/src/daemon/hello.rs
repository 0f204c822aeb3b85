//! What fronts say to the daemon, and what it answers: one line of JSON each. After that, they exchange
//! MCP messages, and nothing else until they part. Commands speak HTTP instead.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::build::build;
use crate::args::serve::WantedArgs;

/// The form of what is said here. Who speaks another is not understood.
pub(super) const CHANNEL: u32 = 1;

/// The line that says that the daemon ends, and wants to be asked nothing more. It is no message of
/// the protocol, so that no server can say it.
pub(crate) const LEAVING: &[u8] = br#"{"cocode":"leaving"}"#;
/// The beginning of a line with what whoever runs the front should know. It is no message either.
const WARNING: &str = r#"{"cocode":{"warning":"#;
/// What is longer is cut, so that a front reads the line as a whole.
const MAX_WARNING_CHARS: usize = 2000;

/// What a front says then. Requests that follow are not served.
pub(super) const LEFT_METHOD: &str = "notifications/cocode/left";
/// The same as a line.
pub(crate) const LEFT: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cocode/left\"}\n";

/// The first line of a connection. Environments are a few KiB; the system itself allows no more
/// than this.
pub(super) const MAX_HELLO_BYTES: usize = 8 * 1024 * 1024;

/// What everybody says first, whatever they want.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Hello<W> {
    pub(super) channel: u32,
    pub(super) build: String,
    pub(super) wants: W,
}

/// What is wanted of the daemon.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Wants {
    /// To be served.
    Front(Box<Front>),
}

/// A front: where it was started, and what it is to serve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub(crate) struct Front {
    /// Which part of the system it sees.
    pub(crate) world: Vec<String>,
    pub(crate) directory: Option<Text>,
    pub(crate) home: Option<Text>,
    pub(crate) environment: Vec<(Text, Text)>,
    /// Files that were named instead of the scopes.
    pub(crate) config: Vec<Text>,
    pub(crate) strict: bool,
    pub(crate) store: Option<String>,
    pub(crate) wanted: WantedArgs,
}

/// What the daemon answers.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Welcome {
    pub(super) channel: u32,
    pub(crate) build: String,
    pub(crate) pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<Refusal>,
    /// What whoever runs the front should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
}

/// Why a front is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Refusal {
    /// It is of another build, and others are being served.
    OtherBuild,
    /// It is of another build, and nobody else is served: this daemon ends now.
    SteppingAside,
    /// It trusts other certificates, which hold for a whole process.
    OtherCertificates,
    /// It is in a sandbox or a container that the daemon is not in, or the other way round.
    OtherWorld,
    /// What it wants cannot be served, as it will find out itself.
    Failed,
    /// This daemon is about to end.
    Ending,
    /// The first line was not understood.
    NotUnderstood,
}

impl<W> Hello<W> {
    pub(crate) fn new(wants: W) -> Self {
        Self {
            channel: CHANNEL,
            build: build(),
            wants,
        }
    }
}

impl Hello<serde::de::IgnoredAny> {
    /// What is the same in every form.
    pub(super) fn head(line: &[u8]) -> Option<(u32, String)> {
        #[derive(Deserialize)]
        struct Head {
            channel: u32,
            build: String,
        }
        let head: Head = serde_json::from_slice(line).ok()?;
        Some((head.channel, head.build))
    }
}

impl Welcome {
    pub(super) fn new(build: &str) -> Self {
        Self {
            channel: CHANNEL,
            build: build.to_owned(),
            pid: std::process::id(),
            refused: None,
            warnings: Vec::new(),
        }
    }

    pub(super) fn refused(build: &str, why: Refusal) -> Self {
        Self {
            refused: Some(why),
            ..Self::new(build)
        }
    }
}

/// The line that tells a front of something, without its end.
pub(super) fn warning(text: &str) -> Vec<u8> {
    let text: String = text.chars().take(MAX_WARNING_CHARS).collect();
    let text = serde_json::Value::from(text);
    format!("{WARNING}{text}}}}}").into_bytes()
}

/// What such a line tells.
pub(crate) fn warning_in(line: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Line {
        cocode: Told,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Told {
        warning: String,
    }
    if !line.starts_with(WARNING.as_bytes()) {
        return None;
    }
    let line: Line = serde_json::from_slice(line).ok()?;
    Some(line.cocode.warning)
}

/// What the socket says to a process that it refuses.
pub(super) fn refusal_in(line: &[u8]) -> Option<String> {
    let line: serde_json::Value = serde_json::from_slice(line).ok()?;
    Some(line.pointer("/error/message")?.as_str()?.to_owned())
}

/// A line of JSON, with its end.
pub(super) fn line(message: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Text of the system, which is UTF-8 nearly always.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Text(pub(crate) OsString);

impl Text {
    pub(crate) fn into_path(self) -> PathBuf {
        PathBuf::from(self.0)
    }
}

impl<T: AsRef<OsStr>> From<T> for Text {
    fn from(text: T) -> Self {
        Self(text.as_ref().to_owned())
    }
}

/// Values of variables may be secrets.
impl std::fmt::Debug for Text {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Text(…)")
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => text.serialize(serializer),
            None => [STANDARD.encode(self.0.as_bytes())].serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Plain(String),
            Encoded([String; 1]),
        }
        match Form::deserialize(deserializer)? {
            Form::Plain(text) => Ok(Self(text.into())),
            Form::Encoded([text]) => {
                let bytes = STANDARD.decode(text).map_err(serde::de::Error::custom)?;
                Ok(Self(OsString::from_vec(bytes)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    use super::{Front, Hello, Text, WantedArgs, Wants, line};

    #[test]
    fn a_hello_arrives_as_it_was_said_whatever_bytes_it_has() {
        let odd = OsString::from_vec(vec![b'a', 0xff, b'\n']);
        let front = Front {
            directory: Some(Text::from("/a b/ü")),
            environment: vec![(Text::from("NAME"), Text(odd))],
            wanted: WantedArgs {
                servers: vec!["files".to_owned()],
                ..WantedArgs::default()
            },
            ..Front::default()
        };
        let hello = Hello::new(Wants::Front(Box::new(front.clone())));
        let line = line(&hello).unwrap();
        assert_eq!(memchr::memchr(b'\n', &line), Some(line.len() - 1));
        let read: Hello<Wants> = serde_json::from_slice(&line).unwrap();
        let Wants::Front(read) = read.wants;
        assert_eq!(*read, front);
    }

    #[test]
    fn the_head_is_understood_whatever_follows() {
        let line = br#"{"channel":7,"build":"9.9","wants":{"dance":[1]}}"#;
        assert_eq!(Hello::head(line), Some((7, "9.9".to_owned())));
        assert_eq!(Hello::head(b"[]"), None);
    }
}
