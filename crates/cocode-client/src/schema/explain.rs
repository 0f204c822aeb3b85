//! Turns the validator's errors into problems that a model can mend.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use super::limits::{MAX_COMPARED, MAX_PROBLEMS};
use super::mismatch::Problem;
use super::outline::Outline;
use super::pointer::{child, last, parent, readable};
use super::words::{
    all_of, close_to, counted, cut, either, format_example, given, shown, type_name,
};

/// Alternatives within alternatives that are explained.
const MAX_NESTING: usize = 16;

/// A schema document and a value that does not fit it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Explainer<'a> {
    pub(super) outline: Outline<'a>,
    pub(super) value: &'a Value,
    nesting: usize,
}

impl<'a> Explainer<'a> {
    pub(super) fn new(schema: &'a Value, value: &'a Value) -> Self {
        Self {
            outline: Outline(schema),
            value,
            nesting: 0,
        }
    }

    /// The problems behind these errors, and at most one more than are ever told.
    pub(super) fn problems<'e, 'v: 'e>(
        self,
        errors: impl IntoIterator<Item = &'e ValidationError<'v>>,
    ) -> Vec<Problem> {
        let mut problems = Vec::new();
        for error in errors {
            if problems.len() > MAX_PROBLEMS {
                break;
            }
            self.explain(error, &mut problems);
        }
        problems
    }

    pub(super) fn problem(self, pointer: &str, wrong: String, fix: Option<String>) -> Problem {
        Problem {
            pointer: pointer.to_owned(),
            path: readable(self.value, pointer),
            wrong,
            fix,
        }
    }

    /// One level further into alternatives, unless that is too far.
    pub(super) fn deeper(self) -> Option<Self> {
        let nesting = self.nesting + 1;
        (nesting <= MAX_NESTING).then_some(Self { nesting, ..self })
    }

    fn explain(self, error: &ValidationError<'_>, problems: &mut Vec<Problem>) {
        let pointer = error.instance_path().as_str();
        let here = self.value.pointer(pointer).unwrap_or(&Value::Null);
        match error.kind() {
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.explain_alternatives(error, context, problems);
                return;
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                self.explain_unexpected(error, unexpected, problems);
                return;
            }
            Kind::PropertyNames { error: inner } => {
                problems.push(self.misnamed(pointer, inner));
                return;
            }
            _ => {}
        }
        let problem = match error.kind() {
            Kind::Required { property } => self.missing(error, here, property),
            Kind::Type { kind } => {
                let (wrong, fix) = mistyped(&type_names(kind), here);
                self.problem(pointer, wrong, fix)
            }
            Kind::Enum { options } => {
                let options = options.as_array().map_or(&[][..], Vec::as_slice);
                self.none_of(pointer, options, here)
            }
            Kind::Constant { expected_value } => {
                self.none_of(pointer, std::slice::from_ref(expected_value.as_ref()), here)
            }
            Kind::FalseSchema => self.problem(
                pointer,
                "is not allowed here".to_owned(),
                (!pointer.is_empty()).then(|| "remove it".to_owned()),
            ),
            kind => {
                let wrong = bounds(kind, here)
                    .or_else(|| texts(kind, here))
                    .unwrap_or_else(|| others(error));
                self.problem(pointer, wrong, None)
            }
        };
        problems.push(problem);
    }

    fn missing(self, error: &ValidationError<'_>, here: &Value, property: &Value) -> Problem {
        let name = property.as_str().unwrap_or_default();
        let schema = self.outline.at(parent(error.schema_path().as_str()));
        let known = schema.map(|schema| self.outline.property_names(schema));
        let own = schema.and_then(|schema| self.outline.property(schema, name));
        let purpose = own.and_then(|own| self.outline.purpose(own));
        let mut fix = match purpose {
            Some(purpose) => format!("add it: {purpose}"),
            None => "add it".to_owned(),
        };
        // What nobody asked for may be a misspelled name of what is missing.
        let known = known.unwrap_or_default();
        let strays = here.as_object().into_iter().flatten().take(MAX_COMPARED);
        let strays = strays.map(|(stray, _)| stray.as_str());
        let mut strays = strays.filter(|stray| !known.contains(stray));
        // Of two short names, each is like the other.
        let is_like = |stray: &&str| name.len() > 2 && !close_to(stray, [name]).is_empty();
        if let Some(stray) = strays.find(is_like) {
            fix = format!("{fix}; is `{}` meant to be `{}`?", cut(stray), cut(name));
        }
        let pointer = child(error.instance_path().as_str(), name);
        self.problem(&pointer, "is required and missing".to_owned(), Some(fix))
    }

    fn explain_unexpected(
        self,
        error: &ValidationError<'_>,
        unexpected: &[String],
        problems: &mut Vec<Problem>,
    ) {
        let schema = self.outline.at(parent(error.schema_path().as_str()));
        let known = schema.map(|schema| self.outline.property_names(schema));
        let known = known.unwrap_or_default();
        let pointer = error.instance_path().as_str();
        let present = self.value.pointer(pointer).and_then(Value::as_object);
        for name in unexpected.iter().take(MAX_PROBLEMS + 1) {
            let close = close_to(name, known.iter().copied());
            let is_free = |close: &&&str| present.is_none_or(|own| !own.contains_key(**close));
            let fix = match close.iter().find(is_free) {
                Some(close) => format!("did you mean `{}`?", cut(close)),
                None if known.is_empty() => "remove it".to_owned(),
                None => {
                    let names: Vec<String> = known
                        .iter()
                        .map(|name| format!("`{}`", cut(name)))
                        .collect();
                    format!("remove it: the known properties are {}", all_of(&names))
                }
            };
            let wrong = "is not a known property".to_owned();
            problems.push(self.problem(&child(pointer, name), wrong, Some(fix)));
        }
    }

    fn misnamed(self, pointer: &str, inner: &ValidationError<'_>) -> Problem {
        let name = inner.instance().as_str().map(str::to_owned);
        let Some(name) = name else {
            let wrong = "has a property whose name is not allowed".to_owned();
            return self.problem(pointer, wrong, None);
        };
        let own = Value::String(name.clone());
        // The name is the value here.
        let inside = Explainer::new(self.outline.0, &own);
        let why = inside.problems([inner]).into_iter().next();
        let why = why.map(|problem| match problem.fix {
            Some(fix) => format!("it {}; {fix}", problem.wrong),
            None => format!("it {}", problem.wrong),
        });
        let wrong = "has a name that is not allowed".to_owned();
        self.problem(&child(pointer, &name), wrong, why)
    }

    /// A value that is none of those that are allowed.
    pub(super) fn none_of(self, pointer: &str, options: &[Value], here: &Value) -> Problem {
        let names: Vec<String> = options.iter().take(MAX_COMPARED).map(shown).collect();
        let wrong = match names.as_slice() {
            [only] => format!("must be {only}, but is {}", given(here)),
            _ => format!("must be one of {}, but is {}", either(&names), given(here)),
        };
        let texts = options.iter().take(MAX_COMPARED).filter_map(Value::as_str);
        let close = here.as_str().map(|text| close_to(text, texts));
        let close = close.and_then(|close| close.first().copied());
        let fix = match close {
            Some(close) if options.len() > 1 => {
                let close = shown(&Value::String(close.to_owned()));
                Some(format!("did you mean {close}?"))
            }
            _ => options
                .iter()
                .take(MAX_COMPARED)
                .find(|option| is_same_text(option, here))
                .map(|option| format!("give {}, not {}", given(option), given(here))),
        };
        self.problem(pointer, wrong, fix)
    }
}

/// Whether two values differ only in being a text or not.
fn is_same_text(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::String(text), plain @ (Value::Number(_) | Value::Bool(_)))
        | (plain @ (Value::Number(_) | Value::Bool(_)), Value::String(text)) => {
            plain.to_string().as_str() == text
        }
        _ => false,
    }
}

/// The names of the types that are asked for.
pub(super) fn type_names(kind: &TypeKind) -> Vec<&'static str> {
    match kind {
        TypeKind::Single(one) => vec![one.as_str()],
        TypeKind::Multiple(several) => several.iter().map(jsonschema::JsonType::as_str).collect(),
    }
}

/// What to say about a value of the wrong type.
pub(super) fn mistyped(wanted: &[&str], here: &Value) -> (String, Option<String>) {
    let names: Vec<String> = wanted
        .iter()
        .map(|name| type_name(name).to_owned())
        .collect();
    let wrong = format!("must be {}, but is {}", either(&names), given(here));
    (wrong, wanted.iter().find_map(|name| converted(name, here)))
}

/// How the same value is written in the type that is asked for.
fn converted(wanted: &str, here: &Value) -> Option<String> {
    match (wanted, here) {
        (_, Value::Null) => Some("give a value, or leave it out if it is not required".to_owned()),
        ("integer", Value::Number(_)) => Some("give a whole number".to_owned()),
        ("string", Value::Number(_) | Value::Bool(_)) => {
            Some(format!("give the text \"{here}\", not {}", given(here)))
        }
        (_, Value::String(text)) => converted_text(wanted, text, here),
        ("array", Value::Number(_) | Value::Bool(_) | Value::Object(_)) => Some(one_item(here)),
        _ => None,
    }
}

fn converted_text(wanted: &str, text: &str, here: &Value) -> Option<String> {
    let word = text.trim();
    match wanted {
        "integer" | "number" => {
            let number: serde_json::Number = word.parse().ok()?;
            let is_whole = number.is_i64() || number.is_u64();
            (wanted == "number" || is_whole)
                .then(|| format!("give the number {number}, not the text {}", shown(here)))
        }
        "boolean" => {
            let word = ["true", "false"]
                .into_iter()
                .find(|one| one.eq_ignore_ascii_case(word))?;
            Some(format!(
                "give the boolean {word}, not the text {}",
                shown(here)
            ))
        }
        "array" | "object" => {
            let opens = if wanted == "array" { '[' } else { '{' };
            let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(word).is_ok();
            if word.starts_with(opens) && is_json() {
                return Some(format!(
                    "give the JSON {wanted} itself, not a string that holds it"
                ));
            }
            (wanted == "array").then(|| one_item(here))
        }
        _ => None,
    }
}

fn one_item(here: &Value) -> String {
    format!("give an array, even of one item: [{}]", shown(here))
}

/// What to say about a number or a count out of bounds.
fn bounds(kind: &Kind, here: &Value) -> Option<String> {
    let size = |count: Option<usize>| u64::try_from(count.unwrap_or_default()).unwrap_or(u64::MAX);
    let items = || counted(size(here.as_array().map(Vec::len)), "item");
    let members = || {
        let count = here.as_object().map(serde_json::Map::len);
        counted(size(count), "property")
    };
    let length = || {
        let count = here.as_str().map(|text| text.chars().count());
        counted(size(count), "character")
    };
    let is = given(here);
    Some(match kind {
        Kind::Maximum { limit } => format!("must be at most {limit}, but is {is}"),
        Kind::Minimum { limit } => format!("must be at least {limit}, but is {is}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}, but is {is}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}, but is {is}"),
        Kind::MultipleOf { multiple_of } => {
            format!("must be a multiple of {multiple_of}, but is {is}")
        }
        Kind::MaxItems { limit } => {
            format!(
                "must have at most {}, but has {}",
                counted(*limit, "item"),
                items()
            )
        }
        Kind::MinItems { limit } => {
            format!(
                "must have at least {}, but has {}",
                counted(*limit, "item"),
                items()
            )
        }
        Kind::AdditionalItems { limit } => {
            let limit = counted(u64::try_from(*limit).unwrap_or(u64::MAX), "item");
            format!("must have at most {limit}, but has {}", items())
        }
        Kind::MaxLength { limit } => {
            let limit = counted(*limit, "character");
            format!("must have at most {limit}, but has {}", length())
        }
        Kind::MinLength { limit } => {
            let limit = counted(*limit, "character");
            format!("must have at least {limit}, but has {}", length())
        }
        Kind::MaxProperties { limit } => {
            let limit = counted(*limit, "property");
            format!("must have at most {limit}, but has {}", members())
        }
        Kind::MinProperties { limit } => {
            let limit = counted(*limit, "property");
            format!("must have at least {limit}, but has {}", members())
        }
        _ => return None,
    })
}

/// What to say about a text of the wrong form.
fn texts(kind: &Kind, here: &Value) -> Option<String> {
    let is = given(here);
    Some(match kind {
        Kind::Pattern { pattern } => {
            format!(
                "must match the regular expression `{}`, but is {is}",
                cut(pattern)
            )
        }
        Kind::Format { format } => {
            let example = format_example(format);
            let example = example.map(|example| format!(", such as \"{example}\""));
            let example = example.unwrap_or_default();
            format!(
                "must be of the format `{}`{example}, but is {is}",
                cut(format)
            )
        }
        Kind::ContentEncoding { content_encoding } => {
            format!(
                "must be encoded as `{}`, but is {is}",
                cut(content_encoding)
            )
        }
        Kind::ContentMediaType { content_media_type } => {
            format!(
                "must be text of the type `{}`, but is {is}",
                cut(content_media_type)
            )
        }
        Kind::FromUtf8 { .. } => "must be UTF-8 text once it is decoded".to_owned(),
        _ => return None,
    })
}

/// What to say about everything else.
fn others(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::UniqueItems => "must not have the same item twice".to_owned(),
        Kind::Contains => "must have items of the kind that its schema asks for".to_owned(),
        Kind::UnevaluatedItems { .. } => "has items that are not allowed".to_owned(),
        Kind::Not { schema } => format!("must not fit the schema {}", shown(schema)),
        Kind::OneOfMultipleValid { context } => {
            let fitting = context
                .iter()
                .enumerate()
                .filter(|(_, errors)| errors.is_empty());
            let fitting: Vec<String> = fitting.map(|(index, _)| (index + 1).to_string()).collect();
            format!(
                "must fit exactly one of {} allowed forms, but fits several of them: {}",
                context.len(),
                all_of(&fitting)
            )
        }
        Kind::Referencing(_) => "cannot be checked: its schema refers to nothing".to_owned(),
        _ => {
            let keyword = last(error.schema_path().as_str());
            format!(
                "breaks the rule `{}`: {}",
                cut(&keyword),
                cut(&error.masked().to_string())
            )
        }
    }
}
