//! Markdown as it is shown, whole and in pieces.

use super::*;

fn shown(markdown: &str, columns: usize) -> String {
    texts(&render(markdown, columns))
}

fn texts(lines: &[Line]) -> String {
    let texts: Vec<String> = lines.iter().map(Line::text).collect();
    texts.join("\n")
}

#[test]
fn blocks_stand_apart() {
    let markdown = "# Title\nSome *text* that is `long` enough.\n\n> quoted\n> text\n\n---\nend";
    let expected = "Title\n\nSome text that is\nlong enough.\n\n│ quoted text\n\n────────\n\nend";
    assert_eq!(shown(markdown, 18), expected);
}

#[test]
fn styles_are_those_of_the_marks() {
    let lines = render("a **b *c*** ~~d~~ `e`", 80);
    let styles: Vec<(&str, Style)> = lines
        .iter()
        .flat_map(Line::spans)
        .map(|span| (span.text(), span.style()))
        .collect();
    let bold = Style::PLAIN.bold();
    let expected = [
        ("a ", Style::PLAIN),
        ("b ", bold),
        ("c", bold.italic()),
        (" ", Style::PLAIN),
        ("d", Style::PLAIN.struck()),
        (" ", Style::PLAIN),
        ("e", CODE),
    ];
    assert_eq!(styles, expected);
}

#[test]
fn lists_are_indented_and_numbered() {
    let markdown =
        "intro\n\n- one that is long\n  - inner\n- two\n\n3. three\n\n   more\n4. four\n- [x] done";
    let expected = "intro\n\n• one that\n  is long\n  • inner\n• two\n\n3. three\n\n   more\n4. four\n\n• [x] done";
    assert_eq!(shown(markdown, 10), expected);
}

#[test]
fn code_is_kept_as_it_is() {
    let markdown = "- a\n\n  ```sh\n  cat   very-long-name | sort\n  \tx\n  ```\n";
    let expected = "• a\n\n  ```sh\n  cat   very-long-name | sort\n    x\n  ```";
    assert_eq!(shown(markdown, 10), expected);
}

#[test]
fn links_say_where_they_lead() {
    let markdown = "[text](https://a.b/c), <https://d.e>, <f@g.h> ![alt](i.png)";
    let expected = "text (https://a.b/c), https://d.e, f@g.h image: alt (i.png)";
    assert_eq!(shown(markdown, 99), expected);
}

#[test]
fn tables_are_in_columns_where_they_fit() {
    let markdown = "| name | count |\n|---|--:|\n| 漢字 | 1 |\n| b | `22` |\n";
    let expected = "name  count\n────  ─────\n漢字  1\nb     22";
    assert_eq!(shown(markdown, 20), expected);
    let narrow = "name: 漢字\ncount: 1\n\nname: b\ncount: 22";
    assert_eq!(shown(markdown, 10), narrow);
}

#[test]
fn html_is_text() {
    assert_eq!(
        shown("<b>\nx\n</b>\n\na <i>b</i>", 80),
        "<b>\nx\n</b>\n\na <i>b</i>"
    );
}

/// A text with everything that is given out in its own way.
const LONG: &str = "# T\n\nSome **bold** text\nover lines.\n\n1. one\n2. two\n   - inner\n\n3. three\n\n```rust\nfn a() {\n\n}\n```\nAfter\n\n~~~\n```\n~~~\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- x\n\n  ```sh\n  y\n  ```\n- z\n\n> q\n";

#[test]
fn pieces_of_any_size_give_what_the_whole_gives() {
    let mut whole = Stream::default();
    whole.push(LONG);
    let expected = texts(&whole.finish(30));
    for size in 1..LONG.len() {
        let mut stream = Stream::default();
        let mut lines = Vec::new();
        let characters: Vec<char> = LONG.chars().collect();
        for piece in characters.chunks(size) {
            stream.push(&piece.iter().collect::<String>());
            lines.extend(stream.take_complete(30));
        }
        lines.extend(stream.finish(30));
        assert_eq!(texts(&lines), expected, "pieces of {size}");
    }
}

#[test]
fn what_is_complete_is_given_out_at_once() {
    let mut stream = Stream::default();
    let mut step = |text: &str| {
        stream.push(text);
        let complete = texts(&stream.take_complete(40));
        (complete, texts(&stream.tail(40)))
    };
    let pair = |complete: &str, tail: &str| (complete.to_owned(), tail.to_owned());
    assert_eq!(step("One para"), pair("", "One para"));
    assert_eq!(step("graph.\n\nTwo"), pair("One paragraph.", "\nTwo"));
    assert_eq!(step("\n\n- a\n- b"), pair("\nTwo", "\n• a\n• b"));
    assert_eq!(
        step("\n\n```sh\nls\npw"),
        pair("\n• a\n• b\n\n```sh\nls", "pw")
    );
    assert_eq!(step("d\n```\n"), pair("pwd\n```", ""));
    assert_eq!(step("end"), pair("", "\nend"));
}

#[test]
fn code_that_never_ends_is_closed() {
    let mut stream = Stream::default();
    stream.push("```\na\nb");
    assert_eq!(texts(&stream.take_complete(40)), "```\na");
    assert_eq!(texts(&stream.finish(40)), "b\n```");
    assert!(stream.is_empty());
}

#[test]
fn a_sequence_that_arrives_in_pieces_is_not_obeyed() {
    let mut stream = Stream::default();
    stream.push("a \u{1b}");
    assert_eq!(texts(&stream.tail(40)), "a ␛");
    stream.push("]0;evil\u{7} b\u{1b}[2Jc");
    assert_eq!(texts(&stream.finish(40)), "a  bc");
}
