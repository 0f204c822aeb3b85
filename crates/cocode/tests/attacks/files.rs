//! Attacks of the built-in file tools: paths, links, special files and races that lead out of the workspace.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use cocode_testkit::ModelTurn;
use serde_json::{Value, json};

use crate::harness::{MARK, RunningGateway, Scene, identities};

/// Makes the workspace that an attacker would have made by commands.
const HOSTILE_TREE: &str = r#"
ln -s "$1/outside/write_file.f" link_file
ln -s "$1/outside" link_directory
ln -s link_file link_chain
ln -s .. link_up
ln -s /proc/self link_process
ln -s "$1/outside/dangling" link_dangling
ln -s "$1/user/.local/state/cocode" link_state
ln -s /dev/stdin link_stdin
ln -s .git link_git
mkdir -p sub .git/hooks sub/.git/hooks real/deep
ln -s ../../../outside real/deep/out
mkfifo pipe
ln "$1/user/.local/state/cocode/attack-secret" hard_link_secret
echo plain > plain.txt
"#;

/// Paths that lead outside of the workspace.
const PATHS: &[&str] = &[
    "../outside/write_file.f",
    "@/outside/write_file.f",
    "/proc/self/root@/outside/write_file.f",
    "link_file",
    "link_chain",
    "link_directory/write_file.f",
    "link_directory",
    "link_up/outside/write_file.f",
    "link_process/environ",
    "link_process/root@/outside/write_file.f",
    "link_process/cwd/../outside/write_file.f",
    "link_dangling",
    "link_state/attack-secret",
    "link_stdin",
    "sub/../../outside/write_file.f",
    "sub/../link_file",
    "./link_directory//write_file.f",
    "real/deep/out/write_file.f",
    "real/deep/../deep/out/write_file.f",
    "@/ws/../outside/write_file.f",
    "@/ws/link_file",
    "//@/outside/write_file.f",
    "pipe",
    "~/.profile",
    "file://@/outside/write_file.f",
    "plain.txt/../../outside/write_file.f",
    "%2e%2e/outside/write_file.f",
    "..\\outside\\write_file.f",
    "link_file\u{0}",
    "/dev/zero",
    "/etc/passwd",
];

/// Names in the workspace that other programs execute or obey.
const PROTECTED: &[&str] = &[
    ".git/hooks/pre-commit",
    ".git/config",
    ".git//hooks/../hooks/post-checkout",
    "./.git/./hooks/pre-push",
    "link_git/hooks/pre-commit",
    "sub/.git/hooks/pre-commit",
    ".mcp.toml",
    ".mcp.json",
    ".cocode.local.toml",
    "sub/.mcp.toml",
    "@/ws/.mcp.toml",
    "sub/../.mcp.json",
    ".git/hooks",
    ".git",
    ".git/info/attributes",
    ".git/modules/x/hooks/pre-commit",
    ".git/worktrees/x/config.worktree",
];

fn calls(scene: &Scene) -> Vec<(&'static str, Value)> {
    let base = scene.path("");
    let base = base.to_str().unwrap().trim_end_matches('/');
    let mut calls = Vec::new();
    for path in PATHS.iter().map(|path| path.replace('@', base)) {
        calls.push(("read", json!({ "path": path })));
        calls.push(("write", json!({ "path": path, "content": "attacked" })));
        calls.push((
            "edit",
            json!({ "path": path, "old_string": "original", "new_string": "attacked" }),
        ));
        calls.push(("list", json!({ "path": path })));
        calls.push((
            "grep",
            json!({ "path": path, "pattern": MARK, "include_ignored": true }),
        ));
        calls.push((
            "find",
            json!({ "path": path, "glob": "**/*.f", "include_ignored": true }),
        ));
        calls.push(("find", json!({ "glob": path })));
        calls.push(("grep", json!({ "glob": path, "pattern": "original|root:" })));
        calls.push((
            "write",
            json!({ "path": format!("{path}/new"), "content": "attacked" }),
        ));
    }
    let protected = PROTECTED.iter().map(|path| path.replace('@', base));
    calls.extend(protected.map(|path| ("write", json!({ "path": path, "content": "planted" }))));
    calls
}

/// Text from outside in the answer of a tool. Errors repeat paths.
fn leaks(answer: &str) -> bool {
    [
        MARK,
        "original",
        "root:x",
        "write_file.f\\n",
        "append_file.f",
    ]
    .iter()
    .any(|text| answer.contains(text))
}

fn check(scene: &mut Scene, answers: &[String], surface: &str) {
    let calls = calls(scene);
    assert_eq!(answers.len(), calls.len() + 2, "{surface}");
    let (control, answers) = answers.split_at(2);
    assert!(
        control[0].contains("plain") && control[1].contains("created fine.txt"),
        "{control:?}"
    );
    let leaking = calls
        .iter()
        .zip(answers)
        .filter(|(_, answer)| leaks(answer));
    let mut found: Vec<String> = leaking
        .map(|(call, answer)| format!("{call:?}: {answer}"))
        .collect();
    found.extend(scene.evidence());
    // The gateway refuses no names, only the agent does.
    if surface == "agent" {
        let planted = scene.run("sh", &["-c", "grep -rl planted . || true"]);
        found.extend(planted.lines().map(str::to_owned));
    }
    found.retain(|what| !what.contains("\"%2e%2e") && !what.contains("\\\\"));
    assert!(
        found.is_empty(),
        "{surface}, {:?}: {found:#?}",
        scene.identity
    );
}

/// Calls that have to succeed, before those that must not.
fn all_calls(scene: &Scene) -> Vec<(&'static str, Value)> {
    let control = [
        ("read", json!({ "path": "plain.txt" })),
        ("write", json!({ "path": "fine.txt", "content": "fine" })),
    ];
    control.into_iter().chain(calls(scene)).collect()
}

fn hostile_scene(identity: crate::Identity) -> Scene {
    let scene = Scene::new(identity);
    let base = scene.path("");
    scene.run(
        "sh",
        &[
            "-ec",
            HOSTILE_TREE,
            "sh",
            base.to_str().unwrap().trim_end_matches('/'),
        ],
    );
    scene
}

fn gateway(scene: &Scene, root: &str) -> RunningGateway {
    let words = [
        "gateway",
        "--allow-write",
        "--listen",
        "127.0.0.1:0",
        "--json",
        "--root",
    ];
    let mut command = scene.cocode(&words);
    RunningGateway::start(command.arg(scene.path(root)))
}

#[test]
fn file_tools_of_the_gateway_reach_nothing_outside() {
    for identity in identities() {
        let mut scene = hostile_scene(identity);
        let gateway = gateway(&scene, "ws");
        let client = gateway.client("workspace");
        let calls = all_calls(&scene);
        let answers = calls
            .iter()
            .map(|(tool, arguments)| client.call(tool, arguments)["result"].to_string());
        let answers: Vec<String> = answers.collect();
        check(&mut scene, &answers, "gateway");
    }
}

/// Own directories that are inside of the root, or around it: what the gateway obeys, and what it knows.
#[test]
fn file_tools_of_the_gateway_keep_out_of_own_directories() {
    let roots = [
        "user",
        "user/.config",
        "user/.config/cocode",
        "user/.local",
        "user/.local/state/cocode/hidden",
    ];
    for (identity, root) in identities()
        .into_iter()
        .flat_map(|who| roots.map(|root| (who, root)))
    {
        let scene = Scene::new(identity);
        let gateway = gateway(&scene, root);
        if !gateway.has("workspace") {
            continue;
        }
        let client = gateway.client("workspace");
        let mut found = Vec::new();
        for path in [
            ".config/cocode/mcp.toml",
            ".config/cocode/config.toml",
            ".local/state/cocode/x",
            ".local/state/cocode/hidden/x",
        ] {
            let path = scene.path("user").join(path);
            client.call("write", &json!({ "path": path, "content": "# planted" }));
            found.extend(path.exists().then(|| format!("{path:?}")));
        }
        let answer = client
            .call("grep", &json!({ "pattern": "victim" }))
            .to_string();
        found.extend(answer.contains(MARK).then_some(answer));
        assert!(found.is_empty(), "{identity:?} {root}: {found:?}");
    }
}

#[test]
fn file_tools_of_the_agent_reach_nothing_outside() {
    for identity in identities() {
        let mut scene = hostile_scene(identity);
        let calls = all_calls(&scene);
        let turns = calls
            .iter()
            .enumerate()
            .map(|(at, (tool, arguments))| (format!("c{at}"), *tool, arguments));
        let turn = turns.fold(ModelTurn::new(), |turn, (id, tool, arguments)| {
            turn.call(&id, tool, arguments)
        });
        let (output, bodies) = scene.exec(&["-s", "workspace-write"], vec![turn]);
        let last = bodies
            .get(1)
            .and_then(|body| body["messages"].as_array()?.last());
        let results = last.and_then(|message| message["content"].as_array());
        let answers: Vec<String> = results
            .unwrap_or_else(|| panic!("{output:?}"))
            .iter()
            .map(Value::to_string)
            .collect();
        check(&mut scene, &answers, "agent");
    }
}

/// While names are exchanged with links that lead outside, tools are inside or fail.
#[test]
fn file_tools_do_not_follow_links_that_appear_meanwhile() {
    let races = [
        ("ws/sub", "ws/out", "outside/race"),
        ("ws/sub/file", "ws/out", "outside/race/file"),
        ("ws", "out", "outside/race"),
    ];
    for identity in identities() {
        for (name, other, target) in races {
            let mut scene = Scene::new(identity);
            let script = format!(
                "mkdir -p sub ../outside/race/sub && echo original > sub/file && \
                for f in ../outside/race/file ../outside/race/sub/file; do echo {MARK}race > $f; done && \
                ln -s \"$1\" \"$2\""
            );
            let paths =
                [name, other, target].map(|path| scene.path(path).to_str().unwrap().to_owned());
            scene.run("sh", &["-ec", &script, "sh", &paths[2], &paths[1]]);
            scene.evidence();
            let gateway = gateway(&scene, "ws");
            let client = gateway.client("workspace");
            let mut racer = Command::new("/usr/bin/python3");
            racer
                .arg(scene.path("victim.py"))
                .arg("swap")
                .args(&paths[..2]);
            let mut racer = racer
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            BufReader::new(racer.stdout.take().unwrap())
                .read_line(&mut line)
                .unwrap();
            let mut leaking = Vec::new();
            for round in 0..25 {
                let calls = [
                    ("read", json!({ "path": "sub/file" })),
                    (
                        "write",
                        json!({ "path": format!("sub/new{round}"), "content": "attacked" }),
                    ),
                    (
                        "write",
                        json!({ "path": "sub/file", "content": "attacked original" }),
                    ),
                    (
                        "edit",
                        json!({ "path": "sub/file", "old_string": "original", "new_string": "attacked original" }),
                    ),
                    ("grep", json!({ "path": "sub", "pattern": "." })),
                    ("list", json!({ "path": "sub" })),
                ];
                let answers =
                    calls.map(|(tool, arguments)| client.call(tool, &arguments).to_string());
                leaking.extend(answers.into_iter().filter(|answer| answer.contains(MARK)));
            }
            drop(racer.stdin.take());
            assert!(racer.wait().unwrap().success());
            assert!(leaking.is_empty(), "{identity:?} {name}: {leaking:?}");
            assert_eq!(scene.evidence(), [""; 0], "{identity:?} {name}");
            let outside = scene.run(
                "sh",
                &[
                    "-c",
                    &format!(
                        "cat {0}/race/file {0}/race/sub/file; ls -R {0}/race",
                        scene.path("outside").display()
                    ),
                ],
            );
            assert!(
                !outside.contains("attacked") && !outside.contains("new"),
                "{identity:?} {name}: {outside}"
            );
        }
    }
}
