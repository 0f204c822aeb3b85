//! Lines, cut in every way a pipe can cut them.

use bytes::BytesMut;
use proptest::prelude::*;

use super::{Line, Splitter};

fn split(chunks: &[&[u8]], max: usize) -> Vec<Line> {
    let mut splitter = Splitter::new(max);
    let mut buffer = BytesMut::new();
    let mut lines = Vec::new();
    for chunk in chunks {
        buffer.extend_from_slice(chunk);
        while let Some(line) = splitter.next(&mut buffer) {
            lines.push(line);
        }
    }
    lines.extend(splitter.finish(&mut buffer));
    lines
}

fn whole(text: &str) -> Line {
    Line::Whole(text.to_owned().into())
}

#[test]
fn lines_survive_any_cut_and_blank_ones_vanish() {
    assert_eq!(
        split(&[b"a\nb", b"b\r\n", b"\n  \n", b" c \n"], 10),
        [whole("a"), whole("bb"), whole("c")]
    );
}

#[test]
fn the_rest_without_a_newline_is_a_line_too() {
    assert_eq!(split(&[b"a\nb"], 10), [whole("a"), whole("b")]);
}

#[test]
fn a_line_over_the_cap_is_dropped_as_it_comes_and_keeps_its_id() {
    let head = br#"{"jsonrpc":"2.0","result":""#;
    let filler = [b'x'; 100];
    let tail = b"\",\"id\":41}\nnext\n";
    let mut chunks: Vec<&[u8]> = vec![head];
    chunks.extend(std::iter::repeat_n(&filler[..], 50));
    chunks.push(tail);
    let lines = split(&chunks, 200);
    assert!(
        matches!(&lines[0], Line::TooLarge { id: Some(41), .. }),
        "{lines:?}"
    );
    assert_eq!(lines[1..], [whole("next")]);
}

#[test]
fn a_line_over_the_cap_is_noticed_even_when_it_arrives_at_once() {
    let lines = split(&[b"{\"id\":3,\"result\":12345678901234567890}\nok\n"], 16);
    assert!(
        matches!(&lines[0], Line::TooLarge { id: Some(3), .. }),
        "{lines:?}"
    );
    assert_eq!(lines[1..], [whole("ok")]);
}

#[test]
fn an_unfinished_line_over_the_cap_is_reported_at_the_end() {
    let lines = split(&[b"0123456789abcdef", b"0123456789"], 8);
    assert!(
        matches!(&lines[..], [Line::TooLarge { id: None, .. }]),
        "{lines:?}"
    );
}

proptest! {
    #[test]
    fn splitting_does_not_depend_on_the_cuts(
        text in prop::collection::vec(prop_oneof![3 => Just(b'a'), 1 => Just(b'\n'), 1 => Just(b' ')], 0..200),
        cuts in prop::collection::vec(0usize..200, 0..20),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &text[w[0]..w[1]]).collect();
        prop_assert_eq!(split(&chunks, 1000), split(&[&text], 1000));
    }
}
