//! Parting from a front in order: the daemon says that it leaves, and serves what is asked until the
//! front has heard that. So no request is refused that the next daemon would serve.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use cocode_wire::Frame;
use cocode_wire::serve::{Asked, Conversation, Endpoint, Serving, Sink};
use tokio::sync::Notify;

use crate::daemon::hello::{LEAVING, LEFT_METHOD, warning};

/// How long a front may take to hear it.
const HEARD_WITHIN: Duration = Duration::from_secs(5);

/// What a front is served, by somebody who can part from it.
pub(super) struct Farewell {
    endpoint: Arc<dyn Endpoint>,
    outlet: OnceLock<Arc<dyn Sink>>,
    /// The front asks for nothing more.
    has_parted: Arc<Notify>,
}

impl Farewell {
    pub(super) fn new(endpoint: Arc<dyn Endpoint>) -> Self {
        Self {
            endpoint,
            outlet: OnceLock::new(),
            has_parted: Arc::default(),
        }
    }

    /// Tells whoever runs the front of something.
    pub(super) fn warn(&self, text: &str) {
        let outlet = self.outlet.get();
        if !outlet.is_some_and(|outlet| outlet.send(Bytes::from(warning(text)))) {
            tracing::debug!("a front was not told of the configuration");
        }
    }

    /// Says that the daemon leaves, and waits until the front asks for nothing more.
    pub(super) async fn part(&self) {
        let outlet = self.outlet.get();
        if !outlet.is_some_and(|outlet| outlet.send(Bytes::from_static(LEAVING))) {
            return;
        }
        let parted = tokio::time::timeout(HEARD_WITHIN, self.has_parted.notified());
        match parted.await {
            Ok(()) => tracing::info!("a front asks for nothing more"),
            Err(_elapsed) => tracing::info!("a front did not hear that the daemon ends"),
        }
    }
}

impl Endpoint for Farewell {
    fn converse(&self, outlet: Arc<dyn Sink>) -> Arc<dyn Conversation> {
        let conversation = self.endpoint.converse(Arc::clone(&outlet));
        // There is one conversation on a connection.
        drop(self.outlet.set(outlet));
        Arc::new(Parting {
            conversation,
            has_parted: Arc::clone(&self.has_parted),
        })
    }

    fn stateless(&self) -> Arc<dyn Conversation> {
        self.endpoint.stateless()
    }
}

/// A conversation that may be told that nothing more is asked.
struct Parting {
    conversation: Arc<dyn Conversation>,
    has_parted: Arc<Notify>,
}

impl Conversation for Parting {
    fn request(self: Arc<Self>, asked: Asked) -> Serving {
        Arc::clone(&self.conversation).request(asked)
    }

    fn notification(&self, frame: Frame) {
        if frame.method() == LEFT_METHOD {
            self.has_parted.notify_one();
        } else {
            self.conversation.notification(frame);
        }
    }

    fn response(&self, frame: Frame) {
        self.conversation.response(frame);
    }

    fn ended(&self) {
        self.conversation.ended();
    }
}
