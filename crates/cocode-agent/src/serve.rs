//! The agent as an MCP server, in both eras: two tools that hold conversations, the conversations as
//! resources, saved prompts as prompts. Knows MCP and no sockets: links carry what is said here.

mod allowances;
mod answers;
mod approval;
mod arguments;
mod asking;
mod call;
mod client;
mod finished;
mod marks;
mod options;
mod parking;
mod pending;
mod person;
mod progress;
mod prompts;
mod questions;
mod request;
mod resources;
mod sandbox_state;
mod server;
mod talk;
mod tools;
mod turns;

pub use arguments::Asked;
pub use options::{AgentServerOptions, Setup, SetupError};
pub use prompts::{PromptError, SavedArgument, SavedPrompt, SavedPrompts};
pub use server::AgentServer;
