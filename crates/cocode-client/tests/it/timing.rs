//! Deadlines, on a clock that the tests control.

use std::sync::Arc;
use std::time::Duration;

use cocode_client::{
    Answer, ClientCapabilities, Deadlines, Elicitation, ElicitationAnswer, Handler, MAX_IN_FLIGHT,
    RequestError, RequestOptions, SessionOptions, Timeouts,
};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::peer::Peer;
use crate::support::{assert_timeout, call, call_with};

const SECOND: Duration = Duration::from_secs(1);
const DONE: &str = r#"{"resultType":"complete","content":[]}"#;
const FORM: &str = r#"{"message":"Who?","requestedSchema":{"type":"object"}}"#;

fn deadlines(idle: u32, total: u32) -> RequestOptions {
    RequestOptions {
        deadlines: Some(Deadlines {
            idle: idle * SECOND,
            total: total * SECOND,
        }),
        ..RequestOptions::default()
    }
}

#[tokio::test(start_paused = true)]
async fn progress_keeps_a_call_alive() {
    let (session, mut peer) = Peer::legacy(SessionOptions::default()).await;
    let serving = async {
        let request = peer.expect("tools/call").await;
        for report in 1..=5 {
            sleep(8 * SECOND).await;
            peer.progress(&request, report).await;
        }
        sleep(8 * SECOND).await;
        peer.result(&request, DONE).await;
    };
    let (outcome, ()) = tokio::join!(call_with(&session, deadlines(10, 60)), serving);
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn progress_keeps_no_call_alive_for_ever() {
    let (session, mut peer) = Peer::legacy(SessionOptions::default()).await;
    let serving = async {
        let request = peer.expect("tools/call").await;
        for report in 1.. {
            tokio::select! {
                () = sleep(8 * SECOND) => peer.progress(&request, report).await,
                cancelled = peer.expect("notifications/cancelled") => {
                    assert_eq!(cancelled["params"]["requestId"], request["id"]);
                    break;
                }
            }
        }
    };
    let (outcome, ()) = tokio::join!(call_with(&session, deadlines(10, 60)), serving);
    match outcome {
        Err(RequestError::Timeout { after, .. }) => assert_eq!(after, 60 * SECOND),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_without_progress_ends_when_idle() {
    let (session, mut peer) = Peer::legacy(SessionOptions::default()).await;
    let serving = async {
        let request = peer.expect("tools/call").await;
        sleep(8 * SECOND).await;
        peer.progress(&request, 1).await;
        peer.expect("notifications/cancelled").await;
    };
    let (outcome, ()) = tokio::join!(call_with(&session, deadlines(10, 60)), serving);
    match outcome {
        Err(RequestError::Timeout { after, .. }) => assert_eq!(after, 10 * SECOND),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_no_calls_end_after_half_a_minute() {
    let (session, mut peer) = Peer::legacy(SessionOptions::default()).await;
    let (outcome, _request) = tokio::join!(session.tools(), peer.expect("tools/list"));
    match outcome {
        Err(RequestError::Timeout { after, .. }) => assert_eq!(after, 30 * SECOND),
        other => panic!("{other:?}"),
    }
}

/// Takes ten minutes to answer anything.
struct Slow(ElicitationAnswer);

impl Handler for Slow {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities {
            elicitation_form: true,
            ..ClientCapabilities::default()
        }
    }

    fn elicit(&self, _request: Elicitation) -> Answer<'_, ElicitationAnswer> {
        Box::pin(async {
            sleep(600 * SECOND).await;
            self.0.clone()
        })
    }
}

/// Options with a slow person, who may take this long.
fn slow_person(patience: Duration) -> SessionOptions {
    SessionOptions {
        handler: Arc::new(Slow(ElicitationAnswer::Decline)),
        timeouts: Timeouts {
            answer: patience,
            ..Timeouts::default()
        },
        ..SessionOptions::default()
    }
}

async fn ask(peer: &mut Peer) -> Value {
    peer.write(&format!(
        r#"{{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{FORM}}}"#
    ))
    .await;
    let answer = peer.read().await;
    assert_eq!(answer["id"], "q");
    answer["result"]["action"].clone()
}

#[tokio::test(start_paused = true)]
async fn the_clock_stands_still_while_a_person_answers() {
    let (session, mut peer) = Peer::legacy(slow_person(1000 * SECOND)).await;
    let serving = async {
        let request = peer.expect("tools/call").await;
        sleep(9 * SECOND).await;
        assert_eq!(ask(&mut peer).await, "decline");
        peer.result(&request, DONE).await;
    };
    let (outcome, ()) = tokio::join!(call_with(&session, deadlines(10, 10)), serving);
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_clock_goes_on_after_the_person_has_answered() {
    let (session, mut peer) = Peer::legacy(slow_person(1000 * SECOND)).await;
    let serving = async {
        peer.expect("tools/call").await;
        ask(&mut peer).await;
        peer.expect("notifications/cancelled").await;
    };
    let (outcome, ()) = tokio::join!(call_with(&session, deadlines(10, 10)), serving);
    assert_timeout(outcome);
}

#[tokio::test(start_paused = true)]
async fn a_person_who_never_answers_cancels() {
    let (session, mut peer) = Peer::legacy(slow_person(100 * SECOND)).await;
    let serving = async {
        let request = peer.expect("tools/call").await;
        assert_eq!(ask(&mut peer).await, "cancel");
        peer.result(&request, DONE).await;
    };
    let (outcome, ()) = tokio::join!(call_with(&session, deadlines(10, 10)), serving);
    outcome.unwrap();
}

/// A stateless server that takes this long for each attempt, and asks once in between.
async fn input_with_attempts_of(seconds: u32) -> Result<cocode_client::CallResult, RequestError> {
    let (session, mut peer) = Peer::modern(slow_person(1000 * SECOND)).await;
    let required = format!(
        r#"{{"resultType":"input_required","inputRequests":{{"q":{{"method":"elicitation/create","params":{FORM}}}}}}}"#
    );
    let serving = async {
        for result in [required.as_str(), DONE] {
            let request = peer.expect("tools/call").await;
            sleep(seconds * SECOND).await;
            peer.result(&request, result).await;
        }
    };
    let calling = call_with(&session, deadlines(10, 10));
    tokio::select! {
        outcome = calling => outcome,
        () = async { serving.await; std::future::pending().await } => unreachable!(),
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_person_between_attempts_is_not_counted() {
    input_with_attempts_of(4).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn all_attempts_together_have_one_deadline() {
    assert_timeout(input_with_attempts_of(6).await);
}

#[tokio::test(start_paused = true)]
async fn an_endless_deadline_is_possible() {
    let (session, mut peer) = Peer::legacy(SessionOptions::default()).await;
    let options = RequestOptions {
        deadlines: Some(Deadlines::fixed(Duration::MAX)),
        ..RequestOptions::default()
    };
    let serving = async {
        let request = peer.expect("tools/call").await;
        sleep(Duration::from_hours(24)).await;
        peer.result(&request, DONE).await;
    };
    let (outcome, ()) = tokio::join!(call_with(&session, options), serving);
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_place_ends_with_the_deadline_too() {
    let (session, mut peer) = Peer::legacy(SessionOptions::default()).await;
    let mut calls = JoinSet::new();
    for _ in 0..MAX_IN_FLIGHT {
        let session = session.clone();
        calls.spawn(async move { call(&session).await.map(drop) });
    }
    let mut requests = Vec::new();
    for _ in 0..MAX_IN_FLIGHT {
        requests.push(peer.expect("tools/call").await);
    }
    assert_timeout(call_with(&session, deadlines(10, 10)).await);
    // A place that becomes free is taken.
    let serving = async {
        sleep(SECOND).await;
        peer.result(&requests[0], DONE).await;
        let late = peer.expect("tools/call").await;
        peer.result(&late, DONE).await;
    };
    let (outcome, ()) = tokio::join!(call_with(&session, deadlines(10, 10)), serving);
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_nothing_costs_the_deadline() {
    let (session, peer) = Peer::legacy(SessionOptions::default()).await;
    let long = crate::support::raw(&format!(r#"{{"x":"{}"}}"#, "x".repeat(900_000)));
    for _ in 0..5 {
        let outcome = session
            .call_tool("echo", Some(&long), deadlines(10, 10))
            .await;
        assert_timeout(outcome);
    }
    let notifying = session.notify("notifications/x", Some(&long)).await;
    assert_timeout(notifying);
    drop(peer);
    let closed = timeout(60 * SECOND, session.closed()).await;
    assert!(closed.is_ok());
}
