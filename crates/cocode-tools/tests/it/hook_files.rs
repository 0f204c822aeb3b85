//! Changes of confined commands to files that other programs execute.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use cocode_tools::{Confinement, HookChanges, Leaving, NoProgress};
use serde_json::json;

use crate::House;

/// A workspace with a repository, whose commands are confined to it.
fn repository() -> House {
    let House { base, workspace } = House::new();
    let confinement = Confinement::workspace_write(workspace.handle().clone());
    let workspace = workspace.with_confinement(confinement, Leaving::Offered);
    let house = House { base, workspace };
    house.file(".git/config", "[core]\n");
    house.file(".git/hooks/pre-push", "#!/bin/sh\n");
    house.file(".git/objects/x", "object");
    house
}

async fn changes(house: &House, command: &str) -> Option<HookChanges> {
    let arguments = json!({ "command": command });
    house.call("shell", arguments).await.unwrap().changes
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn changes_to_executed_files_are_found_and_undone() {
    for (command, paths) in [
        ("echo x >>.git/config", &[".git/config"][..]),
        ("rm .git/config", &[".git/config"]),
        ("chmod +x .git/hooks/pre-push", &[".git/hooks/pre-push"]),
        ("echo x >.git/hooks/pre-commit", &[".git/hooks/pre-commit"]),
        (
            "ln -sf /bin/true .git/hooks/pre-push",
            &[".git/hooks/pre-push"],
        ),
        ("echo ../src >.git/commondir", &[".git/commondir"]),
        ("echo x >.envrc", &[".envrc"]),
        (
            "mkdir objects refs; echo 'ref: refs/heads/x' >HEAD; echo x >config",
            &["HEAD"],
        ),
        ("ln .git/config other", &[".git/config"]),
        (
            "cat .git/config >other; ln -f other .git/config",
            &[".git/config"],
        ),
        (
            "mkdir .vscode; echo x >.vscode/tasks.json",
            &[".vscode/tasks.json"],
        ),
        (
            "mkdir -p .husky/_; echo x >.husky/_/h",
            &[".husky", ".husky/_", ".husky/_/h"],
        ),
        (
            "mv .git moved; ln -s moved .git",
            &[".git", ".git/config", ".git/hooks", ".git/hooks/pre-push"],
        ),
    ] {
        let house = repository();
        let changed = changes(&house, command).await.expect(command);
        assert_eq!(changed.paths(), paths, "{command}");
        changed.undo().unwrap();
        assert_eq!(fs::read(house.inside(".git/config")).unwrap(), b"[core]\n");
        let hook = house.inside(".git/hooks/pre-push");
        assert!(fs::symlink_metadata(&hook).unwrap().is_file(), "{command}");
        assert_eq!(mode(&hook) & 0o111, 0, "{command}");
        assert!(!house.inside(".git").is_symlink(), "{command}");
        for made in [
            ".git/hooks/pre-commit",
            ".git/commondir",
            ".envrc",
            ".husky",
        ] {
            assert!(!house.inside(made).exists(), "{command} {made}");
        }
        assert!(!house.inside(".vscode/tasks.json").exists());
        assert!(changes(&house, "true").await.is_none(), "{command}");
    }
}

#[tokio::test]
async fn kept_changes_stay_and_other_files_are_not_watched() {
    let house = repository();
    assert!(
        changes(&house, "echo y >.git/objects/y; mkdir .vscode")
            .await
            .is_none()
    );
    let changed = changes(&house, "echo '[a]' >.git/config").await.unwrap();
    changed.keep();
    drop(changed);
    assert_eq!(fs::read(house.inside(".git/config")).unwrap(), b"[a]\n");
    assert!(changes(&house, "cat .git/config").await.is_none());
}

#[tokio::test]
async fn dropped_changes_are_undone() {
    let house = repository();
    drop(changes(&house, "echo x >.envrc").await.unwrap());
    assert!(!house.inside(".envrc").exists());
    // The user may have written it meanwhile.
    let entries = fs::read_dir(house.inside(".")).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    let undone = paths.find(|path| path.to_string_lossy().contains("/.cocode-undone-"));
    assert_eq!(fs::read(undone.unwrap()).unwrap(), b"x\n");
}

#[tokio::test]
async fn undoing_never_follows_a_link_out_of_the_workspace() {
    let house = repository();
    fs::write(house.outside("pre-push"), "mine").unwrap();
    fs::write(house.outside("extra"), "mine").unwrap();
    for command in [
        "rm -r .git/hooks; ln -s ../../outside .git/hooks",
        "mv .git moved; ln -s ../outside .git",
        "rm .git/hooks/pre-push; ln -s ../../../outside/pre-push .git/hooks/pre-push",
    ] {
        let changed = changes(&house, command).await.unwrap();
        changed.undo().unwrap();
        for name in ["pre-push", "extra", "secret.txt"] {
            assert!(house.outside(name).exists(), "{command} {name}");
        }
        assert_eq!(fs::read(house.outside("pre-push")).unwrap(), b"mine");
        assert!(!house.outside("config").exists() && !house.outside("hooks").exists());
        let hook = house.inside(".git/hooks/pre-push");
        assert_eq!(fs::read(hook).unwrap(), b"#!/bin/sh\n", "{command}");
    }
}

#[tokio::test]
async fn changes_beyond_the_limits_are_undone_too() {
    let house = repository();
    let many = "cd .git/hooks; for i in $(seq 400); do echo x >$i; done; mkdir -p a/b; chmod 0 a; \
        cd ../..; mkdir .vscode; echo x | tee .envrc >.vscode/tasks.json";
    let deep =
        "mkdir .husky; cd .husky; echo x >pre-commit; for i in $(seq 300); do mkdir d; cd d; done";
    let large = "head -c 2000000 /dev/zero >.envrc";
    for command in [many, deep, large] {
        let changed = changes(&house, command).await.unwrap();
        assert!(changed.paths().len() <= 300, "{}", changed.paths().len());
        changed.undo().unwrap();
        assert_eq!(fs::read_dir(house.inside(".git/hooks")).unwrap().count(), 1);
        assert!(!house.inside(".envrc").exists() && !house.inside(".husky").exists());
        assert!(!house.inside(".vscode/tasks.json").exists());
    }
}

#[tokio::test]
async fn no_command_runs_if_changes_could_not_be_undone() {
    let house = repository();
    house.file(".envrc", vec![b'x'; 2_000_000]);
    let said = house
        .refusal("shell", json!({ "command": "touch ran" }))
        .await;
    assert!(
        said.contains("`.envrc`") && !house.inside("ran").exists(),
        "{said}"
    );
    fs::remove_file(house.inside(".envrc")).unwrap();
    for number in 0..300 {
        house.file(&format!(".husky/{number}"), "x");
    }
    let said = house
        .refusal("shell", json!({ "command": "touch ran" }))
        .await;
    assert!(said.contains("too many"), "{said}");
}

#[tokio::test]
async fn changes_of_a_canceled_command_are_undone() {
    let house = repository();
    // It ignores the request to exit, and writes again until it is killed.
    let command = "trap '' TERM; touch began; while :; do echo x >.envrc; sleep 0.05; done";
    let arguments = json!({ "command": command });
    let call = house.workspace.call("shell", &arguments, &NoProgress);
    let began = async {
        while !house.inside("began").exists() || !house.inside(".envrc").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        ended = call => panic!("{ended:?}"),
        () = began => {}
    }
    let settled = async {
        let mut quiet = 0;
        while quiet < 50 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            quiet = if house.inside(".envrc").exists() {
                0
            } else {
                quiet + 1
            };
        }
    };
    tokio::time::timeout(Duration::from_secs(30), settled)
        .await
        .unwrap();
}

#[tokio::test]
async fn commands_that_overlap_are_compared_with_the_same_state() {
    let house = repository();
    let evil = "echo evil >.envrc; touch written; while [ ! -e go ]; do sleep 0.01; done";
    let second = "touch go; while [ ! -e stop ]; do sleep 0.01; done";
    let first = changes(&house, evil);
    let later = async {
        while !house.inside("written").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        changes(&house, second).await
    };
    let both = async {
        tokio::join!(
            async {
                let changed = first.await.unwrap();
                assert_eq!(changed.paths(), [".envrc"]);
                changed.undo().unwrap();
                fs::write(house.inside("stop"), "").unwrap();
            },
            later,
        )
    };
    let ((), seen) = both.await;
    assert!(seen.is_none(), "{seen:?}");
    assert!(!house.inside(".envrc").exists());
}
