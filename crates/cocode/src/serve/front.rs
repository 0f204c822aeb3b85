//! The front: copies between the standard streams and the daemon, and brings the conversation over
//! to another daemon when one is lost.

mod held;
mod ledger;
mod lists;
mod peek;
mod pieces;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cocode_client::chain;
use cocode_wire::serve::{StandardStreams, standard_streams};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::time::Instant;

use self::held::Held;
use self::ledger::{Ledger, Loss};
use self::pieces::{Last, Piece, Pieces};
use super::FrontOutcome as Outcome;
use super::standalone::Local;
use crate::args::govern::CredentialStoreArg;
use crate::args::serve::ServeArgs;
use crate::daemon::{
    Front, Hello, LEFT, Place, Refusal, Summoned, Unavailable, Wants, summon, world,
};
use crate::environment::Variables;
use crate::error::{CliError, Exit};
use crate::interrupt::Interrupts;
use crate::printer::Printer;
use crate::session::on_runtime;
use crate::workspace::Workspace;

/// A daemon that is lost sooner than this is of no use.
const USEFUL_AFTER: Duration = Duration::from_secs(2);
/// How long a server that refuses to go on is left alone, at first and at last.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LAST_PAUSE: Duration = Duration::from_secs(8);
/// How many daemons of no use in a row are borne.
const MAX_USELESS: u32 = 3;

/// Serves by the daemon.
pub(super) fn run(args: &ServeArgs, workspace: &Workspace) -> Result<Outcome, CliError> {
    on_runtime(workspace, serve(args, workspace))
}

async fn serve(args: &ServeArgs, workspace: &Workspace) -> Result<Outcome, CliError> {
    let mut interrupts = Interrupts::catch()?;
    let printer = &workspace.printer;
    let alone = "each client of `cocode mcp serve` has servers of its own then";
    let Some(place) = Place::of(workspace) else {
        let warning = format!("there is no place for a shared daemon; {alone}");
        printer.warn(&warning);
        return Ok(Outcome::Unavailable(Some(warning)));
    };
    let named = workspace.named_variables();
    let variables = workspace.environment.variables.for_daemon(&named);
    let hello = Hello::new(Wants::Front(Box::new(front(args, workspace, &variables))));
    let summoned = tokio::select! {
        biased;
        exit = interrupts.next() => return Ok(Outcome::Served(exit)),
        summoned = summon(&place, &hello, &variables) => summoned,
    };
    let daemon = match summoned {
        Ok(summoned) => summoned,
        // Whoever serves alone finds out what is wrong, and says so.
        Err(Unavailable::Refused {
            refusal: Refusal::Failed,
            ..
        }) => return Ok(Outcome::Unavailable(None)),
        Err(error) => {
            let what_to_do = match error {
                Unavailable::Hangs { .. } if error.can_be_ended() => {
                    " (`cocode mcp daemon stop` ends it)"
                }
                _ => "",
            };
            let warning = format!("{}; {alone}{what_to_do}", chain(&error));
            printer.warn(&warning);
            return Ok(Outcome::Unavailable(Some(warning)));
        }
    };
    let talk = Talk {
        printer: Arc::clone(printer),
        ledger: RefCell::default(),
        leaving: Notify::new(),
        said: RefCell::default(),
    };
    talk.introduced(&daemon);
    let relay = Relay {
        args,
        workspace,
        place,
        hello,
        variables,
        talk,
        local: None,
    };
    let exit = relay.run(daemon.into(), interrupts).await;
    exit.map(Outcome::Served)
}

/// What the daemon has to know of this front.
fn front(args: &ServeArgs, workspace: &Workspace, variables: &Variables) -> Front {
    let Workspace {
        environment,
        places,
        store,
        ..
    } = workspace;
    let variables = variables.all().into_iter();
    Front {
        world: world(),
        directory: places.directory.as_ref().map(Into::into),
        home: environment.homes.home.as_ref().map(Into::into),
        environment: variables
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        config: places.explicit.iter().map(Into::into).collect(),
        strict: workspace.is_strict(),
        store: store.and_then(CredentialStoreArg::name),
        wanted: args.wanted.clone(),
    }
}

/// A connection to whoever serves.
struct Daemon {
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    pieces: Pieces,
    since: Instant,
}

impl From<Summoned> for Daemon {
    fn from(summoned: Summoned) -> Self {
        let Summoned { stream, unread, .. } = summoned;
        Self::new(stream, &unread)
    }
}

impl Daemon {
    fn new(stream: UnixStream, unread: &[u8]) -> Self {
        let (from, to) = stream.into_split();
        Self {
            from,
            to,
            pieces: Pieces::new(unread, Last::Torn),
            since: Instant::now(),
        }
    }
}

/// How copying ended.
enum End {
    /// The client has left, or does not listen any more.
    Client,
    /// The daemon is gone.
    Daemon,
    /// The daemon is gone, and the client has said everything.
    Both,
    /// Somebody wants the front to end.
    Signal(Exit),
}

/// What both directions know of the conversation.
struct Talk {
    printer: Arc<Printer>,
    ledger: RefCell<Ledger>,
    /// The daemon has said that it wants to end.
    leaving: Notify,
    /// What whoever runs the front was told.
    said: RefCell<BTreeSet<String>>,
}

impl Talk {
    /// Says what a daemon has to say of the configuration, unless another has done so.
    fn introduced(&self, daemon: &Summoned) {
        for warning in &daemon.welcome.warnings {
            if self.said.borrow_mut().insert(warning.clone()) {
                self.printer.warn(warning);
            }
        }
    }

    /// Says what is other than before.
    fn heard(&self, warnings: Vec<String>) {
        for warning in warnings {
            self.printer.warn(&warning);
            self.said.borrow_mut().insert(warning);
        }
    }
}

struct Relay<'a> {
    args: &'a ServeArgs,
    workspace: &'a Workspace,
    place: Place,
    hello: Hello<Wants>,
    /// The part of the environment that daemons are given.
    variables: Variables,
    talk: Talk,
    /// Serves when no daemon can be had.
    local: Option<Local>,
}

impl Relay<'_> {
    async fn run(
        mut self,
        mut daemon: Daemon,
        mut interrupts: Interrupts,
    ) -> Result<Exit, CliError> {
        let StandardStreams {
            mut source,
            mut sink,
            restore: _restore,
        } = standard_streams();
        let mut pieces = Pieces::new(b"", Last::Whole);
        let mut held = Held::default();
        let mut useless = 0;
        let exit = loop {
            let end = {
                let Daemon {
                    from,
                    to,
                    pieces: said,
                    since: _,
                } = &mut daemon;
                let up = up(&mut source, &mut pieces, &mut held, to, &self.talk);
                let down = down(from, said, &mut sink, &self.talk);
                copy(up, down, &mut interrupts).await
            };
            let is_last = matches!(end, End::Both);
            match end {
                End::Client => break Exit::Ok,
                End::Signal(exit) => break exit,
                End::Daemon | End::Both => {}
            }
            let is_useful = daemon.since.elapsed() >= USEFUL_AFTER;
            useless = if is_useful { 0 } else { useless + 1 };
            let was_stopped = self.talk.ledger.borrow().is_leaving();
            let loss = self.talk.ledger.borrow_mut().lost(daemon.pieces.is_cut());
            let told = async {
                // The client has the beginning of a line, and never gets its end.
                if daemon.pieces.is_cut() {
                    sink.write_all(b"\n").await?;
                }
                sink.write_all(&loss.told).await?;
                sink.flush().await?;
                pieces.skip_cut(&mut source).await
            };
            let told = tokio::select! {
                biased;
                exit = interrupts.next() => break exit,
                told = told => told,
            };
            if let Err(error) = told {
                tracing::debug!(%error, "the client is gone");
                break Exit::Ok;
            }
            if is_last && !self.talk.ledger.borrow().awaits_answers() {
                break Exit::Ok;
            }
            daemon = tokio::select! {
                biased;
                exit = interrupts.next() => break exit,
                daemon = self.another(useless, was_stopped) => daemon?,
            };
            let greeted = self.greet(&mut daemon, &mut sink, &loss);
            tokio::select! {
                biased;
                exit = interrupts.next() => break exit,
                greeted = greeted => if let Err(error) = greeted {
                    // Whoever copies will find out what is wrong.
                    tracing::debug!(%error, "the conversation was not brought over");
                }
            }
        };
        if let Some(local) = self.local {
            local.end().await;
        }
        Ok(exit)
    }

    /// Another daemon, or whoever serves within this process if there is none.
    async fn another(&mut self, useless: u32, was_stopped: bool) -> Result<Daemon, CliError> {
        let printer = &self.workspace.printer;
        if let Some(local) = &mut self.local {
            return local.connect().map(|stream| Daemon::new(stream, b""));
        }
        let why = if useless < MAX_USELESS {
            match summon(&self.place, &self.hello, &self.variables).await {
                Ok(summoned) => {
                    if was_stopped {
                        printer.note("the shared daemon was stopped in order; another one goes on");
                    } else {
                        printer.warn("the shared daemon was lost; another one goes on");
                    }
                    self.talk.introduced(&summoned);
                    return Ok(summoned.into());
                }
                Err(error) => chain(&error),
            }
        } else {
            format!("the shared daemon was lost {useless} times in a row")
        };
        printer.warn(&format!(
            "{why}; this client goes on with servers of its own"
        ));
        let mut local = Local::begin(self.args, self.workspace).await?;
        let stream = local.connect()?;
        self.local = Some(local);
        Ok(Daemon::new(stream, b""))
    }

    /// Tells a new daemon how far the conversation is.
    async fn greet(
        &self,
        daemon: &mut Daemon,
        sink: &mut (impl AsyncWrite + Unpin),
        loss: &Loss,
    ) -> io::Result<()> {
        let mut greeting = loss.greeting.clone();
        let mut pause = FIRST_PAUSE;
        while let Some(line) = greeting.take() {
            daemon.to.write_all(&line).await?;
            while self.talk.ledger.borrow().is_greeting() {
                let Some(piece) = daemon.pieces.next(&mut daemon.from).await? else {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                };
                pass_down(piece, sink, &self.talk).await?;
            }
            // A server that ended with the last daemon may need a moment until it can start again.
            greeting = self.talk.ledger.borrow_mut().introduction_again();
            if greeting.is_some() {
                if pause > LAST_PAUSE {
                    let why = "the server refuses to be introduced to the client once more";
                    self.workspace.printer.warn(why);
                    break;
                }
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
        }
        for line in &loss.rest {
            daemon.to.write_all(line).await?;
        }
        sink.write_all(&loss.news).await?;
        sink.flush().await
    }
}

/// Copies both ways until one of them ends.
async fn copy(
    up: impl Future<Output = End>,
    down: impl Future<Output = End>,
    interrupts: &mut Interrupts,
) -> End {
    let (mut up, mut down) = (std::pin::pin!(up), std::pin::pin!(down));
    let ended = tokio::select! {
        biased;
        exit = interrupts.next() => return End::Signal(exit),
        end = &mut down => return end,
        end = &mut up => end,
    };
    // What the daemon has said, or still has to say about what it was asked, is heard.
    let heard = tokio::select! {
        biased;
        exit = interrupts.next() => return End::Signal(exit),
        end = down => end,
    };
    match (ended, heard) {
        (End::Client, End::Daemon) => End::Both,
        (ended, _) => ended,
    }
}

/// From the client to the daemon.
async fn up(
    source: &mut (impl AsyncRead + Unpin),
    pieces: &mut Pieces,
    held: &mut Held,
    to: &mut OwnedWriteHalf,
    talk: &Talk,
) -> End {
    pieces.put_back(held.take());
    let mut has_parted = false;
    loop {
        if !has_parted && talk.ledger.borrow().is_leaving() && !pieces.is_cut() {
            // Requests that it has until here are answered yet.
            if let Err(error) = to.write_all(LEFT).await {
                tracing::debug!(%error, "the daemon has left already");
                return End::Daemon;
            }
            has_parted = true;
        }
        if has_parted && held.is_full() {
            return std::future::pending().await;
        }
        let piece = tokio::select! {
            biased;
            () = talk.leaving.notified() => continue,
            piece = pieces.next(source) => piece,
        };
        let sent = match piece {
            Ok(Some(Piece::Lines(lines))) if has_parted && pieces.is_cut() => {
                // It is too long to be kept.
                pieces.keep(&lines);
                return std::future::pending().await;
            }
            Ok(Some(Piece::Lines(mut lines))) => {
                if has_parted {
                    lines = held.hold(&lines);
                    if lines.is_empty() {
                        continue;
                    }
                }
                pieces.keep(&lines);
                match to.write(&lines).await {
                    Ok(n_written) => {
                        // From here on it may be carried out.
                        pieces.taken();
                        talk.ledger.borrow_mut().sent(&lines);
                        to.write_all(lines.get(n_written..).unwrap_or_default())
                            .await
                    }
                    // Nobody has had it: the next one gets it.
                    Err(error) => Err(error),
                }
            }
            Ok(Some(Piece::More(more))) => to.write_all(&more).await,
            Ok(None) if !held.is_empty() => return std::future::pending().await,
            Ok(None) => {
                if let Err(error) = to.shutdown().await {
                    tracing::debug!(%error, "the daemon is gone as well");
                }
                return End::Client;
            }
            Err(error) => {
                tracing::debug!(%error, "the client cannot be heard any more");
                return End::Client;
            }
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "the daemon takes nothing more");
            return End::Daemon;
        }
    }
}

/// From the daemon to the client.
async fn down(
    from: &mut OwnedReadHalf,
    pieces: &mut Pieces,
    sink: &mut (impl AsyncWrite + Unpin),
    talk: &Talk,
) -> End {
    loop {
        let piece = match pieces.next(from).await {
            Ok(Some(piece)) => piece,
            Ok(None) => return End::Daemon,
            Err(error) => {
                tracing::debug!(%error, "the daemon cannot be heard any more");
                return End::Daemon;
            }
        };
        if let Err(error) = pass_down(piece, sink, talk).await {
            tracing::debug!(%error, "the client is gone");
            return End::Client;
        }
    }
}

async fn pass_down(
    piece: Piece,
    sink: &mut (impl AsyncWrite + Unpin),
    talk: &Talk,
) -> io::Result<()> {
    let bytes = match piece {
        Piece::Lines(lines) => {
            let mut ledger = talk.ledger.borrow_mut();
            let for_client = ledger.received(lines);
            if ledger.is_leaving() {
                talk.leaving.notify_one();
            }
            talk.heard(std::mem::take(&mut ledger.warnings));
            for_client
        }
        Piece::More(more) => more,
    };
    sink.write_all(&bytes).await?;
    sink.flush().await
}
