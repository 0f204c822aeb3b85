//! `cocode` alone: the agent in a conversation with the person at the terminal.

mod asking;
mod child;
mod commands;
mod completing;
mod files;
mod holding;
mod mentions;
mod notices;
mod prompts;
mod servers;
mod spending;
mod talk;
mod tools;

use std::io::{IsTerminal as _, Write as _, stdin};
use std::sync::Arc;

use clap::CommandFactory as _;
use cocode_client::{Handler, ServerName};
use cocode_terminal::{
    HostNotice, Keyboard, Line, Palette, Style, TerminalError, TerminalOptions, leave_raw_mode,
    restoring_bytes, standard_output,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::asking::Questions;
use self::talk::Talk;
use crate::agent::exec::last;
use crate::agent::sessions::find;
use crate::agent::{Defaults, House};
use crate::args::Cli;
use crate::args::agent::InteractiveArgs;
use crate::error::{CliError, Code, Exit};
use crate::interrupt::Interrupts;
use crate::printer::Printer;
use crate::session::on_runtime;
use crate::workspace::{Workspace, told};

/// Lines and questions that wait to be shown.
const MAX_NOTICES: usize = 256;

/// Problems of the configuration that are shown at the beginning.
const MAX_PROBLEMS: usize = 10;

const WITHOUT_TERMINAL: &str =
    "without a terminal, `cocode exec 'What is to be done'` lets the agent do something";

/// Where there is nobody to talk with: says what there is to do instead.
pub(crate) fn without_terminal(args: &InteractiveArgs, printer: &Printer) -> Option<Exit> {
    if stdin().is_terminal() && printer.stdout_is_terminal() && !printer.json() {
        return None;
    }
    if args.given().is_none() && !printer.json() {
        let help = Cli::command().render_help();
        let text = if printer.error_paint().on {
            help.ansi().to_string()
        } else {
            help.to_string()
        };
        printer.err_text(&text);
        printer.err_line(&format!("hint: {WITHOUT_TERMINAL}"));
        return Some(Exit::Usage);
    }
    let message = "there is no command, and no terminal to talk in";
    let error = CliError::new(Code::InvalidUsage, message).hint(WITHOUT_TERMINAL);
    printer.error(&error);
    Some(error.exit)
}

pub(crate) fn run(args: &InteractiveArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    on_runtime(workspace, session(args, workspace))
}

async fn session(args: &InteractiveArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let mut interrupts = Interrupts::catch()?;
    let (say, notices) = mpsc::channel(MAX_NOTICES);
    let mut house = House::open(workspace, Defaults::TERMINAL, |options| {
        let say = say.clone();
        options.handlers = Arc::new(move |server: &ServerName| {
            Arc::new(Questions::new(server, say.clone())) as Arc<dyn Handler>
        });
    })
    .await?;
    house.follow(workspace)?;
    let outcome = talk(args, &house, workspace, (say, notices), &mut interrupts).await;
    tokio::select! {
        () = house.close() => {}
        // What is left of the servers ends without us.
        _exit = interrupts.next() => {}
    }
    outcome
}

/// What is said beside the turns: who says it, and who shows it.
type Saying = (mpsc::Sender<HostNotice>, mpsc::Receiver<HostNotice>);

async fn talk(
    args: &InteractiveArgs,
    house: &House,
    workspace: &Workspace,
    (say, notices): Saying,
    interrupts: &mut Interrupts,
) -> Result<Exit, CliError> {
    let printer = &workspace.printer;
    let talk = Arc::new(Talk::new(house, args, workspace, say.clone())?);
    let first = first(args, house, &talk).await?;
    let options = TerminalOptions {
        palette: palette(workspace),
        is_dumb: is_dumb(workspace),
        history: Some(workspace.places.state.join("history.jsonl")),
        rings: true,
        greeting: greeting(&talk, workspace)?,
        first,
        notices,
        stop: CancellationToken::new(),
    };
    let stop = options.stop.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(notices::follow(Arc::clone(&talk), house.manager.events()));
    let hears = say.clone();
    let (keyboard, output) = (
        Keyboard::open().map_err(|error| told_of(&error))?,
        standard_output().map_err(|error| told_of(&TerminalError::Write(error)))?,
    );
    restore_after_panic();
    printer.divert(Some(Arc::new(move |line: &str| {
        notices::show(&hears, Line::new(line, Style::PLAIN.dim()));
    })));
    let mut signaled = None;
    let ended = {
        let host = Arc::clone(&talk);
        let mut running = std::pin::pin!(cocode_terminal::run(
            options,
            host,
            Box::new(keyboard),
            output
        ));
        tokio::select! {
            ended = &mut running => ended,
            exit = interrupts.next() => {
                signaled = Some(exit);
                stop.cancel();
                running.await
            }
        }
    };
    printer.divert(None);
    tasks.shutdown().await;
    if let Some(id) = talk.let_go() {
        printer.note(&format!("to go on: cocode --resume {id}"));
    }
    match (signaled, ended) {
        // Whoever hangs up takes the terminal with them.
        (Some(exit), _) => Ok(exit),
        (None, Ok(())) => Ok(Exit::Ok),
        (None, Err(error)) => Err(told_of(&error)),
    }
}

/// What is done first. A conversation that cannot go on is found out before anything is drawn.
async fn first(
    args: &InteractiveArgs,
    house: &House,
    talk: &Talk,
) -> Result<Option<String>, CliError> {
    let store = house.agent.options().store.as_ref();
    let id = match args.resume.as_deref() {
        Some("") if args.prompt.is_none() => return Ok(Some("/resume".to_owned())),
        Some("") => {
            let message = "`--prompt` does not go with a conversation that is yet to be picked";
            return Err(CliError::new(Code::InvalidUsage, message)
                .hint("`--last` takes the last one, `--resume ID` any other"));
        }
        Some(id) => Some(find(store, id).await?),
        None if args.last => Some(last(&house.agent, &talk.settings().cwd).await?),
        None => None,
    };
    let Some(id) = id else {
        return Ok(args.prompt.clone());
    };
    talk.resume(&id).await?;
    let shows = || format!("/resume {id}");
    Ok(Some(args.prompt.clone().unwrap_or_else(shows)))
}

fn greeting(talk: &Talk, workspace: &Workspace) -> Result<Vec<Line>, CliError> {
    let dim = Style::PLAIN.dim();
    let version = env!("CARGO_PKG_VERSION");
    let here = talk.settings().cwd.display().to_string();
    let mut lines = vec![
        Line::new("cocode ", Style::PLAIN.bold())
            .with(version, dim)
            .with(" in ", dim)
            .with(&here, dim),
        Line::new(
            "/help says what there is, Ctrl-C interrupts, Ctrl-D leaves",
            dim,
        ),
    ];
    let config = workspace.config()?;
    let problems: Vec<String> = config.all_problems().into_iter().map(told).collect();
    for problem in problems.iter().take(MAX_PROBLEMS) {
        lines.push(notices::warning(problem));
    }
    if let Some(left @ 1..) = problems.len().checked_sub(MAX_PROBLEMS) {
        let more = format!("and {left} more: `cocode config check` shows all");
        lines.push(notices::warning(&more));
    }
    let waiting = servers::waiting(config);
    if !waiting.is_empty() {
        let waiting = waiting.join(", ");
        let line =
            format!("not approved yet, and not used: {waiting}; `cocode mcp trust` asks you");
        lines.push(notices::warning(&line));
    }
    Ok(lines)
}

fn palette(workspace: &Workspace) -> Palette {
    if workspace.printer.paint().on {
        Palette::Color
    } else {
        Palette::Mono
    }
}

fn is_dumb(workspace: &Workspace) -> bool {
    let terminal = workspace.environment.variables.text("TERM");
    terminal.is_none_or(|terminal| terminal == "dumb" || terminal.is_empty())
}

fn told_of(error: &TerminalError) -> CliError {
    CliError::new(Code::SetupFailed, "the session at the terminal ended")
        .because(error)
        .hint(WITHOUT_TERMINAL)
}

/// Whoever reads of a panic needs a terminal that works.
fn restore_after_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // Nothing more can be done in a panic if this fails.
        let _raw = leave_raw_mode();
        let _modes =
            standard_output().and_then(|mut output| output.write_all(restoring_bytes().as_bytes()));
        usual(panic);
    }));
}
