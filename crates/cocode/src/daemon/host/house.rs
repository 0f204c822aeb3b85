//! The daemon behind `cocode mcp serve`, from the side of those who look after it: it can say who shares
//! which servers, and end. It is no gateway, so it has nothing else of one.

use std::sync::{Arc, Mutex};

use cocode_admin::model::{
    Authentication, Budget, CallWish, ClientSession, Completion, Facts, FoundTool, LogLine, Login,
    MadeToken, NewServer, NewToken, PendingTrust, PromptWish, Prompts, Readiness, Resources,
    Restarted, Server, ServerTool, SharedServers, Token,
};
use cocode_admin::{
    Act, Admin, AdminOptions, CallListener, Caller, Decision, Desk, House, Moment, Record, Refusal,
    RefusalStatus, Switch, Work,
};
use cocode_client::RawJson;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::floor::Floor;
use super::{Order, end};

/// A daemon that can be looked after. Dropping it ends what it does besides answering.
pub(super) struct DaemonHouse {
    floor: Arc<Floor>,
    orders: watch::Sender<Order>,
    began: Moment,
    _telling: Mutex<JoinSet<()>>,
}

impl DaemonHouse {
    /// The management API of a daemon. Has to be called within a runtime.
    pub(super) fn admin(floor: &Arc<Floor>, orders: &watch::Sender<Order>) -> Admin {
        let desk = Desk::new();
        let (bulletin, told) = (desk.bulletin.clone(), Arc::clone(floor));
        let mut telling = JoinSet::new();
        telling.spawn(async move { told.tell(&bulletin).await });
        let house = Self {
            floor: Arc::clone(floor),
            orders: orders.clone(),
            began: Moment::now(),
            _telling: Mutex::new(telling),
        };
        Admin::new(Arc::new(house), desk, AdminOptions::default())
    }
}

impl std::fmt::Debug for DaemonHouse {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("DaemonHouse")
            .finish_non_exhaustive()
    }
}

/// Something that only a gateway does.
fn no_gateway<'a, T: Send + 'a>() -> Work<'a, T> {
    let refusal = Refusal::new(
        RefusalStatus::Unavailable,
        "no-gateway",
        "this is the daemon behind `cocode mcp serve`, and no gateway",
    );
    let refusal = refusal.hint("`cocode gateway` starts one");
    Box::pin(std::future::ready(Err(refusal)))
}

fn nothing<'a, T: Send + 'a>() -> Work<'a, Vec<T>> {
    Box::pin(std::future::ready(Ok(Vec::new())))
}

/// What nobody writes down.
struct Unwritten;

impl Record for Unwritten {
    fn ended(self: Box<Self>, _is_done: bool) {}

    fn forget(self: Box<Self>) {}
}

impl House for DaemonHouse {
    fn facts(&self) -> Facts {
        Facts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            url: String::new(),
            dashboard: None,
            directory: "/".to_owned(),
            started_at: self.began,
            authentication: Authentication::Open,
            tool_search: String::new(),
            processes: 0,
        }
    }

    fn readiness(&self) -> Readiness {
        let ready = *self.orders.borrow() == Order::Serve;
        let waiting_for = (!ready).then(|| "the daemon is about to end".to_owned());
        Readiness {
            ready,
            waiting_for: waiting_for.into_iter().collect(),
        }
    }

    fn shared(&self) -> Work<'_, SharedServers> {
        Box::pin(async { Ok(self.floor.report()) })
    }

    fn restart_shared<'a>(&'a self, _by: &'a Caller, name: &'a str) -> Work<'a, Restarted> {
        Box::pin(async { Ok(self.floor.restart(name).await) })
    }

    /// A daemon has no log of what is done: whoever comes to it is its user.
    fn record(&self, _act: &Act<'_>) -> Result<Box<dyn Record>, Refusal> {
        Ok(Box::new(Unwritten))
    }

    fn stop<'a>(&'a self, _by: &'a Caller) -> Work<'a, ()> {
        end(&self.orders);
        Box::pin(std::future::ready(Ok(())))
    }

    /// What is stored is for whoever signs out to forget: the daemon works in many directories, and
    /// does not know which is meant.
    fn drop_credentials<'a>(&'a self, _by: &'a Caller, name: &'a str) -> Work<'a, ()> {
        Box::pin(async {
            self.floor.forget(name).await;
            Ok(())
        })
    }

    // What it has none of.

    fn servers(&self) -> Work<'_, Vec<Server>> {
        nothing()
    }

    fn sessions(&self) -> Work<'_, Vec<ClientSession>> {
        nothing()
    }

    fn pending_trust(&self) -> Work<'_, Vec<PendingTrust>> {
        nothing()
    }

    fn tokens(&self) -> Work<'_, Vec<Token>> {
        nothing()
    }

    fn search_tools<'a>(&'a self, _query: &'a str, _limit: usize) -> Work<'a, Vec<FoundTool>> {
        nothing()
    }

    fn audit(&self, _limit: usize) -> Work<'_, Vec<RawJson>> {
        nothing()
    }

    // What only a gateway does.

    fn server<'a>(&'a self, _name: &'a str) -> Work<'a, Server> {
        no_gateway()
    }

    fn add_server<'a>(&'a self, _by: &'a Caller, _wanted: NewServer) -> Work<'a, Server> {
        no_gateway()
    }

    fn remove_server<'a>(&'a self, _by: &'a Caller, _name: &'a str) -> Work<'a, ()> {
        no_gateway()
    }

    fn switch_server<'a>(
        &'a self,
        _by: &'a Caller,
        _name: &'a str,
        _switch: Switch,
    ) -> Work<'a, Server> {
        no_gateway()
    }

    fn login<'a>(
        &'a self,
        _by: &'a Caller,
        _name: &'a str,
        _scopes: Option<Vec<String>>,
    ) -> Work<'a, Login> {
        no_gateway()
    }

    fn login_state<'a>(&'a self, _name: &'a str) -> Work<'a, Login> {
        no_gateway()
    }

    fn login_over<'a>(&'a self, _name: &'a str) -> Work<'a, Login> {
        no_gateway()
    }

    fn complete_login<'a>(
        &'a self,
        _by: &'a Caller,
        _name: &'a str,
        _completion: Completion,
    ) -> Work<'a, Login> {
        no_gateway()
    }

    fn tools<'a>(&'a self, _name: &'a str) -> Work<'a, Vec<ServerTool>> {
        no_gateway()
    }

    fn resources<'a>(&'a self, _name: &'a str) -> Work<'a, Resources> {
        no_gateway()
    }

    fn prompts<'a>(&'a self, _name: &'a str) -> Work<'a, Prompts> {
        no_gateway()
    }

    fn call<'a>(
        &'a self,
        _by: &'a Caller,
        _name: &'a str,
        _wish: CallWish,
        _listener: CallListener,
    ) -> Work<'a, RawJson> {
        no_gateway()
    }

    fn read<'a>(&'a self, _by: &'a Caller, _name: &'a str, _uri: String) -> Work<'a, RawJson> {
        no_gateway()
    }

    fn prompt<'a>(
        &'a self,
        _by: &'a Caller,
        _name: &'a str,
        _wish: PromptWish,
    ) -> Work<'a, RawJson> {
        no_gateway()
    }

    fn logs<'a>(&'a self, _name: &'a str, _lines: usize) -> Work<'a, Vec<LogLine>> {
        no_gateway()
    }

    fn budget(&self) -> Work<'_, Budget> {
        no_gateway()
    }

    fn decide_trust<'a>(
        &'a self,
        _by: &'a Caller,
        _name: &'a str,
        _hash: String,
        _decision: Decision,
    ) -> Work<'a, ()> {
        no_gateway()
    }

    fn add_token<'a>(&'a self, _by: &'a Caller, _wanted: NewToken) -> Work<'a, MadeToken> {
        no_gateway()
    }

    fn revoke_token<'a>(&'a self, _by: &'a Caller, _name: &'a str) -> Work<'a, ()> {
        no_gateway()
    }
}
