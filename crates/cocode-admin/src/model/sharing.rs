//! Who shares which servers: the clients of `cocode mcp serve`, and every instance of a server.

use crate::schema::record;

record! {
    /// Who shares which servers in this process.
    pub struct SharedServers {
        /// The process.
        pid: u32,
        /// Its version.
        version: String,
        /// Where `cocode mcp serve` finds it, unless another process has that place.
        socket: Option<String>,
        /// Its address, if it is a gateway and not only the daemon behind `cocode mcp serve`.
        url: Option<String>,
        /// For how long it has been running.
        seconds: u64,
        /// The clients of `cocode mcp serve`, in the order in which they came.
        fronts: Vec<Front>,
        /// The servers, by name; one name may be there several times.
        servers: Vec<Instance>,
    }
}

record! {
    /// A client of `cocode mcp serve`.
    pub struct Front {
        /// Its process, where that is known.
        pid: Option<u32>,
        /// Where it was started.
        directory: Option<String>,
        /// The one server that it sees as it is.
        server: Option<String>,
        /// The only servers that it wants, if it has named some.
        servers: Option<Vec<String>>,
        /// The profile that it has named.
        profile: Option<String>,
        /// When it searches for tools, if it was told.
        tool_search: Option<String>,
        /// For how long it has been there.
        seconds: u64,
    }
}

record! {
    /// A server that runs, or starts when it is needed. Those whose configuration differs, or which are
    /// used in other directories, are others.
    pub struct Instance {
        /// Its name.
        name: String,
        /// Tells servers of one name apart, as the configuration has them.
        fingerprint: String,
        /// How it is: `ready`, `starting`, `reconnecting`, `stopped`, `failed` and the like.
        state: String,
        /// How clients share it: `shared`, `one-at-a-time`, `per-session`.
        sharing: String,
        /// Why it is not simply shared.
        sharing_reason: Option<String>,
        /// The processes of the fronts that use it, or may.
        fronts: Vec<u32>,
        /// Where those were started who use it.
        directories: Vec<String>,
        /// How long it has been there.
        seconds: u64,
        /// How many requests are under way.
        in_flight: u64,
        /// How often it was connected anew.
        reconnects: u32,
        /// Its process.
        pid: Option<u32>,
        /// The protocol revision, once it is known.
        revision: Option<String>,
        /// What carries it.
        transport: Option<String>,
        /// How many tools it offers.
        tools: Option<u64>,
        /// How long it took to be ready.
        ready_milliseconds: Option<u64>,
        /// What is or was wrong with it.
        trouble: Option<String>,
    }
}

record! {
    /// How many servers were connected anew.
    pub struct Restarted {
        /// All of them.
        servers: u64,
        /// Those that had been stopped.
        stopped: u64,
    }
}

record! {
    /// Servers are shared by others, or are others, than before.
    pub struct SharedNews {
        /// How many fronts there are.
        fronts: u64,
        /// How many servers there are.
        servers: u64,
    }
}
