//! Rules for all files: what must exist, what must not be in them, how big they may be.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::none;

/// The most a file in the repository may weigh.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// What every reader of the repository looks for.
const ROOT_DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
];

/// Places on one machine. Cut in two, so that this file does not contain them.
const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

/// Hosts of package indexes: lock files name packages and hashes only.
const REGISTRY_HOSTS: &[&str] = &[
    concat!("registry.", "npmjs"),
    concat!("registry.", "yarnpkg"),
    concat!("pypi", ".org"),
    concat!("files.", "pythonhosted"),
    concat!("crates", ".io/api"),
];

/// The root of the checkout under test. A variable of the test run and not of the build:
/// checkouts that share a target directory may share the built test, too.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo or nextest runs the tests");
    Path::new(&manifest)
        .parent()
        .expect("xtask is in the root")
        .to_path_buf()
}

/// Files that git tracks, or would track if they were added.
pub(crate) fn files() -> Vec<PathBuf> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root())
        .output()
        .expect("git is on the PATH");
    assert!(
        output.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let names = String::from_utf8(output.stdout).expect("file names are UTF-8");
    let mut files: Vec<PathBuf> = names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        // Deleted, and not yet committed.
        .filter(|name| root().join(name).is_file())
        .collect();
    files.sort();
    files.dedup();
    assert!(files.len() > 10, "this is no checkout of the repository");
    files
}

fn containing(needles: &[&str]) -> Vec<String> {
    let mut offenders = Vec::new();
    for file in files() {
        let bytes = fs::read(root().join(&file)).expect("listed file is readable");
        for (number, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
            for needle in needles.iter().filter(|needle| line.contains(**needle)) {
                offenders.push(format!("{}:{}: {needle}", file.display(), number + 1));
            }
        }
    }
    offenders
}

#[test]
fn root_documents_exist() {
    let missing: Vec<String> = ROOT_DOCUMENTS
        .iter()
        .filter(|name| !root().join(name).is_file())
        .map(|&name| name.to_owned())
        .collect();
    none("missing documents", &missing);
}

#[test]
fn decisions_are_recorded() {
    let n_decisions = files()
        .iter()
        .filter(|file| file.starts_with("docs/decisions"))
        .count();
    assert!(n_decisions > 0, "docs/decisions is empty");
}

#[test]
fn no_file_names_a_place_on_one_machine() {
    none("machine paths", &containing(MACHINE_PATHS));
}

#[test]
fn no_file_names_a_package_index() {
    none("hosts of package indexes", &containing(REGISTRY_HOSTS));
}

#[test]
fn no_file_is_huge() {
    let offenders: Vec<String> = files()
        .iter()
        .filter_map(|file| {
            let length = fs::metadata(root().join(file))
                .expect("listed file exists")
                .len();
            (length > MAX_FILE_BYTES).then(|| format!("{}: {length} bytes", file.display()))
        })
        .collect();
    none("files over 1 MiB", &offenders);
}
