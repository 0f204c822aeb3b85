//! Times as people read them: RFC 3339 in UTC with milliseconds, such as `2026-11-17T08:30:00.000Z`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: u64 = 86_400;
/// Days from March of the year 0 to January of 1970.
const DAYS_BEFORE_1970: u64 = 719_468;
/// Four hundred years have always this many days.
const DAYS_OF_400_YEARS: u64 = 146_097;

/// A time as text. What is before 1970 is shown as its beginning.
pub(crate) fn format(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, of_day) = (
        since.as_secs() / SECONDS_PER_DAY,
        since.as_secs() % SECONDS_PER_DAY,
    );
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let milliseconds = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// The time behind a text as [`format`] writes it. The fraction may be missing or shorter.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut date = date.split('-');
    let (year, month, day) = (
        number(date.next()?, 4)?,
        number(date.next()?, 2)?,
        number(date.next()?, 2)?,
    );
    let mut clock = time.split(':');
    let (hour, minute, second) = (
        number(clock.next()?, 2)?,
        number(clock.next()?, 2)?,
        number(clock.next()?, 2)?,
    );
    let in_range = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61
        && (1970..=9999).contains(&year);
    if !in_range || date.next().is_some() || clock.next().is_some() || fraction.len() > 3 {
        return None;
    }
    let milliseconds = number(fraction, fraction.len())? * [0, 100, 10, 1].get(fraction.len())?;
    let days = days_before(year, month) + day - 1;
    let seconds = days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
    Some(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(milliseconds))
}

/// A time without what is shorter than a second, as every store keeps it.
pub(crate) fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

/// Year, month and day of so many days after the beginning of 1970. Years begin in March here, so
/// that the day that comes and goes is their last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_BEFORE_1970;
    let (era, of_era) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = era * 400 + year_of_era + u64::from(month < 3);
    (year, month, day)
}

/// Days from 1970 to the beginning of a month.
fn days_before(year: u64, month: u64) -> u64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    year * 365 + leap_days + (153 * month + 2) / 5 - DAYS_BEFORE_1970
}

fn number(text: &str, digits: usize) -> Option<u64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use proptest::prelude::*;

    use super::{format, parse};

    #[test]
    fn times_are_read_and_written_as_the_standard_says() {
        for (seconds, milliseconds, text) in [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (784_111_777, 5, "1994-11-06T08:49:37.005Z"),
            (951_782_400, 0, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199, 999, "2024-02-29T23:59:59.999Z"),
            (1_709_251_200, 0, "2024-03-01T00:00:00.000Z"),
            (4_102_444_800, 0, "2100-01-01T00:00:00.000Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_millis(seconds * 1000 + milliseconds);
            assert_eq!(format(time), text);
            assert_eq!(parse(text), Some(time), "{text}");
        }
        let short = UNIX_EPOCH + Duration::from_millis(500);
        assert_eq!(parse("1970-01-01T00:00:00.5Z"), Some(short));
        assert_eq!(parse("1970-01-01T00:00:00Z"), Some(UNIX_EPOCH));
    }

    #[test]
    fn what_is_no_time_in_utc_is_refused() {
        for text in [
            "",
            "1994-11-06",
            "1994-11-06T08:49:37",
            "1994-11-06T08:49:37+01:00",
            "1994-13-06T08:49:37Z",
            "1994-11-06T24:49:37Z",
            "1994-11-06T08:49:37.Z",
            "1994-11-06T08:49:37.0000Z",
            "1994-11-06T08:49:37:00Z",
            "1969-12-31T23:59:59Z",
            "99999-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_time_survives_its_text(milliseconds in 0..253_402_300_799_999_u64) {
            let time = UNIX_EPOCH + Duration::from_millis(milliseconds);
            prop_assert_eq!(parse(&format(time)), Some(time));
        }
    }
}
