//! Signing in at a server.

use crate::schema::{record, words};
use crate::secret::Secret;

record! {
    /// How to sign in.
    pub body LoginWish {
        /// Whether to answer only when it is over, within five minutes.
        wait: Option<bool>,
        /// What to ask for; what the server wants unless given.
        scopes: Option<Vec<String>> where { "maxItems": 64 },
    }
}

words! {
    /// How far a login is.
    pub enum LoginState {
        /// Somebody has to visit `authorizationUrl`.
        Waiting = "waiting",
        /// It worked.
        Done = "done",
        /// It did not work; `message` says why.
        Failed = "failed",
    }
}

record! {
    /// A login, and how far it is.
    pub struct Login {
        /// Tells logins apart.
        id: String,
        /// How far it is.
        state: LoginState,
        /// Where to send the person who signs in.
        authorization_url: Option<String>,
        /// What came of it, in words.
        message: Option<String>,
    }
}

record! {
    /// What came back from the authorization server: the whole address that the browser was sent to, or
    /// the two values that matter of it.
    pub body Completion where {
        "oneOf": [
            { "required": ["redirect"], "properties": { "code": false, "state": false } },
            { "required": ["code", "state"], "properties": { "redirect": false } }
        ]
    } {
        /// The address that the browser was sent to.
        redirect: Option<Secret> where { "minLength": 1, "maxLength": 16384 },
        /// The code in it.
        code: Option<Secret> where { "minLength": 1, "maxLength": 8192 },
        /// The state in it.
        state: Option<Secret> where { "minLength": 1, "maxLength": 8192 },
    }
}
