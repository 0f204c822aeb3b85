//! What waits for a person: entries to approve, and questions of servers.

use cocode_wire::RawJson;

use crate::moment::Moment;
use crate::schema::{record, words};

record! {
    /// The entries that wait for approval.
    pub struct Trust {
        /// By name.
        pending: Vec<PendingTrust>,
    }
}

record! {
    /// An entry that waits for approval.
    pub struct PendingTrust {
        /// The name of the server.
        name: String,
        /// Whose entry it is.
        scope: String,
        /// The file that it stands in.
        file: String,
        /// Names what would be approved: exactly this text.
        hash: String,
        /// Whether nothing was approved under this name before.
        is_new: bool,
        /// What was approved before.
        before: Option<String>,
        /// What would be approved, with secrets masked.
        after: String,
    }
}

record! {
    /// What is approved or rejected.
    pub body TrustDecision {
        /// The `hash` of what was shown. If the entry has changed since, nothing is decided.
        hash: String where { "minLength": 1, "maxLength": 256 },
    }
}

words! {
    /// What became of an entry.
    pub enum TrustState {
        /// It waits for approval.
        Pending = "pending",
        /// It was approved.
        Approved = "approved",
        /// It was rejected.
        Rejected = "rejected",
    }
}

words! {
    /// How a question is answered.
    pub enum ElicitationMode {
        /// By filling in a form.
        Form = "form",
        /// By visiting an address.
        Url = "url",
    }
}

words! {
    /// What became of a question.
    pub enum ElicitationState {
        /// It waits for an answer.
        Pending = "pending",
        /// It was answered.
        Answered = "answered",
        /// Nobody answered in time, or nobody wants the answer any more.
        Expired = "expired",
    }
}

record! {
    /// The questions that wait for an answer.
    pub struct Elicitations {
        /// The oldest first.
        elicitations: Vec<Elicitation>,
    }
}

record! {
    /// A question of a server for a person.
    pub struct Elicitation {
        /// Names it when it is answered.
        id: String,
        /// When it was asked.
        at: Moment,
        /// The server that asks.
        server: String,
        /// Whose call it is about.
        principal: Option<String>,
        /// Which tool it is about.
        tool: Option<String>,
        /// How it is answered.
        mode: ElicitationMode,
        /// The question, in the words of the server.
        message: String,
        /// The JSON Schema of the form.
        requested_schema: Option<RawJson>,
        /// The address to visit.
        url: Option<String>,
        /// Until when it can be answered.
        deadline_at: Moment,
        /// What became of it.
        state: ElicitationState,
    }
}

words! {
    /// What a person does about a question.
    pub enum ElicitationAction {
        /// Answers it.
        Accept = "accept",
        /// Says no.
        Decline = "decline",
        /// Says nothing.
        Cancel = "cancel",
    }
}

record! {
    /// The answer to a question.
    pub body ElicitationReply {
        /// What the person does.
        action: ElicitationAction,
        /// The form as it was filled in; only with `accept`.
        content: Option<RawJson> where { "type": "object" },
    }
}
