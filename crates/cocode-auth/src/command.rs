//! Secrets that a command prints: one shell, one deadline, and nothing left running.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use cocode_process::{ExitReport, GuardedChild, ProcessSpec, SpawnError, StopPolicy, spawn};
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::secret::Secret;

/// The only shell that is used, so that a line means the same for everybody.
const SHELL: &str = "/bin/sh";

/// The most that a command may print.
pub(crate) const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// How much of stderr an error tells.
const STDERR_LINES: usize = 5;
const STDERR_LINE_CHARACTERS: usize = 200;

/// How the commands of `cmd:` references are run.
#[derive(Clone)]
pub struct CommandSettings {
    /// All variables that a command sees. See
    /// [`baseline_environment`](cocode_process::baseline_environment).
    pub environment: Vec<(OsString, OsString)>,
    /// Where it runs; without a directory, where this process does.
    pub directory: Option<PathBuf>,
    /// How long it may take before its whole process tree is killed.
    pub limit: Duration,
}

impl CommandSettings {
    /// Thirty seconds in the directory of this process.
    pub fn new(environment: Vec<(OsString, OsString)>) -> Self {
        Self {
            environment,
            directory: None,
            limit: Duration::from_secs(30),
        }
    }
}

/// The values of variables are often secret, so only their names are shown.
impl std::fmt::Debug for CommandSettings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            environment,
            directory,
            limit,
        } = self;
        let names: Vec<&OsString> = environment.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("CommandSettings")
            .field("environment", &names)
            .field("directory", directory)
            .field("limit", limit)
            .finish()
    }
}

/// Why a command gave no secret. What it printed to stdout is never told.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The shell could not be started.
    #[error("the command could not be started")]
    Start(#[from] SpawnError),
    /// It said itself that it failed.
    #[error("the command failed with {exit}{}", said(stderr))]
    Failed {
        /// How it ended.
        exit: ExitReport,
        /// The last lines of its stderr.
        stderr: Vec<String>,
    },
    /// It took too long and was killed.
    #[error("the command did not end within {} seconds and was killed{}", after.as_secs(), said(stderr))]
    TimedOut {
        /// How long it had.
        after: Duration,
        /// The last lines of its stderr.
        stderr: Vec<String>,
    },
    /// It succeeded without a word.
    #[error("the command printed nothing to stdout{}", said(stderr))]
    Empty {
        /// The last lines of its stderr.
        stderr: Vec<String>,
    },
    /// That is no secret.
    #[error("the command printed more than {MAX_OUTPUT_BYTES} bytes to stdout and was killed")]
    TooLong,
    /// That is no text.
    #[error("what the command printed to stdout is not UTF-8")]
    NotText,
    /// Its stdout could not be read.
    #[error("the output of the command cannot be read")]
    Read(#[source] std::io::Error),
}

fn said(stderr: &[String]) -> String {
    if stderr.is_empty() {
        String::new()
    } else {
        format!("; it said: {}", stderr.join(" / "))
    }
}

/// Runs a command line and takes what it prints, without the line end.
///
/// Dropping the future kills the command and all that it started.
pub(crate) async fn run(line: &str, settings: &CommandSettings) -> Result<Secret, CommandError> {
    let mut spec = ProcessSpec::new(SHELL);
    spec.args = vec!["-c".into(), line.into()];
    spec.env.clone_from(&settings.environment);
    spec.cwd.clone_from(&settings.directory);
    spec.stop = StopPolicy {
        eof_grace: Duration::ZERO,
        term_grace: Duration::from_millis(500),
    };
    let mut child = spawn(&spec)?;
    // There is nothing to read for it.
    drop(child.take_stdin());
    // Room for all of it, so that growing leaves no copies behind.
    let mut output = Zeroizing::new(Vec::with_capacity(MAX_OUTPUT_BYTES + 64));
    let exit = match timeout(settings.limit, finish(&mut child, &mut output)).await {
        Ok(Ok(Some(exit))) => exit,
        Ok(Ok(None)) => {
            child.stop().await;
            return Err(CommandError::TooLong);
        }
        Ok(Err(error)) => {
            child.stop().await;
            return Err(CommandError::Read(error));
        }
        Err(_) => {
            let stderr = child.stderr();
            child.stop().await;
            return Err(CommandError::TimedOut {
                after: settings.limit,
                stderr: last_words(stderr.lines(STDERR_LINES), &output),
            });
        }
    };
    let stderr = || last_words(child.stderr().lines(STDERR_LINES), &output);
    if !exit.success() {
        return Err(CommandError::Failed {
            exit,
            stderr: stderr(),
        });
    }
    let Ok(text) = std::str::from_utf8(&output) else {
        return Err(CommandError::NotText);
    };
    match without_line_end(text) {
        "" => Err(CommandError::Empty { stderr: stderr() }),
        text => Ok(Secret::new(text)),
    }
}

/// Reads stdout and waits for the end; none, if the command prints too much.
async fn finish(
    child: &mut GuardedChild,
    output: &mut Vec<u8>,
) -> Result<Option<ExitReport>, std::io::Error> {
    if let Some(stdout) = child.take_stdout() {
        let limit = u64::try_from(MAX_OUTPUT_BYTES + 1).unwrap_or(u64::MAX);
        stdout.take(limit).read_to_end(output).await?;
    }
    if output.len() > MAX_OUTPUT_BYTES {
        return Ok(None);
    }
    Ok(Some(child.wait().await))
}

fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// The lines of stderr as an error may show them: short, without control characters, and without
/// what went to stdout, which some commands repeat (`set -x`).
fn last_words(lines: Vec<String>, output: &[u8]) -> Vec<String> {
    let output = Zeroizing::new(String::from_utf8_lossy(output).into_owned());
    lines
        .into_iter()
        .map(|line| {
            let mut line = line;
            for piece in output.lines().map(str::trim) {
                if !piece.is_empty() {
                    line = line.replace(piece, "…");
                }
            }
            line.chars()
                .filter(|character| !character.is_control())
                .take(STDERR_LINE_CHARACTERS)
                .collect::<String>()
        })
        .filter(|line| !line.trim().is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_end_is_removed() {
        for (text, expected) in [
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            ("a", "a"),
            ("\n", ""),
        ] {
            assert_eq!(without_line_end(text), expected, "{text:?}");
        }
    }

    #[test]
    fn last_words_are_short_and_hide_the_output() {
        let lines = vec![
            "+ echo hunter2".to_owned(),
            String::new(),
            "\u{1b}[31mred".to_owned(),
            "x".repeat(1000),
        ];
        let shown = last_words(lines, b"hunter2\n");
        assert_eq!(shown, ["+ echo …", "[31mred", &"x".repeat(200)]);
    }

    #[test]
    fn debug_output_hides_the_values_of_variables() {
        let settings = CommandSettings::new(vec![("TOKEN".into(), "hunter2".into())]);
        let shown = format!("{settings:?}");
        assert!(
            shown.contains("TOKEN") && !shown.contains("hunter2"),
            "{shown}"
        );
    }
}
