//! Checks of the checks: good definitions pass, and every rule can fail.

use serde_json::{Value, json};

use super::violations;

fn openai(parameters: &Value) -> Value {
    json!({"type": "function", "name": "n", "description": "", "parameters": parameters, "strict": false})
}

fn strict(parameters: &Value) -> Value {
    json!({"type": "function", "name": "n", "description": "", "parameters": parameters, "strict": true})
}

fn anthropic(schema: &Value) -> Value {
    json!({"name": "n", "description": "", "input_schema": schema})
}

fn other(parameters: &Value) -> Value {
    json!({"name": "n", "description": "d", "parameters": parameters})
}

/// A root with one property.
fn with(property: &Value) -> Value {
    json!({"type": "object", "properties": {"p": property}})
}

fn strict_with(property: &Value) -> Value {
    json!({"type": "object", "properties": {"p": property}, "required": ["p"], "additionalProperties": false})
}

fn gemini_with(property: &Value) -> Value {
    json!({"type": "OBJECT", "properties": {"p": property}})
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({"type": "string"}), |below, _| strict_with(&below))
}

#[test]
fn good_definitions_pass() {
    let property = json!({"type": ["string", "null"], "enum": ["a", null], "description": "d"});
    let recursive = json!({
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}},
    });
    for (dialect, definition) in [
        ("openai", openai(&with(&property))),
        ("openai", openai(&with(&json!({})))),
        ("openai", openai(&recursive)),
        ("openai-strict", strict(&strict_with(&property))),
        ("openai-strict", strict(&nested(9))),
        ("anthropic", anthropic(&with(&property))),
        ("anthropic", anthropic(&with(&json!({"type": "array"})))),
        ("anthropic", anthropic(&recursive)),
        (
            "gemini",
            other(&gemini_with(&json!({"type": "STRING", "enum": ["a"]}))),
        ),
        ("gemini", json!({"name": "n", "description": "d"})),
        (
            "plain",
            other(&with(&json!({"type": "string", "format": "uri"}))),
        ),
    ] {
        let found = violations(dialect, &definition);
        assert!(found.is_empty(), "{dialect} {definition}: {found:?}");
    }
}

#[test]
fn bad_names_and_descriptions_are_found() {
    let named =
        |name: &str| json!({"name": name, "description": "", "parameters": with(&json!({}))});
    for (dialect, definition) in [
        ("plain", named("")),
        ("plain", named("a b")),
        ("plain", named("a.b")),
        ("plain", named(&"a".repeat(65))),
        ("gemini", json!({"name": "1a", "description": "d"})),
        ("gemini", json!({"name": "a:b", "description": "d"})),
        (
            "plain",
            json!({"name": "n", "parameters": with(&json!({}))}),
        ),
        ("openai", {
            let mut definition = openai(&with(&json!({})));
            definition["description"] = json!("d".repeat(1025));
            definition
        }),
        ("openai", strict(&strict_with(&json!({"type": "string"})))),
        ("openai", other(&with(&json!({})))),
        ("nobody", other(&with(&json!({})))),
        ("anthropic", other(&with(&json!({})))),
    ] {
        assert!(
            !violations(dialect, &definition).is_empty(),
            "{dialect} {definition}"
        );
    }
}

#[test]
fn bad_json_schemas_are_found() {
    for property in [
        json!({"type": "array"}),
        json!({"type": ["array", "null"]}),
        json!({"type": "object"}),
        json!({"type": "text"}),
        json!({"type": []}),
        json!({"type": ["string", "string"]}),
        json!({"oneOf": [{"type": "string"}]}),
        json!({"allOf": [{"type": "string"}]}),
        json!({"not": {}}),
        json!({"anyOf": []}),
        json!({"anyOf": [{"type": "array"}]}),
        json!({"$ref": "#/$defs/none"}),
        json!({"type": "string", "format": "uri"}),
        json!({"type": "string", "minLength": -1}),
        json!({"type": "string", "minLength": "1"}),
        json!({"enum": []}),
        json!({"type": "object", "properties": {}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {}}, "required": ["a", "a"]}),
        json!({"type": "string", "x-unknown": 1}),
        json!({"type": "array", "items": false}),
        json!({"type": "array", "items": {"type": "array"}}),
        json!({"type": "object", "properties": {}, "additionalProperties": {"type": "array"}}),
        json!(true),
    ] {
        assert!(
            !violations("openai", &openai(&with(&property))).is_empty(),
            "{property}"
        );
    }
    for root in [
        json!({"properties": {}}),
        json!({"type": "string"}),
        json!({"type": "object", "properties": {}, "anyOf": [{}]}),
        json!({"type": "object", "properties": {}, "$ref": "#"}),
        json!(null),
    ] {
        assert!(!violations("openai", &openai(&root)).is_empty(), "{root}");
        assert!(
            !violations("anthropic", &anthropic(&root)).is_empty(),
            "{root}"
        );
    }
    let reference = json!({
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/n", "description": "d"}},
        "$defs": {"n": {"type": "string"}},
    });
    assert!(!violations("openai", &openai(&reference)).is_empty());
    assert!(!violations("plain", &other(&reference)).is_empty());
    let list = with(&json!({"type": ["string", "null"]}));
    assert!(!violations("plain", &other(&list)).is_empty());
    for key in ["a b", "$a", "", &"a".repeat(65)] {
        let schema = json!({"type": "object", "properties": {key: {}}});
        assert!(
            !violations("anthropic", &anthropic(&schema)).is_empty(),
            "{key}"
        );
    }
}

#[test]
fn bad_strict_schemas_are_found() {
    for property in [
        json!({}),
        json!({"type": "string", "minLength": 1}),
        json!({"type": "string", "default": "a"}),
        json!({"type": "string", "pattern": "^(?=a)"}),
        json!({"type": "object", "properties": {}, "required": []}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": [], "additionalProperties": false}),
        json!({"type": "object", "properties": {}, "additionalProperties": false}),
        nested(10),
    ] {
        let found = violations("openai-strict", &strict(&strict_with(&property)));
        assert!(!found.is_empty(), "{property}");
    }
    let many: Vec<String> = (0..1001).map(|number| number.to_string()).collect();
    let long: Vec<String> = (0..251).map(|number| format!("{number:060}")).collect();
    let wide: Value = (0..5001)
        .map(|number| (number.to_string(), json!({"type": "string"})))
        .collect();
    let required: Vec<String> = (0..5001).map(|number| number.to_string()).collect();
    for root in [
        strict_with(&json!({"type": "string", "enum": many})),
        strict_with(&json!({"type": "string", "enum": long})),
        strict_with(&json!({"type": "string", "const": "a".repeat(120_001)})),
        json!({"type": "object", "properties": wide, "required": required, "additionalProperties": false}),
    ] {
        assert!(!violations("openai-strict", &strict(&root)).is_empty());
    }
}

#[test]
fn bad_gemini_schemas_are_found() {
    for property in [
        json!({}),
        json!({"type": "NULL"}),
        json!({"type": ["STRING", "NULL"]}),
        json!({"type": "ARRAY"}),
        json!({"type": "OBJECT"}),
        json!({"type": "OBJECT", "properties": {}}),
        json!({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "required": ["b"]}),
        json!({"type": "OBJECT", "properties": {"a b": {"type": "STRING"}}}),
        json!({"type": "INTEGER", "enum": [1]}),
        json!({"type": "INTEGER", "enum": ["1"]}),
        json!({"type": "STRING", "enum": []}),
        json!({"type": "STRING", "enum": ["a", ""]}),
        json!({"type": "STRING", "enum": [1]}),
        json!({"type": "STRING", "format": "uri"}),
        json!({"type": "STRING", "minimum": 1}),
        json!({"type": "STRING", "const": "a"}),
        json!({"type": "STRING", "$ref": "#"}),
        json!({"type": "STRING", "default": "a"}),
        json!({"type": "STRING", "pattern": "(?!a)"}),
        json!({"type": "INTEGER", "exclusiveMinimum": 1}),
        json!({"type": "STRING", "required": []}),
        json!({"anyOf": [{"type": "STRING"}], "description": "d"}),
        json!({"anyOf": []}),
        json!({"anyOf": [{"type": "ARRAY"}]}),
        json!({"oneOf": [{"type": "STRING"}]}),
        json!({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "additionalProperties": false}),
    ] {
        let found = violations("gemini", &other(&gemini_with(&property)));
        assert!(!found.is_empty(), "{property}");
    }
    for root in [
        json!({"type": "OBJECT", "properties": {}}),
        json!({"type": "STRING"}),
    ] {
        assert!(!violations("gemini", &other(&root)).is_empty(), "{root}");
    }
}
