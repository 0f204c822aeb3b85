//! Starts the servers of the catalog, a few at once, and lists their tools.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cocode_client::{Session, SessionOptions, Target, Timeouts, Tool, baseline_environment, stdio};
use futures_util::{StreamExt as _, stream};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::harness::Scratch;

/// So many servers start at the same time.
const AT_ONCE: usize = 4;
/// A server may have so much time to start. Some load thousands of files.
const MAX_START: Duration = Duration::from_secs(90);

/// How a server is started.
#[derive(Debug, Deserialize)]
struct Entry {
    name: String,
    command: Vec<String>,
    env: std::collections::BTreeMap<String, String>,
    #[serde(rename = "minTools")]
    min_tools: usize,
}

/// A server and its tools.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) name: String,
    /// What it says about itself.
    pub(super) about: Option<String>,
    pub(super) tools: Vec<Tool>,
    /// Why tools cannot be used that it lists besides.
    pub(super) unusable: Vec<String>,
    pub(super) min_tools: usize,
}

/// Reads a file of the catalog.
pub(super) fn read<T: DeserializeOwned>(name: &str) -> T {
    let catalog = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/catalog");
    let text = std::fs::read(catalog.join(name)).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// Where `cargo xtask peers` installs.
fn peers() -> PathBuf {
    std::env::var_os("COCODE_PEERS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"),
        PathBuf::from,
    )
}

/// All servers of the catalog, in its order.
pub(super) fn all() -> Vec<Listed> {
    let entries: Vec<Entry> = read("servers.json");
    let scratch = Scratch::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let listing = stream::iter(entries)
        .map(|entry| Box::pin(list(entry, scratch.path())))
        .buffered(AT_ONCE);
    runtime.block_on(listing.collect())
}

async fn list(entry: Entry, scratch: &Path) -> Listed {
    let own = scratch.join(&entry.name);
    std::fs::create_dir(&own).unwrap();
    let peers = peers();
    let node = peers.join("npm/node_modules/node/bin/node");
    let filled = |text: &String| {
        let text = text.replace("{node}", node.to_str().unwrap());
        let text = text.replace("{peers}", peers.to_str().unwrap());
        OsString::from(text.replace("{scratch}", own.to_str().unwrap()))
    };
    let command: Vec<OsString> = entry.command.iter().map(filled).collect();
    for file in command.iter().map(Path::new) {
        let is_there = !file.starts_with(&peers) || file.is_file();
        assert!(
            is_there,
            "{} is missing: run `cargo xtask peers`",
            entry.name
        );
    }
    let (program, arguments) = command.split_first().unwrap();
    let mut environment = baseline_environment(std::env::vars_os());
    environment.retain(|(name, _)| name != "HOME");
    environment.push(("HOME".into(), own.clone().into()));
    let given = entry.env.iter();
    environment.extend(given.map(|(name, value)| (name.into(), filled(value))));
    let Target::Stdio(mut target) = stdio(program, arguments, environment) else {
        unreachable!("a program is asked for")
    };
    target.process.cwd = Some(own);
    let options = SessionOptions {
        timeouts: Timeouts {
            connect: MAX_START,
            // These are slow to start and no less legacy for it.
            probe: MAX_START,
            request: MAX_START,
            ..Timeouts::default()
        },
        ..SessionOptions::default()
    };
    let name = &entry.name;
    let connected = Session::connect(Target::Stdio(target), options).await;
    let session = connected.unwrap_or_else(|error| panic!("{name}: {error:?}"));
    let listed = session.tools().await;
    let listing = listed.unwrap_or_else(|error| panic!("{name}: {error:?}"));
    let about = session.server().instructions.clone();
    session.close().await;
    let incomplete = listing.incomplete.iter().map(ToString::to_string);
    let quarantined = listing.quarantined.iter();
    let quarantined = quarantined.map(|one| format!("{:?}: {}", one.name, one.reason));
    Listed {
        name: entry.name,
        about,
        unusable: quarantined.chain(incomplete).collect(),
        tools: listing.items,
        min_tools: entry.min_tools,
    }
}
