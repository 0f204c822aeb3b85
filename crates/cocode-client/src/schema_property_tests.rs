//! Whatever a schema and a value are: nothing panics, and the verdict is that of the validator.

use cocode_wire::RawJson;
use jsonschema::PatternOptions;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Checked, CompiledSchema, SchemaCell};

/// Names are few, so that schemas and values meet.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b"), Just("type"), Just("na/me~"), Just("")].prop_map(String::from)
}

fn plain() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..12_i64).prop_map(Value::from),
        Just(json!(0.5)),
        Just(json!(1e300)),
        prop_oneof![
            Just("5"),
            Just("a"),
            Just("true"),
            Just("[1]"),
            Just("red"),
            Just("é…")
        ]
        .prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    plain().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn type_name() -> impl Strategy<Value = Value> {
    let names = [
        "null", "boolean", "integer", "number", "string", "array", "object",
    ];
    prop::sample::select(names.to_vec()).prop_map(Value::from)
}

fn pattern() -> impl Strategy<Value = String> {
    // Some of them cannot be matched in linear time, and some are no regular expressions.
    prop_oneof![
        Just("^[a-z]+$"),
        Just("a"),
        Just("^(?!a)"),
        Just("(a)\\1"),
        Just("(")
    ]
    .prop_map(String::from)
}

/// Keywords that hold no schemas.
fn assertion() -> impl Strategy<Value = (String, Value)> {
    let entry = |keyword: &'static str| move |value: Value| (keyword.to_owned(), value);
    let count = || (0..3_u64).prop_map(Value::from);
    prop_oneof![
        type_name().prop_map(entry("type")),
        prop::collection::btree_set(type_name().prop_map(|name| name.to_string()), 1..3).prop_map(
            |names| {
                let names = names.iter().map(|name| Value::from(name.trim_matches('"')));
                ("type".to_owned(), names.collect())
            }
        ),
        prop::collection::vec(plain(), 1..4).prop_map(|values| ("enum".to_owned(), values.into())),
        value().prop_map(entry("const")),
        prop::collection::btree_set(name(), 0..3).prop_map(|names| {
            (
                "required".to_owned(),
                names.into_iter().map(Value::from).collect(),
            )
        }),
        count().prop_map(entry("minLength")),
        count().prop_map(entry("maxItems")),
        count().prop_map(entry("minItems")),
        count().prop_map(entry("maxProperties")),
        (-2..5_i64).prop_map(|limit| ("minimum".to_owned(), limit.into())),
        (-2..5_i64).prop_map(|limit| ("exclusiveMaximum".to_owned(), limit.into())),
        (1..4_i64).prop_map(|factor| ("multipleOf".to_owned(), factor.into())),
        any::<bool>().prop_map(|unique| ("uniqueItems".to_owned(), unique.into())),
        Just(("format".to_owned(), json!("date-time"))),
        prop_oneof![
            Just("#"),
            Just("#/$defs/a"),
            Just("#/$defs/b"),
            Just("#/$defs/missing")
        ]
        .prop_map(|place| ("$ref".to_owned(), place.into())),
    ]
}

fn schema(with_patterns: bool) -> impl Strategy<Value = Value> {
    let keywords = prop::collection::vec(assertion(), 0..4);
    let leaf = prop_oneof![
        8 => keywords.prop_map(|entries| Value::Object(entries.into_iter().collect())),
        1 => any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        let single = prop::sample::select(vec![
            "not",
            "if",
            "then",
            "else",
            "items",
            "contains",
            "additionalProperties",
            "unevaluatedProperties",
            "unevaluatedItems",
            "propertyNames",
        ]);
        let list = prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]);
        let map = prop::sample::select(vec!["properties", "$defs", "dependentSchemas"]);
        let schemas = || prop::collection::vec(inner.clone(), 1..4);
        let named = || prop::collection::btree_map(name(), inner.clone(), 0..4);
        let object = |members: std::collections::BTreeMap<String, Value>| {
            Value::Object(members.into_iter().collect())
        };
        let patterned = prop::collection::btree_map(pattern(), inner.clone(), 0..3);
        let weight = u32::from(with_patterns);
        let entry = prop_oneof![
            3 => assertion(),
            3 => (single, inner.clone()).prop_map(|(keyword, one)| (keyword.to_owned(), one)),
            2 => (list, schemas()).prop_map(|(keyword, all)| (keyword.to_owned(), all.into())),
            3 => (map, named()).prop_map(move |(keyword, all)| (keyword.to_owned(), object(all))),
            weight => pattern().prop_map(|one| ("pattern".to_owned(), one.into())),
            weight => patterned.prop_map(move |all| ("patternProperties".to_owned(), object(all))),
        ];
        prop::collection::vec(entry, 0..6)
            .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>()))
    })
}

fn raw(value: &Value) -> RawJson {
    RawJson::of(value).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_verdict_is_that_of_the_validator(schema in schema(false), value in value()) {
        if let Ok(compiled) = CompiledSchema::compile(&raw(&schema)) {
            let validator = jsonschema::options().offline().build(&schema).unwrap();
            let checked = compiled.check(&raw(&value));
            prop_assert_eq!(checked.is_ok(), validator.is_valid(&value));
            if let Err(mismatch) = checked {
                prop_assert!(!mismatch.problems().is_empty());
                prop_assert!(mismatch.to_string().len() < 16_384);
            }
        }
    }

    #[test]
    fn leaving_out_patterns_never_refuses_what_the_whole_schema_allows(
        schema in schema(true),
        value in value(),
    ) {
        let options = jsonschema::options().offline();
        let whole = options.with_pattern_options(PatternOptions::fancy_regex()).build(&schema);
        if let (Ok(compiled), Ok(whole)) = (CompiledSchema::compile(&raw(&schema)), whole) {
            let fits = compiled.check(&raw(&value)).is_ok();
            prop_assert!(fits || !whole.is_valid(&value));
        }
    }

    #[test]
    fn any_json_can_be_given_as_schema_and_as_value(schema in value(), text in "\\PC*") {
        let cell = SchemaCell::new(raw(&schema));
        let checked = cell.check(&raw(&json!({ "a": text, "b": [text] })));
        if let Checked::Mismatch(mismatch) = checked {
            prop_assert!(!mismatch.to_string().is_empty());
        }
    }
}
