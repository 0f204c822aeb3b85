//! Turns that wait for an answer while no request does: handles, and what may go wrong with them.

use std::time::Duration;

use serde_json::{Value, json};

use super::Stage;
use super::hand::{Hand, session_of, text_in};

fn elicitation() -> Value {
    json!({ "elicitation": { "form": {} } })
}

fn go() -> Value {
    json!({ "prompt": "go" })
}

/// Answers the one question of a result.
fn answers(result: &Value, word: &str) -> Value {
    let requests = result["inputRequests"].as_object().unwrap();
    let key = requests.keys().next().unwrap();
    json!({ key: { "action": "accept", "content": { "decision": word } } })
}

async fn asked(stage: &Stage) -> (Hand, Value) {
    let command = json!({ "command": "touch a" });
    stage.puppet().calls(&[("1", "shell", command)]);
    let mut hand = Hand::modern(&stage.server, elicitation());
    let result = hand.call("cocode", go()).await;
    assert_eq!(result["resultType"], "input_required", "{result}");
    (hand, result)
}

fn wrong_of(answer: &Value) -> &str {
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    answer["error"]["message"].as_str().unwrap()
}

#[tokio::test]
async fn a_handle_is_good_once_and_for_the_same_call() {
    let stage = Stage::asking();
    let (mut hand, result) = asked(&stage).await;
    stage.puppet().says("Done.");
    let state = &result["requestState"];
    assert!(state.as_str().unwrap().len() >= 32, "{state}");
    let yes = answers(&result, "once");
    let other = json!({ "prompt": "something else" });
    let wrong = hand.come_back("cocode", other, state, yes.clone()).await;
    assert!(wrong_of(&wrong).contains("another call"), "{wrong}");
    let reply = json!({ "session_id": "x", "message": "m" });
    let wrong = hand
        .come_back("cocode-reply", reply, state, yes.clone())
        .await;
    assert!(wrong_of(&wrong).contains("another call"), "{wrong}");
    for nonsense in [json!("deadbeef"), json!(7), json!({})] {
        let wrong = hand.come_back("cocode", go(), &nonsense, yes.clone()).await;
        assert!(wrong_of(&wrong).contains("unknown"), "{wrong}");
    }
    let wrong = hand.come_back("cocode", go(), state, json!([])).await;
    assert!(wrong_of(&wrong).contains("`inputResponses`"), "{wrong}");
    // None of this has used the handle up.
    let done = hand.come_back("cocode", go(), state, yes.clone()).await;
    assert_eq!(text_in(&done["result"]), "Done.");
    let again = hand.come_back("cocode", go(), state, yes).await;
    assert!(wrong_of(&again).contains("was used before"), "{again}");
}

#[tokio::test]
async fn answers_without_a_handle_answer_nothing() {
    let stage = Stage::asking();
    let mut hand = Hand::modern(&stage.server, elicitation());
    let params = json!({ "name": "cocode", "arguments": go(), "inputResponses": {} });
    let wrong = hand.ask("tools/call", params).await;
    assert!(wrong_of(&wrong).contains("`requestState`"), "{wrong}");
}

#[tokio::test]
async fn who_comes_back_without_the_answer_is_asked_again() {
    let stage = Stage::asking();
    let (mut hand, result) = asked(&stage).await;
    stage.puppet().says("Done.");
    let state = &result["requestState"];
    let unasked = json!({ "question-99": { "action": "accept" } });
    let again = hand.come_back("cocode", go(), state, unasked).await;
    let again = &again["result"];
    assert_eq!(again["inputRequests"], result["inputRequests"]);
    assert_ne!(again["requestState"], result["requestState"]);
    let yes = answers(again, "once");
    let done = hand
        .come_back("cocode", go(), &again["requestState"], yes)
        .await;
    assert_eq!(text_in(&done["result"]), "Done.");
}

#[tokio::test]
async fn who_cannot_be_asked_any_more_is_not() {
    let stage = Stage::asking();
    let (mut hand, result) = asked(&stage).await;
    stage.puppet().says("Then not.");
    hand.can_now(json!({}));
    let state = &result["requestState"];
    let done = hand.come_back("cocode", go(), state, json!({})).await;
    assert_eq!(text_in(&done["result"]), "Then not.");
    let results = stage.puppet().seen()[1].results();
    assert!(results[0].contains("nobody can be asked"), "{results:?}");
}

#[tokio::test]
async fn who_says_something_new_gives_up_what_was_asked() {
    let stage = Stage::asking();
    let (mut hand, asked) = asked(&stage).await;
    let listed = hand.ask("resources/list", json!({})).await;
    let resource = &listed["result"]["resources"][0];
    let told = resource["description"].as_str().unwrap();
    assert!(told.contains("a turn is going on"), "{told}");
    let id = resource["uri"]
        .as_str()
        .unwrap()
        .rsplit('/')
        .next()
        .unwrap();
    let reply = json!({ "session_id": id, "message": "hurry" });
    stage.puppet().says("Fine.");
    let gone_on = hand.call("cocode-reply", reply).await;
    assert_eq!(text_in(&gone_on), "Fine.");
    // The question went with its turn, as whoever answers it all the same is told.
    let yes = answers(&asked, "once");
    let late = hand
        .come_back("cocode", go(), &asked["requestState"], yes)
        .await;
    let late = &late["result"];
    assert!(text_in(late).contains("interrupted"), "{late}");
    assert!(!stage.scene.work().join("a").exists());
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_in_time_interrupts_the_turn() {
    let stage = Stage::asking();
    let (mut hand, result) = asked(&stage).await;
    tokio::time::sleep(Duration::from_mins(11)).await;
    // Who comes late learns what became of it, and goes on.
    let yes = answers(&result, "once");
    let late = hand
        .come_back("cocode", go(), &result["requestState"], yes)
        .await;
    let late = &late["result"];
    assert_eq!(late["isError"], true, "{late}");
    assert_eq!(late["_meta"]["cocode/usage"]["ending"], "interrupted");
    assert!(!stage.scene.work().join("a").exists());
    stage.puppet().says("Here again.");
    let reply = json!({ "session_id": session_of(late), "message": "sorry" });
    let next = hand.call("cocode-reply", reply).await;
    assert_eq!(text_in(&next), "Here again.");
}

#[tokio::test(start_paused = true)]
async fn a_handle_expires() {
    let stage = Stage::asking();
    let (mut hand, result) = asked(&stage).await;
    tokio::time::sleep(Duration::from_mins(61)).await;
    let yes = answers(&result, "once");
    let late = hand
        .come_back("cocode", go(), &result["requestState"], yes)
        .await;
    assert!(wrong_of(&late).contains("has expired"), "{late}");
}

#[tokio::test]
async fn the_longest_parked_turn_makes_room() {
    let stage = Stage::asking();
    let (mut hand, first) = asked(&stage).await;
    for _ in 0..32 {
        let command = json!({ "command": "touch a" });
        stage.puppet().calls(&[("1", "shell", command)]);
        let result = hand.call("cocode", go()).await;
        assert_eq!(result["resultType"], "input_required");
    }
    let yes = answers(&first, "once");
    let gone = hand
        .come_back("cocode", go(), &first["requestState"], yes)
        .await;
    assert!(wrong_of(&gone).contains("unknown"), "{gone}");
}

#[tokio::test]
async fn the_end_of_a_connection_ends_what_was_parked_on_it() {
    let stage = Stage::asking();
    let (hand, _) = asked(&stage).await;
    hand.leave().await;
    let mut other = Hand::modern(&stage.server, elicitation());
    // The conversation is let go of when its turn has ended.
    loop {
        let listed = other.ask("resources/list", json!({})).await;
        let resource = listed["result"]["resources"][0].clone();
        let told = resource["description"].as_str().unwrap();
        if !told.contains("a turn is going on") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!stage.scene.work().join("a").exists());
}
