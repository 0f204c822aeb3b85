//! From a refusal to a session: with somebody there who signs in, and later without anybody.

use std::sync::Arc;

use cocode_auth::Secret;
use cocode_auth::oauth::{
    AuthorizationRequest, CallbackOptions, LoginError, LoginOptions, LoopbackCallback,
    OAuthCredentials, RedirectWish, UserAgent, UserAgentError, Visit, Work,
};
use cocode_client::CredentialsErrorKind;
use cocode_testkit::{Decision, OAuthPeer};
use serde_json::json;

use super::{NOTES, World, connect, connect_refusal, whoami, words};

#[tokio::test]
async fn who_is_there_is_asked_once_and_later_nobody_has_to_be() {
    let world = World::start();
    let asking = OAuthCredentials::new(world.site(), Some(Arc::new(world.person())));
    let session = connect(world.peer.mcp(), asking.clone()).await.unwrap();
    let identity = whoami(&session).await;
    let registrations = world.requests("registration");
    let [registration] = registrations.as_slice() else {
        panic!("{registrations:?}");
    };
    assert_eq!(registration["application_type"], "native");
    assert_eq!(registration["token_endpoint_auth_method"], "none");
    let asked = world.requests("authorization");
    let [asked] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!(asked["resource"], world.peer.resource());
    assert_eq!(asked["code_challenge_method"], "S256");
    assert_eq!(asked["prompt"], "consent");
    assert_eq!(words(&asked["scope"]), ["mcp:basic", "offline_access"]);
    assert_eq!(
        identity,
        json!({
            "sub": "alice",
            "scopes": ["mcp:basic"],
            "client_id": asked["client_id"],
            "bound": false,
        })
    );
    let given = world.requests("token");
    let [given] = given.as_slice() else {
        panic!("{given:?}");
    };
    assert_eq!(given["grant_type"], "authorization_code");
    assert_eq!(given["resource"], world.peer.resource());
    assert_eq!(given["dpop"], false);
    world.assert_stored_well();

    // Another process finds what is stored, and the server is not even asked without it.
    let refused = world.peer.count("/unauthorized/missing");
    assert_eq!(whoami(&world.session().await).await, identity);
    assert_eq!(world.peer.count("/unauthorized/missing"), refused);
    assert_eq!(world.peer.count("/authorizations/started"), 1);
    assert_eq!(world.n_renewals(), 0);
}

#[tokio::test]
async fn whoever_is_denied_is_told_and_keeps_the_registration_for_the_next_time() {
    let world = World::start();
    let denying = world.person_who(Decision::Deny);
    let (site, options) = (world.site(), LoginOptions::default());
    let error = site.log_in(&denying, &options).await.unwrap_err();
    assert!(matches!(error, LoginError::Callback(_)), "{error:?}");
    assert_eq!(error.kind(), CredentialsErrorKind::NeedsAuth);
    assert!(world.grant().await.unwrap().tokens.is_none());

    // A link says the same, and is not let in.
    let asking = OAuthCredentials::new(world.site(), Some(Arc::new(denying)));
    let outcome = connect(world.peer.mcp(), asking).await;
    let refused = connect_refusal(&outcome);
    assert_eq!(refused.kind, CredentialsErrorKind::NeedsAuth);
    assert!(refused.to_string().contains("denied"), "{refused}");

    let signed_in = world.log_in().await;
    assert_eq!(signed_in.scopes, ["mcp:basic"]);
    assert!(signed_in.renewable && !signed_in.bound);
    assert_eq!(whoami(&world.session().await).await["sub"], "alice");
    assert_eq!(world.peer.count("/registrations/success"), 1);
    assert_eq!(world.peer.count("/authorizations/access_denied"), 2);
}

#[tokio::test]
async fn a_server_that_nobody_signed_in_at_says_how_to() {
    let world = World::start();
    let outcome = connect(world.peer.mcp(), world.credentials()).await;
    let refused = connect_refusal(&outcome);
    assert_eq!(refused.kind, CredentialsErrorKind::NeedsAuth);
    assert_eq!(refused.message, "server `notes` wants you to sign in");
    assert_eq!(refused.hints, ["sign in with `cocode mcp login notes`"]);
    assert_eq!(world.peer.count("/registrations/success"), 0);
}

/// A person whose browser comes back to the page of the callback.
#[derive(Debug)]
struct Browsing(OAuthPeer);

struct Coming {
    peer: OAuthPeer,
    callback: LoopbackCallback,
}

impl UserAgent for Browsing {
    fn prepare<'a>(&'a self, wish: RedirectWish<'a>) -> Work<'a, Box<dyn Visit>> {
        Box::pin(async move {
            let options = CallbackOptions::new(NOTES);
            let callback = LoopbackCallback::bind(&options, wish.kept).await?;
            let peer = self.0.clone();
            Ok(Box::new(Coming { peer, callback }) as Box<dyn Visit>)
        })
    }
}

impl Visit for Coming {
    fn redirect_uri(&self) -> &str {
        self.callback.redirect_uri()
    }

    fn go(self: Box<Self>, request: &AuthorizationRequest) -> Work<'_, Secret> {
        Box::pin(async move {
            let Self { peer, callback } = *self;
            let url = request.url.to_string();
            let visit = tokio::task::spawn_blocking(move || peer.visit(&url, Decision::Allow));
            let (answer, seen) = tokio::join!(callback.wait(request), visit);
            let seen = seen.map_err(|error| UserAgentError::Failed {
                message: "the person did not come through".to_owned(),
                source: Some(Box::new(error)),
            })?;
            assert_eq!(seen["status"], 200);
            assert_eq!(seen["heading"], "Signed in to notes");
            answer
        })
    }
}

#[tokio::test]
async fn the_browser_comes_back_to_a_port_of_this_machine_and_to_another_the_next_time() {
    let world = World::start();
    let agent = Browsing(world.peer.clone());
    for _ in 0..2 {
        let signed_in = world.site().log_in(&agent, &LoginOptions::default()).await;
        signed_in.unwrap();
        assert_eq!(whoami(&world.session().await).await["sub"], "alice");
    }
    // The registration is for any port of this machine, and is kept.
    assert_eq!(world.peer.count("/registrations/success"), 1);
    assert_eq!(world.peer.count("/authorizations/success"), 2);
}

#[tokio::test]
async fn whoever_signs_out_is_out_and_with_revoke_everywhere() {
    let world = World::start();
    world.log_in().await;
    let running = world.session().await;
    let out = world.site().log_out(true).await.unwrap();
    assert!(out.was_signed_in);
    assert_eq!(out.revoked, [world.peer.issuer()]);
    assert!(out.kept_valid.is_empty(), "{out:?}");
    assert_eq!(world.peer.count("/revocations"), 1);
    assert!(world.grant().await.is_none());
    // Also who has the token in memory is out.
    let error = super::try_whoami(&running).await.unwrap_err();
    let refused = super::refusal(&error);
    assert_eq!(refused.kind, CredentialsErrorKind::NeedsAuth);
    assert_eq!(world.n_renewals(), 0);
    let outcome = connect(world.peer.mcp(), world.credentials()).await;
    assert_eq!(
        connect_refusal(&outcome).kind,
        CredentialsErrorKind::NeedsAuth
    );
}
