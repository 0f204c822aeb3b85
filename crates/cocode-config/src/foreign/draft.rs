//! Puts one server into the shape of another tool, key by key, and says of everything that is
//! left why it does not go along.

use std::collections::BTreeMap;

use super::reference::{self, Dialect, Reason, Secrets};
use super::scene::Scene;
use crate::entry::{Entry, Seconds, Text, Transport};
use crate::problem::Problem;

/// A value to be written, in JSON or TOML.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Output {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    List(Vec<Self>),
    Table(Members),
}

/// Keys with values, in the order in which they are written.
pub(super) type Members = Vec<(String, Output)>;

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    Program,
    /// HTTP, with a fallback to HTTP+SSE if no transport is named.
    Http(Option<Transport>),
    Sse,
    Ws,
    Unix,
    Nothing,
}

/// What of a server is not written yet, and what is.
pub(super) struct Draft<'a> {
    scene: &'a Scene<'a>,
    server: &'a str,
    /// Tool code takes out what it writes; what stays is reported.
    pub(super) entry: Entry,
    members: Members,
    problems: Vec<Problem>,
}

/// A server in the shape of a tool, unless it is of no use there, and what was left out.
pub(super) struct Drafted {
    pub(super) members: Option<Members>,
    pub(super) problems: Vec<Problem>,
}

impl<'a> Draft<'a> {
    pub(super) fn of(scene: &'a Scene<'a>, server: &'a str, entry: Entry) -> Self {
        Self {
            scene,
            server,
            entry,
            members: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Everything that was written, with a word on everything that was not.
    pub(super) fn finish(mut self) -> Drafted {
        let title = self.scene.tool.title();
        for line in self.entry.lines() {
            let message = format!("it is left out: {title} has no such setting");
            self.warn(&line.key, message);
        }
        let is_useless = self.problems.iter().any(Problem::is_error);
        Drafted {
            members: (!is_useless).then_some(self.members),
            problems: self.problems,
        }
    }

    /// How the server is reached; the transport then counts as written.
    pub(super) fn reach(&mut self) -> Reach {
        let transport = self.entry.transport.take();
        let url = self.entry.url.as_deref().unwrap_or_default();
        let has_scheme = |schemes: &[&str]| schemes.iter().any(|scheme| url.starts_with(scheme));
        match (&self.entry.command, transport) {
            (Some(_), _) => Reach::Program,
            (None, _) if self.entry.url.is_none() => Reach::Nothing,
            (None, Some(Transport::Sse)) => Reach::Sse,
            (None, Some(Transport::Ws)) => Reach::Ws,
            (None, Some(Transport::Unix)) => Reach::Unix,
            (None, None) if has_scheme(&["ws://", "wss://"]) => Reach::Ws,
            (None, _) if has_scheme(&["unix:"]) => Reach::Unix,
            (None, transport) => Reach::Http(transport),
        }
    }

    pub(super) fn put(&mut self, key: &str, value: Output) {
        self.members.push((key.to_owned(), value));
    }

    pub(super) fn word(&mut self, key: &str, word: &str) {
        self.put(key, Output::Text(word.to_owned()));
    }

    /// `command` and `args`, as most tools have them.
    pub(super) fn program(&mut self) {
        for word in self.command().into_iter().take(1) {
            self.put("command", word);
        }
        let args = self.args();
        if !args.is_empty() {
            self.put("args", Output::List(args));
        }
    }

    /// The program and its arguments, as one list.
    pub(super) fn command_line(&mut self) -> Vec<Output> {
        let mut line = self.command();
        line.extend(self.args());
        line
    }

    fn command(&mut self) -> Vec<Output> {
        let command = self.entry.command.take();
        let command = command.and_then(|text| self.expanded("command", &text));
        command.map(Output::Text).into_iter().collect()
    }

    fn args(&mut self) -> Vec<Output> {
        let args = std::mem::take(&mut self.entry.args);
        let args = args.iter().enumerate();
        args.filter_map(|(index, text)| self.expanded(&format!("args[{index}]"), text))
            .map(Output::Text)
            .collect()
    }

    pub(super) fn cwd(&mut self, key: &str) {
        if let Some(cwd) = self.entry.cwd.take()
            && let Some(cwd) = self.expanded("cwd", &cwd)
        {
            self.put(key, Output::Text(cwd));
        }
    }

    pub(super) fn url(&mut self, key: &str) {
        if let Some(url) = self.entry.url.take()
            && let Some(url) = self.expanded("url", &url)
        {
            self.put(key, Output::Text(url));
        }
    }

    /// The variables of the program, with those that are passed on, where the tool has references.
    pub(super) fn env(&mut self, key: &str) {
        let mut values = std::mem::take(&mut self.entry.env);
        if self.has_references() {
            for name in std::mem::take(&mut self.entry.env_vars) {
                let reference = Text(reference::to_variable(&name));
                values.entry(name).or_insert(reference);
            }
        }
        self.values("env", key, values);
    }

    /// All headers, with those whose values are in variables, where the tool has references.
    pub(super) fn headers(&mut self, key: &str) {
        let mut values = std::mem::take(&mut self.entry.headers);
        if self.has_references() {
            for (header, name) in std::mem::take(&mut self.entry.env_http_headers) {
                values.insert(header, Text(reference::to_variable(&name)));
            }
            if let Some(name) = self.entry.bearer_token_env_var.take() {
                let value = format!("Bearer {}", reference::to_variable(&name));
                values.insert("Authorization".to_owned(), Text(value));
            }
        }
        self.values("headers", key, values);
    }

    /// Values that may be secret. One that cannot be written is left out alone.
    pub(super) fn values(&mut self, ours: &str, key: &str, values: BTreeMap<String, Text>) {
        let dialect = self.scene.tool.dialect();
        let mut members = Members::new();
        for (name, Text(text)) in values {
            match reference::export(&text, dialect, Secrets::Allowed) {
                Ok(text) => members.push((name, Output::Text(text))),
                Err(Reason(reason)) => {
                    let message = format!("it is left out: {reason}");
                    self.warn(&format!("{ours}.{name}"), message);
                }
            }
        }
        if !members.is_empty() {
            self.put(key, Output::Table(members));
        }
    }

    /// Whether the server is used, for tools that have such a key.
    pub(super) fn enabled(&mut self, key: &str) {
        if let Some(enabled) = self.entry.enabled.take() {
            self.put(key, Output::Boolean(enabled));
        }
    }

    /// For tools without such a key, a server that is off would come on.
    pub(super) fn enabled_only(&mut self) {
        if self.entry.enabled.take() == Some(false) {
            let title = self.scene.tool.title();
            self.refuse(
                "enabled",
                format!("it is off here, and the file of {title} has no switch for that"),
            );
        }
    }

    pub(super) fn boolean(&mut self, key: &str, truth: Option<bool>) {
        if let Some(truth) = truth {
            self.put(key, Output::Boolean(truth));
        }
    }

    pub(super) fn optional(&mut self, key: &str, word: Option<String>) {
        if let Some(word) = word {
            self.put(key, Output::Text(word));
        }
    }

    pub(super) fn words(&mut self, key: &str, words: Option<Vec<String>>) {
        if let Some(words) = words {
            let words = words.into_iter().map(Output::Text).collect();
            self.put(key, Output::List(words));
        }
    }

    pub(super) fn milliseconds(&mut self, key: &str, time: Option<Seconds>) {
        if let Some(Seconds(seconds)) = time {
            self.put(key, number(seconds * 1000.0));
        }
    }

    pub(super) fn seconds(&mut self, key: &str, time: Option<Seconds>) {
        if let Some(Seconds(seconds)) = time {
            self.put(key, number(seconds));
        }
    }

    /// For tools that count in whole seconds: rather one too many.
    pub(super) fn whole_seconds(&mut self, ours: &str, key: &str, time: Option<Seconds>) {
        if let Some(Seconds(seconds)) = time {
            let whole = seconds.ceil();
            if number(whole) != number(seconds) {
                let title = self.scene.tool.title();
                let message = format!("{title} takes whole seconds: it is rounded up");
                self.warn(ours, message);
            }
            self.put(key, number(whole));
        }
    }

    /// A text in the spelling of the tool; without it the server is of no use.
    pub(super) fn expanded(&mut self, ours: &str, text: &str) -> Option<String> {
        match reference::export(text, self.scene.tool.dialect(), Secrets::None) {
            Ok(text) => Some(text),
            Err(Reason(reason)) => {
                self.refuse(ours, reason);
                None
            }
        }
    }

    /// A reference to a variable in the spelling of the tool.
    pub(super) fn variable(&mut self, ours: &str, name: &str) -> Option<String> {
        self.expanded(ours, &reference::to_variable(name))
    }

    /// A transport that the tool does not have.
    pub(super) fn refuse_reach(&mut self, reach: Reach) {
        let title = self.scene.tool.title();
        let message = match reach {
            Reach::Program => format!("{title} starts no programs"),
            Reach::Http(_) => format!("the file of {title} has no servers with addresses"),
            Reach::Sse => format!("{title} does not speak HTTP+SSE"),
            Reach::Ws => format!("{title} does not speak WebSocket"),
            Reach::Unix => format!("{title} does not connect to unix sockets"),
            Reach::Nothing => "it has neither a command nor an address".to_owned(),
        };
        self.refuse("transport", message);
        // Nothing of it is written, so nothing more is to be said about it.
        self.entry = Entry::default();
    }

    fn refuse(&mut self, key: &str, message: String) {
        let problem = Problem::error(self.scene.origin(), message);
        self.problems.push(problem.server(self.server).key(key));
    }

    fn warn(&mut self, key: &str, message: String) {
        let problem = Problem::warning(self.scene.origin(), message);
        self.problems.push(problem.server(self.server).key(key));
    }

    fn has_references(&self) -> bool {
        self.scene.tool.dialect() != Dialect::Plain
    }
}

/// A number, whole if it is.
fn number(number: f64) -> Output {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it was just compared with its whole part, and is far smaller"
    )]
    if number.fract() == 0.0 && number.abs() < 9e15 {
        Output::Integer(number as i64)
    } else {
        Output::Float(number)
    }
}
