//! What commands ask the daemon, and what it tells of itself: as data, for both ends.

use cocode_gateway::Sharing;
use serde::{Deserialize, Serialize};

/// What a command wants of the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// How everything is.
    Status,
    /// The same, and again whenever it is other than before.
    Watch,
    /// To connect anew to every server of this name. Answered with how many there are.
    Restart(String),
    /// To end. The connection ends when the daemon and its servers have.
    Stop,
}

/// How a daemon is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) pid: u32,
    pub(crate) version: String,
    pub(crate) socket: String,
    /// Where else it listens, if it is a gateway that somebody has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    pub(crate) seconds: u64,
    pub(crate) fronts: Vec<FrontStatus>,
    pub(crate) servers: Vec<InstanceReport>,
}

/// Somebody who is served.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FrontStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) directory: Option<String>,
    /// The one server that it sees as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    /// The only servers that it wants, if it has named some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) servers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<String>,
    /// Whether its client searches for tools, if it was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_search: Option<String>,
    pub(crate) seconds: u64,
}

impl FrontStatus {
    /// Which of the servers it serves.
    pub(crate) fn serves(&self) -> String {
        let servers = self.selects();
        match &self.tool_search {
            Some(mode) => format!("{servers}, tool search {mode}"),
            None => servers,
        }
    }

    fn selects(&self) -> String {
        match (&self.server, &self.profile) {
            (Some(server), _) => format!("{server}, as it is"),
            // What is named counts more than the profile.
            (None, _) if !self.servers.is_empty() => self.servers.join(","),
            (None, Some(profile)) => format!("profile {profile}"),
            (None, None) => "all".to_owned(),
        }
    }
}

/// A server that the daemon keeps.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstanceReport {
    pub(crate) name: String,
    /// Tells servers of one name apart, as the configuration has them.
    pub(crate) fingerprint: String,
    pub(crate) state: String,
    pub(crate) sharing: String,
    /// Why it is not simply shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sharing_reason: Option<String>,
    /// The processes of the fronts that use it, or may.
    pub(crate) fronts: Vec<i32>,
    pub(crate) directories: Vec<String>,
    pub(crate) seconds: u64,
    pub(crate) in_flight: usize,
    pub(crate) reconnects: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) transport: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ready_milliseconds: Option<u64>,
    /// What is or was wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<String>,
}

impl InstanceReport {
    /// How it is shared and why, unless it simply is.
    pub(crate) fn terms(&self) -> Option<String> {
        let Self {
            name,
            sharing,
            sharing_reason,
            ..
        } = self;
        let reason = sharing_reason.as_ref()?;
        Some(if sharing == Sharing::Catalog.as_str() {
            format!(
                "`{name}` runs for each session, and once to know what it offers, because {reason}"
            )
        } else {
            format!("`{name}` is {sharing} because {reason}")
        })
    }
}

/// How many servers were connected anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Restarted {
    pub(crate) servers: usize,
    /// How many of them had been stopped.
    pub(crate) stopped: usize,
}
