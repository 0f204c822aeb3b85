//! Explains a value that fits none of several allowed forms, by the form that it comes closest to.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::{Map, Value};

use super::explain::{Explainer, mistyped, type_names};
use super::limits::{MAX_COMPARED, MAX_PROBLEMS};
use super::mismatch::Problem;
use super::outline::label;
use super::pointer::{child, parent};
use super::words::{all_of, either, given, shown, type_name};

/// Forms that are compared.
const MAX_FORMS: usize = 256;

/// The errors of one form that a value could have had.
struct Form<'e> {
    errors: &'e [ValidationError<'static>],
    /// The number that the form has in the schema, if it is a direct one.
    index: Option<usize>,
}

impl<'e> Form<'e> {
    /// The values that the member at `place` should have had.
    fn tag_at(&self, pointer: &str, place: &str) -> Option<&'e [Value]> {
        let mut tags = self.errors.iter().filter_map(|error| tag(error, pointer));
        tags.find_map(|(other, values)| (other == place).then_some(values))
    }
}

impl<'a> Explainer<'a> {
    /// Says what is wrong with a value that fits none of the forms behind `context`.
    pub(super) fn explain_alternatives(
        self,
        error: &ValidationError<'_>,
        context: &[Vec<ValidationError<'static>>],
        problems: &mut Vec<Problem>,
    ) {
        let pointer = error.instance_path().as_str();
        let mut forms = Vec::new();
        flatten(context, pointer, &mut forms);
        let Some(deeper) = self.deeper().filter(|_| !forms.is_empty()) else {
            let wrong = "fits none of the allowed forms".to_owned();
            problems.push(self.problem(pointer, wrong, None));
            return;
        };
        let here = self.value.pointer(pointer).unwrap_or(&Value::Null);
        if let Some(problem) = self.refused_whole(pointer, &forms, here) {
            problems.push(problem);
            return;
        }
        // A form of another type is not what was meant.
        let of_same_type = |form: &Form<'_>| {
            let mut whole = form.errors.iter();
            !whole.any(|error| is_at(error, pointer) && refusal(error).is_some())
        };
        let count = forms.len();
        if forms.iter().any(of_same_type) {
            forms.retain(of_same_type);
        }
        if let Some(problem) = self.wrong_discriminator(pointer, &forms) {
            problems.push(problem);
            return;
        }
        let Some(best) = forms.iter().min_by_key(|form| {
            let strangers = self.strangers(error, form, here);
            distance(form, pointer, strangers)
        }) else {
            return;
        };
        let note = (forms.len() > 1).then(|| self.note(error, best, count));
        let mut found = deeper.problems(best.errors);
        if let (Some(note), Some(first)) = (note, found.first_mut()) {
            first.fix = Some(match first.fix.take() {
                Some(fix) => format!("{fix} {note}"),
                None => note,
            });
        }
        problems.append(&mut found);
    }

    /// The whole value is of a type, or none of the values, that all forms ask for.
    fn refused_whole(self, pointer: &str, forms: &[Form<'_>], here: &Value) -> Option<Problem> {
        let (mut types, mut values): (Vec<&str>, Vec<Value>) = (Vec::new(), Vec::new());
        for form in forms {
            let mut whole = form.errors.iter().filter(|error| is_at(error, pointer));
            match whole.find_map(refusal)? {
                Refusal::Types(names) => types.extend(names),
                Refusal::Values(options) => {
                    values.extend(options.iter().take(MAX_COMPARED).cloned());
                }
            }
        }
        if types.is_empty() {
            return Some(self.none_of(pointer, &values, here));
        }
        types.dedup();
        if values.is_empty() {
            let (wrong, fix) = mistyped(&types, here);
            return Some(self.problem(pointer, wrong, fix));
        }
        let names = types.iter().map(|name| type_name(name).to_owned());
        let names: Vec<String> = values.iter().map(shown).chain(names).collect();
        let wrong = format!("must be {}, but is {}", either(&names), given(here));
        let fix = self.none_of(pointer, &values, here).fix;
        Some(self.problem(pointer, wrong, fix.or_else(|| mistyped(&types, here).1)))
    }

    /// Every form wants another value of the same member, as tagged unions do.
    fn wrong_discriminator(self, pointer: &str, forms: &[Form<'_>]) -> Option<Problem> {
        let [first, others @ ..] = forms else {
            return None;
        };
        if others.is_empty() {
            return None;
        }
        let tags = first.errors.iter().filter_map(|error| tag(error, pointer));
        for (place, _) in tags {
            let all = forms.iter().map(|form| form.tag_at(pointer, &place));
            let Some(all) = all.collect::<Option<Vec<_>>>() else {
                continue;
            };
            let Some(here) = self.value.pointer(&place) else {
                let wrong = "is required and missing".to_owned();
                let fix = "add it: it says which of the allowed forms is meant".to_owned();
                return Some(self.problem(&place, wrong, Some(fix)));
            };
            let options = all.into_iter().flatten();
            let options: Vec<Value> = options.take(MAX_COMPARED).cloned().collect();
            return Some(self.none_of(&place, &options, here));
        }
        None
    }

    fn schema_of(
        self,
        error: &ValidationError<'_>,
        form: &Form<'_>,
    ) -> Option<&'a Map<String, Value>> {
        let index = form.index?;
        self.outline
            .at(&child(error.schema_path().as_str(), &index.to_string()))
    }

    /// How many members of the value this form does not describe.
    fn strangers(self, error: &ValidationError<'_>, form: &Form<'_>, here: &Value) -> usize {
        let (Some(members), Some(schema)) = (here.as_object(), self.schema_of(error, form)) else {
            return 0;
        };
        let known = self.outline.property_names(schema);
        let names = members.keys().take(MAX_COMPARED);
        names
            .filter(|name| known.binary_search(&name.as_str()).is_err())
            .count()
    }

    /// Which form the explanation is about.
    fn note(self, error: &ValidationError<'_>, best: &Form<'_>, count: usize) -> String {
        let schema = self.schema_of(error, best);
        let required = schema.and_then(|schema| schema.get("required")?.as_array());
        let required = required.into_iter().flatten().take(MAX_PROBLEMS);
        let required: Vec<String> = required.map(shown).collect();
        let label = schema.and_then(label);
        match (label, required.is_empty()) {
            (Some(label), _) => format!("(of {count} allowed forms, `{label}` is closest)"),
            (None, false) => {
                let required = all_of(&required);
                format!("(of {count} allowed forms, the one with {required} is closest)")
            }
            (None, true) => format!("(this is the closest of {count} allowed forms)"),
        }
    }
}

/// Puts forms of forms of the same value on one level.
fn flatten<'e>(
    context: &'e [Vec<ValidationError<'static>>],
    pointer: &str,
    forms: &mut Vec<Form<'e>>,
) {
    let mut open: Vec<(&[ValidationError<'static>], Option<usize>)> = Vec::new();
    let direct = context.iter().enumerate().rev();
    open.extend(direct.map(|(index, errors)| (errors.as_slice(), Some(index))));
    while let Some((errors, index)) = open.pop() {
        if forms.len() >= MAX_FORMS {
            return;
        }
        if let [only] = errors
            && is_at(only, pointer)
            && let Kind::AnyOf { context } | Kind::OneOfNotValid { context } = only.kind()
        {
            let inner = context.iter().rev();
            open.extend(inner.map(|errors| (errors.as_slice(), None)));
        } else if !errors.is_empty() {
            forms.push(Form { errors, index });
        }
    }
}

fn is_at(error: &ValidationError<'_>, pointer: &str) -> bool {
    error.instance_path().as_str() == pointer
}

/// Why a value as a whole is out of the question.
enum Refusal<'e> {
    Types(Vec<&'static str>),
    Values(&'e [Value]),
}

fn refusal<'e>(error: &'e ValidationError<'_>) -> Option<Refusal<'e>> {
    match error.kind() {
        Kind::Type { kind } => Some(Refusal::Types(type_names(kind))),
        _ => values(error).map(Refusal::Values),
    }
}

/// The values that would have been allowed.
fn values<'e>(error: &'e ValidationError<'_>) -> Option<&'e [Value]> {
    match error.kind() {
        Kind::Constant { expected_value } => Some(std::slice::from_ref(expected_value.as_ref())),
        Kind::Enum { options } => options.as_array().map(Vec::as_slice),
        _ => None,
    }
}

/// A member of the value that does not have the fixed value it should have, or is not there.
fn tag<'e>(error: &'e ValidationError<'_>, pointer: &str) -> Option<(String, &'e [Value])> {
    let place = error.instance_path().as_str();
    match error.kind() {
        Kind::Required { property } if place == pointer => {
            Some((child(place, property.as_str()?), &[]))
        }
        _ if place != pointer && parent(place) == pointer => {
            Some((place.to_owned(), values(error)?))
        }
        _ => None,
    }
}

/// How far a form is from the value: first a wrong fixed value, then what it does not know, then
/// what is wrong at all.
fn distance(form: &Form<'_>, pointer: &str, strangers: usize) -> (bool, bool, usize, usize) {
    let is_at_tag = |error: &ValidationError<'_>| {
        let place = error.instance_path().as_str();
        place != pointer && parent(place) == pointer && values(error).is_some()
    };
    let is_whole = |error: &ValidationError<'_>| is_at(error, pointer) && refusal(error).is_some();
    (
        form.errors.iter().any(is_whole),
        form.errors.iter().any(is_at_tag),
        strangers,
        form.errors.len(),
    )
}
