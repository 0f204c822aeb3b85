//! The ring and the line cutter, without a process.

use super::*;

fn tail_of(chunks: &[&[u8]]) -> StderrTail {
    let tail = StderrTail::default();
    for chunk in chunks {
        tail.push(chunk);
    }
    tail
}

fn tapped(chunks: &[&[u8]]) -> Vec<String> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let mut lines = LineTap::new(Arc::new(move |line: &str| {
        sink.lock().unwrap().push(line.to_owned());
    }));
    for chunk in chunks {
        lines.push(chunk);
    }
    lines.finish();
    seen.lock().unwrap().clone()
}

#[test]
fn silence_has_no_lines() {
    assert_eq!(tail_of(&[]).lines(10), Vec::<String>::new());
}

#[test]
fn the_last_lines_come_in_order_with_or_without_a_final_line_end() {
    assert_eq!(tail_of(&[b"a\nb", b"\r\nc\n"]).lines(10), ["a", "b", "c"]);
    assert_eq!(tail_of(&[b"a\nb\nc"]).lines(2), ["b", "c"]);
    assert_eq!(tail_of(&[b"a\n\nb\n"]).lines(10), ["a", "", "b"]);
    assert_eq!(tail_of(&[b"a\n"]).lines(0), Vec::<String>::new());
}

#[test]
fn a_line_that_lost_its_beginning_is_left_out() {
    let long = vec![b'x'; STDERR_TAIL_BYTES];
    assert_eq!(tail_of(&[b"start", &long, b"\nlast\n"]).lines(10), ["last"]);
    let only = tail_of(&[b"start", &long]).lines(10);
    assert_eq!(
        only.iter().map(String::len).collect::<Vec<_>>(),
        [STDERR_TAIL_BYTES]
    );
}

#[test]
fn the_ring_never_exceeds_its_size() {
    let tail = StderrTail::default();
    for size in [1, STDERR_TAIL_BYTES - 1, 1, 3 * STDERR_TAIL_BYTES, 17] {
        tail.push(&vec![b'x'; size]);
        assert!(tail.ring().bytes.len() <= STDERR_TAIL_BYTES);
    }
    tail.push(b"end");
    assert!(
        tail.ring()
            .bytes
            .iter()
            .copied()
            .collect::<Vec<_>>()
            .ends_with(b"xend")
    );
}

#[test]
fn bytes_that_are_not_text_are_replaced() {
    assert_eq!(tail_of(&[b"caf\xff\n"]).lines(1), ["caf\u{fffd}"]);
}

#[test]
fn the_tap_sees_each_line_once_and_the_unfinished_last_one() {
    assert_eq!(
        tapped(&[b"one\r\ntw", b"o\n", b"\n", b"three"]),
        ["one", "two", "", "three"]
    );
}

#[test]
fn the_tap_sees_the_beginning_of_a_line_that_is_too_long() {
    let long = vec![b'x'; STDERR_LINE_BYTES];
    let seen = tapped(&[&long, b"left out", b"\nnext\n"]);
    assert_eq!(seen, ["x".repeat(STDERR_LINE_BYTES), "next".to_owned()]);
}
