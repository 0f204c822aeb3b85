//! Servers that mean harm, or know no measure: everything ends, and within bounds.

use serde_json::{Map, Value, json};

use super::{Dialect, MAX_PARAMETERS_BYTES, ProviderTool, ToolSource, Unrepairable, convert};

fn tool(schema: &Value, dialect: Dialect) -> Result<ProviderTool, Unrepairable> {
    let tool = ToolSource {
        name: "tool",
        description: Some("Does."),
        input_schema: schema,
    };
    let converted = convert(&tool, dialect)?;
    let found = cocode_testkit::violations(dialect.as_str(), &converted.definition());
    assert!(found.is_empty(), "{dialect} {found:?}");
    assert!(converted.parameters.to_string().len() <= MAX_PARAMETERS_BYTES);
    assert!(converted.notes.len() <= 64);
    Ok(converted)
}

/// Everything but strictness, which refuses much.
const LENIENT: [Dialect; 4] = [
    Dialect::OpenAi,
    Dialect::Anthropic,
    Dialect::Gemini,
    Dialect::Plain,
];

fn with(property: &Value, definitions: &Map<String, Value>) -> Value {
    json!({"type": "object", "properties": {"p": property}, "$defs": definitions})
}

#[test]
fn definitions_that_double_are_bounded() {
    let mut definitions = Map::new();
    for number in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
        definitions.insert(
            format!("d{number}"),
            json!({"type": "object", "properties": {"x": next, "y": next}}),
        );
    }
    definitions.insert("d40".to_owned(), json!({"type": "string"}));
    let schema = with(&json!({"$ref": "#/$defs/d0"}), &definitions);
    for dialect in LENIENT {
        tool(&schema, dialect).unwrap();
    }
}

#[test]
fn definitions_that_all_hold_each_other_are_bounded() {
    let mut definitions = Map::new();
    for number in 0..30 {
        let all = (0..30).map(|other| {
            let reference = json!({"$ref": format!("#/$defs/d{other}")});
            (format!("k{other}"), reference)
        });
        let all: Map<String, Value> = all.collect();
        definitions.insert(
            format!("d{number}"),
            json!({"type": "object", "properties": all}),
        );
    }
    let schema = with(&json!({"$ref": "#/$defs/d0"}), &definitions);
    for dialect in LENIENT {
        tool(&schema, dialect).unwrap();
    }
}

#[test]
fn alternatives_that_multiply_are_bounded() {
    let part = |key: &str| json!({"properties": {key: {"type": "string"}}});
    let union =
        json!({"anyOf": (0..12).map(|number| part(&format!("k{number}"))).collect::<Value>()});
    let product = json!({"type": "object", "allOf": vec![union; 8]});
    let nested = (0..12).fold(json!({"type": "string"}), |below, _| {
        json!({
            "type": "object",
            "properties": {"x": below},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}, {"properties": {"c": {"type": "string"}}}, {"maxProperties": 3}],
        })
    });
    for schema in [product, nested] {
        for dialect in LENIENT {
            tool(&with(&schema, &Map::new()), dialect).unwrap();
        }
    }
}

#[test]
fn depth_is_bounded() {
    let objects = (0..120).fold(
        json!({"type": "string"}),
        |below, _| json!({"type": "object", "properties": {"x": below}}),
    );
    let unions = (0..120).fold(
        json!({"type": "string"}),
        |below, _| json!({"anyOf": [below]}),
    );
    let all = (0..120).fold(
        json!({"type": "string"}),
        |below, _| json!({"allOf": [below, {}]}),
    );
    for schema in [objects, unions, all] {
        for dialect in LENIENT {
            let converted = tool(&with(&schema, &Map::new()), dialect).unwrap();
            let is_told = converted
                .notes
                .iter()
                .any(|note| note.to_string().contains("too deep"));
            assert!(is_told);
        }
    }
}

#[test]
fn what_is_too_large_is_quarantined() {
    let properties: Map<String, Value> = (0..20_000)
        .map(|number| (format!("k{number}"), json!({"type": "string"})))
        .collect();
    let wide = json!({"type": "object", "properties": properties});
    let long =
        json!({"type": "object", "properties": {"p": {"enum": (0..30_000).collect::<Vec<_>>()}}});
    let text = "long ".repeat(2_000_000);
    let key = json!({"type": "object", "properties": {(text.as_str()): {"type": "string"}}});
    for schema in [wide, long, key] {
        for dialect in [Dialect::OpenAi, Dialect::OpenAiStrict, Dialect::Plain] {
            let error = tool(&schema, dialect).unwrap_err();
            assert!(matches!(error, Unrepairable::TooLarge { .. }), "{error}");
        }
    }
}

#[test]
fn long_texts_are_cut() {
    let text = "long ".repeat(5_000);
    let schema = json!({
        "type": "object",
        "properties": {"p": {"type": "string", "description": text, "default": text, "pattern": text, "format": text}},
        "anyOf": (0..40).map(|number| json!({"required": [format!("k{number}")]})).collect::<Value>(),
    });
    for dialect in LENIENT {
        let source = ToolSource {
            name: &"n".repeat(500),
            description: Some(&text),
            input_schema: &schema,
        };
        let converted = convert(&source, dialect).unwrap();
        let found = cocode_testkit::violations(dialect.as_str(), &converted.definition());
        assert!(found.is_empty(), "{dialect} {found:?}");
        let length = converted.description.chars().count();
        assert!(
            length <= dialect.max_description_chars(),
            "{dialect} {length}"
        );
        assert!(converted.description.starts_with("long long"));
        assert!(
            converted.description.contains("… Needs `k0`, or `k1`"),
            "{}",
            converted.description
        );
        let description = converted.parameters["properties"]["p"]["description"]
            .as_str()
            .unwrap();
        assert!(description.chars().count() <= 2_301);
        assert_eq!(converted.name.len(), 64);
    }
}

#[test]
fn odd_values_of_keywords_are_ignored() {
    let odd = [
        json!(null),
        json!(1.5),
        json!(-1),
        json!("x"),
        json!([]),
        json!([1]),
        json!({"a": 1}),
        json!(true),
    ];
    let keywords = [
        "type",
        "properties",
        "required",
        "items",
        "prefixItems",
        "additionalProperties",
        "enum",
        "$ref",
        "$defs",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "minLength",
        "pattern",
        "format",
        "minimum",
        "exclusiveMinimum",
        "multipleOf",
        "minItems",
        "uniqueItems",
        "patternProperties",
        "dependentRequired",
        "propertyNames",
        "description",
        "title",
        "default",
        "examples",
        "nullable",
        "$id",
        "$anchor",
        "$schema",
        "if",
        "contains",
    ];
    for keyword in keywords {
        for value in &odd {
            let schema = with(&json!({keyword: value}), &Map::new());
            let root = json!({keyword: value});
            for dialect in Dialect::ALL {
                // Whatever comes out follows the rules.
                drop(tool(&schema, dialect));
                drop(tool(&root, dialect));
            }
        }
    }
}

#[test]
fn keys_cannot_be_made_to_collide() {
    let odd = json!({"type": "object", "properties": {"a b": {"type": "string"}}});
    let shown = tool(&odd, Dialect::Anthropic).unwrap();
    let shown = shown.parameters["properties"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    let schema = json!({"type": "object", "properties": {"a b": {"type": "string"}, shown.clone(): {"type": "integer"}}});
    for dialect in [Dialect::Anthropic, Dialect::Gemini] {
        let converted = tool(&schema, dialect).unwrap();
        let original = json!({"a b": "x", shown.clone(): 1});
        let given = converted.arguments_forth(original.clone());
        assert_eq!(given.as_object().unwrap().len(), 2);
        assert_eq!(converted.arguments_back(given), original);
    }
}
