//! Which files are catalogs, and what is said of those that are none.

use super::parse;

#[test]
fn items_are_grouped_by_server_in_their_order() {
    let text = r#"[
        {"server": "b", "name": "one", "description": null, "more": {"x": 1}},
        {"server": "a", "name": "one", "title": "First", "inputSchema": { "type": "object" }},
        {"server": "b", "name": "two", "description": "Does \u0032", "inputSchema": null}
    ]"#;
    let toolbox = parse(text.as_bytes()).unwrap();
    let names: Vec<&str> = toolbox
        .servers
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["b", "a"]);
    let two = toolbox.tool("b", "two").unwrap();
    assert_eq!(two.description.as_deref(), Some("Does 2"));
    assert_eq!(two.input_schema, None);
    let one = toolbox.tool("a", "one").unwrap();
    assert_eq!(one.title.as_deref(), Some("First"));
    assert_eq!(one.input_schema.as_deref(), Some(r#"{ "type": "object" }"#));
    assert!(toolbox.tool("a", "two").is_none());
    assert!(parse(b"[]").unwrap().servers.is_empty());
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let check = |text: &str, expected: &str| {
        let wrong = parse(text.as_bytes()).unwrap_err();
        assert!(wrong.starts_with(expected), "{text}: {wrong}");
    };
    check("", "it is not JSON: EOF");
    check("[{", "it is not JSON: EOF");
    check("{\"tools\": []}", "it is an object, and must be a list");
    check("7", "it is a number, and must be a list");
    check("[1]", "[0] is a number, and must be an object");
    let good = r#"{"server":"a","name":"t"}"#;
    check(
        &format!("[{good},null]"),
        "[1] is null, and must be an object",
    );
    check(
        &format!(r#"[{good},{{"server":"a"}}]"#),
        "[1] has no `name`, which must be a text",
    );
    check(
        r#"[{"name":"t"}]"#,
        "[0] has no `server`, which must be a text",
    );
    check(
        r#"[{"server":null,"name":"t"}]"#,
        "[0] has no `server`, which must be a text",
    );
    check(
        r#"[{"server":"a","name":["t"]}]"#,
        "[0].name is a list, and must be a text",
    );
    check(
        r#"[{"server":"","name":"t"}]"#,
        "[0].server is empty, and must not be",
    );
    check(
        r#"[{"server":"a","name":"t","description":true}]"#,
        "[0].description is true or false, and must be a text",
    );
    check(
        r#"[{"server":"a","name":"t","inputSchema":"{}"}]"#,
        "[0].inputSchema is a text, and must be an object",
    );
    check(
        &format!(r#"[{good},{{"server":"b","name":"t"}},{good}]"#),
        "[2] is the tool `t` of `a`, which [0] is already: remove one",
    );
}
