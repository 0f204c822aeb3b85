//! The dates of HTTP, RFC 9110 section 5.6.7, in the one form that may still be sent.

/// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let (_weekday, rest) = text.trim().split_once(", ")?;
    let mut words = rest.split(' ');
    let mut word = || words.next();
    let (day, month, year) = (word()?, word()?, word()?);
    let (time, zone, end) = (word()?, word()?, word());
    let mut clock = time.split(':');
    let mut two_digits = || number(clock.next()?, 2);
    let (hour, minute, second) = (two_digits()?, two_digits()?, two_digits()?);
    let (day, year) = (number(day, 2)?, number(year, 4)?);
    let month = MONTHS.iter().zip(1..).find(|(name, _)| **name == month)?.1;
    // Leap seconds are allowed.
    let in_range = (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
    if !in_range || year < 1970 || zone != "GMT" || end.is_some() {
        return None;
    }
    Some(((days_before(year, month) + day - 1) * 24 + hour) * 3600 + minute * 60 + second)
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Days from 1970 to the beginning of a month. Years begin in March here, so that the day that comes
/// and goes is their last.
fn days_before(year: u64, month: u64) -> u64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    // 719 468 days lie between March of the year 0 and January of 1970.
    year * 365 + leap_days + (153 * month + 2) / 5 - 719_468
}

fn number(text: &str, digits: usize) -> Option<u64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn dates_are_read_as_seconds() {
        let cases = [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Thu, 29 Feb 2024 23:59:59 GMT", Some(1_709_251_199)),
            ("Fri, 01 Mar 2024 00:00:00 GMT", Some(1_709_251_200)),
            ("Tue, 28 Jul 2026 12:00:00 GMT", Some(1_785_240_000)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37 CET", None),
            ("Sun, 06 Nov 1994 25:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37 GMT and more", None),
            ("Sun, 6 Nov 1994 08:49:37 GMT", None),
            ("tomorrow", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
