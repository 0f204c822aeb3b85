//! A provider of each kind at a scripted model, and conversations to send.

use std::sync::Arc;

use cocode_agent::providers::{
    Anthropic, AnthropicOptions, ApiKey, Chat, ChatOptions, Responses, ResponsesOptions,
};
use cocode_agent::{
    Arguments, Block, Delta, Message, Model, ModelRequest, Provider, ProviderError, Reply,
    ToolCall, ToolResult,
};
use cocode_core::{Dialect, ProviderTool, ToolSource, convert, convert_best};
use cocode_testkit::{ModelFormat, ModelScript, ModelTurn, ScriptedModel};
use cocode_wire::{HttpClient, Url};
use serde_json::{Value, json};

pub(crate) const FORMATS: [ModelFormat; 3] = [
    ModelFormat::Anthropic,
    ModelFormat::Responses,
    ModelFormat::Chat,
];

/// The key that providers are made with.
pub(crate) const KEY: &str = "sk-test-0123456789";

/// A model, and the provider that it is asked through.
pub(crate) struct Peer {
    pub(crate) server: ScriptedModel,
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) model: Model,
    pub(crate) tools: Vec<Arc<ProviderTool>>,
}

impl Peer {
    pub(crate) fn start(format: ModelFormat, script: ModelScript) -> Self {
        let server = script.start(format);
        let provider = provider(format, &server.base_url());
        Self {
            server,
            provider,
            model: model(),
            tools: Vec::new(),
        }
    }

    /// A model that says this.
    pub(crate) fn saying(format: ModelFormat, turn: ModelTurn) -> Self {
        Self::start(format, ModelScript::new().turn(turn))
    }

    pub(crate) fn with_tool(mut self) -> Self {
        self.tools = vec![Arc::new(tool(self.provider.dialect()))];
        self
    }

    pub(crate) fn blind(mut self) -> Self {
        self.model.vision = false;
        self
    }

    /// The outcome of a request, and what was told meanwhile.
    pub(crate) async fn ask(
        &self,
        messages: &[Message],
    ) -> (Result<Reply, ProviderError>, Vec<Delta>) {
        let mut deltas = Vec::new();
        let mut on_delta = |delta| deltas.push(delta);
        let outcome = self
            .provider
            .reply(self.request(messages), &mut on_delta)
            .await;
        (outcome, deltas)
    }

    /// The reply to a request that breaks no rule.
    pub(crate) async fn reply(&self, messages: &[Message]) -> Reply {
        let (outcome, _) = self.ask(messages).await;
        self.server.assert_no_violations();
        outcome.unwrap()
    }

    /// What a request fails with.
    pub(crate) async fn error(&self, messages: &[Message]) -> ProviderError {
        let (outcome, _) = self.ask(messages).await;
        outcome.unwrap_err()
    }

    pub(crate) fn request<'a>(&'a self, messages: &'a [Message]) -> ModelRequest<'a> {
        ModelRequest {
            model: &self.model,
            system: "Be brief.",
            messages,
            tools: &self.tools,
            max_output_tokens: None,
            conversation: "conversation-1",
        }
    }
}

pub(crate) fn provider(format: ModelFormat, base_url: &str) -> Arc<dyn Provider> {
    let url = Url::parse(base_url).unwrap();
    let key = Some(ApiKey::new(KEY).unwrap());
    let http = HttpClient::default();
    match format {
        ModelFormat::Anthropic => Arc::new(Anthropic::new(AnthropicOptions::new(
            "anthropic",
            url,
            key,
            http,
        ))),
        ModelFormat::Responses => Arc::new(Responses::new(ResponsesOptions::new(
            "openai", url, key, http,
        ))),
        ModelFormat::Chat => Arc::new(Chat::new(ChatOptions::new("local", url, key, http))),
    }
}

pub(crate) fn model() -> Model {
    Model {
        name: "some-model".into(),
        context_window: 100_000,
        max_output_tokens: Some(4096),
        vision: true,
        tools: true,
        price: None,
    }
}

/// A tool that adds numbers, in the dialect of a provider.
pub(crate) fn tool(dialect: Dialect) -> ProviderTool {
    let input_schema = json!({
        "type": "object",
        "properties": { "a": { "type": "number" }, "b": { "type": "number" } },
        "required": ["a", "b"],
        "additionalProperties": false,
    });
    let source = ToolSource {
        name: "add",
        description: Some("Adds two numbers."),
        input_schema: &input_schema,
    };
    let converted = match dialect {
        Dialect::OpenAiStrict => convert_best(&source),
        other => convert(&source, other),
    };
    converted.unwrap()
}

pub(crate) fn user(text: &str) -> Message {
    Message::user(vec![Block::text(text)])
}

pub(crate) fn call(id: &str, arguments: Value) -> Block {
    Block::ToolCall(ToolCall {
        id: id.into(),
        name: "add".into(),
        arguments: Arguments::Json(arguments),
    })
}

pub(crate) fn result(id: &str, content: Vec<Block>) -> Block {
    Block::ToolResult(ToolResult {
        id: id.into(),
        content,
        is_error: false,
    })
}

pub(crate) fn image() -> Block {
    Block::Image {
        media_type: "image/png".into(),
        data: "iVBORw0KGgo=".into(),
    }
}

/// A question, what was said to it, and another one.
pub(crate) fn after(said: Vec<Block>, next: Vec<Block>) -> Vec<Message> {
    vec![user("hi"), Message::assistant(said), Message::user(next)]
}
