//! Reads single values of an entry, and says what is wrong with them. Never says what they are, where
//! they may be secret.

use std::collections::BTreeMap;

use cocode_core::nearest;

use super::{Reader, did_you_mean};
use crate::document::{Node, Value};
use crate::entry::{Seconds, Text, Transport};
use crate::keys::{self, Key, Kind};
use crate::problem::{Origin, Problem};

impl Reader<'_> {
    pub(super) fn text(&mut self, key: &str, node: &Node) -> Option<String> {
        match &node.value {
            Value::Text(text) if text.trim().is_empty() => {
                self.error(node.line, Some(key), "it is empty".to_owned());
                None
            }
            Value::Text(text) => Some(text.clone()),
            _ => {
                self.wrong(key, node, "a text");
                None
            }
        }
    }

    pub(super) fn list(&mut self, key: &str, node: &Node) -> Vec<String> {
        let Value::List(nodes) = &node.value else {
            self.wrong(key, node, "a list of texts");
            return Vec::new();
        };
        let mut texts = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            match &node.value {
                Value::Text(text) => texts.push(text.clone()),
                _ => self.wrong(&format!("{key}[{index}]"), node, "a text"),
            }
        }
        texts
    }

    /// A list, or one text with spaces between, as OAuth itself spells scopes.
    pub(super) fn scopes(&mut self, key: &str, node: &Node) -> Vec<String> {
        match &node.value {
            Value::Text(text) => text.split_whitespace().map(str::to_owned).collect(),
            _ => self.list(key, node),
        }
    }

    pub(super) fn secrets(&mut self, key: &str, node: &Node) -> BTreeMap<String, Text> {
        let Some(members) = node.members() else {
            self.wrong(key, node, "a table of texts");
            return BTreeMap::new();
        };
        let mut map = BTreeMap::new();
        for member in members {
            let name = format!("{key}.{}", member.key);
            let text = match &member.node.value {
                Value::Text(text) => text.clone(),
                // What people write without quotes means the same text to a program.
                Value::Integer(number) => number.to_string(),
                Value::Boolean(truth) => truth.to_string(),
                _ => {
                    self.wrong(&name, &member.node, "a text");
                    continue;
                }
            };
            self.lines.insert(name, member.line);
            map.insert(member.key.clone(), Text(text));
        }
        map
    }

    pub(super) fn boolean(&mut self, key: &str, node: &Node) -> Option<bool> {
        if let Value::Boolean(truth) = node.value {
            return Some(truth);
        }
        self.wrong(key, node, "true or false");
        None
    }

    pub(super) fn seconds(&mut self, key: &'static Key, node: &Node) -> Option<Seconds> {
        let make = match key.kind {
            Kind::Millis => Seconds::from_millis,
            _ => Seconds::new,
        };
        self.time(key.name, node, make)
    }

    pub(super) fn seconds_by_name(&mut self, key: &str, node: &Node) -> BTreeMap<String, Seconds> {
        let Some(members) = node.members() else {
            self.wrong(key, node, "a table of numbers");
            return BTreeMap::new();
        };
        let mut map = BTreeMap::new();
        for member in members {
            if member.key.is_empty() {
                let message = "one of its names is empty".to_owned();
                self.error(member.line, Some(key), message);
                continue;
            }
            let name = format!("{key}.{}", member.key);
            if let Some(seconds) = self.time(&name, &member.node, Seconds::new) {
                self.lines.insert(name, member.line);
                map.insert(member.key.clone(), seconds);
            }
        }
        map
    }

    fn time(
        &mut self,
        key: &str,
        node: &Node,
        make: fn(f64) -> Option<Seconds>,
    ) -> Option<Seconds> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a time beyond 2^53 is refused or forever either way"
        )]
        let number = match node.value {
            Value::Integer(number) => number as f64,
            Value::Float(number) => number,
            _ => {
                self.wrong(key, node, "a number");
                return None;
            }
        };
        let seconds = make(number);
        if seconds.is_none() {
            let message = "it must be more than zero, and less than forever".to_owned();
            self.error(node.line, Some(key), message);
        }
        seconds
    }

    pub(super) fn port(&mut self, key: &str, node: &Node) -> Option<u16> {
        let port = match node.value {
            Value::Integer(number) => u16::try_from(number).ok().filter(|port| *port > 0),
            _ => None,
        };
        if port.is_none() {
            self.wrong(key, node, "a port from 1 to 65535");
        }
        port
    }

    pub(super) fn transport(&mut self, node: &Node) -> Option<Transport> {
        let name = self.text("transport", node)?;
        let transport = Transport::from_name(&name);
        if transport.is_none() {
            self.not_one_of("transport", node.line, &name, keys::TRANSPORTS);
        }
        transport
    }

    /// A word of those that a key has, which is called `shown` in messages.
    pub(super) fn one_of(&mut self, key: &'static Key, shown: &str, node: &Node) -> Option<String> {
        let name = self.text(shown, node)?;
        if let Kind::OneOf(names) = key.kind
            && !names.contains(&name.as_str())
        {
            self.not_one_of(shown, node.line, &name, names);
            return None;
        }
        Some(name)
    }

    pub(super) fn protocol(&mut self, node: &Node) -> Option<String> {
        let name = self.text("protocol", node)?;
        match name.parse::<cocode_core::Protocol>() {
            Ok(_) => Some(name),
            Err(error) => {
                self.error(node.line, Some("protocol"), error.to_string());
                None
            }
        }
    }

    pub(super) fn not_one_of(&mut self, key: &str, line: u32, name: &str, names: &[&str]) {
        let message = format!("`{name}` is not one of {}", names.join(", "));
        let meant = nearest(name, names.iter().copied()).into_iter().next();
        self.report(
            Problem::error,
            line,
            Some(key),
            message,
            did_you_mean(meant),
        );
    }

    pub(super) fn unknown(
        &mut self,
        spelling: &str,
        line: u32,
        keys: &'static [Key],
        prefix: &str,
    ) {
        let meant = nearest(spelling, Key::spellings(keys, self.is_json))
            .into_iter()
            .next();
        let shown = format!("{prefix}{spelling}");
        let message = "there is no such key".to_owned();
        let hint = self.foreign_spelling(spelling).or(did_you_mean(meant));
        // Other tools have keys of their own in such files, which do us no harm. In our own files
        // a key that is not understood may be the one that was to keep something out.
        if self.is_json {
            self.report(Problem::warning, line, Some(&shown), message, hint);
        } else {
            self.report(Problem::error, line, Some(&shown), message, hint);
        }
    }

    /// What other tools call things, where it is more than another spelling.
    fn foreign_spelling(&self, spelling: &str) -> Option<String> {
        let hint = match spelling {
            "disabled" if !self.is_json => "write `enabled = false`",
            "timeout" if !self.is_json => "write `tool_timeout_sec`, in seconds",
            "type" if !self.is_json => "did you mean `transport`?",
            _ => return None,
        };
        Some(hint.to_owned())
    }

    pub(super) fn wrong(&mut self, key: &str, node: &Node, wanted: &str) {
        let message = format!("it is {}, but must be {wanted}", node.kind());
        self.error(node.line, Some(key), message);
    }

    pub(super) fn error(&mut self, line: u32, key: Option<&str>, message: String) {
        self.report(Problem::error, line, key, message, None);
    }

    pub(super) fn warning(&mut self, line: u32, key: Option<&str>, message: String) {
        self.report(Problem::warning, line, key, message, None);
    }

    pub(super) fn report(
        &mut self,
        make: fn(Origin, String) -> Problem,
        line: u32,
        key: Option<&str>,
        message: String,
        hint: Option<String>,
    ) {
        let mut problem = make(self.origin.at(line), message).server(self.server);
        problem.key = key.map(str::to_owned);
        problem.hint = hint;
        self.problems.push(problem);
    }
}
