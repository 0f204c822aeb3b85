//! The books of a session's streams, against what anybody can recount.

use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use proptest::prelude::*;

use super::{STANDALONE, Streams, Turn};
use crate::serve::http::options::HttpLimits;
use crate::serve::service::Answer;

fn limits() -> HttpLimits {
    HttpLimits {
        max_queued: 300,
        max_undelivered: 600,
        max_replay_bytes: 400,
        max_replay_events: 6,
        ..HttpLimits::default()
    }
}

fn answer(text: &str) -> Answer {
    Answer {
        body: Bytes::copy_from_slice(text.as_bytes()),
        error: None,
    }
}

/// What waits and what is kept, counted event by event.
#[track_caller]
fn recount(streams: &Streams) {
    let state = streams.state();
    let (mut kept_bytes, mut kept_events, mut waiting_bytes) = (0, 0, 0);
    for log in state.logs.values() {
        let mut waiting_here = 0;
        for (place, event) in (log.first..).zip(&log.events) {
            if place < log.unread {
                kept_bytes += event.len();
                kept_events += 1;
            } else {
                waiting_here += event.len();
            }
        }
        assert!(log.first <= log.unread && log.unread <= log.next_place());
        assert_eq!(log.waiting_bytes, waiting_here);
        waiting_bytes += waiting_here;
    }
    assert_eq!(
        (state.kept_bytes, state.kept_events, state.waiting_bytes),
        (kept_bytes, kept_events, waiting_bytes)
    );
    if kept_events > 1 {
        let limits = limits();
        assert!(kept_bytes <= limits.max_replay_bytes && kept_events <= limits.max_replay_events);
    }
}

fn read(streams: &Streams, stream: u64, reader: u64) -> Poll<Option<Bytes>> {
    let context = Context::from_waker(Waker::noop());
    streams.poll_read(stream, reader, &context)
}

#[derive(Clone, Debug)]
enum Step {
    Open,
    Send(u64, usize),
    Finish(u64, usize),
    Attach(u64, Option<u64>),
    Read(u64),
    Detach(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let stream = 0..5_u64;
    prop_oneof![
        Just(Step::Open),
        (stream.clone(), 0..200_usize).prop_map(|(stream, size)| Step::Send(stream, size)),
        (1..5_u64, 0..900_usize).prop_map(|(stream, size)| Step::Finish(stream, size)),
        (stream.clone(), proptest::option::of(0..9_u64))
            .prop_map(|(stream, after)| Step::Attach(stream, after)),
        stream.clone().prop_map(Step::Read),
        stream.clone().prop_map(Step::Read),
        stream.prop_map(Step::Detach),
    ]
}

proptest! {
    #[test]
    fn the_books_are_right_whatever_happens(resumable: bool, steps in prop::collection::vec(step(), 0..80)) {
        let streams = Streams::new(limits(), resumable, 1);
        let mut readers: BTreeMap<u64, u64> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Open => drop(streams.open("".into())),
                Step::Send(stream, size) => drop(streams.send(stream, "s".repeat(size).as_bytes())),
                Step::Finish(stream, size) => streams.finish(stream, &answer(&"f".repeat(size))),
                Step::Attach(stream, after) => {
                    if let Some(turn) = streams.attach(stream, after) {
                        readers.insert(stream, turn.reader);
                    }
                }
                Step::Read(stream) => {
                    if let Some(reader) = readers.get(&stream) {
                        drop(read(&streams, stream, *reader));
                    }
                }
                Step::Detach(stream) => {
                    if let Some(reader) = readers.remove(&stream) {
                        streams.detach(stream, reader);
                    }
                }
            }
            recount(&streams);
        }
        streams.end();
        prop_assert!(streams.state().logs.is_empty());
        prop_assert!(!streams.send(STANDALONE, b"x"));
    }

    /// However often a stream breaks and wherever the client takes it up again, it sees every
    /// message once and in order, unless it was dropped for good.
    #[test]
    fn a_client_that_comes_back_misses_nothing(breaks in prop::collection::vec(0..4_usize, 0..20)) {
        let streams = Streams::new(HttpLimits::default(), true, 1);
        let stream = streams.open("".into());
        for message in 0..20 {
            prop_assert!(streams.send(stream, message.to_string().as_bytes()));
        }
        streams.finish(stream, &answer("last"));
        let mut seen: Vec<Bytes> = Vec::new();
        for lost in breaks.into_iter().chain([usize::MAX]) {
            let after = Some(seen.len() as u64);
            let Some(Turn { reader, .. }) = streams.attach(stream, after) else {
                panic!("the stream is there");
            };
            // Of what is read now, some may be lost on the way.
            let mut taken = Vec::new();
            while taken.len() < 5
                && let Poll::Ready(Some(event)) = read(&streams, stream, reader)
            {
                taken.push(event);
            }
            let arrived = taken.len().saturating_sub(lost);
            seen.extend(if lost == usize::MAX { taken } else { taken.drain(..arrived).collect() });
            streams.detach(stream, reader);
        }
        while let Some(Turn { reader, .. }) = streams.attach(stream, Some(seen.len() as u64))
            && let Poll::Ready(Some(event)) = read(&streams, stream, reader)
        {
            seen.push(event);
        }
        let mut expected = Vec::new();
        for place in 1..=21_u64 {
            let text = if place == 21 { "last".into() } else { (place - 1).to_string() };
            expected.push(format!("event: message\nid: 00000001.1.{place}\ndata: {text}\n\n"));
        }
        let seen: Vec<String> = seen.iter().map(|event| String::from_utf8_lossy(event).into()).collect();
        prop_assert_eq!(seen, expected);
    }
}

#[test]
fn abandoned_streams_give_way_to_new_ones() {
    let streams = Streams::new(limits(), true, 1);
    let (old, new) = (streams.open("".into()), streams.open("".into()));
    streams.finish(old, &answer(&"o".repeat(500)));
    streams.finish(new, &answer(&"n".repeat(500)));
    assert!(streams.attach(old, None).is_none());
    let turn = streams.attach(new, None).expect("the newest is spared");
    assert!(matches!(
        read(&streams, new, turn.reader),
        Poll::Ready(Some(_))
    ));
    assert!(matches!(
        read(&streams, new, turn.reader),
        Poll::Ready(None)
    ));
    recount(&streams);
}

#[test]
fn a_cancelled_request_ends_its_stream_without_an_answer() {
    let streams = Streams::new(limits(), true, 1);
    let stream = streams.open("".into());
    let turn = streams.attach(stream, None).expect("a stream");
    assert!(read(&streams, stream, turn.reader).is_pending());
    streams.finish(stream, &Answer::none());
    assert!(matches!(
        read(&streams, stream, turn.reader),
        Poll::Ready(None)
    ));
    assert!(!streams.send(stream, b"late"));
}

#[test]
fn a_stream_without_anything_on_it_is_forgotten_when_it_ends() {
    let streams = Streams::new(limits(), true, 1);
    let abandoned = streams.open("".into());
    streams.finish(abandoned, &Answer::none());
    let read = streams.open("".into());
    let turn = streams.attach(read, None).unwrap();
    streams.finish(read, &Answer::none());
    assert_eq!(streams.state().logs.len(), 2, "and the one of the session");
    streams.detach(read, turn.reader);
    assert_eq!(streams.state().logs.len(), 1);
}
