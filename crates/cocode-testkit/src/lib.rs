//! Scripted servers and fault injectors for the tests of cocode.
//!
//! A [`Script`] is a correct minimal MCP server with rules for what a test is about. It becomes a
//! program with [`Script::stdio`], or a server in this process with [`Script::http`],
//! [`Script::websocket`] or [`Script::unix`]. Each keeps a [`Recorder`] of what it received; a
//! [`Gate`] lets the test decide when a rule goes on.
//!
//! An [`OAuthPeer`] is no script but a real authorization server, with an MCP server that wants its
//! tokens and a user who logs in. A [`PostgresPeer`] is a real database.
//! An [`Issuer`] is a scripted one, for tokens that no real one would issue.
//!
//! A [`ModelScript`] is the turns of a model; it becomes a provider of models in any of the three
//! interfaces that are in use with [`ModelScript::start`].
//!
//! Every server can also be ended with `kill`, started as another script at the same place with
//! `restart`, and left standing still with `hang` until `resume`. So one test can play the whole
//! life of a server whose client should notice:
//!
//! | | processes | HTTP and WebSocket | unix sockets |
//! |---|---|---|---|
//! | `kill` | SIGKILL; the next run starts as usual | connections are reset, the port refuses | connections end, the socket refuses |
//! | `restart` | as `kill`; the next runs follow the new script | the new script listens on the same port | the new script listens on the same path |
//! | `hang` | SIGSTOP | nothing is read or written; the system still accepts connections | likewise |
//!
//! ```
//! use cocode_testkit::{Gate, Script};
//!
//! let gate = Gate::new();
//! let server = Script::new()
//!     .on("tools/list")
//!     .nth(1)
//!     .error(-32603, "not yet")
//!     .on("tools/call")
//!     .progress(1, 2)
//!     .hold(&gate)
//!     .text_result("done")
//!     .http();
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! assert!(server.requests().all().is_empty());
//! ```
#![expect(
    clippy::panic,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test helper fails its test by panicking, and starts programs by itself"
)]

mod acceptor;
mod api_judge;
mod background;
mod breaker;
mod builder;
mod builder_http;
mod defaults;
mod engine;
mod gate;
mod http;
mod issuer;
mod launch;
mod lines;
mod message;
mod model;
mod oauth_peer;
mod postgres_peer;
mod presence;
mod process;
mod programs;
mod provider_rules;
mod recorder;
mod rules;
mod script;
mod stdio;
mod tcp;
mod template;
mod tls;
mod unix;
mod websocket;

pub use api_judge::{ApiJudge, admin_python};
pub use gate::Gate;
pub use http::{HttpRequest, HttpServer};
pub use issuer::{Issuer, Signer, encoded, now};
pub use launch::StdioServer;
pub use message::Message;
pub use model::{ModelFormat, ModelScript, ModelTurn, ScriptedModel, scripted_model_main};
pub use oauth_peer::{Browser, Decision, OAuthPeer};
pub use postgres_peer::PostgresPeer;
pub use programs::{model_program, program};
pub use provider_rules::violations;
pub use recorder::Recorder;
pub use script::{Era, Script, SseEvent};
pub use stdio::scripted_server_main;
pub use template::Template;
pub use unix::UnixServer;
pub use websocket::WebSocketServer;
