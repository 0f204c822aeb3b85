//! Tests of the book of calls: their states, what is told of them, and bounds.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{
    CallBook, CallEnding, MAX_CALLS_KEPT, MAX_COUNTED_SERVERS, NewCall, OTHER_SERVERS, TurnedAway,
};
use crate::bulletin::{Bulletin, Listener};
use crate::model::{Call, CallProgress, CallState};

fn of(server: &str, name: &str) -> NewCall {
    NewCall {
        principal: "ana".to_owned(),
        server: Some(server.to_owned()),
        method: "tools/call".to_owned(),
        name: name.to_owned(),
    }
}

fn step(progress: f64) -> CallProgress {
    CallProgress {
        progress,
        total: Some(10.0),
        message: None,
    }
}

/// The calls that a listener is told of.
fn told(listener: &mut Listener) -> Vec<Call> {
    let mut all = Vec::new();
    while let Some(text) = listener.take() {
        let text = String::from_utf8(text.to_vec()).unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        all.extend(data.map(|data| serde_json::from_str::<Call>(data).unwrap()));
    }
    all
}

#[tokio::test(start_paused = true)]
async fn a_call_is_told_of_from_its_beginning_to_its_end() {
    let bulletin = Bulletin::new();
    let book = CallBook::new(bulletin.clone());
    let mut listener = bulletin.listen(None).unwrap();
    let call = book.begin(of("files", "read"));
    assert_eq!(book.in_flight(), 1);
    assert_eq!(book.recent(9)[0].state, CallState::Running);
    call.progress(step(1.0));
    call.progress(step(2.0));
    tokio::time::advance(Duration::from_millis(100)).await;
    call.progress(step(3.0));
    tokio::time::advance(Duration::from_millis(150)).await;
    call.end(CallEnding::Ok { bytes: 7 });

    let told = told(&mut listener);
    let steps: Vec<_> = told
        .iter()
        .map(|call| (call.state, call.progress.as_ref().map(|step| step.progress)))
        .collect();
    let running = CallState::Running;
    assert_eq!(
        steps,
        [
            (running, None),
            (running, Some(1.0)),
            // The second step came too soon after the first.
            (running, Some(3.0)),
            (CallState::Ok, Some(3.0)),
        ]
    );
    let last = &told[3];
    assert_eq!(last.milliseconds, Some(250.0));
    assert_eq!(last.bytes, Some(7));
    assert_eq!(book.recent(9), std::slice::from_ref(last));
    assert_eq!(book.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_in_one_way_and_is_counted_so() {
    let book = CallBook::new(Bulletin::new());
    let end = |ending| book.begin(of("files", "read")).end(ending);
    end(CallEnding::Ok { bytes: 1 });
    end(CallEnding::ToolError { bytes: 2 });
    end(CallEnding::Error("boom".to_owned()));
    end(CallEnding::Denied("no".to_owned()));
    end(CallEnding::Cancelled);
    drop(book.begin(of("files", "read")));
    let states: Vec<_> = book.recent(9).iter().map(|call| call.state).collect();
    assert_eq!(
        states,
        [
            CallState::Cancelled,
            CallState::Cancelled,
            CallState::Denied,
            CallState::Error,
            CallState::ToolError,
            CallState::Ok,
        ]
    );
    let (name, timings) = &book.timings()[0];
    assert_eq!(name, "files");
    assert_eq!(timings.outcomes().map(|(_, count)| count), [1, 1, 1, 2, 1]);
    let latency = &book.latencies()[0];
    assert_eq!((latency.count, latency.errors), (6, 2));
    assert_eq!(latency.recent.len(), 3);
    book.forget_server("files");
    assert_eq!(book.latencies(), []);
}

#[tokio::test(start_paused = true)]
async fn the_book_is_bounded_in_calls_servers_and_texts() {
    let book = CallBook::new(Bulletin::new());
    let long = "é".repeat(1000);
    let first = book.begin(of("first", &long));
    for number in 0..MAX_CALLS_KEPT + MAX_COUNTED_SERVERS {
        let server = format!("server-{}", number % (MAX_COUNTED_SERVERS + 5));
        book.begin(of(&server, "read"))
            .end(CallEnding::Ok { bytes: 0 });
    }
    assert_eq!(book.recent(usize::MAX).len(), MAX_CALLS_KEPT);
    assert_eq!(book.recent(3).len(), 3);
    let servers = book.latencies();
    assert_eq!(servers.len(), MAX_COUNTED_SERVERS + 1);
    assert_eq!(servers[0].name, OTHER_SERVERS);
    // A call that is too old for the list still ends.
    assert_eq!(book.in_flight(), 1);
    first.end(CallEnding::Error(long));
    assert_eq!(book.in_flight(), 0);
    let last = book.begin(of("x", &"é".repeat(1000)));
    assert_eq!(book.recent(1)[0].name.chars().count(), 513);
    drop(last);
}

#[tokio::test(start_paused = true)]
async fn those_who_were_turned_away_are_counted() {
    let book = CallBook::new(Bulletin::new());
    book.turn_away(TurnedAway::Limit);
    book.turn_away(TurnedAway::Limit);
    assert_eq!(book.turned_away(TurnedAway::Limit), 2);
    assert_eq!(book.turned_away(TurnedAway::Authentication), 0);
}

#[tokio::test(start_paused = true)]
async fn the_time_that_people_take_to_allow_a_call_is_no_time_of_its_server() {
    let book = CallBook::new(Bulletin::new());
    let call = book.begin(of("files", "write"));
    tokio::time::sleep(std::time::Duration::from_secs(25)).await;
    call.allowed();
    tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    call.end(CallEnding::Ok { bytes: 1 });
    let took = book.recent(1)[0].milliseconds.unwrap();
    assert!((3.0..25.0).contains(&took), "{took}");
}

#[tokio::test]
async fn entries_of_ended_calls_are_used_again() {
    let book = CallBook::new(Bulletin::new());
    let entries = || -> BTreeSet<_> {
        let pages = book.0.lock();
        let texts = pages.calls.iter().map(|call| {
            let fields = call.lock().unwrap();
            [fields.id.as_ptr(), fields.name.as_ptr()]
        });
        texts.flatten().collect()
    };
    let before = entries();
    let ongoing = book.begin(of("files", "ongoing"));
    for _ in 0..2 * MAX_CALLS_KEPT {
        let call = book.begin(of("files", "read"));
        call.end(CallEnding::Ok { bytes: 7 });
    }
    // All but those of the call under way.
    assert_eq!(before.difference(&entries()).count(), 2);
    ongoing.progress(step(1.0));
    assert!(
        book.recent(MAX_CALLS_KEPT)
            .iter()
            .all(|call| call.name == "read")
    );
    drop(ongoing);
    assert_eq!(book.in_flight(), 0);
}
