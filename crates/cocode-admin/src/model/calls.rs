//! Calls: what is called, what came of it, and how long that took.

use std::collections::BTreeMap;

use cocode_wire::RawJson;

use crate::moment::Moment;
use crate::schema::{record, words};
use crate::whole::Whole;

record! {
    /// A call to make.
    pub body CallWish {
        /// The name of the tool at its server.
        tool: String where { "maxLength": 4096 },
        /// Its arguments; none unless given.
        arguments: Option<RawJson> where { "type": "object" },
        /// How long to wait for the result; as the server's entry says unless given.
        timeout_seconds: Option<Whole> where { "minimum": 1, "maximum": 3600 },
    }
}

record! {
    /// What a call gave.
    pub struct CallAnswer {
        /// The result as the server sent it. It may say that the tool failed (`isError`).
        result: RawJson,
        /// How long it took.
        milliseconds: f64,
    }
}

record! {
    /// A resource to read.
    pub body ReadWish {
        /// Its address.
        uri: String where { "minLength": 1, "maxLength": 16384 },
    }
}

record! {
    /// A prompt to get.
    pub body PromptWish {
        /// Its name at its server.
        name: String where { "minLength": 1, "maxLength": 4096 },
        /// Its arguments; none unless given.
        arguments: Option<BTreeMap<String, String>> where { "maxProperties": 256 },
    }
}

record! {
    /// What a server answered.
    pub struct ServerAnswer {
        /// The result as the server sent it.
        result: RawJson,
    }
}

words! {
    /// What became of a call.
    pub enum CallState {
        /// It is under way.
        Running = "running",
        /// It gave a result.
        Ok = "ok",
        /// It gave a result that says that the tool failed.
        ToolError = "tool-error",
        /// It gave no result but an error.
        Error = "error",
        /// Whoever made it does not want it any more.
        Cancelled = "cancelled",
        /// Rules, limits or a person did not let it through.
        Denied = "denied",
    }
}

record! {
    /// The calls of late.
    pub struct Calls {
        /// The newest first.
        calls: Vec<Call>,
    }
}

record! {
    /// Something that somebody had a server do.
    pub struct Call {
        /// Tells calls apart.
        id: String,
        /// When it began.
        at: Moment,
        /// Who made it.
        principal: String,
        /// The server; empty if none has what was asked for.
        server: String,
        /// The method, such as `tools/call`.
        method: String,
        /// The name of the tool or prompt, or the address of the resource.
        name: String,
        /// What became of it.
        state: CallState,
        /// How long it took, once it is over.
        milliseconds: Option<f64>,
        /// How large the result is.
        bytes: Option<u64>,
        /// What went wrong.
        error: Option<String>,
        /// How far it is.
        progress: Option<CallProgress>,
    }
}

record! {
    /// How far a call is.
    pub struct CallProgress {
        /// How much is done.
        progress: f64,
        /// How much there is to do, where that is known.
        total: Option<f64>,
        /// What is being done.
        message: Option<String>,
    }
}

record! {
    /// How long calls take.
    pub struct Latencies {
        /// By name of the server.
        servers: Vec<Latency>,
    }
}

record! {
    /// How long calls of a server take.
    pub struct Latency {
        /// The server.
        name: String,
        /// How many calls have ended since the gateway began.
        count: u64,
        /// How many of them failed.
        errors: u64,
        /// Half of the calls of late took no longer, in milliseconds.
        p50: Option<f64>,
        /// Of a hundred calls of late, 95 took no longer, in milliseconds.
        p95: Option<f64>,
        /// Of a hundred calls of late, 99 took no longer, in milliseconds.
        p99: Option<f64>,
        /// The calls of late, the oldest first.
        recent: Vec<Timing>,
    }
}

record! {
    /// How long one call took.
    pub struct Timing {
        /// When it ended.
        at: Moment,
        /// How long it took.
        milliseconds: f64,
        /// Whether it went well.
        ok: bool,
    }
}
