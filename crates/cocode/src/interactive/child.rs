//! This program once more, for what it does by commands of its own: signing in, switching servers on
//! and off. What it prints is shown as it comes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cocode_process::{ProcessSpec, spawn};
use cocode_terminal::{HostNotice, Line, Style};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::notices;
use crate::daemon::program;
use crate::error::{CliError, Code};
use crate::workspace::Workspace;

/// The longest that a person may take to sign in, and some more.
const MOST_TIME: Duration = Duration::from_mins(10);

/// Bytes of output that are shown.
const MAX_OUTPUT_BYTES: u64 = 256 * 1024;

/// How this program is started.
#[derive(Debug)]
pub(super) struct Itself {
    program: PathBuf,
    /// Where the configuration is, if the person has said so.
    before: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
}

impl Itself {
    pub(super) fn new(workspace: &Workspace) -> Result<Self, CliError> {
        let program = program().map_err(|error| {
            CliError::new(
                Code::SetupFailed,
                "the file of this program cannot be found",
            )
            .because(&error)
        })?;
        let files = workspace.places.explicit.iter();
        let before = files.flat_map(|file| [OsString::from("--config"), file.clone().into()]);
        Ok(Self {
            program,
            before: before.collect(),
            environment: workspace.environment.variables.all(),
            directory: workspace.places.directory.clone(),
        })
    }

    /// Runs a command to its end, and shows what it prints. Says whether it was a success.
    pub(super) async fn run(
        &self,
        words: &[&str],
        say: &mpsc::Sender<HostNotice>,
        interrupt: &CancellationToken,
    ) -> Result<bool, CliError> {
        let mut spec = ProcessSpec::new(&self.program);
        spec.args.clone_from(&self.before);
        spec.args.extend(words.iter().map(OsString::from));
        spec.env.clone_from(&self.environment);
        spec.cwd.clone_from(&self.directory);
        let hears = say.clone();
        spec.stderr_tap = Some(Arc::new(move |line: &str| show(&hears, line)));
        let mut child = spawn(&spec).map_err(|error| {
            let message = format!("`cocode {}` cannot be started", words.join(" "));
            CliError::new(Code::SetupFailed, message).because(&error)
        })?;
        // It stays open: a program whose input ends may take that for a wish to end.
        let input = child.take_stdin();
        let output = child.take_stdout();
        let ended = tokio::select! {
            () = interrupt.cancelled() => None,
            ended = tokio::time::timeout(MOST_TIME, async {
                if let Some(output) = output {
                    let mut lines = BufReader::new(output.take(MAX_OUTPUT_BYTES)).lines();
                    while let Ok(Some(line)) = lines.next_line().await {
                        show(say, &line);
                    }
                }
                child.wait().await
            }) => ended.ok(),
        };
        drop(input);
        let Some(ended) = ended else {
            child.stop().await;
            let message = format!("`cocode {}` was ended before it was done", words.join(" "));
            return Err(CliError::new(Code::Interrupted, message));
        };
        Ok(ended.success())
    }
}

fn show(say: &mpsc::Sender<HostNotice>, line: &str) {
    notices::show(say, Line::new(line, Style::PLAIN.dim()));
}
