//! The published limits of OpenAI's strict schemas.

use serde_json::Value;

use super::note::Unrepairable;
use super::write::not_strict;

/// Properties of all objects together.
const MAX_PROPERTIES: usize = 5_000;
/// Values of all enums together.
const MAX_VALUES: usize = 1_000;
/// An enum with more values than this has a limit of its own.
const MANY_VALUES: usize = 250;
/// Characters of an enum with many values.
const MAX_MANY_VALUES_CHARS: usize = 15_000;
/// Characters of all names and values together.
const MAX_NAMES_CHARS: usize = 120_000;

#[derive(Default)]
struct Totals {
    properties: usize,
    values: usize,
    chars: usize,
}

/// Refuses a schema that OpenAI would.
pub(super) fn check_limits(parameters: &Value) -> Result<(), Unrepairable> {
    let mut totals = Totals::default();
    count(parameters, &mut totals)?;
    for (amount, limit, reason) in [
        (
            totals.properties,
            MAX_PROPERTIES,
            "it has more than 5,000 properties",
        ),
        (totals.values, MAX_VALUES, "it lists more than 1,000 values"),
        (
            totals.chars,
            MAX_NAMES_CHARS,
            "its names and values have more than 120,000 characters",
        ),
    ] {
        if amount > limit {
            return Err(not_strict("", reason));
        }
    }
    Ok(())
}

fn count(schema: &Value, totals: &mut Totals) -> Result<(), Unrepairable> {
    let Value::Object(members) = schema else {
        return Ok(());
    };
    for (keyword, value) in members {
        match (keyword.as_str(), value) {
            ("properties" | "$defs", Value::Object(named)) => {
                for (name, below) in named {
                    totals.properties += usize::from(keyword == "properties");
                    totals.chars += name.chars().count();
                    count(below, totals)?;
                }
            }
            ("enum", Value::Array(values)) => {
                let texts = values.iter().filter_map(Value::as_str);
                let chars = texts.map(|text| text.chars().count()).sum::<usize>();
                if values.len() > MANY_VALUES && chars > MAX_MANY_VALUES_CHARS {
                    return Err(not_strict(
                        "",
                        "a long list of values has too many characters",
                    ));
                }
                totals.values += values.len();
                totals.chars += chars;
            }
            ("items", below) => count(below, totals)?,
            ("anyOf", Value::Array(below)) => {
                for below in below {
                    count(below, totals)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}
