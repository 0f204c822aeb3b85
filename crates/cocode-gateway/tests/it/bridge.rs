//! Questions of servers, through the gateway: every pair of eras, over pipes and over HTTP.

use std::sync::Arc;

use cocode_client::{ClientCapabilities, Protocol, RequestOptions};
use cocode_testkit::Script;
use serde_json::{Value, json};

use crate::support::{Person, Rig, Server, call, text_of};

const FORM: &str = r#"{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}"#;
const URL: &str =
    r#"{"mode":"url","message":"Sign in","url":"https://a.example/in","elicitationId":"7"}"#;
const SAMPLING: &str =
    r#"{"messages":[{"role":"user","content":{"type":"text","text":"Capital?"}}],"maxTokens":9}"#;

/// A server of the older era that asks, and tells what it was answered.
fn legacy(method: &str, params: &str) -> Script {
    Script::new()
        .on("tools/call")
        .ask(method, params)
        .result(r#"{"content":[],"structuredContent":$answer}"#)
}

/// A stateless server that asks, and tells what it was sent with the next attempt.
fn modern(method: &str, params: &str) -> Script {
    Script::modern()
        .on("tools/call")
        .nth(1)
        .result(format!(
            r#"{{"resultType":"input_required","inputRequests":{{"q":{{"method":"{method}","params":{params}}}}},"requestState":"a\/b\u00e9 é"}}"#
        ))
        .on("tools/call")
        .result(r#"{"resultType":"complete","content":[],"structuredContent":$params}"#)
}

/// What reaches the server as the answer to its question, for every pair of eras.
async fn check(method: &str, params: &str, expected: &Value) {
    for client in [Protocol::Legacy, Protocol::Modern] {
        for server in Server::both(&legacy(method, params)) {
            let rig = Rig::new(server).await;
            let person = Person::willing("Ada");
            let session = rig.client(client, &person).await;
            let told = call(&session).await.unwrap().structured().unwrap();
            let told: Value = told.decode().unwrap();
            assert_eq!(told["result"], *expected, "{client:?} at a legacy server");
            assert_eq!(person.asked.lock().unwrap().len(), 1);
        }
        for server in Server::both(&modern(method, params)) {
            let rig = Rig::new(server).await;
            let person = Person::willing("Ada");
            let session = rig.client(client, &person).await;
            let told = call(&session).await.unwrap().structured().unwrap();
            assert!(told.as_str().contains(r#""requestState":"a\/b\u00e9 é""#));
            let told: Value = told.decode().unwrap();
            let answer = &told["inputResponses"]["q"];
            assert_eq!(answer, expected, "{client:?} at a modern server");
            assert_eq!(told["arguments"], json!({ "word": "hello" }));
        }
    }
}

#[tokio::test]
async fn forms_are_filled_in_across_eras() {
    let expected = json!({ "action": "accept", "content": { "name": "Ada" } });
    check("elicitation/create", FORM, &expected).await;
}

#[tokio::test]
async fn addresses_are_visited_across_eras() {
    let expected = json!({ "action": "accept", "content": { "name": "Ada" } });
    check("elicitation/create", URL, &expected).await;
}

#[tokio::test]
async fn models_are_asked_across_eras() {
    let expected = json!({
        "role": "assistant", "model": "m", "content": { "type": "text", "text": "Ada" },
    });
    check("sampling/createMessage", SAMPLING, &expected).await;
}

#[tokio::test]
async fn roots_are_told_across_eras() {
    let expected = json!({ "roots": [{ "uri": "file:///Ada" }] });
    check("roots/list", "{}", &expected).await;
}

#[tokio::test]
async fn several_questions_in_a_row_are_answered_across_eras() {
    let script = Script::new()
        .on("tools/call")
        .ask("elicitation/create", FORM)
        .ask("sampling/createMessage", SAMPLING)
        .text_result("done");
    for client in [Protocol::Legacy, Protocol::Modern] {
        for server in Server::both(&script) {
            let rig = Rig::new(server).await;
            let person = Person::willing("Ada");
            let session = rig.client(client, &person).await;
            assert_eq!(text_of(&call(&session).await.unwrap()), "done");
            assert_eq!(person.asked.lock().unwrap().len(), 2);
        }
    }
}

#[tokio::test]
async fn nobody_is_asked_what_they_did_not_offer() {
    let nothing = ClientCapabilities::default();
    for client in [Protocol::Legacy, Protocol::Modern] {
        for server in Server::both(&legacy("elicitation/create", FORM)) {
            let rig = Rig::new(server).await;
            let person = Person::able("Ada", nothing.clone());
            let session = rig.client(client, &person).await;
            let told = call(&session).await.unwrap().structured().unwrap();
            let told: Value = told.decode().unwrap();
            assert_eq!(told["error"]["code"], -32601, "{told}");
            assert!(person.asked.lock().unwrap().is_empty());
        }
    }
}

#[tokio::test]
async fn an_error_that_names_addresses_is_a_question_to_a_stateless_client() {
    let refusal = r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-32042,"message":"first","data":{"elicitations":[{"mode":"url","message":"Sign in","url":"https://a.example/in","elicitationId":"7"}]}}}"#;
    let script = Script::new()
        .on("tools/call")
        .nth(1)
        .line(refusal)
        .on("tools/call")
        .text_result("done");
    for server in Server::both(&script) {
        let rig = Rig::new(server).await;
        let person = Person::willing("Ada");
        let session = rig.client(Protocol::Modern, &person).await;
        assert_eq!(text_of(&call(&session).await.unwrap()), "done");
        let asked: Arc<Person> = person;
        assert_eq!(*asked.asked.lock().unwrap(), ["Sign in"]);
    }
}

#[tokio::test]
async fn progress_only_grows_over_the_attempts_of_one_request() {
    let question = format!(
        r#"{{"resultType":"input_required","inputRequests":{{"q":{{"method":"elicitation/create","params":{FORM}}}}}}}"#
    );
    let script = Script::modern()
        .on("tools/call")
        .nth(1)
        .progress(1, 3)
        .progress(2, 3)
        .result(question)
        .on("tools/call")
        .progress(1, 3)
        .progress(2, 3)
        .progress(3, 3)
        .text_result("done");
    for server in Server::both(&script) {
        let rig = Rig::new(server).await;
        let session = rig.client(Protocol::Legacy, &Person::willing("Ada")).await;
        let (told, hear) = std::sync::mpsc::channel();
        let options = RequestOptions {
            on_progress: Some(Arc::new(move |progress| {
                told.send(progress.progress).unwrap();
            })),
            ..RequestOptions::default()
        };
        session.call_tool("echo", None, options).await.unwrap();
        assert_eq!(hear.iter().collect::<Vec<_>>(), [1.0, 2.0, 3.0]);
    }
}

/// A modern server that sends its question as a request, which the specification forbids.
fn modern_by_request() -> Script {
    Script::modern()
        .on("tools/call")
        .ask("elicitation/create", FORM)
        .result(r#"{"resultType":"complete","content":[],"structuredContent":$answer}"#)
}

#[tokio::test]
async fn request_of_a_modern_server_reaches_a_client_that_can_answer() {
    for server in Server::both(&modern_by_request()) {
        let rig = Rig::new(server).await;
        let person = Person::willing("Ada");
        let session = rig.client(Protocol::Legacy, &person).await;
        let told = call(&session).await.unwrap().structured().unwrap();
        let told: Value = told.decode().unwrap();
        assert_eq!(told["result"]["content"]["name"], "Ada", "{told}");
        assert_eq!(*person.asked.lock().unwrap(), ["Who?"]);
    }
}

#[tokio::test]
async fn request_of_a_modern_server_is_refused_where_nobody_can_answer() {
    let nothing = ClientCapabilities::default();
    for (protocol, can) in [
        (Protocol::Legacy, nothing),
        // Modern clients are asked in results, and never by requests.
        (
            Protocol::Modern,
            Person::willing("Ada").capabilities.clone(),
        ),
    ] {
        for server in Server::both(&modern_by_request()) {
            let rig = Rig::new(server).await;
            let person = Person::able("Ada", can.clone());
            let session = rig.client(protocol, &person).await;
            let told = call(&session).await.unwrap().structured().unwrap();
            let told: Value = told.decode().unwrap();
            assert_eq!(told["error"]["code"], -32601, "{protocol:?}: {told}");
            assert!(person.asked.lock().unwrap().is_empty());
        }
    }
}
