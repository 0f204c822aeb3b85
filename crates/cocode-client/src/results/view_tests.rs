//! Reading, paging and searching a result.

use std::num::NonZeroUsize;
use std::time::SystemTime;

use cocode_core::estimate_tokens;
use cocode_wire::RawJson;
use regex::Regex;
use serde_json::{Value, json};

use super::{FoundLine, LineKind, MAX_FOUND_LINE_BYTES, Page, PageSize, StoredResult};

fn stored(value: &Value) -> StoredResult {
    StoredResult {
        handle: "r0123456789".parse().unwrap(),
        server: "files".to_owned(),
        tool: "read".to_owned(),
        kept_at: SystemTime::UNIX_EPOCH,
        raw: RawJson::of(value).unwrap(),
    }
}

fn of_text(text: &str) -> StoredResult {
    stored(&json!({"content": [{"type": "text", "text": text}]}))
}

fn lines(lines: usize) -> PageSize {
    PageSize::Lines(NonZeroUsize::new(lines).unwrap())
}

fn tokens(tokens: usize) -> PageSize {
    PageSize::Tokens(NonZeroUsize::new(tokens).unwrap())
}

/// All pages, one after the other.
fn all_pages(stored: &StoredResult, size: PageSize) -> Vec<Page> {
    (1..)
        .map_while(|number| stored.page(number, size))
        .collect()
}

#[test]
fn the_text_is_what_a_person_would_read() {
    let result = stored(&json!({
        "content": [
            {"type": "text", "text": "Two rows:"},
            {"type": "text", "text": "{\"b\":1,\"a\":[true]}"},
            {"type": "image", "mimeType": "image/gif", "data": "R0lGODlhAgADAA=="},
            {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
            {"type": "resource_link", "uri": "file:///a", "name": "a"},
            {"type": "resource", "resource": {"uri": "file:///b", "text": "inside\n"}},
            {"type": "resource", "resource": {"uri": "file:///c", "blob": "AAAA"}},
            {"type": "novel", "x": 1},
        ],
        "structuredContent": {"rows": 2},
    }));
    let expected = "\
Two rows:
{
  \"b\": 1,
  \"a\": [
    true
  ]
}
[image image/gif, 2 x 3 pixels, 10 bytes]
[audio audio/wav, 3 bytes]
file:///a (a)
inside
[resource file:///c 3 bytes]
{
  \"type\": \"novel\",
  \"x\": 1
}
{
  \"rows\": 2
}
";
    assert_eq!(result.text(), expected);
}

#[test]
fn structured_content_is_not_shown_twice() {
    let result = stored(&json!({
        "content": [{"type": "text", "text": "{\"b\": 1, \"a\": 2}"}],
        "structuredContent": {"a": 2, "b": 1},
    }));
    assert_eq!(result.text(), "{\n  \"b\": 1,\n  \"a\": 2\n}\n");
}

#[test]
fn a_result_without_content_is_shown_whole() {
    for (value, expected) in [
        (json!({"content": []}), "{\n  \"content\": []\n}\n"),
        (json!({}), "{}\n"),
        (json!("bare"), "\"bare\"\n"),
    ] {
        assert_eq!(stored(&value).text(), expected);
    }
}

#[test]
fn pages_of_lines_have_so_many_lines() {
    let result = of_text("1\n2\n3\n4\n5");
    let pages = all_pages(&result, lines(2));
    let texts: Vec<&str> = pages.iter().map(|page| page.text.as_str()).collect();
    assert_eq!(texts, ["1\n2\n", "3\n4\n", "5\n"]);
    assert_eq!(
        pages.get(1),
        Some(&Page {
            number: 2,
            pages: 3,
            first_line: 3,
            last_line: 4,
            lines: 5,
            text: "3\n4\n".to_owned(),
        })
    );
    assert_eq!(result.page(0, lines(2)), None);
    assert_eq!(result.page(4, lines(2)), None);
}

#[test]
fn pages_of_tokens_lose_nothing_and_keep_their_size() {
    let text = format!(
        "{}{}\n{}🎉🎉🎉\nend",
        "a line of text\n".repeat(10),
        "long ".repeat(300),
        "中文".repeat(50)
    );
    let result = of_text(&text);
    for size in [1, 7, 100, 1_000_000] {
        let pages = all_pages(&result, tokens(size));
        let joined: String = pages.iter().map(|page| page.text.as_str()).collect();
        assert_eq!(joined, result.text(), "{size}");
        for page in &pages {
            // A party popper alone is two tokens.
            let most = size.max(2) as u64;
            assert!(estimate_tokens(&page.text) <= most, "{page:?}");
            assert_eq!(page.pages, pages.len());
            assert!(page.first_line <= page.last_line && page.last_line <= page.lines);
        }
        assert_eq!(pages[0].first_line, 1);
        assert_eq!(pages.last().unwrap().last_line, 13);
    }
    let pages = all_pages(&result, tokens(50));
    // The first pages hold whole lines, and the long one goes on over several.
    assert!(pages[0].text.ends_with("text\n"));
    let parts = pages.iter().filter(|page| page.text.starts_with("long "));
    assert!(parts.count() > 2);
}

#[test]
fn an_empty_text_has_one_page() {
    let page = of_text("").page(1, PageSize::default()).unwrap();
    assert_eq!((page.pages, page.first_line, page.last_line), (1, 1, 1));
    assert_eq!(page.text, "\n");
}

#[test]
fn lines_are_found_with_what_is_around_them_and_none_twice() {
    let result = of_text("a\nb\nx1\nc\nx2\nd\ne\nf\nx3");
    let pattern = Regex::new("^x").unwrap();
    let told = |context| {
        let found = result.search(&pattern, context);
        let told = found.iter().map(|FoundLine { number, text, kind }| {
            let mark = match kind {
                LineKind::Match => ':',
                LineKind::Context => '-',
            };
            format!("{number}{mark}{text}")
        });
        told.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(told(0), "3:x1 5:x2 9:x3");
    assert_eq!(told(1), "2-b 3:x1 4-c 5:x2 6-d 8-f 9:x3");
    assert_eq!(told(100), "1-a 2-b 3:x1 4-c 5:x2 6-d 7-e 8-f 9:x3");
    assert_eq!(result.search(&Regex::new("z").unwrap(), 3), []);
}

#[test]
fn of_a_long_line_only_what_is_around_the_match_is_shown() {
    let line = format!("{}needle{}", "é".repeat(5_000), "中".repeat(5_000));
    let found = of_text(&line).search(&Regex::new("needle").unwrap(), 0);
    let shown = &found[0].text;
    assert!(shown.len() <= MAX_FOUND_LINE_BYTES + 2 * '…'.len_utf8());
    assert!(shown.starts_with("…é") && shown.ends_with("中…"), "{shown}");
    assert!(shown.contains("éneedle中"), "{shown}");
}
