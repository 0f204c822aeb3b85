//! A house of a few servers that exist in memory only. It writes down what it was asked to do, and
//! refuses what a test says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cocode_admin::model::{
    Authentication, Budget, CallProgress, CallWish, ClientSession, Completion, Facts, FoundTool,
    Front, Instance, LogLine, LogStream, Login, LoginState, MadeToken, NewServer, NewToken,
    PendingTrust, PromptWish, Prompts, Readiness, Reason, Resources, Restarted, SearchThreshold,
    Server, ServerBudget, ServerState, ServerTool, SharedServers, Token, Verdict,
};
use cocode_admin::{
    Act, CallListener, CallNews, Caller, Decision, House, Moment, Record, Refusal, RefusalStatus,
    Secret, Switch, Work,
};
use cocode_wire::RawJson;
use tokio::sync::watch;

/// Servers that somebody may add, so that a test that adds at random ends.
const MAX_SERVERS: usize = 50;

/// The house of a test.
#[derive(Clone, Debug)]
pub(crate) struct Scripted(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    servers: BTreeMap<String, Server>,
    logins: BTreeMap<String, watch::Sender<LoginState>>,
    tokens: BTreeMap<String, Token>,
    trust: BTreeMap<String, PendingTrust>,
    authentication: Authentication,
    is_ready: bool,
    /// Whether whoever is waited for comes at once, and what waits for approval comes again.
    is_restless: bool,
    /// What the next requests are refused with.
    refusal: Option<Refusal>,
    deeds: Vec<String>,
    acts: Vec<String>,
}

pub(crate) fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}

pub(crate) fn server(name: &str, state: ServerState) -> Server {
    Server {
        name: name.to_owned(),
        state,
        reason: (state == ServerState::Failed).then(|| Reason {
            code: "exited".to_owned(),
            message: "the program has exited with code 1".to_owned(),
            hints: vec!["look at its log".to_owned()],
            stderr: vec!["no such file".to_owned()],
        }),
        transport: "stdio".to_owned(),
        target: format!("{name}-server --key ***"),
        scope: "user".to_owned(),
        file: Some("/srv/ana/mcp.json".to_owned()),
        description: None,
        era: Some("modern".to_owned()),
        revision: Some("2026-07-28".to_owned()),
        server_info: None,
        tools: 1,
        hidden_tools: 0,
        resources: None,
        prompts: None,
        tokens: 120,
        sharing: "shared".to_owned(),
        sharing_reason: None,
        pid: Some(4242),
        uptime_seconds: Some(3),
        ready_milliseconds: Some(12.5),
        reconnects: 0,
        in_flight: 0,
        can_login: name == "search",
        is_signed_in: None,
        is_built_in: false,
    }
}

fn front() -> Front {
    Front {
        pid: Some(4711),
        directory: Some("/srv/shop".to_owned()),
        server: None,
        servers: Some(vec!["files".to_owned()]),
        profile: None,
        tool_search: None,
        seconds: 2,
    }
}

fn instance(server: &Server) -> Instance {
    Instance {
        name: server.name.clone(),
        fingerprint: "f1".to_owned(),
        state: server.state.to_string(),
        sharing: server.sharing.clone(),
        sharing_reason: None,
        fronts: vec![4711],
        directories: vec!["/srv/shop".to_owned()],
        seconds: 3,
        in_flight: 0,
        reconnects: 0,
        pid: server.pid,
        revision: server.revision.clone(),
        transport: Some(server.transport.clone()),
        tools: Some(server.tools),
        ready_milliseconds: Some(12),
        trouble: None,
    }
}

pub(crate) fn unknown(what: &str) -> Refusal {
    let message = format!("there is no such {what}");
    Refusal::new(RefusalStatus::Unknown, format!("{what}-unknown"), message)
}

impl Scripted {
    pub(crate) fn new() -> Arc<Self> {
        let servers = [
            server("files", ServerState::Ready),
            server("search", ServerState::NeedsAuth),
            server("broken", ServerState::Failed),
            server("a/b \"é\"", ServerState::Disabled),
        ];
        let pending = PendingTrust {
            name: "shared".to_owned(),
            kind: cocode_admin::model::TrustKind::Server,
            scope: "project".to_owned(),
            file: "/srv/shop/.mcp.json".to_owned(),
            hash: "abc".to_owned(),
            is_new: true,
            is_rejected: false,
            before: None,
            after: "command = \"rm\"".to_owned(),
        };
        let token = token("ana", true);
        Arc::new(Self(Arc::new(Mutex::new(State {
            servers: servers.map(|one| (one.name.clone(), one)).into(),
            logins: BTreeMap::new(),
            tokens: BTreeMap::from([("ana".to_owned(), token)]),
            trust: BTreeMap::from([("shared".to_owned(), pending)]),
            authentication: Authentication::Tokens,
            is_ready: true,
            is_restless: false,
            refusal: None,
            deeds: Vec::new(),
            acts: Vec::new(),
        }))))
    }

    pub(crate) fn refuse(&self, refusal: Option<Refusal>) {
        self.lock().refusal = refusal;
    }

    pub(crate) fn authenticate(&self, authentication: Authentication) {
        self.lock().authentication = authentication;
    }

    pub(crate) fn be_ready(&self, is_ready: bool) {
        self.lock().is_ready = is_ready;
    }

    /// Makes nobody wait, and never runs out of things to decide.
    pub(crate) fn be_restless(&self) {
        self.lock().is_restless = true;
    }

    /// Ends the login at a server, as somebody does who visits its address.
    pub(crate) fn sign_in_at(&self, name: &str) {
        let state = self.lock();
        state.logins[name].send_replace(LoginState::Done);
    }

    /// What was done since this was last asked.
    pub(crate) fn deeds(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().deeds)
    }

    /// What was written down since this was last asked, of what the API does by itself.
    pub(crate) fn acts(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().acts)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn work<'a, T: Send + 'a>(
        &'a self,
        act: impl FnOnce(&mut State) -> Result<T, Refusal>,
    ) -> Work<'a, T> {
        let mut state = self.lock();
        let outcome = match state.refusal.clone() {
            Some(refusal) => Err(refusal),
            None => act(&mut state),
        };
        Box::pin(std::future::ready(outcome))
    }

    /// The same for something that changes the house.
    fn deed<'a, T: Send + 'a>(
        &'a self,
        by: &Caller,
        what: String,
        act: impl FnOnce(&mut State) -> Result<T, Refusal>,
    ) -> Work<'a, T> {
        let by = by.name.to_string();
        self.work(move |state| {
            let done = act(state)?;
            state.deeds.push(format!("{by}: {what}"));
            Ok(done)
        })
    }
}

impl State {
    fn server(&mut self, name: &str) -> Result<&mut Server, Refusal> {
        self.servers.get_mut(name).ok_or_else(|| unknown("server"))
    }

    fn login(&mut self, name: &str) -> Result<Login, Refusal> {
        self.server(name)?;
        let login = self.logins.get(name).ok_or_else(|| unknown("login"))?;
        let state = *login.borrow();
        Ok(login_of(state))
    }
}

fn login_of(state: LoginState) -> Login {
    let url = "https://example.com/authorize";
    Login {
        id: "1".to_owned(),
        state,
        authorization_url: (state == LoginState::Waiting).then(|| url.to_owned()),
        message: None,
    }
}

fn token(name: &str, admin: bool) -> Token {
    Token {
        name: name.to_owned(),
        admin,
        created_at: Moment::now(),
        last_used_at: None,
        expires_at: None,
    }
}

fn tool() -> ServerTool {
    ServerTool {
        name: "echo".to_owned(),
        qualified_name: "mcp__files__echo".to_owned(),
        title: None,
        description: Some("Says it again. <script>alert(1)</script>".to_owned()),
        input_schema: raw(r#"{"type":"object"}"#),
        output_schema: None,
        annotations: raw("{}"),
        tokens: 120,
        verdict: Verdict::Ask,
    }
}

impl House for Scripted {
    fn facts(&self) -> Facts {
        Facts {
            version: "1.2.3".to_owned(),
            pid: 7,
            url: "http://127.0.0.1:7777".to_owned(),
            dashboard: Some("http://127.0.0.1:7777/".to_owned()),
            directory: "/srv/shop".to_owned(),
            started_at: Moment::now(),
            authentication: self.lock().authentication,
            tool_search: "auto".to_owned(),
            processes: 2,
        }
    }

    fn readiness(&self) -> Readiness {
        let ready = self.lock().is_ready;
        let waiting_for = if ready {
            Vec::new()
        } else {
            vec!["the first configuration".to_owned()]
        };
        Readiness { ready, waiting_for }
    }

    fn servers(&self) -> Work<'_, Vec<Server>> {
        self.work(|state| Ok(state.servers.values().cloned().collect()))
    }

    fn server<'a>(&'a self, name: &'a str) -> Work<'a, Server> {
        self.work(|state| state.server(name).cloned())
    }

    fn add_server<'a>(&'a self, by: &'a Caller, wanted: NewServer) -> Work<'a, Server> {
        let what = format!("add {}", wanted.name);
        self.deed(by, what, |state| {
            let conflict = |code: &str, message: &str| {
                Err(Refusal::new(RefusalStatus::Conflict, code, message))
            };
            if state.servers.contains_key(&wanted.name) {
                return conflict("server-exists", "there is a server of that name");
            }
            if state.servers.len() >= MAX_SERVERS {
                return conflict("servers-full", "there are enough servers");
            }
            let added = server(&wanted.name, ServerState::Starting);
            state.servers.insert(wanted.name, added.clone());
            Ok(added)
        })
    }

    fn remove_server<'a>(&'a self, by: &'a Caller, name: &'a str) -> Work<'a, ()> {
        self.deed(by, format!("remove {name}"), |state| {
            state.server(name)?;
            state.servers.remove(name);
            Ok(())
        })
    }

    fn switch_server<'a>(
        &'a self,
        by: &'a Caller,
        name: &'a str,
        switch: Switch,
    ) -> Work<'a, Server> {
        self.deed(by, format!("{switch:?} {name}"), |state| {
            let server = state.server(name)?;
            server.state = match switch {
                Switch::Disable => ServerState::Disabled,
                Switch::Disconnect => ServerState::Stopped,
                Switch::Enable | Switch::Connect | Switch::Restart => ServerState::Ready,
            };
            Ok(server.clone())
        })
    }

    fn shared(&self) -> Work<'_, SharedServers> {
        self.work(|state| {
            let servers = state.servers.values().map(instance);
            Ok(SharedServers {
                pid: 7,
                version: "1.2.3".to_owned(),
                socket: Some("/run/user/1000/cocode/daemon.sock".to_owned()),
                url: None,
                seconds: 3,
                fronts: vec![front()],
                servers: servers.collect(),
            })
        })
    }

    fn restart_shared<'a>(&'a self, by: &'a Caller, name: &'a str) -> Work<'a, Restarted> {
        self.deed(by, format!("restart all {name}"), |state| {
            Ok(Restarted {
                servers: u64::from(state.servers.contains_key(name)),
                stopped: 0,
            })
        })
    }

    fn login<'a>(
        &'a self,
        by: &'a Caller,
        name: &'a str,
        scopes: Option<Vec<String>>,
    ) -> Work<'a, Login> {
        self.deed(by, format!("login {name} {scopes:?}"), |state| {
            state.server(name)?;
            let waiting = watch::Sender::new(LoginState::Waiting);
            state.logins.insert(name.to_owned(), waiting);
            state.login(name)
        })
    }

    fn login_state<'a>(&'a self, name: &'a str) -> Work<'a, Login> {
        self.work(|state| state.login(name))
    }

    fn login_over<'a>(&'a self, name: &'a str) -> Work<'a, Login> {
        let login = self.lock().logins.get(name).map(watch::Sender::subscribe);
        Box::pin(async move {
            let mut login = login.ok_or_else(|| unknown("login"))?;
            if self.lock().is_restless {
                return Ok(login_of(LoginState::Done));
            }
            let over = login.wait_for(|state| *state != LoginState::Waiting).await;
            Ok(login_of(over.map_or(LoginState::Failed, |state| *state)))
        })
    }

    fn complete_login<'a>(
        &'a self,
        by: &'a Caller,
        name: &'a str,
        completion: Completion,
    ) -> Work<'a, Login> {
        let how = match &completion {
            Completion {
                redirect: Some(_), ..
            } => "redirect",
            _ => "code",
        };
        self.deed(by, format!("complete {name} by {how}"), |state| {
            state.server(name)?;
            let login = state.logins.get(name);
            let waiting = login.filter(|login| *login.borrow() == LoginState::Waiting);
            let Some(waiting) = waiting else {
                let message = "nobody signs in there now";
                return Err(Refusal::new(RefusalStatus::Conflict, "no-login", message));
            };
            waiting.send_replace(LoginState::Done);
            state.login(name)
        })
    }

    fn drop_credentials<'a>(&'a self, by: &'a Caller, name: &'a str) -> Work<'a, ()> {
        let what = format!("drop credentials {name}");
        self.deed(by, what, |state| state.server(name).map(drop))
    }

    fn tools<'a>(&'a self, name: &'a str) -> Work<'a, Vec<ServerTool>> {
        self.work(|state| state.server(name).map(|_| vec![tool()]))
    }

    fn resources<'a>(&'a self, name: &'a str) -> Work<'a, Resources> {
        self.work(|state| {
            state.server(name)?;
            Ok(Resources {
                resources: vec![raw(r#"{"uri":"file:///a","name":"a"}"#)],
                templates: vec![],
            })
        })
    }

    fn prompts<'a>(&'a self, name: &'a str) -> Work<'a, Prompts> {
        self.work(|state| {
            state.server(name)?;
            Ok(Prompts {
                prompts: vec![raw(r#"{"name":"review"}"#)],
            })
        })
    }

    fn call<'a>(
        &'a self,
        by: &'a Caller,
        name: &'a str,
        wish: CallWish,
        listener: CallListener,
    ) -> Work<'a, RawJson> {
        let arguments = wish.arguments.as_ref().map_or("none", RawJson::as_str);
        let what = format!("call {name} {} {arguments}", wish.tool);
        let known = self.deed(by, what, |state| state.server(name).map(drop));
        Box::pin(async move {
            known.await?;
            listener.tell(CallNews::Progress(CallProgress {
                progress: 1.0,
                total: Some(2.0),
                message: Some("half\nway".to_owned()),
            }));
            listener.tell(CallNews::Log(LogLine {
                at: Moment::now(),
                stream: LogStream::Log,
                level: Some("info".to_owned()),
                text: "working".to_owned(),
            }));
            match wish.tool.as_str() {
                "never" => std::future::pending().await,
                "slow" => tokio::time::sleep(Duration::from_secs(40)).await,
                "fail" => {
                    let message = "the server answered with error -32603";
                    return Err(Refusal::new(RefusalStatus::ServerFailed, "rpc", message));
                }
                _ => {}
            }
            // Written by somebody who likes lines.
            Ok(raw(
                "{\n  \"content\": [],\r\n  \"big\": 12345678901234567890123\n}",
            ))
        })
    }

    fn read<'a>(&'a self, by: &'a Caller, name: &'a str, uri: String) -> Work<'a, RawJson> {
        self.deed(by, format!("read {name} {uri}"), |state| {
            state.server(name).map(|_| raw(r#"{"contents":[]}"#))
        })
    }

    fn prompt<'a>(&'a self, by: &'a Caller, name: &'a str, wish: PromptWish) -> Work<'a, RawJson> {
        self.deed(by, format!("prompt {name} {}", wish.name), |state| {
            state.server(name).map(|_| raw(r#"{"messages":[]}"#))
        })
    }

    fn logs<'a>(&'a self, name: &'a str, lines: usize) -> Work<'a, Vec<LogLine>> {
        self.work(|state| {
            state.server(name)?;
            let line = |number| LogLine {
                at: Moment::now(),
                stream: LogStream::Stderr,
                level: None,
                text: format!("line {number}"),
            };
            Ok((0..lines.min(3)).map(line).collect())
        })
    }

    fn search_tools<'a>(&'a self, query: &'a str, limit: usize) -> Work<'a, Vec<FoundTool>> {
        self.work(|_| {
            let found = |number| FoundTool {
                server: "files".to_owned(),
                name: format!("{query} {number}"),
                qualified_name: "mcp__files__echo".to_owned(),
                description: None,
                score: 0.5,
                tokens: 120,
            };
            Ok((0..limit).map(found).collect())
        })
    }

    fn budget(&self) -> Work<'_, Budget> {
        self.work(|state| {
            let of = |one: &Server| ServerBudget {
                name: one.name.clone(),
                tokens: one.tokens,
                tools: one.tools,
            };
            let servers: Vec<_> = state.servers.values().map(of).collect();
            Ok(Budget {
                total: servers.iter().map(|one| one.tokens).sum(),
                window: Some(200_000),
                search: Some(SearchThreshold {
                    percent: 6.25,
                    least_window: 32_000,
                }),
                servers,
            })
        })
    }

    fn pending_trust(&self) -> Work<'_, Vec<PendingTrust>> {
        self.work(|state| Ok(state.trust.values().cloned().collect()))
    }

    fn decide_trust<'a>(
        &'a self,
        by: &'a Caller,
        name: &'a str,
        hash: String,
        decision: Decision,
    ) -> Work<'a, ()> {
        self.deed(by, format!("{decision:?} {name}"), |state| {
            let pending = state.trust.get(name).ok_or_else(|| unknown("entry"))?;
            if pending.hash != hash {
                let message = "the entry has changed since it was shown";
                return Err(Refusal::new(RefusalStatus::Conflict, "changed", message));
            }
            if !state.is_restless {
                let entry = state.trust.remove(name);
                if let (Some(entry), Decision::Reject) = (entry, decision) {
                    let rejected = PendingTrust {
                        is_rejected: true,
                        ..entry
                    };
                    state.trust.insert(name.to_owned(), rejected);
                }
            }
            Ok(())
        })
    }

    fn tokens(&self) -> Work<'_, Vec<Token>> {
        self.work(|state| Ok(state.tokens.values().cloned().collect()))
    }

    fn add_token<'a>(&'a self, by: &'a Caller, wanted: NewToken) -> Work<'a, MadeToken> {
        self.deed(by, format!("add token {}", wanted.name), |state| {
            if state.tokens.contains_key(&wanted.name) {
                let message = "there is a token of that name";
                return Err(Refusal::new(
                    RefusalStatus::Conflict,
                    "token-exists",
                    message,
                ));
            }
            let made = token(&wanted.name, wanted.admin.unwrap_or_default());
            state.tokens.insert(wanted.name.clone(), made);
            Ok(MadeToken {
                name: wanted.name,
                token: Secret::new("cct_secret"),
            })
        })
    }

    fn revoke_token<'a>(&'a self, by: &'a Caller, name: &'a str) -> Work<'a, ()> {
        self.deed(by, format!("revoke {name}"), |state| {
            let revoked = state.tokens.remove(name);
            revoked.map(drop).ok_or_else(|| unknown("token"))
        })
    }

    fn sessions(&self) -> Work<'_, Vec<ClientSession>> {
        self.work(|_| {
            Ok(vec![ClientSession {
                principal: Some("ana".to_owned()),
                endpoint: "all".to_owned(),
                transport: "http".to_owned(),
                revision: Some("2025-11-25".to_owned()),
                client: None,
                age_seconds: 5,
                idle_seconds: 1,
            }])
        })
    }

    fn audit(&self, limit: usize) -> Work<'_, Vec<RawJson>> {
        self.work(|_| Ok(vec![raw(r#"{"seq":1}"#); limit + 1]))
    }

    fn record(&self, act: &Act<'_>) -> Result<Box<dyn Record>, Refusal> {
        if let Some(refusal) = self.lock().refusal.clone() {
            return Err(refusal);
        }
        let by = act.by.map_or("nobody", |by| &by.name);
        let about = [Some(act.method), act.server, act.name].into_iter();
        let about: Vec<&str> = about.flatten().collect();
        let what = format!("{by}: {}", about.join(" "));
        Ok(Box::new(Written(self.clone(), what)))
    }

    fn stop<'a>(&'a self, by: &'a Caller) -> Work<'a, ()> {
        self.deed(by, "stop".to_owned(), |_| Ok(()))
    }
}

struct Written(Scripted, String);

impl Record for Written {
    fn ended(self: Box<Self>, is_done: bool) {
        let outcome = if is_done { "done" } else { "refused" };
        self.0.lock().acts.push(format!("{}: {outcome}", self.1));
    }

    fn forget(self: Box<Self>) {}
}
