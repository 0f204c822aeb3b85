//! Streams of a session that break: nothing is cancelled, nothing is lost, nothing comes twice.

use serde_json::json;

use super::site::{Seen, Server};
use super::wire::{BOTH, EVENTS, Event, JSON, Wire, open_session, request};

const SESSION: &str = "Mcp-Session-Id";
const LAST: &str = "Last-Event-ID";

/// Posts a request whose answer is a stream.
async fn stream(server: &Server, id: &str, method: &str, steps: u64) -> Wire {
    let mut wire = Wire::to(server.port).await;
    let body = request(method, json!({ "steps": steps }));
    wire.send("POST /mcp", &[JSON, BOTH, (SESSION, id)], Some(&body))
        .await;
    let head = wire.head().await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    wire
}

/// Opens a stream by GET.
async fn listen(server: &Server, id: &str, last: Option<&str>) -> Wire {
    let mut wire = Wire::to(server.port).await;
    let mut headers = vec![EVENTS, (SESSION, id)];
    headers.extend(last.map(|last| (LAST, last)));
    wire.send("GET /mcp", &headers, None).await;
    let head = wire.head().await;
    assert_eq!(head.status, 200, "{head:?}");
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    wire
}

/// The rest of a stream.
async fn rest(wire: &mut Wire) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = wire.event().await {
        events.push(event);
    }
    events
}

async fn next(wire: &mut Wire) -> Event {
    wire.event().await.expect("an event")
}

#[tokio::test]
async fn a_broken_stream_goes_on_where_it_broke() {
    let mut server = Server::start().await;
    let id = open_session(server.port, "/mcp", "2025-11-25").await;
    let mut wire = stream(&server, &id, "say", 3).await;
    let primed = next(&mut wire).await;
    assert_eq!((primed.data.as_str(), primed.has_retry), ("", true));
    assert_ne!(primed.id, "");
    let first = next(&mut wire).await;
    assert_eq!(first.said(), "first");
    drop(wire);

    server.open_gate();
    let mut wire = listen(&server, &id, Some(&first.id)).await;
    let second = next(&mut wire).await;
    assert_eq!(second.said(), "step 0");
    drop(wire);

    // Meanwhile the work goes on, with nobody there.
    server.open_gate();
    server.open_gate();
    let mut wire = listen(&server, &id, Some(&second.id)).await;
    let live = rest(&mut wire).await;
    assert_eq!(live.len(), 3);
    assert_eq!(
        (live[0].said(), live[1].said()),
        ("step 1".into(), "step 2".into())
    );
    assert_eq!(live[2].json()["result"]["steps"], 3);

    // From every place, exactly what followed it.
    let all = [vec![primed, first, second], live].concat();
    for (place, event) in all.iter().enumerate() {
        let mut wire = listen(&server, &id, Some(&event.id)).await;
        assert_eq!(
            rest(&mut wire).await,
            all[place + 1..],
            "after {}",
            event.id
        );
    }
    while let Ok(seen) = server.seen.try_recv() {
        assert!(!matches!(seen, Seen::Dropped(_)), "{seen:?}");
    }
}

#[tokio::test]
async fn who_leaves_before_anything_came_has_not_cancelled() {
    let mut server = Server::limited(|limits| limits.max_connections = 1).await;
    let id = open_session(server.port, "/mcp", "2025-11-25").await;
    for method in ["wait", "say"] {
        free_connection(&server).await;
        let mut wire = Wire::to(server.port).await;
        let body = request(method, json!({ "steps": 1 }));
        wire.send("POST /mcp", &[JSON, BOTH, (SESSION, &id)], Some(&body))
            .await;
        server.until(&Seen::Request(method.into())).await;
        drop(wire);
        // The server knows by now that nobody is there.
        free_connection(&server).await;
        assert!(server.seen.try_recv().is_err(), "nothing was dropped");
    }
    server.open_gate();
    assert_eq!(server.next().await, Seen::Waited("wait".into()));
}

/// Waits until the server has noticed that its only connection is gone.
pub(super) async fn free_connection(server: &Server) {
    loop {
        let mut wire = Wire::to(server.port).await;
        if wire
            .ask("GET /", &[("Connection", "close")], None)
            .await
            .status
            == 200
        {
            assert_eq!(wire.rest().await, "");
            return;
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_still_open_goes_to_whoever_resumes_it() {
    let server = Server::start().await;
    let id = open_session(server.port, "/mcp", "2025-11-25").await;
    let mut old = stream(&server, &id, "say", 2).await;
    let primed = next(&mut old).await;
    assert_eq!(next(&mut old).await.said(), "first");
    let mut new = listen(&server, &id, Some(&primed.id)).await;
    assert_eq!(next(&mut new).await.said(), "first");
    assert_eq!(old.event().await, None, "the old one ends in order");
    server.open_gate();
    server.open_gate();
    assert_eq!(rest(&mut new).await.len(), 3);
}

#[tokio::test]
async fn streams_do_not_mix() {
    let server = Server::start().await;
    let id = open_session(server.port, "/mcp", "2025-11-25").await;
    let mut one = stream(&server, &id, "say", 1).await;
    let mut two = stream(&server, &id, "say", 1).await;
    let (first_of_one, first_of_two) = (next(&mut one).await, next(&mut two).await);
    assert_ne!(first_of_one.id, first_of_two.id);
    assert!(server.outlet().send(note("aside")));
    server.open_gate();
    let (of_one, of_two) = (rest(&mut one).await, rest(&mut two).await);
    for events in [&of_one, &of_two] {
        assert_eq!(events.len(), 3);
        assert_eq!(
            (events[0].said(), events[1].said()),
            ("first".into(), "step 0".into())
        );
    }
    assert!(
        of_one
            .iter()
            .all(|event| of_two.iter().all(|other| other.id != event.id))
    );
    for (primed, events) in [(first_of_one, of_one), (first_of_two, of_two)] {
        let mut wire = listen(&server, &id, Some(&primed.id)).await;
        assert_eq!(rest(&mut wire).await, events);
    }
    let mut wire = listen(&server, &id, None).await;
    assert_eq!(next(&mut wire).await.data, "");
    assert_eq!(next(&mut wire).await.said(), "aside");
}

fn note(text: &str) -> bytes::Bytes {
    let params = json!({ "text": text }).to_string();
    cocode_wire::encode::notification("said", Some(params.as_bytes())).into()
}

#[tokio::test]
async fn the_stream_of_the_session_keeps_what_came_before_it_was_opened() {
    let server = Server::start().await;
    let id = open_session(server.port, "/mcp", "2025-11-25").await;
    let outlet = server.outlet();
    assert!(outlet.send(note("early")));
    let mut wire = listen(&server, &id, None).await;
    let primed = next(&mut wire).await;
    let early = next(&mut wire).await;
    assert_eq!(early.said(), "early");
    assert!(outlet.send(note("live")));
    let live = next(&mut wire).await;
    assert_eq!(live.said(), "live");

    // A second listener takes the place of the first.
    let mut second = listen(&server, &id, None).await;
    assert_eq!(wire.event().await, None);
    let primed_again = next(&mut second).await;
    assert_eq!(primed_again.id, live.id, "it goes on after what was taken");
    assert!(outlet.send(note("later")));
    let later = next(&mut second).await;
    assert_eq!(later.said(), "later");

    let mut wire = listen(&server, &id, Some(&primed.id)).await;
    for expected in [&early, &live, &later] {
        assert_eq!(next(&mut wire).await, *expected);
    }
    assert!(outlet.send(note("last")));
    assert_eq!(next(&mut wire).await.said(), "last");
}

#[tokio::test]
async fn only_new_clients_get_an_event_without_data() {
    let server = Server::start().await;
    for (revision, is_primed) in [
        ("2024-11-05", false),
        ("2025-03-26", false),
        ("2025-06-18", false),
        ("2025-11-25", true),
    ] {
        let id = open_session(server.port, "/mcp", revision).await;
        let mut wire = stream(&server, &id, "say", 0).await;
        assert_eq!(
            next(&mut wire).await.data.is_empty(),
            is_primed,
            "for {revision}"
        );
        let mut wire = listen(&server, &id, None).await;
        assert!(server.outlet().send(note("x")));
        assert_eq!(
            next(&mut wire).await.data.is_empty(),
            is_primed,
            "for {revision}"
        );
    }
}

#[tokio::test]
async fn silent_streams_show_that_they_live() {
    let server = Server::limited(|limits| {
        limits.comment_interval = std::time::Duration::from_millis(1);
    })
    .await;
    let id = open_session(server.port, "/mcp", "2025-06-18").await;
    let mut wire = listen(&server, &id, None).await;
    assert!(next(&mut wire).await.is_comment);
    assert!(next(&mut wire).await.is_comment);
    let mut old = Wire::to(server.port).await;
    old.send("GET /sse", &[EVENTS], None).await;
    old.head().await;
    assert_eq!(next(&mut old).await.name, "endpoint");
    assert!(next(&mut old).await.is_comment);
}

#[tokio::test]
async fn unknown_places_are_refused() {
    let server = Server::start().await;
    let id = open_session(server.port, "/mcp", "2025-11-25").await;
    for last in ["7.1", "x", "", "1", "99999999999999999999999.0"] {
        let mut wire = Wire::to(server.port).await;
        let headers = [EVENTS, (SESSION, id.as_str()), (LAST, last)];
        let reply = wire.ask("GET /mcp", &headers, None).await;
        assert_eq!(reply.status, 400, "for {last:?}");
    }
}

#[tokio::test]
async fn only_so_much_is_kept_of_what_was_sent() {
    let server = Server::limited(|limits| limits.max_replay_events = 3).await;
    let id = open_session(server.port, "/mcp", "2025-11-25").await;
    let mut wire = stream(&server, &id, "say", 5).await;
    let primed = next(&mut wire).await;
    (0..5).for_each(|_| server.open_gate());
    let events = rest(&mut wire).await;
    assert_eq!(events.len(), 7);
    let mut wire = listen(&server, &id, Some(&primed.id)).await;
    assert_eq!(rest(&mut wire).await, events[4..]);
}

#[tokio::test]
async fn an_answer_waits_for_its_client_however_large_it_is() {
    let server = Server::limited(|limits| {
        limits.max_queued = 1000;
        limits.max_undelivered = 1000;
        limits.max_replay_bytes = 1000;
        limits.max_connections = 1;
        limits.stream_after = std::time::Duration::ZERO;
    })
    .await;
    let id = open_session(server.port, "/mcp", "2025-11-25").await;
    let mut wire = Wire::to(server.port).await;
    let text = "x".repeat(100_000);
    let body = request("wait", json!({ "text": text }));
    wire.send("POST /mcp", &[JSON, BOTH, (SESSION, &id)], Some(&body))
        .await;
    wire.head().await;
    let primed = next(&mut wire).await;
    drop(wire);
    free_connection(&server).await;
    server.open_gate();
    let mut wire = listen(&server, &id, Some(&primed.id)).await;
    let answer = next(&mut wire).await;
    assert_eq!(answer.json()["result"]["text"], text);
    assert_eq!(wire.event().await, None);
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_sent_only_so_much() {
    let server = Server::limited(|limits| limits.max_queued = 10_000).await;
    let id = open_session(server.port, "/mcp", "2025-11-25").await;
    let outlet = server.outlet();
    let mut n_taken = 0;
    while outlet.send(note(&"x".repeat(1000))) {
        n_taken += 1;
    }
    assert_eq!(n_taken, 10);
    // Once it listens, there is room again.
    let mut wire = listen(&server, &id, None).await;
    next(&mut wire).await;
    for _ in 0..n_taken {
        assert_eq!(next(&mut wire).await.said().len(), 1000);
    }
    assert!(outlet.send(note("more")));
    assert_eq!(next(&mut wire).await.said(), "more");
}
