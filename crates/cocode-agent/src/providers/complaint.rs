//! What a provider says when there is no reply, and what that means. The shapes and words are those of
//! Anthropic, `OpenAI`, llama.cpp, vLLM and Ollama.

use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::retry_after::Advice;
use crate::provider::ProviderError;

/// As much of what a provider says is shown, in characters.
pub(super) const MAX_MESSAGE_CHARS: usize = 500;

/// An error in the words of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Complaint {
    /// The status of the answer, or the one that the words stand for.
    pub(super) status: u16,
    /// Such as `overloaded_error`.
    pub(super) kind: String,
    /// Such as `context_length_exceeded`.
    pub(super) code: String,
    /// For people.
    pub(super) message: String,
    /// When to ask again.
    pub(super) advice: Advice,
}

/// Whom a complaint is from, and what it is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct About<'a> {
    /// The provider.
    pub(super) provider: &'a str,
    /// The model that was asked for.
    pub(super) model: &'a str,
}

impl Complaint {
    /// Of an answer whose status is no success.
    pub(super) fn of_answer(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let parsed: Option<Value> = serde_json::from_str(&text).ok();
        let mut complaint = parsed.as_ref().map(Self::of_value).unwrap_or_default();
        if complaint.message.is_empty() {
            complaint.message = match text.trim() {
                "" => status
                    .canonical_reason()
                    .unwrap_or("no reason given")
                    .into(),
                said => said.to_owned(),
            };
        }
        complaint.status = status.as_u16();
        complaint.advice = Advice::read(headers, std::time::SystemTime::now());
        complaint
    }

    /// Of an event in the middle of a reply. Its words stand for a status.
    pub(super) fn of_event(error: &Value) -> Self {
        let mut complaint = Self::of_value(error);
        complaint.status = complaint.meant_status();
        if complaint.message.is_empty() {
            complaint.message = error.to_string();
        }
        complaint
    }

    fn of_value(value: &Value) -> Self {
        let inner = match value.get("error") {
            Some(inner @ (Value::Object(_) | Value::String(_))) => inner,
            _ => value,
        };
        if let Value::String(message) = inner {
            let message = message.clone();
            return Self {
                message,
                ..Self::default()
            };
        }
        let text = |name: &str| match inner.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let message = [text("message"), text("detail")].into_iter();
        Self {
            kind: text("type"),
            code: text("code"),
            message: message
                .into_iter()
                .find(|text| !text.is_empty())
                .unwrap_or_default(),
            ..Self::default()
        }
    }

    /// The status that the words of an event stand for.
    fn meant_status(&self) -> u16 {
        if let Ok(status @ 400..600) = self.code.parse() {
            return status;
        }
        match (self.kind.as_str(), self.code.as_str()) {
            ("rate_limit_error" | "rate_limit_exceeded" | "tokens" | "requests", _)
            | (_, "rate_limit_exceeded" | "insufficient_quota") => 429,
            ("overloaded_error", _) => 529,
            ("authentication_error", _) | (_, "invalid_api_key") => 401,
            ("billing_error", _) => 402,
            ("permission_error", _) => 403,
            ("not_found_error", _) | (_, "model_not_found") => 404,
            ("request_too_large", _) => 413,
            ("invalid_request_error" | "exceed_context_size_error" | "BadRequestError", _)
            | (_, "context_length_exceeded" | "invalid_prompt") => 400,
            ("timeout_error", _) => 504,
            (_, "server_is_overloaded" | "slow_down") => 503,
            _ => 500,
        }
    }

    /// What it means for whoever asked.
    pub(super) fn judge(self, about: About<'_>) -> ProviderError {
        let provider = about.provider.to_owned();
        let (is_too_long, is_final) = (self.is_too_long(), self.is_final());
        let Self {
            status,
            code,
            message,
            advice,
            ..
        } = self;
        let message = shown(&message);
        let retry_after = advice.after;
        match status {
            _ if is_too_long => ProviderError::TooLong { message },
            401 | 403 => ProviderError::Unauthorized {
                provider,
                status,
                message,
            },
            404 => unknown_model(about, message),
            _ if code == "model_not_found" => unknown_model(about, message),
            _ if is_final => ProviderError::Rejected {
                provider,
                status,
                message,
            },
            429 => ProviderError::RateLimited {
                provider,
                message,
                retry_after,
            },
            408 | 409 | 425 | 500..=599 => ProviderError::Failing {
                provider,
                status,
                message,
                retry_after,
            },
            _ if advice.should == Some(true) => ProviderError::Failing {
                provider,
                status,
                message,
                retry_after,
            },
            _ => ProviderError::Rejected {
                provider,
                status,
                message,
            },
        }
    }

    /// Whether asking again is of no use, although the status alone lets one hope: the provider says
    /// so, or the money is used up.
    fn is_final(&self) -> bool {
        let quota = "insufficient_quota";
        self.advice.should == Some(false) || self.code == quota || self.kind == quota
    }

    /// Whether the conversation is longer than what the model sees.
    fn is_too_long(&self) -> bool {
        const WORDS: [&str; 11] = [
            "prompt is too long",
            "input is too long",
            "input length and `max_tokens` exceed context limit",
            "exceeds the available context size",
            "exceeds the context window",
            "maximum context length",
            "maximum model length",
            "context length exceeded",
            "context window exceeded",
            "exceeds the maximum number of tokens",
            "reduce the length of the messages",
        ];
        if self.status == 413
            || self.code == "context_length_exceeded"
            || self.kind == "exceed_context_size_error"
        {
            return true;
        }
        // Elsewhere, as in a limit of tokens for a minute, such words mean something else.
        let message = self.message.to_lowercase();
        matches!(self.status, 400 | 422 | 500) && WORDS.iter().any(|words| message.contains(words))
    }
}

fn unknown_model(about: About<'_>, message: String) -> ProviderError {
    ProviderError::UnknownModel {
        provider: about.provider.to_owned(),
        model: about.model.to_owned(),
        message,
    }
}

/// A text of somebody else, fit to be shown in one line.
pub(super) fn shown(text: &str) -> String {
    let plain = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let words: Vec<&str> = plain.filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    let mut letters = line.chars();
    let mut start: String = letters.by_ref().take(MAX_MESSAGE_CHARS).collect();
    if letters.next().is_some() {
        start.push('…');
    }
    start
}

#[cfg(test)]
#[path = "complaint_tests.rs"]
mod tests;
