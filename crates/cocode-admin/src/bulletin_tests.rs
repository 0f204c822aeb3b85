//! Tests of the ring of events: order, replay, loss, bounds.

use crate::model::{TokenChange, TokenNews};

use super::{
    Bulletin, KEPT_FOR_RETURN, Listener, MAX_BATCH, MAX_EVENT_BYTES_KEPT, MAX_EVENTS_KEPT,
    MAX_LISTENERS, News,
};

fn named(name: &str) -> News {
    News::Token(TokenNews {
        name: name.to_owned(),
        change: TokenChange::Added,
    })
}

fn publish(bulletin: &Bulletin, name: &str) {
    bulletin.publish(&named(name));
}

/// The ids and names of the events that there are.
fn heard(listener: &mut Listener) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(text) = listener.take() {
        let text = String::from_utf8(text.to_vec()).unwrap();
        for event in text.split_terminator("\n\n") {
            let field = |name: &str| {
                let prefix = format!("{name}: ");
                let line = event.lines().find_map(|line| line.strip_prefix(&prefix));
                line.unwrap_or_default().to_owned()
            };
            let data: serde_json::Value = serde_json::from_str(&field("data")).unwrap();
            let what = match field("event").as_str() {
                "missed" => format!("missed {}", data["missed"]),
                _ => data["name"].as_str().unwrap().to_owned(),
            };
            all.push(format!("{} {what}", field("id")));
        }
    }
    all
}

#[tokio::test(start_paused = true)]
async fn everybody_hears_everything_in_order() {
    let bulletin = Bulletin::from_id(100);
    publish(&bulletin, "unheard");
    let mut one = bulletin.listen(None).unwrap();
    assert_eq!(one.begun(), 100);
    assert_eq!(one.take(), None);
    publish(&bulletin, "a");
    let mut other = bulletin.listen(None).unwrap();
    publish(&bulletin, "b");
    assert_eq!(heard(&mut one), ["101 a", "102 b"]);
    assert_eq!(heard(&mut other), ["102 b"]);
    assert_eq!(heard(&mut one), [""; 0]);
    assert_eq!(bulletin.listeners(), 2);
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_back_soon_hears_what_happened_meanwhile() {
    let bulletin = Bulletin::from_id(100);
    let first = bulletin.listen(None).unwrap();
    publish(&bulletin, "a");
    drop(first);
    publish(&bulletin, "b");
    publish(&bulletin, "c");
    let mut again = bulletin.listen(Some(100)).unwrap();
    assert_eq!(heard(&mut again), ["101 b", "102 c"]);
    let mut all = bulletin.listen(Some(99)).unwrap();
    assert_eq!(heard(&mut all), ["100 a", "101 b", "102 c"]);
    let mut ahead = bulletin.listen(Some(u64::MAX)).unwrap();
    assert_eq!(heard(&mut ahead), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_back_late_or_to_another_run_is_told_that_something_was_missed() {
    let bulletin = Bulletin::from_id(100);
    drop(bulletin.listen(None));
    publish(&bulletin, "a");
    tokio::time::advance(KEPT_FOR_RETURN).await;
    publish(&bulletin, "b");
    let mut late = bulletin.listen(Some(99)).unwrap();
    publish(&bulletin, "c");
    assert_eq!(heard(&mut late), ["101 missed 2", "102 c"]);

    let next_run = Bulletin::from_id(5000);
    let mut late = next_run.listen(Some(102)).unwrap();
    assert_eq!(heard(&mut late), ["4999 missed 4897"]);
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_is_too_slow_is_told_what_it_missed_and_goes_on() {
    let bulletin = Bulletin::from_id(0);
    let mut slow = bulletin.listen(None).unwrap();
    for number in 0..MAX_EVENTS_KEPT + 3 {
        publish(&bulletin, &number.to_string());
    }
    let all = heard(&mut slow);
    assert_eq!(all.len(), MAX_EVENTS_KEPT + 1);
    assert_eq!(all[..2], ["2 missed 3", "3 3"]);

    // A few that are large are as many that are small.
    let large = "x".repeat(MAX_EVENT_BYTES_KEPT / 2);
    for _ in 0..2 {
        publish(&bulletin, &large);
    }
    let all = heard(&mut slow);
    assert_eq!(all.len(), 2, "one is kept, and one word about the other");
    assert!(all[0].ends_with("missed 1"), "{}", all[0]);
}

#[tokio::test(start_paused = true)]
async fn a_listener_takes_a_bounded_piece_at_a_time_and_wakes_for_more() {
    let bulletin = Bulletin::from_id(0);
    let mut listener = bulletin.listen(None).unwrap();
    for _ in 0..=MAX_BATCH {
        publish(&bulletin, "a");
    }
    let events = |text: bytes::Bytes| String::from_utf8_lossy(&text).matches("event:").count();
    assert_eq!(listener.take().map(events), Some(MAX_BATCH));
    assert_eq!(listener.take().map(events), Some(1));
    let waking = async {
        listener.wait().await;
        listener.take()
    };
    let publishing = async {
        tokio::task::yield_now().await;
        publish(&bulletin, "b");
    };
    let (told, ()) = tokio::join!(waking, publishing);
    assert!(told.is_some());
}

#[tokio::test(start_paused = true)]
async fn there_are_only_so_many_listeners() {
    let bulletin = Bulletin::new();
    let mut all: Vec<_> = (0..MAX_LISTENERS).map(|_| bulletin.listen(None)).collect();
    assert!(all.iter().all(Option::is_some));
    assert!(bulletin.listen(None).is_none());
    all.pop();
    assert!(bulletin.listen(None).is_some());
}

#[tokio::test(start_paused = true)]
async fn news_are_not_even_made_while_nobody_listens() {
    let bulletin = Bulletin::from_id(0);
    bulletin.publish_with(|| panic!("nobody listens"));
    let listener = bulletin.listen(None).unwrap();
    assert_eq!(listener.begun(), 0);
    bulletin.publish_with(|| named("a"));
}

#[tokio::test(start_paused = true)]
async fn only_those_count_as_answerers_who_say_so_and_only_while_they_listen() {
    let bulletin = Bulletin::new();
    let deaf = bulletin.listen(None).unwrap();
    assert_eq!(bulletin.answerers(), 0);
    let able = bulletin.listen(None).unwrap().answering().answering();
    assert_eq!((bulletin.listeners(), bulletin.answerers()), (2, 1));
    drop(deaf);
    assert_eq!(bulletin.answerers(), 1);
    drop(able);
    assert_eq!((bulletin.listeners(), bulletin.answerers()), (0, 0));
}
