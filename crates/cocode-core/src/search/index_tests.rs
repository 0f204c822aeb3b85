//! What is found, in which order, and that servers that come and go leave no trace.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{ToolIndex, ToolText};
use crate::search::Hit;

const FILES: &[(&str, &str, &str)] = &[
    ("read_file", "Read the contents of a file.", "path"),
    (
        "write_file",
        "Write text to a file, or make a new one.",
        "path content",
    ),
    ("list_directory", "List what is in a directory.", "path"),
    ("delete_file", "Delete a file for good.", "path"),
];
const OFFICE: &[(&str, &str, &str)] = &[
    (
        "createEvent",
        "Create an event in a calendar.",
        "title start_time attendees",
    ),
    (
        "send_message",
        "Send a message to a channel.",
        "channel text",
    ),
    (
        "web_page_to_markdown",
        "Turn a web page into markdown.",
        "url",
    ),
    (
        "get_exchange_rate",
        "How much one currency is in another.",
        "from_currency to_currency",
    ),
];
const WEATHER: &[(&str, &str, &str)] = &[
    ("get_forecast", "天气预报，包含气温", "城市"),
    ("stations", "All measuring stations.", "country"),
];

fn add(index: &mut ToolIndex, server: &str, tools: &[(&str, &str, &str)]) {
    let schemas: Vec<String> = tools
        .iter()
        .map(|(_, _, parameters)| {
            let parameters: BTreeMap<&str, serde_json::Value> = parameters
                .split(' ')
                .map(|name| (name, serde_json::json!({ "type": "string" })))
                .collect();
            serde_json::json!({ "type": "object", "properties": parameters }).to_string()
        })
        .collect();
    let tools = tools.iter().zip(&schemas);
    let tools = tools.map(|((name, description, _), schema)| ToolText {
        name,
        title: None,
        description: Some(description),
        input_schema: Some(schema),
    });
    index.set_server(server, None, tools);
}

fn index() -> ToolIndex {
    let mut index = ToolIndex::new();
    add(&mut index, "files", FILES);
    add(&mut index, "office", OFFICE);
    add(&mut index, "weather", WEATHER);
    index
}

fn names(hits: &[Hit]) -> Vec<&str> {
    hits.iter().map(|hit| &*hit.tool).collect()
}

#[track_caller]
fn check(query: &str, expected: &str) {
    let hits = index().search(query, 3);
    assert_eq!(names(&hits).first(), Some(&expected), "{query}: {hits:#?}");
}

#[test]
fn tools_are_found_by_name_description_and_parameters() {
    check("read file", "read_file");
    check("event in my calendar", "createEvent");
    check("attendees", "createEvent");
    check("stations of a country", "stations");
}

#[test]
fn other_words_for_the_same_are_understood() {
    check("remove a document", "delete_file");
    check("what is in this folder", "list_directory");
    check("book a meeting", "createEvent");
    check("post to the chat", "send_message");
    check("convert dollars", "get_exchange_rate");
}

#[test]
fn beginnings_and_misspelled_words_are_understood() {
    check("calend", "createEvent");
    check("curency", "get_exchange_rate");
    check("dirctory", "list_directory");
    check("mesage", "send_message");
}

#[test]
fn words_that_some_write_as_one_are_the_same() {
    check("webpage", "web_page_to_markdown");
    check("web page", "web_page_to_markdown");
    check("exchangerate", "get_exchange_rate");
}

#[test]
fn other_languages_lead_to_the_same_tools() {
    check("weather", "get_forecast");
    check("查询天气", "get_forecast");
    check("删除文件", "delete_file");
    check("ファイル 読取 読む", "read_file");
    check("Datei löschen", "delete_file");
    check("leer un archivo", "read_file");
    check("envoyer une message", "send_message");
}

#[test]
fn a_tool_that_is_named_comes_first() {
    for query in [
        "delete_file",
        "deleteFile",
        "mcp__files__delete_file",
        "files.delete_file",
        "read, write and list files: I want delete_file, please",
    ] {
        check(query, "delete_file");
    }
    check("stations", "stations");
}

#[test]
fn what_only_looks_like_a_name_is_none() {
    let mut index = index();
    let odd = |name| ToolText {
        name,
        description: Some("zzz"),
        ..ToolText::default()
    };
    index.set_server("odd", None, [odd("_"), odd("-"), odd("apply")]);
    for query in [
        "open a page, e.g. the news",
        "open page https://example.com/",
        "read file in /tmp/dir/",
        "open https://example.com/jobs/apply",
        "read and/or apply: write a file",
    ] {
        let hits = index.search(query, 3);
        assert!(
            hits.first().is_none_or(|hit| &*hit.server != "odd"),
            "{query}: {hits:#?}"
        );
    }
    assert_eq!(names(&index.search("odd.apply", 1)), ["apply"]);
}

#[test]
fn words_of_everyday_speech_are_heard_where_they_are_names() {
    let mut index = index();
    let tools = ["create_relations", "list_bases", "help", "who_is"];
    let tools = tools.map(|name| ToolText {
        name,
        ..ToolText::default()
    });
    index.set_server("graph", None, tools);
    for (query, expected) in [
        ("relations", "create_relations"),
        ("show my bases", "list_bases"),
        ("help", "help"),
        ("who is", "who_is"),
    ] {
        let hits = index.search(query, 3);
        assert_eq!(names(&hits).first(), Some(&expected), "{query}: {hits:#?}");
    }
}

#[test]
fn what_is_endless_is_read_to_a_bound() {
    let mut index = index();
    let many: String =
        (0..200_000).fold(String::new(), |text, number| text + &format!("w{number} "));
    let name = "very_".repeat(10_000);
    let tool = ToolText {
        name: &name,
        description: Some(&many),
        ..ToolText::default()
    };
    index.set_server("endless", None, [tool]);
    assert!(index.vocabulary.len() < 3_000, "{}", index.vocabulary.len());
    assert!(
        index
            .search("w17", 1)
            .first()
            .is_some_and(|hit| &*hit.server == "endless")
    );
}

#[test]
fn words_of_servers_that_left_correct_and_complete_nothing() {
    let mut changed = index();
    let words: Vec<String> = (0..100)
        .map(|number| format!("calendx{number:03}"))
        .collect();
    let text = format!("{} curenci curencis", words.join(" "));
    let tool = ToolText {
        name: "gone",
        description: Some(&text),
        ..ToolText::default()
    };
    changed.set_server("gone", None, [tool]);
    assert!(changed.remove_server("gone"));
    for query in ["calend", "curency", "curencies"] {
        assert_eq!(
            changed.search(query, 5),
            index().search(query, 5),
            "{query}"
        );
    }
}

#[test]
fn files_that_are_mentioned_ask_for_tools_of_their_own() {
    let hits = index().search(
        "Look up the weather in three cities and save a summary at /tmp/weather.md",
        3,
    );
    let names = names(&hits);
    assert!(names.contains(&"get_forecast"), "{hits:#?}");
    assert!(names.contains(&"write_file"), "{hits:#?}");
    check("open ~/notes.txt", "read_file");
}

#[test]
fn the_same_tool_of_many_servers_leaves_room_for_others() {
    let mut index = index();
    for number in 0..6 {
        add(&mut index, &format!("copy-{number}"), &FILES[..1]);
    }
    let hits = index.search("read or delete a file", 3);
    assert!(names(&hits).contains(&"delete_file"), "{hits:#?}");
    assert_eq!(index.len(), 16);
}

#[test]
fn only_admitted_tools_are_found_and_no_more_than_wanted() {
    let index = index();
    let hits = index.search_among("file", 10, |server, tool| {
        server == "files" && tool != "read_file"
    });
    assert!(!hits.is_empty());
    assert!(!names(&hits).contains(&"read_file"), "{hits:#?}");
    assert_eq!(index.search("file", 2).len(), 2);
    assert_eq!(index.search("file", 0), []);
}

#[test]
fn what_says_nothing_finds_nothing() {
    let index = index();
    for query in ["", "   ", "the of and", "⚠️", "xqzzyw", "\u{0}"] {
        assert_eq!(index.search(query, 5), [], "{query}");
    }
    assert_eq!(ToolIndex::new().search("file", 5), []);
    assert!(!index.search(&"read file ".repeat(10_000), 5).is_empty());
}

#[test]
fn scores_fall_and_are_explained_to_the_last_point() {
    let index = index();
    for query in [
        "read the file /tmp/a.txt and send a message, then remove it",
        "delete_file",
        "calend",
    ] {
        let explained = index.explain(query, 10);
        let hits: Vec<Hit> = explained.iter().map(|one| one.hit.clone()).collect();
        assert_eq!(hits, index.search(query, 10));
        assert!(
            hits.is_sorted_by(|one, other| one.score >= other.score),
            "{hits:#?}"
        );
        for one in &explained {
            let sum: f64 = one.parts.iter().map(|part| part.score).sum();
            assert!((sum - one.hit.score).abs() < 1e-3, "{one:#?}");
            assert!(one.hit.score > 0.0);
        }
    }
    let explained = index.explain("curency", 1);
    let found = &explained.first().unwrap().parts.first().unwrap().found;
    assert_eq!(
        found,
        "`currenc` (taken for a misspelling, in description, parameters)"
    );
}

#[test]
fn odd_tools_are_no_trouble() {
    let mut index = ToolIndex::new();
    let odd = [
        ToolText::default(),
        ToolText {
            name: "x",
            input_schema: Some("{"),
            ..ToolText::default()
        },
        ToolText {
            name: "twice",
            description: Some("first"),
            ..ToolText::default()
        },
        ToolText {
            name: "twice",
            description: Some("second"),
            input_schema: Some("[]"),
            ..ToolText::default()
        },
    ];
    index.set_server("", Some(&"about ".repeat(1_000)), odd);
    assert_eq!(index.len(), 3);
    assert_eq!(names(&index.search("second", 5)), ["twice"]);
    assert_eq!(index.search("first", 5), []);
}

#[test]
fn words_that_stand_nowhere_any_more_are_forgotten() {
    let mut index = index();
    let many: Vec<String> = (0..25_000).map(|number| format!("word{number}x")).collect();
    for chunk in many.chunks(500) {
        let text = chunk.join(" ");
        let tool = ToolText {
            name: &chunk[0],
            description: Some(&text),
            ..ToolText::default()
        };
        index.set_server(&chunk[0], None, [tool]);
    }
    assert!(index.vocabulary.len() > 25_000);
    for chunk in many.chunks(500) {
        assert!(index.remove_server(&chunk[0]));
    }
    assert!(
        index.vocabulary.len() < 15_000,
        "{}",
        index.vocabulary.len()
    );
    assert_eq!(
        index.search("remove file", 5),
        self::index().search("remove file", 5)
    );
    assert_eq!(names(&index.search("delete_file", 1)), ["delete_file"]);
}

const WORDS: &[&str] = &[
    "read", "file", "web", "page", "event", "天气", "delete", "Message", "list", "get", "calendar",
];

fn text() -> impl Strategy<Value = String> {
    let words = proptest::collection::vec(proptest::sample::select(WORDS), 1..5);
    words.prop_map(|words| words.join("_"))
}

proptest! {
    /// An index that servers came to and went from finds the same as one that never knew others.
    #[test]
    fn changes_leave_no_trace(
        steps in proptest::collection::vec((0..4_usize, proptest::collection::vec((text(), text()), 0..4)), 1..12),
        query in text(),
    ) {
        let mut changed = ToolIndex::new();
        let mut last = BTreeMap::new();
        for (server, tools) in &steps {
            let name = format!("server-{server}");
            let texts = || tools.iter().map(|(name, description)| ToolText {
                name,
                description: Some(description),
                ..ToolText::default()
            });
            if tools.is_empty() {
                changed.remove_server(&name);
                last.remove(&name);
            } else {
                changed.set_server(&name, None, texts());
                last.insert(name, tools);
            }
        }
        let mut fresh = ToolIndex::new();
        for (name, tools) in &last {
            fresh.set_server(name, None, tools.iter().map(|(name, description)| ToolText {
                name,
                description: Some(description),
                ..ToolText::default()
            }));
        }
        prop_assert_eq!(changed.len(), fresh.len());
        prop_assert!(changed.servers().eq(fresh.servers()));
        prop_assert_eq!(changed.search(&query, 20), fresh.search(&query, 20));
    }

    /// Whatever is asked, the answer is bounded, in order, and of tools that are there.
    #[test]
    fn any_query_is_answered(query in ".{0,200}", limit in 0..20_usize) {
        let index = index();
        let hits = index.search(&query, limit);
        prop_assert!(hits.len() <= limit);
        prop_assert!(hits.iter().all(|hit| hit.score > 0.0));
        prop_assert!(hits.is_sorted_by(|one, other| one.score >= other.score));
    }
}
