//! Lists of any length and honesty: pages, cursors, and items that cannot be used.

use std::time::{Duration, SystemTime};

use cocode_client::{
    Freshness, Incomplete, ListCache, ListKind, MAX_PAGES, Quarantined, Remembered, RememberedList,
    RequestError,
};
use cocode_testkit::Script;

use crate::support::{call, connect, http, received, stdio, text_of};

#[tokio::test]
async fn a_tool_without_schema_is_set_aside_alone() {
    let server = Script::new()
        .on("tools/list")
        .result(
            r#"{"tools":[
            {"name":"good","inputSchema":{"type":"object"}},
            {"name":"bare"},
            {"name":"wrong","inputSchema":[]},
            {"inputSchema":{"type":"object"}},
            17,
            {"name":"fine","inputSchema":{}}]}"#
                .replace('\n', " "),
        )
        .stdio();
    let session = connect(stdio(&server)).await;
    let listing = session.tools().await.unwrap();
    let names: Vec<_> = listing
        .items
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(names, ["good", "fine"]);
    assert_eq!(
        listing.quarantined.first(),
        Some(&Quarantined {
            name: Some("bare".to_owned()),
            reason: "it has no inputSchema".to_owned(),
        })
    );
    let names: Vec<_> = listing
        .quarantined
        .iter()
        .map(|bad| bad.name.as_deref())
        .collect();
    assert_eq!(names, [Some("bare"), Some("wrong"), None, None]);
    assert_eq!(listing.incomplete, None);
}

#[tokio::test]
async fn a_list_that_is_none_is_an_error_of_that_request() {
    let server = Script::new()
        .on("tools/list")
        .nth(1)
        .result(r#"{"tools":{}}"#)
        .on("tools/list")
        .nth(2)
        .result("{}")
        .stdio();
    let session = connect(stdio(&server)).await;
    for _ in 0..2 {
        let outcome = session.tools().await;
        assert!(
            matches!(outcome, Err(RequestError::Unexpected { .. })),
            "{outcome:?}"
        );
    }
    assert_eq!(session.tools().await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn a_numeric_cursor_is_sent_back_as_it_came() {
    let server = Script::new().on("tools/list").numeric_cursor().stdio();
    let session = connect(stdio(&server)).await;
    let listing = session.tools().await.unwrap();
    assert_eq!(listing.incomplete, Some(Incomplete::RepeatedCursor));
    assert_eq!((listing.items.len(), listing.pages.len()), (2, 2));
    let received = received(&server, &session).await;
    let asked: Vec<_> = received
        .iter()
        .filter(|message| message.is("tools/list"))
        .collect();
    assert_eq!(asked[1].raw_params(), Some(r#"{"cursor":7}"#));
}

#[tokio::test]
async fn a_repeated_cursor_ends_the_list() {
    let server = Script::new().on("tools/list").repeated_cursor().stdio();
    let listing = connect(stdio(&server)).await.tools().await.unwrap();
    assert_eq!(listing.incomplete, Some(Incomplete::RepeatedCursor));
    assert_eq!(listing.items.len(), 2);
}

#[tokio::test]
async fn endless_cursors_end_at_the_limit() {
    let server = Script::new().on("tools/list").endless_cursor().stdio();
    let listing = connect(stdio(&server)).await.tools().await.unwrap();
    assert_eq!(listing.incomplete, Some(Incomplete::TooManyPages));
    assert_eq!(
        (listing.items.len(), listing.pages.len()),
        (MAX_PAGES, MAX_PAGES)
    );
}

#[tokio::test]
async fn a_hundred_thousand_tools_are_all_listed() {
    let server = Script::new().tools(100_000, 1_000).stdio();
    let listing = connect(stdio(&server)).await.tools().await.unwrap();
    assert_eq!((listing.items.len(), listing.pages.len()), (100_000, 100));
    assert_eq!(listing.incomplete, None);
    assert_eq!(listing.items[99_999].name, "tool-99999");
}

/// A server with one tool that works, and one whose arguments want impossible headers.
fn with_bad_header() -> Script {
    Script::modern().on("tools/list").result(
        r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[
        {"name":"good","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}},
        {"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"not a name"}}}}]}"#
            .replace('\n', " "),
    )
}

#[tokio::test]
async fn a_tool_that_wants_bad_headers_is_set_aside_over_http() {
    let server = with_bad_header().http();
    let listing = connect(http(&server)).await.tools().await.unwrap();
    assert_eq!(listing.items.len(), 1);
    assert_eq!(listing.quarantined.len(), 1);
    assert_eq!(listing.quarantined[0].name.as_deref(), Some("bad"));
    assert!(listing.quarantined[0].reason.contains("not a name"));
}

#[tokio::test]
async fn a_tool_that_wants_bad_headers_works_where_there_are_none() {
    let server = with_bad_header().stdio();
    let listing = connect(stdio(&server)).await.tools().await.unwrap();
    assert_eq!(listing.items.len(), 2);
    assert_eq!(listing.quarantined, []);
}

#[tokio::test]
async fn tools_that_were_remembered_are_called_rightly_without_being_listed_again() {
    let server = Script::modern()
        .on("tools/list")
        .result(
            r#"{"resultType":"complete","ttlMs":60000,"cacheScope":"public","tools":[
            {"name":"echo","inputSchema":{"type":"object","properties":{"word":{"type":"string","x-mcp-header":"Word"}}}},
            {"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"not a name"}}}}]}"#
                .replace('\n', " "),
        )
        .http();
    let scratch = tempfile::tempdir().unwrap();
    let cache = ListCache::open(scratch.path());
    let asked_at = SystemTime::now();
    let first = connect(http(&server)).await;
    let listing = first.tools().await.unwrap();
    let mut known = Remembered::of(first.server());
    let list = RememberedList::of(&listing, asked_at);
    known.lists.insert(ListKind::Tools, list);
    cache.store("0123", &known).unwrap();
    first.close().await;

    let mut known = cache.load("0123").unwrap();
    let list = known.lists.remove(&ListKind::Tools).unwrap();
    assert_eq!(
        list.freshness(asked_at + Duration::from_secs(59)),
        Freshness::Fresh
    );
    assert_eq!(
        list.freshness(asked_at + Duration::from_mins(1)),
        Freshness::Stale
    );
    assert_eq!(list.cache_scope.as_deref(), Some("public"));
    let second = connect(http(&server)).await;
    let recalled = second.recall_tools(list.pages).unwrap();
    assert_eq!(recalled.pages, listing.pages);
    assert_eq!(recalled.quarantined, listing.quarantined);
    assert_eq!(recalled.quarantined[0].name.as_deref(), Some("bad"));
    assert_eq!(
        text_of(&call(&second).await.unwrap()),
        r#"{"word":"hello"}"#
    );
    let requests = server.requests().all();
    let calls = requests.iter().filter(|request| request.is("tools/call"));
    let headers: Vec<_> = calls
        .map(|request| request.header("Mcp-Param-Word"))
        .collect();
    assert_eq!(headers, [Some("hello")]);
    let n_lists = server.requests().count(|request| request.is("tools/list"));
    assert_eq!(n_lists, 1);
}
