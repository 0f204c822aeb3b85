//! Values that likely fit a schema, so that tests are about something.

use serde_json::{Map, Value, json};

/// Which keys objects have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    /// Also such as the schema does not speak of.
    Any,
    /// Those that the schema declares.
    Declared,
}

/// Random numbers from a seed.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % 1_000_003).unwrap_or(0) % sides.max(1)
    }
}

/// A value that a schema likely accepts.
pub(crate) fn sample(schema: &Value, root: &Value, dice: &mut Dice, flavor: Flavor) -> Value {
    deep_sample(schema, root, dice, flavor, 0)
}

/// The same value with something changed.
pub(crate) fn spoiled(value: Value, dice: &mut Dice) -> Value {
    match value {
        Value::Object(mut members) if !members.is_empty() || dice.roll(2) == 0 => {
            let keys: Vec<String> = members.keys().cloned().collect();
            match (dice.roll(4), keys.get(dice.roll(keys.len()))) {
                (0, _) | (_, None) => {
                    let key = ["a", "b", "c d", "$e", "zz"][dice.roll(5)];
                    members.insert(key.to_owned(), scalar(dice));
                }
                (1, Some(key)) => {
                    members.remove(key);
                }
                (_, Some(key)) => {
                    let below = members.remove(key).unwrap_or_default();
                    members.insert(key.clone(), spoiled(below, dice));
                }
            }
            Value::Object(members)
        }
        Value::Array(mut items) if !items.is_empty() => {
            let index = dice.roll(items.len());
            let item = items.swap_remove(index);
            items.push(spoiled(item, dice));
            Value::Array(items)
        }
        _ => scalar(dice),
    }
}

fn scalar(dice: &mut Dice) -> Value {
    let values = [
        json!(null),
        json!(true),
        json!(2),
        json!(-1.5),
        json!("x"),
        json!("{\"a\":1}"),
        json!("5"),
        json!([]),
        json!({}),
        json!({"a": "x"}),
        json!(["x", 1]),
    ];
    values[dice.roll(values.len())].clone()
}

fn deep_sample(
    schema: &Value,
    root: &Value,
    dice: &mut Dice,
    flavor: Flavor,
    depth: usize,
) -> Value {
    let Value::Object(members) = flattened(schema, root, dice, 0) else {
        return scalar(dice);
    };
    let below = |schema: &Value, dice: &mut Dice| {
        if depth > 5 {
            json!(null)
        } else {
            deep_sample(schema, root, dice, flavor, depth + 1)
        }
    };
    if let Some(value) = members.get("const") {
        return value.clone();
    }
    if let Some(Value::Array(values)) = members.get("enum") {
        return values
            .get(dice.roll(values.len()))
            .cloned()
            .unwrap_or_default();
    }
    let kind = match members.get("type") {
        Some(Value::Array(kinds)) => kinds.get(dice.roll(kinds.len())).cloned(),
        kind => kind.cloned(),
    };
    let number = |key: &str| members.get(key).and_then(Value::as_i64);
    match kind.as_ref().and_then(Value::as_str) {
        Some("null") => Value::Null,
        Some("boolean") => json!(dice.roll(2) == 0),
        Some("string") => {
            let least = usize::try_from(number("minLength").unwrap_or(0)).unwrap_or(0);
            json!(
                "abc"
                    .chars()
                    .cycle()
                    .take(least + dice.roll(2))
                    .collect::<String>()
            )
        }
        Some("integer" | "number") => fitting_number(&members),
        Some("array") => {
            let none = Vec::new();
            let prefix = members
                .get("prefixItems")
                .and_then(Value::as_array)
                .unwrap_or(&none);
            let least = usize::try_from(number("minItems").unwrap_or(0)).unwrap_or(0);
            let length = least.max(prefix.len()) + dice.roll(2);
            let any = json!({});
            let rest = members.get("items").unwrap_or(&any);
            let items = (0..length).map(|index| below(prefix.get(index).unwrap_or(rest), dice));
            items.collect()
        }
        Some("object") => object(&members, dice, flavor, below),
        _ => scalar(dice),
    }
}

fn fitting_number(members: &Map<String, Value>) -> Value {
    let number = |key: &str| members.get(key).and_then(Value::as_i64);
    let factor = number("multipleOf").unwrap_or(1);
    let least = number("minimum").or(number("exclusiveMinimum").map(|least| least + 1));
    let most = number("exclusiveMaximum").map(|most| most - 1);
    let value = least.or(most).unwrap_or(0).div_euclid(factor) * factor;
    let is_low = value < least.unwrap_or(value);
    json!(if is_low { value + factor } else { value })
}

fn object(
    members: &Map<String, Value>,
    dice: &mut Dice,
    flavor: Flavor,
    below: impl Fn(&Value, &mut Dice) -> Value,
) -> Value {
    let mut value = Map::new();
    let needed = members.get("required").and_then(Value::as_array);
    let needed = needed.into_iter().flatten().filter_map(Value::as_str);
    let needed: Vec<&str> = needed.collect();
    let properties = members.get("properties").and_then(Value::as_object);
    for (key, schema) in properties.into_iter().flatten() {
        if needed.contains(&key.as_str()) || dice.roll(2) == 0 {
            value.insert(key.clone(), below(schema, dice));
        }
    }
    let any = json!({});
    let rest = members.get("additionalProperties").unwrap_or(&any);
    for key in needed {
        if !value.contains_key(key) {
            value.insert(key.to_owned(), below(rest, dice));
        }
    }
    if flavor == Flavor::Any && rest != &json!(false) && dice.roll(3) == 0 {
        value.insert("zz".to_owned(), below(rest, dice));
    }
    Value::Object(value)
}

/// A schema without references and combinators, of which one alternative is taken.
fn flattened(schema: &Value, root: &Value, dice: &mut Dice, depth: usize) -> Value {
    let Value::Object(members) = schema else {
        return json!({});
    };
    if depth > 8 {
        return json!({"type": "null"});
    }
    let mut result = members.clone();
    for keyword in ["$ref", "anyOf", "oneOf", "allOf", "$defs"] {
        result.remove(keyword);
    }
    let mut parts = Vec::new();
    if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
        parts.extend(root.pointer(reference.trim_start_matches('#')));
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(some)) = members.get(keyword) {
            parts.extend(some.get(dice.roll(some.len())));
        }
    }
    parts.extend(
        members
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten(),
    );
    for part in parts {
        let Value::Object(part) = flattened(part, root, dice, depth + 1) else {
            continue;
        };
        for (keyword, value) in part {
            match (result.get_mut(&keyword), value) {
                (Some(Value::Object(known)), Value::Object(value)) => {
                    for (key, below) in value {
                        known.entry(key).or_insert(below);
                    }
                }
                (Some(Value::Array(known)), Value::Array(value)) if keyword == "required" => {
                    known.extend(value);
                }
                (_, value) => {
                    result.insert(keyword, value);
                }
            }
        }
    }
    Value::Object(result)
}
