//! The sessions that clients have.

use cocode_admin::model::ClientSession;
use cocode_core::percent_encode;

use super::interior::Interior;

impl Interior {
    /// The oldest first.
    pub(super) fn sessions(&self) -> Vec<ClientSession> {
        let entrance = self.entrance.get();
        let mut sessions = entrance
            .map(|entrance| entrance.door.sessions())
            .unwrap_or_default();
        sessions.sort_by_key(|session| std::cmp::Reverse(session.age));
        let shown = sessions.into_iter().map(|session| ClientSession {
            principal: session.guest.map(|guest| guest.to_string()),
            endpoint: match session.endpoint {
                Some(name) => format!("/mcp/{}", percent_encode(&name)),
                None => "/mcp".to_owned(),
            },
            transport: session.transport.name().to_owned(),
            revision: session.revision,
            client: session.client,
            age_seconds: session.age.as_secs(),
            idle_seconds: session.idle.as_secs(),
        });
        shown.collect()
    }
}
