//! `shell`: a command, run in the root behind a guard that lets nothing it started survive.

mod capture;
mod denial;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use cocode_process::{
    Confinement, ExitReport, GuardedChild, ProcessSpec, SpawnError, StopPolicy, spawn,
    spawn_cleanup,
};
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout, timeout_at};

use crate::definition::ToolDefinition;
use crate::error::ToolError;
use crate::hook_files::HookWatch;
use crate::limits::{
    CHUNK_BYTES, DEFAULT_SHELL_TIME, MAX_COMMAND_BYTES, MAX_SHELL_TIME, SHELL_DRAIN,
    SHELL_HEAD_BYTES, SHELL_REPORT, SHELL_TAIL_BYTES, SHELL_TERM_GRACE,
};
use crate::output::{Denial, ToolOutput};
use crate::progress::Progress;
use crate::refusal::Refusal;
use crate::sandbox::Leaving;
use crate::text::count;
use crate::tool::{Answer, Call, Tool};

use capture::Capture;

/// The name to call it by.
pub(crate) const NAME: &str = "shell";

pub(crate) struct Shell;

const DESCRIPTION: &str = "Runs a command with `sh -c` in the workspace, without input, and gives \
    its output (stdout and stderr together) and its exit code. Of a long output the beginning and \
    the end are given. Whatever the command leaves running is ended with it.";

const CONFINED_DESCRIPTION: &str = "Runs a command with `sh -c` in the workspace, without input, and \
    gives its output (stdout and stderr together) and its exit code. Of a long output the beginning \
    and the end are given. Whatever the command leaves running is ended with it. The command runs \
    in a sandbox: it can read everything, but writes only where the sandbox lets it, and may have \
    no network.";

/// Said below the output of a command that the sandbox may have kept from its work.
const DENIAL_NOTE: &str = "the sandbox may have denied this";

/// Runs its argument with both outputs in one pipe, in their order, and with no input.
const WRAPPER: &str = r#"exec sh -c -- "$1" </dev/null 2>&1"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    timeout_seconds: Option<u64>,
    /// Run without the sandbox, please. Where there is none, nothing has to be asked.
    #[serde(default)]
    unconfined: bool,
    /// For whoever decides about that.
    #[serde(rename = "justification")]
    _justification: Option<String>,
}

impl Shell {
    /// What it says of itself where commands are confined.
    pub(crate) fn confined_definition(leaving: Leaving) -> ToolDefinition {
        let mut definition = Self.definition();
        definition.description = CONFINED_DESCRIPTION;
        if leaving == Leaving::Offered {
            let properties = &mut definition.input_schema["properties"];
            properties["unconfined"] = json!({
                "type": "boolean",
                "description": "Run it outside of the sandbox, which a person has to allow. Only for a \
                    command that cannot do its work inside. Default: false."
            });
            properties["justification"] = json!({
                "type": "string",
                "description": "For that person: why it has to be outside, in one sentence."
            });
        }
        definition
    }
}

impl Tool for Shell {
    fn definition(&self) -> ToolDefinition {
        let kept = (SHELL_HEAD_BYTES + SHELL_TAIL_BYTES) / 1024;
        ToolDefinition {
            name: NAME,
            title: "Run a command",
            description: DESCRIPTION,
            input_schema: json!({
                "type": "object",
                "properties": {
                    "command": {
                        "type": "string",
                        "minLength": 1,
                        "description": "The command, in the language of the POSIX shell."
                    },
                    "timeout_seconds": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_SHELL_TIME.as_secs(),
                        "description": format!(
                            "How long it may take. Default: {}.",
                            DEFAULT_SHELL_TIME.as_secs()
                        )
                    }
                },
                "required": ["command"],
                "additionalProperties": false
            }),
            output_schema: Some(json!({
                "type": "object",
                "properties": {
                    "output": {
                        "type": "string",
                        "description": format!("At most {kept} KiB of it.")
                    },
                    "exit_code": { "type": "integer", "description": "Missing if a signal ended it." },
                    "signal": { "type": "integer" },
                    "timed_out": { "type": "boolean" },
                    "truncated": { "type": "boolean" }
                },
                "required": ["output", "timed_out", "truncated"]
            })),
            read_only: false,
            destructive: true,
            idempotent: false,
        }
    }

    fn run<'a>(&'a self, call: Call<'a>) -> Answer<'a> {
        Box::pin(async move {
            let arguments: Arguments = call.arguments()?;
            check(&arguments.command).map_err(|message| call.wrong(message))?;
            let _room =
                call.shared
                    .shell_room
                    .acquire()
                    .await
                    .map_err(|source| ToolError::Internal {
                        tool: call.tool,
                        source: source.into(),
                    })?;
            Ok(shell(&call, &arguments)
                .await
                .unwrap_or_else(ToolOutput::from))
        })
    }
}

fn check(command: &str) -> Result<(), String> {
    if command.trim().is_empty() {
        return Err("`command` is empty".to_owned());
    }
    if command.len() > MAX_COMMAND_BYTES {
        return Err(format!(
            "`command` is longer than {MAX_COMMAND_BYTES} bytes"
        ));
    }
    if command.contains('\0') {
        return Err("`command` contains a NUL character".to_owned());
    }
    Ok(())
}

async fn shell(call: &Call<'_>, arguments: &Arguments) -> Result<ToolOutput, Refusal> {
    let root = &call.shared.root;
    if !root.is_still_there() {
        return Err(Refusal::new(
            "the workspace was moved or removed; commands cannot be run in it",
        ));
    }
    let confinement = call.sandbox.confinement();
    if arguments.unconfined && confinement.is_some() {
        return Err(Refusal::denied(
            "the command asks to run outside of the sandbox, and nobody has allowed that",
        ));
    }
    let limit = arguments
        .timeout_seconds
        .map_or(DEFAULT_SHELL_TIME, Duration::from_secs)
        .clamp(Duration::from_secs(1), MAX_SHELL_TIME);
    let mut spec = ProcessSpec::new("sh");
    spec.args = ["-c", WRAPPER, "sh", &arguments.command]
        .map(OsString::from)
        .into();
    spec.env = call.environment.to_vec();
    spec.cwd = Some(root.path().to_owned());
    spec.directory = Some(root.handle().clone());
    spec.stop = StopPolicy {
        eof_grace: Duration::ZERO,
        term_grace: SHELL_TERM_GRACE,
    };
    spec.confinement = confinement.cloned();
    let is_watched = confinement.is_some_and(|given| !given.writable().is_empty());
    let watch = if is_watched {
        let shared = Arc::clone(call.shared);
        let begun = spawn_blocking(|| HookWatch::begin(shared)).await;
        Some(begun.map_err(|error| not_watched(&error))??)
    } else {
        None
    };
    let mut child = spawn(&spec).map_err(|error| not_run(&error))?;
    // The wrapper gives the command no input; this end would only be in the way.
    drop(child.take_stdin());
    let Some(stdout) = child.take_stdout() else {
        return Err(Refusal::new("cannot read the output of the shell"));
    };
    let mut running = Running {
        child: Some(child),
        stdout,
        watch,
    };
    let mut capture = Capture::default();
    let (report, timed_out) = running.finish(&mut capture, limit, call.progress).await;
    let mut output = output(capture, report, timed_out.then_some(limit), confinement);
    if let Some(watch) = running.watch.take() {
        let changes = spawn_blocking(|| watch.finish()).await;
        output.changes = changes.map_err(|error| not_watched(&error))?;
    }
    Ok(output)
}

fn not_watched(error: &JoinError) -> Refusal {
    Refusal::new(format!("cannot look for changed hooks: {error}"))
}

/// Why there is no shell. That it cannot be confined is something that the user can change.
fn not_run(error: &SpawnError) -> Refusal {
    match error {
        SpawnError::Confinement { source, .. } => {
            Refusal::denied(format!("cannot run a shell in a sandbox: {source}"))
        }
        other => Refusal::new(format!("cannot run a shell: {other}")),
    }
}

/// A command at work. Dropping it ends every process of it, and then undoes its changes to hooks.
struct Running {
    /// Only a destructor takes it.
    child: Option<GuardedChild>,
    stdout: pipe::Receiver,
    watch: Option<HookWatch>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let (Some(child), Some(watch)) = (self.child.take(), self.watch.take()) {
            spawn_cleanup(move || {
                child.stop_blocking();
                drop(watch);
            });
        }
    }
}

impl Running {
    /// Waits for the end of the command, at most for the limit. Tells whether that was too short.
    async fn finish(
        &mut self,
        capture: &mut Capture,
        limit: Duration,
        progress: &dyn Progress,
    ) -> (ExitReport, bool) {
        let Some(child) = &mut self.child else {
            return (ExitReport::Unknown, false);
        };
        let stdout = &mut self.stdout;
        let started = Instant::now();
        let ended = timeout_at(
            started + limit,
            follow(child, stdout, capture, started, limit, progress),
        )
        .await;
        let timed_out = ended.is_err();
        let report = match ended {
            Ok(report) => report,
            Err(_) => child.stop().await,
        };
        // All processes are gone, so the end of the output is near; unless one of another user
        // still holds it.
        drop(timeout(SHELL_DRAIN, capture.read_to_end(stdout)).await);
        (report, timed_out)
    }
}

/// Reads the output until the command has exited and all that it started is gone.
async fn follow(
    child: &mut GuardedChild,
    stdout: &mut pipe::Receiver,
    capture: &mut Capture,
    started: Instant,
    limit: Duration,
    progress: &dyn Progress,
) -> ExitReport {
    let mut reports = interval_at(started + SHELL_REPORT, SHELL_REPORT);
    reports.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut is_open = true;
    loop {
        tokio::select! {
            report = child.wait() => return report,
            read = stdout.read(&mut chunk), if is_open => match read {
                Ok(length) if length > 0 => {
                    capture.push(chunk.get(..length).unwrap_or_default());
                }
                // The end; an error is one, too.
                Ok(_) | Err(_) => is_open = false,
            },
            _ = reports.tick() => {
                let done = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
                let total = u64::try_from(limit.as_millis()).ok();
                progress.report(done, total, &capture.last_line());
            }
        }
    }
}

fn output(
    capture: Capture,
    report: ExitReport,
    limit: Option<Duration>,
    confinement: Option<&Confinement>,
) -> ToolOutput {
    let (text, is_cut) = capture.into_text();
    let is_denial = confinement
        .filter(|_| limit.is_none() && !report.success())
        .is_some_and(|given| denial::is_likely(&text, given.has_network()));
    let mut structured = json!({
        "output": text,
        "timed_out": limit.is_some(),
        "truncated": is_cut,
    });
    match report {
        ExitReport::Code(code) => structured["exit_code"] = code.into(),
        ExitReport::Signal(signal) => structured["signal"] = signal.into(),
        ExitReport::Unknown => {}
    }
    let note = match limit {
        Some(limit) => {
            let seconds = count(limit.as_secs(), "second", "seconds");
            format!("stopped after {seconds}: {report}")
        }
        None => report.to_string(),
    };
    let mut notes = vec![note];
    notes.extend(is_denial.then(|| DENIAL_NOTE.to_owned()));
    let text = super::with_notes(text, &notes);
    ToolOutput {
        is_error: limit.is_some(),
        denial: is_denial.then_some(Denial::Likely),
        ..ToolOutput::structured(text, structured)
    }
}
