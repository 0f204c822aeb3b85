//! The turns that are going on. Each is a task of the server, because a turn outlives the request that
//! began it while it waits for an answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cocode_core::SandboxMode;
use cocode_wire::chain;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::allowances::Allowances;
use super::arguments::{Asked, Wanted};
use super::client::Caller;
use super::finished::Finished;
use super::marks::{Mark, Marks};
use super::options::{Setup, SetupError};
use super::parking::Parking;
use super::progress::Reporter;
use super::questions::Questions;
use crate::agent::{Agent, AgentError};
use crate::company::Company;
use crate::content::Block;
use crate::conversation::{Conversation, TurnEnd};
use crate::model::Usage;
use crate::record::{Ending, Settings};
use crate::store::{ConversationId, StoreError};

/// Turns that may go on at once, those included that wait for an answer.
const MAX_TURNS: usize = 64;
/// How long a turn that is interrupted may take to end: after that it is dropped, which ends whatever
/// it had begun.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// The tasks of all turns. Dropping this ends them.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<Tasks>);

#[derive(Debug, Default)]
struct Tasks {
    set: JoinSet<()>,
    is_closed: bool,
}

/// Why a turn does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoTurn {
    /// Too many are going on.
    TooMany(usize),
    /// The server is ending.
    Ending,
}

/// A turn, as whoever waits for it has it. Dropping this interrupts the turn.
pub(super) struct Running {
    pub(super) interrupt: CancellationToken,
    pub(super) end: oneshot::Receiver<Finished>,
    pub(super) reporter: Arc<Reporter>,
    pub(super) caller: Arc<Caller>,
    /// What is asked in the results of its calls; none in the older era.
    pub(super) questions: Option<Arc<Questions>>,
    pub(super) mark: Arc<Mark>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.reporter.close();
        self.interrupt.cancel();
    }
}

/// What a turn needs.
pub(super) struct Job {
    pub(super) agent: Agent,
    pub(super) owner: String,
    pub(super) setup: Arc<dyn Setup>,
    pub(super) wanted: Wanted,
    /// What the sandbox of the client allows at most, if it said so.
    pub(super) ceiling: Option<SandboxMode>,
    pub(super) company: Company,
    pub(super) reporter: Arc<Reporter>,
    pub(super) allowances: Arc<Allowances>,
    pub(super) parking: Arc<Parking>,
    pub(super) marks: Arc<Marks>,
    pub(super) mark: Arc<Mark>,
}

impl Turns {
    /// Begins a turn, and gives where its end is told.
    pub(super) fn begin(&self, job: Job) -> Result<oneshot::Receiver<Finished>, NoTurn> {
        let mut tasks = self.lock();
        while tasks.set.try_join_next().is_some() {}
        if tasks.is_closed {
            return Err(NoTurn::Ending);
        }
        if tasks.set.len() >= MAX_TURNS {
            return Err(NoTurn::TooMany(MAX_TURNS));
        }
        let (told, end) = oneshot::channel();
        tasks.set.spawn(async move {
            let over = Over(Arc::clone(&job.mark));
            let finished = job.run().await;
            drop(over);
            // Nobody may wait for it any more.
            drop(told.send(finished));
        });
        Ok(end)
    }

    /// Waits for all turns, which have been told to end. None begins any more.
    pub(super) async fn end(&self) {
        let mut set = {
            let mut tasks = self.lock();
            tasks.is_closed = true;
            std::mem::take(&mut tasks.set)
        };
        let all = async { while set.join_next().await.is_some() {} };
        if timeout(ENDS_WITHIN * 2, all).await.is_err() {
            tracing::warn!("turns did not end in time, and are dropped");
            set.shutdown().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    async fn run(self) -> Finished {
        match &self.wanted {
            Wanted::Begin { prompt, asked } => {
                let said = vec![Block::text(prompt.as_str())];
                let settings = match self.settings(asked) {
                    Ok(settings) => settings,
                    Err(refused) => return refused,
                };
                match self.agent.begin(&self.owner, settings, &said).await {
                    Ok(conversation) => {
                        let id = conversation.id();
                        self.reporter.say(&format!("began conversation {id}"));
                        self.turn(conversation, said, true).await
                    }
                    Err(error) => not_begun(&error),
                }
            }
            Wanted::Reply { id, message } => {
                let said = vec![Block::text(message.as_str())];
                match self.resumed(id).await {
                    Ok(conversation) => self.turn(conversation, said, false).await,
                    Err(finished) => finished,
                }
            }
        }
    }

    fn settings(&self, asked: &Asked) -> Result<Settings, Finished> {
        let settings = self.setup.settings(asked).map_err(not_set_up)?;
        Ok(self.confined(settings))
    }

    /// No conversation of a client may do more than the client itself.
    fn confined(&self, mut settings: Settings) -> Settings {
        if let Some(ceiling) = self.ceiling {
            settings.sandbox = settings.sandbox.min(ceiling);
        }
        settings
    }

    async fn resumed(&self, id: &ConversationId) -> Result<Conversation, Finished> {
        // A client that was asked something, and says something new instead, does not come back with an
        // answer: there is no other way for it to say so.
        self.parking.give_up(id);
        // Nor has who takes a call back to wait before saying something new.
        if let Some(over) = self.marks.ending(id)
            && timeout(ENDS_WITHIN * 2, over.cancelled()).await.is_err()
        {
            tracing::warn!(%id, "a turn that was interrupted did not end in time");
        }
        let resumed = self.agent.resume(id, Some(&self.owner)).await;
        let mut conversation = resumed.map_err(|error| not_begun(&error))?;
        let settings = self.setup.resumed(conversation.settings().clone());
        let settings = self.confined(settings.map_err(not_set_up)?);
        let changed = conversation.change(settings).await;
        changed.map_err(|error| not_begun(&error))?;
        conversation.allow(self.allowances.of(id));
        Ok(conversation)
    }

    async fn turn(
        &self,
        mut conversation: Conversation,
        said: Vec<Block>,
        is_new: bool,
    ) -> Finished {
        let id = conversation.id().clone();
        self.mark.is_in(&id);
        let ended = {
            let turn = Box::pin(conversation.turn(said, &self.company));
            tokio::select! {
                biased;
                ended = turn => ended,
                () = self.is_late() => Ok(dropped()),
            }
        };
        self.allowances.are_now(&id, conversation.allowed().clone());
        // It is let go before anybody hears of its end, and may go on with it.
        drop(conversation);
        match ended {
            Ok(end) => {
                let end = Box::new(end);
                Finished::Ended { id, end }
            }
            Err(error @ AgentError::Store(_)) => Finished::Broken {
                id: Some(id),
                why: chain(&error),
            },
            Err(error) => {
                if is_new {
                    self.forget(&id).await;
                }
                not_begun(&error)
            }
        }
    }

    /// Resolves when the turn was interrupted and has not ended since.
    async fn is_late(&self) {
        self.company.interrupt.cancelled().await;
        sleep(ENDS_WITHIN).await;
    }

    /// A conversation in which nothing was said is none.
    async fn forget(&self, id: &ConversationId) {
        if let Err(error) = self.agent.options().store.remove(id).await {
            tracing::warn!(%id, %error, "a conversation that was not begun remains in the store");
        }
    }
}

/// Tells of the end of a turn, however it ends.
struct Over(Arc<Mark>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.ends();
    }
}

/// What is known of a turn that did not end when it was told to.
fn dropped() -> TurnEnd {
    TurnEnd {
        ending: Ending::Interrupted,
        text: String::new(),
        steps: 0,
        usage: Usage::default(),
        cost: None,
    }
}

fn not_begun(error: &AgentError) -> Finished {
    match error {
        AgentError::Store(
            StoreError::Unknown(_)
            | StoreError::Held(_)
            | StoreError::NotUnderstood { .. }
            | StoreError::NotStorable { .. },
        ) => Finished::Refused(format!("{error}.")),
        AgentError::Store(_) => Finished::Broken {
            id: None,
            why: chain(error),
        },
        AgentError::Choice(choice) => Finished::Refused(with_hints(&choice.message, &choice.hints)),
        _ => Finished::Refused(format!("{}.", chain(error))),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over results")]
fn not_set_up(error: SetupError) -> Finished {
    Finished::Refused(with_hints(&error.message, &error.hints))
}

fn with_hints(message: &str, hints: &[String]) -> String {
    let mut text = message.to_owned();
    for hint in hints {
        text.push('\n');
        text.push_str(hint);
    }
    text
}
