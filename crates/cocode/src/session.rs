//! One session with one server, configured or given on the command line: connects, does the work,
//! closes.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Instant;

use cocode_client::{Session, SessionOptions, Target};
use cocode_core::ServerSpec;

use crate::args::{TargetArgs, Verb};
use crate::configured;
use crate::error::{CliError, Code, Exit};
use crate::gate::Gate;
use crate::handler::TerminalHandler;
use crate::hints;
use crate::interrupt::Interrupts;
use crate::naming;
use crate::printer::Printer;
use crate::reach;
use crate::target::{Server, is_protocol_chosen, session_options, unlisted};
use crate::verbs::{Context, Plan, all_tools};
use crate::workspace::Workspace;

/// Everything that can be found wrong before a server is started is found wrong here.
pub(crate) fn run(mut verb: Verb, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    if let Verb::Tools { words, target } = &verb
        && words.is_empty()
        && !target.is_given()
    {
        fits_configured(target)?;
        return all_tools::run(target, workspace);
    }
    let spec = if verb.target().is_given() {
        let spec = unlisted(verb.target())?;
        if let Some(reason) = config.refuses_unlisted(&spec) {
            return Err(configured::blocked("this server", &reason));
        }
        None
    } else {
        let names: Vec<&str> = config.servers.keys().map(String::as_str).collect();
        let name = naming::take_server(&mut verb, &names)
            .map_err(|error| configured::with_files(error, config))?;
        fits_configured(verb.target())?;
        Some(configured::ready(&name, workspace)?)
    };
    let plan = Plan::of(&verb, &read_stdin)?;
    on_runtime(connect(verb.target(), spec.as_deref(), plan, workspace))
}

/// Does work that waits for others.
pub(crate) fn on_runtime<T>(
    work: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let cannot =
        |error| CliError::new(Code::SetupFailed, "cannot start the runtime").because(&error);
    // One thread is plenty for sessions, and starts fastest.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(cannot)?;
    let outcome = runtime.block_on(work);
    // A name may still be looked up; that must not hold us up.
    runtime.shutdown_background();
    outcome
}

async fn connect(
    target: &TargetArgs,
    spec: Option<&ServerSpec>,
    plan: Plan,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let printer = &workspace.printer;
    let mut interrupts = Interrupts::catch()?;
    let server = match spec {
        Some(spec) => tokio::select! {
            biased;
            exit = interrupts.next() => return Err(interrupted(printer, exit)),
            server = reach::reach(spec, workspace) => server?,
        },
        None => Server::of(target, &workspace.environment, printer)?,
    };
    let handler = Arc::new(TerminalHandler::new(target, &server.shown, printer)?);
    let options = session_options(
        target,
        spec,
        &server,
        workspace.output.verbose,
        Arc::clone(&handler) as _,
    );
    let gate = Gate::new(spec, workspace)?;
    let Server {
        target: server,
        shown,
        sse_fallback: _,
    } = server;
    let run = Run {
        shown,
        protocol_chosen: is_protocol_chosen(target),
        authorization_given: target.header.iter().any(|header| {
            let name = header.split(':').next().unwrap_or_default();
            name.trim().eq_ignore_ascii_case("authorization")
        }),
        handler,
        gate,
        printer: Arc::clone(printer),
    };
    run.all(server, options, plan, interrupts).await
}

/// Options that describe a server are for servers that are described here.
fn fits_configured(target: &TargetArgs) -> Result<(), CliError> {
    let given = [
        ("--transport", target.transport.is_some()),
        ("--env", !target.env.is_empty()),
        ("--cwd", target.cwd.is_some()),
        ("--header", !target.header.is_empty()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => {
            let message = format!("`{option}` is for servers given by `--url` or after `--`");
            Err(CliError::new(Code::InvalidUsage, message)
                .hint("a configured server has this in its file: `cocode mcp explain NAME`"))
        }
    }
}

/// Somebody wants the program to end.
pub(crate) fn interrupted(printer: &Printer, exit: Exit) -> CliError {
    printer.leave_line();
    CliError::with(exit, Code::Interrupted.as_str(), "interrupted")
}

fn read_stdin() -> Result<String, CliError> {
    let mut text = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut text);
    let cannot = |error| CliError::new(Code::FileError, "cannot read stdin").because(&error);
    read.map_err(cannot).map(|_length| text)
}

/// One session and what is done with it.
struct Run {
    shown: String,
    protocol_chosen: bool,
    /// Credentials are sent with every request.
    authorization_given: bool,
    handler: Arc<TerminalHandler>,
    gate: Gate,
    printer: Arc<Printer>,
}

impl Run {
    async fn all(
        self,
        target: Target,
        options: SessionOptions,
        plan: Plan,
        mut interrupts: Interrupts,
    ) -> Result<Exit, CliError> {
        let begun = Instant::now();
        let connecting = Box::pin(Session::connect(target, options));
        let connected = tokio::select! {
            biased;
            exit = interrupts.next() => return Err(interrupted(&self.printer, exit)),
            connected = connecting => connected,
        };
        let session = connected.map_err(|error| {
            self.without_repetition(hints::connect_error(
                &error,
                &self.shown,
                self.protocol_chosen,
            ))
        })?;
        let context = Context {
            session: &session,
            printer: &self.printer,
            gate: &self.gate,
            handler: &self.handler,
            begun,
        };
        let working = Box::pin(async {
            self.handler.settle_roots(&session).await;
            plan.run(&context).await
        });
        let outcome = tokio::select! {
            biased;
            exit = interrupts.next() => Err(interrupted(&self.printer, exit)),
            outcome = working => outcome,
        };
        self.printer.end_bar();
        self.handler.warn_of_unused_answers();
        let exit = match outcome {
            Ok(()) => Exit::Ok,
            Err(error) => {
                let error = self.with_last_words(error, &session);
                self.printer.error(&error);
                error.exit
            }
        };
        let closing = Box::pin(session.close());
        tokio::select! {
            () = closing => {}
            // The second time, nobody wants to wait. What is left of the server ends without us.
            _exit = interrupts.next() => {}
        }
        Ok(exit)
    }

    /// Adds what the server wrote to stderr, where that may explain the error.
    fn with_last_words(&self, mut error: CliError, session: &Session) -> CliError {
        if hints::stderr_may_explain(&error) && error.stderr.is_empty() {
            error.stderr = session.stderr_lines();
        }
        self.without_repetition(error)
    }

    /// Leaves out what the user knows already: with `-v`, what the server wrote was shown when it
    /// came, and who passed credentials need not be told how.
    fn without_repetition(&self, mut error: CliError) -> CliError {
        if error.code == "auth-required" && self.authorization_given {
            error.hints = vec!["the given credentials were not accepted".to_owned()];
        }
        if self.printer.verbose() && !self.printer.json() {
            error.stderr.clear();
        }
        error
    }
}
