//! Secrets against the real system: files, processes, shells, buses.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of tests fail by panicking"
)]

mod concurrency;
mod file_store;
#[cfg(target_os = "linux")]
mod keyring;
mod references;
#[cfg(target_os = "linux")]
mod slow_command;
mod vault;
#[cfg(target_os = "linux")]
mod vault_keyring;
mod vault_processes;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use cocode_auth::{Secret, SecretName, SecretStore, StoreChoice, StoreOptions};

/// Where the tools of a system are; tests do not read their environment.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A directory that does not exist yet, in a place for this test alone.
fn fresh_directory(test: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("auth-{test}"));
    if directory.exists() {
        fs::remove_dir_all(&directory).unwrap();
    }
    directory
}

fn store(choice: StoreChoice, directory: &Path, session_bus: Option<&str>) -> SecretStore {
    SecretStore::new(StoreOptions {
        choice,
        directory: directory.to_owned(),
        session_bus: session_bus.map(str::to_owned),
    })
}

fn file_store(directory: &Path) -> SecretStore {
    store(StoreChoice::File, directory, None)
}

fn name(text: &str) -> SecretName {
    text.parse().unwrap()
}

async fn get(store: &SecretStore, wanted: &str) -> Option<String> {
    let secret = store.get(&name(wanted)).await.unwrap();
    secret.map(|secret| secret.expose().to_owned())
}

async fn set(store: &SecretStore, wanted: &str, text: &str) -> cocode_auth::Place {
    store.set(&name(wanted), &Secret::new(text)).await.unwrap()
}

/// The error and its causes, as the binary prints them, and all that debug output tells.
fn shown(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    format!("{text} [{error:?}]")
}
