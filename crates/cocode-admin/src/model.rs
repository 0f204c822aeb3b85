//! The data of the API: what each route takes and gives. Their documentation is that of the API.

mod access;
mod calls;
mod general;
mod login;
mod news;
mod offers;
mod questions;
mod server;
mod sharing;

pub use access::{
    AuditEntries, ClientSession, ClientSessions, Code, MadeToken, NewToken, SignIn, SignedIn,
    Token, Tokens,
};
pub use calls::{
    Call, CallAnswer, CallProgress, CallState, CallWish, Calls, Latencies, Latency, PromptWish,
    ReadWish, ServerAnswer, Timing,
};
pub use general::{
    Authentication, Budget, Facts, Readiness, SearchThreshold, ServerBudget, ServerCounts, Status,
    Stopping,
};
pub use login::{Completion, Login, LoginState, LoginWish};
pub use news::{ConfigNews, Hello, LogNews, Missed, Removed, TokenChange, TokenNews, TrustNews};
pub use offers::{FoundTool, FoundTools, Prompts, Resources, ServerTool, ServerTools, Verdict};
pub use questions::{
    ConsentArgument, ConsentCall, Elicitation, ElicitationAction, ElicitationKind, ElicitationMode,
    ElicitationReply, ElicitationState, Elicitations, PendingTrust, Trust, TrustDecision,
    TrustKind, TrustState,
};
pub use server::{
    LogLine, LogStream, Logs, NewServer, Reason, RemoteTransport, Scope, Server, ServerInfo,
    ServerState, Servers,
};
pub use sharing::{Front, Instance, Restarted, SharedNews, SharedServers};
