//! `cargo xtask macos`: whether the product still compiles for macOS, seen from anywhere.
//!
//! Checking links nothing, so the few C files of the dependencies need no compiler for that system:
//! two scripts that write empty files stand in for it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::shell::{cargo, output, program, run};
use crate::workspace;

const TARGET: &str = "aarch64-apple-darwin";

const COMPILER: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do
  if [ "$1" = -o ]; then : > "$2"; fi
  shift
done
"#;

const ARCHIVER: &str = r#"#!/bin/sh
for word in "$@"; do
  case "$word" in *.a) : > "$word" ;; esac
done
"#;

pub(crate) fn run_check(arguments: &[String]) -> Result<(), Failure> {
    if !arguments.is_empty() {
        return Err(Failure::new("usage: cargo xtask macos"));
    }
    let installed = output(program("rustup").args(["target", "list", "--installed"]))?;
    if !installed.lines().any(|line| line.trim() == TARGET) {
        let hint = format!("run `rustup target add {TARGET}` first");
        return Err(Failure::new(format!("{TARGET} is not installed: {hint}")));
    }
    let folder = workspace::root().join("target/macos");
    fs::create_dir_all(&folder).map_err(|error| Failure::because(folder.display(), error))?;
    let compiler = script(&folder, "cc", COMPILER)?;
    let archiver = script(&folder, "ar", ARCHIVER)?;
    run(cargo()
        .args([
            "check",
            "--workspace",
            "--exclude",
            "xtask",
            "--all-targets",
        ])
        .args(["--locked", "--target", TARGET])
        .env("CC_aarch64_apple_darwin", compiler)
        .env("AR_aarch64_apple_darwin", archiver))
}

fn script(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let path = folder.join(name);
    let because = |error| Failure::because(path.display(), error);
    fs::write(&path, text).map_err(because)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(because)?;
    Ok(path)
}
