//! The model of the client that called, with and without tools.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use cocode_agent::providers::{ClientModel, ClientModelOptions};
use cocode_agent::{
    Block, Delta, Message, ModelRequest, Provider as _, ProviderError, Reply, Sampler, Stop,
    ToolResult, Work,
};
use cocode_core::Dialect;
use serde_json::{Value, json};

use super::support::{after, call, image, model, result, tool, user};

/// A client that answers by a list and remembers what it was asked.
struct Client {
    takes_tools: bool,
    answers: Mutex<VecDeque<Result<Value, String>>>,
    asked: Mutex<Vec<Value>>,
}

impl Sampler for Client {
    fn takes_tools(&self) -> bool {
        self.takes_tools
    }

    fn create_message(&self, params: Value) -> Work<'_, Result<Value, String>> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(params);
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answers.pop_front();
        Box::pin(async move {
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }
}

/// What becomes of a conversation with a client, what it was asked, and what was told.
async fn ask(
    takes_tools: bool,
    answer: Option<Result<Value, String>>,
    messages: &[Message],
) -> (Result<Reply, ProviderError>, Value, Vec<Delta>) {
    let client = Arc::new(Client {
        takes_tools,
        answers: Mutex::new(answer.into_iter().collect()),
        asked: Mutex::default(),
    });
    let provider = ClientModel::new(ClientModelOptions {
        name: "client".into(),
        sampler: Arc::clone(&client) as Arc<dyn Sampler>,
        hints: vec!["claude".into()],
    });
    let model = model();
    let tools = [Arc::new(tool(Dialect::Plain))];
    let request = ModelRequest {
        model: &model,
        system: "Be brief.",
        messages,
        tools: &tools,
        max_output_tokens: None,
        conversation: "c",
    };
    let mut deltas = Vec::new();
    let outcome = provider
        .reply(request, &mut |delta| deltas.push(delta))
        .await;
    let asked = client
        .asked
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(0);
    (outcome, asked, deltas)
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[tokio::test]
async fn a_client_with_tools_is_asked_exactly_as_specified() {
    let failed = Block::ToolResult(ToolResult {
        id: "call_2".into(),
        content: vec![Block::text("no")],
        is_error: true,
    });
    let messages = after(
        vec![
            Block::text("Both."),
            call("call_1", json!({"a": 1, "b": 2})),
            call("call_2", json!({})),
        ],
        vec![
            Block::text("Go on."),
            result("call_1", vec![Block::text("3"), image()]),
            failed,
        ],
    );
    let answer = json!({"role": "assistant", "model": "claude-x", "stopReason": "toolUse", "content": [
        text("Once more."),
        {"type": "tool_use", "id": "call_3", "name": "add", "input": {"a": 5, "b": 6}},
    ]});
    let (outcome, asked, deltas) = ask(true, Some(Ok(answer)), &messages).await;
    let expected = json!({
        "systemPrompt": "Be brief.",
        "maxTokens": 4096,
        "modelPreferences": {"hints": [{"name": "some-model"}, {"name": "claude"}]},
        "tools": [{"name": "add", "description": "Adds two numbers.",
                   "inputSchema": tool(Dialect::Plain).parameters}],
        "toolChoice": {"mode": "auto"},
        "messages": [
            {"role": "user", "content": text("hi")},
            {"role": "assistant", "content": [
                text("Both."),
                {"type": "tool_use", "id": "call_1", "name": "add", "input": {"a": 1, "b": 2}},
                {"type": "tool_use", "id": "call_2", "name": "add", "input": {}},
            ]},
            // Messages with results hold nothing else.
            {"role": "user", "content": [
                {"type": "tool_result", "toolUseId": "call_1", "content": [
                    text("3"), {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]},
                {"type": "tool_result", "toolUseId": "call_2", "content": [text("no")], "isError": true},
            ]},
            {"role": "user", "content": text("Go on.")},
        ],
    });
    assert_eq!(asked, expected);
    let reply = outcome.unwrap();
    assert_eq!(
        reply.content,
        [
            Block::text("Once more."),
            call("call_3", json!({"a": 5, "b": 6}))
        ]
    );
    assert_eq!(
        (reply.stop, reply.model.as_deref()),
        (Stop::ToolCalls, Some("claude-x"))
    );
    assert_eq!(
        deltas,
        [
            Delta::Text("Once more.".into()),
            Delta::ToolCall { name: "add".into() }
        ]
    );
}

#[tokio::test]
async fn a_client_without_tools_gets_one_block_for_each_message_and_calls_in_words() {
    let messages = after(
        vec![Block::text("Sure."), call("call_1", json!({"a": 1}))],
        vec![result("call_1", vec![Block::text("3")]), image()],
    );
    let answer = json!({"role": "assistant", "model": "m", "content": text("3")});
    let (outcome, asked, _) = ask(false, Some(Ok(answer)), &messages).await;
    let expected = json!([
        {"role": "user", "content": text("hi")},
        {"role": "assistant", "content": text("Sure.")},
        {"role": "assistant", "content": text("(The tool add was called with {\"a\":1}.)")},
        {"role": "user", "content": text("(A tool answered: 3)")},
        {"role": "user", "content": {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}},
    ]);
    assert_eq!(asked["messages"], expected);
    assert_eq!((asked.get("tools"), asked.get("toolChoice")), (None, None));
    let reply = outcome.unwrap();
    assert_eq!(
        (reply.content, reply.stop),
        (vec![Block::text("3")], Stop::Done)
    );
}

#[tokio::test]
async fn reasons_to_stop_are_told_apart() {
    for (word, expected) in [
        ("endTurn", Stop::Done),
        ("stopSequence", Stop::Done),
        ("maxTokens", Stop::MaxTokens),
        ("refusal", Stop::Refused(None)),
        ("tired", Stop::Other("tired".into())),
    ] {
        let answer =
            json!({"role": "assistant", "model": "m", "stopReason": word, "content": text("x")});
        let (outcome, _, _) = ask(true, Some(Ok(answer)), &[user("hi")]).await;
        assert_eq!(outcome.unwrap().stop, expected, "{word}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_want_to_is_not_asked_again() {
    let why = Err("the user rejected the request".to_owned());
    let (outcome, _, _) = ask(true, Some(why), &[user("hi")]).await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, ProviderError::Rejected { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "client does not take the request: the user rejected the request"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_answers_is_given_up() {
    let (outcome, _, _) = ask(true, None, &[user("hi")]).await;
    let error = outcome.unwrap_err().to_string();
    assert!(
        error.ends_with("the client gave no answer within 30 minutes"),
        "{error}"
    );
}

#[tokio::test]
async fn an_answer_without_content_is_not_understood() {
    let (outcome, _, _) = ask(true, Some(Ok(json!({"role": "assistant"}))), &[user("hi")]).await;
    assert!(
        matches!(outcome, Err(ProviderError::NotUnderstood { .. })),
        "{outcome:?}"
    );
}
