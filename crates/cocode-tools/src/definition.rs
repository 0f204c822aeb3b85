//! What a tool says of itself before it is called.

use serde_json::Value;

/// A tool as it is offered to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// The name to call it by.
    pub name: &'static str,
    /// A name for people.
    pub title: &'static str,
    /// What it does, written for a model.
    pub description: &'static str,
    /// The JSON Schema of its arguments; always that of an object.
    pub input_schema: Value,
    /// The JSON Schema of the structured part of its output, if it has one.
    pub output_schema: Option<Value>,
    /// It changes nothing.
    pub read_only: bool,
    /// It may change or remove what was there before.
    pub destructive: bool,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent: bool,
}
