//! A value as the validator reads it: like [`serde_json::Value`], but its texts stay where they
//! were received, and an object is a sorted list. Most calls fit their schema, and for those this
//! is all that is ever made of their arguments.

use std::borrow::Cow;
use std::fmt;

use jsonschema::JsonType;
use jsonschema::json::Node;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// A value that borrows from its text.
#[derive(Clone, Debug, Default)]
pub(super) enum Tree<'a> {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    String(Cow<'a, str>),
    Array(Vec<Self>),
    /// Sorted by name, each name once.
    Object(Vec<Member<'a>>),
}

/// One member of an object.
pub(super) type Member<'a> = (Cow<'a, str>, Tree<'a>);

impl Tree<'_> {
    pub(super) fn json_type(&self) -> JsonType {
        match self {
            Self::Null => JsonType::Null,
            Self::Bool(_) => JsonType::Boolean,
            Self::Number(_) => JsonType::Number,
            Self::String(_) => JsonType::String,
            Self::Array(_) => JsonType::Array,
            Self::Object(_) => JsonType::Object,
        }
    }

    /// Whether it is this value; numbers are compared by what they mean.
    pub(super) fn equals(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Null, Value::Null) => true,
            (Self::Bool(own), Value::Bool(other)) => own == other,
            (Self::Number(own), Value::Number(_)) => {
                Node::equals_value(&&Value::Number(own.clone()), value)
            }
            (Self::String(own), Value::String(other)) => own == other,
            (Self::Array(own), Value::Array(other)) => {
                let mut pairs = own.iter().zip(other);
                own.len() == other.len() && pairs.all(|(own, other)| own.equals(other))
            }
            (Self::Object(own), Value::Object(other)) => {
                let mut members = own.iter();
                own.len() == other.len()
                    && members.all(|(name, value)| {
                        let other = other.get(&**name);
                        other.is_some_and(|other| value.equals(other))
                    })
            }
            _ => false,
        }
    }

    /// A copy that owns everything.
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Number(number) => Value::Number(number.clone()),
            Self::String(text) => Value::String(text.as_ref().to_owned()),
            Self::Array(items) => items.iter().map(Tree::to_value).collect(),
            Self::Object(members) => {
                let members = members.iter();
                let members = members.map(|(name, value)| (name.as_ref(), value.to_value()));
                members.collect()
            }
        }
    }
}

/// The member of this name.
pub(super) fn member<'t, 'a>(members: &'t [Member<'a>], name: &str) -> Option<&'t Tree<'a>> {
    let place = members.binary_search_by(|(own, _)| own.as_ref().cmp(name));
    let found = place.ok().and_then(|place| members.get(place));
    found.map(|(_, value)| value)
}

impl<'de: 'a, 'a> Deserialize<'de> for Tree<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(Grow).map(|tree: Tree<'de>| tree)
    }
}

struct Grow;

impl<'de> Visitor<'de> for Grow {
    type Value = Tree<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree<'de>, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Tree<'de>, E> {
        Ok(Tree::Bool(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Tree<'de>, E> {
        // As in a `Value`: what is no number is nothing. JSON text has no such numbers.
        Ok(Number::from_f64(number).map_or(Tree::Null, Tree::Number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Tree<'de>, E> {
        Ok(Tree::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree<'de>, E> {
        Ok(Tree::String(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree<'de>, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Tree::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Tree<'de>, A::Error> {
        let mut all: Vec<Member<'de>> = Vec::new();
        while let Some(Name(name)) = members.next_key()? {
            all.push((name, members.next_value()?));
        }
        // Of two with one name the last counts: after this, it is the first.
        all.reverse();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all.dedup_by(|(later, _), (earlier, _)| later == earlier);
        Ok(Tree::Object(all))
    }
}

/// A name that borrows when it can.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use jsonschema::json::Node as _;
    use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_oneof, proptest};
    use serde_json::{Value, json};

    use super::{Tree, member};

    fn values() -> impl Strategy<Value = Value> {
        let plain = prop_oneof![
            proptest::strategy::Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        plain.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec((".{0,3}", inner), 0..5)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_tree_is_the_value_that_is_read_from_the_same_text(value in values(), other in values()) {
            let text = value.to_string();
            let expected: Value = serde_json::from_str(&text).unwrap();
            let tree: Tree<'_> = serde_json::from_str(&text).unwrap();
            prop_assert!(tree.equals(&expected), "{text}");
            assert_eq!(tree.to_value(), expected);
            let is_equal = (&expected).equals_value(&other);
            assert_eq!(tree.equals(&other), is_equal, "{text} and {other}");
        }
    }

    #[test]
    fn of_two_members_with_one_name_the_last_counts() {
        let text = r#"{"b":1,"a":{"x":[]},"b":2,"\u0061a":"\n","b":3}"#;
        let tree: Tree<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(
            tree.to_value(),
            serde_json::from_str::<Value>(text).unwrap()
        );
        let Tree::Object(members) = &tree else {
            panic!("{tree:?}");
        };
        assert!(member(members, "b").is_some_and(|value| value.equals(&json!(3))));
        assert!(member(members, "aa").is_some_and(|value| value.equals(&json!("\n"))));
        assert!(member(members, "c").is_none());
    }

    #[test]
    fn numbers_are_equal_by_what_they_mean() {
        let tree: Tree<'_> = serde_json::from_str("[1.0, 10, 0.5]").unwrap();
        assert!(tree.equals(&json!([1, 10.0, 0.5])));
        assert!(!tree.equals(&json!([1, 10.0, 0.25])));
        assert!(!tree.equals(&json!([1, 10.0])));
    }
}
