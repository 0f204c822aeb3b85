//! Points in time as people and protocols write them.

use std::time::SystemTime;

const DAY_SECONDS: u64 = 24 * 60 * 60;
/// Days of four hundred years, after which the calendar repeats itself.
const CYCLE_DAYS: u64 = 146_097;

/// The date of today in UTC, such as `2026-11-17`.
pub(crate) fn today() -> String {
    let now = utc(SystemTime::now());
    let (date, _) = now.split_once('T').unwrap_or((&now, ""));
    date.to_owned()
}

/// Such as `2026-11-17T01:05:18Z`.
pub(crate) fn utc(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    let seconds = since.unwrap_or_default().as_secs();
    let (year, month, day) = date(seconds / DAY_SECONDS);
    let rest = seconds % DAY_SECONDS;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date of a day, counted from the first of 1970.
fn date(days: u64) -> (u64, u64, u64) {
    let mut year = 1970 + days / CYCLE_DAYS * 400;
    let mut left = days % CYCLE_DAYS;
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::utc;

    #[test]
    fn leap_days_and_ends_of_years_are_where_they_belong() {
        for (seconds, told) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_794_877_518, "2026-11-17T01:05:18Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(utc(at), told);
        }
    }
}
