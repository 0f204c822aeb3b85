//! Every error of a provider, as an answer and in the middle of a reply.

use std::time::Duration;

use cocode_agent::ProviderError;
use cocode_agent::providers::{
    Anthropic, AnthropicOptions, ApiKey, Chat, ChatOptions, Responses, ResponsesOptions,
};
use cocode_testkit::{ModelFormat, ModelTurn};
use cocode_wire::{HeaderMap, HeaderValue, HttpClient, Url};
use http::header::AUTHORIZATION;
use serde_json::json;

use super::support::{FORMATS, KEY, Peer, provider, user};

/// The words of an error for a turn that fails so.
async fn error(format: ModelFormat, turn: ModelTurn) -> ProviderError {
    Peer::saying(format, turn).error(&[user("hi")]).await
}

#[tokio::test]
async fn statuses_are_what_they_stand_for() {
    for format in FORMATS {
        let fails = |status| error(format, ModelTurn::status(status, "some_error", "words"));
        for status in [401, 403] {
            let error = fails(status).await;
            assert!(
                matches!(&error, ProviderError::Unauthorized { status: own, message, .. }
                if *own == status && message == "words"),
                "{error:?}"
            );
        }
        let error = fails(404).await;
        assert!(
            matches!(&error, ProviderError::UnknownModel { model, .. } if model == "some-model"),
            "{error:?}"
        );
        let error = fails(413).await;
        assert!(matches!(error, ProviderError::TooLong { .. }), "{error:?}");
        let error = fails(429).await;
        assert!(
            matches!(
                error,
                ProviderError::RateLimited {
                    retry_after: None,
                    ..
                }
            ),
            "{error:?}"
        );
        for status in [400, 402, 422] {
            let error = fails(status).await;
            assert!(
                matches!(error, ProviderError::Rejected { status: own, .. } if own == status),
                "{error:?}"
            );
        }
        for status in [408, 500, 502, 503, 504, 529] {
            let error = fails(status).await;
            assert!(
                matches!(error, ProviderError::Failing { status: own, .. } if own == status),
                "{error:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_known_by_its_words() {
    for (format, code, words) in [
        (
            ModelFormat::Anthropic,
            "invalid_request_error",
            "prompt is too long: 9 tokens > 8 maximum",
        ),
        (
            ModelFormat::Responses,
            "context_length_exceeded",
            "Your input exceeds the context window",
        ),
        (
            ModelFormat::Chat,
            "invalid_request_error",
            "the request exceeds the available context size",
        ),
        (
            ModelFormat::Chat,
            "400",
            "This model's maximum context length is 8 tokens",
        ),
    ] {
        let error = error(format, ModelTurn::status(400, code, words)).await;
        assert!(
            matches!(&error, ProviderError::TooLong { message } if message == words),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn waits_and_their_absence_are_read_from_headers() {
    for format in FORMATS {
        let limited = || ModelTurn::status(429, "rate_limit_error", "slow down");
        let named = error(format, limited().header("retry-after", "9")).await;
        assert!(
            matches!(named, ProviderError::RateLimited { retry_after: Some(after), .. }
            if after == Duration::from_secs(9)),
            "{named:?}"
        );
        let never = error(format, limited().header("x-should-retry", "false")).await;
        assert!(
            matches!(never, ProviderError::Rejected { status: 429, .. }),
            "{never:?}"
        );
    }
}

#[tokio::test]
async fn errors_in_the_middle_of_a_reply_are_what_they_stand_for() {
    for (format, kind, expected) in [
        (
            ModelFormat::Anthropic,
            "overloaded_error",
            "anthropic failed (529): words",
        ),
        (
            ModelFormat::Anthropic,
            "api_error",
            "anthropic failed (500): words",
        ),
        (
            ModelFormat::Responses,
            "server_error",
            "openai failed (500): words",
        ),
        (
            ModelFormat::Responses,
            "context_length_exceeded",
            "the conversation is too long for the model: words",
        ),
        (ModelFormat::Chat, "502", "local failed (502): words"),
        (
            ModelFormat::Chat,
            "rate_limit_exceeded",
            "local takes no more requests for now: words",
        ),
    ] {
        let turn = ModelTurn::new().text("I will").then_error(kind, "words");
        assert_eq!(
            error(format, turn).await.to_string(),
            expected,
            "{format:?}"
        );
    }
}

#[tokio::test]
async fn messages_are_short_plain_and_without_the_key() {
    for format in FORMATS {
        let words = format!("bad key {KEY}\u{1b}[31m\n{}", "x".repeat(1000));
        let error = error(
            format,
            ModelTurn::status(401, "authentication_error", &words),
        )
        .await;
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(KEY), "{shown}");
        assert!(shown.contains("bad key … [31m xxx"), "{shown}");
        assert!(error.to_string().chars().count() < 600, "{shown}");
    }
}

#[tokio::test]
async fn nobody_at_the_address_is_unreachable() {
    for format in FORMATS {
        let peer = Peer::saying(format, ModelTurn::new());
        peer.server.kill();
        let error = peer.error(&[user("hi")]).await;
        assert!(
            matches!(error, ProviderError::Unreachable { .. }),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn an_answer_of_something_else_is_not_understood() {
    for format in FORMATS {
        let page = ModelTurn::status(200, "", "").body("<html>Welcome</html>");
        let error = error(format, page).await;
        assert!(
            matches!(error, ProviderError::NotUnderstood { .. }),
            "{error:?}"
        );
    }
    for (format, event) in [
        (
            ModelFormat::Anthropic,
            json!({"type": "content_block_delta", "index": 7}).to_string(),
        ),
        (ModelFormat::Responses, "no json".to_owned()),
        (ModelFormat::Chat, "no json".to_owned()),
    ] {
        let error = error(format, ModelTurn::new().raw("", &event)).await;
        assert!(
            matches!(error, ProviderError::NotUnderstood { .. }),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn an_address_that_is_none_of_http_is_rejected_at_once() {
    let peer = Peer::saying(ModelFormat::Chat, ModelTurn::new());
    let elsewhere = provider(ModelFormat::Chat, "ftp://localhost/");
    let messages = [user("hi")];
    let outcome = elsewhere.reply(peer.request(&messages), &mut |_| {}).await;
    let error = outcome.unwrap_err().to_string();
    assert_eq!(
        error,
        "local does not take the request: not an address of HTTP"
    );
}

#[test]
fn options_and_providers_show_no_secrets() {
    let url = Url::parse(&format!("http://u:{KEY}@localhost/?k={KEY}")).unwrap();
    let key = ApiKey::new(KEY).ok();
    let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(KEY))]);
    let http = HttpClient::default();
    let mut anthropic = AnthropicOptions::new("a", url.clone(), key.clone(), http.clone());
    anthropic.headers = headers.clone();
    let mut responses = ResponsesOptions::new("r", url.clone(), key.clone(), http.clone());
    responses.headers = headers.clone();
    let mut chat = ChatOptions::new("c", url, key, http);
    chat.headers = headers;
    let options = format!("{anthropic:?} {responses:?} {chat:?}");
    let providers = format!(
        "{:?} {:?} {:?}",
        Anthropic::new(anthropic),
        Responses::new(responses),
        Chat::new(chat)
    );
    assert!(!options.contains(KEY), "{options}");
    assert!(!providers.contains(KEY), "{providers}");
}
