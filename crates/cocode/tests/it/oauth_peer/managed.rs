//! A manager whose server does not let it in any more: only that server waits, and it comes back by
//! itself when somebody has signed in elsewhere.

use std::sync::Arc;

use cocode_auth::oauth::OAuthCredentials;
use cocode_client::{
    Answer, CallContext, CallError, Connector, Event, Events, Manager, ManagerOptions,
    PlainConnector, RawJson, ReachError, Reached, ServerName, ServerSpec, ServerState, StateKind,
    http, with_credentials,
};
use cocode_testkit::{HttpServer, Script};
use serde_json::Value;

use super::{NOTES, World, soon};

/// Lets the manager in at the server of the peer; all others need nothing.
struct Door {
    credentials: OAuthCredentials,
    plain: PlainConnector,
}

impl Door {
    fn is_ours(&self, spec: &ServerSpec) -> bool {
        spec.name.as_str() == self.credentials.site().sign_in().server
    }
}

impl Connector for Door {
    fn reach<'a>(&'a self, spec: &'a ServerSpec) -> Answer<'a, Result<Reached, ReachError>> {
        if !self.is_ours(spec) {
            return self.plain.reach(spec);
        }
        let url = self.credentials.site().sign_in().url.clone();
        let target = with_credentials(http(url), Arc::new(self.credentials.clone()));
        let reached = Reached {
            target,
            sse_fallback: false,
        };
        Box::pin(std::future::ready(Ok(reached)))
    }

    fn admitted<'a>(&'a self, spec: &'a ServerSpec) -> Answer<'a, ()> {
        if self.is_ours(spec) {
            Box::pin(self.credentials.changed())
        } else {
            Box::pin(std::future::pending())
        }
    }
}

/// A manager with the server of the peer and another one, and what happens in it.
pub(super) struct Managed {
    pub(super) manager: Manager,
    pub(super) events: Events,
    notes: ServerName,
    _other: HttpServer,
}

impl Managed {
    pub(super) async fn start(world: &World) -> Self {
        let other = Script::new()
            .on("tools/call")
            .text_result("still here")
            .http();
        let connector = Arc::new(Door {
            credentials: world.credentials(),
            plain: PlainConnector::new([]),
        });
        let manager = Manager::new(ManagerOptions {
            connector,
            ..ManagerOptions::default()
        });
        let events = manager.events();
        let notes: ServerName = NOTES.parse().unwrap();
        manager
            .apply([
                ServerSpec::remote(notes.clone(), world.peer.mcp()),
                ServerSpec::remote("other".parse().unwrap(), other.url()),
            ])
            .await;
        manager.wait_for_startup().await;
        Self {
            manager,
            events,
            notes,
            _other: other,
        }
    }

    fn state(&self) -> ServerState {
        let status = self.manager.status();
        let status = status.into_iter().find(|status| status.name == self.notes);
        status.unwrap().state
    }

    /// Waits until the server of the peer is in this state.
    async fn until(&mut self, wanted: StateKind) -> ServerState {
        let notes = self.notes.clone();
        let events = &mut self.events;
        let reached = async {
            loop {
                if let Some(Event::ServerStateChanged { server, state }) = events.next().await
                    && server == notes
                    && state.kind() == wanted
                {
                    return state;
                }
            }
        };
        soon(&format!("{wanted:?}"), reached).await
    }

    async fn call(&self, tool: &str, arguments: &'static str) -> Result<String, CallError> {
        let arguments = RawJson::parse(arguments).unwrap();
        let context = CallContext::default();
        let calling = self.manager.call(tool, Some(&arguments), context);
        let called = soon("an answer", calling).await?;
        let result: Value = serde_json::from_str(called.result.raw.as_str()).unwrap();
        Ok(result["content"][0]["text"].as_str().unwrap().to_owned())
    }

    pub(super) async fn whoami(&self) -> Result<String, CallError> {
        self.call("mcp__notes__whoami", "{}").await
    }

    async fn assert_other_goes_on(&self) {
        let answer = self.call("mcp__other__echo", r#"{"text": "x"}"#).await;
        assert_eq!(answer.unwrap(), "still here");
    }
}

#[tokio::test]
async fn a_server_that_was_revoked_waits_alone_and_is_back_after_a_sign_in_elsewhere() {
    let world = World::start();
    world.log_in().await;
    let mut managed = Managed::start(&world).await;
    assert!(managed.whoami().await.unwrap().contains("alice"));
    managed.assert_other_goes_on().await;

    world.peer.revoke_all();
    let error = managed.whoami().await.unwrap_err();
    assert_eq!(error.code(), "auth-required", "{error:?}");
    let told = error.for_model();
    assert!(
        told.contains("server `notes` wants you to sign in"),
        "{told}"
    );
    let ServerState::NeedsAuth(trouble) = managed.until(StateKind::NeedsAuth).await else {
        panic!("{:?}", managed.state());
    };
    assert!(
        trouble.to_string().contains("wants you to sign in"),
        "{trouble}"
    );
    managed.assert_other_goes_on().await;
    let error = managed.whoami().await.unwrap_err();
    assert_eq!(error.code(), "auth-required", "{error:?}");

    // From another terminal.
    world.log_in().await;
    managed.until(StateKind::Ready).await;
    assert!(managed.whoami().await.unwrap().contains("alice"));
    managed.assert_other_goes_on().await;
    assert_eq!(world.peer.count("/refresh_reuse"), 0);
    managed.manager.shutdown().await;
}

#[tokio::test]
async fn a_server_that_nobody_has_signed_in_at_starts_when_somebody_does() {
    let world = World::start();
    let mut managed = Managed::start(&world).await;
    assert_eq!(managed.state().kind(), StateKind::NeedsAuth);
    managed.assert_other_goes_on().await;
    world.log_in().await;
    managed.until(StateKind::Ready).await;
    assert!(managed.whoami().await.unwrap().contains("alice"));
    // Signed out elsewhere, and in again.
    world.site().log_out(true).await.unwrap();
    managed.whoami().await.unwrap_err();
    managed.until(StateKind::NeedsAuth).await;
    managed.assert_other_goes_on().await;
    world.log_in().await;
    managed.until(StateKind::Ready).await;
    assert!(managed.whoami().await.unwrap().contains("alice"));
}

#[tokio::test]
async fn a_tool_that_wants_more_fails_alone_and_works_after_a_sign_in_elsewhere() {
    let world = World::start();
    world.log_in().await;
    let managed = Managed::start(&world).await;
    let write = || managed.call("mcp__notes__write_note", r#"{"note": "hello"}"#);
    let error = write().await.unwrap_err();
    assert_eq!(error.code(), "auth-required", "{error:?}");
    let told = error.for_model();
    assert!(told.contains("mcp:write"), "{told}");
    // The server itself is as good as before.
    assert!(managed.whoami().await.unwrap().contains("alice"));
    assert_eq!(managed.state().kind(), StateKind::Ready);
    world.log_in().await;
    assert_eq!(write().await.unwrap(), "written: hello");
    assert_eq!(managed.state().kind(), StateKind::Ready);
}

#[tokio::test]
async fn an_expired_token_is_no_event_of_the_manager() {
    let world = World::start();
    world.log_in().await;
    let managed = Managed::start(&world).await;
    for n_expiries in 1..=3 {
        world.peer.expire();
        assert!(managed.whoami().await.unwrap().contains("alice"));
        managed.assert_other_goes_on().await;
        assert_eq!(world.n_renewals(), n_expiries);
    }
    let status = managed.manager.status();
    assert!(status.iter().all(|server| server.reconnects == 0));
    assert!(status.iter().all(|server| server.last_trouble.is_none()));
}
