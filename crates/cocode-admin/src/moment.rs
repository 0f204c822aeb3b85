//! A point in time as the API writes it: RFC 3339, in UTC, to the millisecond.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::schema::{Described, Shelf};

const DAY_SECONDS: u64 = 24 * 60 * 60;
/// Four hundred years always have so many days, and begin alike.
const ERA_DAYS: u64 = 146_097;
/// The days from the first of March of the year 0 to the first of January 1970.
const EPOCH_DAYS: u64 = 719_468;
/// How long the text is, as in `2026-07-28T12:00:00.000Z`.
const LENGTH: usize = 24;

/// A point in time, from 1970 on, to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(SystemTime);

impl Moment {
    /// This moment.
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// As the standard library has it.
    pub fn time(self) -> SystemTime {
        self.0
    }

    /// So much later.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        self.0.checked_add(wait).map_or(self, Self::from)
    }

    fn since_epoch(self) -> Duration {
        let since = self.0.duration_since(SystemTime::UNIX_EPOCH);
        since.unwrap_or_default()
    }

    /// Seconds since the beginning of 1970.
    pub fn unix_seconds(self) -> f64 {
        self.since_epoch().as_secs_f64()
    }

    fn parse(text: &str) -> Option<Self> {
        let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
        let bytes = text.as_bytes();
        let is_shaped = bytes.len() == LENGTH
            && marks.iter().all(|(at, mark)| bytes.get(*at) == Some(mark))
            && bytes.get(19) == Some(&b'.')
            && bytes.get(23) == Some(&b'Z');
        let number = |from: usize, to: usize| -> Option<u64> {
            let digits = text.get(from..to)?;
            let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|_| are_digits)
        };
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let is_time = hour < 24 && minute < 60 && second < 60;
        if !is_shaped || !is_time || !(1..=12).contains(&month) || year < 1970 {
            return None;
        }
        let days = days_of(year, month, day).checked_sub(EPOCH_DAYS)?;
        // The thirtieth of February would be another day.
        if date_of(days) != (year, month, day) {
            return None;
        }
        let seconds = days * DAY_SECONDS + hour * 3600 + minute * 60 + second;
        let since = Duration::from_secs(seconds) + Duration::from_millis(number(20, 23)?);
        SystemTime::UNIX_EPOCH.checked_add(since).map(Self)
    }
}

impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        // What is more exact than that could not be written; what was before is the beginning.
        let whole = Duration::from_secs(since.as_ref().map_or(0, Duration::as_secs));
        let millis = since.map_or(0, |since| since.subsec_millis());
        let since = whole + Duration::from_millis(millis.into());
        Self(SystemTime::UNIX_EPOCH + since)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.since_epoch();
        let (days, seconds) = (since.as_secs() / DAY_SECONDS, since.as_secs() % DAY_SECONDS);
        let (year, month, day) = date_of(days);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let millis = since.subsec_millis();
        write!(
            formatter,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"
        )
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            D::Error::custom("no time in UTC to the millisecond, as 2026-07-28T12:00:00.000Z is")
        })
    }
}

impl Described for Moment {
    fn schema(_shelf: &mut Shelf) -> Value {
        json!({ "type": "string", "format": "date-time" })
    }
}

/// The days from the first of March of the year 0 to this one. Years begin in March here, so that the
/// day that only some of them have is their last.
fn days_of(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    // From March on, months of 31 and of 30 days take turns, but for two that meet twice a year.
    let in_year = (month * 306 + 5) / 10 + day.max(1) - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + in_year
}

/// The year, month and day that a day is, counted from the first of 1970.
fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + EPOCH_DAYS;
    // No year is longer than 366 days, so this is the year or one before it.
    let mut year = days / ERA_DAYS * 400 + days % ERA_DAYS / 366;
    while days_of(year + 1, 3, 1) <= days {
        year += 1;
    }
    let mut month = 3;
    while month < 14 && days_of_month(year, month + 1) <= days {
        month += 1;
    }
    let day = days - days_of_month(year, month) + 1;
    if month > 12 {
        (year + 1, month - 12, day)
    } else {
        (year, month, day)
    }
}

/// The first of a month, where 13 and 14 are January and February of the next year.
fn days_of_month(year: u64, month: u64) -> u64 {
    if month > 12 {
        days_of(year + 1, month - 12, 1)
    } else {
        days_of(year, month, 1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{DAY_SECONDS, Moment};

    fn at(seconds: u64, millis: u64) -> Moment {
        let since = Duration::from_secs(seconds) + Duration::from_millis(millis);
        (SystemTime::UNIX_EPOCH + since).into()
    }

    #[test]
    fn times_are_written_as_rfc_3339_and_read_again() {
        for (moment, text) in [
            (at(0, 0), "1970-01-01T00:00:00.000Z"),
            (at(951_782_400, 7), "2000-02-29T00:00:00.007Z"),
            (at(1_000_000_000, 999), "2001-09-09T01:46:40.999Z"),
            (at(4_107_542_399, 0), "2100-02-28T23:59:59.000Z"),
            (at(4_107_542_400, 0), "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(moment.to_string(), text);
            assert_eq!(Moment::parse(text), Some(moment));
        }
    }

    #[test]
    fn every_day_of_two_centuries_follows_the_one_before() {
        let mut before = String::new();
        for day in 0..73_000 {
            let moment = at(day * DAY_SECONDS, 0);
            let text = moment.to_string();
            assert!(text > before, "{text} does not follow {before}");
            assert_eq!(Moment::parse(&text), Some(moment));
            before = text;
        }
    }

    #[test]
    fn what_is_no_time_is_not_read() {
        for text in [
            "",
            "2026-07-28",
            "2026-02-29T00:00:00.000Z",
            "2026-13-01T00:00:00.000Z",
            "2026-00-01T00:00:00.000Z",
            "2026-01-00T00:00:00.000Z",
            "2026-01-01T24:00:00.000Z",
            "2026-01-01T00:00:00.000+",
            "2026-01-01T00:00:00.00éZ",
            "+026-01-01T00:00:00.000Z",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }
}
