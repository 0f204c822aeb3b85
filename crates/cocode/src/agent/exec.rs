//! `cocode exec`: one turn of a conversation, for scripts.

mod asking;
mod events;
mod input;
mod telling;

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use cocode_agent::{
    Agent, Block, Company, Conversation, ConversationId, Ending, Listener, Settings, TurnEnd,
    Wanted,
};
use cocode_process::reserved_paths;
use rustix::fs::{OFlags, fcntl_setfl};
use tokio_util::sync::CancellationToken;

pub(crate) use self::input::image;

use self::events::Events;
use self::telling::Telling;
use super::{Defaults, House, OWN, Wishes, trouble};
use crate::args::agent::ExecArgs;
use crate::error::{CliError, Code, Exit};
use crate::interrupt::Interrupts;
use crate::session::on_runtime;
use crate::workspace::Workspace;

/// Conversations that are looked through for the last one of a directory.
const MAX_LOOKED_THROUGH: usize = 1_000;

pub(crate) fn run(args: &ExecArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let said = input::said(args, &workspace.printer)?;
    on_runtime(workspace, exec(args, said, workspace))
}

async fn exec(args: &ExecArgs, said: Vec<Block>, workspace: &Workspace) -> Result<Exit, CliError> {
    let mut interrupts = Interrupts::catch()?;
    workspace.warn_of_files(workspace.config()?);
    let house = House::open(workspace, Defaults::SCRIPT, |_| {}).await?;
    let outcome = turn(args, said, &house, workspace, &mut interrupts).await;
    warn_of_servers(&house, workspace);
    house.close().await;
    outcome
}

async fn turn(
    args: &ExecArgs,
    said: Vec<Block>,
    house: &House,
    workspace: &Workspace,
    interrupts: &mut Interrupts,
) -> Result<Exit, CliError> {
    let printer = &workspace.printer;
    let mut conversation = conversation(args, &said, house).await?;
    let id = conversation.id().clone();
    let is_begun = args.resume.is_none() && !args.last;
    let output = args.output.as_deref();
    let output = output.map(|path| open_output(path, conversation.settings()));
    let output = match output.transpose() {
        Ok(output) => output,
        Err(error) => {
            drop(conversation);
            if is_begun {
                forget(&house.agent, &id).await;
            }
            return Err(error);
        }
    };
    let listener: Arc<dyn Listener> = if printer.json() {
        Arc::new(Events::new(
            Arc::clone(printer),
            &conversation,
            &house.manager,
        ))
    } else {
        Arc::new(Telling::new(Arc::clone(printer)))
    };
    let company = Company {
        listener,
        approver: asking::approver(printer),
        sampler: None,
        interrupt: CancellationToken::new(),
    };
    let mut signaled = None;
    let end = {
        let mut turning = std::pin::pin!(conversation.turn(said, &company));
        tokio::select! {
            end = &mut turning => end,
            exit = interrupts.next() => {
                signaled = Some(exit);
                company.interrupt.cancel();
                tokio::select! {
                    end = &mut turning => end,
                    // Whoever asks twice does not want to wait.
                    exit = interrupts.next() => return Ok(exit),
                }
            }
        }
    };
    let end = match end {
        Ok(end) => end,
        Err(error) => {
            drop(conversation);
            if is_begun {
                forget(&house.agent, &id).await;
            }
            return Err(trouble(&error));
        }
    };
    if printer.json() {
        events::ended(printer, &end)?;
    } else {
        telling::ended(printer, &end)?;
        printer.note(&format!("to go on: cocode exec --resume {id} …"));
    }
    if let (Some(path), Some(file)) = (&args.output, output) {
        write(path, file, &end.text)?;
    }
    match signaled {
        Some(exit) => Ok(exit),
        None => judged(&end),
    }
}

/// Warns of servers that could not be used: the model did without.
fn warn_of_servers(house: &House, workspace: &Workspace) {
    for server in house.manager.status() {
        let Some(trouble) = server.state.trouble() else {
            continue;
        };
        let (name, kind) = (&server.name, server.state.kind());
        let what = format!("server `{name}` could not be used ({kind}): {trouble}");
        workspace.printer.warn(&what);
    }
}

/// The conversation that is meant.
async fn conversation(
    args: &ExecArgs,
    said: &[Block],
    house: &House,
) -> Result<Conversation, CliError> {
    let wishes = Wishes::from(&args.agent);
    let resumed = match (&args.resume, args.last) {
        (Some(id), _) => {
            Some(super::sessions::find(house.agent.options().store.as_ref(), id).await?)
        }
        (None, true) => Some(last(&house.agent, &house.setup.settings(&wishes)?.cwd).await?),
        (None, false) => None,
    };
    let Some(id) = resumed else {
        let settings = house.setup.settings(&wishes)?;
        let begun = house.agent.begin(OWN, settings, said).await;
        return begun.map_err(|error| trouble(&error));
    };
    let resumed = house.agent.resume(&id, Some(OWN)).await;
    let mut conversation = resumed.map_err(|error| trouble(&error))?;
    let settings = house.setup.resumed(&wishes, conversation.settings())?;
    let changed = conversation.change(settings).await;
    changed.map_err(|error| trouble(&error))?;
    Ok(conversation)
}

/// The last conversation of a directory.
pub(crate) async fn last(agent: &Agent, directory: &Path) -> Result<ConversationId, CliError> {
    let wanted = Wanted {
        owner: Some(OWN.to_owned()),
        limit: MAX_LOOKED_THROUGH,
        offset: 0,
    };
    let listed = agent.options().store.list(&wanted).await;
    let listed = listed.map_err(|error| trouble(&error.into()))?;
    let here = listed
        .into_iter()
        .find(|summary| summary.cwd == directory && !summary.is_closed);
    here.map(|summary| summary.id).ok_or_else(|| {
        let message = format!("there is no conversation in {} yet", directory.display());
        CliError::new(Code::ConversationFailed, message)
            .hint("`cocode sessions list` shows those of all directories")
    })
}

/// Removes a conversation in which nothing was said, which is none, and tells whether it is gone. One that
/// has said something stays, whatever broke.
pub(crate) async fn forget(agent: &Agent, id: &ConversationId) -> bool {
    let store = &agent.options().store;
    let is_empty = match store.load(id).await {
        Ok(stored) => stored.records.is_empty() && stored.unread.is_empty(),
        Err(_) => false,
    };
    if !is_empty {
        return false;
    }
    match store.remove(id).await {
        Ok(_gone) => true,
        Err(error) => {
            tracing::warn!(%id, %error, "a conversation that was not begun remains in the store");
            false
        }
    }
}

/// Opens the file for the last message before the turn, because a command could put a link in its place. A link
/// where commands can write may be theirs already.
fn open_output(path: &Path, settings: &Settings) -> Result<File, CliError> {
    let writable = || settings.writable.iter().chain([&settings.cwd]);
    let absolute = std::path::absolute(path).map_err(|error| output_failed(path, &error))?;
    let mut links = reserved_paths(&absolute).into_iter();
    if let Some(link) =
        links.find(|link| link.is_symlink() && writable().any(|root| link.starts_with(root)))
    {
        let message = format!("{} is a symbolic link in the workspace", link.display());
        return Err(output_failed(path, &io::Error::other(message)));
    }
    let opened = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        // A named pipe that nobody reads is an error, and not waited for.
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path);
    let opened = opened.map_err(|error| output_failed(path, &error))?;
    fcntl_setfl(&opened, OFlags::empty()).map_err(|error| output_failed(path, &error.into()))?;
    Ok(opened)
}

fn write(path: &Path, mut file: File, text: &str) -> Result<(), CliError> {
    let mut write = || {
        let (held, named) = (file.metadata()?, std::fs::metadata(path)?);
        if (held.dev(), held.ino()) != (named.dev(), named.ino()) {
            return Err(io::Error::other("it was replaced during the turn"));
        }
        if held.is_file() && held.nlink() > 1 {
            return Err(io::Error::other("it has another name (a hard link)"));
        }
        if held.is_file() {
            file.set_len(0)?;
        }
        file.write_all(text.as_bytes())
    };
    write().map_err(|error| output_failed(path, &error))
}

fn output_failed(path: &Path, error: &io::Error) -> CliError {
    let message = format!("the last message cannot be written to {}", path.display());
    CliError::new(Code::FileError, message).because(error)
}

/// How the program ends after a turn.
fn judged(end: &TurnEnd) -> Result<Exit, CliError> {
    let (code, message) = match &end.ending {
        Ending::Done => return Ok(Exit::Ok),
        Ending::Interrupted => return Ok(Exit::Interrupted),
        Ending::Refused(why) => {
            let why = why.as_ref().map(|why| format!(": {why}"));
            let message = format!("the model refused{}", why.unwrap_or_default());
            (Code::TurnFailed, message)
        }
        Ending::TooManySteps(most) => {
            let message = format!("the turn took more than {most} steps, and was ended");
            (Code::TurnFailed, message)
        }
        Ending::Looping => {
            let message = "the model did the same again and again, and was stopped".to_owned();
            (Code::TurnFailed, message)
        }
        Ending::Failed(why) => (Code::ModelFailed, why.clone()),
    };
    Err(CliError::new(code, message))
}
