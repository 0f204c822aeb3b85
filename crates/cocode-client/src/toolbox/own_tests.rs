//! What models say to the tools of a toolbox, and how those are shown.

use cocode_core::{Dialect, FoundDetail, Loading, TOOL_CALL, TOOL_SEARCH};
use cocode_testkit::violations;
use serde_json::{Value, json};

use super::{Query, call_tool, search_tool, unwrapped};

#[test]
fn they_can_be_shown_to_every_provider() {
    for dialect in Dialect::ALL {
        for loading in [Loading::Listed, Loading::Answered] {
            let search = search_tool([], loading, dialect).unwrap();
            assert_eq!(search.name, TOOL_SEARCH);
            assert_eq!(search.dialect(), dialect, "{loading:?}");
            let names_call = search.description.contains(TOOL_CALL);
            assert_eq!(names_call, loading == Loading::Answered);
            let all = json!({"query": "x", "limit": 3, "server": "a"});
            assert_eq!(search.arguments_back(all.clone()), all, "{dialect:?}");
            let wrong = violations(dialect.as_str(), &search.definition());
            assert!(wrong.is_empty(), "{dialect:?}: {wrong:?}");
        }
        let call = call_tool(dialect).unwrap();
        assert_eq!(call.name, TOOL_CALL);
        let wanted = json!({"name": "mcp__a__b", "arguments": {"x": 1}});
        let given = call.arguments_forth(wanted.clone());
        assert_eq!(call.arguments_back(given), wanted, "{dialect:?}");
    }
}

#[test]
fn a_query_is_read_or_said_to_be_wrong() {
    let given = json!({"query": "read", "limit": 7, "server": "files", "detail": "names"});
    let expected = Query {
        text: "read".to_owned(),
        limit: 7,
        server: Some("files".to_owned()),
        detail: FoundDetail::Names,
    };
    assert_eq!(Query::read(&given).as_ref(), Ok(&expected));
    let given = json!({"query": "read", "limit": null, "server": null, "detail": null});
    let query = Query::read(&given).unwrap();
    assert_eq!((query.limit, query.server), (5, None));
    for (bad, expected) in [
        (json!({}), "`query`"),
        (json!({"query": " "}), "`query`"),
        (json!({"query": 7}), "`query` is a text"),
        (json!({"query": "x", "server": 7}), "`server` is a text"),
        (json!({"query": "x", "limit": 0}), "from 1 to 20"),
        (json!({"query": "x", "limit": 21}), "from 1 to 20"),
        (json!({"query": "x", "limit": "5"}), "from 1 to 20"),
        (json!({"query": "x", "detail": "all"}), "\"names\""),
        (json!({"query": "x", "q": 1}), "`q` is no argument"),
        (json!([]), "no object"),
        (Value::Null, "no object"),
    ] {
        let error = Query::read(&bad).unwrap_err();
        assert!(error.contains(expected), "{bad}: {error}");
    }
}

#[test]
fn a_call_is_unwrapped_or_said_to_be_wrong() {
    let given = json!({"name": "mcp__a__b", "arguments": {"x": 1}});
    assert_eq!(unwrapped(&given), Ok(("mcp__a__b", json!({"x": 1}))));
    let given = json!({"name": "mcp__a__b"});
    assert_eq!(unwrapped(&given), Ok(("mcp__a__b", Value::Null)));
    for (bad, expected) in [
        (json!({}), "needs the `name`"),
        (json!({"name": 1}), "needs the `name`"),
        (json!({"name": "a", "arguments": "{}"}), "no text"),
        (json!({"name": "a", "x": 1}), "`x` is no argument"),
        (Value::Null, "no object"),
    ] {
        let error = unwrapped(&bad).unwrap_err();
        assert!(error.contains(expected), "{bad}: {error}");
    }
}
