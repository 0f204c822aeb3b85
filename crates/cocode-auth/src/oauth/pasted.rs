//! The other way for an answer to arrive: a person copies the address that the browser ended at,
//! because the browser runs on another machine, and pastes it here.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use url::form_urlencoded;
use zeroize::Zeroizing;

use super::authorize::{AuthorizationRequest, CallbackError};
use super::user_agent::UserAgentError;
use crate::secret::Secret;

/// The longest text that is looked at.
const MAX_PASTE_BYTES: usize = 32 * 1024;

/// What is pasted at once arrives at once, in several lines if a terminal had broken it. After this
/// much silence it is complete; before that, a line could be half an answer that looks like a whole
/// one.
const PASTE_PAUSE: Duration = Duration::from_millis(250);

/// What terminals put around a paste.
const PASTE_MARKS: [&str; 2] = ["\u{1b}[200~", "\u{1b}[201~"];

/// What people and chat programs put around an address.
const QUOTES: [char; 12] = ['"', '\'', '`', '<', '>', '“', '”', '„', '‘', '’', '«', '»'];

/// Why a pasted text is not the answer. Never shows the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PasteError {
    /// There is nothing in it.
    #[error("nothing was pasted")]
    Empty,
    /// It is something else.
    #[error(
        "more than {MAX_PASTE_BYTES} bytes were pasted, and no address is that long; \
         paste the address that the browser ended at"
    )]
    TooLong,
    /// It is the question instead of the answer.
    #[error(
        "that is the address to sign in at: open it in a browser, sign in, and paste the address \
         that the browser ends at"
    )]
    Question,
    /// It cannot be told to be the answer to this question.
    #[error(
        "the code alone is not enough: without the state that came with it, it may belong to \
         somebody else; paste the whole address that the browser ended at"
    )]
    NoState,
    /// It is some other text.
    #[error(
        "that is not the end of a sign-in: paste the whole address that the browser ended at, \
         which has `code=` and `state=` in it, even if the page could not be shown"
    )]
    NoAnswer,
    /// It is an answer that cannot be used.
    #[error("{0}; paste the whole address that the browser ended at")]
    Unusable(CallbackError),
}

/// Finds the query of an answer in what a person pasted: an address, or only its end.
///
/// That the server said no is an answer, too.
pub fn pasted_answer(text: &str, request: &AuthorizationRequest) -> Result<Secret, PasteError> {
    if text.len() > MAX_PASTE_BYTES {
        return Err(PasteError::TooLong);
    }
    let text = tidied(text);
    if text.is_empty() {
        return Err(PasteError::Empty);
    }
    let query = query(&text);
    let named = |names: &[&str]| {
        form_urlencoded::parse(query.as_bytes()).any(|(name, _)| names.contains(&&*name))
    };
    if named(&["response_type", "code_challenge"]) {
        return Err(PasteError::Question);
    }
    match request.accept(query) {
        Ok(_) | Err(CallbackError::Refused { .. }) => Ok(Secret::new(query)),
        Err(CallbackError::StateMissing) if named(&["code", "error"]) || is_code(&text) => {
            Err(PasteError::NoState)
        }
        Err(CallbackError::StateMissing) => Err(PasteError::NoAnswer),
        Err(error) => Err(PasteError::Unusable(error)),
    }
}

/// Without what was not part of it: addresses have no whitespace, control characters, backslashes
/// or quotes around them, but copies of them do.
fn tidied(text: &str) -> Zeroizing<String> {
    let mut text = Zeroizing::new(text.to_owned());
    for mark in PASTE_MARKS {
        text = Zeroizing::new(text.replace(mark, ""));
    }
    text.retain(|character| {
        !character.is_whitespace()
            && !character.is_control()
            && !matches!(character, '\\' | '\u{200b}'..='\u{200f}' | '\u{feff}')
    });
    // From the source of a page.
    Zeroizing::new(text.trim_matches(QUOTES).replace("&amp;", "&"))
}

/// The part that may be a query. A question mark after the first value belongs to a value.
fn query(text: &str) -> &str {
    let query = match text.split_once('?') {
        Some((before, query)) if !before.contains('=') => query,
        Some(_) | None => text,
    };
    query.split('#').next().unwrap_or(query)
}

/// Whether somebody took the code out of the address.
fn is_code(text: &str) -> bool {
    text.len() > 8 && !text.contains("://") && !text.contains('=')
}

/// Waits for the answer in both ways: by the browser itself, and in lines that a person pastes.
/// Whichever comes first wins, and the other is ended. What is pasted and is no answer is told, and
/// the wait goes on; so it does when there are no more lines. How long it goes on at most is up to
/// `arrival`.
///
/// Dropping the future ends both.
pub async fn race_paste(
    arrival: impl Future<Output = Result<Secret, UserAgentError>>,
    request: &AuthorizationRequest,
    lines: &mut mpsc::Receiver<Secret>,
    mut wrong: impl FnMut(&PasteError),
) -> Result<Secret, UserAgentError> {
    let mut arrival = pin!(arrival);
    loop {
        tokio::select! {
            arrived = &mut arrival => return arrived,
            Some(text) = paste(lines) => match pasted_answer(&text, request) {
                Ok(query) => return Ok(query),
                Err(PasteError::Empty) => {}
                Err(error) => wrong(&error),
            },
            else => return arrival.await,
        }
    }
}

/// All lines that arrive at once, as one text; none, if there are no more.
async fn paste(lines: &mut mpsc::Receiver<Secret>) -> Option<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    let mut line = lines.recv().await?;
    loop {
        // Beyond the limit it is wrong anyway, and needs no more room.
        if text.len() <= MAX_PASTE_BYTES {
            text.push_str(line.expose());
        }
        match timeout(PASTE_PAUSE, lines.recv()).await {
            Ok(Some(next)) => line = next,
            Ok(None) | Err(_) => return Some(text),
        }
    }
}

#[cfg(test)]
#[path = "pasted_tests.rs"]
mod tests;
