//! What the client of a session calls itself, learned when it introduces itself and told to those who look
//! after the server.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;

use crate::frame::Frame;
use crate::serve::service::{Asked, Conversation, Endpoint, Serving, Sink};

/// Letters of a name that are kept.
const MAX_LETTERS: usize = 100;

/// The name, once it is known. The first one counts.
#[derive(Debug, Default)]
pub(super) struct ClientName(OnceLock<String>);

impl ClientName {
    pub(super) fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Learns it from a request, if that is the one that introduces a client.
    pub(super) fn learn(&self, frame: &Frame) {
        if frame.method() == "initialize"
            && let Some(name) = name_in(frame)
        {
            drop(self.0.set(name));
        }
    }
}

fn name_in(frame: &Frame) -> Option<String> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "clientInfo")]
        client: Info,
    }
    #[derive(Deserialize)]
    struct Info {
        name: String,
        #[serde(default)]
        version: Option<String>,
    }
    let Params { client } = frame.params()?.decode().ok()?;
    let mut words = client.name;
    if let Some(version) = client.version {
        words.push(' ');
        words.push_str(&version);
    }
    let mut name = String::new();
    for word in words.split(|letter: char| letter.is_whitespace() || is_unseen(letter)) {
        if !name.is_empty() && !word.is_empty() {
            name.push(' ');
        }
        name.push_str(word);
    }
    let name: String = name.chars().take(MAX_LETTERS).collect();
    (!name.is_empty()).then_some(name)
}

/// What steers a screen, or the direction in which text is read.
fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// An endpoint whose one client is listened to when it introduces itself.
pub(super) struct Introduced {
    endpoint: Arc<dyn Endpoint>,
    client: Arc<ClientName>,
}

impl Introduced {
    pub(super) fn new(endpoint: Arc<dyn Endpoint>, client: &Arc<ClientName>) -> Self {
        let client = Arc::clone(client);
        Self { endpoint, client }
    }

    fn listening(&self, conversation: Arc<dyn Conversation>) -> Arc<dyn Conversation> {
        Arc::new(Listening {
            conversation,
            client: Arc::clone(&self.client),
        })
    }
}

impl Endpoint for Introduced {
    fn converse(&self, outlet: Arc<dyn Sink>) -> Arc<dyn Conversation> {
        self.listening(self.endpoint.converse(outlet))
    }

    fn stateless(&self) -> Arc<dyn Conversation> {
        self.endpoint.stateless()
    }
}

struct Listening {
    conversation: Arc<dyn Conversation>,
    client: Arc<ClientName>,
}

impl Conversation for Listening {
    fn request(self: Arc<Self>, asked: Asked) -> Serving {
        self.client.learn(&asked.frame);
        Arc::clone(&self.conversation).request(asked)
    }

    fn notification(&self, frame: Frame) {
        self.conversation.notification(frame);
    }

    fn response(&self, frame: Frame) {
        self.conversation.response(frame);
    }

    fn ended(&self) {
        self.conversation.ended();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ClientName;
    use crate::frame::Frame;

    fn learned(method: &str, info: &serde_json::Value) -> Option<String> {
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": method, "params": { "clientInfo": info },
        });
        let frame = Frame::parse(message.to_string().into()).unwrap();
        let name = ClientName::default();
        name.learn(&frame);
        name.get().map(str::to_owned)
    }

    #[test]
    fn a_name_is_short_and_does_nothing() {
        let of = |info| learned("initialize", &info);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            of(json!({ "name": "inspector", "version": "1.2" })),
            text("inspector 1.2")
        );
        assert_eq!(of(json!({ "name": "inspector" })), text("inspector"));
        assert_eq!(
            of(json!({ "name": " a\n\u{1b}[2J\u{202e}b\u{200b}", "version": "" })),
            text("a [2J b")
        );
        let long = of(json!({ "name": "é".repeat(5_000), "version": "1" }));
        assert_eq!(long, Some("é".repeat(100)));
        assert_eq!(of(json!({ "name": "\u{7f}\n" })), None);
        assert_eq!(of(json!({ "name": 5 })), None);
        assert_eq!(of(json!(null)), None);
        assert_eq!(learned("tools/list", &json!({ "name": "x" })), None);
    }
}
