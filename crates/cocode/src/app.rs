//! From the words of the command line to an exit code: parses, connects, does the work, closes.

use std::ffi::OsString;
use std::io::Read as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::{CommandFactory as _, FromArgMatches as _};
use cocode_client::{Session, SessionOptions, Target};

use crate::args::{Cli, Color, Command, OutputArgs, Verb};
use crate::environment::Environment;
use crate::error::{CliError, Code, Exit};
use crate::explain;
use crate::generate;
use crate::handler::TerminalHandler;
use crate::hints;
use crate::interrupt::Interrupts;
use crate::logging;
use crate::misuse::{misused, stray_address};
use crate::printer::Printer;
use crate::target::{Server, is_protocol_chosen, session_options};
use crate::verbs::{Context, Plan};

/// Runs the program.
pub(crate) fn main(words: &[OsString]) -> ExitCode {
    let environment = Environment::read();
    let asked = output_asked_for(words);
    let color = match asked.color {
        Color::Auto => clap::ColorChoice::Auto,
        Color::Always => clap::ColorChoice::Always,
        Color::Never => clap::ColorChoice::Never,
    };
    let parsed = Cli::command().color(color).try_get_matches_from(words);
    let cli = match parsed.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)) {
        Ok(cli) => cli,
        Err(error) => {
            let printer = Printer::new(&asked, &environment);
            return exit_code(misused(&error, words, &printer));
        }
    };
    let printer = Arc::new(Printer::new(&cli.output, &environment));
    let outcome = match &cli.command {
        Command::Completions { shell } => {
            generate::completions(*shell, &printer).map(|()| Exit::Ok)
        }
        Command::Man { out } => generate::manual(out.as_deref(), &printer).map(|()| Exit::Ok),
        Command::Explain { code } => explain::run(code.as_deref(), &printer).map(|()| Exit::Ok),
        Command::Mcp(verb) => mcp(verb, &cli.output, &environment, &printer),
    };
    exit_code(outcome.unwrap_or_else(|mut error| {
        if error.exit == Exit::Usage {
            error.hints.splice(0..0, stray_address(words));
        }
        printer.error(&error);
        error.exit
    }))
}

fn exit_code(exit: Exit) -> ExitCode {
    ExitCode::from(exit as u8)
}

/// How output is wanted, found out without understanding the rest of the command line.
fn output_asked_for(words: &[OsString]) -> OutputArgs {
    let mut asked = OutputArgs::default();
    let mut words = words
        .iter()
        .skip(1)
        .take_while(|word| *word != "--")
        .peekable();
    while let Some(word) = words.next() {
        let color = match word.to_str() {
            Some("--json") => {
                asked.json = true;
                continue;
            }
            Some("--color") => words.peek().and_then(|word| word.to_str()),
            Some(word) => word.strip_prefix("--color="),
            None => None,
        };
        asked.color = match color {
            Some("always") => Color::Always,
            Some("never") => Color::Never,
            _ => asked.color,
        };
    }
    asked
}

/// Everything that can be found wrong before a server is started is found wrong here.
fn mcp(
    verb: &Verb,
    output: &OutputArgs,
    environment: &Environment,
    printer: &Arc<Printer>,
) -> Result<Exit, CliError> {
    logging::start(output, environment, printer)?;
    let target = verb.target();
    let plan = Plan::of(verb, &read_stdin)?;
    let server = Server::of(target, environment, printer)?;
    let handler = Arc::new(TerminalHandler::new(target, &server.shown, printer)?);
    let options = session_options(target, &server, output.verbose, Arc::clone(&handler) as _);
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
        printer: Arc::clone(printer),
    };
    let cannot =
        |error| CliError::new(Code::SetupFailed, "cannot start the runtime").because(&error);
    // One thread is plenty for one session, and starts fastest.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(cannot)?;
    let exit = runtime.block_on(run.all(server, options, plan));
    // A name may still be looked up; that must not hold us up.
    runtime.shutdown_background();
    exit
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
    printer: Arc<Printer>,
}

impl Run {
    async fn all(
        self,
        target: Target,
        options: SessionOptions,
        plan: Plan,
    ) -> Result<Exit, CliError> {
        let mut interrupts = Interrupts::catch()?;
        let begun = Instant::now();
        let connecting = Box::pin(Session::connect(target, options));
        let connected = tokio::select! {
            biased;
            exit = interrupts.next() => return Err(self.interrupted(exit)),
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
            begun,
        };
        let working = Box::pin(async {
            self.handler.settle_roots(&session).await;
            plan.run(&context).await
        });
        let outcome = tokio::select! {
            biased;
            exit = interrupts.next() => Err(self.interrupted(exit)),
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

    fn interrupted(&self, exit: Exit) -> CliError {
        self.printer.leave_line();
        CliError::with(exit, Code::Interrupted.as_str(), "interrupted")
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
