//! What models are told of the two tools, and of the servers behind them.

use super::{
    Loading, MAX_SERVERS_BYTES, SearchedServer, first_sentence, tool_call_definition,
    tool_search_definition, tool_search_for,
};

fn server<'a>(name: &'a str, about: Option<&'a str>) -> SearchedServer<'a> {
    SearchedServer { name, about }
}

#[test]
fn the_servers_are_named_with_a_few_words() {
    let servers = [
        server("files", Some("Files of this \"machine\". Nothing else.")),
        server("git", None),
    ];
    let text = tool_search_definition(servers);
    assert!(
        text.contains(r#"Servers:\n- files: Files of this \"machine\".\n- git","inputSchema""#),
        "{text}"
    );
    assert_eq!(text, tool_search_definition(servers));
}

#[test]
fn many_servers_share_the_room_that_there_is() {
    let about = "word ".repeat(100);
    for n_servers in [1, 10, 50, 200, 2_000] {
        let names: Vec<_> = (0..n_servers)
            .map(|number| format!("server-{number:04}"))
            .collect();
        let servers = names.iter().map(|name| server(name, Some(&about)));
        let bare = tool_search_definition([]).len();
        let size = tool_search_definition(servers).len() - bare;
        // Each line feed is written as two bytes.
        assert!(
            size <= MAX_SERVERS_BYTES + n_servers + 64,
            "{n_servers}: {size}"
        );
        let servers = names.iter().map(|name| server(name, Some(&about)));
        let text = tool_search_definition(servers);
        assert_eq!(text.contains(" more\""), n_servers == 2_000, "{n_servers}");
        assert_eq!(text.contains("word word"), n_servers <= 50, "{n_servers}");
    }
}

#[test]
fn a_description_has_no_more_bytes_than_it_may() {
    for n_servers in [0, 1, 5, 50, 500] {
        let names: Vec<_> = (0..n_servers)
            .map(|number| format!("server-{number:04}"))
            .collect();
        for loading in [Loading::Listed, Loading::Answered] {
            let servers = names
                .iter()
                .map(|name| server(name, Some("Has many things to do.")));
            let text = tool_search_for(servers, loading, 1024);
            let definition: serde_json::Value = serde_json::from_str(&text).unwrap();
            let description = definition["description"].as_str().unwrap();
            assert!(description.len() <= 1024, "{}", description.len());
            let is_answered = loading == Loading::Answered;
            assert_eq!(description.contains("tool_call"), is_answered);
            assert_eq!(text.contains("\"detail\""), is_answered);
            assert_eq!(
                description.contains("server-0000"),
                n_servers > 0,
                "{description}"
            );
        }
    }
}

#[test]
fn a_call_takes_a_name_and_arguments() {
    assert!(tool_call_definition().contains(r#""required":["name"]"#));
}

#[test]
fn the_first_sentence_ends_where_another_begins() {
    for (text, expected) in [
        ("Reads a file. Then more.", "Reads a file."),
        ("Reads e.g. a file, v1.2 too", "Reads e.g. a file, v1.2 too"),
        ("  Two\n lines\n\nand more", "Two lines"),
        ("Really? Yes.", "Really?"),
        ("# Server\n\n## Use\nReads files. Well.", "Reads files."),
        ("# Server", "Server"),
        ("ファイルを読む。そして書く。", "ファイルを読む。"),
        ("", ""),
    ] {
        assert_eq!(first_sentence(text), expected);
    }
}
