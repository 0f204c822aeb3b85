//! One JSON-RPC message as a peer sent it: the text, and the parts that scripts ask for.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A message that a scripted server received, with its text untouched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Which connection or process run it came on, counted from one.
    pub run: u32,
    /// The text as it came. Bytes that are not UTF-8 show as replacement characters.
    pub raw: String,
    method: Option<String>,
    id: Option<String>,
    params: Option<String>,
}

#[derive(Default, Deserialize)]
struct Envelope {
    method: Option<String>,
    id: Option<Box<RawValue>>,
    params: Option<Box<RawValue>>,
}

impl Message {
    /// Reads a message. Text that is no JSON object is a message without parts.
    pub(crate) fn parse(run: u32, text: impl Into<String>) -> Self {
        let raw = text.into();
        let envelope: Envelope = serde_json::from_str(&raw).unwrap_or_default();
        let text_of = |value: Option<Box<RawValue>>| value.map(|value| value.get().to_owned());
        Self {
            run,
            method: envelope.method,
            id: text_of(envelope.id),
            params: text_of(envelope.params),
            raw,
        }
    }

    /// The method, if this is a request or a notification.
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// Whether this is a request or a notification of the method.
    pub fn is(&self, method: &str) -> bool {
        self.method() == Some(method)
    }

    /// The id as JSON text, if there is one.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The params as JSON text, exactly as they were sent.
    pub fn raw_params(&self) -> Option<&str> {
        self.params.as_deref()
    }

    /// The params, or null.
    pub fn params(&self) -> Value {
        self.params.as_deref().map_or(Value::Null, |params| {
            serde_json::from_str(params).unwrap_or_default()
        })
    }

    /// The whole message, or null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.raw).unwrap_or_default()
    }

    /// Whether this answers one of our requests.
    pub(crate) fn is_answer(&self) -> bool {
        self.method.is_none() && self.id.is_some()
    }

    /// The tool arguments as JSON text, or an empty object.
    pub(crate) fn raw_arguments(&self) -> String {
        #[derive(Deserialize)]
        struct Call {
            arguments: Option<Box<RawValue>>,
        }
        self.raw_params()
            .and_then(|params| serde_json::from_str::<Call>(params).ok())
            .and_then(|call| call.arguments)
            .map_or_else(|| "{}".to_owned(), |arguments| arguments.get().to_owned())
    }
}
