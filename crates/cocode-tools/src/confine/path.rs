//! Paths as callers write them, made relative to the root before the system sees them.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use crate::limits::MAX_PATH_BYTES;
use crate::refusal::Refusal;
use crate::text::shown;

/// A path relative to the root: no `.`, no `..`, nothing absolute. Empty means the root itself.
///
/// `..` is taken away together with the name before it, whatever that name is, so that a path
/// means the same on every system; one that leaves the root on its way is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inside {
    relative: PathBuf,
    shown: String,
}

impl Inside {
    /// Reads a path. An absolute one must begin with one of the prefixes.
    pub(crate) fn parse(text: &str, prefixes: &[PathBuf]) -> Result<Self, Refusal> {
        if text.len() > MAX_PATH_BYTES {
            return Err(Refusal::new(format!(
                "the path is longer than {MAX_PATH_BYTES} bytes"
            )));
        }
        if text.contains('\0') {
            return Err(Refusal::new("the path contains a NUL character"));
        }
        let asked = Path::new(text);
        let below = if asked.is_absolute() {
            prefixes
                .iter()
                .find_map(|prefix| asked.strip_prefix(prefix).ok())
                .ok_or_else(|| Refusal::outside(&shown(asked)))?
        } else {
            asked
        };
        let mut relative = PathBuf::new();
        for component in below.components() {
            match component {
                Component::Normal(name) => relative.push(name),
                Component::CurDir => {}
                Component::ParentDir => {
                    if !relative.pop() {
                        return Err(Refusal::outside(&shown(asked)));
                    }
                }
                Component::RootDir | Component::Prefix(_) => {
                    return Err(Refusal::outside(&shown(asked)));
                }
            }
        }
        Ok(Self::known(relative))
    }

    /// A path that came from the system: names alone, relative to the root.
    pub(crate) fn known(relative: impl Into<PathBuf>) -> Self {
        let relative = relative.into();
        let shown = if relative.as_os_str().is_empty() {
            ".".to_owned()
        } else {
            shown(&relative)
        };
        Self { relative, shown }
    }

    pub(crate) fn relative(&self) -> &Path {
        &self.relative
    }

    pub(crate) fn names(&self) -> impl DoubleEndedIterator<Item = OsString> + '_ {
        self.relative.iter().map(ToOwned::to_owned)
    }

    /// For people and models.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, String> {
        Inside::parse(text, &["/real/house".into(), "/link".into()])
            .map(|inside| inside.shown().to_owned())
            .map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn paths_are_made_relative_to_the_root() {
        for (text, expected) in [
            ("a/b", "a/b"),
            ("./a//b/", "a/b"),
            ("", "."),
            (".", "."),
            ("a/..", "."),
            ("a/../b/./c", "b/c"),
            ("/real/house", "."),
            ("/real/house/a", "a"),
            ("/link/a/../b", "b"),
            ("~", "~"),
            ("...", "..."),
            ("a\\..\\b", "a\\..\\b"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn paths_that_leave_the_root_are_refused() {
        for text in [
            "..",
            "../house/a",
            "a/../../b",
            "/",
            "/etc/passwd",
            "/real",
            "/real/housing/a",
            "/real/house/../other",
            "/real/other/../house/a",
            "/link/../etc/passwd",
            "/proc/self/root",
            "//etc/passwd",
        ] {
            let refusal = parse(text).expect_err(text);
            assert!(refusal.contains("outside the workspace"), "{refusal}");
        }
    }

    #[test]
    fn names_that_no_system_takes_are_refused() {
        assert_eq!(
            parse("a\0b").expect_err("NUL"),
            "the path contains a NUL character"
        );
        assert_eq!(
            parse(&"a/".repeat(3000)).expect_err("long"),
            "the path is longer than 4096 bytes"
        );
    }

    #[test]
    fn control_characters_are_not_shown_as_they_are() {
        assert_eq!(parse("a\nb\u{1b}[m").as_deref(), Ok("a\\nb\\u{1b}[m"));
    }
}
