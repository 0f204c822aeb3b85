//! The sandbox of macOS: a Seatbelt profile for `sandbox-exec`.
//!
//! Seatbelt knows paths only. They are taken from the descriptors right before a program starts.

use std::fmt::Write as _;
use std::path::Path;

use super::{ConfineError, Confinement, ConfinementRules};

/// Rules that every program gets: its own processes, facts about the machine, and lookups of users and groups.
const BASE: &str = r#"(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow user-preference-read)
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership"))
(allow file-read* (subpath "/"))
(deny file-read-data (subpath "/dev"))
(allow file-read* file-write-data file-ioctl
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom"))
(allow file-read-data (subpath "/dev/fd"))
"#;

/// Network, with the lookups that it needs.
const NETWORK: &str = r#"(allow network*)
(allow system-socket)
(allow mach-lookup
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.trustd.agent")
  (global-name "com.apple.networkd"))
"#;

/// Set-user-ID and set-group-ID bits cannot be set.
const MODES: &str = "(deny file-write-setugid)\n";

/// The profile of a confinement. Later rules win over earlier ones.
pub(super) fn profile(confinement: &Confinement) -> Result<String, ConfineError> {
    let ConfinementRules {
        writable: _,
        temporary,
        protected,
        hidden,
        network,
    } = &*confinement.0;
    let mut profile = BASE.to_owned();
    let roots = confinement.roots()?;
    for (_root, path) in &roots {
        add(&mut profile, "allow file-write* (subpath", path)?;
    }
    for path in protected.iter().chain(hidden) {
        add(&mut profile, "deny file-write* (subpath", path)?;
        // A directory above it that is renamed would take it to a path without rules.
        let is_writable = |above: &&Path| roots.iter().any(|(_, root)| above.starts_with(root));
        for above in path.ancestors().skip(1).take_while(is_writable) {
            add(&mut profile, "deny file-write-unlink (literal", above)?;
        }
    }
    for path in hidden {
        add(&mut profile, "deny file-read-data (subpath", path)?;
    }
    if let Some(directory) = temporary {
        let path = directory.handle().current_path()?;
        add(&mut profile, "allow file-read* file-write* (subpath", &path)?;
    }
    profile.push_str(MODES);
    if *network {
        profile.push_str(NETWORK);
    }
    Ok(profile)
}

/// Adds one rule, given up to its path. A path that a string of the profile cannot hold is an error, not another path.
fn add(profile: &mut String, rule: &str, path: &Path) -> Result<(), ConfineError> {
    let text = path
        .to_str()
        .filter(|text| !text.chars().any(char::is_control));
    let text = text.ok_or_else(|| ConfineError::Open {
        path: path.to_owned(),
        source: std::io::Error::other(
            "the path is not printable UTF-8, so a Seatbelt profile cannot name it",
        ),
    })?;
    let quoted = text.replace('\\', r"\\").replace('"', "\\\"");
    // Writing to a string cannot fail.
    let _infallible = writeln!(profile, "({rule} \"{quoted}\"))");
    Ok(())
}

#[cfg(target_os = "macos")]
pub(crate) use system::{Ruleset, prepare, probe};

/// Starting programs by `sandbox-exec`.
#[cfg(target_os = "macos")]
mod system {
    use std::io;

    use super::super::{ConfineError, Confinement, Support};
    use super::profile;

    const LAUNCHER: &str = "/usr/bin/sandbox-exec";

    /// A complete profile.
    #[derive(Debug)]
    pub(crate) struct Ruleset(String);

    impl Ruleset {
        /// The program that starts another one in a sandbox, and its arguments before that one's.
        #[expect(clippy::unnecessary_wraps, reason = "other systems have none")]
        pub(crate) fn launcher(&self) -> Option<(&'static str, Vec<String>)> {
            Some((
                LAUNCHER,
                vec!["-p".to_owned(), self.0.clone(), "--".to_owned()],
            ))
        }

        #[expect(
            clippy::unused_self,
            clippy::unnecessary_wraps,
            reason = "the launcher confines the program"
        )]
        pub(crate) fn enter(&self) -> io::Result<()> {
            Ok(())
        }
    }

    pub(crate) fn probe() -> Support {
        if std::path::Path::new(LAUNCHER).exists() {
            Support::Seatbelt
        } else {
            Support::Missing
        }
    }

    pub(crate) fn prepare(
        confinement: &Confinement,
        support: Support,
    ) -> Result<Ruleset, ConfineError> {
        support.check()?;
        profile(confinement).map(Ruleset)
    }
}

#[cfg(test)]
#[path = "seatbelt_tests.rs"]
mod tests;
