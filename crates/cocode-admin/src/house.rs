//! What the API needs of whoever runs it. It asks; the house does, or refuses.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use cocode_wire::RawJson;

use crate::model::{
    Budget, CallProgress, CallWish, ClientSession, Completion, Facts, FoundTool, LogLine, Login,
    MadeToken, NewServer, NewToken, PendingTrust, PromptWish, Prompts, Readiness, Resources,
    Restarted, Server, ServerTool, SharedServers, Token,
};
use crate::refusal::Refusal;

/// Something that takes a while and may be refused. Dropping it means that nobody wants it any more.
pub type Work<'a, T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send + 'a>>;

/// Who asks the house for something, as the API has found out. They are administrators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Their name, for the audit log.
    pub name: Arc<str>,
    /// How they have shown who they are.
    pub by: Credential,
}

/// How somebody has shown who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// By the token of an administrator.
    Bearer,
    /// By a cookie that was given for a one-time code.
    Cookie,
    /// By the way they came, which only the user of the gateway has.
    Local,
}

/// Something that the API does by itself, for the audit log.
#[derive(Clone, Copy, Debug)]
pub struct Act<'a> {
    /// What it is, such as `sign-in`.
    pub method: &'static str,
    /// Who does it, if they have shown who they are.
    pub by: Option<&'a Caller>,
    /// The server that it is about.
    pub server: Option<&'a str>,
    /// What else it is about.
    pub name: Option<&'a str>,
}

/// Something that will be written down. Dropped before its end, it was given up.
pub trait Record: Send {
    /// It was done, or refused.
    fn ended(self: Box<Self>, is_done: bool);

    /// It was not even tried: nothing is written.
    fn forget(self: Box<Self>);
}

/// What is done with a server as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Switches it on, in the configuration.
    Enable,
    /// Switches it off, in the configuration.
    Disable,
    /// Connects now, if it is not connected.
    Connect,
    /// Ends the connection, until somebody needs it.
    Disconnect,
    /// Connects anew.
    Restart,
}

/// What a person has decided about an entry that waits for approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may be used.
    Approve,
    /// It must not be used.
    Reject,
}

/// Something that happens during a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallNews {
    /// It came further.
    Progress(CallProgress),
    /// The server has logged something.
    Log(LogLine),
}

/// Hears what happens during a call. Telling takes no time, and what comes too fast is dropped.
#[derive(Clone)]
pub struct CallListener(Arc<dyn Fn(CallNews) + Send + Sync>);

impl CallListener {
    /// Somebody who wants to know.
    pub fn new(hear: impl Fn(CallNews) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    /// Somebody who does not.
    pub fn deaf() -> Self {
        Self::new(drop)
    }

    /// Tells something.
    pub fn tell(&self, news: CallNews) {
        (self.0)(news);
    }
}

impl fmt::Debug for CallListener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CallListener")
    }
}

/// A gateway, from the side of those who look after it.
///
/// `name` is that of a server as it stands in the path, whether there is such a server or not. What is
/// refused with [`RefusalStatus::Unknown`](crate::RefusalStatus::Unknown) is answered with status 404,
/// and so on. Every method answers within the bounds that the house has for it; waiting longer than
/// that is given up by dropping the future.
pub trait House: Send + Sync + 'static {
    /// What can be told at once.
    fn facts(&self) -> Facts;

    /// Whether clients can be served.
    fn readiness(&self) -> Readiness;

    /// What keeps it from working as it should at this moment, besides what is wrong in its files.
    fn troubles(&self) -> Vec<String> {
        Vec::new()
    }

    /// All servers, by name, whatever their state.
    fn servers(&self) -> Work<'_, Vec<Server>>;

    /// One server.
    fn server<'a>(&'a self, name: &'a str) -> Work<'a, Server>;

    /// Writes a new server into the configuration. A name that is taken is a conflict.
    fn add_server<'a>(&'a self, by: &'a Caller, wanted: NewServer) -> Work<'a, Server>;

    /// Takes a server out of the configuration.
    fn remove_server<'a>(&'a self, by: &'a Caller, name: &'a str) -> Work<'a, ()>;

    /// Does something with a server as a whole, and says how it is then.
    fn switch_server<'a>(
        &'a self,
        by: &'a Caller,
        name: &'a str,
        switch: Switch,
    ) -> Work<'a, Server>;

    /// Who shares which servers.
    fn shared(&self) -> Work<'_, SharedServers>;

    /// Connects anew to every server of a name, whoever uses it, and says how many there are.
    fn restart_shared<'a>(&'a self, by: &'a Caller, name: &'a str) -> Work<'a, Restarted>;

    /// Begins to sign in at a server, or says how far the login is that has begun already.
    fn login<'a>(
        &'a self,
        by: &'a Caller,
        name: &'a str,
        scopes: Option<Vec<String>>,
    ) -> Work<'a, Login>;

    /// How far the last login at a server is.
    fn login_state<'a>(&'a self, name: &'a str) -> Work<'a, Login>;

    /// Answers when the last login at a server does not wait any more.
    fn login_over<'a>(&'a self, name: &'a str) -> Work<'a, Login>;

    /// Ends a login with what the authorization server has sent back.
    fn complete_login<'a>(
        &'a self,
        by: &'a Caller,
        name: &'a str,
        completion: Completion,
    ) -> Work<'a, Login>;

    /// Forgets the credentials for a server.
    fn drop_credentials<'a>(&'a self, by: &'a Caller, name: &'a str) -> Work<'a, ()>;

    /// The tools of a server, those that clients do not see included.
    fn tools<'a>(&'a self, name: &'a str) -> Work<'a, Vec<ServerTool>>;

    /// The resources of a server and their templates.
    fn resources<'a>(&'a self, name: &'a str) -> Work<'a, Resources>;

    /// The prompts of a server.
    fn prompts<'a>(&'a self, name: &'a str) -> Work<'a, Prompts>;

    /// Calls a tool, and gives the result as the server sent it, also if it says that the tool failed.
    fn call<'a>(
        &'a self,
        by: &'a Caller,
        name: &'a str,
        wish: CallWish,
        listener: CallListener,
    ) -> Work<'a, RawJson>;

    /// Reads a resource.
    fn read<'a>(&'a self, by: &'a Caller, name: &'a str, uri: String) -> Work<'a, RawJson>;

    /// Gets a prompt.
    fn prompt<'a>(&'a self, by: &'a Caller, name: &'a str, wish: PromptWish) -> Work<'a, RawJson>;

    /// The last lines of the log of a server, the oldest first.
    fn logs<'a>(&'a self, name: &'a str, lines: usize) -> Work<'a, Vec<LogLine>>;

    /// The tools of all servers that fit a query best, or the first ones where there is none.
    fn search_tools<'a>(&'a self, query: &'a str, limit: usize) -> Work<'a, Vec<FoundTool>>;

    /// What all tools cost a model.
    fn budget(&self) -> Work<'_, Budget>;

    /// The entries that are not approved: those that wait for it, and those that were rejected.
    fn pending_trust(&self) -> Work<'_, Vec<PendingTrust>>;

    /// Decides about an entry. A hash that is not that of the entry as it is now is a conflict.
    fn decide_trust<'a>(
        &'a self,
        by: &'a Caller,
        name: &'a str,
        hash: String,
        decision: Decision,
    ) -> Work<'a, ()>;

    /// The tokens that let clients in.
    fn tokens(&self) -> Work<'_, Vec<Token>>;

    /// Makes a token. A name that is taken is a conflict.
    fn add_token<'a>(&'a self, by: &'a Caller, wanted: NewToken) -> Work<'a, MadeToken>;

    /// Makes a token worthless, and ends what was begun with it.
    fn revoke_token<'a>(&'a self, by: &'a Caller, name: &'a str) -> Work<'a, ()>;

    /// The sessions of clients.
    fn sessions(&self) -> Work<'_, Vec<ClientSession>>;

    /// The last entries of the audit log, the newest first, each as it stands there.
    fn audit(&self, limit: usize) -> Work<'_, Vec<RawJson>>;

    /// Begins to write down something that the API does by itself. What cannot be written down is
    /// refused, and not done.
    fn record(&self, act: &Act<'_>) -> Result<Box<dyn Record>, Refusal>;

    /// Ends the gateway, as a signal would; the answer to this is still sent.
    fn stop<'a>(&'a self, by: &'a Caller) -> Work<'a, ()>;
}
