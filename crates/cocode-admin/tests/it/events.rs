//! The stream of events, as one listener hears it.

use std::time::Duration;

use cocode_admin::model::{TokenChange, TokenNews};
use cocode_admin::{AdminOptions, MAX_LISTENERS, News};
use cocode_wire::serve::PageBody;
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::time::Instant;

use crate::client::{Asking, Place, events_in};
use crate::house::server;

type Pieces = std::pin::Pin<Box<dyn futures_util::Stream<Item = bytes::Bytes> + Send>>;

async fn listen(asking: Asking) -> Pieces {
    let (status, headers, body): (_, _, PageBody) = asking.open().await;
    assert_eq!(status, 200);
    assert_eq!(headers["content-type"], "text/event-stream");
    assert_eq!(headers["cache-control"], "no-store");
    body.into_stream()
}

async fn next(pieces: &mut Pieces) -> String {
    let piece = pieces.next().await.expect("the stream goes on");
    String::from_utf8(piece.to_vec()).unwrap()
}

fn token(name: &str) -> News {
    News::Token(TokenNews {
        name: name.to_owned(),
        change: TokenChange::Revoked,
    })
}

fn id_of(text: &str) -> &str {
    text.lines()
        .find_map(|line| line.strip_prefix("id: "))
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_listener_is_greeted_and_told_everything() {
    let place = Place::new();
    let mut pieces = listen(place.get("/api/v1/events").admin()).await;
    let hello = next(&mut pieces).await;
    assert_eq!(events_in(&hello)[0].0, "hello");
    assert_eq!(events_in(&hello)[0].1["version"], "1.2.3");
    let ready = server("files", cocode_admin::model::ServerState::Ready);
    place.desk.bulletin.publish(&News::Server(Box::new(ready)));
    place
        .desk
        .bulletin
        .publish(&News::ServerRemoved("files".to_owned()));
    place.desk.bulletin.publish(&token("ana"));
    let text = next(&mut pieces).await;
    let events = events_in(&text);
    let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["server", "server", "token"]);
    assert_eq!(events[0].1["state"], "ready");
    assert_eq!(events[1].1, json!({ "name": "files", "removed": true }));
    assert_eq!(events[2].1, json!({ "name": "ana", "change": "revoked" }));
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_says_that_it_lives_every_fifteen_seconds() {
    let place = Place::new();
    let mut pieces = listen(place.get("/api/v1/events").admin()).await;
    next(&mut pieces).await;
    let begun = Instant::now();
    for round in 1..=3 {
        assert!(next(&mut pieces).await.starts_with(": "));
        assert_eq!(begun.elapsed().as_secs(), round * 15);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_back_hears_what_happened_since() {
    let place = Place::new();
    let events = || place.get("/api/v1/events").admin();
    let mut first = listen(events()).await;
    let hello = next(&mut first).await;
    place.desk.bulletin.publish(&token("a"));
    let heard = next(&mut first).await;
    drop(first);
    place.desk.bulletin.publish(&token("b"));
    // From the greeting on, and from the last event on.
    for (id, expected) in [(id_of(&hello), &["a", "b"][..]), (id_of(&heard), &["b"])] {
        let mut again = listen(events().with("last-event-id", id)).await;
        next(&mut again).await;
        let told = events_in(&next(&mut again).await);
        let names: Vec<_> = told
            .iter()
            .map(|(_, data)| data["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, expected);
    }
    // Ids of another program are of long ago.
    let mut lost = listen(events().with("last-event-id", "héllo")).await;
    next(&mut lost).await;
    assert_eq!(events_in(&next(&mut lost).await)[0].0, "missed");
}

#[tokio::test(start_paused = true)]
async fn signing_out_ends_the_stream_of_that_session() {
    let place = Place::new();
    let browser = place.sign_in().await;
    let mut pieces = listen(place.get("/api/v1/events").page(&browser)).await;
    let mut other = listen(place.get("/api/v1/events").admin()).await;
    next(&mut pieces).await;
    next(&mut other).await;
    let out = place
        .post("/api/v1/sign-out", "{}")
        .page(&browser)
        .send()
        .await;
    assert_eq!(out.status, 204);
    place.desk.bulletin.publish(&token("secret"));
    assert!(
        pieces.next().await.is_none(),
        "nothing is told after the end"
    );
    assert!(next(&mut other).await.contains("secret"));
}

#[tokio::test(start_paused = true)]
async fn listening_keeps_a_session_in_use_until_it_is_too_old() {
    let place = Place::new();
    let browser = place.sign_in().await;
    let mut pieces = listen(place.get("/api/v1/events").page(&browser)).await;
    let begun = Instant::now();
    // The stream itself ends each hour.
    while pieces.next().await.is_some() {}
    assert_eq!(begun.elapsed(), Duration::from_hours(1));
    assert_eq!(
        place
            .get("/api/v1/status")
            .page(&browser)
            .send()
            .await
            .status,
        200
    );
    let session = place.get("/api/v1/session").page(&browser);
    while session.clone().send().await.status == 200 {
        let mut pieces = listen(place.get("/api/v1/events").page(&browser)).await;
        while pieces.next().await.is_some() {}
    }
    let age = begun.elapsed();
    assert!(
        (Duration::from_hours(12)..Duration::from_hours(13)).contains(&age),
        "{age:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn there_is_a_bound_on_listeners_and_on_how_long_they_listen() {
    let place = Place::with(AdminOptions {
        stream_lifetime: Duration::from_secs(1),
        ..AdminOptions::default()
    });
    let events = || place.get("/api/v1/events").admin();
    let mut all = Vec::new();
    for _ in 0..MAX_LISTENERS {
        all.push(listen(events()).await);
    }
    let full = events().send().await;
    assert_eq!((full.status, &*full.code()), (503, "too-many-listeners"));
    let mut one = all.pop().unwrap();
    while one.next().await.is_some() {}
    drop(one);
    next(&mut listen(events()).await).await;
}

#[tokio::test(start_paused = true)]
async fn only_those_open_the_inbox_who_can_answer() {
    let place = Place::new();
    let browser = place.sign_in().await;
    let events = |query: &str| place.get(&format!("/api/v1/events{query}"));
    let listeners = [
        (events("").admin(), 0),
        (events("?inbox=false").admin(), 0),
        (events("?inbox=true").admin(), 1),
        (events("").page(&browser), 1),
        (events("?inbox=true").page(&browser), 1),
    ];
    for (asking, expected) in listeners {
        let mut pieces = listen(asking).await;
        next(&mut pieces).await;
        assert_eq!(place.desk.bulletin.answerers(), expected);
        drop(pieces);
        assert_eq!(place.desk.bulletin.answerers(), 0);
    }
    let wrong = events("?inbox=yes").admin().send().await;
    assert_eq!((wrong.status, &*wrong.code()), (400, "query-unfit"));
}
