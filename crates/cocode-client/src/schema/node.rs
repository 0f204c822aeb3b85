//! The view of a value that the validator gets: metered, and never copied into errors.
//!
//! When the meter has run out, every container looks empty and every text too, so that what is
//! under way ends soon. What it then says means nothing: the meter has to be asked.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson, unique};
use serde_json::{Map, Number, Value};

/// Texts up to this length are repeated in the validator's errors.
const MAX_COPIED_BYTES: usize = 1024;
/// How many bytes of text count as one step.
const BYTES_PER_STEP: usize = 256;

/// Counts the steps of one check. Atomic only because the validator wants to share it.
#[derive(Debug)]
pub(super) struct Meter(AtomicU64);

impl Meter {
    pub(super) fn new(steps: u64) -> Self {
        Self(AtomicU64::new(steps))
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Whether there were any steps left.
    fn spend(&self, steps: u64) -> bool {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(steps), Ordering::Relaxed);
        left > 0
    }
}

/// JSON as it is shown to the validator.
#[derive(Debug)]
pub(super) struct Metered;

impl Json for Metered {
    type Node<'a> = Instance<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    const KEYS_PER_LOOKUP: usize = SerdeJson::KEYS_PER_LOOKUP;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut Value,
        string: &str,
        f: impl FnOnce(Instance<'_>) -> T,
    ) -> T {
        *buffer = Value::String(string.to_owned());
        f(Instance {
            value: buffer,
            meter: None,
        })
    }
}

/// One value and the meter of its check. Names of properties have no meter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance<'a> {
    value: &'a Value,
    meter: Option<&'a Meter>,
}

impl<'a> Instance<'a> {
    pub(super) fn new(value: &'a Value, meter: &'a Meter) -> Self {
        Self {
            value,
            meter: Some(meter),
        }
    }

    fn spend(&self, steps: usize) -> bool {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        self.meter.is_none_or(|meter| meter.spend(steps))
    }
}

impl<'a> Node<'a, Metered> for Instance<'a> {
    type Object = Members<'a>;
    type Array = Elements<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        let map = self.value.as_object()?;
        Some(Members {
            map: self.spend(1).then_some(map),
            meter: self.meter,
        })
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        let items = self.value.as_array()?;
        let items = if self.spend(1) { items.as_slice() } else { &[] };
        Some(Elements {
            items,
            meter: self.meter,
        })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.value.as_str()?;
        let text = if self.spend(1 + text.len() / BYTES_PER_STEP) {
            text
        } else {
            ""
        };
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<&'a Number> {
        self.value.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.value.as_bool()
    }

    fn is_null(&self) -> bool {
        self.value.is_null()
    }

    fn json_type(&self) -> JsonType {
        self.spend(1);
        self.value.json_type()
    }

    fn string_length(&self) -> Option<u64> {
        self.spend(1);
        self.value.string_length()
    }

    fn equals_value(&self, expected: &Value) -> bool {
        self.spend(1);
        self.value.equals_value(expected)
    }

    /// The validator clones this into every error of every alternative, so containers are left
    /// out; who explains an error finds them by their path.
    fn to_value(&self) -> Cow<'a, Value> {
        match self.value {
            Value::Array(_) | Value::Object(_) => Cow::Owned(Value::Null),
            Value::String(text) if text.len() > MAX_COPIED_BYTES => Cow::Owned(Value::Null),
            plain => Cow::Borrowed(plain),
        }
    }

    fn identity(&self) -> Option<NodeIdentity> {
        self.value.identity()
    }
}

/// The members of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Members<'a> {
    map: Option<&'a Map<String, Value>>,
    meter: Option<&'a Meter>,
}

impl<'a> Object<'a, Metered> for Members<'a> {
    type Node = Instance<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.map.map_or(0, Map::len)
    }

    fn get(&self, key: &String) -> Option<Instance<'a>> {
        let value = self.map?.get(key.as_str())?;
        Some(Instance {
            value,
            meter: self.meter,
        })
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter {
            members: self.map.map(Map::iter),
            meter: self.meter,
        }
    }
}

/// Walks over the members of an object while there are steps left.
#[derive(Debug)]
pub(super) struct MembersIter<'a> {
    members: Option<serde_json::map::Iter<'a>>,
    meter: Option<&'a Meter>,
}

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, Instance<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.members.as_mut()?.next()?;
        let instance = Instance {
            value,
            meter: self.meter,
        };
        instance.spend(1).then_some((name.as_str(), instance))
    }
}

/// The items of an array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements<'a> {
    items: &'a [Value],
    meter: Option<&'a Meter>,
}

impl<'a> Array<'a, Metered> for Elements<'a> {
    type Node = Instance<'a>;
    type ElementsIter = ElementsIter<'a>;

    fn len(&self) -> usize {
        self.items.len()
    }

    fn elements(&self) -> ElementsIter<'a> {
        ElementsIter {
            items: self.items.iter(),
            meter: self.meter,
        }
    }

    fn is_unique(&self) -> bool {
        unique::is_unique(self.items)
    }
}

/// Walks over the items of an array while there are steps left.
#[derive(Debug)]
pub(super) struct ElementsIter<'a> {
    items: std::slice::Iter<'a, Value>,
    meter: Option<&'a Meter>,
}

impl<'a> Iterator for ElementsIter<'a> {
    type Item = Instance<'a>;

    fn next(&mut self) -> Option<Instance<'a>> {
        let instance = Instance {
            value: self.items.next()?,
            meter: self.meter,
        };
        instance.spend(1).then_some(instance)
    }
}
