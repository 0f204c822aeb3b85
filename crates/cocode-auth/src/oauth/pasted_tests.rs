//! Pastes as a table, and races between a browser and a keyboard.

use std::future::{pending, ready};

use super::*;
use crate::oauth::callback::tests::request;

#[derive(Debug, PartialEq)]
enum Found {
    Answer,
    Denial,
    Wrong(PasteError),
}

fn find(text: &str) -> Found {
    let request = request();
    let text = text
        .replace("STATE", request.state.expose())
        .replace("QUESTION", request.url.as_str());
    match pasted_answer(&text, &request) {
        Ok(query) => match request.accept(query.expose()) {
            Ok(code) => {
                assert_eq!(code.expose(), "a/b", "{text}");
                Found::Answer
            }
            Err(error) => {
                assert!(error.is_denied(), "{text}: {error}");
                Found::Denial
            }
        },
        Err(error) => {
            let shown = format!("{error} {error:?}");
            for secret in [request.state.expose(), request.verifier.expose(), "a%2Fb"] {
                assert!(!shown.contains(secret), "{shown}");
            }
            Found::Wrong(error)
        }
    }
}

#[test]
fn an_answer_is_found_however_it_was_copied() {
    for text in [
        "http://127.0.0.1:4000/callback?code=a%2Fb&state=STATE",
        "  http://127.0.0.1:4000/callback?code=a%2Fb&state=STATE\r\n",
        "\"http://127.0.0.1:4000/callback?code=a%2Fb&state=STATE\"",
        "' http://127.0.0.1:4000/callback?code=a%2Fb&state=STATE '",
        "<https://a.example/back?state=STATE&code=a%2Fb>",
        "“https://a.example/back?state=STATE&code=a%2Fb”",
        "127.0.0.1:4000/callback?code=a%2Fb&state=STATE",
        "/callback?code=a%2Fb&state=STATE",
        "?code=a%2Fb&state=STATE",
        "code=a%2Fb&state=STATE",
        "code=a/b&state=STATE&other=what?",
        "other=what?&code=a/b&state=STATE",
        "code=a%2\n    Fb&sta\nte=STATE",
        "http://127.0.0.1:4000/callback?code=a%2Fb&amp;state=STATE",
        "http://127.0.0.1:4000/callback\\?code\\=a%2Fb\\&state\\=STATE",
        "\u{1b}[200~http://127.0.0.1:4000/callback?code=a%2Fb&state=STATE\u{1b}[201~",
        "http://127.0.0.1:4000/callback?code=a%2Fb&state=STATE#_=_",
        "http://127.0.0.1:4000/callback?code=a%2Fb&state=STATE&iss=https://auth.example.com",
    ] {
        assert_eq!(find(text), Found::Answer, "{text}");
    }
    let denial = "http://127.0.0.1:4000/callback?error=access_denied&state=STATE";
    assert_eq!(find(denial), Found::Denial);
}

#[test]
fn what_is_no_answer_is_explained() {
    let long = "x".repeat(MAX_PASTE_BYTES + 1);
    for (text, expected) in [
        ("", PasteError::Empty),
        (" \r\n\t", PasteError::Empty),
        ("\"\"", PasteError::Empty),
        (&long, PasteError::TooLong),
        ("QUESTION", PasteError::Question),
        ("'QUESTION'", PasteError::Question),
        (
            "https://auth.example.com/authorize?client_id=me&response_type=code",
            PasteError::Question,
        ),
        ("a%2Fb-a-long-code", PasteError::NoState),
        ("code=a%2Fb", PasteError::NoState),
        (
            "http://127.0.0.1:4000/callback?code=a%2Fb",
            PasteError::NoState,
        ),
        ("?error=access_denied", PasteError::NoState),
        ("yes", PasteError::NoAnswer),
        ("https://auth.example.com/login", PasteError::NoAnswer),
        (
            "https://auth.example.com/consent?id=1",
            PasteError::NoAnswer,
        ),
        (
            "code=a%2Fb&state=old",
            PasteError::Unusable(CallbackError::StateMismatch),
        ),
        (
            "code=a%2Fb&code=c&state=STATE",
            PasteError::Unusable(CallbackError::Duplicate { parameter: "code" }),
        ),
        (
            "http://127.0.0.1:4000/callback?state=STATE",
            PasteError::Unusable(CallbackError::NoCode {
                issuer: "https://auth.example.com".to_owned(),
            }),
        ),
    ] {
        let shown: String = text.chars().take(80).collect();
        assert_eq!(find(text), Found::Wrong(expected), "{shown}");
    }
}

#[test]
fn an_answer_of_the_wrong_issuer_is_not_taken() {
    let found = find("code=a%2Fb&state=STATE&iss=https://evil.example");
    assert!(matches!(
        found,
        Found::Wrong(PasteError::Unusable(CallbackError::IssuerMismatch { .. }))
    ));
}

/// Pastes these texts one after the other; every one must be judged before the next is pasted.
async fn race_with(
    texts: &[&str],
    arrival: impl Future<Output = Result<Secret, UserAgentError>>,
) -> (Option<String>, Vec<PasteError>) {
    let request = request();
    let (sender, mut lines) = mpsc::channel(8);
    let mut told = Vec::new();
    let typing = async {
        for text in texts {
            for line in text.replace("STATE", request.state.expose()).lines() {
                sender.send(Secret::new(line)).await.unwrap();
            }
            // The clock stands still while anything else can be done.
            tokio::time::sleep(PASTE_PAUSE * 2).await;
        }
        drop(sender);
        pending::<()>().await;
    };
    let racing = race_paste(arrival, &request, &mut lines, |error| {
        told.push(error.clone());
    });
    let won = tokio::select! {
        won = racing => won.ok().map(|query| query.expose().replace(request.state.expose(), "STATE")),
        () = typing => None,
    };
    (won, told)
}

#[tokio::test(start_paused = true)]
async fn a_right_paste_wins_after_wrong_ones_were_told() {
    let texts = ["nonsense", "", "code=1", "http://a/b?code=1&state=STATE"];
    let (won, told) = race_with(&texts, pending()).await;
    assert_eq!(won.as_deref(), Some("code=1&state=STATE"));
    assert_eq!(told, [PasteError::NoAnswer, PasteError::NoState]);
}

#[tokio::test(start_paused = true)]
async fn a_paste_that_was_broken_into_lines_is_one() {
    let texts = ["http://a/b?state=STATE&code=abc\ndef\n&iss=https://auth.exa\nmple.com"];
    let (won, told) = race_with(&texts, pending()).await;
    assert_eq!(
        won.as_deref(),
        Some("state=STATE&code=abcdef&iss=https://auth.example.com")
    );
    assert_eq!(told, []);
}

#[tokio::test(start_paused = true)]
async fn the_browser_wins_if_it_is_first_or_nobody_pastes_any_more() {
    let (won, _told) = race_with(&["code=1"], ready(Ok(Secret::new("first")))).await;
    assert_eq!(won.as_deref(), Some("first"));

    let late = async {
        tokio::time::sleep(Duration::from_secs(100)).await;
        Ok(Secret::new("late"))
    };
    let (won, told) = race_with(&["code=1"], late).await;
    assert_eq!(won.as_deref(), Some("late"));
    assert_eq!(told, [PasteError::NoState]);
}

#[tokio::test(start_paused = true)]
async fn a_paste_ends_the_wait_for_the_browser() {
    struct Ended(std::sync::Arc<std::sync::atomic::AtomicBool>);
    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.store(true, std::sync::atomic::Ordering::SeqCst);
        }
    }
    let ended = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let guard = Ended(ended.clone());
    let arrival = async move {
        let _guard = guard;
        pending().await
    };
    let (won, _told) = race_with(&["code=1&state=STATE"], arrival).await;
    assert!(won.is_some());
    assert!(ended.load(std::sync::atomic::Ordering::SeqCst));
}
