//! Developer tools in every mode of the sandbox: they do their work inside of the workspace.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cocode_tools::{Confinement, Leaving, NoProgress, TemporaryDirectory, Workspace};
use serde_json::json;
use tempfile::TempDir;

use crate::{ALL, text};

/// A workspace with a state directory beside it, as conversations have them.
struct Project {
    top: TempDir,
}

/// A mode, and whether the workspace is writable in it.
const MODES: [(&str, bool); 3] = [
    ("read-only", false),
    ("workspace-write", true),
    ("workspace-write with network", true),
];

impl Project {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("work")).unwrap();
        Self { top }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().canonicalize().unwrap().join(name)
    }

    fn file(&self, name: &str, content: &str) {
        let path = self.path("work").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Runs a command in a mode, and checks that it succeeds.
    async fn run(&self, mode: &str, command: &str) -> String {
        let workspace = Workspace::open(&self.path("work"), ALL).unwrap();
        let mut environment = environment();
        let temporary = TemporaryDirectory::open(&self.path("state/tmp")).unwrap();
        environment.push(("TMPDIR".into(), temporary.path().into()));
        let confinement = match mode {
            "read-only" => Confinement::read_only(),
            _ => Confinement::workspace_write(workspace.handle().clone()),
        };
        let mut confinement = confinement.with_temporary(Arc::new(temporary));
        if mode.ends_with("network") {
            confinement = confinement.with_network();
        }
        let workspace = workspace.with_environment(environment).with_confinement(
            confinement.with_hidden(&self.path("state")),
            Leaving::NotOffered,
        );
        let arguments = json!({ "command": format!("set -e; {command}"), "timeout_seconds": 120 });
        let output = workspace
            .call("shell", &arguments, &NoProgress)
            .await
            .unwrap();
        let exit_code = &output.structured.as_ref().unwrap()["exit_code"];
        assert_eq!(*exit_code, json!(0), "{mode}: {command}: {}", text(&output));
        text(&output).to_owned()
    }

    /// Runs one command where nothing can be written, and another one where the workspace can.
    async fn run_in_every_mode(&self, reading: &str, writing: &str) {
        for (mode, is_writable) in MODES {
            self.run(mode, reading).await;
            if is_writable {
                self.run(mode, writing).await;
            }
        }
    }
}

/// What tools need to find themselves: they are installed in the home of the user.
#[expect(
    clippy::disallowed_methods,
    reason = "tools are where the environment of the test says"
)]
fn environment() -> Vec<(OsString, OsString)> {
    let names = ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME"];
    let found = names.map(|name| std::env::var_os(name).map(|value| (name.into(), value)));
    found.into_iter().flatten().collect()
}

fn peers() -> PathBuf {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
    assert!(peers.is_dir(), "run `cargo xtask peers`");
    peers.canonicalize().unwrap()
}

#[tokio::test]
async fn git_works_in_every_mode() {
    let project = Project::new();
    project.file("a.txt", "a\n");
    let init = "git init -q . && git config user.email a@example.com && git config user.name a \
        && git add . && git commit -qm first";
    project.run("workspace-write", init).await;
    project
        .run_in_every_mode(
            "git status --short && git log --oneline && git diff HEAD && git grep -n a",
            "echo more >>a.txt && git commit -qam more && git checkout -qB other && git gc -q \
             && git stash list && git worktree list && git clone -q . clone && rm -rf clone",
        )
        .await;
}

#[tokio::test]
async fn make_works_in_every_mode() {
    let project = Project::new();
    let rules = "all: a b c d\na b c d:\n\t@echo $@\nfiles: f1 f2 f3 f4\nf%:\n\t@echo $@ >$@\n";
    project.file("Makefile", rules);
    project
        .run_in_every_mode("make -s -j4 all", "make -s -j4 files && rm f1 f2 f3 f4")
        .await;
}

#[tokio::test]
async fn cargo_process_works_in_every_mode() {
    let project = Project::new();
    let manifest =
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    project.file("Cargo.toml", manifest);
    project.file(
        "src/lib.rs",
        "#[test]\nfn works() {\n    assert_eq!(2 + 2, 4);\n}\n",
    );
    project
        .run_in_every_mode(
            "cargo metadata --offline --no-deps --format-version 1 >/dev/null",
            "cargo test -q --offline --target-dir target",
        )
        .await;
}

#[tokio::test]
async fn peer_npm_works_in_every_mode() {
    let project = Project::new();
    let package = r#"{ "name": "app", "version": "1.0.0", "scripts": { "hello": "node -e 'console.log(1 + 1)'" } }"#;
    project.file("package.json", package);
    project.file(
        "dep/package.json",
        r#"{ "name": "dep", "version": "1.0.0" }"#,
    );
    project.file("dep/index.js", "module.exports = 42;\n");
    project
        .run_in_every_mode(
            "npm run -s hello",
            "export npm_config_cache=$TMPDIR/npm; npm install --offline --no-audit --no-fund ./dep && node -e \"if (require('dep') !== 42) process.exit(1)\" \
             && npm pack -s && npm ls && npm uninstall -s dep",
        )
        .await;
}

#[tokio::test]
async fn peer_pytest_works_in_every_mode() {
    let project = Project::new();
    let tests = "import subprocess, sys, threading\n\
        def test_process(): assert subprocess.check_output([sys.executable, '-c', 'print(1)']) == b'1\\n'\n\
        def test_thread():\n    t = threading.Thread(target=lambda: None); t.start(); t.join()\n";
    project.file("test_small.py", tests);
    let temporary = "def test_file(tmp_path): (tmp_path / 'x').write_text('x')\n";
    project.file("test_files.py", temporary);
    let python = peers().join("admin-python/bin/python");
    let python = python.display();
    project
        .run_in_every_mode(
            &format!(
                "PYTHONDONTWRITEBYTECODE=1 {python} -m pytest -q -p no:cacheprovider test_small.py"
            ),
            &format!("{python} -m pytest -q"),
        )
        .await;
}

/// The compiler of Go is a Go program itself, and so is what it makes.
#[tokio::test]
async fn system_go_works_in_every_mode() {
    let project = Project::new();
    project.file("go.mod", "module example.com/small\n\ngo 1.19\n");
    let program = "package main\n\nimport (\"fmt\"; \"os\"; \"sync\")\n\nfunc main() {\n\tvar w sync.WaitGroup\n\
        \tfor i := 0; i < 8; i++ { w.Add(1); go func() { defer w.Done() }() }\n\tw.Wait()\n\
        \tentries, err := os.ReadDir(\".\")\n\tif err != nil { panic(err) }\n\tfmt.Println(len(entries))\n}\n";
    project.file("main.go", program);
    let build = "GOCACHE=$PWD/.cache GOFLAGS=-mod=mod go build -o small .";
    project.run("workspace-write", build).await;
    project.run_in_every_mode("./small", build).await;
}
