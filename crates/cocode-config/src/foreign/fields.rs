//! Takes the keys of one server out of a file of another tool, and says of everything that is
//! left why it does not come along.

use std::collections::BTreeMap;

use super::reference::{self, Reason, Secrets};
use super::scene::Scene;
use crate::document::{Member, Node, Value};
use crate::entry::{Seconds, Text, Transport};
use crate::problem::Problem;

/// The keys of one table that nobody took yet.
pub(super) struct Fields<'a> {
    scene: &'a Scene<'a>,
    server: &'a str,
    /// What the keys of this table are below, as in `oauth.`.
    prefix: &'static str,
    members: Vec<&'a Member>,
    line: u32,
    problems: Vec<Problem>,
}

impl<'a> Fields<'a> {
    /// The keys of a server; nothing if it is no table.
    pub(super) fn of(scene: &'a Scene<'a>, server: &'a str, node: &'a Node) -> Option<Self> {
        Some(Self {
            scene,
            server,
            prefix: "",
            members: node.members()?.iter().collect(),
            line: node.line,
            problems: Vec::new(),
        })
    }

    /// What was wrong, with everything that nobody took.
    pub(super) fn finish(mut self) -> Vec<Problem> {
        for member in std::mem::take(&mut self.members) {
            if member.node.value != Value::Null {
                self.left_out(member, "cocode has no such setting");
            }
        }
        self.problems
    }

    /// The value of a key, the last one if it is there twice. `null` says nothing.
    fn take(&mut self, key: &str) -> Option<&'a Member> {
        let found = self.members.iter().rev().find(|member| member.key == key);
        let found = found.copied();
        self.members.retain(|member| member.key != key);
        found.filter(|member| member.node.value != Value::Null)
    }

    /// Whether a key is there that nobody took.
    pub(super) fn has(&self, key: &str) -> bool {
        self.members.iter().any(|member| member.key == key)
    }

    /// A key that cannot come along, with the reason.
    pub(super) fn leave(&mut self, key: &str, reason: &str) {
        if let Some(member) = self.take(key) {
            self.left_out(member, reason);
        }
    }

    /// A key that means nothing to cocode, and that nobody misses.
    pub(super) fn ignore(&mut self, key: &str) {
        self.take(key);
    }

    /// A text in which variables may be referred to.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        let member = self.take(key)?;
        let Value::Text(text) = &member.node.value else {
            self.mismatch(member, "a text");
            return None;
        };
        self.expanded(&member.key, member.line, text)
    }

    /// A text that means itself, in any tool and here.
    pub(super) fn word(&mut self, key: &str) -> Option<String> {
        let member = self.take(key)?;
        let Value::Text(text) = &member.node.value else {
            self.mismatch(member, "a text");
            return None;
        };
        Some(text.clone())
    }

    /// A list of texts in which variables may be referred to.
    pub(super) fn texts(&mut self, key: &str) -> Vec<String> {
        let words = self.numbered_words(key).unwrap_or_default();
        let texts = words.into_iter().enumerate();
        texts
            .filter_map(|(index, (line, text))| {
                self.expanded(&format!("{key}[{index}]"), line, text)
            })
            .collect()
    }

    /// A list of texts that mean themselves.
    pub(super) fn words(&mut self, key: &str) -> Option<Vec<String>> {
        let words = self.numbered_words(key)?;
        Some(words.into_iter().map(|(_, text)| text.clone()).collect())
    }

    fn numbered_words(&mut self, key: &str) -> Option<Vec<(u32, &'a String)>> {
        let member = self.take(key)?;
        let Value::List(nodes) = &member.node.value else {
            self.mismatch(member, "a list of texts");
            return None;
        };
        let mut words = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Value::Text(text) = &node.value else {
                self.mismatch(member, "a list of texts");
                return None;
            };
            words.push((node.line, text));
        }
        Some(words)
    }

    /// Names with values that may be secret. A value that cannot come along is left out alone.
    pub(super) fn values(&mut self, key: &str) -> BTreeMap<String, Text> {
        let mut values = BTreeMap::new();
        for member in self.nodes(key) {
            let key = format!("{key}.{}", member.key);
            let text = match &member.node.value {
                Value::Null => continue,
                Value::Text(text) => text.clone(),
                Value::Integer(number) => number.to_string(),
                Value::Float(number) => number.to_string(),
                Value::Boolean(truth) => truth.to_string(),
                Value::List(_) | Value::Table(_) => {
                    self.mismatch_at(&key, member, "a text");
                    continue;
                }
            };
            match self.import(&key, member.line, &text, Secrets::Allowed) {
                Ok(text) => {
                    values.insert(member.key.clone(), Text(text));
                }
                Err(Reason(reason)) => {
                    let message = format!("it is left out: {reason}");
                    self.warn(&key, member.line, message);
                }
            }
        }
        values
    }

    /// Names with names, as in `env_http_headers`.
    pub(super) fn names(&mut self, key: &str) -> BTreeMap<String, String> {
        let mut names = BTreeMap::new();
        for member in self.nodes(key) {
            match &member.node.value {
                Value::Text(text) => {
                    names.insert(member.key.clone(), text.clone());
                }
                _ => self.mismatch_at(&format!("{key}.{}", member.key), member, "a text"),
            }
        }
        names
    }

    fn nodes(&mut self, key: &str) -> &'a [Member] {
        let Some(member) = self.take(key) else {
            return &[];
        };
        let members = member.node.members();
        if members.is_none() {
            self.mismatch(member, "a table of texts");
        }
        members.unwrap_or_default()
    }

    /// What is in a list, whatever it is.
    pub(super) fn list(&mut self, key: &str) -> &'a [Node] {
        let Some(member) = self.take(key) else {
            return &[];
        };
        if let Value::List(nodes) = &member.node.value {
            return nodes;
        }
        self.mismatch(member, "a list");
        &[]
    }

    pub(super) fn boolean(&mut self, key: &str) -> Option<bool> {
        let member = self.take(key)?;
        if let Value::Boolean(truth) = member.node.value {
            return Some(truth);
        }
        self.mismatch(member, "true or false");
        None
    }

    pub(super) fn port(&mut self, key: &str) -> Option<u16> {
        let member = self.take(key)?;
        if let Value::Integer(number) = member.node.value
            && let Ok(port) = u16::try_from(number)
            && port > 0
        {
            return Some(port);
        }
        self.mismatch(member, "a port");
        None
    }

    pub(super) fn seconds(&mut self, key: &str) -> Option<Seconds> {
        self.time(key, 1.0)
    }

    pub(super) fn milliseconds(&mut self, key: &str) -> Option<Seconds> {
        self.time(key, 1000.0)
    }

    fn time(&mut self, key: &str, per_second: f64) -> Option<Seconds> {
        let member = self.take(key)?;
        let number = match member.node.value {
            #[expect(
                clippy::cast_precision_loss,
                reason = "times that long are refused anyway"
            )]
            Value::Integer(number) => number as f64,
            Value::Float(number) => number,
            _ => f64::NAN,
        };
        let seconds = Seconds::new(number / per_second);
        if seconds.is_none() {
            self.mismatch(member, "a time, more than none");
        }
        seconds
    }

    /// The name of a transport. A program's streams need no name: `command` says it.
    pub(super) fn transport(&mut self, key: &str) -> Option<Transport> {
        let line = self.members.iter().find(|member| member.key == key);
        let line = line.map_or(self.line, |member| member.line);
        let name = self.word(key)?;
        match Transport::from_name(&name) {
            Some(Transport::Stdio) => None,
            Some(transport) => Some(transport),
            None => {
                self.error(key, line, "it names a transport that cocode does not know");
                None
            }
        }
    }

    /// The variable that holds a secret. The secret itself never comes along.
    pub(super) fn secret_variable(&mut self, key: &str) -> Option<String> {
        let line = self.members.iter().find(|member| member.key == key);
        let line = line.map_or(self.line, |member| member.line);
        let text = self.text(key)?;
        let variable = reference::only_variable(&text);
        if variable.is_none() {
            let message = "it is left out: a secret in plain text is not copied".to_owned();
            self.warn(key, line, message);
        }
        variable
    }

    /// A table inside the table.
    pub(super) fn inside<T: Default>(
        &mut self,
        key: &str,
        prefix: &'static str,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let Some(member) = self.take(key) else {
            return T::default();
        };
        let Some(members) = member.node.members() else {
            self.mismatch(member, "a table");
            return T::default();
        };
        let mut fields = Fields {
            scene: self.scene,
            server: self.server,
            prefix,
            members: members.iter().collect(),
            line: member.line,
            problems: Vec::new(),
        };
        let value = read(&mut fields);
        self.problems.extend(fields.finish());
        value
    }

    /// Whether a key holds a table.
    pub(super) fn is_table(&self, key: &str) -> bool {
        let found = self.members.iter().rev().find(|member| member.key == key);
        found.is_some_and(|member| member.node.members().is_some())
    }

    /// Something about the entry as a whole that makes it useless.
    pub(super) fn refuse(&mut self, message: &str) {
        let origin = self.scene.origin().at(self.line);
        let problem = Problem::error(origin, message).server(self.server);
        self.problems.push(problem);
    }

    /// A text of the tool, in our spelling; the entry is useless without it.
    fn expanded(&mut self, key: &str, line: u32, text: &str) -> Option<String> {
        match self.import(key, line, text, Secrets::None) {
            Ok(text) => Some(text),
            Err(Reason(reason)) => {
                self.error(key, line, &reason);
                None
            }
        }
    }

    fn import(
        &mut self,
        key: &str,
        line: u32,
        text: &str,
        secrets: Secrets,
    ) -> Result<String, Reason> {
        let dialect = self.scene.tool.dialect();
        let project = self.scene.place.project.as_deref();
        let (text, asked) = reference::import(text, dialect, secrets, project)?;
        for (id, variable) in asked {
            let title = self.scene.tool.title();
            let message = format!("{title} asks for `{id}`; here it is the variable `{variable}`");
            self.warn(key, line, message);
        }
        Ok(text)
    }

    fn left_out(&mut self, member: &Member, reason: &str) {
        let message = format!("it is left out: {reason}");
        self.warn(&member.key, member.line, message);
    }

    fn mismatch(&mut self, member: &Member, expected: &str) {
        self.mismatch_at(&member.key, member, expected);
    }

    fn mismatch_at(&mut self, key: &str, member: &Member, expected: &str) {
        let message = format!("it is {}, but must be {expected}", member.node.kind());
        self.error(key, member.line, &message);
    }

    fn warn(&mut self, key: &str, line: u32, message: String) {
        let origin = self.scene.origin().at(line);
        self.push(key, Problem::warning(origin, message));
    }

    fn error(&mut self, key: &str, line: u32, message: &str) {
        let origin = self.scene.origin().at(line);
        self.push(key, Problem::error(origin, message));
    }

    fn push(&mut self, key: &str, problem: Problem) {
        let key = format!("{}{key}", self.prefix);
        self.problems.push(problem.server(self.server).key(key));
    }
}
