//! The form of a line: its time, its source, and a text that steers no terminal.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use cocode_core::is_hidden_format;

use super::{LogSource, MAX_LOG_RECORD_BYTES};

/// Lines of one record; what has more is cut.
const MAX_RECORD_LINES: usize = 200;
/// Characters of the level of a message.
const MAX_LEVEL_BYTES: usize = 16;
/// The source of what the log says about itself.
pub(super) const OWN_SOURCE: &str = "log";
/// How long a written time is: `2026-11-16T03:04:05.123Z`.
pub(super) const TIME_BYTES: usize = 24;

const DAY_SECONDS: u64 = 86_400;

/// One line of a log, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRecord<'a> {
    /// When it was logged, in UTC.
    pub time: &'a str,
    /// `stderr`, `message`, `state`, or `log` for what the log says about itself.
    pub source: &'a str,
    /// The level of a message.
    pub level: Option<&'a str>,
    /// What was said.
    pub text: &'a str,
}

impl<'a> LogRecord<'a> {
    /// Takes a line apart; nothing if it is not of a log.
    pub fn parse(line: &'a str) -> Option<Self> {
        let (time, rest) = line.split_once(' ')?;
        parse_time(time)?;
        let (source, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let (source, level) = match source.split_once(':') {
            Some((source, level)) => (source, Some(level)),
            None => (source, None),
        };
        Some(Self {
            time,
            source,
            level,
            text,
        })
    }
}

/// The beginning of a text, and how much of it is left out.
pub(super) struct Text {
    pub(super) text: String,
    pub(super) left_out: usize,
}

impl Text {
    /// No more of a text than a record may have.
    pub(super) fn cut(text: &str) -> Self {
        let end = text.floor_char_boundary(MAX_LOG_RECORD_BYTES);
        let (kept, rest) = text.split_at_checked(end).unwrap_or((text, ""));
        Self {
            text: kept.to_owned(),
            left_out: rest.len(),
        }
    }
}

/// How a source is written.
pub(super) fn source(source: LogSource<'_>) -> String {
    match source {
        LogSource::Stderr => "stderr".to_owned(),
        LogSource::State => "state".to_owned(),
        LogSource::Message(level) => {
            // Servers may say anything, but a level is a word.
            let word = |character: &char| character.is_ascii_alphanumeric();
            let level: String = level.chars().filter(word).take(MAX_LEVEL_BYTES).collect();
            format!("message:{}", level.to_ascii_lowercase())
        }
    }
}

/// The lines of a record, each with its end.
pub(super) fn lines(at: SystemTime, source: &str, text: &Text) -> Vec<String> {
    let time = time(at);
    let whole = |text: &str| format!("{time} {source} {text}\n");
    let mut all = text.text.lines();
    let mut lines: Vec<String> = all
        .by_ref()
        .take(MAX_RECORD_LINES)
        .map(|line| whole(&tame(line)))
        .collect();
    if lines.is_empty() {
        lines.push(whole(""));
    }
    let rest: usize = all.map(str::len).sum();
    let left_out = rest + text.left_out;
    if left_out > 0
        && let Some(last) = lines.last_mut()
    {
        last.truncate(last.trim_end_matches('\n').len());
        // Writing to a string cannot fail.
        let _infallible = writeln!(last, "… ({left_out} bytes are left out)");
    }
    lines
}

/// What the log says where something is missing.
pub(super) fn lost(at: SystemTime, count: u64) -> String {
    let noun = if count == 1 { "line was" } else { "lines were" };
    format!("{} {OWN_SOURCE} {count} {noun} lost here\n", time(at))
}

/// A line without escape sequences, and with a mark in the place of every other control character.
pub(super) fn tame(line: &str) -> String {
    let mut tame = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(character) = rest.next() {
        match character {
            '\x1b' => match after_escape(rest.as_str()) {
                Some(after) => rest = after.chars(),
                None => tame.push(char::REPLACEMENT_CHARACTER),
            },
            '\t' => tame.push('\t'),
            // How bars of progress return to the beginning of their line.
            '\r' => tame.push(' '),
            control if control.is_control() || is_hidden_format(control) => {
                tame.push(char::REPLACEMENT_CHARACTER);
            }
            other => tame.push(other),
        }
    }
    let end = tame.trim_end_matches(' ').len();
    tame.truncate(end);
    tame
}

/// What follows the escape sequence whose first character was taken; nothing if it has no end, in
/// which case it must not hide the rest of the line.
fn after_escape(rest: &str) -> Option<&str> {
    let mut characters = rest.chars();
    match characters.next()? {
        '[' => {
            let is_inner = |character: char| matches!(character, '\x20'..='\x3f');
            let rest = characters.as_str().trim_start_matches(is_inner);
            rest.strip_prefix(|last: char| matches!(last, '\x40'..='\x7e'))
        }
        ']' | 'P' | 'X' | '^' | '_' => {
            let rest = characters.as_str();
            let bell = rest.find('\x07').map(|at| (at, 1));
            let terminator = rest.find("\x1b\\").map(|at| (at, 2));
            let (at, length) = bell.into_iter().chain(terminator).min()?;
            rest.get(at + length..)
        }
        _ => {
            let is_inner = |character: char| matches!(character, '\x20'..='\x2f');
            let rest = rest.trim_start_matches(is_inner);
            rest.strip_prefix(|last: char| matches!(last, '\x30'..='\x7e'))
        }
    }
}

/// A time in UTC, to the millisecond.
pub(super) fn time(at: SystemTime) -> String {
    let since = at
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let (days, seconds) = (since.as_secs() / DAY_SECONDS, since.as_secs() % DAY_SECONDS);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let millis = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Reads what [`time`] wrote.
pub(super) fn parse_time(text: &str) -> Option<SystemTime> {
    let bytes = text.as_bytes();
    let fits = bytes.len() == TIME_BYTES
        && [
            (4, b'-'),
            (7, b'-'),
            (10, b'T'),
            (13, b':'),
            (16, b':'),
            (19, b'.'),
            (23, b'Z'),
        ]
        .into_iter()
        .all(|(at, mark)| bytes.get(at) == Some(&mark));
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u64>().ok().filter(|_| are_digits)
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let is_time = hour < 24 && minute < 60 && second < 60;
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month);
    if !(fits && is_time && is_date && (1..=31).contains(&day)) {
        return None;
    }
    let days = days_before_year(year) - days_before_year(1970) + days_before_month(year, month);
    let seconds = (days + day - 1) * DAY_SECONDS + hour * 3600 + minute * 60 + second;
    let since = Duration::from_secs(seconds) + Duration::from_millis(number(20, 23)?);
    SystemTime::UNIX_EPOCH.checked_add(since)
}

/// The date of a day, counted from the first of 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    // No year has more than 366 days, so this is the right one or a little before it.
    let mut year = 1970 + days / 366;
    let epoch = days_before_year(1970);
    while days_before_year(year + 1) - epoch <= days {
        year += 1;
    }
    let in_year = days - (days_before_year(year) - epoch);
    let month = (2..=12)
        .take_while(|month| days_before_month(year, *month) <= in_year)
        .last()
        .unwrap_or(1);
    (year, month, in_year - days_before_month(year, month) + 1)
}

/// The days of all years before this one.
fn days_before_year(year: u64) -> u64 {
    let past = year - 1;
    past * 365 + past / 4 - past / 100 + past / 400
}

/// The days of all months of the year before this one, which counts from one.
fn days_before_month(year: u64, month: u64) -> u64 {
    let is_leap = days_before_year(year + 1) - days_before_year(year) == 366;
    (1..month)
        .map(|month| match month {
            2 => 28 + u64::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        })
        .sum()
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
