//! Changes that clients are told about: those that listen, and the sessions of the legacy era.

use std::collections::BTreeSet;
use std::sync::Mutex;

use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, ServiceError, SubscriptionSendError, SubscriptionSink};
use tokio::sync::broadcast::{self, error::RecvError};

/// Something that is not as it was.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Tools,
    Prompts,
    Resources,
    /// The content of one resource.
    Resource(String),
}

/// URIs that a session subscribed to.
pub(crate) type Subscriptions = Mutex<BTreeSet<String>>;

/// Tells one stream of `subscriptions/listen`, which takes only what it asked for.
pub(crate) async fn tell_listener(change: Change, sink: &SubscriptionSink) {
    let told = match change {
        Change::Tools => sink.notify_tool_list_changed().await,
        Change::Prompts => sink.notify_prompt_list_changed().await,
        Change::Resources => sink.notify_resource_list_changed().await,
        Change::Resource(uri) => sink.notify_resource_updated(uri).await,
    };
    match told {
        Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)) => {}
        Err(error) => eprintln!("a listener was not told of a change: {error}"),
    }
}

/// Tells one session all changes until it ends.
pub(crate) async fn tell_session(
    mut changes: broadcast::Receiver<Change>,
    peer: Peer<RoleServer>,
    subscriptions: &Subscriptions,
) {
    loop {
        let told = match changes.recv().await {
            Ok(change) => tell(change, &peer, subscriptions).await,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        if told.is_err() {
            // The session is over.
            return;
        }
    }
}

async fn tell(
    change: Change,
    peer: &Peer<RoleServer>,
    subscriptions: &Subscriptions,
) -> Result<(), ServiceError> {
    match change {
        Change::Tools => peer.notify_tool_list_changed().await,
        Change::Prompts => peer.notify_prompt_list_changed().await,
        Change::Resources => peer.notify_resource_list_changed().await,
        Change::Resource(uri) => {
            let subscribed = subscriptions.lock().is_ok_and(|uris| uris.contains(&uri));
            if !subscribed {
                return Ok(());
            }
            peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri))
                .await
        }
    }
}
