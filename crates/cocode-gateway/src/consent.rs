//! Calls that a rule allows only after somebody was asked.

use cocode_core::{Era, ServerName};
use cocode_wire::members::Members;
use cocode_wire::{RawJson, RpcError, code};

use crate::request::Request;

/// Asks the person behind a client whether a tool may be called.
pub(crate) async fn ask(
    request: &Request,
    server: &ServerName,
    tool: &str,
) -> Result<(), RpcError> {
    let refused = |why: &str| {
        let what = format!(
            "`{tool}` of server `{server}` may be called only after asking: {why}; see the \
             permission rules of the gateway"
        );
        RpcError::new(code::INVALID_REQUEST, what)
    };
    if request.caller.era() == Era::Modern || !request.caller.can.form {
        return Err(refused("this client cannot be asked"));
    }
    let question = serde_json::json!({
        "mode": "form",
        "message": format!("May the tool `{tool}` of server `{server}` be called?"),
        "requestedSchema": { "type": "object", "properties": {} },
    });
    let question = RawJson::of(&question).map_err(|error| refused(&error.to_string()))?;
    let witness = request.witness(server);
    let answer = witness.ask("elicitation/create", Some(question)).await?;
    let members = answer.decode::<Members<'_>>().unwrap_or_default();
    let action = members.get("action").map(serde_json::value::RawValue::get);
    match action {
        Some("\"accept\"") => Ok(()),
        _ => Err(refused("the answer was no")),
    }
}
