//! What waits for a person: entries to approve, and questions of servers.

use cocode_wire::RawJson;

use crate::moment::Moment;
use crate::schema::{record, words};

record! {
    /// The entries that wait for approval.
    pub struct Trust {
        /// Those that nobody has decided about, by name.
        pending: Vec<PendingTrust>,
        /// Those that were rejected, and can be approved after all, by name.
        rejected: Vec<PendingTrust>,
    }
}

record! {
    /// An entry that waits for approval.
    pub struct PendingTrust {
        /// The name of the server, or of the file if it is one of settings.
        name: String,
        /// What it is.
        kind: TrustKind,
        /// Whose entry it is.
        scope: String,
        /// The file that it stands in.
        file: String,
        /// Names what would be approved: exactly this text.
        hash: String,
        /// Whether nothing was approved under this name before.
        is_new: bool,
        /// Whether it was rejected as it is now.
        is_rejected: bool,
        /// What was approved before. Of settings no more than a hash is kept, so it is never there for them.
        before: Option<String>,
        /// What would be approved, with secrets masked.
        after: String,
    }
}

words! {
    /// What waits for approval.
    pub enum TrustKind {
        /// The entry of a server.
        Server = "server",
        /// A file of settings.
        Settings = "settings",
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
    /// Whose question it is.
    pub enum ElicitationKind {
        /// A server wants to know something.
        Elicitation = "elicitation",
        /// A rule of the gateway wants somebody to allow a call.
        Consent = "consent",
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
    /// A call that is made once somebody allows it.
    pub struct ConsentCall {
        /// What the client that wants to make it calls itself.
        client: Option<String>,
        /// All that the tool would be called with.
        arguments: Vec<ConsentArgument>,
        /// Why somebody is asked: the rule, and where it is written.
        reason: Option<String>,
    }
}

record! {
    /// An argument of a call. A name may be there twice, if the client wrote it so.
    pub struct ConsentArgument {
        /// The name.
        name: String,
        /// The value as JSON text, as the client wrote it; what could not be seen in it is escaped.
        value: String,
    }
}

record! {
    /// A question for a person.
    pub struct Elicitation {
        /// Names it when it is answered.
        id: String,
        /// When it was asked.
        at: Moment,
        /// Whose question it is.
        kind: ElicitationKind,
        /// The server that asks, or that is to be called.
        server: String,
        /// Whose call it is about.
        principal: Option<String>,
        /// Which tool it is about.
        tool: Option<String>,
        /// How it is answered.
        mode: ElicitationMode,
        /// The question, in the words of the server; in those of the gateway if it is about a consent.
        message: String,
        /// What would be allowed; only with `consent`.
        consent: Option<ConsentCall>,
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
