//! Calls by way of the API: whole and in events, and what is seen of calls otherwise.

use cocode_admin::{CallEnding, NewCall};
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::time::Instant;

use crate::client::{Asking, Place, events_in};

fn call(place: &Place, server: &str, tool: &str) -> Asking {
    let body = json!({ "tool": tool, "arguments": {} }).to_string();
    let path = format!("/api/v1/servers/{server}/call");
    let accept = "text/event-stream; q=0.9, application/json";
    place.post(&path, &body).admin().with("accept", accept)
}

#[tokio::test(start_paused = true)]
async fn a_call_in_events_tells_its_steps_and_then_its_result() {
    let place = Place::new();
    let answer = call(&place, "files", "echo").send().await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.kind(), "text/event-stream");
    let events = events_in(&answer.text);
    let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["progress", "log", "result"]);
    let half = json!({ "progress": 1.0, "total": 2.0, "message": "half\nway" });
    assert_eq!(events[0].1, half);
    assert_eq!(events[1].1["text"], "working");
    assert_eq!(events[2].1["result"]["content"], json!([]));
    assert_eq!(events[2].1["milliseconds"], 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_long_shows_that_it_lives() {
    let place = Place::new();
    let begun = Instant::now();
    let answer = call(&place, "files", "slow").send().await;
    assert_eq!(begun.elapsed().as_secs(), 40);
    assert_eq!(answer.text.matches("\n: ").count(), 2, "{}", answer.text);
    let (name, data) = events_in(&answer.text).pop().unwrap();
    assert_eq!(
        (&*name, &data["milliseconds"]),
        ("result", &json!(40_000.0))
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_ends_in_an_error_and_an_unknown_server_is_not_found() {
    let place = Place::new();
    let answer = call(&place, "files", "fail").send().await;
    let (name, data) = events_in(&answer.text).pop().unwrap();
    assert_eq!((&*name, &data["error"]["code"]), ("error", &json!("rpc")));
    let whole = call(&place, "files", "fail").without("accept").send().await;
    assert_eq!((whole.status, &*whole.code()), (424, "rpc"));
    let unknown = call(&place, "nobody", "echo").send().await;
    assert_eq!((unknown.status, &*unknown.code()), (404, "server-unknown"));
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_listening_takes_the_call_back() {
    let place = Place::new();
    let (_, _, body) = call(&place, "files", "never").open().await;
    let mut pieces = body.into_stream();
    let first = pieces.next().await.unwrap();
    assert!(first.starts_with(b"event: progress"));
    // The house hears of it as of any future that is dropped; nothing goes on without an owner.
    drop(pieces);
    assert_eq!(place.desk.calls.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_of_clients_are_seen_with_their_latencies() {
    let place = Place::new();
    let begin = |name: &str| {
        place.desk.calls.begin(NewCall {
            principal: "ana".to_owned(),
            server: Some("files".to_owned()),
            method: "tools/call".to_owned(),
            name: name.to_owned(),
        })
    };
    let one = begin("one");
    tokio::time::advance(std::time::Duration::from_millis(20)).await;
    one.end(CallEnding::Ok { bytes: 10 });
    let running = begin("two");
    let get = |path: &str| place.get(path).admin().send();
    let calls = get("/api/v1/calls?limit=10").await.json();
    assert_eq!(calls["calls"][0]["name"], "two");
    assert_eq!(calls["calls"][0]["state"], "running");
    assert_eq!(calls["calls"][1]["milliseconds"], 20.0);
    assert_eq!(
        get("/api/v1/calls?limit=1").await.json()["calls"][1],
        json!(null)
    );
    let latencies = get("/api/v1/latencies").await.json();
    let files = &latencies["servers"][0];
    assert_eq!(files["name"], "files");
    assert_eq!((&files["p50"], &files["p99"]), (&json!(20.0), &json!(20.0)));
    assert_eq!(get("/api/v1/status").await.json()["callsInFlight"], 1);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_login_can_be_waited_for() {
    let place = Place::new();
    let path = "/api/v1/servers/search/login";
    let login = |body: &str| place.post(path, body).admin().send();
    let begun = login("{}").await.json();
    assert_eq!(begun["state"], "waiting");
    assert_eq!(begun["authorizationUrl"], "https://example.com/authorize");
    let waiting = login(r#"{"wait":true,"scopes":["a"]}"#);
    let signing_in = async {
        tokio::time::sleep(std::time::Duration::from_secs(9)).await;
        place.house.sign_in_at("search");
    };
    let (over, ()) = tokio::join!(waiting, signing_in);
    assert_eq!(over.json()["state"], "done");
    assert_eq!(place.get(path).admin().send().await.json()["state"], "done");

    let clock = Instant::now();
    let late = login(r#"{"wait":true}"#).await;
    assert_eq!(clock.elapsed().as_secs(), 300);
    assert_eq!(late.json()["state"], "waiting");
    let none = place
        .get("/api/v1/servers/files/login")
        .admin()
        .send()
        .await;
    assert_eq!((none.status, &*none.code()), (404, "login-unknown"));
}
