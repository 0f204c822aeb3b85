//! A minimal MCP client for probes, of either era, that answers whatever it is asked.

use serde_json::{Value, json};

use super::http::{Answer, Endpoint};
use super::legs::{LEGACY_REVISION, MODERN_REVISION};
use crate::failure::Failure;

/// More rounds than any tool of the fixture asks.
const MAX_ROUNDS: usize = 5;

pub(super) struct Client {
    endpoint: Endpoint,
    /// The session; None for a client without a handshake.
    session: Option<String>,
}

/// What becomes of a request.
#[derive(Debug)]
pub(super) struct Outcome {
    /// `result`, or else `error`.
    pub(super) result: Result<Value, Value>,
    /// The methods of what the client was asked meanwhile.
    pub(super) asked: Vec<String>,
}

/// How the client answers a question, given its method and parameters.
pub(super) type Answerer = fn(&str, &Value) -> Value;

impl Client {
    pub(super) fn modern(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            session: None,
        }
    }

    /// Initializes a session.
    pub(super) fn legacy(endpoint: Endpoint) -> Result<Self, Failure> {
        let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": LEGACY_REVISION,
            "capabilities": capabilities(),
            "clientInfo": { "name": "probe", "version": "1" },
        } });
        let mut answer = endpoint.send("POST", &[], &initialize.to_string())?;
        let session = answer.header("mcp-session-id").map(str::to_owned);
        let message = answer.next_message()?.unwrap_or_default();
        if message["result"]["protocolVersion"] != LEGACY_REVISION {
            return Err(Failure::new(format!("initialize gave {message}")));
        }
        let session = session.ok_or_else(|| Failure::new("there is no session"))?;
        let client = Self {
            endpoint,
            session: Some(session),
        };
        client.notify(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(client)
    }

    pub(super) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Sends a request and answers questions until its result is there.
    pub(super) fn request(
        &self,
        method: &str,
        params: &Value,
        answer: Answerer,
    ) -> Result<Outcome, Failure> {
        let mut asked = Vec::new();
        let mut params = params.clone();
        for round in 0..MAX_ROUNDS {
            let message = self.round(round, method, &params, answer, &mut asked)?;
            let mut message = match message {
                Value::Object(message) => message,
                other => return Err(Failure::new(format!("{method} gave {other}"))),
            };
            let Some(result) = message.remove("result") else {
                let error = message.remove("error").unwrap_or_default();
                let result = Err(error);
                return Ok(Outcome { result, asked });
            };
            if result["resultType"] != "input_required" {
                let result = Ok(result);
                return Ok(Outcome { result, asked });
            }
            let questions = result["inputRequests"].as_object();
            let mut answers = serde_json::Map::new();
            for (name, question) in questions.into_iter().flatten() {
                let method = question["method"].as_str().unwrap_or_default();
                asked.push(method.to_owned());
                answers.insert(name.clone(), answer(method, &question["params"]));
            }
            params["inputResponses"] = Value::Object(answers);
            match result.get("requestState") {
                Some(state) => params["requestState"] = state.clone(),
                None => {
                    if let Some(params) = params.as_object_mut() {
                        params.remove("requestState");
                    }
                }
            }
        }
        Err(Failure::new(format!("{method} asks without an end")))
    }

    /// Sends one request and reads up to its response.
    fn round(
        &self,
        round: usize,
        method: &str,
        params: &Value,
        answer: Answerer,
        asked: &mut Vec<String>,
    ) -> Result<Value, Failure> {
        let id = format!("probe-{round}");
        let mut params = params.clone();
        if self.session.is_none() {
            params["_meta"] = modern_meta();
        }
        let name = params["name"].as_str().or_else(|| params["uri"].as_str());
        let name = name.map(str::to_owned);
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let mut response = self.post(&request, method, name.as_deref())?;
        while let Some(message) = response.next_message()? {
            if message["id"] == id && message.get("method").is_none() {
                return Ok(message);
            }
            let Some(method) = message["method"].as_str() else {
                return Err(Failure::new(format!("nobody asked for {message}")));
            };
            let Some(id) = message.get("id") else {
                continue;
            };
            if self.session.is_none() {
                return Err(Failure::new(format!("a modern client was sent {message}")));
            }
            asked.push(method.to_owned());
            let result = answer(method, &message["params"]);
            self.notify(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
        }
        let status = response.status;
        Err(Failure::new(format!(
            "{method} ended with {status} and no answer"
        )))
    }

    /// Sends what has no answer.
    fn notify(&self, message: &Value) -> Result<(), Failure> {
        let method = message["method"].as_str().unwrap_or_default();
        let answer = self.post(message, method, None)?;
        match answer.status {
            200..=299 => Ok(()),
            status => Err(Failure::new(format!("{message} gave the status {status}"))),
        }
    }

    fn post(&self, message: &Value, method: &str, name: Option<&str>) -> Result<Answer, Failure> {
        let mut headers = Vec::new();
        if let Some(session) = &self.session {
            headers.push(("Mcp-Session-Id", session.as_str()));
            headers.push(("MCP-Protocol-Version", LEGACY_REVISION));
        } else {
            headers.push(("MCP-Protocol-Version", MODERN_REVISION));
            headers.push(("Mcp-Method", method));
            headers.extend(name.map(|name| ("Mcp-Name", name)));
        }
        self.endpoint.send("POST", &headers, &message.to_string())
    }
}

/// What the probes can be asked.
fn capabilities() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })
}

fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN_REVISION,
        "io.modelcontextprotocol/clientInfo": { "name": "probe", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities(),
    })
}
