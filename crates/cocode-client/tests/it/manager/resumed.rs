//! Calls whose answers were under way when their server died, and could not be resumed.

use cocode_client::{CallEnd, CallError, Event, Retry, StateKind};
use cocode_testkit::{Gate, Script, SseEvent};

use crate::manager::faulty::Transport;
use crate::manager::story::{ONE, assert_echoed, echo, only, without_pings};

const LOG: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"half way"}}"#;

#[tokio::test]
async fn a_call_whose_answer_cannot_be_resumed_is_not_made_again() {
    let gate = Gate::new();
    let script = Script::new()
        .on("tools/call")
        .stream()
        .event(SseEvent::data(LOG).id("event-1").retry(10))
        .hold(&gate);
    let (server, manager, mut story) = only(Transport::Http, &script, without_pings()).await;
    let (outcome, ()) = tokio::join!(echo(&manager), async {
        let is_log = |event| matches!(event, Event::LogReceived { .. }).then_some(());
        story.hears("the log message", is_log).await;
        server.take_down();
        // Nobody notices before resuming is given up.
        story.reaches(ONE, StateKind::Reconnecting).await;
        server.restart(&Script::new());
        story.reaches(ONE, StateKind::Ready).await;
    });
    let error = outcome.unwrap_err();
    let CallError::Request { error: reason, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(reason.retry(), Retry::MayHaveRun, "{reason:?}");
    assert!(
        error.for_model().contains("may have run or not"),
        "{error:?}"
    );
    assert_eq!(story.ends().await, [CallEnd::Failed(error.code())]);
    assert_eq!(server.heard("tools/call"), 1);
    assert_echoed("the next one", echo(&manager).await);
    assert_eq!(server.heard("tools/call"), 2);
}
