//! What a person is asked about, and what an answer covers.

use cocode_core::Doing;

use crate::belt::Plan;
use crate::content::{Arguments, ToolCall};

/// What "always" means in a conversation: this tool; or, of commands and of what leaves the sandbox,
/// this very call.
pub(super) fn allowance(plan: &Plan) -> String {
    match plan {
        Plan::Own(own) if own.is_let_out || own.doing != Doing::Writing => {
            format!(
                "{} {:?} {} {}",
                own.name, own.doing, own.is_let_out, own.arguments
            )
        }
        Plan::Own(own) => format!("{} {:?}", own.name, own.doing),
        // A name of a server has no slash.
        Plan::Server { server, tool, .. } => format!("{server}/{tool}"),
        Plan::Settled(_) | Plan::Wait => String::new(),
    }
}

/// The call as it would be made: of a tool that is called by way of another, that tool.
pub(super) fn resolved(call: &ToolCall, plan: &Plan) -> ToolCall {
    match plan {
        Plan::Server {
            name, arguments, ..
        } => ToolCall {
            id: call.id.clone(),
            name: name.to_string(),
            arguments: Arguments::Json(arguments.clone()),
        },
        _ => call.clone(),
    }
}
