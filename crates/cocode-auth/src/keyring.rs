//! The keyring of the system: one way to reach it per system, one set of errors for all.
//!
//! Each operation reaches for the keyring anew. Nothing has to be kept alive, a keyring that is
//! restarted or comes late is found, and the first steps are the probe that tells whether there is
//! a keyring at all.

#[cfg(target_os = "macos")]
mod keychain;
#[cfg(not(target_os = "macos"))]
mod secret_service;

use std::error::Error;
use std::path::Path;
use std::time::Duration;

#[cfg(target_os = "macos")]
pub(crate) use keychain::{KIND, Keyring, OpenKeyring};
#[cfg(not(target_os = "macos"))]
pub(crate) use secret_service::{KIND, Keyring, OpenKeyring};

/// How things of cocode are marked in a keyring; the name of each is the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    /// What a user named and set.
    Secrets,
    /// What signing in brought. Marked in another way, so that no `keyring:NAME` can lead to it.
    Credentials,
}

impl Service {
    fn as_str(self) -> &'static str {
        match self {
            Self::Secrets => "cocode",
            Self::Credentials => "cocode-credentials",
        }
    }
}

/// How long a keyring may take to show that it is there.
const PROBE_LIMIT: Duration = Duration::from_secs(2);
/// How long a person may take to unlock the keyring.
const UNLOCK_LIMIT: Duration = Duration::from_mins(1);

/// Why the keyring of the system cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// The environment names no bus on which a keyring could be.
    #[error("there is no D-Bus session bus")]
    NoBus,
    /// The bus that the environment names does not answer.
    #[error("the D-Bus session bus cannot be reached")]
    BusUnreachable(#[source] BoxError),
    /// Nobody on the bus offers to keep secrets.
    #[error("no Secret Service answers on D-Bus")]
    NoService,
    /// There is nothing to put secrets into, and making it needs a person.
    #[error("it has no default keyring yet")]
    NoDefault,
    /// It is locked and was not unlocked.
    #[error("it is locked and could not be unlocked")]
    Locked,
    /// It does not answer in time.
    #[error("it did not {step} within {} seconds", after.as_secs())]
    TimedOut {
        /// What was waited for.
        step: &'static str,
        /// How long.
        after: Duration,
    },
    /// Somebody else put bytes there that are no text.
    #[error("what it holds under that name is not text")]
    NotText,
    /// Something else went wrong there.
    #[error("it failed to {step}")]
    Failed {
        /// What was tried.
        step: &'static str,
        /// What it said.
        #[source]
        source: BoxError,
    },
}

type BoxError = Box<dyn Error + Send + Sync>;

/// The address of the D-Bus session bus by the rules of its clients: what the variable
/// `DBUS_SESSION_BUS_ADDRESS` says, else the socket in `XDG_RUNTIME_DIR`.
pub fn session_bus_address(
    dbus_session_bus_address: Option<&str>,
    xdg_runtime_dir: Option<&Path>,
) -> Option<String> {
    if let Some(address) = dbus_session_bus_address.filter(|address| !address.is_empty()) {
        return Some(address.to_owned());
    }
    let directory = xdg_runtime_dir.filter(|directory| directory.is_absolute())?;
    let escaped: String = directory
        .join("bus")
        .to_str()?
        .bytes()
        .map(|byte| match char::from(byte) {
            plain @ ('a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '/' | '.') => {
                plain.to_string()
            }
            _ => format!("%{byte:02x}"),
        })
        .collect();
    Some(format!("unix:path={escaped}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bus_is_where_the_environment_says() {
        let check = |address: Option<&str>, directory: Option<&str>, expected: Option<&str>| {
            let found = session_bus_address(address, directory.map(Path::new));
            assert_eq!(found.as_deref(), expected);
        };
        check(Some("unix:path=/x"), Some("/run"), Some("unix:path=/x"));
        check(
            Some(""),
            Some("/run/user/1"),
            Some("unix:path=/run/user/1/bus"),
        );
        check(None, Some("/a b;c"), Some("unix:path=/a%20b%3bc/bus"));
        check(None, Some("relative"), None);
        check(None, None, None);
    }
}
