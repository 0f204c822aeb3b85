//! Makes one schema of two that both hold.
//!
//! The result accepts everything that both accept. Mostly it accepts nothing else; where that cannot
//! be had, it is the wider one, with a note.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Number as JsonNumber, Value};

use super::node::{About, Array, Form, Kind, Node, Number, Object, Rest, Text, Type};
use super::note::{Change, Notes};

/// As many alternatives may come of combining two schemas.
const MAX_FORMS: usize = 32;

/// What combining may still cost, and what there is to say about it.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) notes: Notes,
    pub(super) budget: usize,
    /// The budget was not enough, and what came of the work is of no use.
    pub(super) exhausted: bool,
}

impl Work {
    /// Whether there is still a budget for this many nodes.
    pub(super) fn charge(&mut self, nodes: usize) -> bool {
        match self.budget.checked_sub(nodes) {
            Some(left) => self.budget = left,
            None => self.exhausted = true,
        }
        !self.exhausted
    }

    /// What both accept, in the words of the first.
    pub(super) fn meet(&mut self, one: &Node, other: &Node) -> Node {
        let mut node = Node::any(&one.place);
        node.about = one.about.clone();
        node.about.complete(other.about.clone());
        if !self.charge(1) {
            return node;
        }
        let (forms, open) = self.meet_forms(one, other);
        (node.forms, node.open) = (forms, open);
        node
    }

    /// The forms of what both accept, and whether it is open.
    pub(super) fn meet_forms(&mut self, one: &Node, other: &Node) -> (Vec<Form>, bool) {
        for (wide, narrow) in [(one, other), (other, one)] {
            if wide.is_any() {
                return (self.copied(narrow), narrow.open);
            }
        }
        for (kept, left) in [(one, other), (other, one)] {
            if kept.holds_again() {
                if !left.is_any() {
                    self.notes.add(&left.place, Change::BesideReference);
                }
                return (self.copied(kept), kept.open);
            }
        }
        if one.forms.len().saturating_mul(other.forms.len()) > MAX_FORMS {
            self.notes.add(&other.place, Change::TooManyForms);
            let fewer = if other.forms.len() < one.forms.len() {
                other
            } else {
                one
            };
            return (self.copied(fewer), fewer.open);
        }
        let mut forms = Vec::new();
        for form in &one.forms {
            for against in &other.forms {
                if let Some(met) = self.meet_form(form, against, &other.place) {
                    forms.push(met);
                }
            }
        }
        for (open, closed) in [(one, other), (other, one)] {
            if open.open {
                for form in &closed.forms {
                    forms.extend(self.without(form, &open.forms));
                }
            }
        }
        (forms, one.open && other.open)
    }

    fn copied(&mut self, node: &Node) -> Vec<Form> {
        if self.charge(node.weight()) {
            node.forms.clone()
        } else {
            Vec::new()
        }
    }

    /// What of a form is about none of the types that others are about.
    fn without(&mut self, form: &Form, others: &[Form]) -> Option<Form> {
        let about: Vec<Type> = others.iter().flat_map(|other| types(&other.kind)).collect();
        let kind = match &form.kind {
            Kind::Choice(values) => {
                let left = values
                    .iter()
                    .filter(|value| !about.contains(&Type::of(value)));
                let left: Vec<Value> = left.cloned().collect();
                (!left.is_empty()).then_some(Kind::Choice(left))
            }
            kind => {
                let is_free = !types(kind).iter().any(|own| about.contains(own));
                is_free.then(|| kind.clone())
            }
        };
        let about = form.about.clone();
        let form = kind.map(|kind| Form { about, kind })?;
        self.charge(1).then_some(form)
    }

    fn meet_form(&mut self, one: &Form, other: &Form, place: &str) -> Option<Form> {
        let mut about = one.about.clone();
        about.complete(other.about.clone());
        let kind = match (&one.kind, &other.kind) {
            (Kind::Null, Kind::Null) => Kind::Null,
            (Kind::Boolean, Kind::Boolean) => Kind::Boolean,
            (Kind::Text(one), Kind::Text(other)) => {
                Kind::Text(self.meet_text(one, other, &mut about, place))
            }
            (Kind::Number(one), Kind::Number(other)) => {
                Kind::Number(self.meet_number(one, other, &mut about, place))
            }
            (Kind::Array(one), Kind::Array(other)) => Kind::Array(self.meet_array(one, other)),
            (Kind::Object(one), Kind::Object(other)) => Kind::Object(self.meet_object(one, other)?),
            (Kind::Choice(values), kind) | (kind, Kind::Choice(values)) => {
                let fitting = values.iter().filter(|value| may_be(value, kind));
                let fitting: Vec<Value> = fitting.cloned().collect();
                if fitting.is_empty() || !self.charge(fitting.len()) {
                    return None;
                }
                Kind::Choice(fitting)
            }
            _ => return None,
        };
        Some(Form { about, kind })
    }

    fn meet_text(&mut self, one: &Text, other: &Text, about: &mut About, place: &str) -> Text {
        let pattern = self.either(one.pattern.as_ref(), other.pattern.as_ref(), |dropped| {
            about.tell(format!("Must also match {dropped}."));
            (place, "pattern")
        });
        let format = self.either(one.format.as_ref(), other.format.as_ref(), |dropped| {
            about.tell(format!("Must also be of the format {dropped}."));
            (place, "format")
        });
        Text {
            min: one.min.max(other.min),
            max: least(one.max, other.max),
            pattern,
            format,
        }
    }

    fn meet_number(
        &mut self,
        one: &Number,
        other: &Number,
        about: &mut About,
        place: &str,
    ) -> Number {
        let multiple_of = self.either(
            one.multiple_of.as_ref(),
            other.multiple_of.as_ref(),
            |dropped| {
                about.tell(format!("Must also be a multiple of {dropped}."));
                (place, "multipleOf")
            },
        );
        Number {
            integer: one.integer || other.integer,
            min: tighter(one.min.as_ref(), other.min.as_ref(), Ordering::Greater),
            max: tighter(one.max.as_ref(), other.max.as_ref(), Ordering::Less),
            above: tighter(one.above.as_ref(), other.above.as_ref(), Ordering::Greater),
            below: tighter(one.below.as_ref(), other.below.as_ref(), Ordering::Less),
            multiple_of,
        }
    }

    /// The one that is there; of two that differ only the first can be kept.
    fn either<'a, T: Clone + PartialEq>(
        &mut self,
        one: Option<&'a T>,
        other: Option<&'a T>,
        drop: impl FnOnce(&'a T) -> (&'a str, &'static str),
    ) -> Option<T> {
        if let (Some(one), Some(other)) = (one, other)
            && one != other
        {
            let (place, keyword) = drop(other);
            self.notes.add(place, Change::Dropped(keyword.to_owned()));
        }
        one.or(other).cloned()
    }

    fn meet_array(&mut self, one: &Array, other: &Array) -> Array {
        let length = one.prefix.len().max(other.prefix.len());
        let prefix = (0..length)
            .map(|index| self.meet(one.at(index), other.at(index)))
            .collect();
        Array {
            prefix,
            rest: Box::new(self.meet(&one.rest, &other.rest)),
            min: one.min.max(other.min),
            max: least(one.max, other.max),
            unique: one.unique || other.unique,
        }
    }

    /// Nothing if a property must be there for the one and must not be there for the other.
    fn meet_object(&mut self, one: &Object, other: &Object) -> Option<Object> {
        let mut properties = BTreeMap::new();
        for (key, node) in &one.properties {
            let met = self.meet_property(node, key, other);
            properties.insert(key.clone(), met);
        }
        for (key, node) in &other.properties {
            if !one.properties.contains_key(key) {
                let met = self.meet_property(node, key, one);
                properties.insert(key.clone(), met);
            }
        }
        let required = one.required.union(&other.required).cloned().collect();
        let rest = match (&one.rest, &other.rest) {
            (Rest::Closed, _) | (_, Rest::Closed) => Rest::Closed,
            (Rest::Unsaid, rest) | (rest, Rest::Unsaid) => rest.clone(),
            (Rest::Open(one), Rest::Open(other)) => Rest::Open(Box::new(self.meet(one, other))),
        };
        let partly_required = &one.partly_required | &other.partly_required;
        let object = Object {
            properties,
            required,
            partly_required,
            rest,
            min: one.min.max(other.min),
            max: least(one.max, other.max),
        };
        let impossible = object.required.iter().any(|key| {
            let property = object.properties.get(key);
            property.map_or(object.rest == Rest::Closed, Node::is_never)
        });
        (!impossible).then_some(object)
    }

    fn meet_property(&mut self, node: &Node, key: &str, other: &Object) -> Node {
        match (other.properties.get(key), &other.rest) {
            (Some(against), _) => self.meet(node, against),
            (None, Rest::Open(rest)) => self.meet(node, rest),
            (None, Rest::Closed) => Node::never(&node.place),
            (None, Rest::Unsaid) => {
                if self.charge(node.weight()) {
                    node.clone()
                } else {
                    Node::any(&node.place)
                }
            }
        }
    }
}

/// The types that a form is about.
fn types(kind: &Kind) -> Vec<Type> {
    match kind {
        Kind::Choice(values) => values.iter().map(Type::of).collect(),
        kind => kind.type_of().into_iter().collect(),
    }
}

/// Whether a value can be what a form is about, as far as that is quickly told.
fn may_be(value: &Value, kind: &Kind) -> bool {
    match kind {
        Kind::Choice(values) => values.iter().any(|other| alike(value, other)),
        Kind::Again(_) => true,
        Kind::Number(number) => {
            let whole = |value: f64| value.fract() == 0.0;
            value.is_number() && (!number.integer || value.as_f64().is_none_or(whole))
        }
        kind => kind.type_of() == Some(Type::of(value)),
    }
}

/// Whether two values are equal, as JSON Schema has it: `1` is `1.0`.
fn alike(one: &Value, other: &Value) -> bool {
    let same_number = one.is_number() && other.is_number() && one.as_f64() == other.as_f64();
    // Two that hold such numbers are taken as equal when they might be.
    let nested = |value: &Value| value.is_array() || value.is_object();
    one == other || same_number || (nested(one) && Type::of(one) == Type::of(other))
}

fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn tighter(
    one: Option<&JsonNumber>,
    other: Option<&JsonNumber>,
    wanted: Ordering,
) -> Option<JsonNumber> {
    match (one, other) {
        (Some(one), Some(other)) => {
            let order = other.as_f64().partial_cmp(&one.as_f64());
            Some(if order == Some(wanted) { other } else { one }.clone())
        }
        (one, other) => one.or(other).cloned(),
    }
}
