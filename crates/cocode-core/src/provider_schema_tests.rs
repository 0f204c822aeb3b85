//! Every form of schema, one by one, and what becomes of it.

use serde_json::{Value, json};

use super::{Dialect, ProviderTool, ToolSource, Unrepairable, convert, convert_best};

fn tool(schema: &Value, dialect: Dialect) -> Result<ProviderTool, Unrepairable> {
    let tool = ToolSource {
        name: "tool",
        description: Some("Does."),
        input_schema: schema,
    };
    let converted = convert(&tool, dialect)?;
    let found = cocode_testkit::violations(dialect.as_str(), &converted.definition());
    assert!(found.is_empty(), "{dialect} {found:?} {schema}");
    Ok(converted)
}

/// What becomes of the schema of a property `p`.
fn property(schema: &Value, dialect: Dialect) -> Value {
    let schema = json!({"type": "object", "properties": {"p": schema}, "required": ["p"]});
    tool(&schema, dialect).unwrap().parameters["properties"]["p"].clone()
}

fn check(dialect: Dialect, cases: &[(Value, Value)]) {
    for (schema, expected) in cases {
        assert_eq!(&property(schema, dialect), expected, "{dialect} {schema}");
    }
}

fn notes(schema: &Value, dialect: Dialect) -> Vec<String> {
    let tool = tool(schema, dialect).unwrap();
    tool.notes.iter().map(ToString::to_string).collect()
}

fn not_strict(schema: &Value) -> String {
    tool(schema, Dialect::OpenAiStrict).unwrap_err().to_string()
}

#[test]
fn every_form_is_written_for_openai() {
    check(
        Dialect::OpenAi,
        &[
            (json!(true), json!({})),
            (json!({}), json!({})),
            (json!({"type": "string"}), json!({"type": "string"})),
            (
                json!({"properties": {}}),
                json!({"type": "object", "properties": {}}),
            ),
            (
                json!({"type": "object"}),
                json!({"type": "object", "properties": {}}),
            ),
            (
                json!({"type": "array"}),
                json!({"type": "array", "items": {}}),
            ),
            (
                json!({"minLength": 2}),
                json!({"type": "string", "minLength": 2}),
            ),
            (
                json!({"const": "a"}),
                json!({"type": "string", "enum": ["a"]}),
            ),
            (
                json!({"enum": [1, 2]}),
                json!({"type": "integer", "enum": [1, 2]}),
            ),
            (
                json!({"enum": ["a", null]}),
                json!({"type": ["string", "null"], "enum": ["a", null]}),
            ),
            (
                json!({"type": "string", "nullable": true}),
                json!({"type": ["string", "null"]}),
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}),
                json!({"type": ["string", "null"], "default": null}),
            ),
            (
                json!({"type": ["string", "integer"]}),
                json!({"type": ["string", "integer"]}),
            ),
            (
                json!({"anyOf": [{"const": "a"}, {"const": "b"}]}),
                json!({"type": "string", "enum": ["a", "b"]}),
            ),
        ],
    );
}

#[test]
fn combinations_are_written_for_openai() {
    check(
        Dialect::OpenAi,
        &[
            (
                json!({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
                json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
            ),
            (
                json!({"allOf": [{"type": "string", "minLength": 2}, {"minLength": 3, "maxLength": 9}]}),
                json!({"type": "string", "minLength": 3, "maxLength": 9}),
            ),
            (
                json!({"type": "integer", "minimum": 3, "exclusiveMinimum": true}),
                json!({"type": "integer", "exclusiveMinimum": 3}),
            ),
            (
                json!({"type": "string", "format": "uri", "description": "Where."}),
                json!({"type": "string", "description": "Where. Format: uri."}),
            ),
            (
                json!({"prefixItems": [{"type": "number"}, {"type": "string"}], "items": false}),
                json!({
                    "type": "array",
                    "items": {"type": ["number", "string"]},
                    "maxItems": 2,
                    "description": "In this order: number, string.",
                }),
            ),
            (
                json!({"type": "array", "items": [{"type": "number"}, {"type": "number"}], "additionalItems": false}),
                json!({
                    "type": "array",
                    "items": {"type": "number"},
                    "maxItems": 2,
                    "description": "In this order: number, number.",
                }),
            ),
            (
                json!({"prefixItems": [{"type": "integer"}, {"type": ["integer", "null"], "description": "d"}], "maxItems": 2}),
                json!({
                    "type": "array",
                    "items": {"type": ["integer", "null"]},
                    "maxItems": 2,
                    "description": "In this order: integer, integer or null.",
                }),
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "string"}}),
                json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
            ),
            (
                json!({"type": "string", "not": {"enum": ["a", "b"]}}),
                json!({"type": "string", "description": "Must not be any of \"a\", \"b\"."}),
            ),
            (
                json!({"title": "P", "type": "string"}),
                json!({"type": "string"}),
            ),
            (
                json!({"title": "Where to go", "type": "string"}),
                json!({"type": "string", "description": "Where to go"}),
            ),
            (
                json!({"$comment": "c", "examples": ["a"], "deprecated": true, "type": "string"}),
                json!({"type": "string", "description": "For example \"a\"."}),
            ),
            (
                json!({"type": "float"}),
                json!({"description": "Of type float."}),
            ),
            (
                json!({"type": "string", "minLength": "3"}),
                json!({"type": "string"}),
            ),
        ],
    );
}

#[test]
fn every_form_is_written_for_gemini() {
    let any = json!({"type": "STRING", "description": "Write JSON text: any value."});
    check(
        Dialect::Gemini,
        &[
            (json!(true), any.clone()),
            (json!({}), any),
            (
                json!({"type": "null"}),
                json!({"type": "STRING", "nullable": true, "description": "Always null."}),
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}),
                json!({"type": "STRING", "nullable": true}),
            ),
            (
                json!({"type": ["string", "null"], "enum": ["a", null]}),
                json!({"type": "STRING", "enum": ["a"], "nullable": true}),
            ),
            (
                json!({"enum": ["a", ""]}),
                json!({"type": "STRING", "description": "One of \"a\", \"\"."}),
            ),
            (
                json!({"const": 3}),
                json!({"type": "INTEGER", "description": "One of 3."}),
            ),
            (
                json!({"type": "integer", "exclusiveMinimum": 3, "multipleOf": 2}),
                json!({"type": "INTEGER", "minimum": 4, "description": "A multiple of 2."}),
            ),
            (
                json!({"type": "number", "exclusiveMaximum": 1}),
                json!({"type": "NUMBER", "maximum": 1, "description": "Must be less than 1."}),
            ),
            (
                json!({"type": ["string", "number"], "description": "Id."}),
                json!({"anyOf": [{"type": "STRING", "description": "Id."}, {"type": "NUMBER"}]}),
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "string"}, "description": "Headers."}),
                json!({
                    "type": "STRING",
                    "description": "Headers. Write JSON text: {any key: string}.",
                }),
            ),
            (
                json!({"type": "array"}),
                json!({"type": "ARRAY", "items": {"type": "STRING", "description": "Write JSON text: any value."}}),
            ),
            (
                json!({"type": "string", "format": "date-time", "default": "now"}),
                json!({"type": "STRING", "format": "date-time", "description": "Default: \"now\"."}),
            ),
        ],
    );
}

#[test]
fn every_form_is_written_for_the_others() {
    check(
        Dialect::Anthropic,
        &[
            (
                json!({"prefixItems": [{"type": "number"}, {"type": "string"}], "items": false}),
                json!({"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}], "maxItems": 2}),
            ),
            (
                json!({"type": "string", "format": "uri"}),
                json!({"type": "string", "format": "uri"}),
            ),
            (
                json!({"type": "string", "pattern": "(?i)^a$"}),
                json!({"type": "string", "description": "Matches (?i)^a$ ."}),
            ),
        ],
    );
    check(
        Dialect::Plain,
        &[(
            json!({"type": ["string", "null"]}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        )],
    );
    check(
        Dialect::OpenAiStrict,
        &[
            (
                json!({"type": "string", "minLength": 1, "default": "a"}),
                json!({"type": "string", "description": "Default: \"a\". Has at least 1 characters."}),
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "string"}}}),
                json!({
                    "type": "object",
                    "properties": {"a": {"type": ["string", "null"]}},
                    "required": ["a"],
                    "additionalProperties": false,
                }),
            ),
            (
                json!({"type": "string", "pattern": "^(?!a)"}),
                json!({"type": "string", "description": "Matches ^(?!a) ."}),
            ),
        ],
    );
}

#[test]
fn roots_are_repaired_or_quarantined() {
    let nothing = json!({"type": "object", "properties": {}});
    for schema in [
        json!(true),
        json!({}),
        json!({"type": "object"}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#"}),
        json!({"type": ["object", "null"]}),
        json!({"properties": {}}),
    ] {
        assert_eq!(
            tool(&schema, Dialect::OpenAi).unwrap().parameters,
            nothing,
            "{schema}"
        );
    }
    for (schema, reason) in [
        (json!(false), "inputSchema is false"),
        (json!(null), "inputSchema is null"),
        (json!([]), "inputSchema is a list"),
        (json!("object"), "inputSchema is a text"),
        (json!({"type": "string"}), "its type is string"),
        (json!({"enum": ["a"]}), "it is one of \"a\""),
        (
            json!({"type": "object", "allOf": [false]}),
            "no value fits it",
        ),
        (
            json!({"type": "object", "properties": {"a": false}, "required": ["a"]}),
            "no value fits it",
        ),
    ] {
        for dialect in Dialect::ALL {
            let error = tool(&schema, dialect).unwrap_err().to_string();
            assert!(error.contains(reason), "{schema}: {error}");
        }
    }
    let source = ToolSource {
        name: "",
        description: None,
        input_schema: &nothing,
    };
    assert_eq!(convert(&source, Dialect::Plain), Err(Unrepairable::NoName));
}

#[test]
fn alternatives_at_the_root_become_one_object() {
    let schema = json!({
        "type": "object",
        "properties": {"id": {"type": "string"}, "title": {"type": "string"}, "text": {"type": "string"}},
        "required": ["id"],
        "anyOf": [{"required": ["title"]}, {"required": ["text"]}],
    });
    let other = json!({
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "string"}}, "required": ["kind", "x"]},
            {"type": "object", "properties": {"kind": {"const": "b"}, "y": {"type": "integer"}}, "required": ["kind"]},
        ],
    });
    for dialect in [Dialect::OpenAi, Dialect::Anthropic, Dialect::Plain] {
        let converted = tool(&schema, dialect).unwrap();
        assert_eq!(converted.parameters["required"], json!(["id"]));
        assert_eq!(converted.description, "Does. Needs `title`, or `text`.");
        let converted = tool(&other, dialect).unwrap();
        let expected = json!({
            "type": "object",
            "properties": {
                "kind": {"type": "string", "enum": ["a", "b"]},
                "x": {"type": "string"},
                "y": {"type": "integer"},
            },
            "required": ["kind"],
        });
        assert_eq!(converted.parameters, expected);
    }
}

#[test]
fn references_are_written_out_where_they_end() {
    for reference in [
        "#/$defs/a~1b",
        "#/$defs/a%7E1b",
        "#named",
        "https://example.com/root.json#/$defs/a~1b",
        "inner.json",
    ] {
        let schema = json!({
            "$id": "https://example.com/root.json",
            "type": "object",
            "properties": {"p": {"$ref": reference, "description": "It."}},
            "$defs": {
                "a/b": {"$anchor": "named", "type": "integer"},
                "inner": {"$id": "https://example.com/inner.json", "$ref": "#/$defs/deep", "$defs": {"deep": {"type": "integer"}}},
            },
        });
        for dialect in [Dialect::OpenAi, Dialect::Anthropic, Dialect::Plain] {
            let converted = tool(&schema, dialect).unwrap();
            let expected = json!({"type": "integer", "description": "It."});
            assert_eq!(
                converted.parameters["properties"]["p"], expected,
                "{reference}"
            );
            assert!(converted.notes.is_empty());
        }
    }
}

#[test]
fn references_that_lead_nowhere_leave_the_value_open() {
    for (reference, note) in [
        (
            "#/$defs/none",
            "/properties/p: `#/$defs/none` leads nowhere, so any value goes",
        ),
        (
            "#none",
            "/properties/p: `#none` leads nowhere, so any value goes",
        ),
        (
            "#/%zz",
            "/properties/p: `#/%zz` leads nowhere, so any value goes",
        ),
        (
            "https://example.com/x.json",
            "/properties/p: `https://example.com/x.json` is not fetched, so any value goes",
        ),
    ] {
        let schema = json!({"type": "object", "properties": {"p": {"$ref": reference}}});
        assert_eq!(notes(&schema, Dialect::OpenAi), [note]);
        let converted = tool(&schema, Dialect::OpenAi).unwrap();
        assert_eq!(converted.parameters["properties"]["p"], json!({}));
    }
}

#[test]
fn circles_end() {
    for (property, definitions) in [
        (json!({"$ref": "#"}), json!({})),
        (
            json!({"$ref": "#/$defs/a"}),
            json!({"a": {"$ref": "#/$defs/a"}}),
        ),
        (json!({"$ref": "#/properties/p"}), json!({})),
        (
            json!({"$ref": "#/$defs/a"}),
            json!({"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "string"}]}}),
        ),
        (
            json!({"$ref": "#/definitions/a"}),
            json!({"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}),
        ),
    ] {
        let schema = json!({
            "type": "object",
            "properties": {"p": property},
            "$defs": definitions,
            "definitions": definitions,
        });
        for dialect in [
            Dialect::OpenAi,
            Dialect::Anthropic,
            Dialect::Gemini,
            Dialect::Plain,
        ] {
            tool(&schema, dialect).unwrap();
        }
    }
    let schema = json!({"$ref": "#"});
    assert_eq!(
        tool(&schema, Dialect::OpenAi).unwrap().parameters["properties"],
        json!({})
    );
}

#[test]
fn a_schema_that_holds_itself_is_a_definition_or_is_cut() {
    let schema = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Node", "description": "The tree."}},
        "$defs": {"Node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            "required": ["name"],
            "additionalProperties": false,
        }},
    });
    let converted = tool(&schema, Dialect::OpenAi).unwrap();
    assert!(converted.notes.is_empty());
    let items = &converted.parameters["properties"]["tree"]["properties"]["children"]["items"];
    assert_eq!(items, &json!({"$ref": "#/$defs/Node"}));
    let tree = json!({"tree": {"name": "a", "children": [{"name": "b", "children": [{"name": "c", "children": [{"name": "d"}]}]}]}});
    for dialect in Dialect::ALL {
        let converted = tool(&schema, dialect).unwrap();
        let given = converted.arguments_forth(tree.clone());
        assert_eq!(converted.arguments_back(given), tree, "{dialect}");
    }
    let cut = tool(&schema, Dialect::Gemini).unwrap();
    assert!(!cut.parameters.to_string().contains("$ref"));
    assert!(
        cut.parameters
            .to_string()
            .contains("It has the same form as what is around it.")
    );
}

#[test]
fn keys_are_renamed_there_and_back() {
    let schema = json!({
        "type": "object",
        "properties": {
            "$filter": {"type": "string"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a b": {"type": "integer"}}}},
            "é": {"type": "object", "additionalProperties": {"type": "object", "properties": {"": {"type": "string"}}, "required": [""]}},
            "n".repeat(65): {"type": "string"},
        },
        "required": ["$filter"],
    });
    let arguments = json!({
        "$filter": "x",
        "list": [{"a b": 1}, {}],
        "é": {"any key": {"": "y"}},
        "n".repeat(65): "z",
    });
    for dialect in [Dialect::Anthropic, Dialect::Gemini] {
        let converted = tool(&schema, dialect).unwrap();
        let given = converted.arguments_forth(arguments.clone());
        assert!(given.get("$filter").is_none());
        assert_eq!(converted.arguments_back(given), arguments);
        let required = converted.parameters["required"][0].as_str().unwrap();
        assert!(required.starts_with("__filter_"), "{required}");
        // Who spells a key as the server does is understood, too.
        assert_eq!(
            converted.arguments_back(json!({"$filter": "x"})),
            json!({"$filter": "x"})
        );
    }
}

#[test]
fn json_text_comes_back_as_the_value() {
    let schema = json!({"type": "object", "properties": {"p": {}, "q": {"type": "object"}}});
    let converted = tool(&schema, Dialect::Gemini).unwrap();
    for value in [
        json!(null),
        json!("text"),
        json!("5"),
        json!(5),
        json!({"a": [1, "b"]}),
        json!([]),
    ] {
        let given = converted.arguments_forth(json!({"p": value}));
        assert!(given["p"].is_string());
        assert_eq!(converted.arguments_back(given)["p"], value);
    }
    // What models do otherwise is taken as it is meant.
    let back = converted.arguments_back(json!({"p": "not JSON", "q": {"a": 1}}));
    assert_eq!(back, json!({"p": "not JSON", "q": {"a": 1}}));
}

#[test]
fn strictness_is_refused_with_a_reason() {
    for (property, reason) in [
        (json!({}), "any value goes"),
        (json!({"type": "array"}), "any value goes"),
        (json!({"type": "object"}), "the object takes any keys"),
        (
            json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
            "keys that are not listed",
        ),
        (json!({"type": ["string", "null"]}), "can be null or absent"),
        (
            json!({"type": ["string", "null"], "default": "a"}),
            "can be null or absent",
        ),
        (
            json!({"anyOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}},
                {"type": "object", "properties": {"b": {"type": "string"}}},
            ]}),
            "cannot be told apart",
        ),
        (
            (0..10).fold(
                json!({"type": "string"}),
                |below, _| json!({"type": "array", "items": below}),
            ),
            "more than 10 levels",
        ),
        (
            json!({
                "type": "object",
                "properties": {"a": {"type": ["string", "null"], "default": null}, "b": {"type": "string"}},
                "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
            }),
            "can be null or absent",
        ),
        (
            json!({"type": "integer", "enum": (0..1001).collect::<Vec<_>>()}),
            "more than 1,000 values",
        ),
    ] {
        let schema = json!({"type": "object", "properties": {"p": property}});
        let error = not_strict(&schema);
        assert!(error.contains(reason), "{property}: {error}");
        let source = ToolSource {
            name: "t",
            description: None,
            input_schema: &schema,
        };
        assert_eq!(convert_best(&source).unwrap().dialect(), Dialect::OpenAi);
    }
}

#[test]
fn strict_nulls_stand_for_absence_only() {
    let schema = json!({
        "type": "object",
        "properties": {
            "needed": {"type": ["string", "null"]},
            "optional": {"type": "string"},
            "defaulted": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
            "either": {"anyOf": [
                {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "string"}}, "required": ["kind"]},
                {"type": "object", "properties": {"kind": {"const": "b"}, "y": {"type": "string"}}, "required": ["kind"]},
            ]},
        },
        "required": ["needed"],
    });
    let converted = tool(&schema, Dialect::OpenAiStrict).unwrap();
    for (original, given) in [
        (
            json!({"needed": null}),
            json!({"needed": null, "optional": null, "defaulted": null, "either": null}),
        ),
        (
            json!({"needed": "a", "optional": "", "defaulted": 1, "either": {"kind": "b"}}),
            json!({"needed": "a", "optional": "", "defaulted": 1, "either": {"kind": "b", "y": null}}),
        ),
    ] {
        assert_eq!(converted.arguments_forth(original.clone()), given);
        assert_eq!(converted.arguments_back(given), original);
    }
    // The server says that null is what it takes for nothing.
    let given = converted.arguments_forth(json!({"needed": "a", "defaulted": null}));
    assert_eq!(converted.arguments_back(given), json!({"needed": "a"}));
}

#[test]
fn what_stands_beside_a_reference_counts_since_2019() {
    let schema = |draft: &str| {
        json!({
            "$schema": draft,
            "type": "object",
            "properties": {"p": {"$ref": "#/definitions/d", "minLength": 3, "description": "It."}},
            "definitions": {"d": {"type": "string", "maxLength": 9}},
        })
    };
    for (draft, expected) in [
        (
            "http://json-schema.org/draft-07/schema#",
            json!({"type": "string", "maxLength": 9, "description": "It."}),
        ),
        (
            "https://json-schema.org/draft/2020-12/schema",
            json!({"type": "string", "minLength": 3, "maxLength": 9, "description": "It."}),
        ),
    ] {
        let converted = tool(&schema(draft), Dialect::Anthropic).unwrap();
        assert_eq!(converted.parameters["properties"]["p"], expected);
    }
}

#[test]
fn alternatives_that_need_different_keys_are_one_object_that_tells_them() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["a", "c"]}],
    });
    for dialect in [
        Dialect::OpenAi,
        Dialect::Anthropic,
        Dialect::Gemini,
        Dialect::Plain,
    ] {
        let written = property(&schema, dialect);
        assert_eq!(written["description"], "Needs `a`, or `b`, or `a`, `c`.");
        assert!(written.get("required").is_none());
    }
}

#[test]
fn every_dialect_has_a_name_and_a_wire_form() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    for dialect in Dialect::ALL {
        assert_eq!(dialect.to_string().parse(), Ok(dialect));
        let converted = tool(&schema, dialect).unwrap();
        assert_eq!(converted.dialect(), dialect);
        let chat = converted.chat_definition();
        assert_eq!(chat["type"], "function");
        assert_eq!(chat["function"]["parameters"], converted.parameters);
        let is_strict = dialect == Dialect::OpenAiStrict;
        assert_eq!(chat["function"].get("strict").is_some(), is_strict);
    }
    assert!("openapi".parse::<Dialect>().is_err());
    let nothing = tool(&json!({"type": "object"}), Dialect::Gemini).unwrap();
    assert_eq!(
        nothing.definition(),
        json!({"name": "tool", "description": "Does."})
    );
}

#[test]
fn names_are_replaced_only_if_they_are_not_allowed() {
    let schema = json!({"type": "object"});
    for (name, dialect, expected) in [
        ("mcp__a__b-c", Dialect::OpenAi, "mcp__a__b-c"),
        ("a.b", Dialect::Gemini, "a.b"),
        ("1a", Dialect::Anthropic, "1a"),
        ("a.b", Dialect::OpenAi, "a_b_"),
        ("1a", Dialect::Gemini, "_1a_"),
        ("größe", Dialect::Plain, "gr__e_"),
    ] {
        let source = ToolSource {
            name,
            description: None,
            input_schema: &schema,
        };
        let converted = convert(&source, dialect).unwrap().name;
        let is_same = converted == expected;
        assert!(
            is_same || (expected.ends_with('_') && converted.starts_with(expected)),
            "{converted}"
        );
    }
    let name = |name: &str| {
        let source = ToolSource {
            name,
            description: None,
            input_schema: &schema,
        };
        convert(&source, Dialect::OpenAi).unwrap().name
    };
    assert_ne!(name("a b"), name("a.b"));
    assert_ne!(name(&"a".repeat(65)), name(&"a".repeat(66)));
}

#[test]
fn a_schema_of_keys_that_says_nothing_is_no_change() {
    let of = |names: Value| {
        let map = json!({"type": "object", "propertyNames": names, "additionalProperties": {}});
        let schema = json!({"type": "object", "properties": {"p": map}});
        notes(&schema, Dialect::Anthropic)
    };
    for nothing in [json!({"type": "string"}), json!({}), json!(true)] {
        assert_eq!(of(nothing.clone()), [] as [&str; 0], "{nothing}");
    }
    let dropped = ["/properties/p: `propertyNames` cannot be expressed"];
    assert_eq!(of(json!({"type": "string", "pattern": "^a"})), dropped);
    assert_eq!(of(json!(false)), dropped);
}

#[test]
fn keys_that_stand_below_items_of_an_object_are_told() {
    // `worker_put` of mcp-server-cloudflare has its migrations like this.
    let items = json!({"properties": {"new_tag": {"type": "string"}}, "required": ["tag"]});
    let migrations = json!({"type": "object", "description": "Migrations.", "items": items});
    let written = property(&migrations, Dialect::OpenAi);
    let expected = json!({
        "type": "object",
        "properties": {},
        "description": "Migrations. May have `new_tag`.",
    });
    assert_eq!(written, expected);
    let schema = json!({"type": "object", "properties": {"p": migrations}});
    let dropped = ["/properties/p: `items` cannot be expressed"];
    assert_eq!(notes(&schema, Dialect::OpenAi), dropped);
}
