//! The least of JSON-RPC: a line out, and the result of a line that came in.

use std::io::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Failure;
use crate::caller::Echo;

/// The parameters of the handshake.
const INITIALIZE: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}"#;

/// A request in the making. The borrowed parts are JSON already.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message<'a> {
    Initialize,
    Initialized,
    List,
    Echo(&'a Echo),
}

#[derive(Deserialize)]
struct Envelope<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Appends one line.
pub(crate) fn push(line: &mut Vec<u8>, id: u64, message: Message<'_>) -> Result<(), Failure> {
    match message {
        Message::Initialize => write!(
            line,
            r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{INITIALIZE}}}"#
        )?,
        Message::Initialized => {
            line.extend_from_slice(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        }
        Message::List => {
            write!(
                line,
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#
            )?;
        }
        Message::Echo(echo) => {
            write!(
                line,
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":"#
            )?;
            line.extend_from_slice(echo.text.as_bytes());
            line.extend_from_slice(b"}}");
        }
    }
    line.push(b'\n');
    Ok(())
}

/// The id and the result in a line, or `None` for a line that answers nothing.
pub(crate) fn parse(line: &[u8]) -> Result<Option<(u64, &RawValue)>, Failure> {
    let envelope: Envelope<'_> = serde_json::from_slice(line)?;
    match envelope {
        Envelope {
            id: Some(id),
            result: Some(result),
            error: None,
        } => Ok(Some((id, result))),
        Envelope {
            error: Some(error), ..
        } => Err(error.get().into()),
        Envelope { .. } => Ok(None),
    }
}
