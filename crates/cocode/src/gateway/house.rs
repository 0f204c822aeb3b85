//! The gateway from the side of those who look after it: what the management API asks for is done here,
//! by the means of the commands that do the same in a terminal.
//!
//! Nothing is changed behind the back of the files: what stands in the configuration is written there,
//! the watcher of the gateway notices it as if somebody had used an editor, and the house waits until
//! that is in use.

mod adding;
mod auditing;
mod budget;
mod calling;
mod costs;
mod interior;
mod login;
mod logs;
mod news;
mod offers;
mod refusing;
mod searching;
mod servers;
mod sessions;
mod settling;
mod switching;
mod tokens;
mod trust;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use cocode_access::TokenKeeper;
use cocode_admin::model::{
    Budget, CallWish, ClientSession, Completion, Facts, FoundTool, LogLine, Login, MadeToken,
    NewServer, NewToken, PendingTrust, PromptWish, Prompts, Readiness, Resources, Restarted,
    Server, ServerTool, SharedServers, Token,
};
use cocode_admin::{
    Bulletin, CallListener, Caller, Decision, House, Record, Refusal, Switch, Work,
};
use cocode_client::{RawJson, ServerLogs};
use cocode_gateway::{Gate, Gateway, SearchOptions, View};
use cocode_wire::serve::Door;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use self::auditing::Act;
use self::interior::Interior;
use self::login::Logins;
use super::oversight::Watch;
use super::servers::Present;
use crate::daemon::Floor;
use crate::workspace::Workspace;

/// What a house is made of.
pub(crate) struct HouseParts {
    /// Where the gateway was started, for the house alone: [`Workspace::anew`].
    pub(crate) workspace: Workspace,
    /// All servers, whomever they run for.
    pub(crate) gateway: Gateway,
    /// All servers, as whoever runs the gateway sees them.
    pub(crate) view: View,
    /// The rules for tools that this view has.
    pub(crate) rules: Arc<dyn Gate>,
    /// What is served now.
    pub(crate) present: watch::Receiver<Arc<Present>>,
    /// What the managers of the servers log to.
    pub(crate) logs: ServerLogs,
    /// Where what happens is told.
    pub(crate) bulletin: Bulletin,
    /// When clients search for tools.
    pub(crate) search: SearchOptions,
    /// The tokens that let clients in, where there may be any.
    pub(crate) tokens: Option<Arc<TokenKeeper>>,
    /// Whether an authorization server lets clients in.
    pub(crate) has_oauth: bool,
    /// What watches over what is done, and writes it down.
    pub(crate) watch: Watch,
    /// Ends the gateway. One message is enough.
    pub(crate) stop: mpsc::Sender<()>,
}

/// Where a gateway is found, and who is served there.
pub(crate) struct Entrance {
    /// Where clients find it.
    pub(crate) url: String,
    /// Where browsers find the dashboard.
    pub(crate) dashboard: String,
    /// A hand on what clients have open.
    pub(crate) door: Door,
    /// Who shares which servers.
    pub(crate) floor: Arc<Floor>,
}

/// A gateway that can be looked after. Dropping it ends what it does besides answering.
pub(crate) struct GatewayHouse {
    interior: Arc<Interior>,
    logins: Logins,
    tasks: Mutex<JoinSet<()>>,
}

impl GatewayHouse {
    /// Makes a house, which begins to tell what happens. Has to be called within a runtime.
    pub(crate) fn new(parts: HouseParts) -> Arc<Self> {
        let interior = Arc::new(Interior::new(parts));
        let mut tasks = JoinSet::new();
        tasks.spawn(news::tell(Arc::clone(&interior)));
        Arc::new(Self {
            interior,
            logins: Logins::default(),
            tasks: Mutex::new(tasks),
        })
    }

    /// Tells the house where clients find the gateway, and who is there. Counts once.
    pub(crate) fn open(&self, entrance: Entrance) {
        let (floor, bulletin) = (Arc::clone(&entrance.floor), self.interior.bulletin.clone());
        if self.interior.entrance.set(entrance).is_ok() {
            self.spawn(async move { floor.tell(&bulletin).await });
        }
    }

    /// The gateway is about to end: nobody new is to be sent here.
    pub(crate) fn close(&self) {
        self.interior.is_closing.store(true, Ordering::Release);
    }

    /// Runs something for as long as the house stands.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }
}

impl std::fmt::Debug for GatewayHouse {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("GatewayHouse")
            .field("interior", &self.interior)
            .finish_non_exhaustive()
    }
}

impl House for GatewayHouse {
    fn facts(&self) -> Facts {
        self.interior.facts()
    }

    fn readiness(&self) -> Readiness {
        self.interior.readiness()
    }

    fn troubles(&self) -> Vec<String> {
        self.interior.watch.troubles()
    }

    fn servers(&self) -> Work<'_, Vec<Server>> {
        Box::pin(async { Ok(self.interior.servers()) })
    }

    fn server<'a>(&'a self, name: &'a str) -> Work<'a, Server> {
        Box::pin(async { self.interior.server(name) })
    }

    fn add_server<'a>(&'a self, by: &'a Caller, wanted: NewServer) -> Work<'a, Server> {
        let act = Act::new("servers/add", by).on(wanted.name.clone());
        let work = self.interior.add(wanted);
        Box::pin(self.interior.written_down(act, work))
    }

    fn remove_server<'a>(&'a self, by: &'a Caller, name: &'a str) -> Work<'a, ()> {
        let act = Act::new("servers/remove", by).on(name);
        Box::pin(self.interior.written_down(act, self.interior.remove(name)))
    }

    fn switch_server<'a>(
        &'a self,
        by: &'a Caller,
        name: &'a str,
        switch: Switch,
    ) -> Work<'a, Server> {
        let act = Act::new(switching::act_of(switch), by).on(name);
        let work = self.interior.switch(name, switch);
        Box::pin(self.interior.written_down(act, work))
    }

    fn shared(&self) -> Work<'_, SharedServers> {
        Box::pin(async { Ok(self.interior.floor()?.report()) })
    }

    fn restart_shared<'a>(&'a self, by: &'a Caller, name: &'a str) -> Work<'a, Restarted> {
        let act = Act::new("servers/restart", by).on(name);
        let work = async { Ok(self.interior.floor()?.restart(name).await) };
        Box::pin(self.interior.written_down(act, work))
    }

    fn login<'a>(
        &'a self,
        by: &'a Caller,
        name: &'a str,
        scopes: Option<Vec<String>>,
    ) -> Work<'a, Login> {
        let act = Act::new("login/start", by).on(name);
        let work = self.begin_login(name, scopes);
        Box::pin(self.interior.written_down(act, work))
    }

    fn login_state<'a>(&'a self, name: &'a str) -> Work<'a, Login> {
        Box::pin(async { self.last_login(name) })
    }

    fn login_over<'a>(&'a self, name: &'a str) -> Work<'a, Login> {
        Box::pin(self.login_ended(name))
    }

    fn complete_login<'a>(
        &'a self,
        by: &'a Caller,
        name: &'a str,
        completion: Completion,
    ) -> Work<'a, Login> {
        let act = Act::new("login/complete", by).on(name);
        let work = self.end_login(name, completion);
        Box::pin(self.interior.written_down(act, work))
    }

    fn drop_credentials<'a>(&'a self, by: &'a Caller, name: &'a str) -> Work<'a, ()> {
        let act = Act::new("credentials/drop", by).on(name);
        let work = self.interior.sign_out(name);
        Box::pin(self.interior.written_down(act, work))
    }

    fn tools<'a>(&'a self, name: &'a str) -> Work<'a, Vec<ServerTool>> {
        Box::pin(self.interior.tools(name))
    }

    fn resources<'a>(&'a self, name: &'a str) -> Work<'a, Resources> {
        Box::pin(self.interior.resources(name))
    }

    fn prompts<'a>(&'a self, name: &'a str) -> Work<'a, Prompts> {
        Box::pin(self.interior.prompts(name))
    }

    fn call<'a>(
        &'a self,
        by: &'a Caller,
        name: &'a str,
        wish: CallWish,
        listener: CallListener,
    ) -> Work<'a, RawJson> {
        Box::pin(self.interior.call(by, name, wish, listener))
    }

    fn read<'a>(&'a self, by: &'a Caller, name: &'a str, uri: String) -> Work<'a, RawJson> {
        Box::pin(self.interior.read(by, name, uri))
    }

    fn prompt<'a>(&'a self, by: &'a Caller, name: &'a str, wish: PromptWish) -> Work<'a, RawJson> {
        Box::pin(self.interior.prompt(by, name, wish))
    }

    fn logs<'a>(&'a self, name: &'a str, lines: usize) -> Work<'a, Vec<LogLine>> {
        Box::pin(self.interior.logged(name, lines))
    }

    fn search_tools<'a>(&'a self, query: &'a str, limit: usize) -> Work<'a, Vec<FoundTool>> {
        Box::pin(async move { Ok(self.interior.search(query, limit)) })
    }

    fn budget(&self) -> Work<'_, Budget> {
        Box::pin(async { Ok(self.interior.budget()) })
    }

    fn pending_trust(&self) -> Work<'_, Vec<PendingTrust>> {
        Box::pin(async { Ok(self.interior.pending_trust()) })
    }

    fn decide_trust<'a>(
        &'a self,
        by: &'a Caller,
        name: &'a str,
        hash: String,
        decision: Decision,
    ) -> Work<'a, ()> {
        let act = Act::new(trust::act_of(decision), by).on(name);
        let work = self.interior.decide_trust(name, hash, decision);
        Box::pin(self.interior.written_down(act, work))
    }

    fn tokens(&self) -> Work<'_, Vec<Token>> {
        Box::pin(self.interior.tokens())
    }

    fn add_token<'a>(&'a self, by: &'a Caller, wanted: NewToken) -> Work<'a, MadeToken> {
        let act = Act::new("tokens/add", by).about(wanted.name.clone());
        let work = self.interior.add_token(wanted);
        Box::pin(self.interior.written_down(act, work))
    }

    fn revoke_token<'a>(&'a self, by: &'a Caller, name: &'a str) -> Work<'a, ()> {
        let act = Act::new("tokens/revoke", by).about(name);
        let work = self.interior.revoke_token(name);
        Box::pin(self.interior.written_down(act, work))
    }

    fn sessions(&self) -> Work<'_, Vec<ClientSession>> {
        Box::pin(async { Ok(self.interior.sessions()) })
    }

    fn audit(&self, limit: usize) -> Work<'_, Vec<RawJson>> {
        Box::pin(self.interior.audit(limit))
    }

    fn record(&self, act: &cocode_admin::Act<'_>) -> Result<Box<dyn Record>, Refusal> {
        let ongoing = self.interior.begin(act.into())?;
        Ok(Box::new(ongoing))
    }

    fn stop<'a>(&'a self, by: &'a Caller) -> Work<'a, ()> {
        let work = async {
            self.close();
            self.interior.stop()
        };
        Box::pin(self.interior.written_down(Act::new("stop", by), work))
    }
}

#[cfg(test)]
mod tests;
