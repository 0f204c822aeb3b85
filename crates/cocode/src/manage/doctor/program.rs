//! Where the program of a server is, found as the system would when it starts it. Nothing is
//! started here.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use cocode_core::Program;

use crate::environment;
use crate::error::{CliError, Exit};

/// What the system searches for a program that was given no `PATH`.
const DEFAULT_SEARCH_PATH: &str = "/bin:/usr/bin";

/// What to install for the commands that most servers are started by.
const INSTALL: [(&[&str], &str); 8] = [
    (
        &["npx", "npm", "node"],
        "install Node.js, which brings node, npm and npx: https://nodejs.org",
    ),
    (
        &["uvx", "uv"],
        "install uv, which brings uvx: https://docs.astral.sh/uv",
    ),
    (
        &["python", "python3", "pip", "pip3"],
        "install Python 3; where only `python3` is there, write that as the command",
    ),
    (&["pipx"], "install pipx: https://pipx.pypa.io"),
    (
        &["docker"],
        "install Docker and start its daemon: https://docs.docker.com/engine/install",
    ),
    (&["podman"], "install Podman: https://podman.io"),
    (&["bunx", "bun"], "install Bun: https://bun.sh"),
    (&["deno"], "install Deno: https://deno.com"),
];

/// Finds the program, or says why it cannot be started.
pub(super) fn find(program: &Program) -> Result<PathBuf, CliError> {
    let failed = |message: String| CliError::with(Exit::Server, "spawn-failed", message);
    let directory = program.directory();
    if let Some(directory) = directory
        && !directory.is_dir()
    {
        let message = format!(
            "the directory it starts in does not exist: {}",
            directory.display()
        );
        return Err(failed(message).hint("correct `cwd` in its file, or make the directory"));
    }
    let command = program.command.as_str();
    let begins = directory.or(program.beside.as_deref());
    let begins = begins.filter(|_| command.contains('/')).or(directory);
    let candidates = candidates(command, begins, search_path(program).as_deref());
    if let Some(path) = candidates.iter().find(|path| is_executable(path)) {
        return Ok(path.clone());
    }
    if let Some(path) = candidates.iter().find(|path| path.exists()) {
        let shown = path.display();
        return Err(if path.is_dir() {
            failed(format!("{shown} is a directory, not a program"))
        } else {
            failed(format!("{shown} is not executable"))
                .hint(format!("`chmod +x {shown}` makes it executable"))
        });
    }
    if command.contains('/') {
        let shown = candidates.first().map(PathBuf::as_path);
        let shown = shown.unwrap_or(Path::new(command)).display();
        return Err(failed(format!("there is no program {shown}")).hint(
            "correct `command` in its file; a relative path begins at `cwd`, else at the \
             directory of the file or of the plugin",
        ));
    }
    let error = failed(format!("the program `{command}` is not in PATH"));
    Err(if command.contains(char::is_whitespace) {
        error.hint("`command` is one word: its arguments belong into `args`")
    } else {
        error.hint(install_hint(command))
    })
}

fn install_hint(command: &str) -> String {
    let known = INSTALL.iter().find(|(names, _)| names.contains(&command));
    match known {
        Some((_, hint)) => (*hint).to_owned(),
        None => {
            format!("install `{command}`, or write its whole path as the command")
        }
    }
}

/// The `PATH` that the program will have.
fn search_path(program: &Program) -> Option<OsString> {
    match program.env.get("PATH") {
        // One that is secret in part cannot be told; the usual one is the best guess.
        Some(template) => template.as_literal().map(OsString::from),
        None => None,
    }
    .or_else(|| {
        let variables = environment::for_servers().into_iter();
        let mut path = variables.filter(|(name, _)| name == "PATH");
        path.next().map(|(_, value)| value)
    })
}

fn candidates(
    command: &str,
    directory: Option<&Path>,
    search_path: Option<&OsStr>,
) -> Vec<PathBuf> {
    let base = directory.unwrap_or(Path::new(""));
    if command.contains('/') {
        return vec![base.join(command)];
    }
    let search_path = search_path.unwrap_or(OsStr::new(DEFAULT_SEARCH_PATH));
    std::env::split_paths(search_path)
        .map(|place| base.join(place).join(command))
        .collect()
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::{Path, PathBuf};

    use super::{candidates, install_hint};

    #[test]
    fn names_are_searched_and_paths_are_not() {
        let path = Some(OsStr::new("/usr/bin:tools"));
        let here = Some(Path::new("/work tree"));
        let names = |command| candidates(command, here, path);
        assert_eq!(
            names("npx"),
            [
                PathBuf::from("/usr/bin/npx"),
                PathBuf::from("/work tree/tools/npx")
            ]
        );
        assert_eq!(names("./npx"), [PathBuf::from("/work tree/./npx")]);
        assert_eq!(names("/opt/npx"), [PathBuf::from("/opt/npx")]);
    }

    #[test]
    fn missing_commands_name_what_to_install() {
        assert!(install_hint("npx").contains("Node.js"));
        assert!(install_hint("uvx").contains("install uv"));
        assert!(install_hint("my-server").contains("`my-server`"));
    }
}
