//! The agent: all that its conversations share, and how they begin and go on.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use cocode_client::{Manager, SearchPolicy, ServerName};
use cocode_core::OutputLimits;

use crate::belt::HandsError;
use crate::content::{Block, text_of};
use crate::conversation::Conversation;
use crate::provider::{ChoiceError, Providers};
use crate::record::{Ending, Record, Settings};
use crate::rules::Rules;
use crate::store::{ConversationId, NewConversation, Store, StoreError};
use crate::transcript::{LOST_CALL, Transcript};

/// So many characters of what was asked first are the title of a conversation.
const MAX_TITLE_CHARS: usize = 100;

/// Steps of a turn where nobody says how many.
pub const DEFAULT_MAX_STEPS: u32 = 100;
/// Percent of what a model sees from which on a conversation is summed up.
pub const DEFAULT_COMPACT_PERCENT: u8 = 80;

/// What an agent is made of.
#[derive(Clone)]
pub struct AgentOptions {
    /// Where conversations are kept.
    pub store: Arc<dyn Store>,
    /// Who has models.
    pub providers: Arc<dyn Providers>,
    /// The servers, if there are any.
    pub manager: Option<Manager>,
    /// Which tools may be used.
    pub rules: Arc<dyn Rules>,
    /// The complete environment of commands.
    pub environment: Vec<(OsString, OsString)>,
    /// The directory of our own data, which commands in a sandbox do not see. Their temporary files are below it.
    pub state_directory: Option<PathBuf>,
    /// The directory of our own configuration, which commands in a sandbox do not change.
    pub config_directory: Option<PathBuf>,
    /// What every model is told besides, from the configuration.
    pub instructions: Option<String>,
    /// When models search for tools.
    pub search: SearchPolicy,
    /// Whether a changed tool list decides anew if the model searches (`tool_search.on_list_changed`).
    pub search_on_list_changed: bool,
    /// Servers whose tools are always shown.
    pub always_load: Vec<ServerName>,
    /// How large a result may be.
    pub output: OutputLimits,
    /// Steps of a turn.
    pub max_steps: u32,
    /// Percent of what a model sees from which on a conversation is summed up.
    pub compact_percent: u8,
    /// Whether models are told what day it is.
    pub tells_date: bool,
}

/// An agent. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    options: Arc<AgentOptions>,
}

/// Why a conversation does not begin or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The model.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The workspace.
    #[error(transparent)]
    Workspace(#[from] HandsError),
    /// The model did not sum it up.
    #[error("the conversation was not summed up: {0}")]
    NotCompacted(String),
    /// Nobody can go on with it.
    #[error("the conversation `{0}` is finished: nobody can go on with it, begin a new one")]
    Closed(ConversationId),
}

impl Agent {
    /// An agent. Nothing is opened or contacted yet.
    pub fn new(options: AgentOptions) -> Self {
        let options = Arc::new(options);
        Self { options }
    }

    /// What it is made of.
    pub fn options(&self) -> &AgentOptions {
        &self.options
    }

    /// Begins a conversation of `owner`, whose first request is `about`.
    pub async fn begin(
        &self,
        owner: &str,
        settings: Settings,
        about: &[Block],
    ) -> Result<Conversation, AgentError> {
        let store = &self.options.store;
        let id = store
            .begin(NewConversation {
                owner: owner.to_owned(),
                settings: settings.clone(),
                title: title(about),
            })
            .await?;
        let lease = store.lease(&id).await?;
        let transcript = Transcript::new(settings);
        Ok(Conversation::new(self.clone(), lease, transcript))
    }

    /// Goes on with a conversation, of this owner if one is given: there is no other for them. What a crash has left open is
    /// closed: calls without an end, a reply that broke off, a turn.
    pub async fn resume(
        &self,
        id: &ConversationId,
        owner: Option<&str>,
    ) -> Result<Conversation, AgentError> {
        let store = &self.options.store;
        // A conversation of another owner is answered like one that does not exist.
        if let Some(owner) = owner
            && !store.is_owned_by(id, owner).await?
        {
            return Err(StoreError::Unknown(id.clone()).into());
        }
        let stored = store.load(id).await?;
        if stored.summary.is_closed {
            return Err(AgentError::Closed(id.clone()));
        }
        let lease = store.lease(id).await?;
        // Somebody may have gone on with it in between.
        let stored = store.load(id).await?;
        stored.whole()?;
        let records = stored.records.iter();
        let records = records.map(|(number, record)| (*number, record));
        let transcript = Transcript::replay(stored.settings, records);
        let mut conversation = Conversation::new(self.clone(), lease, transcript);
        if let Some(content) = stored.draft {
            conversation.record(Record::BrokeOff { content }).await?;
        }
        for call in conversation.transcript.open_calls() {
            let lost = Record::CallEnded {
                id: call.id,
                content: vec![Block::text(LOST_CALL)],
                is_error: true,
                milliseconds: 0,
            };
            conversation.record(lost).await?;
        }
        if conversation.transcript.is_open {
            let how = Ending::Interrupted;
            conversation.record(Record::Ended { how }).await?;
        }
        Ok(conversation)
    }
}

/// The beginning of what was asked, on one line.
fn title(about: &[Block]) -> String {
    let text = text_of(about);
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let mut title: String = line.chars().take(MAX_TITLE_CHARS).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    title
}

/// The environment may hold secrets.
impl std::fmt::Debug for AgentOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("AgentOptions")
            .field("store", &self.store)
            .field("max_steps", &self.max_steps)
            .field("compact_percent", &self.compact_percent)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Agent").field(&self.options).finish()
    }
}
