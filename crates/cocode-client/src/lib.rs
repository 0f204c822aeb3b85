//! The many servers of an agent, and one connection to one server: in every transport and every
//! protocol revision of MCP.
//!
//! A [`Manager`] keeps any number of servers connected, healthy and catalogued, and turns the name
//! of a tool into a safe call:
//!
//! ```
//! use cocode_client::{CallContext, Manager, ManagerOptions, RawJson, ServerSpec};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (one, other) = (cocode_testkit::Script::new().stdio(), cocode_testkit::Script::modern().stdio());
//! # let web = cocode_testkit::Script::dual().http();
//! # let program = one.program().to_str().ok_or("a path")?.to_owned();
//! # let (files_args, clock_args, web_url) = (one.args(), other.args(), web.url());
//! let manager = Manager::new(ManagerOptions::with_environment(std::env::vars_os()));
//! manager
//!     .apply([
//!         ServerSpec::program("files".parse()?, program.as_str(), files_args),
//!         ServerSpec::program("clock".parse()?, program.as_str(), clock_args),
//!         ServerSpec::remote("web".parse()?, web_url),
//!     ])
//!     .await;
//! manager.wait_for_startup().await.check_required()?;
//! for (name, found) in manager.catalog().tools() {
//!     println!("{name}: {:?}", found.tool.tool.description);
//! }
//! let arguments = RawJson::parse(r#"{"text": "hello"}"#)?;
//! let called = manager.call("mcp__web__echo", Some(&arguments), CallContext::default()).await;
//! match &called {
//!     Ok(called) => println!("{}", called.result.raw),
//!     Err(error) => println!("{}", error.for_model()),
//! }
//! # assert!(called.is_ok(), "{called:?}");
//! # assert_eq!(manager.catalog().tools().count(), 3);
//! manager.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! A [`Toolbox`] is what the model of one conversation is shown of all that: every tool in the dialect of
//! its provider, or a search in place of them where they are too many.
//!
//! A [`Session`] is one connection to one server. It finds out which era the server speaks, sends
//! requests and matches their answers, serves what the server asks in return through a
//! [`Handler`], and hands out results exactly as the server sent them.
//!
//! ```no_run
//! use cocode_client::{
//!     RawJson, RequestOptions, Session, SessionOptions, baseline_environment, stdio,
//! };
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // A server gets what it is given: here PATH, HOME, the locale and the like.
//! let environment = baseline_environment(std::env::vars_os());
//! let target = stdio("my-server", ["--flag"], environment);
//! let session = Session::connect(target, SessionOptions::default()).await?;
//! for tool in session.tools().await?.items {
//!     println!("{}", tool.name);
//! }
//! let arguments = RawJson::parse(r#"{"path": "README.md"}"#)?;
//! let result = session.call_tool("read", Some(&arguments), RequestOptions::default()).await?;
//! println!("{}", result.raw);
//! session.close().await;
//! # Ok(())
//! # }
//! ```

#![deny(missing_docs)]

mod boundary;
mod clock;
mod connect;
mod connection;
mod error;
mod features;
mod form;
mod handler;
mod handshake;
mod input;
mod list_cache;
mod listen;
mod manager;
mod mux;
mod options;
mod pages;
mod params;
mod private_files;
mod progress;
mod relay;
mod results;
mod schema;
mod serve;
mod server;
mod server_log;
mod session;
mod target;
mod telemetry;
mod tool_headers;
mod toolbox;
mod usage;

pub use boundary::boundary_of;
pub use options::{ClientInfo, RequestOptions, SessionOptions, Timeouts};
pub use session::{MAX_IN_FLIGHT, Session};
pub use target::{
    RemoteTargetError, confine, http, legacy_sse, remote, socket_path, stdio, unix, websocket,
    with_credentials,
};
pub use tool_headers::mirrored_mismatch;

pub use clock::Deadlines;
pub use cocode_core::{
    Dialect, Era, Loading, OutputLimits, Protocol, ProviderTool, QualifiedName, Revision,
    SearchDecision, SearchPolicy, Searcher, ServerName, ServerSpec, ToolFilter, ToolName,
    ToolSearchMode, UnknownProtocol, Unrepairable,
};
pub use error::{ConnectError, ERROR_CODES, RequestError, Retry};
pub use features::{
    Annotations, CallResult, Completion, CompletionTarget, Content, Prompt, PromptArgument,
    PromptMessage, PromptResult, ReadResult, Resource, ResourceContents, ResourceTemplate, Tool,
};
pub use form::{Field, FieldKind, Form, Limits};
pub use handler::{
    Answer, ClientCapabilities, Elicitation, ElicitationAnswer, ElicitationMode, Handler,
    NoHandler, Notification, Root,
};
pub use list_cache::{
    DEFAULT_LIST_TTL, Freshness, ListCache, ListCacheError, ListKind, MAX_CACHE_BYTES,
    MAX_ENTRY_AGE, MAX_ENTRY_BYTES, MAX_LIST_TTL, PurgedLists, Remembered, RememberedList,
};
pub use manager::{
    Aggregated, Applied, Backoff, CallContext, CallEnd, CallError, CallId, Called, Catalog,
    CatalogChange, CatalogTool, Cause, Check, Concurrency, ConnectionFacts, Connector, EVENTS_KEPT,
    Event, Events, FoundTool, Handlers, Health, ListReading, Manager, ManagerOptions, Output,
    OutputWanted, PlainConnector, PromptCommand, PromptError, ReachError, ReachErrorKind, Reached,
    RequiredServersMissing, ResourceReference, SANDBOX_STATE_CAPABILITY, SANDBOX_STATE_METHOD,
    SandboxState, ServerCatalog, ServerState, ServerStatus, Start, StartLimiter, Startup,
    StateKind, StateWatch, Trouble, Wanted, When, command_words,
};
pub use pages::{
    Incomplete, Listing, MAX_CURSOR_BYTES, MAX_ITEMS, MAX_LIST_BYTES, MAX_LIST_TIME, MAX_PAGES,
    Quarantined,
};
pub use private_files::FileError;
pub use progress::{OnProgress, Progress};
pub use relay::{Behalf, Relayed, Witness};
pub use results::{
    DEFAULT_PAGE_TOKENS, DEFAULT_RESULTS_MAX_AGE, DEFAULT_RESULTS_MAX_BYTES, FoundLine,
    InvalidResultHandle, KeptResult, LineKind, MAX_FOUND_LINE_BYTES, Page, PageSize, Purged,
    ResultHandle, ResultStore, ResultStoreError, ResultStoreOptions, StoredResult, limit, shorten,
};
pub use schema::{Checked, CompiledSchema, Mismatch, Problem, SchemaCell, SchemaError};
pub use server::{ServerCapabilities, ServerFacts, Step};
pub use server_log::{
    FOLLOW_INTERVAL, LOG_LINES_KEPT, LogFollower, LogLimits, LogRecord, LogSource, LoggedLine,
    LoggedLines, MAX_LOG_RECORD_BYTES, MAX_QUEUED_LOG_BYTES, MAX_QUEUED_LOG_RECORDS, ServerLog,
    ServerLogs,
};
pub use telemetry::{
    CallFacts, CallOutcomeKind, CallTrace, CallTransport, InvalidTraceContext,
    MAX_TELEMETRY_SERVERS, MAX_TELEMETRY_TOOLS, ServerTrace, Telemetry, TelemetrySignals,
    TraceContext, call_span,
};
pub use toolbox::{
    DEFAULT_MAX_LOADED, Said, Toolbox, ToolboxChange, ToolboxOptions, ToolboxTokens,
};
pub use usage::{MAX_COUNTED_TOOLS, MAX_USAGE_BYTES, ToolUsage, Usage, UsageError, UsageLog};

pub use cocode_wire::limits::DEFAULT_MAX_FRAME_BYTES;
pub use cocode_wire::{
    Challenge, Closed, ConfineError, Confinement, Credentials, CredentialsError,
    CredentialsErrorKind, CredentialsWork, ExitReport, FetchError, Frame, HeaderMap, HeaderName,
    HeaderValue, HttpClient, HttpSettings, HttpSetupError, HttpTarget, LinkError, MemoryTarget,
    OpenError, ProcessSpec, RawJson, Refusal, RequestLine, RpcError, SpawnError, StderrTap,
    StdioTarget, StopPolicy, Target, UnixTarget, Url, WebSocketTarget, baseline_environment, chain,
    code, memory_pair,
};
