//! Whatever the schema is: what the server accepts can be said to every provider, and comes back.

#[path = "provider_schema_samples.rs"]
mod samples;

use jsonschema::Validator;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use serde_json::{Map, Value, json};

use super::{Dialect, ProviderTool, ToolSource, Unrepairable, convert};
use samples::{Dice, Flavor, sample, spoiled};

fn converted(schema: &Value, dialect: Dialect) -> Result<ProviderTool, Unrepairable> {
    let tool = ToolSource {
        name: "tool",
        description: None,
        input_schema: schema,
    };
    convert(&tool, dialect)
}

/// Which schemas there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taste {
    /// All kinds.
    Wild,
    /// Mostly such as can be strict.
    Tame,
}

/// Keys that schemas and values share, some of which not every provider takes.
fn key() -> impl Strategy<Value = String> + Clone {
    let keys = ["a", "b", "c d", "$e", "kind"];
    prop::sample::select(keys.to_vec()).prop_map(str::to_owned)
}

/// Rules without a type, and the type that they are about.
fn rules() -> impl Strategy<Value = (&'static str, Value)> + Clone {
    prop_oneof![
        Just(("string", json!({}))),
        (0..3_u64).prop_map(|least| ("string", json!({"minLength": least}))),
        (1..4_u64).prop_map(|most| ("string", json!({"maxLength": most, "format": "uri"}))),
        Just(("string", json!({"pattern": "^[a-z]*$"}))),
        Just(("integer", json!({}))),
        (-3..3_i64).prop_map(|least| ("integer", json!({"minimum": least}))),
        (-3..3_i64).prop_map(|most| ("number", json!({"exclusiveMaximum": most}))),
        (-3..3_i64).prop_map(|least| ("integer", json!({"exclusiveMinimum": least}))),
        (1..4_u64).prop_map(|factor| ("integer", json!({"multipleOf": factor}))),
        Just(("boolean", json!({}))),
    ]
}

fn typed(kind: &str, mut rules: Value) -> Value {
    rules["type"] = json!(kind);
    rules
}

fn leaf(taste: Taste) -> impl Strategy<Value = Value> + Clone {
    let wild = u32::from(taste == Taste::Wild);
    let null = move |mut rules: Value| {
        if taste == Taste::Tame {
            rules["default"] = Value::Null;
        }
        rules
    };
    prop_oneof![
        6 => rules().prop_map(|(kind, rules)| typed(kind, rules)),
        1 => rules().prop_map(move |(kind, rules)| {
            let mut rules = typed(kind, rules);
            rules["type"] = json!([kind, "null"]);
            null(rules)
        }),
        1 => rules().prop_map(move |(kind, rules)| {
            let mut rules = typed(kind, rules);
            rules["nullable"] = json!(true);
            null(rules)
        }),
        1 => Just(null(json!({"enum": ["x", "", 1, null, true]}))),
        1 => Just(json!({"type": "string", "enum": ["x", "y"]})),
        1 => Just(json!({"enum": [1, 2.5]})),
        2 => Just(json!({"const": "k1"})),
        1 => Just(json!({"const": 3})),
        1 => Just(null(json!({"type": "null"}))),
        wild => prop::sample::select(vec![
            json!({"type": "object"}),
            json!({"type": "array"}),
            json!({}),
            json!(true),
            json!({"enum": [{"a": 1}, [1]]}),
            json!({"not": {"type": "string"}}),
        ]),
    ]
}

/// A value below an object or a list, where a schema may hold itself.
fn below(
    inner: impl Strategy<Value = Value> + Clone + 'static,
) -> impl Strategy<Value = Value> + Clone {
    prop_oneof![
        6 => inner,
        1 => (0..3_usize).prop_map(|number| json!({"$ref": format!("#/$defs/d{number}")})),
        1 => (0..3_usize).prop_map(|number| {
            json!({"anyOf": [{"$ref": format!("#/$defs/d{number}")}, {"type": "null"}], "default": null})
        }),
    ]
}

fn object(
    inner: impl Strategy<Value = Value> + Clone + 'static,
    taste: Taste,
) -> impl Strategy<Value = Value> + Clone {
    let wild = u32::from(taste == Taste::Wild);
    let properties = prop::collection::btree_map(key(), below(inner.clone()), 0..4);
    let needed = if taste == Taste::Wild { 3 } else { 2 };
    let required = prop::collection::btree_set(key(), 0..needed);
    let rest = prop_oneof![
        5 => Just(None),
        3 => Just(Some(json!(false))),
        wild => Just(Some(json!(true))),
        wild => inner.prop_map(Some),
    ];
    let most = prop_oneof![5 => Just(None), 1 => (1..4_u64).prop_map(Some)];
    (properties, required, rest, most).prop_map(|(properties, required, rest, most)| {
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if let Some(rest) = rest {
            schema["additionalProperties"] = rest;
        }
        if let Some(most) = most {
            schema["maxProperties"] = json!(most);
        }
        schema
    })
}

fn array(
    inner: impl Strategy<Value = Value> + Clone + 'static,
) -> impl Strategy<Value = Value> + Clone {
    let prefix = prop::collection::vec(below(inner.clone()), 0..3);
    let rest = prop_oneof![
        3 => below(inner).prop_map(Some),
        1 => Just(Some(json!(false))),
        1 => Just(None),
    ];
    (prefix, rest, 0..3_u64, any::<bool>()).prop_map(|(prefix, rest, least, unique)| {
        let mut schema = json!({"type": "array", "minItems": least});
        if !prefix.is_empty() {
            schema["prefixItems"] = json!(prefix);
        }
        if let Some(rest) = rest {
            schema["items"] = rest;
        }
        if unique {
            schema["uniqueItems"] = json!(true);
            schema["maxItems"] = json!(least + 1);
        }
        schema
    })
}

fn schema(taste: Taste) -> impl Strategy<Value = Value> + Clone {
    leaf(taste).prop_recursive(3, 16, 3, move |inner| {
        let union = prop::sample::select(vec!["anyOf", "oneOf", "allOf"]);
        let parts = prop::collection::vec(inner.clone(), 1..4);
        let objects = prop::collection::vec(object(inner.clone(), taste), 1..3);
        let beside = prop::collection::vec(rules(), 1..3);
        prop_oneof![
            4 => object(inner.clone(), taste),
            2 => array(inner.clone()),
            2 => (union.clone(), parts).prop_map(|(union, parts)| json!({union: parts})),
            1 => (object(inner.clone(), taste), union.clone(), objects).prop_map(|(mut beside, union, parts)| {
                beside[union] = json!(parts);
                beside
            }),
            1 => (object(inner.clone(), taste), union.clone(), prop::collection::vec(key(), 1..4)).prop_map(
                |(mut beside, union, keys)| {
                    let needs = |key: &String| json!({"required": [key]});
                    beside[union] = keys.iter().map(needs).collect();
                    beside
                }
            ),
            1 => (union, beside, any::<bool>()).prop_map(|(union, parts, null)| {
                let mut types: Vec<&str> = parts.iter().map(|(kind, _)| *kind).collect();
                if null {
                    types.push("null");
                }
                types.sort_unstable();
                types.dedup();
                let parts: Vec<&Value> = parts.iter().map(|(_, rules)| rules).collect();
                json!({"type": types, union: parts})
            }),
            1 => (inner, Just(json!({"title": "T", "description": "d", "if": {"type": "string"}, "then": {"maxLength": 9}}))).prop_map(|(inner, more)| {
                match (inner, more) {
                    (Value::Object(mut inner), Value::Object(more)) => {
                        inner.extend(more);
                        Value::Object(inner)
                    }
                    (inner, _) => inner,
                }
            }),
        ]
    })
}

fn root(taste: Taste) -> impl Strategy<Value = Value> {
    let definitions = prop::collection::vec(schema(taste), 3);
    let alternatives = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec(object(schema(taste), taste), 1..4),
    ];
    (object(schema(taste), taste), definitions, alternatives).prop_map(
        |(mut root, definitions, parts)| {
            for (number, schema) in definitions.into_iter().enumerate() {
                root["$defs"][format!("d{number}")] = schema;
            }
            if !parts.is_empty() {
                root["anyOf"] = json!(parts);
            }
            root
        },
    )
}

fn validator(schema: &Value) -> Option<Validator> {
    jsonschema::draft202012::options().build(schema).ok()
}

/// The original, where a key that only some alternatives of the root mention belongs to those.
fn as_intended(root: &Value) -> Value {
    let mut root = root.clone();
    let keys = |schema: &Value| -> Vec<String> {
        let properties = schema["properties"].as_object();
        let listed = properties
            .into_iter()
            .flatten()
            .map(|(key, _)| key.as_str());
        let required = schema["required"].as_array();
        let needed = required.into_iter().flatten().filter_map(Value::as_str);
        listed.chain(needed).map(str::to_owned).collect()
    };
    let own = keys(&root);
    let Some(parts) = root["anyOf"].as_array_mut() else {
        return root;
    };
    let all: Vec<String> = parts.iter().flat_map(keys).collect();
    for part in parts {
        let mentioned = keys(part);
        for key in &all {
            if !mentioned.contains(key) && !own.contains(key) {
                part["properties"][key] = json!(false);
            }
        }
    }
    root
}

/// The original, without the keys that it does not speak of.
fn closed(schema: &Value) -> Value {
    fn inside(schema: &Value) -> Value {
        let Value::Object(members) = schema else {
            return schema.clone();
        };
        let mut result = Map::new();
        for (keyword, value) in members {
            let value = match (keyword.as_str(), value) {
                ("properties" | "$defs", Value::Object(below)) => below
                    .iter()
                    .map(|(key, schema)| (key.clone(), closed(schema)))
                    .collect(),
                ("items" | "additionalProperties", below) => closed(below),
                ("prefixItems", Value::Array(parts)) => parts.iter().map(closed).collect(),
                ("anyOf" | "oneOf" | "allOf", Value::Array(parts)) => {
                    parts.iter().map(inside).collect()
                }
                (_, value) => value.clone(),
            };
            result.insert(keyword.clone(), value);
        }
        Value::Object(result)
    }
    let mut schema = inside(schema);
    if let Value::Object(members) = &mut schema
        && !members.contains_key("additionalProperties")
        && !members.contains_key("$ref")
    {
        members.insert("unevaluatedProperties".to_owned(), json!(false));
    }
    schema
}

/// A schema of Gemini as JSON Schema.
fn from_gemini(schema: &Value) -> Value {
    let Value::Object(members) = schema else {
        return schema.clone();
    };
    let mut result = Map::new();
    for (field, value) in members {
        let value = match (field.as_str(), value) {
            ("type", Value::String(name)) => json!(name.to_lowercase()),
            ("properties", Value::Object(below)) => below
                .iter()
                .map(|(key, schema)| (key.clone(), from_gemini(schema)))
                .collect(),
            ("items", below) => from_gemini(below),
            ("anyOf", Value::Array(parts)) => parts.iter().map(from_gemini).collect(),
            (_, value) => value.clone(),
        };
        result.insert(field.clone(), value);
    }
    if result.remove("nullable") == Some(json!(true)) {
        return json!({"anyOf": [result, {"type": "null"}]});
    }
    Value::Object(result)
}

fn without_null_members(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, member)| !member.is_null())
            .map(|(key, member)| (key.clone(), without_null_members(member)))
            .collect(),
        Value::Array(items) => items.iter().map(without_null_members).collect(),
        plain => plain.clone(),
    }
}

/// Fewer cases than usual, unless someone asks for a number of them.
fn config() -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if config.cases == 256 {
        config.cases = 64;
    }
    config.failure_persistence = None;
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_the_server_accepts_can_be_said_to_every_provider(schema in root(Taste::Wild), seed in any::<u64>()) {
        let Some(original) = validator(&as_intended(&schema)) else {
            return Ok(());
        };
        let mut dice = Dice::new(seed);
        let values: Vec<Value> = (0..12)
            .map(|number| {
                let value = sample(&schema, &schema, &mut dice, Flavor::Any);
                if number % 3 == 0 { spoiled(value, &mut dice) } else { value }
            })
            .filter(|value| value.is_object() && original.is_valid(value))
            .collect();
        for dialect in [Dialect::OpenAi, Dialect::Anthropic, Dialect::Gemini, Dialect::Plain] {
            let tool = match converted(&schema, dialect) {
                Ok(tool) => tool,
                // Nothing is lost with a tool that takes no arguments at all.
                Err(error) => {
                    prop_assert!(values.is_empty(), "{dialect}: {error} {values:?}");
                    continue;
                }
            };
            let found = cocode_testkit::violations(dialect.as_str(), &tool.definition());
            prop_assert!(found.is_empty(), "{dialect} {found:?} {}", tool.definition());
            let parameters = match dialect {
                Dialect::Gemini => from_gemini(&tool.parameters),
                _ => tool.parameters.clone(),
            };
            let Some(shown) = validator(&parameters) else {
                return Err(TestCaseError::fail(format!("{dialect}: invalid {parameters}")));
            };
            for value in &values {
                let given = tool.arguments_forth(value.clone());
                prop_assert!(shown.is_valid(&given), "{dialect} {value} as {given} for {parameters} from {schema}");
                prop_assert_eq!(&tool.arguments_back(given), value, "{} {} from {}", dialect, parameters, schema);
            }
        }
    }

    #[test]
    fn strict_arguments_come_back_as_they_were(schema in root(Taste::Tame), seed in any::<u64>()) {
        let Ok(tool) = converted(&schema, Dialect::OpenAiStrict) else {
            return Ok(());
        };
        let found = cocode_testkit::violations("openai-strict", &tool.definition());
        prop_assert!(found.is_empty(), "{found:?} {}", tool.definition());
        let intended = closed(&as_intended(&schema));
        let (Some(original), Some(shown)) = (validator(&intended), validator(&tool.parameters)) else {
            return Ok(());
        };
        let mut dice = Dice::new(seed);
        for _ in 0..12 {
            let value = sample(&schema, &schema, &mut dice, Flavor::Declared);
            if !value.is_object() || !original.is_valid(&value) {
                continue;
            }
            let given = tool.arguments_forth(value.clone());
            prop_assert!(shown.is_valid(&given), "{value} as {given} for {} from {schema}", tool.parameters);
            let back = tool.arguments_back(given.clone());
            if back != value {
                // Null is the default of a property, and so the same as its absence.
                prop_assert!(schema.to_string().contains("\"default\":null"));
                prop_assert_eq!(without_null_members(&back), without_null_members(&value));
                // Only where one of several must fit, both can make a difference all the same.
                let may_differ = schema.to_string().contains("oneOf");
                prop_assert!(may_differ || original.is_valid(&back), "{value} came back as {back}");
                prop_assert_eq!(tool.arguments_forth(back), given);
            }
        }
    }

    #[test]
    fn the_same_schema_has_the_same_bytes(schema in root(Taste::Wild)) {
        for dialect in Dialect::ALL {
            let text = || converted(&schema, dialect).map(|tool| tool.definition().to_string());
            prop_assert_eq!(text(), text());
        }
    }
}

#[test]
fn samples_are_often_accepted() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut accepted, mut strict) = (0, 0);
    for seed in 0..100 {
        let mut grown = |taste| root(taste).new_tree(&mut runner).unwrap().current();
        let tame = grown(Taste::Tame);
        strict += usize::from(converted(&tame, Dialect::OpenAiStrict).is_ok());
        let schema = grown(Taste::Wild);
        let Some(original) = validator(&schema) else {
            continue;
        };
        let mut dice = Dice::new(seed);
        let value = sample(&schema, &schema, &mut dice, Flavor::Any);
        accepted += usize::from(original.is_valid(&value));
    }
    assert!(
        accepted >= 30,
        "only {accepted} of 100 samples are accepted"
    );
    assert!(strict >= 15, "only {strict} of 100 schemas can be strict");
}
