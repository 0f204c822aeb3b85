//! Requests in which the client is asked, with the text that its answers must lead to: the same in
//! both eras, whichever the server has.

use serde_json::{Value, json};

use super::mcp::{Answerer, Client};

/// One request, and what must become of it.
pub(super) struct Dialog {
    pub(super) name: &'static str,
    method: &'static str,
    params: fn() -> Value,
    answer: Answerer,
    /// What the client is asked.
    asked: &'static [&'static str],
    /// What the result says in the end.
    text: &'static str,
}

const ELICITATION: &str = "elicitation/create";
const SAMPLING: &str = "sampling/createMessage";
const ROOTS: &str = "roots/list";

const fn tool(
    name: &'static str,
    params: fn() -> Value,
    asked: &'static [&'static str],
    text: &'static str,
) -> Dialog {
    Dialog {
        name,
        method: "tools/call",
        params,
        answer: accept,
        asked,
        text,
    }
}

pub(super) const DIALOGS: &[Dialog] = &[
    tool(
        "a form is filled in",
        || json!({ "name": "test_input_required_result_elicitation" }),
        &[ELICITATION],
        "Hello, Alice!",
    ),
    tool(
        "a form with two fields is filled in",
        || json!({ "name": "test_elicitation", "arguments": { "message": "Who?" } }),
        &[ELICITATION],
        r#"User response: action=accept, content={"email":"alice@example.com","username":"alice"}"#,
    ),
    Dialog {
        answer: decline,
        ..tool(
            "a form is declined",
            || json!({ "name": "test_elicitation", "arguments": { "message": "Who?" } }),
            &[ELICITATION],
            "User response: action=decline, content=null",
        )
    },
    tool(
        "a page is opened",
        || json!({ "name": "test_elicitation_url" }),
        &[ELICITATION],
        "Page: action=accept",
    ),
    tool(
        "a model is asked",
        || json!({ "name": "test_sampling", "arguments": { "prompt": "Say it." } }),
        &[SAMPLING],
        "LLM response: You said: Say it.",
    ),
    tool(
        "roots are asked for",
        || json!({ "name": "test_input_required_result_list_roots" }),
        &[ROOTS],
        "Roots: file:///test/root",
    ),
    tool(
        "three questions are asked",
        || json!({ "name": "test_input_required_result_multiple_inputs" }),
        &[ELICITATION, ROOTS, SAMPLING],
        "You said: Generate a greeting Alice of file:///test/root",
    ),
    tool(
        "one question follows another",
        || json!({ "name": "test_input_required_result_multi_round" }),
        &[ELICITATION, ELICITATION],
        "Alice likes blue",
    ),
    tool(
        "a question is remembered",
        || json!({ "name": "test_input_required_result_request_state" }),
        &[ELICITATION],
        "state-ok, confirmed: true",
    ),
    Dialog {
        name: "a prompt asks",
        method: "prompts/get",
        params: || json!({ "name": "test_input_required_result_prompt" }),
        answer: accept,
        asked: &[ELICITATION],
        text: "Use this context: the test",
    },
];

impl Dialog {
    /// What is wrong with it, if anything.
    pub(super) fn hold(&self, client: &Client) -> Option<String> {
        let outcome = match client.request(self.method, &(self.params)(), self.answer) {
            Ok(outcome) => outcome,
            Err(failure) => return Some(failure.to_string()),
        };
        let result = match outcome.result {
            Ok(result) => result,
            Err(error) => return Some(format!("ended with the error {error}")),
        };
        let mut asked = outcome.asked;
        asked.sort();
        if asked != self.asked {
            return Some(format!(
                "the client was asked {asked:?}, not {:?}",
                self.asked
            ));
        }
        let text = result
            .pointer("/content/0/text")
            .or_else(|| result.pointer("/messages/0/content/text"));
        (text.and_then(Value::as_str) != Some(self.text))
            .then(|| format!("gave {result}, not the text {:?}", self.text))
    }
}

fn accept(method: &str, params: &Value) -> Value {
    match method {
        ELICITATION => {
            let fields = params["requestedSchema"]["properties"].as_object();
            let content: serde_json::Map<String, Value> = fields
                .into_iter()
                .flatten()
                .map(|(name, _)| (name.clone(), filled_in(name)))
                .collect();
            if content.is_empty() {
                // A page has no fields.
                return json!({ "action": "accept" });
            }
            json!({ "action": "accept", "content": content })
        }
        SAMPLING => {
            let prompt = params["messages"][0]["content"]["text"].as_str();
            let text = format!("You said: {}", prompt.unwrap_or_default());
            json!({
                "role": "assistant",
                "content": { "type": "text", "text": text },
                "model": "probe",
                "stopReason": "endTurn",
            })
        }
        _ => json!({ "roots": [{ "uri": "file:///test/root", "name": "Root" }] }),
    }
}

fn decline(_method: &str, _params: &Value) -> Value {
    json!({ "action": "decline" })
}

fn filled_in(field: &str) -> Value {
    match field {
        "name" => json!("Alice"),
        "color" => json!("blue"),
        "username" => json!("alice"),
        "email" => json!("alice@example.com"),
        "context" => json!("the test"),
        _ => json!(true),
    }
}
