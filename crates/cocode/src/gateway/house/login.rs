//! Signing in at servers, and out again: a login has a task that waits for the person, who comes back to
//! a port of this machine or brings what the authorization server has sent them back with.

mod agent;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cocode_admin::model::{Completion, Login, LoginState};
use cocode_admin::{Refusal, RefusalStatus};
use cocode_auth::Secret;
use cocode_auth::oauth::{LoginOptions, SignedIn};
use cocode_core::ServerSpec;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use url::form_urlencoded;

use self::agent::{HandingAgent, Paste};
use super::GatewayHouse;
use super::interior::Interior;
use super::refusing::{conflict, refusal, told};
use crate::auth::client_secret;
use crate::auth::logout::sign_out;
use crate::auth::signing_in::{SigningIn, nothing_asked};
use crate::auth::subject::{self, Subject};
use crate::error::CliError;
use crate::workspace::Workspace;

/// How long somebody has to sign in.
const SIGNED_IN_WITHIN: Duration = Duration::from_mins(5);
/// The same, with everything that is asked of servers before and after.
const OVER_WITHIN: Duration = Duration::from_secs(5 * 60 + 45);
/// How long it may take until it is known where to send the person.
const ADDRESS_WITHIN: Duration = Duration::from_mins(1);
/// How long it may take to look at what somebody brings.
const LOOKED_AT_WITHIN: Duration = Duration::from_secs(10);
/// How long tokens may take, once the answer of the authorization server is there.
const TOKENS_WITHIN: Duration = Duration::from_mins(1);
/// How long it may take to forget credentials.
const FORGOTTEN_WITHIN: Duration = Duration::from_secs(30);
/// Answers that wait to be looked at.
const MAX_PASTES: usize = 4;
/// Logins that are remembered.
const MAX_LOGINS: usize = 256;

/// The last login at each server.
#[derive(Debug, Default)]
pub(super) struct Logins {
    last: AtomicU64,
    of: Mutex<BTreeMap<String, Attempt>>,
}

/// A login, under way or over.
#[derive(Clone, Debug)]
struct Attempt {
    state: watch::Receiver<Login>,
    pastes: mpsc::Sender<Paste>,
}

impl Attempt {
    fn now(&self) -> Login {
        self.state.borrow().clone()
    }

    fn is_waiting(&self) -> bool {
        self.state.borrow().state == LoginState::Waiting
    }

    /// Waits until it is as wanted, and says how it is then or when the time is over.
    async fn until(&self, limit: Duration, is_so: impl Fn(&Login) -> bool) -> Login {
        let mut state = self.state.clone();
        let waiting = state.wait_for(|login| is_so(login));
        // Whoever asks is told how it is, whatever came of the wait.
        drop(timeout(limit, waiting).await);
        self.now()
    }
}

impl Logins {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Attempt>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, name: &str) -> Option<Attempt> {
        self.lock().get(name).cloned()
    }

    /// Begins a login, unless one is under way: gives that, and for a new one what its task needs.
    fn begin(&self, name: &str) -> Result<(Attempt, Option<Desk>), Refusal> {
        let mut all = self.lock();
        if let Some(known) = all.get(name).filter(|known| known.is_waiting()) {
            return Ok((known.clone(), None));
        }
        if all.len() >= MAX_LOGINS {
            all.retain(|_, attempt| attempt.is_waiting());
        }
        if all.len() >= MAX_LOGINS {
            let message = format!("{MAX_LOGINS} logins are under way, which is too many");
            return Err(Refusal::new(
                RefusalStatus::Unavailable,
                "too-many-logins",
                message,
            ));
        }
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (state, watched) = watch::channel(Login {
            id: number.to_string(),
            state: LoginState::Waiting,
            authorization_url: None,
            message: None,
        });
        let (pastes, pasted) = mpsc::channel(MAX_PASTES);
        let attempt = Attempt {
            state: watched,
            pastes,
        };
        all.insert(name.to_owned(), attempt.clone());
        Ok((attempt, Some(Desk { state, pasted })))
    }
}

impl GatewayHouse {
    pub(super) async fn begin_login(
        &self,
        name: &str,
        scopes: Option<Vec<String>>,
    ) -> Result<Login, Refusal> {
        let spec = self.interior.served(name)?;
        let subject = subject::with_spec(Box::new(spec.clone())).map_err(conflict)?;
        let (attempt, desk) = self.logins.begin(name)?;
        if let Some(desk) = desk {
            let interior = Arc::clone(&self.interior);
            self.spawn(desk.attend(interior, spec, subject, scopes));
        }
        let is_known =
            |login: &Login| login.authorization_url.is_some() || login.state != LoginState::Waiting;
        Ok(attempt.until(ADDRESS_WITHIN, is_known).await)
    }

    pub(super) fn last_login(&self, name: &str) -> Result<Login, Refusal> {
        self.attempt(name).map(|attempt| attempt.now())
    }

    pub(super) async fn login_ended(&self, name: &str) -> Result<Login, Refusal> {
        let attempt = self.attempt(name)?;
        Ok(attempt.until(OVER_WITHIN, is_over).await)
    }

    pub(super) async fn end_login(
        &self,
        name: &str,
        completion: Completion,
    ) -> Result<Login, Refusal> {
        let attempt = self.attempt(name)?;
        let answer = answer_of(&completion)?;
        let not_waiting = || {
            let message = format!("no login at `{name}` waits for an answer");
            Refusal::new(RefusalStatus::Conflict, "no-login", message)
                .hint("begin one: POST /api/v1/servers/{name}/login")
        };
        let (looked, verdict) = oneshot::channel();
        let paste = Paste { answer, looked };
        attempt
            .pastes
            .try_send(paste)
            .map_err(|_over_or_full| not_waiting())?;
        match timeout(LOOKED_AT_WITHIN, verdict).await {
            Ok(Ok(Ok(()))) => Ok(attempt.until(TOKENS_WITHIN, is_over).await),
            Ok(Ok(Err(error))) => {
                let message = error.to_string();
                Err(Refusal::new(RefusalStatus::Unfit, "login-failed", message))
            }
            // It was over by then, or did not come so far.
            Ok(Err(_)) | Err(_) => Err(not_waiting()),
        }
    }

    fn attempt(&self, name: &str) -> Result<Attempt, Refusal> {
        // Of a server that is not there, that is said.
        self.interior.server(name)?;
        self.logins.get(name).ok_or_else(|| {
            let message = format!("nobody has begun to sign in at `{name}`");
            Refusal::new(RefusalStatus::Unknown, "no-login", message)
                .hint("begin: POST /api/v1/servers/{name}/login")
        })
    }
}

fn is_over(login: &Login) -> bool {
    login.state != LoginState::Waiting
}

/// What came back, as the query of an address.
fn answer_of(completion: &Completion) -> Result<Secret, Refusal> {
    if let Some(redirect) = &completion.redirect {
        return Ok(Secret::new(redirect.expose()));
    }
    let (Some(code), Some(state)) = (&completion.code, &completion.state) else {
        let message = "either `redirect` or `code` and `state` have to be given";
        return Err(Refusal::new(
            RefusalStatus::Unfit,
            "invalid-arguments",
            message,
        ));
    };
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("code", code.expose());
    query.append_pair("state", state.expose());
    Ok(Secret::new(query.finish()))
}

/// Where a login is attended to.
#[derive(Debug)]
struct Desk {
    state: watch::Sender<Login>,
    pasted: mpsc::Receiver<Paste>,
}

impl Desk {
    /// Signs somebody in, says what came of it, and connects to the server with that.
    async fn attend(
        self,
        interior: Arc<Interior>,
        spec: ServerSpec,
        subject: Subject,
        scopes: Option<Vec<String>>,
    ) {
        let Self { state, pasted } = self;
        let state = Arc::new(state);
        let workspace = interior.workspace.anew();
        let work = signed_in(&workspace, &subject, scopes, (Arc::clone(&state), pasted));
        let outcome = timeout(OVER_WITHIN, work).await;
        let (kind, message) = match outcome {
            Ok(Ok(Some(signed_in))) => (LoginState::Done, welcome(&subject, &signed_in)),
            Ok(Ok(None)) => (LoginState::Done, nothing_asked(&subject.name)),
            Ok(Err(error)) => (LoginState::Failed, with_hints(&error)),
            Err(_elapsed) => (LoginState::Failed, "nobody signed in in time".to_owned()),
        };
        state.send_modify(|login| {
            login.state = kind;
            login.message = Some(message);
            login.authorization_url = None;
        });
        if kind == LoginState::Done {
            // Those who hold tokens look at the store once a second; this is at once.
            interior.restart(&spec).await;
        }
    }
}

async fn signed_in(
    workspace: &Workspace,
    subject: &Subject,
    scopes: Option<Vec<String>>,
    (state, pasted): (Arc<watch::Sender<Login>>, mpsc::Receiver<Paste>),
) -> Result<Option<SignedIn>, CliError> {
    let Subject {
        name, url, remote, ..
    } = subject;
    let oauth = remote.oauth.clone();
    let site = workspace
        .admissions()?
        .site(name, url.clone(), oauth, remote);
    let client_secret = client_secret::kept(&site, workspace).await?;
    let mut work = SigningIn {
        subject,
        site,
        options: LoginOptions {
            scopes,
            client_secret,
            ..LoginOptions::default()
        },
        workspace,
    };
    let agent = HandingAgent::new(work.callback(SIGNED_IN_WITHIN), state, pasted);
    work.run(&agent).await
}

fn welcome(subject: &Subject, signed_in: &SignedIn) -> String {
    format!("signed in to `{}` at {}", subject.name, signed_in.issuer)
}

fn with_hints(error: &CliError) -> String {
    let mut text = told(error);
    for hint in &error.hints {
        text = format!("{text}; {hint}");
    }
    text
}

impl Interior {
    /// Forgets the credentials for a server, and lets go of the connection that was made with them.
    pub(super) async fn sign_out(&self, name: &str) -> Result<(), Refusal> {
        let server = name.to_owned();
        let subject = self.blocking(move |workspace| subject::to_sign_out(&server, workspace));
        let subject = subject.await.map_err(|refusal| match refusal.status {
            RefusalStatus::Unfit => Refusal {
                status: RefusalStatus::Conflict,
                ..refusal
            },
            _ => refusal,
        })?;
        let workspace = self.workspace.anew();
        let forgotten = timeout(FORGOTTEN_WITHIN, sign_out(&subject, false, &workspace)).await;
        let forgotten = forgotten.map_err(|_elapsed| {
            let message = "the store of credentials takes too long";
            Refusal::new(
                RefusalStatus::Unavailable,
                "credentials-unavailable",
                message,
            )
        })?;
        let signed_out = forgotten.map_err(refusal)?;
        // Somebody else may have taken what is stored, and left us with what we know.
        let was_known = self.workspace.admissions().map_err(refusal)?.forget(name);
        if let Ok(spec) = self.served(name)
            && (signed_out.was_signed_in || was_known)
        {
            self.restart(&spec).await;
        }
        self.floor()?.forget(name).await;
        Ok(())
    }
}
