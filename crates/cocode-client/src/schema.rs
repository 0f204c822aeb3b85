//! Checks values against the JSON Schemas of tools, and says in words how to mend them.
//!
//! Schemas are a server's word and are trusted with nothing: they are bounded in size, depth and
//! work, their regular expressions run in linear time, and nothing is ever fetched for them. A
//! schema that is of no use never makes a call fail; it only cannot be checked.

mod alternatives;
mod compile;
mod error;
mod explain;
mod limits;
mod mismatch;
mod node;
mod outline;
mod pointer;
mod relax;
mod shape;
pub(crate) mod stack;
mod tree;
mod words;

use std::fmt;
use std::sync::{Arc, OnceLock};

use cocode_wire::RawJson;

use compile::Compiled;
use explain::Explainer;
use limits::{BASE_STEPS, EXPLAIN_STEPS, MAX_VALUE_DEPTH, STEPS_PER_BYTE};
use node::{Instance, Meter};
use stack::{depth_of, with_stack_for};
use tree::Tree;

pub use error::SchemaError;
pub use mismatch::{Mismatch, Problem};

/// What came of checking a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// The value fits.
    Fits,
    /// The value does not fit.
    Mismatch(Mismatch),
    /// There is no telling, and that is no reason to refuse the value.
    NotCheckable(SchemaError),
}

/// A JSON Schema that is ready to check values: of the draft that `$schema` names, or else of
/// 2020-12. Cloning shares it.
#[derive(Clone)]
pub struct CompiledSchema(Arc<Compiled>);

impl CompiledSchema {
    /// Reads and compiles a schema. The work and the memory for it are bounded.
    pub fn compile(schema: &RawJson) -> Result<Self, SchemaError> {
        compile::compile(schema).map(Self)
    }

    /// Says what is wrong with a value. What takes too much work to check is let pass; see
    /// [`CompiledSchema::examine`].
    pub fn check(&self, value: &RawJson) -> Result<(), Mismatch> {
        match self.examine(value) {
            Checked::Mismatch(mismatch) => Err(mismatch),
            Checked::Fits | Checked::NotCheckable(_) => Ok(()),
        }
    }

    /// Checks a value, and tells what fits from what could not be checked.
    pub fn examine(&self, value: &RawJson) -> Checked {
        let depth = depth_of(value.as_bytes());
        if depth > MAX_VALUE_DEPTH {
            return Checked::Mismatch(Mismatch::of_whole(format!(
                "is nested {depth} levels deep, and at most {MAX_VALUE_DEPTH} are allowed; \
                 make it flatter"
            )));
        }
        let tree: Tree<'_> = match serde_json::from_str(value.as_str()) {
            Ok(tree) => tree,
            // Such as a number that is beyond all floats, or half of a surrogate pair. Who gets the
            // value byte for byte may well know what to do with it.
            Err(error) => {
                let problem = error.to_string();
                return Checked::NotCheckable(SchemaError::UnreadableValue { problem });
            }
        };
        let levels = u32::try_from(depth + 1).unwrap_or(u32::MAX);
        let levels = levels.saturating_mul(self.0.chain);
        with_stack_for(levels, || self.judge(&tree, value))
            .unwrap_or(Checked::NotCheckable(SchemaError::NoStack))
    }

    /// How many regular expressions of the schema are left out, because they cannot be matched in
    /// linear time.
    pub fn skipped_patterns(&self) -> usize {
        self.0.skipped_patterns
    }

    fn judge(&self, tree: &Tree<'_>, text: &RawJson) -> Checked {
        let length = u64::try_from(text.as_bytes().len()).unwrap_or(u64::MAX);
        let steps = BASE_STEPS.saturating_add(length.saturating_mul(STEPS_PER_BYTE));
        let meter = Meter::new(steps);
        let fits = self.0.validator.is_valid(Instance::new(tree, &meter));
        if meter.is_exhausted() {
            return Checked::NotCheckable(SchemaError::TooMuchWork);
        }
        if fits {
            return Checked::Fits;
        }
        Checked::Mismatch(self.explain(tree, steps))
    }

    fn explain(&self, tree: &Tree<'_>, steps: u64) -> Mismatch {
        let value = tree.to_value();
        let explainer = Explainer::new(&self.0.schema, &value);
        let meter = Meter::new(EXPLAIN_STEPS);
        let errors = self.0.validator.iter_errors(Instance::new(tree, &meter));
        let errors = errors.into_errors();
        if !meter.is_exhausted() {
            return Mismatch::new(explainer.problems(&errors));
        }
        drop(errors);
        // All problems are too much; the first one may do.
        let meter = Meter::new(steps);
        match self.0.validator.validate(Instance::new(tree, &meter)) {
            Err(error) if !meter.is_exhausted() => Mismatch::new(explainer.problems([&error])),
            _ => Mismatch::new(Vec::new()),
        }
    }
}

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CompiledSchema")
            .field("draft", &self.0.validator.draft())
            .field("skipped_patterns", &self.0.skipped_patterns)
            .finish_non_exhaustive()
    }
}

/// The schema of one tool, compiled when it is first needed. Cloning shares it.
#[derive(Clone, Debug)]
pub struct SchemaCell(Arc<Cell>);

#[derive(Debug)]
struct Cell {
    raw: RawJson,
    compiled: OnceLock<Result<CompiledSchema, SchemaError>>,
}

impl SchemaCell {
    /// Keeps a schema as the server sent it.
    pub fn new(raw: RawJson) -> Self {
        let compiled = OnceLock::new();
        Self(Arc::new(Cell { raw, compiled }))
    }

    /// The schema as the server sent it.
    pub fn raw(&self) -> &RawJson {
        &self.0.raw
    }

    /// The compiled schema, or why there is none.
    pub fn compiled(&self) -> Result<&CompiledSchema, &SchemaError> {
        let compile = || CompiledSchema::compile(&self.0.raw);
        self.0.compiled.get_or_init(compile).as_ref()
    }

    /// Checks a value against the schema.
    pub fn check(&self, value: &RawJson) -> Checked {
        match self.compiled() {
            Ok(compiled) => compiled.examine(value),
            Err(error) => Checked::NotCheckable(error.clone()),
        }
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "schema_property_tests.rs"]
mod property_tests;
