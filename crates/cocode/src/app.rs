//! From the words of the command line to an exit code: parses, and hands on to whoever does it.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::agent;
use crate::args::{Cli, Color, Command, McpArgs, McpVerb, OutputArgs};
use crate::budget;
use crate::command_line::{self, CommandLine};
use crate::environment::{self, Environment};
use crate::error::{CliError, Code, Exit};
use crate::explain;
use crate::gateway;
use crate::generate;
use crate::govern;
use crate::interactive;
use crate::logging::{self, Growth};
use crate::manage;
use crate::misuse::{misused, stray_address};
use crate::operate;
use crate::printer::Printer;
use crate::results;
use crate::search;
use crate::serve;
use crate::session;
use crate::workspace::Workspace;

/// How long the exit waits for changes of commands to be undone, and temporary files to be removed. What is left of the
/// latter is removed by a later process.
const CLEANED_WITHIN: Duration = Duration::from_secs(10);

/// Runs the program.
pub(crate) fn main(words: &[OsString]) -> ExitCode {
    let environment = Environment::read();
    let cleared = environment::clear();
    let command = Cli::command();
    let CommandLine { words, note } = &command_line::understood(words, &command);
    let asked = output_asked_for(words);
    let color = match asked.color {
        Color::Auto => clap::ColorChoice::Auto,
        Color::Always => clap::ColorChoice::Always,
        Color::Never => clap::ColorChoice::Never,
    };
    let parsed = command.color(color).try_get_matches_from(words);
    let cli = match parsed.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)) {
        Ok(cli) => cli,
        Err(error) => {
            let printer = Printer::new(&asked, &environment);
            return exit_code(misused(&error, words, &printer));
        }
    };
    let printer = Arc::new(Printer::new(&cli.output, &environment));
    if let Some(note) = note {
        printer.warn(note);
    }
    if let Err(error) = cleared.and_then(|()| protect(cli.command.as_ref())) {
        printer.warn(&format!(
            "this process is not protected from other programs of this user: {error}"
        ));
    }
    let outcome = run(cli, environment, &printer);
    cocode_process::wait_for_cleanup(CLEANED_WITHIN);
    exit_code(outcome.unwrap_or_else(|mut error| {
        if error.exit == Exit::Usage {
            error.hints.splice(0..0, stray_address(words));
        }
        printer.error(&error);
        error.exit
    }))
}

/// Protects a process that acts for its user or for clients from the programs that it starts.
fn protect(command: Option<&Command>) -> io::Result<()> {
    let (is_service, has_socket) = match command {
        None | Some(Command::Exec(_)) => (false, false),
        Some(Command::Gateway(args)) if args.verb.is_none() => (true, true),
        Some(Command::Mcp(args)) if args.0.verb.is_daemon() => (true, true),
        Some(Command::Mcp(args)) if matches!(args.0.verb, McpVerb::Serve(_)) => (true, false),
        Some(_) => return Ok(()),
    };
    cocode_process::protect_process_memory()?;
    if is_service {
        cocode_process::raise_descriptor_limit()?;
    }
    if has_socket {
        // What a server leaves behind stays known as its own, and is not served at the socket.
        cocode_process::adopt_orphans()?;
    }
    Ok(())
}

fn run(cli: Cli, environment: Environment, printer: &Arc<Printer>) -> Result<Exit, CliError> {
    let Cli {
        output,
        config,
        interactive,
        command,
    } = cli;
    let Some(command) = command else {
        if let Some(exit) = interactive::without_terminal(&interactive, printer) {
            return Ok(exit);
        }
        // What is logged to stderr would be drawn over.
        if output.log_file.is_some() {
            logging::start(&output, Growth::Free, &environment, printer)?;
        }
        let workspace = Workspace::new(environment, Arc::clone(printer), output, &config)?;
        return interactive::run(&interactive, &workspace);
    };
    if let Some(option) = interactive.given() {
        let message = format!("`{option}` stands before the command, where it means nothing");
        return Err(CliError::new(Code::InvalidUsage, message).hint(
            "options of a command come after it: cocode exec --model NAME 'What is to be done'",
        ));
    }
    // Not made for what needs nothing but the program itself.
    let is_daemon = matches!(&command, Command::Mcp(args) if args.0.verb.is_daemon());
    let growth = if is_daemon {
        Growth::Bounded
    } else {
        Growth::Free
    };
    let workspace = || {
        logging::start(&output, growth, &environment, printer)?;
        Workspace::new(environment, Arc::clone(printer), output, &config)
    };
    match command {
        Command::Completions { shell } => generate::completions(shell, printer).map(|()| Exit::Ok),
        Command::Man { out } => generate::manual(out.as_deref(), printer).map(|()| Exit::Ok),
        Command::Explain { code } => explain::run(code.as_deref(), printer).map(|()| Exit::Ok),
        Command::Mcp(args) => {
            let McpArgs {
                credential_store,
                verb,
            } = *args.0;
            let workspace = || workspace().map(|made| made.with_store(credential_store));
            match verb {
                // These can do without any configuration.
                McpVerb::Search(args) => search::run(&args, printer, workspace),
                McpVerb::Budget(args) => budget::run(&args, printer, workspace),
                McpVerb::Manage(verb) => manage::run(&verb, &workspace()?),
                McpVerb::Result(verb) => results::run(&verb, &workspace()?),
                McpVerb::Serve(args) => serve::run(&args, &workspace()?),
                McpVerb::Daemon(verb) => manage::daemon::run(verb, &workspace()?),
                McpVerb::Use(verb) => session::run(*verb, &workspace()?),
            }
        }
        Command::Gateway(args) => {
            if let Some(verb) = &args.verb {
                return operate::run(verb, &workspace()?);
            }
            let workspace = workspace()?.with_store(args.credential_store);
            gateway::run(&args, &workspace)
        }
        Command::Exec(args) => agent::exec::run(&args, &workspace()?),
        Command::Sessions(verb) => agent::sessions::run(&verb, &workspace()?),
        Command::Permissions(verb) => govern::permissions::run(&verb, &workspace()?),
        Command::Policy(verb) => govern::policy::run(&verb, &workspace()?),
        Command::Plugin(verb) => govern::plugins::run(&verb, &workspace()?),
        Command::Audit(verb) => govern::audit::run(&verb, &workspace()?),
        Command::Secret(args) => {
            let workspace = workspace()?.with_store(args.credential_store);
            govern::secrets::run(&args, &workspace)
        }
        Command::Config(verb) => govern::files::run(&verb, &workspace()?),
    }
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
