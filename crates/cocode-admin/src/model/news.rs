//! What is told as it happens, beside servers, calls and questions, which are told as they are.

use crate::moment::Moment;
use crate::schema::{record, words};

use super::questions::TrustState;
use super::server::LogStream;

record! {
    /// The first event of every stream.
    pub struct Hello {
        /// The version of the gateway.
        version: String,
        /// When the stream began.
        at: Moment,
    }
}

record! {
    /// Events were lost for a listener that was too slow, or away for too long: what it knows has to be
    /// read anew.
    pub struct Missed {
        /// How many at least.
        missed: u64,
    }
}

record! {
    /// A server is gone. Told by an event `server`, in place of how it is.
    pub struct Removed {
        /// Its name.
        name: String,
        /// Always true.
        removed: bool,
    }
}

record! {
    /// Something about an entry that needs approval.
    pub struct TrustNews {
        /// The name of the server.
        name: String,
        /// What became of the entry.
        state: TrustState,
    }
}

words! {
    /// What became of a token.
    pub enum TokenChange {
        /// It was made.
        Added = "added",
        /// It is not good any more.
        Revoked = "revoked",
    }
}

record! {
    /// Something about a token.
    pub struct TokenNews {
        /// Its name.
        name: String,
        /// What became of it.
        change: TokenChange,
    }
}

record! {
    /// The configuration was read anew.
    pub struct ConfigNews {
        /// What is different now, in words.
        changes: Vec<String>,
        /// What is wrong with it, in words.
        problems: Vec<String>,
    }
}

record! {
    /// A server has written to its log.
    pub struct LogNews {
        /// The server.
        server: String,
        /// When.
        at: Moment,
        /// Where the line comes from.
        stream: LogStream,
        /// How serious it is, where that was said.
        level: Option<String>,
        /// The line.
        text: String,
    }
}
