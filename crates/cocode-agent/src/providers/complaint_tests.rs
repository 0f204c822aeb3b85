//! Errors of providers in their own shapes and words, and what they are taken for.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::{About, Complaint, MAX_MESSAGE_CHARS, shown};
use crate::provider::ProviderError;

const ABOUT: About<'_> = About {
    provider: "somebody",
    model: "some-model",
};

fn judged(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> ProviderError {
    let headers = headers.iter().map(|(name, value)| {
        let name = HeaderName::from_static(name);
        (name, HeaderValue::from_static(value))
    });
    let status = StatusCode::from_u16(status).unwrap();
    let headers: HeaderMap = headers.collect();
    Complaint::of_answer(status, &headers, body.as_bytes()).judge(ABOUT)
}

/// The variant, the status and the message, in one word each where they fit.
fn summary(error: &ProviderError) -> String {
    match error {
        ProviderError::TooLong { message } => format!("too long: {message}"),
        ProviderError::Unauthorized {
            status, message, ..
        } => {
            format!("unauthorized {status}: {message}")
        }
        ProviderError::UnknownModel { model, message, .. } => format!("unknown {model}: {message}"),
        ProviderError::RateLimited { message, .. } => format!("limited: {message}"),
        ProviderError::Failing {
            status, message, ..
        } => format!("failing {status}: {message}"),
        ProviderError::Rejected {
            status, message, ..
        } => format!("rejected {status}: {message}"),
        other => panic!("unexpected: {other:?}"),
    }
}

fn check(status: u16, body: &Value, expected: &str) {
    let judged = judged(status, &[], &body.to_string());
    assert_eq!(summary(&judged), expected, "{status} {body}");
}

#[test]
fn errors_of_anthropic_are_understood() {
    for (status, kind, message, expected) in [
        (
            400,
            "invalid_request_error",
            "messages: bad",
            "rejected 400: messages: bad",
        ),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "too long: prompt is too long: 210000 tokens > 200000 maximum",
        ),
        (
            401,
            "authentication_error",
            "invalid x-api-key",
            "unauthorized 401: invalid x-api-key",
        ),
        (402, "billing_error", "no credit", "rejected 402: no credit"),
        (403, "permission_error", "no", "unauthorized 403: no"),
        (
            404,
            "not_found_error",
            "model: x",
            "unknown some-model: model: x",
        ),
        (413, "request_too_large", "too large", "too long: too large"),
        (429, "rate_limit_error", "slow down", "limited: slow down"),
        (500, "api_error", "oh", "failing 500: oh"),
        (504, "timeout_error", "late", "failing 504: late"),
        (
            529,
            "overloaded_error",
            "Overloaded",
            "failing 529: Overloaded",
        ),
    ] {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        check(status, &body, expected);
        let event = Complaint::of_event(&body);
        assert_eq!(event.status, status, "{body}");
        assert_eq!(summary(&event.judge(ABOUT)), expected, "{body} as an event");
    }
}

#[test]
fn errors_of_openai_and_those_that_copy_it_are_understood() {
    let openai = |code: &str, message: &str| {
        json!({"error": {"message": message, "type": "invalid_request_error", "param": null,
                         "code": code}})
    };
    check(400, &openai("context_length_exceeded", "a"), "too long: a");
    check(401, &openai("invalid_api_key", "a"), "unauthorized 401: a");
    check(
        404,
        &openai("model_not_found", "a"),
        "unknown some-model: a",
    );
    check(
        400,
        &openai("model_not_found", "a"),
        "unknown some-model: a",
    );
    check(429, &openai("rate_limit_exceeded", "a"), "limited: a");
    check(429, &openai("insufficient_quota", "a"), "rejected 429: a");
    check(400, &openai("invalid_value", "a"), "rejected 400: a");
    // llama.cpp
    let message = "the request exceeds the available context size, try increasing it";
    let body = json!({"error": {"code": 400, "message": message, "type": "invalid_request_error"}});
    check(400, &body, &format!("too long: {message}"));
    let body = json!({"error": {"code": 400, "message": "n", "type": "exceed_context_size_error"}});
    check(400, &body, "too long: n");
    check(
        503,
        &json!({"error": {"code": 503, "message": "Loading model"}}),
        "failing 503: Loading model",
    );
    // vLLM
    let message = "This model's maximum context length is 4096 tokens.";
    let body =
        json!({"object": "error", "message": message, "type": "BadRequestError", "code": 400});
    check(400, &body, &format!("too long: {message}"));
    check(
        422,
        &json!({"detail": "no field"}),
        "rejected 422: no field",
    );
    // Ollama
    check(
        404,
        &json!({"error": "model not found"}),
        "unknown some-model: model not found",
    );
}

#[test]
fn words_about_tokens_in_a_rate_limit_are_no_long_conversation() {
    let message = "Limit 30000 tokens; reduce the length of the messages";
    let body = json!({"error": {"message": message, "code": "rate_limit_exceeded"}});
    check(429, &body, &format!("limited: {message}"));
}

#[test]
fn what_is_no_json_is_shown_as_it_is() {
    assert_eq!(
        summary(&judged(502, &[], "<b>Bad\x1b[1m\n gateway</b>")),
        "failing 502: <b>Bad [1m gateway</b>"
    );
    assert_eq!(summary(&judged(502, &[], "")), "failing 502: Bad Gateway");
    assert_eq!(
        summary(&judged(307, &[], "")),
        "rejected 307: Temporary Redirect"
    );
}

#[test]
fn headers_say_when_and_whether_to_ask_again() {
    let limited = judged(429, &[("retry-after", "3")], "{}");
    let ProviderError::RateLimited { retry_after, .. } = limited else {
        panic!("{limited:?}");
    };
    assert_eq!(retry_after, Some(Duration::from_secs(3)));
    let never = [("x-should-retry", "false")];
    assert_eq!(summary(&judged(429, &never, "no")), "rejected 429: no");
    assert_eq!(summary(&judged(500, &never, "no")), "rejected 500: no");
    let always = [("x-should-retry", "true")];
    assert_eq!(summary(&judged(400, &always, "no")), "failing 400: no");
}

#[test]
fn errors_in_a_stream_have_the_status_that_their_words_mean() {
    for (error, expected) in [
        (json!({"code": "server_error", "message": "a"}), 500),
        (json!({"code": "rate_limit_exceeded", "message": "a"}), 429),
        (json!({"error": {"code": 502, "message": "a"}}), 502),
        (json!({"error": "a"}), 500),
        (
            json!({"type": "error", "code": "context_length_exceeded", "message": "a"}),
            400,
        ),
    ] {
        let complaint = Complaint::of_event(&error);
        assert_eq!(
            (complaint.status, complaint.message.as_str()),
            (expected, "a"),
            "{error}"
        );
    }
}

#[test]
fn long_messages_are_cut() {
    let text = shown(&"x".repeat(MAX_MESSAGE_CHARS + 1));
    assert_eq!(text.chars().count(), MAX_MESSAGE_CHARS + 1);
    assert!(text.ends_with('…'));
    assert_eq!(
        shown(&"x".repeat(MAX_MESSAGE_CHARS)).len(),
        MAX_MESSAGE_CHARS
    );
}
