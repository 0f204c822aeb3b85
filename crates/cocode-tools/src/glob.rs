//! Globs as `find` and `grep` take them.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use crate::limits::MAX_PATTERN_BYTES;
use crate::refusal::Refusal;
use crate::text::shown;

/// A glob. Without a slash it is about names at any depth, with one about paths relative to where
/// the search begins; `*` stays within a name and `**` does not.
#[derive(Debug)]
pub(crate) struct Glob {
    matcher: GlobMatcher,
    names_only: bool,
}

impl Glob {
    pub(crate) fn parse(text: &str) -> Result<Self, Refusal> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(Refusal::new(format!(
                "the glob is longer than {MAX_PATTERN_BYTES} bytes"
            )));
        }
        let pattern = text.strip_prefix("./").unwrap_or(text);
        let names_only = !pattern.contains('/');
        let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
        if pattern.is_empty() {
            return Err(Refusal::new("the glob is empty"));
        }
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .build()
            .map_err(|error| {
                Refusal::new(format!("invalid glob `{}`: {}", shown(text), error.kind()))
            })?;
        Ok(Self {
            matcher: glob.compile_matcher(),
            names_only,
        })
    }

    /// Whether a path, relative to where the search begins, is meant.
    pub(crate) fn matches(&self, path: &Path) -> bool {
        let subject = if self.names_only {
            path.file_name().map_or(path, Path::new)
        } else {
            path
        };
        self.matcher.is_match(subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(glob: &str, path: &str) -> bool {
        Glob::parse(glob).expect(glob).matches(Path::new(path))
    }

    #[test]
    fn globs_without_a_slash_are_about_names() {
        assert!(matches("*.rs", "a/b/c.rs"));
        assert!(matches("*.{rs,toml}", "Cargo.toml"));
        assert!(matches("[ab]?", "x/b1"));
        assert!(!matches("*.rs", "a.rs/b"));
    }

    #[test]
    fn globs_with_a_slash_are_about_paths() {
        assert!(matches("src/*.rs", "src/a.rs"));
        assert!(!matches("src/*.rs", "src/b/a.rs"));
        assert!(!matches("src/*.rs", "x/src/a.rs"));
        assert!(matches("src/**/*.rs", "src/a.rs"));
        assert!(matches("**/b/*", "a/b/c"));
        assert!(matches("./*.rs", "a.rs"));
        assert!(matches("/a.rs", "a.rs"));
        assert!(!matches("/a.rs", "b/a.rs"));
    }

    #[test]
    fn bad_globs_are_refused_with_a_reason() {
        let refusal = Glob::parse("a[").expect_err("unclosed").to_string();
        assert!(refusal.starts_with("invalid glob `a[`: "), "{refusal}");
        assert!(Glob::parse("").is_err());
        assert!(Glob::parse(&"a".repeat(MAX_PATTERN_BYTES + 1)).is_err());
    }
}
