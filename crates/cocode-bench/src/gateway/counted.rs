//! Counts what is alive in a gateway: conversations with clients, and their requests.

use std::sync::Arc;

use cocode_wire::Frame;
use cocode_wire::serve::{Asked, Conversation, Endpoint, Serving, Sink};

/// What is alive. Whoever holds a clone of one of these is counted.
#[derive(Debug, Default)]
pub(super) struct Alive {
    conversations: Arc<()>,
    requests: Arc<()>,
}

impl Alive {
    pub(super) fn conversations(&self) -> usize {
        Arc::strong_count(&self.conversations) - 1
    }

    pub(super) fn requests(&self) -> usize {
        Arc::strong_count(&self.requests) - 1
    }
}

/// An endpoint that counts.
pub(super) struct Counted {
    endpoint: Arc<dyn Endpoint>,
    alive: Arc<Alive>,
}

impl Counted {
    pub(super) fn over(endpoint: Arc<dyn Endpoint>, alive: &Arc<Alive>) -> Arc<dyn Endpoint> {
        let alive = Arc::clone(alive);
        Arc::new(Self { endpoint, alive })
    }

    fn count(&self, conversation: Arc<dyn Conversation>) -> Arc<dyn Conversation> {
        Arc::new(CountedConversation {
            conversation,
            requests: Arc::clone(&self.alive.requests),
            _counted: Arc::clone(&self.alive.conversations),
        })
    }
}

impl Endpoint for Counted {
    fn converse(&self, outlet: Arc<dyn Sink>) -> Arc<dyn Conversation> {
        self.count(self.endpoint.converse(outlet))
    }

    fn stateless(&self) -> Arc<dyn Conversation> {
        self.count(self.endpoint.stateless())
    }
}

struct CountedConversation {
    conversation: Arc<dyn Conversation>,
    requests: Arc<()>,
    _counted: Arc<()>,
}

impl Conversation for CountedConversation {
    fn request(self: Arc<Self>, asked: Asked) -> Serving {
        let counted = Arc::clone(&self.requests);
        let serving = Arc::clone(&self.conversation).request(asked);
        Box::pin(async move {
            let answer = serving.await;
            drop(counted);
            answer
        })
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
