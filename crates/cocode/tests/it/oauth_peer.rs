//! Signing in at a real authorization server, as a library does it: a store of credentials in a
//! directory, a person who follows addresses, and sessions that are let in.

mod apart;
mod away;
mod bound;
mod chromium;
mod clients;
mod crowd;
#[cfg(target_os = "linux")]
mod keyring;
mod managed;
mod overheard;
mod renewed;
mod signed_in;
mod unseen;
mod widened;
mod wiretap;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cocode_auth::oauth::{
    AuthorizationRequest, Grant, LoginError, LoginOptions, OAuthCredentials, ProbeAnswer,
    RedirectWish, SignIn, SignedIn, Site, Sources, UserAgent, UserAgentError, Vault, Visit, Work,
    best_challenge, probe,
};
use cocode_auth::{CommandSettings, Secret, StoreChoice, StoreOptions};
use cocode_client::{
    ConnectError, CredentialsError, HeaderMap, HttpClient, LinkError, RawJson, RequestError,
    RequestOptions, Session, SessionOptions, Url, http, with_credentials,
};
use cocode_core::OAuth;
use cocode_testkit::{Decision, OAuthPeer};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The name of the server.
pub(crate) const NOTES: &str = "notes";

/// Nobody listens there: the person reads the answer off the redirect itself.
const REDIRECT_URI: &str = "http://127.0.0.1:8976/callback";

/// The variables that entries may name.
pub(crate) const SECRET: &str = "NOTES_SECRET";
pub(crate) const KEY: &str = "NOTES_KEY";

/// The question for its era, the two messages of a handshake, and the request for a stream.
const N_REQUESTS_OF_A_HANDSHAKE: u64 = 4;

/// Far longer than anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// The servers, and a directory for credentials.
pub(crate) struct World {
    pub(crate) peer: OAuthPeer,
    /// How those who sign in speak HTTP.
    http: HttpClient,
    directory: TempDir,
}

impl World {
    pub(crate) fn start() -> Self {
        Self::start_with(&json!({}))
    }

    pub(crate) fn start_with(options: &Value) -> Self {
        Self {
            peer: OAuthPeer::start_with(options),
            http: HttpClient::default(),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// A vault as another process would have it: nothing but the directory is shared.
    pub(crate) fn vault(&self) -> Vault {
        Vault::new(StoreOptions {
            choice: StoreChoice::File,
            directory: self.directory.path().to_owned(),
            session_bus: None,
        })
    }

    pub(crate) fn store_file(&self) -> PathBuf {
        self.directory.path().join("credentials.json")
    }

    /// The server of the peer, with nothing decided.
    pub(crate) fn site(&self) -> Site {
        self.site_with(OAuth::default())
    }

    pub(crate) fn site_with(&self, oauth: OAuth) -> Site {
        self.site_at(self.peer.mcp(), oauth)
    }

    pub(crate) fn site_at(&self, url: &str, oauth: OAuth) -> Site {
        let variables = BTreeMap::from([
            (SECRET, self.peer.confidential_client().1.to_owned()),
            (KEY, self.peer.key_client().1.to_owned()),
        ]);
        let sign_in = SignIn {
            server: NOTES.to_owned(),
            url: url.parse().unwrap(),
            oauth,
            sources: Sources {
                variable: Arc::new(move |name| variables.get(name).cloned()),
                commands: CommandSettings::new(Vec::new()),
            },
        };
        Site::new(sign_in, self.http.clone(), self.vault())
    }

    /// A person who allows everything.
    pub(crate) fn person(&self) -> Person {
        self.person_who(Decision::Allow)
    }

    pub(crate) fn person_who(&self, decision: Decision) -> Person {
        Person {
            peer: self.peer.clone(),
            decision,
        }
    }

    /// Signs in, as another program would.
    pub(crate) async fn log_in(&self) -> SignedIn {
        self.log_in_with(OAuth::default()).await
    }

    pub(crate) async fn log_in_with(&self, oauth: OAuth) -> SignedIn {
        let site = self.site_with(oauth);
        self.log_in_at(&site, LoginOptions::default())
            .await
            .unwrap()
    }

    /// Signs in for what the server says that it wants.
    pub(crate) async fn log_in_at(
        &self,
        site: &Site,
        options: LoginOptions,
    ) -> Result<SignedIn, LoginError> {
        let url = site.sign_in().http_url();
        let answer = probe(&HttpClient::default(), &url, &HeaderMap::new()).await;
        let Ok(ProbeAnswer::Refused(challenge)) = answer else {
            panic!("{answer:?}");
        };
        let options = LoginOptions {
            challenge: best_challenge(&challenge),
            ..options
        };
        site.log_in(&self.person(), &options).await
    }

    /// Credentials without anybody who could sign in.
    pub(crate) fn credentials(&self) -> OAuthCredentials {
        OAuthCredentials::new(self.site(), None)
    }

    /// A session that nobody could sign in for. All that it does by itself is done: it sends nothing
    /// more unless it is asked to.
    pub(crate) async fn session(&self) -> Session {
        self.session_by(self.credentials()).await
    }

    pub(crate) async fn session_by(&self, credentials: OAuthCredentials) -> Session {
        let before = self.peer.count("/accepted");
        let session = connect(self.peer.mcp(), credentials).await.unwrap();
        // In the background it asks for a stream. That needs this thread meanwhile.
        let (peer, least) = (self.peer.clone(), before + N_REQUESTS_OF_A_HANDSHAKE);
        let listening = tokio::task::spawn_blocking(move || peer.wait_for("/accepted", least));
        soon("the stream", listening).await.unwrap();
        session
    }

    /// How often tokens were renewed.
    pub(crate) fn n_renewals(&self) -> u64 {
        self.peer.count("/tokens/refresh_token/success")
    }

    /// What was asked of the servers of this kind, in order.
    pub(crate) fn requests(&self, kind: &str) -> Vec<Value> {
        let state = self.peer.state();
        let requests = state["requests"].as_array().unwrap().iter();
        let of_kind = requests.filter(|request| request["kind"] == kind);
        of_kind.cloned().collect()
    }

    /// What is stored for the authorization server of the peer, if anything.
    pub(crate) async fn grant(&self) -> Option<Grant> {
        let url = self.peer.mcp().parse().unwrap();
        let record = self.vault().read(&url).await.unwrap();
        record?.grants.remove(self.peer.issuer())
    }

    /// Makes what is stored say that the token ends so many seconds from now, after an hour.
    pub(crate) async fn let_end_in(&self, seconds: i64) {
        let_end_in(&self.vault(), &self.peer, seconds).await;
    }

    /// Fails unless the store is a file that can be read, and only by its owner.
    pub(crate) fn assert_stored_well(&self) {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(self.store_file()).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        let text = fs::read(self.store_file()).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap();
    }
}

/// A person who needs no browser.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    peer: OAuthPeer,
    decision: Decision,
}

impl UserAgent for Person {
    fn prepare<'a>(&'a self, wish: RedirectWish<'a>) -> Work<'a, Box<dyn Visit>> {
        let redirect_uri = wish.kept.unwrap_or(REDIRECT_URI).to_owned();
        let visit: Box<dyn Visit> = Box::new(Reading {
            person: self.clone(),
            redirect_uri,
        });
        Box::pin(std::future::ready(Ok(visit)))
    }
}

/// A visit whose end the person reads off the address.
struct Reading {
    person: Person,
    redirect_uri: String,
}

impl Visit for Reading {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn go(self: Box<Self>, request: &AuthorizationRequest) -> Work<'_, Secret> {
        let url = request.url.to_string();
        Box::pin(async move {
            let Person { peer, decision } = self.person;
            let back = tokio::task::spawn_blocking(move || peer.redirect(&url, decision)).await;
            let back = back.map_err(|error| UserAgentError::Failed {
                message: "the person did not come through".to_owned(),
                source: Some(Box::new(error)),
            })?;
            assert!(back.starts_with(&self.redirect_uri), "{back}");
            Ok(Secret::new(back.split_once('?').unwrap().1))
        })
    }
}

/// Makes what is stored for the server of the peer say that the token ends so many seconds from now,
/// after an hour.
pub(crate) async fn let_end_in(vault: &Vault, peer: &OAuthPeer, seconds: i64) {
    let url = peer.mcp().parse().unwrap();
    let mut transaction = vault.transaction(&url).await.unwrap();
    let mut record = transaction.record().cloned().unwrap();
    let grant = record.grants.get_mut(peer.issuer()).unwrap();
    let tokens = grant.tokens.as_mut().unwrap();
    let end = now().checked_add_signed(seconds).unwrap();
    (tokens.issued_at, tokens.expires_at) = (end - 3600, Some(end));
    transaction.commit(record).await.unwrap();
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs()
}

/// Waits for something that a broken program may never do.
#[track_caller]
pub(crate) fn soon<T>(what: &str, future: impl Future<Output = T>) -> impl Future<Output = T> {
    let place = std::panic::Location::caller();
    async move {
        let outcome = tokio::time::timeout(PATIENCE, future).await;
        outcome.unwrap_or_else(|_| panic!("{place}: {what} never comes"))
    }
}

/// Lets time pass without waiting for it. Connections stay as they are.
pub(crate) async fn pass_time(duration: Duration) {
    tokio::time::pause();
    tokio::time::advance(duration).await;
    tokio::time::resume();
}

pub(crate) async fn connect(
    url: &str,
    credentials: OAuthCredentials,
) -> Result<Session, ConnectError> {
    let url: Url = url.parse().unwrap();
    let target = with_credentials(http(url), Arc::new(credentials));
    soon(
        "a session",
        Session::connect(target, SessionOptions::default()),
    )
    .await
}

pub(crate) async fn call(
    session: &Session,
    tool: &str,
    arguments: &Value,
) -> Result<Value, RequestError> {
    let arguments = RawJson::parse(arguments.to_string()).unwrap();
    let calling = session.call_tool(tool, Some(&arguments), RequestOptions::default());
    let result = soon("an answer", calling).await?;
    assert!(!result.is_error, "{}", result.raw);
    Ok(serde_json::from_str(&result.raw.to_string()).unwrap())
}

/// Who we are to the server.
pub(crate) async fn try_whoami(session: &Session) -> Result<Value, RequestError> {
    let result = call(session, "whoami", &json!({})).await?;
    Ok(result["structuredContent"].clone())
}

pub(crate) async fn whoami(session: &Session) -> Value {
    try_whoami(session).await.unwrap()
}

pub(crate) async fn write_note(session: &Session) -> Result<String, RequestError> {
    let result = call(session, "write_note", &json!({ "note": "hello" })).await?;
    Ok(result["content"][0]["text"].as_str().unwrap().to_owned())
}

/// Why a request was not let in.
#[track_caller]
pub(crate) fn refusal(error: &RequestError) -> &CredentialsError {
    match error {
        RequestError::Link {
            error: LinkError::Credentials(error),
            ..
        } => error,
        other => panic!("{other:?}"),
    }
}

/// Why a session was not let in.
#[track_caller]
pub(crate) fn connect_refusal(outcome: &Result<Session, ConnectError>) -> &CredentialsError {
    match outcome {
        Err(ConnectError::Handshake { error, .. }) => refusal(error),
        other => panic!("{other:?}"),
    }
}

/// The words of a scope, in order.
pub(crate) fn words(scope: &Value) -> Vec<&str> {
    let mut words: Vec<&str> = scope.as_str().unwrap().split(' ').collect();
    words.sort_unstable();
    words
}
