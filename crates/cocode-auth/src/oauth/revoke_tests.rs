//! Tokens that are given back, and servers that do not want them.

use serde_json::json;

use super::{RevokeError, TokenHint};
use crate::oauth::client::ClientAuthentication;
use crate::oauth::token::TokenError;
use crate::oauth::token::test_server::{TestServer, answer, json as told};
use crate::oauth::token::tests::{client, endpoint};
use crate::secret::Secret;

async fn revoke(response: String, hint: TokenHint) -> (Result<(), RevokeError>, String) {
    let server = TestServer::start([response]).await;
    let (http, client) = (server.http(), client(ClientAuthentication::SecretPost));
    let at = server.url.join("/revoke").unwrap();
    let outcome = endpoint(&http, &server, &client)
        .revoke(&at, &Secret::new("the-token"), hint)
        .await;
    let heard = server.heard();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].line, "POST /revoke HTTP/1.1");
    (outcome, heard[0].body.clone())
}

#[tokio::test]
async fn a_token_is_given_back_with_what_it_is() {
    let cases = [
        (TokenHint::Access, "access_token"),
        (TokenHint::Refresh, "refresh_token"),
    ];
    for (hint, name) in cases {
        let (outcome, body) = revoke(answer(200, &[], ""), hint).await;
        outcome.unwrap();
        assert_eq!(
            body,
            format!(
                "token=the-token&token_type_hint={name}&client_id=client\
                 &client_secret=client-secret"
            )
        );
    }
}

#[tokio::test]
async fn servers_that_take_nothing_back_are_explained() {
    let unsupported = told(400, &json!({"error": "unsupported_token_type"}));
    let (outcome, _) = revoke(unsupported, TokenHint::Access).await;
    let error = outcome.unwrap_err().to_string();
    assert!(
        error.ends_with("/revoke does not take back access tokens: they end by themselves"),
        "{error}"
    );
    for status in [404, 405, 501] {
        let (outcome, _) = revoke(answer(status, &[], ""), TokenHint::Refresh).await;
        let error = outcome.unwrap_err();
        assert!(matches!(error, RevokeError::Missing { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn other_failures_keep_their_reason_and_hide_the_token() {
    let busy = answer(503, &[("Retry-After", "5")], "");
    let (outcome, _) = revoke(busy, TokenHint::Refresh).await;
    let Err(RevokeError::Failed(TokenError::Temporary(trouble))) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(trouble.retry_after, Some(5));

    let body = json!({"error": "invalid_client", "error_description": "the-token, client-secret"});
    let (outcome, _) = revoke(told(401, &body), TokenHint::Refresh).await;
    let error = outcome.unwrap_err();
    assert!(
        matches!(error, RevokeError::Failed(TokenError::InvalidClient(_))),
        "{error:?}"
    );
    assert!(!format!("{error:?}").contains("the-token"));
}
