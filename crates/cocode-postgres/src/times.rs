//! Times as columns keep them: seconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A time as a column keeps it. What is before 1970 is kept as its beginning.
pub(crate) fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// The time behind a number of seconds, if there is one.
pub(crate) fn time(seconds: i64) -> Option<SystemTime> {
    let since = Duration::from_secs(u64::try_from(seconds).ok()?);
    UNIX_EPOCH.checked_add(since)
}
