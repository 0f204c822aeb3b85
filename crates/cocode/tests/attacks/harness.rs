//! A user with a home, a workspace and a process outside of the sandbox that records what reaches it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use cocode_testkit::{ModelFormat, ModelScript, ModelTurn, ScriptedModel};
use serde_json::{Value, json};

use crate::http::ByHand;
use tempfile::TempDir;

/// The beginning of everything that no attack may read.
pub(crate) const MARK: &str = "S3CR3T-";
const PYTHON: &str = "/usr/bin/python3";
const PAYLOADS: &str = include_str!("payloads.py");
const VICTIM: &str = include_str!("victim.py");
const SERVER: &str = include_str!("server.py");

/// Who runs cocode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    Root,
    /// The user of the tests, or nobody if that is root.
    User,
}

/// Root can become an ordinary user; an ordinary user stays one.
pub(crate) fn identities() -> Vec<Identity> {
    if is_root() {
        vec![Identity::Root, Identity::User]
    } else {
        vec![Identity::User]
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) struct Scene {
    pub(crate) identity: Identity,
    base: TempDir,
    victim: Child,
    orders: Option<ChildStdin>,
    evidence: BufReader<ChildStdout>,
}

impl Scene {
    pub(crate) fn new(identity: Identity) -> Self {
        let base = TempDir::with_prefix("attacks-").unwrap();
        let path = base.path();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        let binary = Path::new(env!("CARGO_BIN_EXE_cocode"));
        let link = path.join("cocode");
        fs::hard_link(binary, &link).unwrap_or_else(|_| assert!(fs::copy(binary, &link).is_ok()));
        fs::write(path.join("payloads.py"), PAYLOADS).unwrap();
        fs::write(path.join("victim.py"), VICTIM).unwrap();
        fs::write(path.join("server.py"), SERVER).unwrap();
        if is_root() {
            let prepared = Command::new(PYTHON)
                .arg(path.join("victim.py"))
                .arg("prepare")
                .arg(path)
                .status();
            assert!(prepared.unwrap().success());
            if identity == Identity::User {
                chown(path, Some(65534), Some(65534)).unwrap();
            }
        }
        let mut command = Command::new(PYTHON);
        command
            .arg(path.join("victim.py"))
            .arg("victim")
            .env_clear();
        command
            .env("BASE", path)
            .env("VICTIM_SECRET", format!("{MARK}of-the-victim"));
        become_identity(&mut command, identity);
        let mut victim = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = victim.stdin.take();
        let evidence = BufReader::new(victim.stdout.take().unwrap());
        let mut scene = Self {
            identity,
            base,
            victim,
            orders,
            evidence,
        };
        assert_eq!(scene.line(), "READY\n");
        scene
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.evidence.read_line(&mut line).unwrap();
        line
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path("ws")
    }

    /// A file of the user in `mcp.toml` and the like, made before anything is recorded.
    pub(crate) fn config(&self, name: &str, text: &str) {
        self.run(
            "sh",
            &[
                "-c",
                r#"mkdir -p "$(dirname "$1")" && printf %s "$2" > "$1""#,
                "sh",
                self.path("user/.config/cocode")
                    .join(name)
                    .to_str()
                    .unwrap(),
                text,
            ],
        );
    }

    /// `cocode WORDS…` in the workspace.
    pub(crate) fn cocode(&self, words: &[&str]) -> Command {
        let mut command = self.command(self.path("cocode").to_str().unwrap());
        command.args(words);
        command
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .stdin(Stdio::null())
            .current_dir(self.work());
        command
            .env("HOME", self.path("user"))
            .env("PATH", "/usr/bin:/bin");
        become_identity(&mut command, self.identity);
        command
    }

    /// Runs a program as the user, outside of the sandbox.
    pub(crate) fn run(&self, program: &str, words: &[&str]) -> String {
        let output = self.command(program).args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// `cocode exec WORDS…` with a model that makes these turns.
    pub(crate) fn exec(&self, words: &[&str], turns: Vec<ModelTurn>) -> (Output, Vec<Value>) {
        let model = model(turns);
        let mut command = self.cocode(&[
            "exec",
            "--provider",
            "anthropic",
            "--model",
            "claude-sonnet-4-5",
        ]);
        let output = with_model(&mut command, &model)
            .args(words)
            .arg("Go.")
            .output()
            .unwrap();
        (output, model.bodies())
    }

    /// What reached the process outside, and what of its files was changed, since it was asked last.
    pub(crate) fn evidence(&mut self) -> Vec<String> {
        assert!(
            self.victim.try_wait().unwrap().is_none(),
            "the victim is dead"
        );
        self.orders
            .as_mut()
            .unwrap()
            .write_all(b"report\n")
            .unwrap();
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    pub(crate) fn attack_command(&self, flags: &str) -> String {
        let base = self.base.path().display();
        format!("{PYTHON} {base}/payloads.py run {base}/ws/params.json {flags}")
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        drop(self.orders.take());
        drop(self.victim.wait());
    }
}

fn become_identity(command: &mut Command, identity: Identity) {
    if identity == Identity::User && is_root() {
        command.uid(65534).gid(65534);
    }
}

pub(crate) fn model(turns: Vec<ModelTurn>) -> ScriptedModel {
    let script = turns
        .into_iter()
        .fold(ModelScript::new(), ModelScript::turn);
    script
        .forever(ModelTurn::new().text("Done."))
        .start(ModelFormat::Anthropic)
}

pub(crate) fn with_model<'a>(command: &'a mut Command, model: &ScriptedModel) -> &'a mut Command {
    command
        .env("ANTHROPIC_BASE_URL", model.base_url())
        .env("ANTHROPIC_API_KEY", format!("{MARK}of-the-model"))
}

pub(crate) fn shell(id: &str, command: &str) -> ModelTurn {
    ModelTurn::new().call(id, "shell", &json!({ "command": command }))
}

/// A gateway of the user, whose first server is ready.
pub(crate) struct RunningGateway {
    child: Child,
    url: String,
    token: Option<String>,
    _lines: BufReader<ChildStdout>,
}

impl RunningGateway {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut next = || {
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            serde_json::from_str::<Value>(&line).unwrap()
        };
        let first = next();
        while next()["server"]["state"] != "ready" {}
        let text = |name: &str| first[name].as_str().map(str::to_owned);
        let url = text("url").unwrap();
        let token = first["token"]["token"].as_str().map(str::to_owned);
        Self {
            child,
            url,
            token,
            _lines: lines,
        }
    }

    /// Whether the server is served to clients at all.
    pub(crate) fn has(&self, server: &str) -> bool {
        let client = ByHand::new(&format!("{}/{server}", self.url), self.token.as_deref());
        client.request("initialize", &json!({})).status != 404
    }

    pub(crate) fn client(&self, server: &str) -> ByHand {
        ByHand::new(&format!("{}/{server}", self.url), self.token.as_deref()).initialized()
    }
}

impl Drop for RunningGateway {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The report of the payloads, wherever it stands in a value.
pub(crate) fn report(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => {
            let (text, _) = text.split_once("REPORT")?.1.split_once("END")?;
            serde_json::from_str(text).ok()
        }
        Value::Array(items) => items.iter().find_map(report),
        Value::Object(members) => members.values().find_map(report),
        _ => None,
    }
}
