//! Who is let in: signing in to the API, tokens, the sessions of clients, the audit log.

use cocode_wire::RawJson;

use crate::moment::Moment;
use crate::schema::record;
use crate::secret::Secret;
use crate::whole::Whole;

record! {
    /// A one-time code.
    pub body SignIn {
        /// The code that the gateway has printed. Case, spaces and hyphens do not matter.
        code: Secret where { "minLength": 1, "maxLength": 128 },
    }
}

record! {
    /// Whoever is signed in.
    pub struct SignedIn {
        /// Their name.
        name: String,
        /// What has to be sent in the header `X-Cocode-CSRF` with everything that changes something;
        /// only where a cookie says who asks.
        csrf: Option<Secret>,
        /// The version of the gateway.
        version: String,
        /// Whether they may use the rest of the API.
        is_admin: bool,
    }
}

record! {
    /// A code to sign in by, once.
    pub struct Code {
        /// The code.
        code: Secret,
        /// Until when it can be used.
        expires_at: Moment,
    }
}

record! {
    /// The tokens that let clients in.
    pub struct Tokens {
        /// By name.
        tokens: Vec<Token>,
    }
}

record! {
    /// A token, but for its text, which nobody knows any more.
    pub struct Token {
        /// The name of whoever brings it.
        name: String,
        /// Whether it opens this API.
        admin: bool,
        /// When it was made.
        created_at: Moment,
        /// When it was last used.
        last_used_at: Option<Moment>,
        /// Until when it is good.
        expires_at: Option<Moment>,
    }
}

record! {
    /// A token to make.
    pub body NewToken {
        /// The name of whoever will bring it, without spaces. `local` and `*` mean others already.
        name: String where {
            "minLength": 1, "maxLength": 255, "pattern": "^[^\\s\\x00-\\x1F\\x7F-\\x9F]+$",
            "not": { "enum": [".", "..", "*", "local"] }
        },
        /// Whether it opens this API.
        admin: Option<bool>,
        /// For how many days it is good; for ever unless given.
        expires_in_days: Option<Whole> where { "minimum": 1, "maximum": 36500 },
    }
}

record! {
    /// A token that was made.
    pub struct MadeToken {
        /// The name of whoever will bring it.
        name: String,
        /// Its text, which is told only now.
        token: Secret,
    }
}

record! {
    /// The sessions of clients.
    pub struct ClientSessions {
        /// The oldest first.
        sessions: Vec<ClientSession>,
    }
}

record! {
    /// A session of a client. Its id is its key, and told to nobody.
    pub struct ClientSession {
        /// Whose it is.
        principal: Option<String>,
        /// What it is with: all servers, or one by name.
        endpoint: String,
        /// What carries it.
        transport: String,
        /// The protocol revision.
        revision: Option<String>,
        /// What the client calls itself.
        client: Option<String>,
        /// How long ago it began.
        age_seconds: u64,
        /// How long ago it was last used.
        idle_seconds: u64,
    }
}

record! {
    /// The end of the audit log.
    pub struct AuditEntries {
        /// The newest first, each as it stands in the log.
        entries: Vec<RawJson>,
    }
}
