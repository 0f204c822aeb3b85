//! The client that the official conformance suite judges: an ordinary user of the library.
//!
//! Gets the URL of a scenario's server as its last argument, and the scenario's name, revision and
//! context from the environment. Ends with 0 if everything it did worked.

#![expect(
    clippy::disallowed_methods,
    reason = "the suite speaks through the environment"
)]
#![expect(clippy::print_stderr, reason = "the suite shows what this client says")]

mod admission;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use cocode_client::{
    Answer, ClientCapabilities, Elicitation, ElicitationAnswer, ElicitationMode, Form, Handler,
    Protocol, RawJson, RequestOptions, Root, RpcError, Session, SessionOptions, Tool, Url, http,
    with_credentials,
};
use serde_json::{Map, Value, json};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                eprintln!("  caused by: {error}");
                cause = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Failure> {
    let url: Url = std::env::args()
        .next_back()
        .ok_or("no URL given")?
        .parse()?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO")?;
    // The stable suite names no revision: it knows only those with a handshake.
    let protocol = match std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION") {
        Ok(revision) => revision.parse()?,
        Err(_unset) => Protocol::Legacy,
    };
    let handler = Arc::new(Agreeable);
    let options = SessionOptions {
        protocol,
        handler,
        ..SessionOptions::default()
    };
    let context = match std::env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(context) => serde_json::from_str(&context)?,
        Err(_unset) => Value::Null,
    };
    let (credentials, _directory) = admission::credentials(&url, &scenario, &context)?;
    let target = with_credentials(http(url), Arc::new(credentials));
    let session = Session::connect(target, options).await?;
    let outcome = act(&session, &scenario, &context).await;
    session.close().await;
    outcome
}

async fn act(session: &Session, scenario: &str, context: &Value) -> Result<(), Failure> {
    match scenario {
        "initialize" => {
            session.tools().await?;
        }
        "json-schema-ref-no-deref" => {
            let tools = session.tools().await?;
            assert_eq!(
                tools.items.len(),
                1,
                "the tool with the remote reference is listed"
            );
        }
        "json-schema-2020-12-preservation" => echo_schema(session).await?,
        "http-custom-headers" => call_as_told(session, context).await?,
        "http-standard-headers" => {
            call_all_tools(session).await?;
            read_everything(session).await?;
        }
        _ => call_all_tools(session).await?,
    }
    Ok(())
}

async fn call_all_tools(session: &Session) -> Result<(), Failure> {
    for tool in session.tools().await?.items {
        let arguments = RawJson::of(&sample_arguments(&tool)?)?;
        call(session, &tool.name, &arguments).await?;
    }
    Ok(())
}

/// Sends the schema back exactly as it came.
async fn echo_schema(session: &Session) -> Result<(), Failure> {
    let tools = session.tools().await?.items;
    let rich = tools
        .iter()
        .find(|tool| tool.name == "json_schema_2020_12_tool");
    let schema = &rich
        .ok_or("the tool with the schema is not listed")?
        .input_schema;
    let arguments = RawJson::parse(format!(r#"{{"schema":{schema}}}"#))?;
    call(session, "json_schema_echo", &arguments).await
}

/// Makes the calls that the scenario's context asks for.
async fn call_as_told(session: &Session, context: &Value) -> Result<(), Failure> {
    session.tools().await?;
    for wanted in context["toolCalls"]
        .as_array()
        .ok_or("no toolCalls in the context")?
    {
        let name = wanted["name"]
            .as_str()
            .ok_or("a tool call without a name")?;
        call(session, name, &RawJson::of(&wanted["arguments"])?).await?;
    }
    Ok(())
}

async fn read_everything(session: &Session) -> Result<(), Failure> {
    for resource in session.resources().await?.items {
        session
            .read_resource(&resource.uri, RequestOptions::default())
            .await?;
    }
    for prompt in session.prompts().await?.items {
        let arguments = prompt
            .arguments
            .iter()
            .map(|argument| (argument.name.clone(), "x".into()));
        let arguments: BTreeMap<String, String> = arguments.collect();
        session
            .get_prompt(&prompt.name, &arguments, RequestOptions::default())
            .await?;
    }
    Ok(())
}

async fn call(session: &Session, name: &str, arguments: &RawJson) -> Result<(), Failure> {
    let result = session
        .call_tool(name, Some(arguments), RequestOptions::default())
        .await?;
    if result.is_error {
        return Err(format!("`{name}` failed: {}", result.raw).into());
    }
    Ok(())
}

/// A value for each required argument.
fn sample_arguments(tool: &Tool) -> Result<Value, Failure> {
    let schema: Value = tool.input_schema.decode()?;
    let mut arguments = Map::new();
    for name in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        let value = match schema["properties"][name]["type"].as_str() {
            Some("number" | "integer") => json!(2),
            Some("boolean") => json!(true),
            _ => json!("text"),
        };
        arguments.insert(name.to_owned(), value);
    }
    Ok(arguments.into())
}

/// Says yes to everything, with the defaults of the form.
struct Agreeable;

impl Handler for Agreeable {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities {
            elicitation_form: true,
            elicitation_url: true,
            sampling: true,
            roots: true,
            others: Vec::new(),
        }
    }

    fn elicit(&self, request: Elicitation) -> Answer<'_, ElicitationAnswer> {
        Box::pin(async move {
            let ElicitationMode::Form(schema) = &request.mode else {
                return ElicitationAnswer::Accept(None);
            };
            let filled = Form::parse(schema).map(|form| form.with_defaults(Map::new()));
            match filled.and_then(|content| RawJson::of(&content)) {
                Ok(content) => ElicitationAnswer::Accept(Some(content)),
                Err(_not_a_form) => ElicitationAnswer::Decline,
            }
        })
    }

    fn sample(&self, _params: RawJson) -> Answer<'_, Result<RawJson, RpcError>> {
        let message = json!({
            "role": "assistant", "model": "none", "content": { "type": "text", "text": "yes" },
        });
        Box::pin(async move {
            RawJson::of(&message).map_err(|error| RpcError::new(-32603, error.to_string()))
        })
    }

    fn roots(&self) -> Answer<'_, Result<Vec<Root>, RpcError>> {
        let root = Root {
            uri: "file:///".into(),
            name: None,
        };
        Box::pin(async { Ok(vec![root]) })
    }
}
