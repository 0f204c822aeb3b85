//! Scripted servers and fault injectors for the tests of cocode.
#![expect(
    clippy::panic,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test helper fails its test by panicking, and starts programs by itself"
)]

mod acceptor;
mod builder;
mod defaults;
mod engine;
mod gate;
mod launch;
mod lines;
mod message;
mod process;
mod recorder;
mod rules;
mod script;
mod stdio;
mod template;

pub use gate::Gate;
pub use launch::{StdioServer, program};
pub use message::Message;
pub use recorder::Recorder;
pub use script::{Era, Script, SseEvent};
pub use stdio::scripted_server_main;
pub use template::Template;
