//! The agent loop: conversations with models that use the tools of MCP servers and of a workspace.

#![deny(missing_docs)]

mod agent;
mod belt;
mod company;
mod content;
mod conversation;
mod describe;
mod instructions;
mod looping;
mod markdown;
mod model;
mod project_notes;
mod provider;
pub mod providers;
mod record;
mod rules;
pub mod serve;
mod store;
mod temporary;
mod transcript;
mod utc;

pub use agent::{Agent, AgentError, AgentOptions, DEFAULT_COMPACT_PERCENT, DEFAULT_MAX_STEPS};
pub use belt::HandsError;
pub use cocode_core::{argument_lines, is_hidden_format};
pub use conversation::{Conversation, TurnEnd};
pub use describe::{describe, details};
pub use markdown::render_markdown;
pub use rules::{NoRules, Rules, Ruling};

pub use company::{
    ApprovalAnswer, ApprovalQuestion, Approver, Company, Listener, NoApprover, NoListener, Notice,
};
pub use content::{Arguments, Block, Message, Role, ToolCall, ToolResult, text_of, tool_calls};
pub use model::{Model, Price, Usage};
pub use provider::{
    ChoiceError, Chosen, Delta, ModelChoice, ModelRequest, Provider, ProviderError, Providers,
    Reply, Sampler, Stop, Work,
};
pub use record::{Ending, Record, Settings, StoredAnswer};
pub use store::{
    ConversationId, InvalidConversationId, Lease, NewConversation, SqliteStore, Store, StoreError,
    Stored, Summary, Unread, Wanted, keeping, sqlite_file,
};
pub use temporary::{remove_old_temporary, remove_temporary};
