//! Sign-ins in a real keyring: GNOME Keyring on a bus of its own, there and gone.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use cocode_auth::oauth::{Listing, Vault};
use cocode_auth::{Place, StoreChoice, StoreOptions};
use cocode_testkit::Decision;
use serde_json::Value;

use super::crowd::block_on;
use crate::harness::{Finished, Scratch, start};
use crate::sign_in::{NOTES, SignIn};

const N_PROCESSES: usize = 10;

const BUS: &str = r#"<busconfig>
  <type>session</type>
  <listen>unix:abstract=ADDRESS</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#;

/// A bus with a keyring on it. Both end with this.
struct Bus {
    scratch: Scratch,
    address: String,
    daemons: Vec<Child>,
}

impl Bus {
    fn start() -> Self {
        let scratch = Scratch::new();
        let socket = format!("cocode-sign-in-{}", std::process::id());
        let config = scratch.file("bus.conf", &BUS.replace("ADDRESS", &socket));
        let mut command = program("dbus-daemon", scratch.path());
        command.args(["--nofork", "--print-address", "--config-file", &config]);
        let mut daemon = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        let mut lines = BufReader::new(daemon.stdout.take().unwrap());
        lines.read_line(&mut address).unwrap();
        Self {
            scratch,
            address: address.trim().to_owned(),
            daemons: vec![daemon],
        }
    }

    /// Starts GNOME Keyring with an unlocked default keyring, and waits until the program uses it.
    fn start_keyring(&mut self, signing: &SignIn) {
        let mut command = program("gnome-keyring-daemon", self.scratch.path());
        command
            .args(["--foreground", "--unlock", "--components=secrets"])
            .env("DBUS_SESSION_BUS_ADDRESS", &self.address)
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        let mut daemon = command.spawn().unwrap();
        let mut stdin = daemon.stdin.take().unwrap();
        stdin.write_all(b"password of the keyring").unwrap();
        drop(stdin);
        self.daemons.push(daemon);
        // The test runner ends a test that waits forever.
        while self.status(signing)["store"]["place"] != "keyring" {
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn stop_keyring(&mut self) {
        end(&mut self.daemons.pop().unwrap());
    }

    /// `cocode mcp WORDS…` where the bus is.
    fn command(&self, signing: &SignIn, words: &[&str]) -> Command {
        let mut command = signing.command(words, Decision::Allow);
        command.env("DBUS_SESSION_BUS_ADDRESS", &self.address);
        command
    }

    fn mcp(&self, signing: &SignIn, words: &[&str]) -> Finished {
        Finished::of(self.command(signing, words).output().unwrap())
    }

    fn status(&self, signing: &SignIn) -> Value {
        let finished = self.mcp(signing, &["auth", "status", "--json"]);
        serde_json::from_str(&finished.with_code(0).stdout).unwrap()
    }

    fn whoami(&self, signing: &SignIn) -> Finished {
        self.mcp(signing, &["call", NOTES, "whoami"])
    }

    /// All sign-ins that can be found, wherever they are.
    fn sign_ins(&self, signing: &SignIn) -> Listing {
        let vault = Vault::new(StoreOptions {
            choice: StoreChoice::Auto,
            directory: signing.home.home().join("state"),
            session_bus: Some(self.address.clone()),
        });
        block_on(vault.list()).unwrap()
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        // The keyring before its bus.
        self.daemons.iter_mut().rev().for_each(end);
    }
}

fn end(daemon: &mut Child) {
    let ended = daemon.kill().and_then(|()| daemon.wait());
    assert!(ended.is_ok() || thread::panicking(), "{ended:?}");
}

fn program(name: &str, home: &Path) -> Command {
    let runtime = home.join("run");
    fs::create_dir_all(&runtime).unwrap();
    let mut command = Command::new(name);
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", runtime)
        .stderr(Stdio::null());
    command
}

/// Fails if the file holds anything that looks like a token.
fn assert_nothing_in_file(signing: &SignIn) {
    let text = fs::read_to_string(signing.credentials_file()).unwrap();
    for secret in ["eyJ", "access", "refresh"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn system_keyring_holds_sign_ins_which_other_processes_renew_and_end() {
    let signing = SignIn::new();
    let mut bus = Bus::start();
    bus.start_keyring(&signing);
    let finished = bus.mcp(&signing, &["login", NOTES]).with_code(0);
    let told = "  kept in  system keyring (Secret Service), because it is there and answers\n";
    assert!(finished.stdout.contains(told), "{}", finished.stdout);
    assert_nothing_in_file(&signing);
    let listing = bus.sign_ins(&signing);
    assert_eq!(listing.records.len(), 1);
    assert_eq!(listing.records[0].place, Place::Keyring);

    // One of many renews for all.
    signing.peer.expire();
    let call = ["call", NOTES, "whoami"];
    let processes: Vec<Child> = (0..N_PROCESSES)
        .map(|_| start(&mut bus.command(&signing, &call)))
        .collect();
    for process in processes {
        let finished = Finished::of(process.wait_with_output().unwrap());
        assert!(finished.with_code(0).stdout.contains("alice"));
    }
    assert_eq!(signing.peer.count("/tokens/refresh_token/success"), 1);
    assert_eq!(signing.peer.count("/refresh_reuse"), 0);
    assert_nothing_in_file(&signing);
    let status = bus.status(&signing);
    assert_eq!(status["servers"][0]["state"], "signed-in");
    assert_eq!(status["servers"][0]["keptIn"], "keyring");

    bus.mcp(&signing, &["logout", NOTES, "--revoke"])
        .with_code(0);
    assert!(bus.sign_ins(&signing).records.is_empty());
    bus.whoami(&signing)
        .with_code(4)
        .complains(&["code: auth-required"]);
    assert_eq!(signing.peer.count("/revocations"), 1);
}

#[test]
fn system_keyring_that_is_gone_is_not_taken_for_nobody_signed_in() {
    let signing = SignIn::new();
    let mut bus = Bus::start();
    bus.start_keyring(&signing);
    bus.mcp(&signing, &["login", NOTES]).with_code(0);
    bus.stop_keyring();
    for finished in [
        bus.whoami(&signing),
        signing.home.mcp(&["call", NOTES, "whoami"]),
    ] {
        let finished = finished.with_code(4);
        finished.complains(&["keyring", "code: credentials-unavailable"]);
        assert!(
            !finished.stderr.contains("cocode mcp login"),
            "{finished:?}"
        );
    }

    // Somebody who does not care signs in to the file, and is told so.
    let finished = signing.login(&["--credential-store", "file"]).with_code(0);
    assert!(finished.stdout.contains("  kept in  file "), "{finished:?}");
    assert_eq!(signing.whoami()["sub"], "alice");
}
