//! A scripted provider of models: the three interfaces that are in use, on the loopback interface.
//!
//! It answers in the events that the providers document, in their order and with their members, and
//! checks every request against the rules that they document. What breaks one is answered with 400, as
//! the real thing does, and remembered for the test.

mod anthropic;
mod anthropic_rules;
mod chat;
mod chat_rules;
mod program;
mod responses;
mod responses_rules;
mod script;
mod serve;

use std::fs::File;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::HttpRequest;
use crate::recorder::Recorder;
use crate::script::Script;
use crate::tcp::Port;

pub use program::scripted_model_main;
pub use script::{ModelScript, ModelTurn};

use serve::Shared;

/// Which interface a scripted model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelFormat {
    /// `POST /v1/messages` of Anthropic.
    Anthropic,
    /// `POST /v1/responses` of `OpenAI`.
    Responses,
    /// `POST /v1/chat/completions` of `OpenAI` and many others.
    Chat,
}

/// A running provider. Dropping it ends it and closes all its connections.
#[derive(Debug)]
pub struct ScriptedModel {
    port: Port,
    format: ModelFormat,
    shared: Arc<Shared>,
}

impl ModelScript {
    /// Starts the script on a free port of the loopback interface.
    pub fn start(self, format: ModelFormat) -> ScriptedModel {
        self.start_logging(format, None)
    }

    fn start_logging(self, format: ModelFormat, log: Option<File>) -> ScriptedModel {
        let shared = Arc::new(Shared::new(format, self, log));
        let port = Port::start(&Script::new(), serve::serving(&shared));
        ScriptedModel {
            port,
            format,
            shared,
        }
    }
}

impl ScriptedModel {
    /// The address that people configure: with the version where that is usual.
    pub fn base_url(&self) -> String {
        let address = self.port.address();
        match self.format {
            ModelFormat::Anthropic | ModelFormat::Responses => format!("http://{address}"),
            ModelFormat::Chat => format!("http://{address}/v1"),
        }
    }

    /// Every request, recorded before it is answered.
    pub fn requests(&self) -> &Recorder<HttpRequest> {
        &self.shared.requests
    }

    /// The bodies of all requests so far.
    pub fn bodies(&self) -> Vec<Value> {
        let requests = self.shared.requests.all();
        requests.iter().map(HttpRequest::json).collect()
    }

    /// Every request whose connection was closed before the answer was complete.
    pub fn abandoned(&self) -> &Recorder<HttpRequest> {
        &self.shared.abandoned
    }

    /// What was wrong with requests so far, each with the number of its request.
    pub fn violations(&self) -> Vec<String> {
        self.shared.violations.all()
    }

    /// Fails the test if a request broke a rule, or there were more than the script has turns for.
    pub fn assert_no_violations(&self) {
        let found = self.violations();
        assert!(found.is_empty(), "the provider complains: {found:#?}");
    }

    /// Ends the server: open connections are reset, new ones refused.
    pub fn kill(&self) {
        self.port.kill();
    }
}

impl ModelFormat {
    /// What of a request breaks the rules of the provider.
    fn violations(self, request: &HttpRequest) -> Vec<String> {
        let mut report = Report::default();
        let body = request.json();
        if request.method != "POST" {
            report.add(format!("{} is not allowed", request.method));
        }
        report.header(request, "content-type", "application/json");
        if body.get("stream") != Some(&Value::Bool(true)) {
            report.add("stream: this server only streams".into());
        }
        if body
            .get("model")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .is_empty()
        {
            report.add("model: Field required".into());
        }
        match self {
            Self::Anthropic => anthropic_rules::check(&mut report, request, &body),
            Self::Responses => responses_rules::check(&mut report, request, &body),
            Self::Chat => chat_rules::check(&mut report, request, &body),
        }
        report.found
    }

    fn path(self) -> &'static str {
        match self {
            Self::Anthropic => "/v1/messages",
            Self::Responses => "/v1/responses",
            Self::Chat => "/v1/chat/completions",
        }
    }
}

/// What is wrong with a request.
#[derive(Debug, Default)]
struct Report {
    found: Vec<String>,
}

impl Report {
    fn add(&mut self, what: String) {
        self.found.push(what);
    }

    /// A header that has to begin with this.
    fn header(&mut self, request: &HttpRequest, name: &str, expected: &str) {
        let value = request.header(name).unwrap_or_default();
        if value.is_empty() || !value.starts_with(expected) {
            self.add(format!("{name}: header is required"));
        }
    }

    /// Members that the provider does not know.
    fn known(&mut self, place: &str, value: &Value, known: &[&str]) {
        let members = value
            .as_object()
            .into_iter()
            .flat_map(|members| members.keys());
        for name in members.filter(|name| !known.contains(&name.as_str())) {
            self.add(format!("{place}{name}: Extra inputs are not permitted"));
        }
    }
}

/// The list at a member, or an empty one.
fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    let list = value.get(name).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

/// The text at a member, or nothing.
fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
