//! What the file of secrets holds, and its JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{FileError, FileKind};
use crate::secret::{Secret, SecretName};

const VERSION: u64 = 1;

/// The secrets of the file, and the names of those in the keyring. A name is in one of the two:
/// where it was set last.
#[derive(Debug, Default)]
pub(crate) struct Content {
    secrets: BTreeMap<SecretName, Secret>,
    in_keyring: BTreeSet<SecretName>,
}

impl Content {
    pub(crate) fn secret(&self, name: &SecretName) -> Option<&Secret> {
        self.secrets.get(name)
    }

    pub(crate) fn is_in_keyring(&self, name: &SecretName) -> bool {
        self.in_keyring.contains(name)
    }

    pub(crate) fn names_in_file(&self) -> impl Iterator<Item = &SecretName> {
        self.secrets.keys()
    }

    pub(crate) fn names_in_keyring(&self) -> impl Iterator<Item = &SecretName> {
        self.in_keyring.iter()
    }

    /// Keeps a secret here.
    pub(crate) fn keep(&mut self, name: SecretName, secret: Secret) {
        self.in_keyring.remove(&name);
        self.secrets.insert(name, secret);
    }

    /// Notes that a secret is in the keyring, and so no longer here. Says whether that is new.
    pub(crate) fn note_in_keyring(&mut self, name: SecretName) -> bool {
        let was_here = self.secrets.remove(&name).is_some();
        self.in_keyring.insert(name) || was_here
    }

    /// Forgets a secret of the file.
    pub(crate) fn remove_from_file(&mut self, name: &SecretName) -> bool {
        self.secrets.remove(name).is_some()
    }

    /// Forgets that a secret is in the keyring.
    pub(crate) fn remove_note(&mut self, name: &SecretName) -> bool {
        self.in_keyring.remove(name)
    }

    pub(super) fn parse(kind: FileKind, path: &Path, bytes: &[u8]) -> Result<Self, FileError> {
        let malformed = |error: &serde_json::Error| FileError::Malformed {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            remedy: kind.remedy(),
        };
        // The version first: what else a newer file holds may look different.
        let RawVersion { version } =
            serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
        if version > VERSION {
            return Err(FileError::NewerVersion {
                path: path.to_owned(),
                version,
            });
        }
        let raw: RawContent = serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
        let RawContent {
            secrets,
            in_keyring,
        } = raw;
        let secrets: BTreeMap<SecretName, Secret> = secrets
            .into_iter()
            .map(|(name, text)| (name.0, Secret::new(text)))
            .collect();
        let in_keyring = in_keyring
            .into_iter()
            .map(|name| name.0)
            .filter(|name| !secrets.contains_key(name))
            .collect();
        Ok(Self {
            secrets,
            in_keyring,
        })
    }

    pub(super) fn to_bytes(&self) -> Result<Zeroizing<Vec<u8>>, serde_json::Error> {
        let Self {
            secrets,
            in_keyring,
        } = self;
        let written = WrittenContent {
            version: VERSION,
            secrets: secrets
                .iter()
                .map(|(name, secret)| (name.as_str(), secret.expose()))
                .collect(),
            in_keyring: in_keyring.iter().map(SecretName::as_str).collect(),
        };
        let mut bytes = Zeroizing::new(serde_json::to_vec_pretty(&written)?);
        bytes.push(b'\n');
        Ok(bytes)
    }
}

#[derive(Deserialize)]
struct RawVersion {
    version: u64,
}

#[derive(Deserialize)]
struct RawContent {
    #[serde(default)]
    secrets: BTreeMap<RawName, String>,
    #[serde(default)]
    in_keyring: BTreeSet<RawName>,
}

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "String")]
struct RawName(SecretName);

impl TryFrom<String> for RawName {
    type Error = crate::secret::InvalidSecretName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

#[derive(Serialize)]
struct WrittenContent<'a> {
    version: u64,
    secrets: BTreeMap<&'a str, &'a str>,
    in_keyring: BTreeSet<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> SecretName {
        text.parse().unwrap()
    }

    fn parse(text: &str) -> Result<Content, FileError> {
        Content::parse(
            FileKind::Secrets,
            Path::new("secrets.json"),
            text.as_bytes(),
        )
    }

    #[test]
    fn what_is_written_can_be_read() {
        let mut content = Content::default();
        content.keep(name("a"), Secret::new("quote \" and\nline"));
        content.note_in_keyring(name("b"));
        let bytes = content.to_bytes().unwrap();
        let read = Content::parse(FileKind::Secrets, Path::new("secrets.json"), &bytes).unwrap();
        assert_eq!(
            read.secret(&name("a")).unwrap().expose(),
            "quote \" and\nline"
        );
        assert!(read.is_in_keyring(&name("b")) && !read.is_in_keyring(&name("a")));
        assert_eq!(read.names_in_keyring().collect::<Vec<_>>(), [&name("b")]);
    }

    #[test]
    fn a_name_is_where_it_was_set_last() {
        let mut content = Content::default();
        content.keep(name("a"), Secret::new("old"));
        assert!(content.note_in_keyring(name("a")));
        assert!(content.secret(&name("a")).is_none());
        assert!(!content.note_in_keyring(name("a")));
        content.keep(name("a"), Secret::new("new"));
        assert!(!content.is_in_keyring(&name("a")));
    }

    #[test]
    fn damage_is_told_by_place_and_without_values() {
        let cases = [
            "",
            "{",
            r#"{"version": "hunter2"}"#,
            r#"{"version": 1, "secrets": {"a": ["hunter2"]}}"#,
            r#"{"version": 1, "secrets": "hunter2"}"#,
            r#"{"version": 1, "in_keyring": ["hunter2 with space"]}"#,
        ];
        for text in cases {
            let error = parse(text).unwrap_err();
            assert!(matches!(error, FileError::Malformed { .. }), "{text}");
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }

    #[test]
    fn a_newer_version_is_left_alone() {
        let error = parse(r#"{"version": 2, "secrets": {"a": {"sealed": 1}}}"#).unwrap_err();
        assert!(matches!(error, FileError::NewerVersion { version: 2, .. }));
    }
}
