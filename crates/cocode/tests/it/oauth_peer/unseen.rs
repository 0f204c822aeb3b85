//! No token, code, verifier, secret, key or assertion is in anything that a program writes down,
//! whatever happens and however much is logged. What they are is heard on the wire.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use cocode_auth::oauth::{
    AuthorizationRequest, LoginOptions, OAuthCredentials, RedirectWish, UserAgent, Vault, Visit,
    Work,
};
use cocode_auth::{Secret, StoreChoice, StoreOptions};
use cocode_client::{HttpClient, HttpSettings, chain};
use cocode_core::{Dpop, Grant, OAuth};
use cocode_testkit::{Browser, Decision, OAuthPeer};
use serde_json::json;
use tokio::task::JoinSet;
use url::form_urlencoded;

use super::crowd::block_on;
use super::managed::Managed;
use super::overheard::{heard, listen, note, told};
use super::wiretap::{SHORTEST, Wiretap};
use super::{KEY, Person, REDIRECT_URI, SECRET, World, try_whoami, whoami, write_note};
use crate::harness::Finished;
use crate::sign_in::{NOTES, SignIn};

/// What JSON Web Tokens begin with: `{"alg"`, `{"typ"` or `{"kid"`.
const JWT: [&str; 3] = ["eyJhbGci", "eyJ0eXAi", "eyJraWQi"];

/// Signed by nobody that the servers know.
const ASSERTION: &str =
    "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJub2JvZHkifQ.c2lnbmVkLWJ5LW5vYm9keS1hdC1hbGw";

/// A person whose way leaves traces, of which the program must leave none.
#[derive(Clone, Debug)]
struct Traced {
    person: Person,
    secrets: Arc<Mutex<BTreeSet<String>>>,
}

impl UserAgent for Traced {
    fn prepare<'a>(&'a self, wish: RedirectWish<'a>) -> Work<'a, Box<dyn Visit>> {
        note(&wish);
        Box::pin(async move {
            let visit = self.person.prepare(wish).await?;
            let secrets = Arc::clone(&self.secrets);
            Ok(Box::new(TracedVisit { visit, secrets }) as Box<dyn Visit>)
        })
    }
}

struct TracedVisit {
    visit: Box<dyn Visit>,
    secrets: Arc<Mutex<BTreeSet<String>>>,
}

impl Visit for TracedVisit {
    fn redirect_uri(&self) -> &str {
        self.visit.redirect_uri()
    }

    fn go(self: Box<Self>, request: &AuthorizationRequest) -> Work<'_, Secret> {
        note(request);
        Box::pin(async move {
            let answer = self.visit.go(request).await;
            note(&answer);
            let answer = answer?;
            let mut secrets = self.secrets.lock().unwrap();
            secrets.insert(request.state.expose().to_owned());
            secrets.insert(request.verifier.expose().to_owned());
            for (name, value) in form_urlencoded::parse(answer.expose().as_bytes()) {
                if name == "code" {
                    secrets.insert(value.into_owned());
                }
            }
            drop(secrets);
            Ok(answer)
        })
    }
}

/// A user agent that breaks when it has everything in its hands.
#[derive(Debug)]
struct Breaking;

impl UserAgent for Breaking {
    fn prepare<'a>(&'a self, _wish: RedirectWish<'a>) -> Work<'a, Box<dyn Visit>> {
        Box::pin(std::future::ready(Ok(Box::new(Self) as Box<dyn Visit>)))
    }
}

impl Visit for Breaking {
    fn redirect_uri(&self) -> &str {
        REDIRECT_URI
    }

    fn go(self: Box<Self>, request: &AuthorizationRequest) -> Work<'_, Secret> {
        panic!("{request:?} broke");
    }
}

/// Notes an error in all the ways in which errors are shown.
fn note_error<E: std::error::Error>(error: &E) {
    note(error);
    note(&error.to_string());
    note(&chain(error));
}

/// A library in a program that logs everything and shows everything that can be shown.
struct Indiscreet {
    world: World,
    wiretap: Wiretap,
    person: Traced,
}

impl Indiscreet {
    fn start() -> Self {
        let wiretap = Wiretap::start();
        let mut world = World::start();
        world.http = HttpClient::new(HttpSettings {
            http_proxy: Some(wiretap.url.clone()),
            ..HttpSettings::default()
        });
        let person = Traced {
            person: world.person(),
            secrets: Arc::default(),
        };
        Self {
            world,
            wiretap,
            person,
        }
    }

    async fn log_in(&self, oauth: OAuth, options: LoginOptions) {
        let site = self.world.site_with(oauth);
        note(&(&site, site.sign_in(), site.vault(), &options));
        match site.log_in(&self.person, &options).await {
            Ok(signed_in) => note(&signed_in),
            Err(error) => note_error(&error),
        }
        note(&self.world.grant().await);
        let url = self.world.peer.mcp().parse().unwrap();
        note(&self.world.vault().transaction(&url).await);
        note(&self.world.vault().list().await);
    }

    /// What is used with a sign-in, by a session and by a manager.
    async fn use_it(&self, oauth: OAuth) {
        let world = &self.world;
        let credentials = OAuthCredentials::new(world.site_with(oauth), None);
        note(&(&credentials, credentials.identity()));
        let session = world.session_by(credentials.clone()).await;
        whoami(&session).await;
        world.peer.expire();
        whoami(&session).await;
        note_error(&write_note(&session).await.unwrap_err());
        note(&(&session, &credentials, credentials.identity()));
        // The authorization server is away.
        world.peer.expire();
        world.peer.set(&json!({ "failNextRefresh": 503 }));
        note_error(&try_whoami(&session).await.unwrap_err());
    }

    async fn stored(&self) -> BTreeSet<String> {
        stored(&self.world.vault()).await
    }

    /// Clients with a secret and with a key, an assertion, a denial, and something that breaks. Says
    /// what was stored for them.
    async fn fail_and_break(&self) -> BTreeSet<String> {
        let world = &self.world;
        let mut secrets = BTreeSet::new();
        let (secret_id, key_id) = (
            world.peer.confidential_client().0,
            world.peer.key_client().0,
        );
        let confidential = OAuth {
            client_id: Some(secret_id.to_owned()),
            client_secret_env: Some(SECRET.to_owned()),
            ..OAuth::default()
        };
        let typed = LoginOptions {
            client_secret: Some(Secret::new(world.peer.confidential_client().1)),
            ..LoginOptions::default()
        };
        self.log_in(confidential.clone(), typed).await;
        secrets.append(&mut self.stored().await);
        note(&world.site_with(confidential).log_out(true).await);
        let key = OAuth {
            client_id: Some(key_id.to_owned()),
            private_key_env: Some(KEY.to_owned()),
            grant: Grant::ClientCredentials,
            ..OAuth::default()
        };
        self.log_in(key, LoginOptions::default()).await;
        secrets.append(&mut self.stored().await);
        let file = world.directory.path().join("assertion");
        fs::write(&file, ASSERTION).unwrap();
        let vouched = OAuth {
            client_id: Some(secret_id.to_owned()),
            client_secret_env: Some(SECRET.to_owned()),
            assertion_file: Some(file),
            grant: Grant::JwtBearer,
            ..OAuth::default()
        };
        self.log_in(vouched, LoginOptions::default()).await;
        let mut denied = self.person.clone();
        denied.person = world.person_who(Decision::Deny);
        let denied = world.site().log_in(&denied, &LoginOptions::default()).await;
        note_error(&denied.unwrap_err());
        let site = world.site();
        let mut breaking = JoinSet::new();
        breaking.spawn(async move { site.log_in(&Breaking, &LoginOptions::default()).await });
        let broken = breaking.join_next().await.unwrap();
        assert!(broken.is_err());
        note(&broken);

        secrets
    }

    fn secrets(&self) -> BTreeSet<String> {
        let mut secrets = self.person.secrets.lock().unwrap().clone();
        secrets.append(&mut self.wiretap.secrets());
        secrets.extend(configured(&self.world.peer));
        secrets
    }
}

/// The keys and tokens that are stored now.
async fn stored(vault: &Vault) -> BTreeSet<String> {
    let listing = vault.list().await.unwrap();
    let records = listing.records.into_iter().map(|listed| listed.record);
    let grants = records.flat_map(|record| record.grants.into_values());
    let secrets = grants.flat_map(|grant| {
        let tokens = grant.tokens;
        let refresh = tokens.as_ref().and_then(|tokens| tokens.refresh.clone());
        let access = tokens.map(|tokens| tokens.access);
        let client = grant.client;
        let registration = client.registration_access_token;
        [access, refresh, client.secret, registration, grant.dpop_key]
    });
    let secrets = secrets.flatten();
    secrets.map(|secret| secret.expose().to_owned()).collect()
}

/// The secrets that are configured, in the pieces in which they could be told.
fn configured(peer: &OAuthPeer) -> Vec<String> {
    let (_, secret) = peer.confidential_client();
    let (_, key) = peer.key_client();
    let lines = key.lines().filter(|line| !line.starts_with("--"));
    let pieces = lines.chain([secret, ASSERTION]).map(str::to_owned);
    pieces.filter(|piece| piece.len() >= SHORTEST).collect()
}

#[tokio::test]
async fn nothing_secret_is_logged_shown_or_told_by_the_library() {
    listen();
    let indiscreet = Indiscreet::start();
    let world = &indiscreet.world;
    let bound = OAuth {
        dpop: Dpop::Always,
        scopes: vec!["mcp:basic".to_owned()],
        ..OAuth::default()
    };
    indiscreet
        .log_in(bound.clone(), LoginOptions::default())
        .await;
    indiscreet.use_it(bound.clone()).await;
    let mut secrets = indiscreet.stored().await;

    // A manager tells of its server and its end.
    let managed = Managed::start(world).await;
    note(&managed.whoami().await);
    world.peer.revoke_all();
    let error = managed.whoami().await.unwrap_err();
    note_error(&error);
    note(&error.for_model());
    let Managed {
        manager,
        mut events,
        ..
    } = managed;
    note(&(manager.status(), &manager));
    manager.shutdown().await;
    drop(manager);
    while let Some(event) = events.next().await {
        note(&event);
    }

    secrets.append(&mut indiscreet.fail_and_break().await);
    secrets.append(&mut indiscreet.secrets());
    let heard = heard();
    for part in ["TRACE", "cocode_auth", "hyper_util", "reqwest", " broke"] {
        assert!(heard.contains(part), "nothing of {part:?} was heard");
    }
    // The codes, verifiers, states, tokens, proofs and secrets of all of these.
    assert!(secrets.len() > 25, "{}", secrets.len());
    assert_eq!(told(&heard, &secrets), [""; 0]);
    assert_no_token(&heard);
}

/// Entries of one server for each way to sign in there.
fn entries(url: &str, secret_id: &str, key_id: &str) -> String {
    format!(
        "[mcp_servers.{NOTES}]\nurl = '{url}'\noauth.dpop = 'always'\n\
         [mcp_servers.confidential]\nurl = '{url}?confidential'\noauth.client_id = '{secret_id}'\n\
         oauth.client_secret_env = '{SECRET}'\n\
         [mcp_servers.machine]\nurl = '{url}?machine'\noauth.client_id = '{key_id}'\n\
         oauth.private_key_env = '{KEY}'\noauth.grant = 'client_credentials'\n\
         [mcp_servers.vouched]\nurl = '{url}?vouched'\noauth.client_id = '{secret_id}'\n\
         oauth.client_secret_env = '{SECRET}'\noauth.assertion_env = 'NOTES_ASSERTION'\n\
         oauth.grant = 'jwt_bearer'\n",
    )
}

/// A user of the program who wants to know everything, and shows it to everybody.
struct Outspoken {
    signing: SignIn,
    wiretap: Wiretap,
    n_runs: usize,
    said: String,
}

impl Outspoken {
    fn run(&mut self, words: &[&str], decision: Decision, code: i32) {
        let peer = &self.signing.peer;
        // Once to the terminal and once to a file.
        let log = self.signing.home.project().join("everything.log");
        let mut command = self.signing.command(words, decision);
        command
            .env("BROWSER", peer.browser(Browser::Plain, decision))
            .env("COCODE_LOG", "trace")
            .env("http_proxy", &self.wiretap.url)
            .env(SECRET, peer.confidential_client().1)
            .env(KEY, peer.key_client().1)
            .env("NOTES_ASSERTION", ASSERTION)
            .args(["-vvv", "--json"]);
        self.n_runs += 1;
        if self.n_runs.is_multiple_of(2) {
            command.arg("--log-file").arg(log);
        }
        let finished = Finished::of(command.output().unwrap()).with_code(code);
        self.said.push_str(&finished.stdout);
        for line in finished.stderr.lines() {
            // The address to sign in at holds the state, and the user may need it.
            if !line.starts_with("{\"signIn\":") {
                self.said.push_str(line);
            }
        }
    }

    fn vault(&self) -> Vault {
        Vault::new(StoreOptions {
            choice: StoreChoice::File,
            directory: self.signing.home.home().join("state"),
            session_bus: None,
        })
    }

    /// The text of all files of the user, except for the store.
    fn read_files(&mut self) {
        let mut directories = vec![self.signing.home.home(), self.signing.home.project()];
        let store = self.signing.credentials_file();
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else if path != store {
                    let bytes = fs::read(path).unwrap();
                    self.said.push_str(&String::from_utf8_lossy(&bytes));
                }
            }
        }
    }
}

#[test]
fn nothing_secret_is_logged_shown_or_kept_elsewhere_by_the_program() {
    let signing = SignIn::new();
    let (secret_id, key_id) = (
        signing.peer.confidential_client().0,
        signing.peer.key_client().0,
    );
    let entries = entries(signing.peer.mcp(), secret_id, key_id);
    signing.home.user_file("mcp.toml", &entries);
    let mut outspoken = Outspoken {
        signing,
        wiretap: Wiretap::start(),
        n_runs: 0,
        said: String::new(),
    };
    let (allow, deny) = (Decision::Allow, Decision::Deny);
    outspoken.run(&["login", NOTES], deny, 4);
    outspoken.run(&["login", NOTES], allow, 0);
    outspoken.run(&["call", NOTES, "whoami"], allow, 0);
    outspoken.run(&["call", NOTES, "write_note", "note=x"], allow, 4);
    outspoken.run(&["login", "confidential"], allow, 0);
    outspoken.run(&["login", "machine"], allow, 0);
    outspoken.run(&["login", "vouched"], allow, 4);
    outspoken.signing.peer.expire();
    outspoken.run(&["call", NOTES, "whoami"], allow, 0);
    outspoken.run(&["call", "confidential", "whoami"], allow, 0);
    outspoken.run(&["call", "machine", "whoami"], allow, 0);
    outspoken.run(&["call", "vouched", "whoami"], allow, 4);
    outspoken.run(&["status"], allow, 4);
    outspoken.run(&["doctor"], allow, 4);
    outspoken.run(&["auth", "status"], allow, 0);
    let store = outspoken.signing.credentials_file();
    let text = fs::read_to_string(&store).unwrap();
    assert_private(&store);
    let mut stored = block_on(stored(&outspoken.vault()));
    outspoken.run(&["logout", NOTES, "--revoke"], allow, 0);
    outspoken.signing.peer.revoke_all();
    outspoken.run(&["call", "confidential", "whoami"], allow, 4);
    outspoken.run(&["logout", "--all", "--revoke"], allow, 0);
    outspoken.read_files();

    let mut secrets = outspoken.wiretap.secrets();
    assert!(secrets.len() > 25, "{}", secrets.len());
    // They are where they belong.
    assert!(!told(&text, &secrets).is_empty());
    assert_eq!(told(&text, &stored).len(), stored.len());
    secrets.append(&mut stored);
    secrets.extend(configured(&outspoken.signing.peer));
    for part in ["TRACE", "cocode_auth", "cocode_wire"] {
        assert!(
            outspoken.said.contains(part),
            "nothing of {part:?} was said"
        );
    }
    assert_eq!(told(&outspoken.said, &secrets), [""; 0]);
    assert_no_token(&outspoken.said);
}

/// Fails if a token is in a text that nobody has told us of.
fn assert_no_token(text: &str) {
    for begin in JWT {
        let found = text.lines().find(|line| line.contains(begin));
        assert_eq!(found, None);
    }
}

fn assert_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
