//! The agent loop: conversations with models that use the tools of MCP servers and of a workspace.

#![deny(missing_docs)]

mod company;
mod content;
mod model;
mod provider;
pub mod providers;
mod record;
mod store;

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
    ConversationId, InvalidConversationId, Lease, NewConversation, Store, StoreError, Stored,
    Summary, Wanted,
};
