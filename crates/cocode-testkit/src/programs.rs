//! Where the programs of this crate are, built if need be.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The path of the program that serves scripts on stdin and stdout, built first if it is missing or
/// older than its sources.
///
/// Cargo builds it by itself only for the tests of this crate.
pub fn program() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| find("cocode-scripted-server"))
}

/// The path of the program that serves scripted models, built first if need be.
pub fn model_program() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| find("cocode-scripted-model"))
}

fn find(name: &str) -> PathBuf {
    let this_test = std::env::current_exe().expect("a running program has a path");
    // target/PROFILE/deps/test-HASH
    let profile_directory = this_test
        .ancestors()
        .find(|directory| directory.ends_with("deps"))
        .and_then(Path::parent)
        .map_or_else(usual_directory, Path::to_owned);
    let program = profile_directory.join(name);
    if !is_current(&program) {
        build(&profile_directory, name);
    }
    assert!(program.exists(), "cargo built no {}", program.display());
    program
}

/// Where cargo usually builds. Tests in documentation run from somewhere else.
fn usual_directory() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directory = target
        .unwrap_or_else(|| workspace.join("target"))
        .join("debug");
    fs::create_dir_all(&directory).expect("the target directory is ours to write");
    directory
}

fn build(profile_directory: &Path, name: &str) {
    // One build for all the test processes that find out at once.
    let lock = File::create(profile_directory.join(format!("{name}.lock")));
    let lock = lock.expect("the target directory is ours to write");
    lock.lock().expect("files can be locked");
    if is_current(&profile_directory.join(name)) {
        return;
    }
    let profile = match profile_directory.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(other) => other,
    };
    let target_directory = profile_directory
        .parent()
        .expect("target/PROFILE has a parent");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--package", env!("CARGO_PKG_NAME"), "--bin", name])
        .args(["--profile", profile, "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target_directory)
        .output()
        .expect("the cargo that built this test can be started");
    let errors = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "cannot build {name}:\n{errors}");
}

/// Whether the program exists and is newer than all its sources. Other programs are none of them.
fn is_current(program: &Path) -> bool {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let own = program
        .file_name()
        .map(|name| sources.join("bin").join(name).with_extension("rs"));
    let newest = newest(&sources).max(own.and_then(|own| modified(&own)));
    modified(program).is_some_and(|built| newest.is_some_and(|source| source <= built))
}

/// When the newest source was written. Unit tests and programs are not part of the library.
fn newest(directory: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(directory).ok()?;
    entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_test = path.to_string_lossy().ends_with("_tests.rs");
            match (path.is_dir(), is_test) {
                (true, _) if path.ends_with("bin") => None,
                (true, _) => newest(&path),
                (false, true) => None,
                (false, false) => modified(&path),
            }
        })
        .max()
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .ok()
}
