//! The gateway as a whole.

use crate::moment::Moment;
use crate::schema::{record, words};

words! {
    /// How clients show who they are.
    pub enum Authentication {
        /// They do not: every program of this machine is let in.
        Open = "open",
        /// By tokens of the gateway.
        Tokens = "tokens",
        /// By tokens of an authorization server.
        OAuth = "oauth",
    }
}

record! {
    /// The gateway, and how it is.
    pub struct Status {
        /// Its version.
        version: String,
        /// Its process.
        pid: u32,
        /// Its address.
        url: String,
        /// Where browsers find the dashboard.
        dashboard: Option<String>,
        /// Where it was started.
        directory: String,
        /// When it was started.
        started_at: Moment,
        /// For how long it has been running.
        uptime_seconds: u64,
        /// How many servers are in which state.
        servers: ServerCounts,
        /// How many sessions clients have.
        sessions: u64,
        /// How many calls are under way.
        calls_in_flight: u64,
        /// How clients show who they are.
        authentication: Authentication,
        /// When clients search for tools, as `tool_search` says it.
        tool_search: String,
        /// What is wrong in the files, in words.
        problems: Vec<String>,
    }
}

record! {
    /// How many servers are in which state.
    pub struct ServerCounts {
        /// They can be used.
        ready: u64,
        /// They are being started.
        starting: u64,
        /// They are being started for longer than anybody waits.
        slow: u64,
        /// They are being connected again.
        retrying: u64,
        /// They cannot be used.
        failed: u64,
        /// Somebody has to sign in.
        needs_auth: u64,
        /// They do not run.
        stopped: u64,
        /// They are switched off.
        disabled: u64,
        /// They wait for approval.
        pending: u64,
        /// Somebody has decided that they must not be used.
        rejected: u64,
        /// The organization does not allow them.
        blocked: u64,
        /// Their entries cannot be used.
        invalid: u64,
    }
}

/// What a house says of itself at once; the API counts the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The version of the gateway.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Its address.
    pub url: String,
    /// Where browsers find the dashboard, if anywhere.
    pub dashboard: Option<String>,
    /// Where it was started.
    pub directory: String,
    /// When it was started.
    pub started_at: Moment,
    /// How clients show who they are.
    pub authentication: Authentication,
    /// When clients search for tools, as `tool_search` says it.
    pub tool_search: String,
    /// How many processes of servers there are now.
    pub processes: u64,
}

record! {
    /// Whether the gateway is ready for clients.
    pub struct Readiness {
        /// Whether it is.
        ready: bool,
        /// What is waited for, if it is not.
        waiting_for: Vec<String>,
    }
}

record! {
    /// What all tools cost a model, in tokens by estimate.
    pub struct Budget {
        /// All together.
        total: u64,
        /// How many tokens models see, if that was configured.
        window: Option<u64>,
        /// When models search for tools because of what these cost; not there if they always do, or never.
        search: Option<SearchThreshold>,
        /// The most expensive first.
        servers: Vec<ServerBudget>,
    }
}

record! {
    /// When models search for tools by themselves.
    pub struct SearchThreshold {
        /// From this part of a context window on, in percent. It is counted as the tokens of the budget
        /// are, of which there are fewer than in the count that the setting is about.
        percent: f64,
        /// Only with a context window of at least so many tokens.
        least_window: u64,
    }
}

record! {
    /// What the tools of a server cost a model.
    pub struct ServerBudget {
        /// The server.
        name: String,
        /// In tokens by estimate.
        tokens: u64,
        /// How many tools that are.
        tools: u64,
    }
}

record! {
    /// The gateway is about to end.
    pub struct Stopping {
        /// What happens now, in words.
        message: String,
    }
}
