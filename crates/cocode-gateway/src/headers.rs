//! Arguments that travel as headers, too: the two must agree.

use cocode_client::mirrored_mismatch;
use cocode_core::Era;
use cocode_wire::{RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::instance::Instance;
use crate::request::Request;

/// Refuses a call over HTTP whose headers do not say what its arguments say.
pub(crate) fn check(instance: &Instance, request: &Request, tool: &str) -> Result<(), RpcError> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, default)]
        arguments: Option<&'a RawValue>,
    }
    // Only requests that came over HTTP have headers.
    if request.caller.era() == Era::Legacy || request.headers.is_empty() {
        return Ok(());
    }
    let catalog = instance.manager().catalog();
    let Some(found) = catalog.find(instance.name(), tool) else {
        return Ok(());
    };
    let params = request.params.as_ref();
    let arguments = params.and_then(|params| {
        let parts: Params<'_> = params.decode().ok()?;
        Some(params.share(parts.arguments?))
    });
    let schema = &found.tool.tool.input_schema;
    let mismatch = mirrored_mismatch(schema, &request.headers, arguments.as_ref());
    match mismatch {
        None => Ok(()),
        Some(what) => Err(RpcError::new(code::HEADER_MISMATCH, what)),
    }
}
