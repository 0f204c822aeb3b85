//! Tests of the text of Seatbelt profiles.

use std::path::Path;
use std::sync::Arc;

use super::super::{Confinement, PathHandle, TemporaryDirectory};
use super::profile;

/// The lines that name this directory, in their order.
fn rules(profile: &str, directory: &Path) -> Vec<String> {
    let shown = directory.display().to_string();
    let lines = profile.lines().filter(|line| line.contains(&shown));
    lines.map(|line| line.replace(&shown, "DIR")).collect()
}

#[test]
fn profile_of_read_only_grants_no_write_and_no_network() {
    let profile = profile(&Confinement::read_only()).unwrap();
    assert!(profile.starts_with("(version 1)\n(deny default)\n"));
    assert!(!profile.contains("allow file-write*"), "{profile}");
    assert!(!profile.contains("network"), "{profile}");
    assert!(profile.contains("(allow signal (target same-sandbox))"));
    assert!(profile.contains("(deny file-read-data (subpath \"/dev\"))"));
    assert!(profile.contains("(deny file-write-setugid)"));
}

#[test]
fn profile_orders_grants_before_denials_before_the_temporary_directory() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    for name in ["inner/state/tmp", "config"] {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
    let open = |path: &Path| PathHandle::open(path).unwrap();
    let confinement = Confinement::workspace_write(open(&root))
        .with_temporary(Arc::new(
            TemporaryDirectory::open(&root.join("inner/state/tmp")).unwrap(),
        ))
        .with_protected(&root.join("config"))
        .with_hidden(&root.join("inner/state"))
        .with_network();
    let profile = profile(&confinement).unwrap();
    assert_eq!(
        rules(&profile, &root),
        [
            "(allow file-write* (subpath \"DIR\"))",
            "(deny file-write* (subpath \"DIR/config\"))",
            "(deny file-write-unlink (literal \"DIR\"))",
            "(deny file-write* (subpath \"DIR/inner/state\"))",
            "(deny file-write-unlink (literal \"DIR/inner\"))",
            "(deny file-write-unlink (literal \"DIR\"))",
            "(deny file-read-data (subpath \"DIR/inner/state\"))",
            "(allow file-read* file-write* (subpath \"DIR/inner/state/tmp\"))",
        ]
    );
    assert!(profile.contains("(allow network*)"));
}

#[test]
fn profile_quotes_paths_and_refuses_those_it_cannot_name() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let odd = root.join(r#"a"b\c"#);
    let lines = root.join("a\nb");
    for path in [&odd, &lines] {
        std::fs::create_dir(path).unwrap();
    }
    let with = |path: &Path| {
        profile(&Confinement::workspace_write(
            PathHandle::open(path).unwrap(),
        ))
    };
    assert!(with(&odd).unwrap().contains(r#"/a\"b\\c"))"#));
    assert!(with(&lines).is_err());
}

#[test]
fn profile_refuses_a_writable_root_inside_of_a_hidden_directory() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("inner")).unwrap();
    let confinement = Confinement::workspace_write(PathHandle::open(&root.join("inner")).unwrap());
    let confinement = confinement.with_hidden(&root);
    assert!(profile(&confinement).is_err());
}
