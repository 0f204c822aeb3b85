//! Servers: how they are, how one is added, what they log.

use std::collections::BTreeMap;

use crate::moment::Moment;
use crate::schema::{record, words};
use crate::secret::Secret;

words! {
    /// How a server is.
    pub enum ServerState {
        /// It can be used.
        Ready = "ready",
        /// It is being started, or contacted.
        Starting = "starting",
        /// It is being started for longer than anybody waits.
        Slow = "slow",
        /// The connection was lost, and is being made again.
        Retrying = "retrying",
        /// It cannot be used; `reason` says why.
        Failed = "failed",
        /// Somebody has to sign in.
        NeedsAuth = "needs-auth",
        /// The user has to register an OAuth client first.
        NeedsClientRegistration = "needs-client-registration",
        /// It does not run. The first call starts it.
        Stopped = "stopped",
        /// It is switched off.
        Disabled = "disabled",
        /// It stands in a file that nobody has approved yet.
        Pending = "pending",
        /// It stands in a file that somebody has looked at, and did not approve.
        Rejected = "rejected",
        /// The organization does not allow it.
        Blocked = "blocked",
        /// Its entry cannot be used; `reason` says why.
        Invalid = "invalid",
    }
}

record! {
    /// All servers.
    pub struct Servers {
        /// By name.
        servers: Vec<Server>,
    }
}

record! {
    /// A server, and how it is.
    pub struct Server {
        /// Its name.
        name: String,
        /// How it is.
        state: ServerState,
        /// Why it is not ready, if something is wrong.
        reason: Option<Reason>,
        /// What carries it, such as `stdio` or `http`.
        transport: String,
        /// The command line or the address, with secrets masked.
        target: String,
        /// Whose entry it is: `user`, `local`, `project`, `managed`, `built-in` and the like.
        scope: String,
        /// The file that its entry stands in.
        file: Option<String>,
        /// What it is for.
        description: Option<String>,
        /// `modern` or `legacy`, once it is known.
        era: Option<String>,
        /// The protocol revision, once it is known.
        revision: Option<String>,
        /// What the server says of itself.
        server_info: Option<ServerInfo>,
        /// How many tools it offers.
        tools: u64,
        /// How many of its tools are hidden by filters and rules.
        hidden_tools: u64,
        /// How many resources it offers, if it was asked.
        resources: Option<u64>,
        /// How many prompts it offers, if it was asked.
        prompts: Option<u64>,
        /// What its tools cost a model, in tokens by estimate.
        tokens: u64,
        /// How clients share it: `shared`, `one-at-a-time`, `per-session`.
        sharing: String,
        /// Why it is not simply shared.
        sharing_reason: Option<String>,
        /// Its process, if there is one.
        pid: Option<u32>,
        /// For how long it has been connected.
        uptime_seconds: Option<u64>,
        /// How long it took until it could be used.
        ready_milliseconds: Option<f64>,
        /// How often it was connected again after a loss.
        reconnects: u64,
        /// Requests that wait for its answers.
        in_flight: u64,
        /// Whether signing in is possible and of use.
        can_login: bool,
        /// Whether credentials for it are stored.
        is_signed_in: Option<bool>,
        /// Whether it is part of the gateway itself.
        is_built_in: bool,
    }
}

record! {
    /// What is wrong with a server.
    pub struct Reason {
        /// A code that programs can compare; each is explained by `cocode explain`.
        code: String,
        /// What is wrong, in a sentence.
        message: String,
        /// What could be done about it.
        hints: Vec<String>,
        /// What the server last wrote to its standard error.
        stderr: Vec<String>,
    }
}

record! {
    /// What a server says of itself.
    pub struct ServerInfo {
        /// Its own name for itself.
        name: String,
        /// Its version.
        version: String,
        /// A name for people.
        title: Option<String>,
    }
}

words! {
    /// Whose file an entry is written to.
    pub enum Scope {
        /// The user's, for all projects.
        User = "user",
        /// The user's, for this project.
        Local = "local",
        /// The project's, which is shared with others.
        Project = "project",
    }
}

words! {
    /// How a server at an address is spoken with.
    pub enum RemoteTransport {
        /// Streamable HTTP.
        Http = "http",
        /// HTTP with server-sent events, of revision 2024-11-05.
        Sse = "sse",
        /// WebSocket.
        WebSocket = "ws",
    }
}

record! {
    /// A server to add: either `command` or `url` has to be given.
    pub body NewServer where {
        "oneOf": [
            {
                "required": ["command"],
                "properties": { "url": false, "headers": false, "transport": false }
            },
            {
                "required": ["url"],
                "properties": { "command": false, "args": false, "env": false, "cwd": false }
            }
        ]
    } {
        /// Its name, which no other server has.
        name: String where {
            "minLength": 1, "maxLength": 128, "pattern": "^[^\\x00-\\x1F\\x7F-\\x9F]+$",
            "not": { "enum": [".", ".."] }
        },
        /// Whose file it is written to; `user` unless given.
        scope: Option<Scope>,
        /// The program to start.
        command: Option<String> where { "minLength": 1, "maxLength": 4096 },
        /// The arguments of the program.
        args: Option<Vec<String>> where { "maxItems": 256 },
        /// Variables of the program. `${NAME}` and references to secrets stay as they are written.
        env: Option<BTreeMap<String, Secret>> where { "maxProperties": 256 },
        /// Where the program is started.
        cwd: Option<String> where { "minLength": 1, "maxLength": 4096 },
        /// The address of the server.
        url: Option<String> where { "minLength": 1, "maxLength": 4096 },
        /// Headers of every request to the address.
        headers: Option<BTreeMap<String, Secret>> where { "maxProperties": 256 },
        /// How the server at the address is spoken with; found out unless given.
        transport: Option<RemoteTransport>,
        /// What it is for.
        description: Option<String> where { "maxLength": 4096 },
    }
}

words! {
    /// Where a line of a log comes from.
    pub enum LogStream {
        /// The server's standard error.
        Stderr = "stderr",
        /// A log message of the protocol.
        Log = "log",
        /// A change of its state.
        State = "state",
    }
}

record! {
    /// The last lines of the log of a server.
    pub struct Logs {
        /// Oldest first.
        lines: Vec<LogLine>,
    }
}

record! {
    /// A line of the log of a server.
    pub struct LogLine {
        /// When it was written.
        at: Moment,
        /// Where it comes from.
        stream: LogStream,
        /// How serious it is, where that was said.
        level: Option<String>,
        /// The line.
        text: String,
    }
}
