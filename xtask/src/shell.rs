//! Starts programs: shown, captured, or under a deadline. Standard input is always empty, so
//! nothing can wait for a person.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::workspace;

/// How often a program under a deadline is looked at.
const POLL: Duration = Duration::from_millis(20);

/// A program run in the workspace root, with what `cargo run` set for this process taken away:
/// build scripts that watch those variables would run again under every other caller.
pub(crate) fn program(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_BIN_",
            "CARGO_CRATE_",
        ]
        .iter()
        .any(|prefix| text.starts_with(prefix))
        {
            command.env_remove(&name);
        }
    }
    command.current_dir(workspace::root()).stdin(Stdio::null());
    command
}

/// The cargo that runs this task.
pub(crate) fn cargo() -> Command {
    program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Builds one target of a package, named by the last argument, and says where the program is.
pub(crate) fn built(package: &str, target: &[&str]) -> Result<PathBuf, Failure> {
    let messages = output(
        cargo()
            .args(["build", "--quiet", "--locked", "--package", package])
            .args(target)
            .args(["--message-format", "json-render-diagnostics"]),
    )?;
    let name = target.last().copied().unwrap_or(package);
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| Failure::new(format!("cargo built no program `{name}`")))
}

/// Runs a command with its output shown as it comes.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let line = shown(command);
    println!("$ {line}");
    let status = command
        .status()
        .map_err(|error| cannot_start(&line, &error))?;
    check(&line, status)
}

/// Runs a command with its standard output both shown and returned, whatever its status.
pub(crate) fn run_and_keep(command: &mut Command) -> Result<(ExitStatus, String), Failure> {
    let line = shown(command);
    println!("$ {line}");
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| cannot_start(&line, &error))?;
    let mut kept = Vec::new();
    if let Some(mut output) = child.stdout.take() {
        let mut buffer = [0; 8192];
        loop {
            let n_read = output
                .read(&mut buffer)
                .map_err(|error| Failure::because(&line, error))?;
            let Some(read) = buffer.get(..n_read).filter(|read| !read.is_empty()) else {
                break;
            };
            kept.extend_from_slice(read);
            io::stdout()
                .write_all(read)
                .map_err(|error| Failure::because("stdout", error))?;
        }
    }
    let status = child
        .wait()
        .map_err(|error| Failure::because(&line, error))?;
    Ok((status, String::from_utf8_lossy(&kept).into_owned()))
}

/// Runs a command quietly and returns its standard output; shows its errors if it fails.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let line = shown(command);
    let output = command
        .output()
        .map_err(|error| cannot_start(&line, &error))?;
    if !output.status.success() {
        io::stderr()
            .write_all(&output.stderr)
            .map_err(|error| Failure::because("stderr", error))?;
        check(&line, output.status)?;
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a command can be started and succeeds, with nothing shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a command with all output in a file. At the deadline its process group is killed, and
/// the answer is `None`.
pub(crate) fn run_logged(
    command: &mut Command,
    log: &Path,
    deadline: Instant,
) -> Result<Option<ExitStatus>, Failure> {
    let line = shown(command);
    let because = |error: io::Error| Failure::because(log.display(), error);
    let file = File::create(log).map_err(because)?;
    let twin = file.try_clone().map_err(because)?;
    let mut child = command
        .process_group(0)
        .stdout(file)
        .stderr(twin)
        .spawn()
        .map_err(|error| cannot_start(&line, &error))?;
    loop {
        if let Some(status) = child
            .try_wait()
            .map_err(|error| Failure::because(&line, error))?
        {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            let group = format!("-{}", child.id());
            run(program("kill").args(["-KILL", "--", &group]))?;
            child
                .wait()
                .map_err(|error| Failure::because(&line, error))?;
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}

fn check(line: &str, status: ExitStatus) -> Result<(), Failure> {
    if status.success() {
        Ok(())
    } else {
        Err(Failure::because(format!("`{line}`"), status))
    }
}

fn cannot_start(line: &str, error: &io::Error) -> Failure {
    Failure::because(format!("cannot start `{line}`"), error)
}

/// The command as a person would type it, with paths below the workspace made relative.
fn shown(command: &Command) -> String {
    let root = workspace::root();
    let word = |word: &OsStr| {
        let word = Path::new(word);
        word.strip_prefix(&root)
            .unwrap_or(word)
            .display()
            .to_string()
    };
    let program = command.get_program();
    let program = match Path::new(program).file_name() {
        Some(name) if name == "cargo" => "cargo".to_owned(),
        _ => word(program),
    };
    std::iter::once(program)
        .chain(command.get_args().map(word))
        .collect::<Vec<_>>()
        .join(" ")
}
