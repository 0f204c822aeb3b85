//! What all clients under measurement can do: call the echo tool, and list the tools.

use cocode_client::RawJson;
use serde_json::{Map, Value};

use crate::Failure;

/// One client, as one user of it sees it. A clone is another user of the same connection.
pub(crate) trait Caller: Send + 'static {
    /// Calls the echo tool and gives the size of what came back.
    fn echo(&mut self, echo: &Echo) -> impl Future<Output = Result<usize, Failure>> + Send;
}

/// A call of the echo tool, with its arguments in the form that each client wants.
#[derive(Debug)]
pub(crate) struct Echo {
    /// Characters of text in the result.
    pub(crate) size: usize,
    pub(crate) text: String,
    pub(crate) raw: RawJson,
    pub(crate) object: Map<String, Value>,
}

impl Echo {
    pub(crate) fn plain(size: usize) -> Result<Self, Failure> {
        Self::new(size, false)
    }

    pub(crate) fn with_escapes(size: usize) -> Result<Self, Failure> {
        Self::new(size, true)
    }

    fn new(size: usize, escapes: bool) -> Result<Self, Failure> {
        let text = format!(r#"{{"size":{size},"escapes":{escapes}}}"#);
        Ok(Self {
            size,
            raw: RawJson::parse(text.clone())?,
            object: serde_json::from_str(&text)?,
            text,
        })
    }

    /// A client that loses bytes is not fast.
    pub(crate) fn check(&self, received: usize) -> Result<(), Failure> {
        if received < self.size {
            return Err(format!("{received} bytes came back for {}", self.size).into());
        }
        Ok(())
    }
}
