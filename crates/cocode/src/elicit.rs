//! Questions of a server: put to the person at a terminal, or answered from `--answer`.
//!
//! Reads and writes through what it is given, so that a test can play the person.

use std::collections::BTreeMap;
use std::io::{self, Write};

use cocode_client::{ElicitationAnswer, Field, FieldKind, Form, RawJson};
use serde_json::Value;
use url::Url;

use crate::arguments::{is_number, is_whole, quoted};
use crate::lines::Lines;
use crate::text::{either, plain, plain_lines};

/// A person at a terminal.
#[derive(Debug)]
pub(crate) struct Person<'a, W> {
    pub(crate) input: &'a mut Lines,
    pub(crate) output: W,
}

/// What a person says to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    /// Yes, this time.
    Once,
    /// Yes, and do not ask again.
    Always,
    /// No, this time.
    Refused,
    /// No, and do not ask again.
    Never,
}

/// What a person typed.
enum Typed {
    Line(String),
    /// Ctrl-D.
    End,
}

impl<W: Write> Person<'_, W> {
    /// Shows a form and reads the answer, field by field.
    pub(crate) async fn fill_in(
        &mut self,
        server: &str,
        message: &str,
        form: &Form,
    ) -> io::Result<ElicitationAnswer> {
        self.introduce(server, message)?;
        let n_fields = form.fields.len();
        let question = match n_fields {
            0 => "Accept? [Y/d] ",
            _ => "Answer? [Y/d] ",
        };
        writeln!(self.output, "Enter accepts, d declines, Ctrl-D cancels.")?;
        match self.accepts(question).await? {
            Some(true) => {}
            Some(false) => return Ok(ElicitationAnswer::Decline),
            None => return Ok(ElicitationAnswer::Cancel),
        }
        let mut members = Vec::new();
        for field in &form.fields {
            match self.field(field).await? {
                Some(Some(json)) => members.push(format!("{}:{json}", quoted(&field.name))),
                Some(None) => {}
                None => return Ok(ElicitationAnswer::Cancel),
            }
        }
        accept(&members)
    }

    /// Shows a URL, and asks whether it was visited. It is never opened from here.
    pub(crate) async fn visit(
        &mut self,
        server: &str,
        message: &str,
        url: &str,
    ) -> io::Result<ElicitationAnswer> {
        self.introduce(server, message)?;
        writeln!(
            self.output,
            "Open this address in a browser, if you trust it:\n\n  {}\n",
            plain(url)
        )?;
        if let Some(host) = Url::parse(url)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned))
        {
            writeln!(self.output, "It leads to {}.", plain(&host))?;
        }
        writeln!(
            self.output,
            "Enter when it is done, d declines, Ctrl-D cancels."
        )?;
        Ok(match self.accepts("Done? [Y/d] ").await? {
            Some(true) => ElicitationAnswer::Accept(None),
            Some(false) => ElicitationAnswer::Decline,
            None => ElicitationAnswer::Cancel,
        })
    }

    /// Asks whether a tool may be called. Silence is no.
    pub(crate) async fn permits(&mut self, question: &str) -> io::Result<Permission> {
        writeln!(self.output, "{}", plain(question))?;
        loop {
            let choices = "y: this time, a: always, n: not this time, never: never [n] ";
            let Typed::Line(line) = self.ask(choices).await? else {
                return Ok(Permission::Refused);
            };
            return Ok(match line.to_lowercase().as_str() {
                "y" | "yes" => Permission::Once,
                "a" | "always" => Permission::Always,
                "" | "n" | "no" => Permission::Refused,
                "never" => Permission::Never,
                _ => {
                    writeln!(self.output, "  y, a, n or never, please")?;
                    continue;
                }
            });
        }
    }

    fn introduce(&mut self, server: &str, message: &str) -> io::Result<()> {
        writeln!(self.output, "\nThe server `{}` asks:", plain(server))?;
        for line in plain_lines(message) {
            writeln!(self.output, "  {line}")?;
        }
        Ok(())
    }

    /// Yes, no, or nothing.
    async fn accepts(&mut self, question: &str) -> io::Result<Option<bool>> {
        loop {
            let Typed::Line(line) = self.ask(question).await? else {
                return Ok(None);
            };
            match line.to_lowercase().as_str() {
                "" | "y" | "yes" => return Ok(Some(true)),
                "d" | "decline" | "n" | "no" => return Ok(Some(false)),
                _ => writeln!(self.output, "  y or d, please")?,
            }
        }
    }

    /// The JSON of one field, nothing if it is left out, or nothing at all if the person is gone.
    async fn field(&mut self, field: &Field) -> io::Result<Option<Option<String>>> {
        self.describe(field)?;
        let question = question(field);
        loop {
            let Typed::Line(line) = self.ask(&question).await? else {
                return Ok(None);
            };
            if line.is_empty() {
                match (&field.default, field.required) {
                    (Some(default), _) => return Ok(Some(Some(default.to_string()))),
                    (None, false) => return Ok(Some(None)),
                    (None, true) => {
                        writeln!(self.output, "  this one is required")?;
                        continue;
                    }
                }
            }
            match answer_of(field, &line) {
                Ok(json) => return Ok(Some(Some(json))),
                Err(why) => writeln!(self.output, "  {why}")?,
            }
        }
    }

    fn describe(&mut self, field: &Field) -> io::Result<()> {
        if let Some(description) = &field.description {
            for line in plain_lines(description) {
                writeln!(self.output, "  {line}")?;
            }
        }
        if let FieldKind::Choice(choices) | FieldKind::Choices(choices) = &field.kind {
            for (index, (value, shown)) in choices.iter().enumerate() {
                let number = index + 1;
                let (value, shown) = (plain(value), plain(shown));
                if value == shown {
                    writeln!(self.output, "  {number}. {shown}")?;
                } else {
                    writeln!(self.output, "  {number}. {shown} ({value})")?;
                }
            }
        }
        Ok(())
    }

    async fn ask(&mut self, question: &str) -> io::Result<Typed> {
        write!(self.output, "{question}")?;
        self.output.flush()?;
        let Some(line) = self.input.next().await? else {
            writeln!(self.output)?;
            return Ok(Typed::End);
        };
        Ok(Typed::Line(line.trim().to_owned()))
    }
}

/// Fills in a form from answers given beforehand, or says what is missing or wrong.
pub(crate) fn fill_from(
    form: &Form,
    answers: &BTreeMap<String, String>,
) -> Result<ElicitationAnswer, String> {
    let mut members = Vec::new();
    for field in &form.fields {
        let name = plain(&field.name);
        let json = match (answers.get(&field.name), &field.default) {
            (Some(text), _) => {
                answer_of(field, text).map_err(|why| format!("`--answer {name}`: {why}"))?
            }
            (None, Some(default)) => default.to_string(),
            (None, None) if field.required => {
                return Err(format!(
                    "the form needs `{name}`, which no `--answer` gives"
                ));
            }
            (None, None) => continue,
        };
        members.push(format!("{}:{json}", quoted(&field.name)));
    }
    accept(&members).map_err(|error| error.to_string())
}

pub(crate) fn accept(members: &[String]) -> io::Result<ElicitationAnswer> {
    let content = RawJson::parse(format!("{{{}}}", members.join(",")));
    Ok(ElicitationAnswer::Accept(Some(
        content.map_err(io::Error::other)?,
    )))
}

fn question(field: &Field) -> String {
    let name = plain(field.title.as_deref().unwrap_or(&field.name));
    let kind = match &field.kind {
        FieldKind::Text(Some(format)) => plain(format),
        FieldKind::Number => "number".to_owned(),
        FieldKind::Integer => "whole number".to_owned(),
        FieldKind::Boolean => "y/n".to_owned(),
        FieldKind::Choice(_) => "one of the above".to_owned(),
        FieldKind::Choices(_) => "any of the above, with commas".to_owned(),
        FieldKind::Other => "JSON".to_owned(),
        _ => String::new(),
    };
    let needed = match (&field.default, field.required) {
        (Some(default), _) => format!("default {}", plain(&shown(default))),
        (None, true) => "required".to_owned(),
        (None, false) => "optional".to_owned(),
    };
    let notes: Vec<String> = [kind, needed]
        .into_iter()
        .filter(|note| !note.is_empty())
        .collect();
    format!("{name} ({}): ", notes.join(", "))
}

/// A value as a person would type it.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(yes) => if *yes { "y" } else { "n" }.to_owned(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// The JSON of what was typed for a field, or what is wrong with it.
pub(crate) fn answer_of(field: &Field, text: &str) -> Result<String, String> {
    let json = json_of(&field.kind, text)?;
    // A number that is too large to be looked at is the server's to judge.
    let value = serde_json::from_str(&json).ok();
    match value.and_then(|value: Value| field.limits.broken_by(&value)) {
        Some(why) => Err(why),
        None => Ok(json),
    }
}

/// The JSON of what was typed for a field of this kind, or what is wrong with it.
fn json_of(kind: &FieldKind, text: &str) -> Result<String, String> {
    match kind {
        FieldKind::Text(format) => match complaint(format.as_deref(), text) {
            None => Ok(quoted(text)),
            Some(complaint) => Err(complaint.to_owned()),
        },
        FieldKind::Number if is_number(text) => Ok(text.to_owned()),
        FieldKind::Number => Err("this must be a number".to_owned()),
        FieldKind::Integer if is_number(text) && is_whole(text) => Ok(text.to_owned()),
        FieldKind::Integer => Err("this must be a whole number".to_owned()),
        FieldKind::Boolean => match text.to_lowercase().as_str() {
            "y" | "yes" | "true" => Ok("true".to_owned()),
            "n" | "no" | "false" => Ok("false".to_owned()),
            _ => Err("this must be yes or no".to_owned()),
        },
        FieldKind::Choice(choices) => chosen(choices, text).map(|value| quoted(&value)),
        FieldKind::Choices(choices) => {
            let words = text
                .split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty());
            let values: Result<Vec<String>, String> = words
                .map(|word| chosen(choices, word).map(|value| quoted(&value)))
                .collect();
            Ok(format!("[{}]", values?.join(",")))
        }
        _ => match RawJson::parse(text.to_owned()) {
            Ok(json) => Ok(json.as_str().to_owned()),
            Err(_) => Err("this must be JSON".to_owned()),
        },
    }
}

/// What was chosen: by value, by what is shown, or by its number.
fn chosen(choices: &[(String, String)], text: &str) -> Result<String, String> {
    let by_value = choices.iter().find(|(value, _)| value == text);
    let by_name = || {
        choices
            .iter()
            .find(|(_, shown)| shown.eq_ignore_ascii_case(text))
    };
    let by_number = || choices.get(text.parse::<usize>().ok()?.checked_sub(1)?);
    let found = by_value.or_else(by_name).or_else(by_number);
    found.map(|(value, _)| value.clone()).ok_or_else(|| {
        let values: Vec<String> = choices.iter().map(|(value, _)| plain(value)).collect();
        format!("this must be {}", either(&values))
    })
}

/// Catches typing errors. Whether an address exists, only the server can tell.
fn complaint(format: Option<&str>, text: &str) -> Option<&'static str> {
    let fits = match format {
        Some("email") => text.split_once('@').is_some_and(|(user, host)| {
            !user.is_empty() && host.contains(|c: char| c.is_alphanumeric())
        }),
        Some("uri") => Url::parse(text).is_ok(),
        Some("date") => is_date(text),
        Some("date-time") => text
            .split_once(['T', 't', ' '])
            .is_some_and(|(date, time)| {
                is_date(date)
                    && time.contains(':')
                    && time.starts_with(|c: char| c.is_ascii_digit())
            }),
        _ => true,
    };
    let complaint = match format {
        Some("email") => "this must be an email address",
        Some("uri") => "this must be a URI",
        Some("date") => "this must be a date, such as 2026-07-28",
        _ => "this must be a date and time, such as 2026-07-28T09:00:00Z",
    };
    (!fits).then_some(complaint)
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let number = |text: &str, length: usize| {
        let digits = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|_| digits)
    };
    let &[year, month, day] = parts.as_slice() else {
        return false;
    };
    number(year, 4).is_some()
        && number(month, 2).is_some_and(|month| (1..=12).contains(&month))
        && number(day, 2).is_some_and(|day| (1..=31).contains(&day))
}

#[cfg(test)]
#[path = "elicit_tests.rs"]
mod tests;
