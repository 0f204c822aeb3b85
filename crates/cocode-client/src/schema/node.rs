//! The view of a value that the validator gets: metered, and never copied into errors.
//!
//! When the meter has run out, every container looks empty and every text too, so that what is
//! under way ends soon. What it then says means nothing: the meter has to be asked.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson, unique};
use serde_json::{Number, Value};

use super::tree::{Member, Tree, member};

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
    type StringBuffer = Tree<'static>;

    const KEYS_PER_LOOKUP: usize = SerdeJson::KEYS_PER_LOOKUP;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut Tree<'static>,
        string: &str,
        f: impl FnOnce(Instance<'_>) -> T,
    ) -> T {
        *buffer = Tree::String(Cow::Owned(string.to_owned()));
        f(Instance {
            value: buffer,
            meter: None,
        })
    }
}

/// One value and the meter of its check. Names of properties have no meter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance<'a> {
    value: &'a Tree<'a>,
    meter: Option<&'a Meter>,
}

impl<'a> Instance<'a> {
    pub(super) fn new(value: &'a Tree<'a>, meter: &'a Meter) -> Self {
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
        let Tree::Object(members) = self.value else {
            return None;
        };
        Some(Members {
            members: if self.spend(1) { members } else { &[] },
            meter: self.meter,
        })
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        let Tree::Array(items) = self.value else {
            return None;
        };
        Some(Elements {
            items: if self.spend(1) { items } else { &[] },
            meter: self.meter,
        })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let Tree::String(text) = self.value else {
            return None;
        };
        let text = if self.spend(1 + text.len() / BYTES_PER_STEP) {
            text
        } else {
            ""
        };
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<&'a Number> {
        match self.value {
            Tree::Number(number) => Some(number),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        match self.value {
            Tree::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    fn is_null(&self) -> bool {
        matches!(self.value, Tree::Null)
    }

    fn json_type(&self) -> JsonType {
        self.spend(1);
        self.value.json_type()
    }

    fn string_length(&self) -> Option<u64> {
        self.spend(1);
        let Tree::String(text) = self.value else {
            return None;
        };
        u64::try_from(text.chars().count()).ok()
    }

    fn equals_value(&self, expected: &Value) -> bool {
        self.spend(1);
        self.value.equals(expected)
    }

    /// The validator clones this into every error of every alternative, so containers are left
    /// out; who explains an error finds them by their path.
    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(match self.value {
            Tree::Array(_) | Tree::Object(_) => Value::Null,
            Tree::String(text) if text.len() > MAX_COPIED_BYTES => Value::Null,
            plain => plain.to_value(),
        })
    }

    fn identity(&self) -> Option<NodeIdentity> {
        let address = std::ptr::from_ref(self.value).addr();
        Some(NodeIdentity::new(address))
    }
}

/// The members of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Members<'a> {
    members: &'a [Member<'a>],
    meter: Option<&'a Meter>,
}

impl<'a> Object<'a, Metered> for Members<'a> {
    type Node = Instance<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.members.len()
    }

    fn get(&self, key: &String) -> Option<Instance<'a>> {
        let value = member(self.members, key)?;
        Some(Instance {
            value,
            meter: self.meter,
        })
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter {
            members: self.members.iter(),
            meter: self.meter,
        }
    }
}

/// Walks over the members of an object while there are steps left.
#[derive(Debug)]
pub(super) struct MembersIter<'a> {
    members: std::slice::Iter<'a, Member<'a>>,
    meter: Option<&'a Meter>,
}

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, Instance<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.members.next()?;
        let instance = Instance {
            value,
            meter: self.meter,
        };
        instance.spend(1).then_some((&**name, instance))
    }
}

/// The items of an array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements<'a> {
    items: &'a [Tree<'a>],
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
        let items: Vec<Value> = self.items.iter().map(Tree::to_value).collect();
        unique::is_unique(&items)
    }
}

/// Walks over the items of an array while there are steps left.
#[derive(Debug)]
pub(super) struct ElementsIter<'a> {
    items: std::slice::Iter<'a, Tree<'a>>,
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
