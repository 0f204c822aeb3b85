//! Tells a client once, as a log message, why its servers are not shared. Many clients show log messages to their
//! user, and few what is written to stderr.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use cocode_wire::Frame;
use cocode_wire::serve::{Asked, Conversation, Endpoint, Serving, Sink};
use serde_json::json;

/// An endpoint whose clients get a warning as soon as their session is open.
pub(super) struct WarnedEndpoint {
    endpoint: Arc<dyn Endpoint>,
    warning: String,
}

impl WarnedEndpoint {
    pub(super) fn new(endpoint: Arc<dyn Endpoint>, warning: String) -> Self {
        Self { endpoint, warning }
    }
}

impl Endpoint for WarnedEndpoint {
    fn converse(&self, outlet: Arc<dyn Sink>) -> Arc<dyn Conversation> {
        Arc::new(WarnedConversation {
            conversation: self.endpoint.converse(Arc::clone(&outlet)),
            outlet,
            warning: Mutex::new(Some(self.warning.clone())),
        })
    }

    fn stateless(&self) -> Arc<dyn Conversation> {
        self.endpoint.stateless()
    }
}

struct WarnedConversation {
    conversation: Arc<dyn Conversation>,
    outlet: Arc<dyn Sink>,
    /// Until it is sent.
    warning: Mutex<Option<String>>,
}

impl Conversation for WarnedConversation {
    fn request(self: Arc<Self>, asked: Asked) -> Serving {
        Arc::clone(&self.conversation).request(asked)
    }

    fn notification(&self, frame: Frame) {
        if frame.method() == "notifications/initialized" {
            let mut warning = self.warning.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(warning) = warning.take() {
                let params = json!({ "level": "warning", "logger": "cocode", "data": warning });
                let message = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
                if !self.outlet.send(Bytes::from(message.to_string())) {
                    tracing::debug!("the client did not take the warning");
                }
            }
        }
        self.conversation.notification(frame);
    }

    fn response(&self, frame: Frame) {
        self.conversation.response(frame);
    }

    fn ended(&self) {
        self.conversation.ended();
    }
}
