//! A real authorization server and a real MCP server that wants its tokens, as one process beside
//! the test, and the user who logs in there, with or without a real browser.
//!
//! The scripts are in `peers/oauth`; what they import is installed by `cargo xtask peers`. All
//! calls block: a test with a runtime makes them on a thread of their own where the code under test
//! has to go on meanwhile.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The two servers and their user; clones are the same ones. They end with the last clone, or with
/// the test.
#[derive(Debug, Clone)]
pub struct OAuthPeer(Arc<Peer>);

/// What the user does when asked for consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Allow,
    Deny,
}

/// What the user goes to pages with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Browser {
    /// No browser: requests that follow redirects, keep cookies and send forms.
    Plain,
    /// Debian's Chromium, which only tests named `system_…` may expect.
    Chromium,
}

#[derive(Debug)]
struct Peer {
    announcement: Announcement,
    /// Reports of browser commands, and what Chromium leaves behind.
    directory: TempDir,
    process: Child,
}

/// The line that the servers begin with.
#[derive(Debug, Deserialize)]
struct Announcement {
    mcp: String,
    issuer: String,
    admin: String,
    resource: String,
    clients: Clients,
}

#[derive(Debug, Deserialize)]
struct Clients {
    public: Client,
    confidential: ConfidentialClient,
    key: KeyClient,
}

#[derive(Debug, Deserialize)]
struct Client {
    client_id: String,
}

#[derive(Debug, Deserialize)]
struct ConfidentialClient {
    client_id: String,
    client_secret: String,
}

#[derive(Debug, Deserialize)]
struct KeyClient {
    client_id: String,
    private_key_pem: String,
}

impl OAuthPeer {
    /// Starts the servers as they come: tokens last an hour, and the user is asked.
    pub fn start() -> Self {
        Self::start_with(&json!({}))
    }

    /// Starts the servers with settings (see [`Self::set`]) and features: `cimd`, `dpop` and
    /// `registration` can be false.
    pub fn start_with(options: &Value) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut process = node("server.mjs", directory.path())
            .arg(options.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Node can be started");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("it was just piped"))
            .read_line(&mut line)
            .expect("the servers say where they are");
        let announcement = serde_json::from_str(&line);
        let announcement =
            announcement.unwrap_or_else(|error| panic!("{line:?} is no announcement: {error}"));
        Self(Arc::new(Peer {
            announcement,
            directory,
            process,
        }))
    }

    /// The address of the MCP server.
    pub fn mcp(&self) -> &str {
        &self.0.announcement.mcp
    }

    /// The authorization server.
    pub fn issuer(&self) -> &str {
        &self.0.announcement.issuer
    }

    /// The resource that tokens must be for.
    pub fn resource(&self) -> &str {
        &self.0.announcement.resource
    }

    /// The id of a client without a secret that is known from the start.
    pub fn public_client(&self) -> &str {
        &self.0.announcement.clients.public.client_id
    }

    /// The id and the secret of a client that may also act for itself.
    pub fn confidential_client(&self) -> (&str, &str) {
        let client = &self.0.announcement.clients.confidential;
        (&client.client_id, &client.client_secret)
    }

    /// The id and the private key (ES256, PEM) of a client that only acts for itself.
    pub fn key_client(&self) -> (&str, &str) {
        let client = &self.0.announcement.clients.key;
        (&client.client_id, &client.private_key_pem)
    }

    /// What has happened so far.
    pub fn state(&self) -> Value {
        self.administer("GET", "/state", &Value::Null)
    }

    /// The number at a JSON pointer into the state, or how long the list there is.
    pub fn count(&self, pointer: &str) -> u64 {
        match self.state().pointer(pointer) {
            None => 0,
            Some(Value::Array(entries)) => entries.len() as u64,
            Some(value) => value.as_u64().expect("this counts something"),
        }
    }

    /// Comes back with the state when the number at a JSON pointer into it is at least so much.
    pub fn wait_for(&self, pointer: &str, least: u64) -> Value {
        let body = json!({ "pointer": pointer, "least": least });
        self.administer("POST", "/wait", &body)
    }

    /// Changes settings: `accessTokenTtl`, `consent`, `dpopRequired`, `dpopNonce`, `refreshTokens`,
    /// `refreshDelayMs`, `holdRefresh`, `failNextRefresh`, `loseNextRefresh` and `resources`, which are
    /// explained in `peers/oauth/settings.mjs`.
    pub fn set(&self, settings: &Value) {
        self.administer("POST", "/settings", settings);
    }

    /// Lets all access tokens that were issued so far expire.
    pub fn expire(&self) {
        self.administer("POST", "/expire", &Value::Null);
    }

    /// Revokes everything that was issued or granted so far.
    pub fn revoke_all(&self) {
        self.administer("POST", "/revoke-all", &Value::Null);
    }

    /// Makes all clients that registered themselves unknown.
    pub fn forget_clients(&self) {
        self.administer("POST", "/forget-clients", &Value::Null);
    }

    /// Puts a client ID metadata document where the authorization server looks for it.
    pub fn describe_client(&self, url: &str, document: &Value) {
        let body = json!({ "url": url, "document": document });
        self.administer("POST", "/client-document", &body);
    }

    /// Logs in without a browser; says what the client showed in the end.
    pub fn visit(&self, url: &str, decision: Decision) -> Value {
        self.report(Browser::Plain, &[url, decision.word()])
    }

    /// Logs in without a browser up to the way back to the client; says where that leads.
    pub fn redirect(&self, url: &str, decision: Decision) -> String {
        let report = self.report(Browser::Plain, &[url, decision.word(), "--stay"]);
        report["redirect"].as_str().expect("an address").to_owned()
    }

    /// Logs in with Chromium; says what the client showed in the end, and what the browser thought
    /// of it.
    pub fn browse(&self, url: &str, decision: Decision) -> Value {
        self.report(Browser::Chromium, &[url, decision.word()])
    }

    /// A command that takes a URL as its last argument, as a browser does, and logs in there.
    /// What it saw is in [`Self::visits`].
    pub fn browser(&self, browser: Browser, decision: Decision) -> PathBuf {
        let directory = self.0.directory.path();
        let command = node(browser.script(), directory);
        let name = format!("{browser:?}-{decision:?}").to_lowercase();
        let path = directory.join(name);
        let mut words = vec!["env".to_owned(), "-i".to_owned()];
        words.extend(command.get_envs().filter_map(|(name, value)| {
            let text = format!("{}={}", name.to_str()?, value?.to_str()?);
            Some(quoted(text.as_ref()))
        }));
        words.push(quoted(command.get_program()));
        words.extend(command.get_args().map(quoted));
        let script = format!(
            "#!/bin/sh\nfor url; do :; done\nexec {} \"$url\" {} >>{} 2>>{}\n",
            words.join(" "),
            decision.word(),
            quoted(self.visits_file().as_os_str()),
            quoted(directory.join("browser.log").as_os_str()),
        );
        fs::write(&path, script).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
        path
    }

    /// What the commands of [`Self::browser`] saw in the end.
    pub fn visits(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.visits_file()).unwrap_or_default();
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().expect("lines of JSON")
    }

    /// What the commands of [`Self::browser`] complained about.
    pub fn browser_log(&self) -> String {
        fs::read_to_string(self.0.directory.path().join("browser.log")).unwrap_or_default()
    }

    fn visits_file(&self) -> PathBuf {
        self.0.directory.path().join("visits.jsonl")
    }

    fn report(&self, browser: Browser, arguments: &[&str]) -> Value {
        let output = node(browser.script(), self.0.directory.path())
            .args(arguments)
            .output()
            .expect("Node can be started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "nobody got through: {errors}");
        serde_json::from_slice(&output.stdout).expect("a report")
    }

    /// One request to the port that is there for tests.
    fn administer(&self, method: &str, path: &str, body: &Value) -> Value {
        let address = &self.0.announcement.admin;
        let authority = address.strip_prefix("http://").expect("a plain address");
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        // The old version, whose answers end with the connection.
        let request = format!(
            "{method} {path} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut connection = TcpStream::connect(authority).expect("the servers run");
        let sent = connection.write_all(request.as_bytes());
        sent.expect("the servers read");
        let mut answer = String::new();
        let received = connection.read_to_string(&mut answer);
        received.expect("the servers answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        assert!(head.contains(" 200 "), "{method} {path}: {body}");
        serde_json::from_str(body).expect("answers are JSON")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It would also end with its standard input, a moment later.
        let killed = self.process.kill().and_then(|()| self.process.wait());
        assert!(
            killed.is_ok() || std::thread::panicking(),
            "the servers cannot be ended: {killed:?}"
        );
    }
}

impl Decision {
    const fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

impl Browser {
    const fn script(self) -> &'static str {
        match self {
            Self::Plain => "visit.mjs",
            Self::Chromium => "browse.mjs",
        }
    }
}

/// A script of `peers/oauth` with the Node of the peers, and nothing of the environment of the test.
fn node(script: &str, home: &Path) -> Command {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let peers = std::env::var_os("COCODE_PEERS")
        .map_or_else(|| workspace.join("target/peers"), PathBuf::from);
    let program = peers.join("npm/node_modules/.bin/node");
    assert!(
        program.exists() && peers.join("oauth/node_modules").is_dir(),
        "peers are missing in {}: run `cargo xtask peers`",
        peers.display()
    );
    let mut command = Command::new(program);
    command
        .arg(workspace.join("peers/oauth").join(script))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("COCODE_PEERS", peers)
        .env("HOME", home)
        .env("TMPDIR", home);
    command
}

/// A word of a shell script.
fn quoted(word: &OsStr) -> String {
    let word = word.to_str().expect("paths of tests are text");
    format!("'{}'", word.replace('\'', r"'\''"))
}
