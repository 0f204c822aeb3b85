//! Every bound of what is asked of a database: waits and numbers.

use std::time::Duration;

/// Connections that a process keeps or makes at once, besides those that are held for long.
pub(crate) const MAX_CONNECTIONS: usize = 8;

/// Waiting for one of them while all are in use.
pub(crate) const TURN_TIMEOUT: Duration = Duration::from_secs(10);

/// Reaching one address of the database.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Reaching the database by whatever address, with TLS and signing in.
pub(crate) const OPENING_TIMEOUT: Duration = Duration::from_secs(15);

/// One statement, as the server measures it.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(15);

/// Waiting for a row or table that somebody else has locked, as the server measures it.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// A transaction in which nothing happens, as the server measures it: nobody waits longer for the rows
/// of a process that hangs.
pub(crate) const IDLE_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(15);

/// All that one piece of work asks, as we measure it: the server may be gone without a word.
pub(crate) const WORK_TIMEOUT: Duration = Duration::from_secs(20);

/// Making tables, or bringing them to another format, and waiting for somebody else who does.
pub(crate) const MIGRATION_TIMEOUT: Duration = Duration::from_mins(1);

/// Silence after which the other end is probed, by either side.
pub(crate) const PROBE_AFTER: Duration = Duration::from_secs(10);

/// Time between probes.
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// Unanswered probes that mean a dead machine: its locks are free after about 25 seconds.
pub(crate) const PROBES: u32 = 3;

/// Time after which data that nobody acknowledges means the same.
pub(crate) const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(25);
