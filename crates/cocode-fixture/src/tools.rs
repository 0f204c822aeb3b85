//! Tools by name. What each of them is for stands in `catalog/tools.json`.

mod asking;
mod notifying;
mod plain;
mod tasks;

use rmcp::ErrorData;
use rmcp::model::CallToolResponse;

use crate::call::{Call, text};
use crate::changes::Change;
use crate::dialog::Stop;

/// What a tool comes to.
type Outcome = Result<CallToolResponse, Stop>;

pub(crate) async fn call(call: &Call) -> Result<CallToolResponse, ErrorData> {
    match dispatch(call).await {
        Err(Stop::Ask(questions)) => Ok(questions.into()),
        Err(Stop::Fail(error)) => Err(error),
        Ok(response) => Ok(response),
    }
}

async fn dispatch(call: &Call) -> Outcome {
    if let Some(result) = plain::run(&call.params.name) {
        return Ok(result.into());
    }
    match &*call.params.name {
        "test_tool_with_logging" => notifying::three_messages(call).await,
        "test_logging_tool" => notifying::one_message(call).await,
        "test_tool_with_progress" => notifying::progress(call).await,
        "test_reconnection" => notifying::slow_answer().await,
        "test_trigger_tool_change" => Ok(notifying::announce(call, Change::Tools)),
        "test_trigger_prompt_change" => Ok(notifying::announce(call, Change::Prompts)),
        "test_trigger_resource_change" => Ok(notifying::announce(call, Change::Resources)),
        "test_trigger_resource_update" => Ok(notifying::announce_update(call)),
        "test_sampling" => asking::model(call).await,
        "test_elicitation" => asking::user(call).await,
        "test_elicitation_url" => asking::page(call).await,
        "test_elicitation_sep1034_defaults" => asking::defaults(call).await,
        "test_elicitation_sep1330_enums" => asking::enumerations(call).await,
        "test_streaming_elicitation" => asking::streaming(call).await,
        "test_missing_capability" => asking::needs_sampling(call).await,
        "test_input_required_result_elicitation" => asking::name(call).await,
        "test_input_required_result_sampling" => asking::capital(call).await,
        "test_input_required_result_list_roots" => asking::roots(call).await,
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => asking::confirmation(call).await,
        "test_input_required_result_multiple_inputs" => asking::all_at_once(call).await,
        "test_input_required_result_multi_round" => asking::twice(call).await,
        "test_input_required_result_capabilities" => asking::what_is_possible(call).await,
        "greet" => {
            let name = call.required("name")?;
            Ok(text(format!("Hello, {name}!")).into())
        }
        "slow_compute" => tasks::slow(call).await,
        "failing_job" => tasks::failing(call).await,
        "protocol_error_job" => tasks::broken(call).await,
        "confirm_delete" => tasks::confirmed(call).await,
        "multi_input" => tasks::two_questions(call).await,
        "test_tool_with_task" => tasks::asked_before(call).await,
        "test_custom_header" => {
            let region = call.required("region")?;
            Ok(text(format!("Region: {region}")).into())
        }
        "json_schema_2020_12_tool" => {
            let arguments = call.params.arguments.clone().unwrap_or_default();
            let arguments = serde_json::Value::Object(arguments);
            Ok(text(format!("Called with {arguments}")).into())
        }
        name => Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None).into()),
    }
}
