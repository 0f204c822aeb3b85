//! Brings what was read into its final form: no open ends, no impossible parts, no repetitions.

use std::collections::BTreeSet;

use serde_json::Value;

use super::node::{Array, Form, Kind, Node, Object, Rest, Type};
use super::note::{Change, Notes, Unrepairable};
use super::read::{Document, infer};
use super::words;

/// As many alternatives a node may have in the end.
const MAX_FORMS: usize = 64;
/// The largest schema of other keys that is written out for a key that is needed, in nodes.
const MAX_COPIED: usize = 16;
/// How often definitions that nothing fits are looked for.
const MAX_ROUNDS: usize = 8;
/// As many alternatives of the root are told.
const MAX_TOLD_FORMS: usize = 8;

/// Settles a whole document.
pub(super) fn document(document: &mut Document, notes: &mut Notes) {
    break_circles(&mut document.definitions, notes);
    expand_root(document, notes);
    let mut known = BTreeSet::new();
    // Each round finds more definitions that nothing fits, or is the last one.
    for _ in 0..MAX_ROUNDS {
        for node in &mut document.definitions {
            settle(node, notes);
        }
        settle(&mut document.root, notes);
        let definitions = document.definitions.iter().enumerate();
        let impossible = definitions.filter(|(_, node)| node.is_never());
        let impossible: BTreeSet<usize> = impossible.map(|(number, _)| number).collect();
        if impossible == known {
            break;
        }
        known = impossible;
        for node in &mut document.definitions {
            forget(node, &known);
        }
        forget(&mut document.root, &known);
    }
}

/// Takes away the alternatives that are definitions which nothing fits.
fn forget(node: &mut Node, impossible: &BTreeSet<usize>) {
    node.forms.retain(|form| match form.kind {
        Kind::Again(number) => !impossible.contains(&number),
        _ => true,
    });
    for form in &mut node.forms {
        form.kind.each_below(&mut |below| forget(below, impossible));
    }
}

/// The numbers of the definitions that a schema needs.
pub(super) fn needed(arguments: &Object, definitions: &[Node]) -> BTreeSet<usize> {
    fn collect(node: &Node, found: &mut Vec<usize>) {
        for form in &node.forms {
            if let Kind::Again(number) = form.kind {
                found.push(number);
            }
            for below in form.kind.below() {
                collect(below, found);
            }
        }
    }
    let mut left = Vec::new();
    for below in arguments.below() {
        collect(below, &mut left);
    }
    let mut needed = BTreeSet::new();
    while let Some(number) = left.pop() {
        if needed.insert(number)
            && let Some(node) = definitions.get(number)
        {
            collect(node, &mut left);
        }
    }
    needed
}

/// The one object that arguments are, with what is to be told of it.
pub(super) fn arguments(
    root: &Node,
    notes: &mut Notes,
) -> Result<(Object, Vec<String>), Unrepairable> {
    let mut told = root.about.told.clone();
    if root.open {
        return Ok((Object::any(), told));
    }
    let mut objects = Vec::new();
    for form in &root.forms {
        match &form.kind {
            Kind::Object(object) => {
                objects.push(object.clone());
                told.extend(form.about.told.iter().cloned());
            }
            Kind::Choice(values) if values.iter().any(Value::is_object) => {
                notes.add(&root.place, Change::Dropped("enum".to_owned()));
                told.push(format!("One of {}.", words::list(values)));
                objects.push(Object::any());
            }
            _ => {}
        }
    }
    if objects.is_empty() {
        let types = root.forms.iter().map(|form| match &form.kind {
            Kind::Choice(values) => format!("it is one of {}", words::list(values)),
            kind => {
                let name = kind.type_of().map_or("another schema", Type::as_str);
                format!("its type is {name}")
            }
        });
        let reason: Vec<String> = types.collect();
        let reason = if reason.is_empty() {
            "no value fits it".to_owned()
        } else {
            reason.join(", or ")
        };
        return Err(Unrepairable::NoObject { reason });
    }
    if objects.len() > 1 {
        notes.add(&root.place, Change::FormsMerged);
        told.extend(alternatives_told(&objects));
    }
    Ok((merged(&objects, notes), told))
}

/// One object that accepts what any of these does, except that a key that only some mention is as
/// those have it.
fn merged(objects: &[Object], notes: &mut Notes) -> Object {
    let mut all = objects.iter();
    let Some(mut object) = all.next().cloned() else {
        return Object::any();
    };
    for other in all {
        let mine = std::mem::take(&mut object.properties);
        for (key, mut node) in mine {
            match (other.properties.get(&key), &other.rest) {
                (Some(theirs), _) => join(&mut node, theirs),
                (None, Rest::Open(rest)) if !rest.is_any() => join(&mut node, rest),
                (None, _) => {}
            }
            object.properties.insert(key, node);
        }
        for (key, node) in &other.properties {
            if !object.properties.contains_key(key) {
                let mut node = node.clone();
                if let Rest::Open(rest) = &object.rest
                    && !rest.is_any()
                {
                    join(&mut node, rest);
                }
                object.properties.insert(key.clone(), node);
            }
        }
        require_some(&mut object, other);
        object.rest = match (&object.rest, &other.rest) {
            (Rest::Unsaid, _) | (_, Rest::Unsaid) => Rest::Unsaid,
            (Rest::Closed, Rest::Closed) => Rest::Closed,
            (Rest::Open(_), _) | (_, Rest::Open(_)) => Rest::Open(Box::new(Node::any(""))),
        };
        object.min = object.min.zip(other.min).map(|(one, other)| one.min(other));
        object.max = object.max.zip(other.max).map(|(one, other)| one.max(other));
    }
    for node in object.properties.values_mut() {
        settle(node, notes);
    }
    object
}

/// Accepts what the other accepts, too.
pub(super) fn join(node: &mut Node, other: &Node) {
    node.open |= other.open;
    if node.open {
        node.forms.clear();
    } else {
        node.forms.extend(other.forms.iter().cloned());
    }
    node.about.complete(other.about.clone());
}

/// Which keys belong together.
fn alternatives_told(objects: &[Object]) -> Option<String> {
    let required = |object: &Object| object.required.clone();
    let common = objects
        .iter()
        .map(required)
        .reduce(|one, other| &one & &other)?;
    let mut sets: Vec<BTreeSet<String>> = Vec::new();
    for object in objects {
        let own = &object.required - &common;
        if own.is_empty() {
            return None;
        }
        if !sets.contains(&own) {
            sets.push(own);
        }
    }
    let mut words: Vec<String> = sets.iter().take(MAX_TOLD_FORMS).map(words::names).collect();
    if sets.len() > MAX_TOLD_FORMS {
        words.push("…".to_owned());
    }
    Some(format!("Needs {}.", words.join(", or ")))
}

/// A definition that is nothing but itself says nothing.
fn break_circles(definitions: &mut [Node], notes: &mut Notes) {
    let next = |node: &Node| -> Vec<usize> {
        let again = node.forms.iter().filter_map(|form| match form.kind {
            Kind::Again(number) => Some(number),
            _ => None,
        });
        again.collect()
    };
    for start in 0..definitions.len() {
        let mut seen = BTreeSet::new();
        let mut left = definitions.get(start).map(next).unwrap_or_default();
        while let Some(number) = left.pop() {
            if seen.insert(number) {
                left.extend(definitions.get(number).map(next).unwrap_or_default());
            }
        }
        if seen.contains(&start)
            && let Some(node) = definitions.get_mut(start)
        {
            notes.add(&node.place, Change::Cut);
            node.forms.clear();
            node.open = true;
        }
    }
}

/// The root is written out, because providers want to see an object there.
fn expand_root(document: &mut Document, notes: &mut Notes) {
    let Document { root, definitions } = document;
    while root.holds_again() {
        for form in std::mem::take(&mut root.forms) {
            let Kind::Again(number) = form.kind else {
                root.forms.push(form);
                continue;
            };
            if let Some(mut target) = definitions.get(number).cloned() {
                infer(&mut target, notes);
                join(root, &target);
            }
        }
        if root.open || root.forms.len() > MAX_FORMS {
            root.forms.clear();
            root.open = true;
        }
    }
}

fn settle(node: &mut Node, notes: &mut Notes) {
    infer(node, notes);
    let forms = std::mem::take(&mut node.forms);
    for mut form in forms {
        let possible = match &mut form.kind {
            Kind::Array(array) => settle_array(array, notes),
            Kind::Object(object) => settle_object(object, notes),
            _ => true,
        };
        if possible {
            add(&mut node.forms, form);
        }
    }
    merge_requirements(node, notes);
    if node.forms.len() > MAX_FORMS {
        notes.add(&node.place, Change::TooManyForms);
        node.forms.clear();
        node.open = true;
    }
}

/// Adds a form, or makes it part of one that is there.
pub(super) fn add(forms: &mut Vec<Form>, form: Form) {
    for known in forms.iter_mut() {
        if known.kind == form.kind {
            known.about.complete(form.about);
            return;
        }
        if let (Kind::Choice(known_values), Kind::Choice(values)) = (&mut known.kind, &form.kind) {
            let described =
                [&mut known.about, &mut form.about.clone()].map(|about| about.description.take());
            let lists = [known_values.clone(), values.clone()];
            for value in values {
                if !known_values.contains(value) {
                    known_values.push(value.clone());
                }
            }
            known.about.complete(form.about);
            known.about.description = None;
            for (description, list) in described.into_iter().zip(lists) {
                if let Some(description) = description {
                    let values = words::list(&list);
                    known.about.tell(format!("{values}: {description}."));
                }
            }
            return;
        }
    }
    forms.push(form);
}

/// Makes one of objects that differ only in which keys they need, and tells which belong together.
fn merge_requirements(node: &mut Node, notes: &mut Notes) {
    let mut groups: Vec<(Form, Vec<Object>)> = Vec::new();
    for form in std::mem::take(&mut node.forms) {
        let Kind::Object(object) = &form.kind else {
            groups.push((form, Vec::new()));
            continue;
        };
        let alike = |(_, objects): &&mut (Form, Vec<Object>)| {
            objects
                .first()
                .is_some_and(|first| differ_in_required(first, object))
        };
        if let Some((known, objects)) = groups.iter_mut().find(alike) {
            objects.push(object.clone());
            known.about.complete(form.about);
        } else {
            let objects = vec![object.clone()];
            groups.push((form, objects));
        }
    }
    for (mut form, objects) in groups {
        if objects.len() > 1
            && let Kind::Object(merged) = &mut form.kind
        {
            notes.add(&node.place, Change::FormsMerged);
            for object in &objects {
                require_some(merged, object);
            }
            if let Some(sentence) = alternatives_told(&objects) {
                form.about.tell(sentence);
            }
        }
        node.forms.push(form);
    }
}

/// Only needs what both need.
fn require_some(object: &mut Object, other: &Object) {
    let all = &object.required | &other.required;
    object.required.retain(|key| other.required.contains(key));
    object.partly_required.extend(all);
    object
        .partly_required
        .extend(other.partly_required.iter().cloned());
}

fn differ_in_required(one: &Object, other: &Object) -> bool {
    one.rest == other.rest
        && one.min == other.min
        && one.max == other.max
        && one.properties.len() == other.properties.len()
        && one.properties.iter().all(|(key, node)| {
            let theirs = other.properties.get(key);
            theirs.is_some_and(|theirs| theirs.forms == node.forms && theirs.open == node.open)
        })
}

/// Settles what is below, and says whether any list is left.
fn settle_array(array: &mut Array, notes: &mut Notes) -> bool {
    for node in &mut array.prefix {
        settle(node, notes);
    }
    settle(&mut array.rest, notes);
    if let Some(end) = array.prefix.iter().position(Node::is_never) {
        array.prefix.truncate(end);
        *array.rest = Node::never(&array.rest.place);
    }
    if array.rest.is_never() {
        let length = u64::try_from(array.prefix.len()).unwrap_or(u64::MAX);
        array.max = Some(array.max.map_or(length, |most| most.min(length)));
    }
    array
        .max
        .is_none_or(|most| array.min.is_none_or(|least| least <= most))
}

/// Settles what is below, and says whether any object is left.
fn settle_object(object: &mut Object, notes: &mut Notes) -> bool {
    if let Rest::Open(rest) = &mut object.rest {
        settle(rest, notes);
        if rest.is_never() {
            object.rest = Rest::Closed;
        }
    }
    for node in object.properties.values_mut() {
        settle(node, notes);
    }
    for key in &object.required {
        if object.properties.contains_key(key) {
            continue;
        }
        let node = match &object.rest {
            Rest::Closed => return false,
            Rest::Open(rest) if rest.weight() <= MAX_COPIED => Node::clone(rest),
            Rest::Open(_) | Rest::Unsaid => Node::any(""),
        };
        object.properties.insert(key.clone(), node);
    }
    let required = &object.required;
    let is_possible = |(key, node): (&String, &Node)| !node.is_never() || !required.contains(key);
    if !object.properties.iter().all(is_possible) {
        return false;
    }
    let is_closed = object.rest == Rest::Closed;
    object.properties.retain(|_, node| {
        if node.is_never() && !is_closed {
            notes.add(&node.place, Change::PropertyForbidden);
        }
        !node.is_never()
    });
    object
        .max
        .is_none_or(|most| object.min.is_none_or(|least| least <= most))
}
