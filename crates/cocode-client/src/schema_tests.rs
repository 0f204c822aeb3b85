//! What is refused, what is let pass, and what is said about it.

use cocode_wire::RawJson;
use serde_json::{Value, json};

use super::{Checked, CompiledSchema, SchemaCell, SchemaError};

fn raw(value: &Value) -> RawJson {
    RawJson::of(value).unwrap()
}

fn compiled(schema: &Value) -> CompiledSchema {
    CompiledSchema::compile(&raw(schema)).unwrap()
}

/// What is said about a value; nothing if it fits.
fn said(schema: &Value, value: &Value) -> String {
    match compiled(schema).check(&raw(value)) {
        Ok(()) => String::new(),
        Err(mismatch) => mismatch.to_string(),
    }
}

/// A tool as zod describes it for the TypeScript SDK.
fn search() -> Value {
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "query": { "type": "string", "minLength": 1, "description": "What to look for" },
            "limit": { "type": "integer", "minimum": 1, "maximum": 100, "default": 10 },
            "order": { "type": "string", "enum": ["asc", "desc", "none"] },
            "exact": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "string" }, "minItems": 1 },
            "since": { "type": "string", "format": "date-time" },
            "filters": { "type": "array", "items": {
                "type": "object",
                "properties": { "name": { "type": "string" }, "value": {} },
                "required": ["name"],
                "additionalProperties": false
            }}
        },
        "required": ["query"],
        "additionalProperties": false
    })
}

#[test]
fn problems_tell_how_to_mend_them() {
    let known = "`exact`, `filters`, `limit`, `order`, `query`, `since` and `tags`";
    let unknown = format!(
        "- `limt` is not a known property; did you mean `limit`?\n\
         - `zzz` is not a known property; remove it: the known properties are {known}"
    );
    let cases = [
        (
            json!({ "query": "x", "limit": 5, "since": "2025-01-31T13:45:00Z" }),
            "",
        ),
        (
            json!({}),
            "`query` is required and missing; add it: a string (What to look for)",
        ),
        (
            json!({ "query": "x", "limt": 5, "zzz": 1 }),
            unknown.as_str(),
        ),
        (
            json!({ "query": "x", "limit": "5" }),
            "`limit` must be an integer, but is the string \"5\"; \
             give the number 5, not the text \"5\"",
        ),
        (
            json!({ "query": "x", "limit": 5.5 }),
            "`limit` must be an integer, but is the number 5.5; give a whole number",
        ),
        (
            json!({ "query": "", "limit": 500 }),
            "- `limit` must be at most 100, but is the number 500\n\
             - `query` must have at least 1 character, but has 0 characters",
        ),
        (
            json!({ "query": 5, "order": "Desc" }),
            "- `order` must be one of \"asc\", \"desc\" or \"none\", but is the string \"Desc\"; \
             did you mean \"desc\"?\n\
             - `query` must be a string, but is the number 5; \
             give the text \"5\", not the number 5",
        ),
        (
            json!({ "query": "x", "exact": "True", "tags": "a" }),
            "- `exact` must be a boolean, but is the string \"True\"; \
             give the boolean true, not the text \"True\"\n\
             - `tags` must be an array, but is the string \"a\"; \
             give an array, even of one item: [\"a\"]",
        ),
        (
            json!({ "query": "x", "tags": "[\"a\"]" }),
            "`tags` must be an array, but is the string \"[\\\"a\\\"]\"; \
             give the JSON array itself, not a string that holds it",
        ),
        (
            json!({ "query": "x", "tags": ["a", null] }),
            "`tags[1]` must be a string, but is null; \
             give a value, or leave it out if it is not required",
        ),
        (
            json!({ "query": "x", "since": "tomorrow" }),
            "`since` must be of the format `date-time`, such as \"2025-01-31T13:45:00Z\", \
             but is the string \"tomorrow\"",
        ),
        (
            json!({ "query": "x", "filters": [{ "name": "a" }, {}, { "name": "b", "va/lue": 5 }] }),
            "- `filters[1].name` is required and missing; add it: a string\n\
             - `filters[2][\"va/lue\"]` is not a known property; did you mean `value`?",
        ),
        (
            json!([1]),
            "the value must be an object, but is an array of 1 item",
        ),
    ];
    for (value, expected) in cases {
        assert_eq!(said(&search(), &value), expected, "for {value}");
    }
}

#[test]
fn a_misspelled_name_is_seen_where_other_names_are_allowed() {
    let schema = json!({ "properties": { "location": {} }, "required": ["location"] });
    let expected = "`location` is required and missing; add it; \
                    is `locaton` meant to be `location`?";
    assert_eq!(said(&schema, &json!({ "locaton": "here" })), expected);
}

#[test]
fn problems_carry_exact_pointers() {
    let value = json!({ "query": "x", "filters": [{ "name": "a", "va/l~ue": 5 }] });
    let mismatch = compiled(&search()).check(&raw(&value)).unwrap_err();
    let [problem] = mismatch.problems() else {
        panic!("one problem: {mismatch}")
    };
    assert_eq!(problem.pointer, "/filters/0/va~1l~0ue");
    assert_eq!(problem.path, "filters[0][\"va/l~ue\"]");
    assert!(!mismatch.has_more());
}

/// Unions as pydantic, zod and people write them.
fn unions() -> Value {
    let circle = json!({
        "title": "Circle",
        "type": "object",
        "properties": { "kind": { "const": "circle" }, "radius": { "type": "number" } },
        "required": ["kind", "radius"]
    });
    let square = json!({
        "type": "object",
        "properties": { "kind": { "const": "square" }, "side": { "type": "number" } },
        "required": ["kind", "side"]
    });
    let by_path = json!({
        "type": "object",
        "properties": { "path": { "type": "string" } },
        "required": ["path"]
    });
    json!({
        "type": "object",
        "properties": {
            "shape": { "oneOf": [circle, square, { "type": "null" }] },
            "source": { "anyOf": [by_path, { "$ref": "#/$defs/ByUrl" }] },
            "name": { "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null },
            "age": { "type": ["integer", "null"] },
            "mode": { "anyOf": [
                { "enum": ["fast", "slow"] },
                { "type": "integer" },
                { "oneOf": [{ "type": "null" }, { "const": "steady" }] }
            ]},
            "point": { "anyOf": [{ "$ref": "#/$defs/Point" }, { "type": "null" }] },
            "tree": { "$ref": "#/$defs/Node" }
        },
        "$defs": {
            "ByUrl": {
                "type": "object",
                "properties": { "url": { "type": "string" }, "method": { "type": "string" } },
                "required": ["url", "method"]
            },
            "Point": {
                "type": "object",
                "properties": { "x": { "type": "number" }, "y": { "type": "number" } },
                "required": ["x", "y"]
            },
            "Node": {
                "type": "object",
                "properties": {
                    "value": { "type": "integer" },
                    "children": { "type": "array", "items": { "$ref": "#/$defs/Node" } }
                },
                "required": ["value"]
            }
        }
    })
}

#[test]
fn alternatives_are_explained_by_the_one_that_fits_best() {
    let cases = [
        (
            json!({ "shape": { "kind": "square", "side": 2 }, "name": null, "age": null }),
            "",
        ),
        (
            json!({ "shape": { "kind": "circle", "radius": "5" } }),
            "`shape.radius` must be a number, but is the string \"5\"; give the number 5, not \
             the text \"5\" (of 3 allowed forms, `Circle` is closest)",
        ),
        (
            json!({ "shape": { "kind": "squar" } }),
            "`shape.kind` must be one of \"circle\" or \"square\", but is the string \"squar\"; \
             did you mean \"square\"?",
        ),
        (
            json!({ "shape": { "radius": 5 } }),
            "`shape.kind` is required and missing; \
             add it: it says which of the allowed forms is meant",
        ),
        (
            json!({ "shape": true }),
            "`shape` must be an object or null, but is the boolean true",
        ),
        (
            json!({ "source": { "url": "u" } }),
            "`source.method` is required and missing; add it: a string \
             (of 2 allowed forms, `ByUrl` is closest)",
        ),
        (
            json!({ "name": 5 }),
            "`name` must be a string or null, but is the number 5; \
             give the text \"5\", not the number 5",
        ),
        (
            json!({ "point": { "x": 1 } }),
            "`point.y` is required and missing; add it: a number",
        ),
        (
            json!({ "mode": "stead" }),
            "`mode` must be \"fast\", \"slow\", \"steady\", an integer or null, \
             but is the string \"stead\"; did you mean \"steady\"?",
        ),
        (
            json!({ "tree": { "value": 1, "children": [{ "value": 2, "children": [{}] }] } }),
            "`tree.children[0].children[0].value` is required and missing; add it: an integer",
        ),
    ];
    for (value, expected) in cases {
        assert_eq!(said(&unions(), &value), expected, "for {value}");
    }
}

#[test]
fn rarer_rules_are_explained_too() {
    let cases = [
        (
            json!({ "propertyNames": { "pattern": "^[a-z]+$" } }),
            json!({ "A b": 1 }),
            "`[\"A b\"]` has a name that is not allowed; it must match the regular expression \
             `^[a-z]+$`, but is the string \"A b\"",
        ),
        (
            json!({ "oneOf": [{ "minimum": 1 }, { "maximum": 10 }, { "const": 3 }] }),
            json!(5),
            "the value must fit exactly one of 3 allowed forms, but fits several of them: 1 and 2",
        ),
        (
            json!({ "properties": { "a": false } }),
            json!({ "a": 1 }),
            "`a` is not allowed here; remove it",
        ),
        (
            json!({ "not": { "required": ["a"] } }),
            json!({ "a": 1 }),
            "the value must not fit the schema {\"required\": …}",
        ),
        (
            json!({ "enum": (0..100).collect::<Vec<_>>() }),
            json!("7"),
            "the value must be one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 or 88 more, \
             but is the string \"7\"; give the number 7, not the string \"7\"",
        ),
        (
            json!({ "allOf": [{ "properties": { "name": {} } }], "unevaluatedProperties": false }),
            json!({ "nam": 1 }),
            "`nam` is not a known property; did you mean `name`?",
        ),
        (
            json!({ "if": { "required": ["a"] }, "then": { "required": ["b"] } }),
            json!({ "a": 1 }),
            "`b` is required and missing; add it",
        ),
    ];
    for (schema, value, expected) in cases {
        assert_eq!(said(&schema, &value), expected, "for {schema} and {value}");
    }
}

#[test]
fn drafts_are_told_apart_by_what_the_schema_says() {
    // Only later drafts know the keyword.
    let newer = json!({ "dependentRequired": { "a": ["b"] } });
    let mut older = newer.clone();
    older["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    let value = json!({ "a": 1 });
    assert_eq!(said(&newer, &value), "`b` is required and missing; add it");
    assert_eq!(said(&older, &value), "");
}

#[test]
fn what_is_said_stays_short() {
    let long = "long\n".repeat(10_000);
    let schema = json!({
        "properties": { "a": { "enum": [long, "b"], "description": long } },
        "required": ["b"],
        "additionalProperties": false
    });
    let mut value = json!({ "a": long, (long.as_str()): 1 });
    for index in 0..1000 {
        value[format!("stray{index}")] = json!(1);
    }
    let mismatch = compiled(&schema).check(&raw(&value)).unwrap_err();
    assert_eq!(mismatch.problems().len(), 8);
    assert!(mismatch.has_more());
    let text = mismatch.to_string();
    assert!(text.len() < 4000, "{} bytes", text.len());
    assert!(text.ends_with("\n- and more"), "{text}");
}

#[test]
fn a_schema_that_cannot_be_used_refuses_nothing() {
    let remote = |uri: &str| SchemaError::RemoteReference {
        uri: uri.to_owned(),
    };
    let cases = [
        (
            json!({ "$ref": "https://example.com/other.json" }),
            remote("https://example.com/other.json"),
        ),
        (
            json!({ "properties": { "a": { "$ref": "file:///etc/passwd#/a" } } }),
            remote("file:///etc/passwd"),
        ),
        (
            json!({ "$schema": "https://example.com/dialect" }),
            SchemaError::UnknownDialect {
                dialect: "https://example.com/dialect".to_owned(),
            },
        ),
        (json!({ "$ref": "#" }), SchemaError::TooIntricate),
        (
            json!({ "allOf": [{ "$ref": "#/$defs/a" }], "$defs": { "a": { "$ref": "#" } } }),
            SchemaError::TooIntricate,
        ),
    ];
    for (schema, error) in cases {
        let cell = SchemaCell::new(raw(&schema));
        let checked = cell.check(&raw(&json!({ "a": 1 })));
        assert_eq!(checked, Checked::NotCheckable(error), "for {schema}");
    }
    let invalid = [
        json!({ "type": "text" }),
        json!({ "properties": { "a": { "required": true } } }),
        json!({ "$ref": "#/$defs/missing" }),
        json!(5),
    ];
    for schema in invalid {
        let error = CompiledSchema::compile(&raw(&schema)).unwrap_err();
        assert!(
            matches!(error, SchemaError::Invalid { .. }),
            "{error:?} for {schema}"
        );
    }
}

#[test]
fn a_schema_is_compiled_once_and_kept_as_it_was() {
    let text = r#"{ "type" : "object" }"#;
    let cell = SchemaCell::new(RawJson::parse(text).unwrap());
    assert_eq!(cell.raw().as_str(), text);
    let first = std::ptr::from_ref(cell.compiled().unwrap());
    assert!(std::ptr::eq(first, cell.clone().compiled().unwrap()));
    assert_eq!(cell.check(&raw(&json!({}))), Checked::Fits);
}

#[test]
fn a_pattern_that_needs_backtracking_is_left_out_alone() {
    let schema = json!({
        "properties": {
            "email": { "type": "string", "pattern": "^(?!\\.)[a-z.]+@example\\.com$" },
            "code": { "type": "string", "pattern": "^[A-Z]{3}$" },
            "python": { "type": "string", "pattern": "(?P<year>[0-9]{4}" },
            "huge": { "type": "string", "pattern": "((a{1000}){1000}){1000}" }
        },
        "patternProperties": { "^(?=x-)": { "type": "integer" } },
        "additionalProperties": false,
        "not": { "properties": { "email": { "pattern": "(?=a)" } }, "required": ["email"] }
    });
    let compiled = compiled(&schema);
    assert_eq!(compiled.skipped_patterns(), 5);
    let fitting = json!({ "email": "anything", "python": "x", "huge": "b", "x-a": "?" });
    assert_eq!(compiled.check(&raw(&fitting)), Ok(()));
    let wrong = compiled
        .check(&raw(&json!({ "email": 5, "code": "abc" })))
        .unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "- `code` must match the regular expression `^[A-Z]{3}$`, but is the string \"abc\"\n\
         - `email` must be a string, but is the number 5; give the text \"5\", not the number 5"
    );
}

#[test]
fn a_pattern_that_would_explode_elsewhere_is_matched_at_once() {
    let schema = json!({ "pattern": "^(a+)+$" });
    let value = json!(format!("{}!", "a".repeat(100_000)));
    assert!(compiled(&schema).check(&raw(&value)).is_err());
}

#[test]
fn patterns_beyond_the_limit_are_left_out() {
    let properties = (0..300).map(|index| {
        let pattern = format!("^{index}[a-z]$");
        (index.to_string(), json!({ "pattern": pattern }))
    });
    let schema = json!({ "properties": properties.collect::<serde_json::Map<_, _>>() });
    assert_eq!(compiled(&schema).skipped_patterns(), 236);
}

/// `levels` arrays in one another.
fn nested(levels: usize) -> RawJson {
    RawJson::parse(format!("{}{}", "[".repeat(levels), "]".repeat(levels))).unwrap()
}

#[test]
fn deep_values_are_refused_before_they_are_walked() {
    let schema = compiled(&json!({ "items": { "$ref": "#" } }));
    assert_eq!(schema.check(&nested(120)), Ok(()));
    let mismatch = schema.check(&nested(1_000_000)).unwrap_err();
    assert_eq!(
        mismatch.to_string(),
        "the value is nested 1000000 levels deep, and at most 120 are allowed; make it flatter"
    );
}

#[test]
fn deep_and_long_schemas_are_refused_before_they_are_walked() {
    let too_deep = CompiledSchema::compile(&nested(200_000)).unwrap_err();
    assert_eq!(too_deep, SchemaError::TooDeep { depth: 200_000 });
    let long = raw(&json!({ "description": "x".repeat(600_000) }));
    let too_large = CompiledSchema::compile(&long).unwrap_err();
    assert!(
        matches!(too_large, SchemaError::TooLarge { .. }),
        "{too_large:?}"
    );
}

/// Definitions that each apply the next one `times` times to what `wrap` makes of it.
fn chain(length: usize, times: usize, wrap: impl Fn(Value) -> Value) -> Value {
    let mut definitions = serde_json::Map::new();
    for index in 0..length {
        let next = json!({ "$ref": format!("#/$defs/{}", index + 1) });
        definitions.insert(
            index.to_string(),
            json!({ "anyOf": vec![wrap(next); times] }),
        );
    }
    definitions.insert(length.to_string(), json!({ "type": "string" }));
    json!({ "$ref": "#/$defs/0", "$defs": definitions })
}

#[test]
fn schemas_that_multiply_are_refused() {
    let same = |schema: Value| schema;
    for (length, times) in [(30, 2), (5000, 1), (60, 1)] {
        let error = CompiledSchema::compile(&raw(&chain(length, times, same))).unwrap_err();
        assert_eq!(error, SchemaError::TooIntricate, "{length} {times}");
    }
    assert_eq!(said(&chain(20, 1, same), &json!("text")), "");
}

#[test]
fn schemas_that_multiply_with_the_depth_of_the_value_end_too() {
    let schema = chain(60, 4, |next| json!({ "items": next, "minItems": 1 }));
    let mut value = json!([5]);
    for _ in 0..60 {
        value = json!([value]);
    }
    let cell = SchemaCell::new(raw(&schema));
    let checked = cell.check(&raw(&value));
    assert!(!matches!(checked, Checked::Fits), "{checked:?}");
}

#[test]
fn the_deepest_values_by_the_longest_chains_fit_on_the_stack() {
    // Each level of the value goes through the whole chain, and so does the explanation.
    let length = 20;
    let mut definitions = serde_json::Map::new();
    for index in 0..length {
        let next = json!({ "$ref": format!("#/$defs/{}", index + 1) });
        definitions.insert(index.to_string(), json!({ "allOf": [{ "anyOf": [next] }] }));
    }
    let end = json!({ "type": "array", "items": { "$ref": "#/$defs/0" } });
    definitions.insert(length.to_string(), end);
    let schema = json!({ "$ref": "#/$defs/0", "$defs": definitions });
    let compiled = compiled(&schema);
    assert_eq!(compiled.check(&nested(120)), Ok(()));
    let text = format!("{}5{}", "[".repeat(110), "]".repeat(110));
    assert!(compiled.check(&RawJson::parse(text).unwrap()).is_err());
}

#[test]
fn a_schema_as_deep_as_is_allowed_compiles_and_checks() {
    for keyword in ["not", "items", "allOf"] {
        let mut schema = json!({ "type": "array" });
        let levels = if keyword == "not" { 60 } else { 48 };
        for _ in 0..levels {
            schema = match keyword {
                "allOf" => json!({ "allOf": [schema] }),
                keyword => json!({ (keyword): schema }),
            };
        }
        assert_eq!(compiled(&schema).check(&nested(50)), Ok(()), "{keyword}");
    }
}

#[test]
fn what_no_number_can_hold_is_left_to_the_server() {
    for text in ["1e999", r#"["\ud800"]"#] {
        let value = RawJson::parse(text).unwrap();
        let examined = compiled(&json!({ "type": "null" })).examine(&value);
        let Checked::NotCheckable(error) = examined else {
            panic!("{examined:?}");
        };
        let text = error.to_string();
        assert!(text.starts_with("the value cannot be read: "), "{text}");
    }
}

#[test]
fn a_large_value_with_one_mistake_is_explained() {
    let schema = json!({ "items": { "anyOf": [{ "type": "integer" }, { "type": "null" }] } });
    let mut items = vec![json!(1); 200_000];
    items.push(json!("2"));
    let expected = "`[200000]` must be an integer or null, but is the string \"2\"; \
                    give the number 2, not the text \"2\"";
    assert_eq!(said(&schema, &Value::from(items)), expected);
}

#[test]
fn what_gets_no_stack_of_its_own_needs_little() {
    let checks = || {
        // Just below the limits from which on a larger stack is used.
        let long = chain(10, 1, |next| json!({ "allOf": [next] }));
        assert_ne!(said(&long, &json!([[5]])), "");
        let mut value = json!({ "a": 1 });
        for _ in 0..100 {
            value = json!([value]);
        }
        let recursive = json!({ "type": ["array", "string"], "items": { "$ref": "#" } });
        assert_ne!(said(&recursive, &value), "");
        let mut deep = json!({ "type": "string" });
        for _ in 0..20 {
            deep = json!({ "anyOf": [deep] });
        }
        assert_ne!(said(&deep, &json!([[5]])), "");
    };
    let thread = std::thread::Builder::new().stack_size(768 * 1024);
    thread.spawn(checks).unwrap().join().unwrap();
}
