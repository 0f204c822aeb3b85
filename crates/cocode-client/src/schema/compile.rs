//! Turns the text of a schema into a validator, within limits.

use std::sync::Arc;

use cocode_wire::RawJson;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ReferencingError, ValidationError, Validator};
use serde_json::{Value, json};

use super::error::SchemaError;
use super::limits::{MAX_PATTERN_SIZE, MAX_PATTERNS, MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH};
use super::node::Metered;
use super::stack::{depth_of, with_stack_for};
use super::words::cut;
use super::{relax, shape};

/// A schema that values can be checked against.
pub(super) struct Compiled {
    pub(super) validator: Validator<Metered>,
    /// The schema as it is checked: without what cannot be.
    pub(super) schema: Value,
    /// How many schemas can apply to one value, one within the other.
    pub(super) chain: u32,
    /// How many regular expressions are not checked.
    pub(super) skipped_patterns: usize,
}

pub(super) fn compile(text: &RawJson) -> Result<Arc<Compiled>, SchemaError> {
    let bytes = text.as_bytes().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(SchemaError::TooLarge { bytes });
    }
    let depth = depth_of(text.as_bytes());
    if depth > MAX_SCHEMA_DEPTH {
        return Err(SchemaError::TooDeep { depth });
    }
    let unreadable = |error: serde_json::Error| SchemaError::Unreadable {
        problem: error.to_string(),
    };
    let schema: Value = text.decode().map_err(unreadable)?;
    if Draft::default().detect(&schema) == Draft::Unknown {
        let dialect = schema.get("$schema").and_then(Value::as_str);
        return Err(SchemaError::UnknownDialect {
            dialect: cut(dialect.unwrap_or_default()),
        });
    }
    let shape = shape::measure(&schema)?;
    // The rules about schemas are a schema too, whose references go three steps for each level.
    let levels = u32::try_from(depth).unwrap_or(u32::MAX).saturating_mul(3);
    with_stack_for(levels, || build(schema, shape))
        .ok_or(SchemaError::NoStack)
        .flatten()
        .map(Arc::new)
}

fn build(mut schema: Value, shape: shape::Shape) -> Result<Compiled, SchemaError> {
    let compiled = |validator, schema, skipped_patterns| Compiled {
        validator,
        schema,
        chain: shape.chain,
        skipped_patterns,
    };
    let failure = if shape.patterns > MAX_PATTERNS {
        SchemaError::TooIntricate
    } else {
        match validator(&schema) {
            Ok(validator) => return Ok(compiled(validator, schema, 0)),
            Err(error) => schema_error(&error),
        }
    };
    let skipped = relax::relax(&mut schema, |pattern| {
        validator(&json!({ "pattern": pattern })).is_ok()
    });
    if skipped == 0 && shape.patterns <= MAX_PATTERNS {
        return Err(failure);
    }
    // Widening adds schemas around schemas.
    let chain = shape::measure(&schema)?.chain;
    let validator = validator(&schema).map_err(|error| schema_error(&error))?;
    Ok(Compiled {
        chain,
        ..compiled(validator, schema, skipped)
    })
}

fn validator(schema: &Value) -> Result<Validator<Metered>, ValidationError<'static>> {
    let patterns = PatternOptions::regex()
        .size_limit(MAX_PATTERN_SIZE)
        .dfa_size_limit(MAX_PATTERN_SIZE);
    jsonschema::options_for::<Metered>()
        .offline()
        .with_pattern_options(patterns)
        .build(schema)
}

fn schema_error(error: &ValidationError<'_>) -> SchemaError {
    if let ValidationErrorKind::Referencing(ReferencingError::Unretrievable { uri, .. }) =
        error.kind()
    {
        return SchemaError::RemoteReference { uri: cut(uri) };
    }
    SchemaError::Invalid {
        place: cut(error.instance_path().as_str()),
        problem: cut(&error.masked().to_string()),
    }
}
