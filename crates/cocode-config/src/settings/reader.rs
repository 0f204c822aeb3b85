//! Reads values as the tables of keys want them, and says what is wrong where they are not.

mod gateway;

use cocode_core::{Rule, ToolSearchMode, nearest};

use super::keys::{SettingKey, SettingKind};
use super::permissions::rule_list;
use super::{GatewayStore, StartConcurrency};
use crate::document::{Member, Node, Value};
use crate::entry::Seconds;
use crate::parse::did_you_mean;
use crate::problem::{Origin, Problem};
use crate::sign_in_url::{Purpose, objection};
use crate::url_pattern::UrlPattern;

/// A value that was understood.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Given {
    Text(String),
    Texts(Vec<String>),
    Boolean(bool),
    Count(u64),
    Port(u16),
    Percent(f64),
    Price(f64),
    Multiplier(f64),
    Seconds(Seconds),
    StartConcurrency(StartConcurrency),
    SearchMode(ToolSearchMode),
    UrlPattern(UrlPattern),
    Store(GatewayStore),
    Rules(Vec<(Rule, Origin)>),
}

/// Collects what is wrong in one file.
pub(crate) struct Reader<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(origin: &'a Origin) -> Self {
        let problems = Vec::new();
        Self { origin, problems }
    }

    /// The members of what must be a table.
    pub(crate) fn table<'n>(&mut self, path: &str, node: &'n Node) -> Option<&'n [Member]> {
        match node.members() {
            Some(members) => Some(members),
            None => self.wrong(path, node, "a table"),
        }
    }

    /// The elements of what must be a list.
    pub(crate) fn list<'n>(&mut self, path: &str, node: &'n Node) -> Option<&'n [Node]> {
        match &node.value {
            Value::List(nodes) => Some(nodes),
            _ => self.wrong(path, node, "a list"),
        }
    }

    /// The key of this name; an error if there is none.
    pub(crate) fn known(
        &mut self,
        keys: &'static [SettingKey],
        prefix: &str,
        member: &Member,
    ) -> Option<&'static SettingKey> {
        let found = SettingKey::find(keys, &member.key);
        if found.is_none() {
            let names = keys.iter().map(|key| key.name);
            let meant = nearest(&member.key, names).into_iter().next();
            let path = format!("{prefix}{}", member.key);
            self.report(
                member.line,
                &path,
                "there is no such key",
                did_you_mean(meant),
            );
        }
        found
    }

    /// A value of a key that is no table and no list of tables.
    pub(crate) fn value(&mut self, key: &SettingKey, path: &str, node: &Node) -> Option<Given> {
        let given = match &key.kind {
            SettingKind::Text => Given::Text(self.text(path, node)?),
            SettingKind::OneOf(words) => Given::Text(self.one_of(words, path, node)?),
            SettingKind::Boolean => Given::Boolean(self.boolean(path, node)?),
            SettingKind::Seconds => Given::Seconds(self.seconds(path, node)?),
            SettingKind::Count => Given::Count(self.count(path, node)?),
            SettingKind::CountOrAll => Given::StartConcurrency(self.count_or_all(path, node)?),
            SettingKind::Percent => Given::Percent(self.percent(path, node)?),
            SettingKind::Between(least, most) => {
                Given::Count(self.between(*least, *most, path, node)?)
            }
            SettingKind::Multiplier => Given::Multiplier(self.multiplier(path, node)?),
            SettingKind::Price => Given::Price(self.price(path, node)?),
            SettingKind::SearchMode => Given::SearchMode(self.search_mode(path, node)?),
            SettingKind::Listen => Given::Text(self.listen(path, node)?),
            SettingKind::HttpUrl => Given::Text(self.http_url(path, node)?),
            SettingKind::DocumentUrl => Given::Text(self.document_url(path, node)?),
            SettingKind::Port => Given::Port(self.port(path, node)?),
            SettingKind::SecretReference => Given::Text(self.reference(path, node)?),
            SettingKind::TextList => Given::Texts(self.texts(path, node)?),
            SettingKind::SomeOf(words) => Given::Texts(self.some_of(words, path, node)?),
            SettingKind::Directories => Given::Texts(self.directories(path, node)?),
            SettingKind::Command => Given::Texts(self.command(path, node)?),
            SettingKind::UrlPattern => Given::UrlPattern(self.url_pattern(path, node)?),
            SettingKind::SafeUrl => Given::Text(self.safe_url(path, node)?),
            SettingKind::Issuers => Given::Texts(self.issuers(path, node)?),
            SettingKind::Store => Given::Store(self.store(path, node)?),
            SettingKind::Word => Given::Text(self.word(path, node)?),
            SettingKind::Words => Given::Texts(self.words(path, node)?),
            SettingKind::Hosts => Given::Texts(self.hosts(path, node)?),
            SettingKind::Origins => Given::Texts(self.origins(path, node)?),
            SettingKind::Rules => Given::Rules(rule_list(self, path, node)?),
            SettingKind::Answers
            | SettingKind::Table(_)
            | SettingKind::Named(_)
            | SettingKind::Tables(_) => {
                debug_assert!(false, "{path} is not a plain value");
                return None;
            }
        };
        Some(given)
    }

    pub(crate) fn text(&mut self, path: &str, node: &Node) -> Option<String> {
        match &node.value {
            Value::Text(text) if text.trim().is_empty() => {
                self.error(node.line, path, "it is empty");
                None
            }
            Value::Text(text) => Some(text.clone()),
            _ => self.wrong(path, node, "a text"),
        }
    }

    pub(crate) fn one_of(&mut self, words: &[&str], path: &str, node: &Node) -> Option<String> {
        let text = self.text(path, node)?;
        if words.contains(&text.as_str()) {
            return Some(text);
        }
        let meant = nearest(&text, words.iter().copied()).into_iter().next();
        let message = format!("`{text}` is not one of {}", words.join(", "));
        self.report(node.line, path, &message, did_you_mean(meant));
        None
    }

    pub(crate) fn boolean(&mut self, path: &str, node: &Node) -> Option<bool> {
        match node.value {
            Value::Boolean(truth) => Some(truth),
            _ => self.wrong(path, node, "true or false"),
        }
    }

    fn seconds(&mut self, path: &str, node: &Node) -> Option<Seconds> {
        let number = self.number(path, node)?;
        let seconds = Seconds::new(number);
        if seconds.is_none() {
            let message = "it must be more than zero, and less than forever";
            self.error(node.line, path, message);
        }
        seconds
    }

    fn number(&mut self, path: &str, node: &Node) -> Option<f64> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a number beyond 2^53 is refused or means forever either way"
        )]
        match node.value {
            Value::Integer(number) => Some(number as f64),
            Value::Float(number) => Some(number),
            _ => self.wrong(path, node, "a number"),
        }
    }

    fn count(&mut self, path: &str, node: &Node) -> Option<u64> {
        match node.value {
            Value::Integer(number) if number > 0 => u64::try_from(number).ok(),
            Value::Integer(_) => {
                self.error(node.line, path, "it must be more than zero");
                None
            }
            _ => self.wrong(path, node, "a whole number"),
        }
    }

    fn count_or_all(&mut self, path: &str, node: &Node) -> Option<StartConcurrency> {
        match &node.value {
            Value::Text(text) if text == "all" => Some(StartConcurrency::All),
            Value::Integer(_) => self.count(path, node).map(StartConcurrency::AtMost),
            _ => self.wrong(path, node, "a whole number or \"all\""),
        }
    }

    fn percent(&mut self, path: &str, node: &Node) -> Option<f64> {
        let number = self.number(path, node)?;
        if (1.0..=100.0).contains(&number) {
            return Some(number);
        }
        let hint = (number > 0.0 && number < 1.0).then(|| {
            let percent = number * 100.0;
            format!("it is in percent: write {percent}")
        });
        self.report(node.line, path, "it must be from 1 to 100", hint);
        None
    }

    fn between(&mut self, least: u64, most: u64, path: &str, node: &Node) -> Option<u64> {
        let Value::Integer(number) = node.value else {
            return self.wrong(path, node, "a whole number");
        };
        let number = u64::try_from(number).ok();
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let message = format!("it must be from {least} to {most}");
            self.error(node.line, path, &message);
        }
        number
    }

    fn multiplier(&mut self, path: &str, node: &Node) -> Option<f64> {
        let number = self.number(path, node)?;
        if number.is_finite() && number >= 1.0 {
            return Some(number);
        }
        self.error(node.line, path, "it must be a number of at least 1");
        None
    }

    fn price(&mut self, path: &str, node: &Node) -> Option<f64> {
        let number = self.number(path, node)?;
        if number.is_finite() && number >= 0.0 {
            return Some(number);
        }
        self.error(
            node.line,
            path,
            "it must be zero or more, and less than forever",
        );
        None
    }

    fn search_mode(&mut self, path: &str, node: &Node) -> Option<ToolSearchMode> {
        match &node.value {
            Value::Boolean(true) => Some(ToolSearchMode::On),
            Value::Boolean(false) => Some(ToolSearchMode::Off),
            Value::Text(text) => match text.parse() {
                Ok(mode) => Some(mode),
                Err(error) => {
                    self.error(node.line, path, &format!("{error}"));
                    None
                }
            },
            _ => self.wrong(path, node, "true, false, \"auto\" or \"auto:N\""),
        }
    }

    fn listen(&mut self, path: &str, node: &Node) -> Option<String> {
        let text = self.text(path, node)?;
        let is_address = text.parse::<std::net::SocketAddr>().is_ok();
        let local = text.strip_prefix("localhost:");
        if is_address || local.is_some_and(|port| port.parse::<u16>().is_ok()) {
            return Some(text);
        }
        let hint = "write an address and a port, as in 127.0.0.1:7777".to_owned();
        self.report(node.line, path, "this is nothing to listen at", Some(hint));
        None
    }

    fn http_url(&mut self, path: &str, node: &Node) -> Option<String> {
        let text = self.text(path, node)?;
        let message = match url::Url::parse(&text) {
            Ok(url) if !matches!(url.scheme(), "http" | "https") => {
                "it must begin with http:// or https://".to_owned()
            }
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                "it must not hold credentials".to_owned()
            }
            Ok(_) => return Some(text),
            Err(error) => format!("this is no address: {error}"),
        };
        self.error(node.line, path, &message);
        None
    }

    fn document_url(&mut self, path: &str, node: &Node) -> Option<String> {
        let text = self.text(path, node)?;
        match objection(&text, Purpose::Document) {
            None => Some(text),
            Some(message) => {
                self.error(node.line, path, message);
                None
            }
        }
    }

    fn port(&mut self, path: &str, node: &Node) -> Option<u16> {
        let port = match node.value {
            Value::Integer(number) => u16::try_from(number).ok().filter(|port| *port > 0),
            _ => None,
        };
        match port {
            Some(port) => Some(port),
            None => self.wrong(path, node, "a port from 1 to 65535"),
        }
    }

    fn reference(&mut self, path: &str, node: &Node) -> Option<String> {
        let text = self.text(path, node)?;
        if crate::expand::is_reference(&text) {
            return Some(text);
        }
        // The text may be the secret, so it is not repeated.
        let message = "a secret cannot be written here, only where it is";
        let hint = "write `keyring:NAME`, `cmd:COMMAND` or `${VAR}`".to_owned();
        self.report(node.line, path, message, Some(hint));
        None
    }

    fn texts(&mut self, path: &str, node: &Node) -> Option<Vec<String>> {
        let Value::List(nodes) = &node.value else {
            return self.wrong(path, node, "a list of texts");
        };
        let mut texts = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            match &node.value {
                Value::Text(text) => texts.push(text.clone()),
                _ => return self.wrong(&format!("{path}[{index}]"), node, "a text"),
            }
        }
        Some(texts)
    }

    fn some_of(&mut self, words: &[&str], path: &str, node: &Node) -> Option<Vec<String>> {
        let nodes = self.list(path, node)?;
        if nodes.is_empty() {
            let message = format!("it must name at least one of {}", words.join(", "));
            self.error(node.line, path, &message);
            return None;
        }
        let places = nodes.iter().enumerate();
        places
            .map(|(index, node)| self.one_of(words, &format!("{path}[{index}]"), node))
            .collect()
    }

    fn directories(&mut self, path: &str, node: &Node) -> Option<Vec<String>> {
        let directories = self.texts(path, node)?;
        for (index, directory) in directories.iter().enumerate() {
            if !directory.starts_with('/') && !directory.starts_with("~/") {
                let hint = "write an absolute path, or one that begins with ~/".to_owned();
                let message = "this is a place in every directory";
                let path = format!("{path}[{index}]");
                self.report(node.line, &path, message, Some(hint));
                return None;
            }
        }
        Some(directories)
    }

    fn command(&mut self, path: &str, node: &Node) -> Option<Vec<String>> {
        if matches!(node.value, Value::Text(_)) {
            let hint = "write it as in [\"npx\", \"-y\", \"package\"]".to_owned();
            let message = "it is a text, but must be a list: the program and its arguments";
            self.report(node.line, path, message, Some(hint));
            return None;
        }
        let words = self.texts(path, node)?;
        if words.first().is_none_or(String::is_empty) {
            self.error(node.line, path, "it names no program");
            return None;
        }
        Some(words)
    }

    fn url_pattern(&mut self, path: &str, node: &Node) -> Option<UrlPattern> {
        match self.text(path, node)?.parse() {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                self.error(node.line, path, &format!("{error}"));
                None
            }
        }
    }

    pub(crate) fn wrong<T>(&mut self, path: &str, node: &Node, wanted: &str) -> Option<T> {
        let message = format!("it is {}, but must be {wanted}", node.kind());
        self.error(node.line, path, &message);
        None
    }

    pub(crate) fn error(&mut self, line: u32, path: &str, message: &str) {
        self.report(line, path, message, None);
    }

    pub(crate) fn report(&mut self, line: u32, path: &str, message: &str, hint: Option<String>) {
        let mut problem = Problem::error(self.origin.at(line), message).key(path);
        problem.hint = hint;
        self.problems.push(problem);
    }
}
