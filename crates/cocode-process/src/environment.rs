//! The part of an environment that every child may see. The caller brings the variables: this
//! crate never reads the environment of the own process.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

/// The variables a program needs to find its tools, its user and its language, and no more: what
/// else the own environment holds (keys, tokens, sockets of agents) stays here.
const BASELINE: [&str; 10] = [
    "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
];

/// Keeps the variables that every child may see, in their order.
///
/// Those are `PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL`, `TERM`, `TMPDIR`, `TZ`, `LANG`,
/// `LANGUAGE` and all of `LC_*`. A value that starts with `()` is dropped: that is how shells
/// export functions, and a shell in the child would run it.
pub fn baseline_environment(
    vars: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    vars.into_iter()
        .filter(|(name, value)| is_baseline(name) && !value.as_bytes().starts_with(b"()"))
        .collect()
}

/// Whether [`baseline_environment`] keeps a variable of this name.
pub fn is_baseline(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"LC_") || BASELINE.iter().any(|known| name == *known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(vars: &[(&str, &str)], expect: &[&str]) {
        let vars = vars
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let kept: Vec<_> = baseline_environment(vars)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(kept, expect);
    }

    #[test]
    fn keeps_what_programs_expect_and_drops_secrets() {
        check(
            &[
                ("PATH", "/bin"),
                ("AWS_SECRET_ACCESS_KEY", "x"),
                ("HOME", "/h"),
                ("LC_ALL", "C"),
            ],
            &["PATH", "HOME", "LC_ALL"],
        );
    }

    #[test]
    fn names_match_exactly() {
        check(
            &[
                ("PATHEXT", "x"),
                ("path", "x"),
                ("LANGUAGE", "de"),
                ("LC", "x"),
            ],
            &["LANGUAGE"],
        );
    }

    #[test]
    fn exported_shell_functions_are_dropped() {
        check(
            &[
                ("TERM", "() { :; }; touch /pwned"),
                ("LC_X", "()"),
                ("TZ", "UTC"),
            ],
            &["TZ"],
        );
    }
}
