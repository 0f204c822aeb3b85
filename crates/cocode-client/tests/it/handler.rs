//! What servers ask of their client, in both eras, and what becomes of the answers.

use std::sync::Arc;

use cocode_client::{
    ClientCapabilities, ElicitationAnswer, NoHandler, Protocol, RequestError, SessionOptions,
};
use cocode_testkit::{HttpRequest, Script};
use serde_json::{Value, json};

use crate::support::{
    Witness, assert_works, call, connect, connect_with, count, handled_by, http, received,
    speaking, stdio,
};

const FORM: &str = r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}"#;
const URL: &str =
    r#"{"mode":"url","message":"Sign in","url":"https://a.example/in","elicitationId":"7"}"#;
const SAMPLING: &str = r#"{"messages":[{"role":"user","content":{"type":"text","text":"Capital of France?"}}],"maxTokens":9}"#;

/// A server whose tool asks this and gives the client's whole answer as its result.
fn asking(method: &str, params: &str) -> Script {
    Script::new()
        .on("tools/call")
        .ask(method, params)
        .result(r#"{"content":[],"structuredContent":$answer}"#)
}

/// What a client with this handler answers to a server of the older era.
async fn answer(handler: &Arc<Witness>, method: &str, params: &str) -> Value {
    let server = asking(method, params).stdio();
    let session = connect_with(stdio(&server), handled_by(handler)).await;
    let answer = call(&session).await.unwrap().structured().unwrap();
    answer.decode().unwrap()
}

fn offering(capabilities: ClientCapabilities) -> Arc<Witness> {
    Arc::new(Witness {
        capabilities,
        ..Witness::willing()
    })
}

#[tokio::test]
async fn a_form_is_filled_in() {
    let witness = Arc::new(Witness::willing());
    let answer = answer(&witness, "elicitation/create", FORM).await;
    assert_eq!(
        answer["result"],
        json!({"action": "accept", "content": {"name": "Ada"}})
    );
    let (_, about) = witness.asked.all().remove(0);
    assert!(about.starts_with("Who?: {\"type\":\"object\""), "{about}");
}

#[tokio::test]
async fn a_url_is_visited() {
    let witness = Arc::new(Witness {
        answer: ElicitationAnswer::Accept(None),
        ..Witness::willing()
    });
    let answer = answer(&witness, "elicitation/create", URL).await;
    assert_eq!(answer["result"], json!({"action": "accept"}));
    assert_eq!(witness.asked.all()[0].1, "Sign in: https://a.example/in");
}

#[tokio::test]
async fn a_person_may_decline() {
    for (chosen, action) in [
        (ElicitationAnswer::Decline, "decline"),
        (ElicitationAnswer::Cancel, "cancel"),
    ] {
        let witness = Arc::new(Witness {
            answer: chosen,
            ..Witness::willing()
        });
        let answer = answer(&witness, "elicitation/create", FORM).await;
        assert_eq!(answer["result"], json!({ "action": action }));
    }
}

#[tokio::test]
async fn a_question_without_its_parts_is_refused() {
    let witness = Arc::new(Witness::willing());
    for broken in [
        r#"{"message":"?"}"#,
        r#"{"mode":"url","message":"?"}"#,
        r#"{"mode":"smoke"}"#,
    ] {
        let answer = answer(&witness, "elicitation/create", broken).await;
        assert_eq!(answer["error"]["code"], -32602, "{broken}");
    }
    assert_eq!(witness.asked.all(), []);
}

#[tokio::test]
async fn a_prompt_is_completed() {
    let witness = Arc::new(Witness::willing());
    let answer = answer(&witness, "sampling/createMessage", SAMPLING).await;
    assert_eq!(answer["result"]["content"]["text"], "Paris");
    assert_eq!(witness.asked.all()[0].1, SAMPLING);
}

#[tokio::test]
async fn roots_are_named() {
    let witness = Arc::new(Witness::willing());
    let answer = answer(&witness, "roots/list", "{}").await;
    let expected = json!({"roots": [{"uri": "file:///projects/ada", "name": "home"}]});
    assert_eq!(answer["result"], expected);
}

#[tokio::test]
async fn a_ping_is_answered_without_the_handler() {
    let server = asking("ping", "{}").stdio();
    let session = connect(stdio(&server)).await;
    let answer = call(&session).await.unwrap().structured().unwrap();
    let answer: Value = answer.decode().unwrap();
    assert_eq!(answer["result"], json!({}));
}

#[tokio::test]
async fn an_unknown_method_is_refused() {
    let witness = Arc::new(Witness::willing());
    let answer = answer(&witness, "launch/rockets", "{}").await;
    assert_eq!(answer["error"]["code"], -32601);
}

#[tokio::test]
async fn what_was_not_declared_is_refused() {
    let nothing = offering(ClientCapabilities::default());
    for (method, params) in [
        ("elicitation/create", FORM),
        ("sampling/createMessage", SAMPLING),
        ("roots/list", "{}"),
    ] {
        assert_eq!(
            answer(&nothing, method, params).await["error"]["code"],
            -32601,
            "{method}"
        );
    }
    assert_eq!(nothing.asked.all(), []);
}

#[tokio::test]
async fn a_kind_of_question_that_was_not_declared_is_refused() {
    let forms = offering(ClientCapabilities {
        elicitation_form: true,
        ..ClientCapabilities::default()
    });
    assert_eq!(
        answer(&forms, "elicitation/create", URL).await["error"]["code"],
        -32602
    );
    let urls = offering(ClientCapabilities {
        elicitation_url: true,
        ..ClientCapabilities::default()
    });
    assert_eq!(
        answer(&urls, "elicitation/create", FORM).await["error"]["code"],
        -32602
    );
    assert_eq!((forms.asked.all(), urls.asked.all()), (vec![], vec![]));
}

#[tokio::test]
async fn capabilities_are_declared_as_offered() {
    let server = Script::new().stdio();
    let witness = Arc::new(Witness::willing());
    let _session = connect_with(stdio(&server), handled_by(&witness)).await;
    let hello = server.wait_for(|message| message.is("initialize")).await;
    assert_eq!(
        hello.params()["capabilities"],
        json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
    );
    let _silent = connect_with(stdio(&server), speaking(Protocol::Legacy)).await;
    let hello = server.wait_for(|message| message.run == 2 && message.is("initialize"));
    assert_eq!(hello.await.params()["capabilities"], json!({}));
}

#[tokio::test]
async fn questions_are_answered_over_http_with_the_session() {
    let server = asking("elicitation/create", FORM).http();
    let witness = Arc::new(Witness::willing());
    let session = connect_with(http(&server), handled_by(&witness)).await;
    let answer = call(&session).await.unwrap().structured().unwrap();
    let answer: Value = answer.decode().unwrap();
    assert_eq!(answer["result"]["action"], "accept");
    let is_answer = |request: &HttpRequest| request.json()["result"]["action"] == "accept";
    let posted = server.wait_for(is_answer).await;
    assert_eq!(posted.header("Mcp-Session-Id"), Some("session-1"));
}

#[tokio::test]
async fn questions_on_the_stream_of_a_session_are_answered() {
    let question =
        format!(r#"{{"jsonrpc":"2.0","id":"q-1","method":"elicitation/create","params":{FORM}}}"#);
    for script in [Script::new().get_stream(), Script::new().http_sse()] {
        let server = script.http();
        let witness = Arc::new(Witness::willing());
        let _session = connect_with(http(&server), handled_by(&witness)).await;
        server.wait_for_streams(1).await;
        server.push(question.as_str());
        let posted = server
            .wait_for(|request| request.json()["id"] == "q-1")
            .await;
        assert_eq!(posted.json()["result"]["action"], "accept");
    }
}

#[tokio::test]
async fn a_question_that_the_server_takes_back_is_given_up() {
    let server = Script::new()
        .on("tools/call")
        .line(format!(
            r#"{{"jsonrpc":"2.0","id":"q-1","method":"elicitation/create","params":{FORM}}}"#
        ))
        .wait_for("ping")
        .notify(
            "notifications/cancelled",
            r#"{"requestId":"q-1","reason":"never mind"}"#,
        )
        .text_result("done")
        .stdio();
    let witness = Arc::new(Witness::hesitant());
    let session = connect_with(stdio(&server), handled_by(&witness)).await;
    let asking = async {
        witness.asked.reaches(1).await;
        session.ping(crate::support::within(20_000)).await.unwrap();
    };
    let (outcome, ()) = tokio::join!(call(&session), asking);
    outcome.unwrap();
    witness.aborted.reaches(1).await;
    let all = received(&server, &session).await;
    assert!(all.iter().all(|message| message.id() != Some(r#""q-1""#)));
}

#[tokio::test]
async fn questions_end_with_the_session() {
    let server = asking("elicitation/create", FORM).stdio();
    let witness = Arc::new(Witness::hesitant());
    let session = connect_with(stdio(&server), handled_by(&witness)).await;
    let closing = async {
        witness.asked.reaches(1).await;
        session.clone().close().await;
    };
    let (outcome, ()) = tokio::join!(call(&session), closing);
    assert!(
        matches!(outcome, Err(RequestError::Closed { .. })),
        "{outcome:?}"
    );
    witness.aborted.reaches(1).await;
}

#[tokio::test]
async fn many_questions_at_once_are_all_answered() {
    let question = r#"{"jsonrpc":"2.0","id":$n,"method":"ping"}"#;
    let script = (0..50).fold(Script::new().on("tools/call"), |script, number| {
        script.line(question.replace("$n", &format!("\"ping-{number}\"")))
    });
    let server = script.text_result("done").stdio();
    let session = connect(stdio(&server)).await;
    call(&session).await.unwrap();
    let is_answer = |message: &cocode_testkit::Message| {
        message.method().is_none() && message.id().is_some_and(|id| id.contains("ping-"))
    };
    let received = server.received();
    received
        .wait_until(|all| all.iter().filter(|message| is_answer(message)).count() == 50)
        .await;
}

// The same in the stateless era: a result that asks for input.

/// A stateless server whose tool asks for this input first.
fn requiring(requests: &str) -> Script {
    Script::modern()
        .on("tools/call")
        .nth(1)
        .result(format!(
            r#"{{"resultType":"input_required","inputRequests":{requests},"requestState":"a\/b\u00e9 é"}}"#
        ))
        .on("tools/call")
        .text_result("done")
}

#[tokio::test]
async fn input_that_a_result_asks_for_is_given_with_its_state_untouched() {
    let requests = format!(
        r#"{{"who":{{"method":"elicitation/create","params":{FORM}}},"what":{{"method":"sampling/createMessage","params":{SAMPLING}}},"where":{{"method":"roots/list"}}}}"#
    );
    let witness = Arc::new(Witness::willing());
    let server = requiring(&requests).stdio();
    let session = connect_with(stdio(&server), handled_by(&witness)).await;
    assert_eq!(
        crate::support::text_of(&call(&session).await.unwrap()),
        "done"
    );
    let calls = received(&server, &session).await;
    let calls: Vec<_> = calls
        .iter()
        .filter(|message| message.is("tools/call"))
        .collect();
    assert_eq!(calls.len(), 2);
    let params = calls[1].params();
    assert_eq!(params["inputResponses"]["who"]["content"]["name"], "Ada");
    assert_eq!(params["inputResponses"]["what"]["content"]["text"], "Paris");
    assert_eq!(
        params["inputResponses"]["where"]["roots"][0]["name"],
        "home"
    );
    assert_eq!(params["arguments"], json!({"word": "hello"}));
    let raw = calls[1].raw_params().unwrap();
    assert!(raw.contains(r#""requestState":"a\/b\u00e9 é""#), "{raw}");
}

#[tokio::test]
async fn input_is_given_over_http_too() {
    let requests = format!(r#"{{"who":{{"method":"elicitation/create","params":{URL}}}}}"#);
    let witness = Arc::new(Witness::willing());
    let server = requiring(&requests).http();
    let session = connect_with(http(&server), handled_by(&witness)).await;
    call(&session).await.unwrap();
    let calls = server.requests().all();
    let second = calls
        .iter()
        .rfind(|request| request.is("tools/call"))
        .unwrap();
    assert_eq!(
        second.json()["params"]["inputResponses"]["who"]["action"],
        "accept"
    );
    assert_eq!(second.header("Mcp-Name"), Some("echo"));
}

#[tokio::test]
async fn a_state_alone_is_sent_back() {
    let server = Script::modern()
        .on("tools/call")
        .nth(1)
        .result(r#"{"resultType":"input_required","requestState":"later"}"#)
        .stdio();
    let session = connect(stdio(&server)).await;
    call(&session).await.unwrap();
    let calls = received(&server, &session).await;
    let second = calls
        .iter()
        .rfind(|message| message.is("tools/call"))
        .unwrap();
    assert_eq!(second.params()["requestState"], "later");
    assert_eq!(second.params().get("inputResponses"), None);
}

#[tokio::test]
async fn input_that_cannot_be_given_ends_the_call() {
    for request in [
        r#"{"method":"launch/rockets"}"#.to_owned(),
        format!(r#"{{"method":"sampling/createMessage","params":{SAMPLING}}}"#),
        "17".to_owned(),
    ] {
        let server = requiring(&format!(r#"{{"x":{request}}}"#)).stdio();
        let session = connect(stdio(&server)).await;
        let outcome = call(&session).await;
        assert!(
            matches!(outcome, Err(RequestError::Unexpected { .. })),
            "{outcome:?}"
        );
        assert_works(&session).await;
    }
}

#[tokio::test]
async fn rounds_of_input_are_bounded() {
    let server = Script::modern()
        .on("tools/call")
        .result(r#"{"resultType":"input_required","requestState":"again"}"#)
        .stdio();
    let options = SessionOptions {
        max_input_rounds: 3,
        ..SessionOptions::default()
    };
    let session = connect_with(stdio(&server), options).await;
    let outcome = call(&session).await;
    assert!(
        matches!(outcome, Err(RequestError::InputRounds { rounds: 3, .. })),
        "{outcome:?}"
    );
    assert_eq!(count(&server, &session, "tools/call").await, 4);
    assert_works(&session).await;
}

#[tokio::test]
async fn no_rounds_of_input_still_allow_a_call() {
    for script in [Script::new(), Script::modern()] {
        let server = script.stdio();
        let options = SessionOptions {
            max_input_rounds: 0,
            handler: Arc::new(NoHandler),
            ..SessionOptions::default()
        };
        let session = connect_with(stdio(&server), options).await;
        call(&session).await.unwrap();
    }
}

#[tokio::test]
async fn an_error_that_names_a_url_is_visited_and_the_call_repeated() {
    let error = format!(
        r#"{{"jsonrpc":"2.0","id":$id,"error":{{"code":-32042,"message":"sign in","data":{{"elicitations":[{URL}]}}}}}}"#
    );
    let witness = Arc::new(Witness {
        answer: ElicitationAnswer::Accept(None),
        ..Witness::willing()
    });
    let server = Script::new()
        .on("tools/call")
        .nth(1)
        .line(error.clone())
        .stdio();
    let session = connect_with(stdio(&server), handled_by(&witness)).await;
    call(&session).await.unwrap();
    assert_eq!(witness.asked.all()[0].1, "Sign in: https://a.example/in");

    let unwilling = Script::new().on("tools/call").line(error).stdio();
    let session = connect(stdio(&unwilling)).await;
    assert_eq!(crate::support::rpc_error(call(&session).await).code, -32042);
}
