//! Which question gets a clear answer from which server.

use cocode_wire::{Challenge, HeaderMap, HttpClient};

use super::super::responder::{Responder, Route};
use super::{ProbeAnswer, ProbeError, probe};

async fn ask(routes: &[Route<'_>]) -> (ProbeAnswer, Responder) {
    let server = Responder::start(routes).await;
    let headers = HeaderMap::from_iter([("x-test".parse().unwrap(), "yes".parse().unwrap())]);
    let answer = probe(&HttpClient::default(), &server.url("/mcp"), &headers).await;
    (answer.unwrap(), server)
}

#[tokio::test]
async fn a_refusal_is_found_by_a_question_that_changes_nothing() {
    let (answer, server) = ask(&[(
        "POST /mcp",
        "401 Unauthorized\nWWW-Authenticate: Bearer scope=\"a\"\nWWW-Authenticate: Basic",
    )])
    .await;
    let expected = Challenge {
        status: 401,
        www_authenticate: vec!["Bearer scope=\"a\"".to_owned(), "Basic".to_owned()],
        auth_server: None,
    };
    assert_eq!(answer, ProbeAnswer::Refused(expected));
    let [request] = &server.requests()[..] else {
        panic!("one question is enough");
    };
    assert!(request.contains(r#""method":"ping""#), "{request}");
    assert!(request.contains("x-test: yes\r\n"), "{request}");
}

#[tokio::test]
async fn a_server_that_wants_sessions_is_asked_for_one_and_left_again() {
    let (answer, server) = ask(&[
        ("POST /mcp", "400 No session"),
        (
            "POST /mcp",
            "200 OK\nMcp-Session-Id: s1\nContent-Type: application/json\n\n{}",
        ),
        ("DELETE /mcp", "200 OK"),
    ])
    .await;
    assert_eq!(answer, ProbeAnswer::Open);
    let requests = server.requests();
    assert!(
        requests[1].contains(r#""method":"initialize""#),
        "{requests:?}"
    );
    assert!(requests[2].starts_with("DELETE /mcp"), "{requests:?}");
    assert!(
        requests[2].contains("mcp-session-id: s1\r\n"),
        "{requests:?}"
    );
}

#[tokio::test]
async fn a_server_of_the_older_transport_is_asked_as_it_expects() {
    let (answer, _) = ask(&[
        ("POST /mcp", "405 Method Not Allowed"),
        ("GET /mcp", "401 Unauthorized"),
    ])
    .await;
    assert!(
        matches!(&answer, ProbeAnswer::Refused(challenge) if challenge.www_authenticate.is_empty()),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_server_that_forbids_without_a_word_is_unclear() {
    let (answer, server) = ask(&[
        ("POST /mcp", "403 Forbidden"),
        ("GET /mcp", "405 Method Not Allowed"),
    ])
    .await;
    assert_eq!(answer, ProbeAnswer::Unclear { status: 403 });
    assert_eq!(server.lines(), ["POST /mcp", "POST /mcp", "GET /mcp"]);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error() {
    let url = "http://127.0.0.1:1/mcp?key=hidden".parse().unwrap();
    let error = probe(&HttpClient::default(), &url, &HeaderMap::new())
        .await
        .unwrap_err();
    assert!(matches!(error, ProbeError::Failed { .. }), "{error:?}");
    assert_eq!(error.to_string(), "cannot reach http://127.0.0.1:1/mcp");
}
