//! What a consumer decides about a manager.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cocode_core::{OutputLimits, ServerName};

use super::backoff::Backoff;
use super::connector::{Connector, PlainConnector};
use super::lists::ListClock;
use super::starts::StartLimiter;
use crate::handler::{Handler, NoHandler};
use crate::list_cache::{DEFAULT_LIST_TTL, ListCache};
use crate::options::{ClientInfo, Timeouts};
use crate::results::ResultStore;
use crate::server_log::ServerLogs;
use crate::telemetry::Telemetry;
use crate::usage::UsageLog;

/// Everything about a manager that can be chosen. The defaults are those of a program that runs
/// for long and keeps nothing on disk.
#[derive(Clone)]
pub struct ManagerOptions {
    /// Makes targets of specifications.
    pub connector: Arc<dyn Connector>,
    /// Serves what servers ask.
    pub handlers: Arc<dyn Handlers>,
    /// Who servers are told we are.
    pub client: ClientInfo,
    /// How servers are started.
    pub start: Start,
    /// How many are started at once, together with other managers that have a clone of it.
    pub start_limiter: StartLimiter,
    /// How servers are watched.
    pub health: Health,
    /// How long things may take. What a specification says about its server wins.
    pub timeouts: Timeouts,
    /// How long any tool may be silent, whatever specifications say.
    pub tool_timeout: Option<Duration>,
    /// Total timeout of a call, where the server specification sets none.
    pub tool_total_timeout: Option<Duration>,
    /// When a result is too large to be shown.
    pub output: OutputLimits,
    /// Where results that are too large are kept.
    pub results: Option<ResultStore>,
    /// Which lists are read without being asked for.
    pub lists: ListReading,
    /// Where lists are remembered.
    pub cache: ListCache,
    /// Where the words of servers are written down.
    pub logs: ServerLogs,
    /// Who is told about calls.
    pub telemetry: Telemetry,
    /// Where calls are counted.
    pub usage: UsageLog,
    /// The least severe log messages that servers should send.
    pub log_level: Option<String>,
    /// How often one call may ask for more input.
    pub max_input_rounds: usize,
    /// What the time of day is. It is compared with the time that passed, to notice that the
    /// machine was asleep.
    pub time_of_day: fn() -> SystemTime,
}

/// How servers are started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// When.
    pub when: When,
    /// Whether a server that cannot be reached the first time fails at once, and is not tried again
    /// by itself. For those who want an answer now rather than a server later.
    pub once: bool,
}

/// When a server is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// At once.
    #[default]
    AtOnce,
    /// When it is needed; at once if nobody knows what it offers, or not any more.
    Needed,
    /// Only when it is needed.
    OnlyNeeded,
}

/// Which lists of a server are read without being asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListReading {
    /// All of them, and again whenever they change. A server is ready when its tools are known.
    #[default]
    Kept,
    /// None: a server is ready when it can be asked, and nobody listens for changes. For programs
    /// that do one thing and end.
    OnDemand,
}

/// How servers are watched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Health {
    /// How often an idle server is asked for a sign of life.
    pub ping_interval: Duration,
    /// How long that may take.
    pub ping_timeout: Duration,
    /// Failures in a row that mean dead.
    pub max_failures: u32,
    /// How a lost connection is made again.
    pub reconnect: Backoff,
    /// A connection that held for so long was a good one: counting attempts begins anew.
    pub stable_after: Duration,
    /// How long after the last attempt a server that could not be reached is tried again, even if
    /// nobody calls it; twice as long each time, up to an hour.
    pub retry_failed: Option<Duration>,
    /// How long a server may idle before it is stopped, where its specification does not say.
    pub idle_stop: Option<Duration>,
    /// How long to wait for more after a list was said to have changed.
    pub relist_after: Duration,
    /// How long to wait at most, however many changes are told.
    pub relist_within: Duration,
    /// Whether `list_changed` notifications make the manager read lists again.
    pub invalidate_on_list_changed: bool,
    /// TTL of lists whose server sends no `ttlMs`, at most [`crate::MAX_LIST_TTL`].
    pub list_ttl: Duration,
}

/// Gives every server the handler that serves it.
pub trait Handlers: Send + Sync + 'static {
    /// Called for every connection.
    fn handler(&self, server: &ServerName) -> Arc<dyn Handler>;
}

impl<F> Handlers for F
where
    F: Fn(&ServerName) -> Arc<dyn Handler> + Send + Sync + 'static,
{
    fn handler(&self, server: &ServerName) -> Arc<dyn Handler> {
        self(server)
    }
}

impl Default for Health {
    fn default() -> Self {
        Self {
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(5),
            max_failures: 5,
            reconnect: Backoff::default(),
            stable_after: Duration::from_secs(30),
            retry_failed: Some(Duration::from_mins(1)),
            idle_stop: None,
            relist_after: Duration::from_millis(100),
            relist_within: Duration::from_secs(1),
            invalidate_on_list_changed: true,
            list_ttl: DEFAULT_LIST_TTL,
        }
    }
}

impl Default for ManagerOptions {
    fn default() -> Self {
        Self {
            connector: Arc::new(PlainConnector::default()),
            handlers: Arc::new(|_server: &ServerName| Arc::new(NoHandler) as Arc<dyn Handler>),
            client: ClientInfo::default(),
            start: Start::default(),
            start_limiter: StartLimiter::default(),
            health: Health::default(),
            timeouts: Timeouts::default(),
            tool_timeout: None,
            tool_total_timeout: None,
            output: OutputLimits::default(),
            results: None,
            lists: ListReading::default(),
            cache: ListCache::off(),
            logs: ServerLogs::off(),
            telemetry: Telemetry::off(),
            usage: UsageLog::off(),
            log_level: None,
            max_input_rounds: 10,
            time_of_day: SystemTime::now,
        }
    }
}

impl ManagerOptions {
    /// The defaults, for servers that are given this environment: programs get `PATH`, `HOME`, the
    /// locale and the like of it, and whatever their specifications name.
    pub fn with_environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self {
            connector: Arc::new(PlainConnector::new(variables)),
            ..Self::default()
        }
    }

    pub(crate) fn list_clock(&self) -> ListClock {
        ListClock {
            time: (self.time_of_day)(),
            default_ttl: self.health.list_ttl,
        }
    }
}

impl std::fmt::Debug for ManagerOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ManagerOptions")
            .field("client", &self.client)
            .field("start", &self.start)
            .field("health", &self.health)
            .field("timeouts", &self.timeouts)
            .field("tool_timeout", &self.tool_timeout)
            .field("tool_total_timeout", &self.tool_total_timeout)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}
