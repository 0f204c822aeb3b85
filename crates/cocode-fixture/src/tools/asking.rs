//! Tools that ask the client before they answer.

use rmcp::model::{InputRequest, InputRequests};
use serde_json::{Value, json};

use super::Outcome;
use crate::call::{Call, text};
use crate::dialog::Memory;
use crate::questions::{
    self, action_and_content, can_answer, filled_in, form, root_uris, sampled, sampling,
};

/// A form with one text to fill in.
fn form_for(message: &str, property: &str) -> InputRequest {
    form(message, &json!({ property: { "type": "string" } }))
}

/// Asks one question and makes a text of the answer.
async fn ask(
    call: &Call,
    name: &str,
    question: InputRequest,
    say: impl FnOnce(&Value) -> String,
) -> Outcome {
    let answers = call.dialog(Memory::None)?.ask([(name, question)]).await?;
    Ok(text(say(&answers[name])).into())
}

pub(super) async fn model(call: &Call) -> Outcome {
    let question = sampling(call.required("prompt")?);
    ask(call, "sample", question, |answer| {
        format!("LLM response: {}", sampled(answer))
    })
    .await
}

pub(super) async fn user(call: &Call) -> Outcome {
    let question = form(
        call.required("message")?,
        &json!({
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        }),
    );
    ask(call, "user", question, |answer| {
        format!("User response: {}", action_and_content(answer))
    })
    .await
}

pub(super) async fn page(call: &Call) -> Outcome {
    let question = questions::page(
        "Please open this page.",
        "fixture-page",
        "https://fixture.example/open",
    );
    ask(call, "page", question, |answer| {
        let action = answer["action"].as_str().unwrap_or_default();
        format!("Page: action={action}")
    })
    .await
}

pub(super) async fn defaults(call: &Call) -> Outcome {
    let question = form(
        "Please review the defaults.",
        &json!({
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "default": true },
        }),
    );
    ask(call, "defaults", question, completed).await
}

pub(super) async fn enumerations(call: &Call) -> Outcome {
    let titled = |word: &str| {
        let option = |value: &str, title: &str| json!({ "const": value, "title": format!("{title} {word}") });
        json!([
            option("value1", "First"),
            option("value2", "Second"),
            option("value3", "Third"),
        ])
    };
    let question = form(
        "Please choose.",
        &json!({
            "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
            "titledSingle": { "type": "string", "oneOf": titled("Option") },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array",
                "items": { "type": "string", "enum": ["option1", "option2", "option3"] },
            },
            "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
        }),
    );
    ask(call, "choices", question, completed).await
}

fn completed(answer: &Value) -> String {
    format!("Elicitation completed: {}", action_and_content(answer))
}

pub(super) async fn streaming(call: &Call) -> Outcome {
    let question = form_for("What should be streamed?", "content");
    ask(call, "streamed", question, |answer| {
        format!("Streamed: {}", filled_in(answer, "content"))
    })
    .await
}

pub(super) async fn needs_sampling(call: &Call) -> Outcome {
    ask(call, "sample", sampling("Say something."), |answer| {
        format!("Sampled: {}", sampled(answer))
    })
    .await
}

pub(super) async fn name(call: &Call) -> Outcome {
    let question = form_for("What is your name?", "name");
    ask(call, "user_name", question, |answer| {
        format!("Hello, {}!", filled_in(answer, "name"))
    })
    .await
}

pub(super) async fn capital(call: &Call) -> Outcome {
    let question = sampling("What is the capital of France?");
    ask(call, "capital_question", question, |answer| {
        format!("The model said: {}", sampled(answer))
    })
    .await
}

pub(super) async fn roots(call: &Call) -> Outcome {
    ask(call, "client_roots", questions::roots(), |answer| {
        format!("Roots: {}", root_uris(answer))
    })
    .await
}

pub(super) async fn confirmation(call: &Call) -> Outcome {
    let question = form("Please confirm", &json!({ "ok": { "type": "boolean" } }));
    let mut dialog = call.dialog(Memory::Sealed)?;
    let answers = dialog.ask([("confirm", question)]).await?;
    let ok = answers["confirm"]["content"]["ok"] == true;
    Ok(text(format!("state-ok, confirmed: {ok}")).into())
}

pub(super) async fn all_at_once(call: &Call) -> Outcome {
    let answers = call
        .dialog(Memory::Sealed)?
        .ask([
            ("user_name", form_for("What is your name?", "name")),
            ("greeting", sampling("Generate a greeting")),
            ("client_roots", questions::roots()),
        ])
        .await?;
    let name = filled_in(&answers["user_name"], "name");
    let greeting = sampled(&answers["greeting"]);
    let roots = root_uris(&answers["client_roots"]);
    Ok(text(format!("{greeting} {name} of {roots}")).into())
}

pub(super) async fn twice(call: &Call) -> Outcome {
    let mut dialog = call.dialog(Memory::Sealed)?;
    let question = form_for("Step 1: What is your name?", "name");
    let first = dialog.ask([("step1", question)]).await?;
    let question = form_for("Step 2: What is your favorite color?", "color");
    let second = dialog.ask([("step2", question)]).await?;
    let name = filled_in(&first["step1"], "name");
    let color = filled_in(&second["step2"], "color");
    Ok(text(format!("{name} likes {color}")).into())
}

pub(super) async fn what_is_possible(call: &Call) -> Outcome {
    let mut dialog = call.dialog(Memory::None)?;
    let capabilities = dialog.capabilities();
    let questions: InputRequests = [
        ("user", form_for("What is your name?", "name")),
        ("model", sampling("Say something.")),
        ("roots", questions::roots()),
    ]
    .into_iter()
    .filter(|(_, question)| can_answer(&capabilities, question))
    .map(|(name, question)| (name.to_owned(), question))
    .collect();
    if questions.is_empty() {
        return Ok(text("The client cannot be asked anything").into());
    }
    let answers = dialog.ask_all(questions).await?;
    let names: Vec<&str> = answers.keys().map(String::as_str).collect();
    Ok(text(format!("Answered: {}", names.join(", "))).into())
}
