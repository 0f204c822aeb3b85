//! Event streams, cut in every way a network can cut them.

use std::time::Duration;

use super::{Event, EventParser, EventTooLarge};

fn event(name: &str, data: &str) -> Event {
    Event {
        name: name.into(),
        data: data.to_owned().into(),
    }
}

/// The events of `text` must come out the same however it is cut into chunks.
#[track_caller]
fn check(text: &str, expected: &[Event]) -> EventParser {
    for size in [1, 2, 3, 7, text.len().max(1)] {
        let mut parser = EventParser::new(1024);
        let mut found = Vec::new();
        for chunk in text.as_bytes().chunks(size) {
            parser.feed(chunk);
            while let Some(event) = parser.next().unwrap() {
                found.push(event);
            }
        }
        assert_eq!(found, expected, "in chunks of {size}");
    }
    let mut parser = EventParser::new(1024);
    parser.feed(text.as_bytes());
    while parser.next().unwrap().is_some() {}
    parser
}

#[test]
fn events_end_with_a_blank_line_of_any_kind() {
    check(
        "data: a\n\ndata: b\r\n\r\ndata: c\r\r",
        &[event("", "a"), event("", "b"), event("", "c")],
    );
}

#[test]
fn an_unfinished_event_is_not_dispatched() {
    check("data: a\n\ndata: b\n", &[event("", "a")]);
}

#[test]
fn data_lines_are_joined_and_lose_one_blank() {
    check("data:a\ndata:  b\ndata\n\n", &[event("", "a\n b\n")]);
}

#[test]
fn comments_unknown_fields_and_a_byte_order_mark_are_passed_over() {
    check(
        "\u{feff}: hello\nfoo: bar\ndata: x\n\n:\n\n",
        &[event("", "x")],
    );
}

#[test]
fn names_ids_and_retry_are_kept() {
    let parser = check(
        "id: 1\nretry: 500\ndata: \n\nevent: endpoint\ndata: /m\n\nid: 2\ndata: y\n\nid: 3\ndata: z",
        &[event("", ""), event("endpoint", "/m"), event("", "y")],
    );
    assert_eq!(parser.last_id(), Some("2"));
    assert_eq!(parser.retry(), Some(Duration::from_millis(500)));
}

#[test]
fn an_id_counts_even_on_an_event_without_data() {
    let parser = check("id: 9\nretry: x\n\n", &[]);
    assert_eq!((parser.last_id(), parser.retry()), (Some("9"), None));
}

#[test]
fn an_event_over_the_cap_is_dropped_alone_however_it_comes() {
    let filler = "x".repeat(3000);
    let one_line = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":\"{filler}\"}}\n\n");
    let id_last = format!("id: e\ndata: {{\"result\":\"{filler}\",\"id\":4}}\n\n");
    let many_lines = "data: [1,\n".repeat(300) + "\n";
    for (text, id) in [(one_line, Some(4)), (id_last, Some(4)), (many_lines, None)] {
        for size in [1, 7, 1000, 100_000] {
            let mut parser = EventParser::new(1024);
            let mut found = Vec::new();
            for chunk in format!("data: a\n\n{text}data: b\n\n")
                .as_bytes()
                .chunks(size)
            {
                parser.feed(chunk);
                loop {
                    match parser.next() {
                        Ok(None) => break,
                        Ok(Some(event)) => found.push(Ok(event)),
                        Err(error) => found.push(Err(error)),
                    }
                    assert!(parser.buffer.len() <= 100_000 && parser.data_bytes() <= 2048);
                }
            }
            let expected = [
                Ok(event("", "a")),
                Err(EventTooLarge { id }),
                Ok(event("", "b")),
            ];
            assert_eq!(found, expected, "in chunks of {size}");
        }
    }
}
