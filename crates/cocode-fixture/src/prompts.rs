//! Prompts.

use rmcp::model::{
    ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, PromptMessage,
    ResourceContents, Role,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::json;

use crate::dialog::{Dialog, Memory, Stop};
use crate::questions::{filled_in, form};
use crate::resources::PNG;
use crate::shared::Shared;

pub(crate) async fn get(
    params: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
    shared: &Shared,
) -> Result<GetPromptResponse, ErrorData> {
    match messages(params, context, shared).await {
        Ok(messages) => Ok(GetPromptResult::new(messages).into()),
        Err(Stop::Ask(questions)) => Ok(questions.into()),
        Err(Stop::Fail(error)) => Err(error),
    }
}

async fn messages(
    params: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
    shared: &Shared,
) -> Result<Vec<PromptMessage>, Stop> {
    let argument = |name: &str| {
        let arguments = params.arguments.as_ref();
        arguments
            .and_then(|arguments| arguments.get(name)?.as_str())
            .ok_or_else(|| {
                ErrorData::invalid_params(format!("the argument `{name}` is missing"), None)
            })
    };
    Ok(match params.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1")?, argument("arg2")?);
            vec![text(format!(
                "Prompt with arguments: arg1='{first}', arg2='{second}'"
            ))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = argument("resourceUri")?;
            let resource = ResourceContents::text("Embedded resource content for testing.", uri)
                .with_mime_type("text/plain");
            vec![
                PromptMessage::new(Role::User, ContentBlock::resource(resource)),
                text("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => vec![
            PromptMessage::new(Role::User, ContentBlock::image(PNG, "image/png")),
            text("Please analyze the image above."),
        ],
        "test_input_required_result_prompt" => {
            let question = form(
                "What context should the prompt use?",
                &json!({ "context": { "type": "string" } }),
            );
            let answers = Dialog::new(context, shared, &params.name, Memory::None)
                .resumed(
                    params.input_responses.clone(),
                    params.request_state.as_deref(),
                )?
                .ask([("user_context", question)])
                .await?;
            let answer = filled_in(&answers["user_context"], "context");
            vec![text(format!("Use this context: {answer}"))]
        }
        name => {
            let message = format!("Unknown prompt: {name}");
            return Err(ErrorData::invalid_params(message, None).into());
        }
    })
}

fn text(text: impl Into<String>) -> PromptMessage {
    PromptMessage::new_text(Role::User, text)
}
