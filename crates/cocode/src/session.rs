//! One command on one server, configured or given on the command line: connects, does the work,
//! closes. Commands on all servers are sent on their way here.

use std::io::Read as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cocode_client::{Connector, Handler, Manager, ServerName, Session};
use cocode_core::ServerSpec;

use crate::args::{TargetArgs, Verb};
use crate::configured;
use crate::error::{CliError, Code, Exit};
use crate::fleet::until;
use crate::gate::Gate;
use crate::handler::TerminalHandler;
use crate::hints;
use crate::interrupt::Interrupts;
use crate::managing::{self, Purpose, Setup};
use crate::naming;
use crate::printer::Printer;
use crate::reach::{Configured, Given, sends_authorization};
use crate::target::{self, Server, adjusted, is_protocol_chosen, unlisted};
use crate::trouble::About;
use crate::verbs::{Context, Plan, cached, everywhere};
use crate::workspace::Workspace;

/// How long the end of the program waits for credentials to be stored.
const SETTLED_WITHIN: Duration = Duration::from_secs(45);

/// Everything that can be found wrong before a server is started is found wrong here.
pub(crate) fn run(mut verb: Verb, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    if let Some(kind) = everywhere::meant(&verb) {
        fits_configured(verb.target())?;
        return everywhere::run(kind, &verb, workspace);
    }
    let is_given = verb.target().is_given();
    let spec = if is_given {
        if verb.is_cached() {
            let message = "`--cached` is for configured servers: of others nothing is remembered";
            return Err(CliError::new(Code::InvalidUsage, message));
        }
        let spec = unlisted(verb.target())?;
        if let Some(reason) = config.refuses_unlisted(&spec) {
            return Err(configured::blocked("this server", &reason));
        }
        spec
    } else {
        let names: Vec<&str> = config.servers.keys().map(String::as_str).collect();
        let name = naming::take_server(&mut verb, &names)
            .map_err(|error| configured::with_files(error, config))?;
        fits_configured(verb.target())?;
        *configured::ready(&name, workspace)?
    };
    let spec = adjusted(spec, verb.target());
    let plan = Plan::of(&verb, &read_stdin)?;
    if verb.is_cached() {
        return cached::run(&plan, &spec, workspace).map(|()| Exit::Ok);
    }
    let setup = Setup::new(Purpose::OneThing, workspace)?;
    let setup = if is_given {
        setup.without_memory()
    } else {
        setup
    };
    let work = connect(verb.target(), spec, plan, &setup, workspace);
    let outcome = on_runtime(workspace, work);
    setup.end();
    outcome
}

/// Does work that waits for others.
pub(crate) fn on_runtime<T>(
    workspace: &Workspace,
    work: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let cannot =
        |error| CliError::new(Code::SetupFailed, "cannot start the runtime").because(&error);
    // One thread is plenty for sessions, and starts fastest.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(cannot)?;
    let outcome = runtime.block_on(async {
        let outcome = work.await;
        // Tokens that were just renewed are worth nothing to the next command if they are not stored.
        let settled = tokio::time::timeout(SETTLED_WITHIN, workspace.settle()).await;
        if settled.is_err() {
            tracing::warn!("credentials that were being renewed may be lost");
        }
        outcome
    });
    // A name may still be looked up; that must not hold us up.
    runtime.shutdown_background();
    outcome
}

async fn connect(
    args: &TargetArgs,
    spec: ServerSpec,
    plan: Plan,
    setup: &Setup,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let printer = &workspace.printer;
    let interrupts = Interrupts::catch()?;
    let (connector, about) = subject(args, &spec, workspace).await?;
    let handler = Arc::new(TerminalHandler::new(args, &about.shown, printer)?);
    let gate = Gate::new(about.configured.as_ref(), workspace)?;
    let manager = setup.manager(|options| {
        let handler = Arc::clone(&handler);
        options.connector = connector;
        options.handlers =
            Arc::new(move |_server: &ServerName| Arc::clone(&handler) as Arc<dyn Handler>);
        options.timeouts = target::timeouts(args);
    });
    let run = Run {
        server: spec.name.clone(),
        about,
        authorization_given: sends_authorization(args),
        deadlines: target::deadlines(args),
        handler,
        gate,
        printer: Arc::clone(printer),
    };
    manager.apply([spec]).await;
    run.all(&manager, plan, interrupts).await
}

/// Who makes the target, and how errors speak of it.
async fn subject(
    args: &TargetArgs,
    spec: &ServerSpec,
    workspace: &Workspace,
) -> Result<(Arc<dyn Connector>, About), CliError> {
    let mut about = About::configured(spec, "--connect-timeout");
    about.protocol_chosen = is_protocol_chosen(args);
    if !args.is_given() {
        let connector = Configured::new(workspace)?;
        connector.recall([spec]).await;
        return Ok((Arc::new(connector), about));
    }
    let given = Given {
        args: args.clone(),
        http: workspace.environment.http.clone(),
        admissions: Arc::clone(workspace.admissions()?),
        printer: Arc::clone(&workspace.printer),
    };
    about.shown = Server::of(&given.args, &given.http, &given.printer)?.shown;
    about.configured = None;
    Ok((Arc::new(given), about))
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

/// One server and what is done with it.
struct Run {
    server: ServerName,
    about: About,
    /// Credentials are sent with every request.
    authorization_given: bool,
    deadlines: Option<cocode_client::Deadlines>,
    handler: Arc<TerminalHandler>,
    gate: Gate,
    printer: Arc<Printer>,
}

impl Run {
    async fn all(
        self,
        manager: &Manager,
        plan: Plan,
        mut interrupts: Interrupts,
    ) -> Result<Exit, CliError> {
        let begun = Instant::now();
        let connected = tokio::select! {
            biased;
            exit = interrupts.next() => return Err(interrupted(&self.printer, exit)),
            connected = manager.session(&self.server, until()) => connected,
        };
        let session =
            connected.map_err(|error| self.without_repetition(self.about.failure(&error).error))?;
        let context = Context {
            manager,
            server: &self.server,
            session: &session,
            about: &self.about,
            deadlines: self.deadlines,
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
        managing::close(manager, &mut interrupts).await;
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
