//! The conversation that is held: begun when something is said first, taken up again, changed, summed
//! up, let go.

use std::sync::Mutex;

use cocode_agent::{
    Block, Company, Conversation, ConversationId, Message, Record, Settings, Summary, Wanted,
};
use cocode_terminal::{CommandOutcome, PickEntry, PickList};

use super::mentions::is_attachment;
use super::talk::{Talk, failed, locked};
use crate::agent::exec::forget;
use crate::agent::sessions::{ago, find};
use crate::agent::{OWN, Wishes, trouble};
use crate::error::{CliError, Code};

/// Conversations that can be picked from.
const MAX_LISTED: usize = 100;

/// Characters of a title in a list.
const MAX_TITLE_CHARS: usize = 60;

/// The conversation.
#[derive(Default)]
pub(super) enum Held {
    /// Nothing was said yet.
    #[default]
    None,
    /// It is here.
    Here(Box<Conversation>),
    /// Somebody has it, and brings it back.
    Away(ConversationId),
    /// Somebody had it and was abandoned: it can be taken up again from the store.
    Lost(ConversationId),
}

/// The conversation in the hands of somebody. If it is not put back, it is lost.
pub(super) struct Taken<'a> {
    pub(super) conversation: Conversation,
    borrowing: Borrowing<'a>,
}

struct Borrowing<'a> {
    held: &'a Mutex<Held>,
    id: ConversationId,
    is_back: bool,
}

impl<'a> Taken<'a> {
    fn new(conversation: Conversation, held: &'a Mutex<Held>) -> Self {
        let id = conversation.id().clone();
        *locked(held) = Held::Away(id.clone());
        let borrowing = Borrowing {
            held,
            id,
            is_back: false,
        };
        Self {
            conversation,
            borrowing,
        }
    }

    pub(super) fn put_back(self) {
        let Self {
            conversation,
            mut borrowing,
        } = self;
        *locked(borrowing.held) = Held::Here(Box::new(conversation));
        borrowing.is_back = true;
    }
}

impl Drop for Borrowing<'_> {
    fn drop(&mut self) {
        if !self.is_back {
            *locked(self.held) = Held::Lost(self.id.clone());
        }
    }
}

impl Talk {
    /// The conversation, begun if there is none.
    pub(super) async fn conversation(&self, about: &[Block]) -> Result<Taken<'_>, CliError> {
        if let Some(taken) = self.taken().await? {
            return Ok(taken);
        }
        let settings = self.settings();
        let begun = self.agent.begin(OWN, settings, about).await;
        let conversation = begun.map_err(|error| trouble(&error))?;
        Ok(Taken::new(conversation, &self.held))
    }

    /// The conversation, if there is one.
    pub(super) async fn taken(&self) -> Result<Option<Taken<'_>>, CliError> {
        let id = {
            let mut held = locked(&self.held);
            match std::mem::take(&mut *held) {
                Held::None => return Ok(None),
                Held::Here(conversation) => {
                    drop(held);
                    return Ok(Some(Taken::new(*conversation, &self.held)));
                }
                Held::Away(id) => {
                    *held = Held::Away(id);
                    return Err(busy());
                }
                Held::Lost(id) => {
                    *held = Held::Lost(id.clone());
                    id
                }
            }
        };
        let resumed = self.agent.resume(&id, Some(OWN)).await;
        let conversation = resumed.map_err(|error| trouble(&error))?;
        Ok(Some(Taken::new(conversation, &self.held)))
    }

    /// Lets go of a conversation that did not begin: nothing remains of it if nothing was said.
    pub(super) async fn forget(&self, taken: Taken<'_>) {
        let id = taken.conversation.id().clone();
        // From here on it is as good as lost, until it is known to be gone.
        drop(taken);
        if forget(&self.agent, &id).await {
            *locked(&self.held) = Held::None;
        }
    }

    fn is_busy(&self) -> bool {
        matches!(&*locked(&self.held), Held::Away(_))
    }

    /// Lets the conversation go, and says which one it was.
    pub(super) fn let_go(&self) -> Option<ConversationId> {
        match std::mem::take(&mut *locked(&self.held)) {
            Held::None => None,
            Held::Here(conversation) => Some(conversation.id().clone()),
            Held::Away(id) | Held::Lost(id) => Some(id),
        }
    }

    /// Begins another conversation when something is said next.
    pub(super) fn clear(&self) -> CommandOutcome {
        if self.is_busy() {
            return failed(busy());
        }
        self.let_go();
        self.spent.begin(cocode_agent::Usage::default(), 0.0);
        CommandOutcome::Cleared
    }

    /// Goes on with other settings, within what the organization allows.
    pub(super) async fn change(&self, wish: impl FnOnce(&mut Wishes)) -> Result<(), CliError> {
        let mut wishes = self.wishes();
        wish(&mut wishes);
        let settings = match self.taken().await? {
            Some(mut taken) => {
                let changed = self.changed(&mut taken.conversation, &wishes).await;
                taken.put_back();
                changed?
            }
            None => self.setup.settings(&wishes)?,
        };
        self.set_wishes(wishes);
        self.set_settings(settings);
        Ok(())
    }

    async fn changed(
        &self,
        conversation: &mut Conversation,
        wishes: &Wishes,
    ) -> Result<Settings, CliError> {
        let settings = self.setup.resumed(wishes, conversation.settings())?;
        let changed = conversation.change(settings.clone()).await;
        changed.map_err(|error| trouble(&error))?;
        Ok(settings)
    }

    /// Goes on with another conversation.
    pub(super) async fn resume(&self, id: &ConversationId) -> Result<(), CliError> {
        if self.is_held(id) {
            return Ok(());
        }
        let resumed = self.agent.resume(id, Some(OWN)).await;
        let mut conversation = resumed.map_err(|error| trouble(&error))?;
        let settings = self.changed(&mut conversation, &self.wishes()).await?;
        self.spent.begin(conversation.usage(), conversation.cost());
        self.set_settings(settings);
        Taken::new(conversation, &self.held).put_back();
        Ok(())
    }

    fn is_held(&self, id: &ConversationId) -> bool {
        match &*locked(&self.held) {
            Held::None => false,
            Held::Here(conversation) => conversation.id() == id,
            Held::Away(held) | Held::Lost(held) => held == id,
        }
    }

    pub(super) async fn resume_command(&self, given: &str) -> CommandOutcome {
        if self.is_busy() {
            return failed(busy());
        }
        let outcome = async {
            let store = self.agent.options().store.as_ref();
            let id = find(store, given).await?;
            self.resume(&id).await?;
            let stored = store.load(&id).await;
            stored.map_err(|error| trouble(&error.into()))
        };
        match outcome.await {
            Ok(stored) => {
                let records = stored.records.into_iter().map(|(_, record)| record);
                CommandOutcome::Resumed(messages(records))
            }
            Err(error) => failed(error),
        }
    }

    /// The conversations that can be gone on with.
    pub(super) async fn resumable(&self) -> CommandOutcome {
        let wanted = Wanted {
            owner: Some(OWN.to_owned()),
            limit: MAX_LISTED,
            offset: 0,
        };
        let listed = match self.agent.options().store.list(&wanted).await {
            Ok(listed) => listed,
            Err(error) => return failed(trouble(&error.into())),
        };
        let here = self.settings().cwd;
        let can_be = |summary: &&Summary| !summary.is_closed && !summary.is_held;
        let entries: Vec<PickEntry> = listed
            .iter()
            .filter(can_be)
            .map(|summary| {
                let turns = match summary.turns {
                    1 => "1 turn".to_owned(),
                    turns => format!("{turns} turns"),
                };
                let place = if summary.cwd == here {
                    "here".to_owned()
                } else {
                    format!("in {}", summary.cwd.display())
                };
                PickEntry {
                    label: summary.title.chars().take(MAX_TITLE_CHARS).collect(),
                    detail: format!("{}, {turns}, {place}", ago(summary.used)),
                    value: format!("/resume {}", summary.id),
                }
            })
            .collect();
        if entries.is_empty() {
            let message = "there is no other conversation to go on with";
            return failed(CliError::new(Code::ConversationFailed, message));
        }
        let title = "Which conversation is to go on?".to_owned();
        CommandOutcome::Pick(PickList { title, entries })
    }

    pub(super) async fn compact(&self, company: &Company) -> CommandOutcome {
        let mut taken = match self.taken().await {
            Ok(Some(taken)) => taken,
            Ok(None) => {
                let message = "nothing was said yet, so there is nothing to sum up";
                return failed(CliError::new(Code::ConversationFailed, message));
            }
            Err(error) => return failed(error),
        };
        let compacted = taken.conversation.compact(company).await;
        let (usage, cost) = (taken.conversation.usage(), taken.conversation.cost());
        self.spent.begin(usage, cost);
        taken.put_back();
        match compacted {
            Ok(_told_by_its_notice) => CommandOutcome::Done,
            Err(error) => failed(trouble(&error)),
        }
    }
}

fn busy() -> CliError {
    let message = "a turn runs; wait for its end, or interrupt it with Ctrl-C";
    CliError::new(Code::ConversationFailed, message)
}

/// What was said, as it is shown again: without what was read for the model.
fn messages(records: impl IntoIterator<Item = Record>) -> Vec<Message> {
    let message = |record| match record {
        Record::Asked { mut content } => {
            content.retain(|block| !is_attachment(block));
            Some(Message::user(content))
        }
        Record::Replied { content, .. } | Record::BrokeOff { content } => {
            Some(Message::assistant(content))
        }
        _ => None,
    };
    records.into_iter().filter_map(message).collect()
}
