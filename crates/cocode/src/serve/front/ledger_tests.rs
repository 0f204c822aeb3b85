//! Conversations that are cut, and what is left of them.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Ledger, Loss};

fn lines(messages: &[Value]) -> Bytes {
    let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
    Bytes::from(lines.join("\n") + "\n")
}

fn read(text: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(text).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn all(lines: &[Bytes]) -> Vec<Value> {
    lines.iter().flat_map(|line| read(line)).collect()
}

fn request(id: impl Into<Value>, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

fn answer(id: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "result": {}})
}

fn notification(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": method})
}

#[test]
fn what_is_not_answered_is_answered_with_an_error_in_order_and_no_call_is_repeated() {
    let mut ledger = Ledger::default();
    ledger.sent(&lines(&[
        request(1, "tools/call", &json!({"name": "a"})),
        request("two", "tools/call", &json!({"name": "b"})),
        request(3, "odd/method", &json!({})),
    ]));
    let passed = ledger.received(lines(&[answer(1)]));
    assert_eq!(read(&passed), [answer(1)]);
    let Loss {
        told,
        greeting,
        rest,
        news,
    } = ledger.lost(false);
    assert_eq!(news, b"", "nothing was promised");
    let told = read(&told);
    assert_eq!(told.len(), 2);
    assert_eq!((&told[0]["id"], &told[1]["id"]), (&json!("two"), &json!(3)));
    assert_eq!(told[0]["error"]["code"], json!(-32603));
    assert_eq!(told[0]["error"]["data"]["code"], json!("daemon-lost"));
    assert_eq!((greeting, rest), (None, Vec::new()));
    assert_eq!(ledger.lost(false), Loss::default(), "told once");
}

#[test]
fn a_session_is_opened_again_and_its_second_answers_are_swallowed() {
    let mut ledger = Ledger::default();
    let initialize = request(0, "initialize", &json!({"capabilities": {}}));
    let level = request(1, "logging/setLevel", &json!({"level": "debug"}));
    let one = request(2, "resources/subscribe", &json!({"uri": "a:1"}));
    let two = request(3, "resources/subscribe", &json!({"uri": "a:2"}));
    let less = request(4, "resources/unsubscribe", &json!({"uri": "a:1"}));
    let initialized = notification("notifications/initialized");
    ledger.sent(&lines(std::slice::from_ref(&initialize)));
    ledger.received(lines(&[answer(0)]));
    ledger.sent(&lines(&[
        initialized.clone(),
        level.clone(),
        one,
        two.clone(),
        less,
    ]));
    ledger.received(lines(&[answer(1), answer(2), answer(3), answer(4)]));
    let loss = ledger.lost(false);
    assert_eq!(loss.told, b"");
    assert_eq!(read(&loss.greeting.unwrap()), [initialize]);
    assert_eq!(all(&loss.rest), [initialized, level, two]);
    assert!(ledger.is_greeting());
    let news = notification("notifications/tools/list_changed");
    let passed = ledger.received(lines(&[answer(0), news.clone()]));
    assert_eq!(read(&passed), [news]);
    assert!(!ledger.is_greeting());
    let passed = ledger.received(lines(&[answer(3), answer(1), answer(9)]));
    assert_eq!(read(&passed), [answer(9)]);
}

#[test]
fn what_only_sets_something_is_answered_by_the_next_daemon() {
    let mut ledger = Ledger::default();
    let initialize = request(0, "initialize", &json!({}));
    ledger.sent(&lines(std::slice::from_ref(&initialize)));
    let loss = ledger.lost(false);
    assert_eq!((loss.told, loss.rest), (Vec::new(), Vec::new()));
    assert!(ledger.is_greeting());
    let passed = ledger.received(lines(&[answer(0)]));
    assert_eq!(read(&passed), [answer(0)], "the client has not had it yet");
    assert!(!ledger.is_greeting());
    let subscribe = request(1, "resources/subscribe", &json!({"uri": "a:1"}));
    ledger.sent(&lines(std::slice::from_ref(&subscribe)));
    let loss = ledger.lost(false);
    assert_eq!(all(&loss.rest), [subscribe]);
    let passed = ledger.received(lines(&[answer(0), answer(1)]));
    assert_eq!(read(&passed), [answer(1)]);
}

#[test]
fn what_only_reads_is_asked_once_more() {
    let mut ledger = Ledger::default();
    let list = request(1, "tools/list", &json!({}));
    let read_it = request(2, "resources/read", &json!({"uri": "a:1"}));
    let long = request(3, "prompts/get", &json!({"name": "x".repeat(70_000)}));
    ledger.sent(&lines(&[list.clone(), read_it.clone(), long]));
    let loss = ledger.lost(false);
    assert_eq!(all(&loss.rest), [list, read_it]);
    assert_eq!(read(&loss.told)[0]["id"], json!(3));
    assert_eq!(
        read(&ledger.received(lines(&[answer(1)]))),
        [answer(1)],
        "the client has not had it yet"
    );
    // It may be what nobody survives.
    let loss = ledger.lost(false);
    assert_eq!(loss.rest, Vec::<Bytes>::new());
    assert_eq!(read(&loss.told)[0]["id"], json!(2));
}

#[test]
fn what_was_refused_is_not_brought_over() {
    let mut ledger = Ledger::default();
    let refused = |id: u64| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602}});
    ledger.sent(&lines(&[
        request(0, "initialize", &json!({})),
        request(1, "logging/setLevel", &json!({"level": "loud"})),
        request(2, "resources/subscribe", &json!({"uri": "a:1"})),
        request(3, "resources/subscribe", &json!({"uri": "a:2"})),
    ]));
    ledger.received(lines(&[answer(0), refused(1), refused(2), answer(3)]));
    let rest = all(&ledger.lost(false).rest);
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(rest[0]["id"], json!(3));
}

#[test]
fn open_subscriptions_go_on_and_cancelled_requests_are_forgotten() {
    let mut ledger = Ledger::default();
    let listen = request(5, "subscriptions/listen", &json!({"notifications": {}}));
    ledger.sent(&lines(&[
        listen.clone(),
        request(6, "subscriptions/listen", &json!({})),
        request(7, "tools/call", &json!({"name": "slow"})),
    ]));
    let cancel = |id: u64| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    ledger.sent(&lines(&[cancel(6), cancel(7)]));
    let loss = ledger.lost(false);
    assert_eq!((loss.told, loss.greeting), (Vec::new(), None));
    assert_eq!(all(&loss.rest), std::slice::from_ref(&listen));
    assert_eq!(
        all(&ledger.lost(false).rest),
        [listen],
        "as often as needed"
    );
}

#[test]
fn questions_that_nobody_waits_for_are_withdrawn() {
    let mut ledger = Ledger::default();
    ledger.received(lines(&[
        request(1, "elicitation/create", &json!({})),
        request(2, "roots/list", &json!({})),
    ]));
    ledger.sent(&lines(&[answer(2)]));
    let told = read(&ledger.lost(false).told);
    let withdrawn = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}
    });
    assert_eq!(told, [withdrawn]);
}

#[test]
fn questions_that_were_withdrawn_are_forgotten() {
    let mut ledger = Ledger::default();
    let question = request(1, "elicitation/create", &json!({}));
    let mut withdrawn = notification("notifications/cancelled");
    withdrawn["params"] = json!({"requestId": 1});
    let said = lines(&[question, withdrawn]);
    assert_eq!(ledger.received(said.clone()), said);
    assert_eq!(ledger.lost(false), Loss::default());
}

#[test]
fn a_second_introduction_counts_only_if_it_is_not_refused() {
    let mut ledger = Ledger::default();
    let first = request(0, "initialize", &json!({"first": true}));
    let second = request(7, "initialize", &json!({"first": false}));
    let subscribe = request(1, "resources/subscribe", &json!({"uri": "a:1"}));
    let refused = json!({"jsonrpc": "2.0", "id": 7, "error": {"code": -32600}});
    ledger.sent(&lines(&[first.clone(), subscribe.clone(), second.clone()]));
    ledger.received(lines(&[answer(0), answer(1), refused]));
    let loss = ledger.lost(false);
    assert_eq!(read(&loss.greeting.unwrap()), [first]);
    assert_eq!(all(&loss.rest), [subscribe]);
    ledger.received(lines(&[answer(0), answer(1)]));
    ledger.sent(&lines(std::slice::from_ref(&second)));
    ledger.received(lines(&[answer(7)]));
    let loss = ledger.lost(false);
    assert_eq!(read(&loss.greeting.unwrap()), [second]);
    assert_eq!(all(&loss.rest), Vec::<Value>::new());
}

#[test]
fn clients_hear_that_lists_may_be_others_where_another_daemon_goes_on() {
    let mut ledger = Ledger::default();
    let introduced = json!({"capabilities": {"tools": {"listChanged": true}, "prompts": {}}});
    ledger.sent(&lines(&[request(0, "initialize", &json!({}))]));
    ledger.received(lines(&[
        json!({"jsonrpc": "2.0", "id": 0, "result": introduced}),
    ]));
    assert_eq!(ledger.lost(false).news, b"", "it has no lists yet");
    // What another daemon promises is not what the client was promised.
    ledger.received(lines(&[answer(0)]));
    ledger.sent(&lines(&[notification("notifications/initialized")]));
    let news = read(&ledger.lost(false).news);
    assert_eq!(news, [notification("notifications/tools/list_changed")]);
}

#[test]
fn subscriptions_are_acknowledged_once_and_hear_that_lists_may_be_others() {
    let mut ledger = Ledger::default();
    let wanted = json!({"notifications": {"promptsListChanged": true}});
    let about = |method: &str| {
        let mut told = notification(method);
        told["params"] = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": 5}});
        told
    };
    let acknowledged = about("notifications/subscriptions/acknowledged");
    ledger.sent(&lines(&[request(5, "subscriptions/listen", &wanted)]));
    assert!(!ledger.awaits_answers());
    let passed = ledger.received(lines(std::slice::from_ref(&acknowledged)));
    assert_eq!(read(&passed), std::slice::from_ref(&acknowledged));
    for _ in 0..2 {
        assert_eq!(ledger.lost(false).news, b"");
        let others = notification("notifications/progress");
        let passed = ledger.received(lines(&[others.clone(), acknowledged.clone()]));
        let news = about("notifications/prompts/list_changed");
        assert_eq!(read(&passed), [others, news]);
    }
}

#[test]
fn a_client_that_has_said_everything_waits_for_its_answers() {
    let mut ledger = Ledger::default();
    let list = request(1, "tools/list", &json!({}));
    let call = request(2, "tools/call", &json!({}));
    ledger.sent(&lines(&[list.clone(), call]));
    assert!(ledger.awaits_answers());
    let loss = ledger.lost(false);
    assert_eq!(read(&loss.told)[0]["id"], json!(2));
    assert!(ledger.awaits_answers(), "the list is asked for once more");
    ledger.received(lines(&[answer(1)]));
    assert!(!ledger.awaits_answers());
}

#[test]
fn lists_of_messages_count_one_by_one() {
    let mut ledger = Ledger::default();
    let batch = json!([
        request(1, "tools/call", &json!({})),
        request(2, "tools/call", &json!({}))
    ]);
    ledger.sent(&lines(&[batch]));
    ledger.received(lines(&[json!([answer(1)])]));
    let told = read(&ledger.lost(false).told);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["id"], json!(2));
}

#[test]
fn an_answer_that_was_passed_on_in_part_is_lost_if_its_end_never_comes() {
    for is_cut in [true, false] {
        let mut ledger = Ledger::default();
        let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"}}"#;
        ledger.sent(&Bytes::from(format!("{call}\n")));
        let begin = Bytes::from_static(br#"{"jsonrpc":"2.0","id":7,"result":{"content":["#);
        assert_eq!(ledger.received(begin.clone()), begin);
        let told = read(&ledger.lost(is_cut).told);
        let ids: Vec<_> = told.iter().map(|answer| answer["id"].clone()).collect();
        let expected: &[i32] = if is_cut { &[7] } else { &[] };
        assert_eq!(ids, expected);
    }
}

#[test]
fn an_introduction_that_another_daemon_refuses_is_made_again_and_never_forgotten() {
    let mut ledger = Ledger::default();
    let introduction = request(1, "initialize", &json!({}));
    ledger.sent(&lines(std::slice::from_ref(&introduction)));
    ledger.received(lines(&[answer(1)]));
    ledger.lost(false);
    assert!(ledger.is_greeting());
    let refused = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no"}});
    assert_eq!(ledger.received(lines(&[refused])), Bytes::new());
    assert!(!ledger.is_greeting());
    let again = ledger.introduction_again().unwrap();
    assert_eq!(read(&again), std::slice::from_ref(&introduction));
    assert!(ledger.is_greeting());
    assert_eq!(ledger.received(lines(&[answer(1)])), Bytes::new());
    assert_eq!(ledger.introduction_again(), None);
    assert_eq!(read(&ledger.lost(false).greeting.unwrap()), [introduction]);
}

#[test]
fn a_daemon_that_leaves_says_so_to_the_front_alone() {
    let mut ledger = Ledger::default();
    let news = notification("notifications/tools/list_changed");
    let leaving = json!({"cocode": "leaving"});
    let odd = json!({"cocode": "leaving", "and": 1});
    let passed = ledger.received(lines(&[news.clone(), odd.clone()]));
    assert_eq!(read(&passed), [news.clone(), odd]);
    assert!(!ledger.is_leaving());
    let passed = ledger.received(lines(&[news.clone(), leaving, answer(1)]));
    assert_eq!(read(&passed), [news, answer(1)]);
    assert!(ledger.is_leaving());
    ledger.lost(false);
    assert!(!ledger.is_leaving(), "the next one stays");
}
