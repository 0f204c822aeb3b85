//! Looks at messages of clients before rmcp does, so that a fixture of one era behaves as a server
//! does that knows nothing of the other. rmcp itself always knows both.

use serde_json::{Value, json};

use crate::era::Era;

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// What a modern client says about itself with each request.
const MODERN_META: &[&str] = &[
    PROTOCOL_VERSION,
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
];

/// Methods that the modern era does not have any more.
const REMOVED: &[&str] = &[
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// What becomes of a message.
#[derive(Debug, PartialEq)]
pub(crate) enum Screened {
    /// rmcp gets it.
    Pass(Value),
    /// The client gets this error.
    Refuse(Value),
    /// Nobody gets it.
    Drop,
}

/// Looks at the messages of one connection.
pub(crate) struct Screen {
    era: Era,
    /// Whether rmcp has seen the request with which a connection begins; it gives up a connection
    /// that begins with anything else.
    begun: bool,
}

impl Screen {
    /// For messages that come in a row, of which the first decides.
    pub(crate) fn of_connection(era: Era) -> Self {
        Self { era, begun: false }
    }

    /// For a message that comes alone.
    pub(crate) fn of_request(era: Era) -> Self {
        Self { era, begun: true }
    }

    pub(crate) fn look_at(&mut self, message: Value) -> Screened {
        let Some(method) = message["method"].as_str() else {
            return Screened::Pass(message);
        };
        if self.era == Era::Both {
            return Screened::Pass(message);
        }
        if message.get("id").is_none() {
            return if self.begun {
                Screened::Pass(message)
            } else {
                Screened::Drop
            };
        }
        let refusal = if self.era == Era::Legacy {
            self.begun |= method == "initialize";
            match method {
                "server/discover" => Some((METHOD_NOT_FOUND, "Method not found")),
                "ping" => None,
                _ => (!self.begun).then_some((INVALID_PARAMS, "Server not initialized")),
            }
        } else {
            self.begun |= method != "server/discover"
                && message["params"]["_meta"].get(PROTOCOL_VERSION).is_some();
            REMOVED.contains(&method).then_some((
                METHOD_NOT_FOUND,
                "Method not found; supported protocol version: 2026-07-28",
            ))
        };
        match refusal {
            Some((code, text)) => Screened::Refuse(error(&message["id"], code, text)),
            None if self.era == Era::Legacy => Screened::Pass(without_modern_meta(message)),
            None => Screened::Pass(message),
        }
    }
}

/// An error that answers a message.
pub(crate) fn error(id: &Value, code: i64, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } })
}

/// An old server takes no notice of what it does not know.
fn without_modern_meta(mut message: Value) -> Value {
    if let Some(meta) = message
        .pointer_mut("/params/_meta")
        .and_then(Value::as_object_mut)
    {
        for key in MODERN_META {
            meta.remove(*key);
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Screen, Screened};
    use crate::era::Era;

    fn request(method: &str) -> Value {
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "kept": true } } })
    }

    fn refused_with(screened: Screened) -> i64 {
        match screened {
            Screened::Refuse(error) => error["error"]["code"].as_i64().expect("a code"),
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn a_legacy_server_does_not_know_discovery() {
        let mut screen = Screen::of_connection(Era::Legacy);
        assert_eq!(
            refused_with(screen.look_at(request("server/discover"))),
            -32601
        );
        assert_eq!(refused_with(screen.look_at(request("tools/list"))), -32602);
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize" });
        assert_eq!(
            screen.look_at(initialize.clone()),
            Screened::Pass(initialize)
        );
    }

    #[test]
    fn a_legacy_server_takes_no_notice_of_modern_metadata() {
        let mut screen = Screen::of_request(Era::Legacy);
        let Screened::Pass(message) = screen.look_at(request("tools/list")) else {
            panic!("refused");
        };
        assert_eq!(message["params"]["_meta"], json!({ "kept": true }));
    }

    #[test]
    fn a_modern_server_does_not_know_the_handshake() {
        let mut screen = Screen::of_connection(Era::Modern);
        for method in ["initialize", "ping", "logging/setLevel"] {
            assert_eq!(
                refused_with(screen.look_at(request(method))),
                -32601,
                "{method}"
            );
        }
        let discover = request("server/discover");
        assert_eq!(screen.look_at(discover.clone()), Screened::Pass(discover));
    }

    #[test]
    fn notifications_before_the_beginning_are_dropped() {
        for era in [Era::Legacy, Era::Modern] {
            let mut screen = Screen::of_connection(era);
            let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            assert_eq!(screen.look_at(notification), Screened::Drop);
        }
    }
}
