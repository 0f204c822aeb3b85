//! Clients on byte streams: well-behaved, hasty, broken, slow and gone.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::{LineOptions, serve_lines};
use crate::error::Closed;
use crate::limits::{MAX_BATCH_MESSAGES, MAX_QUEUED_BYTES, MAX_REQUESTS_IN_FLIGHT};
use crate::serve::connection::Patience;
use crate::serve::scripted::{Script, Seen, scripted};

struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    sink: WriteHalf<DuplexStream>,
    script: Script,
    shutdown: Option<oneshot::Sender<()>>,
    server: JoinSet<Closed>,
}

fn connect(options: LineOptions) -> Client {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (endpoint, script) = scripted();
    let (shutdown, asked) = oneshot::channel::<()>();
    let mut server = JoinSet::new();
    server.spawn(async move {
        let (source, sink) = tokio::io::split(theirs);
        let shutdown = async {
            if asked.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        serve_lines(source, sink, &endpoint, options, shutdown).await
    });
    let (source, sink) = tokio::io::split(ours);
    Client {
        lines: BufReader::new(source).lines(),
        sink,
        script,
        shutdown: Some(shutdown),
        server,
    }
}

fn with_patience(patience: Patience) -> LineOptions {
    LineOptions {
        patience,
        ..LineOptions::default()
    }
}

fn request(id: impl std::fmt::Display, method: &str, params: impl std::fmt::Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

fn result(id: impl std::fmt::Display, result: impl std::fmt::Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn error(id: &str, code: i64, message: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#)
}

impl Client {
    async fn send(&mut self, text: impl AsRef<[u8]>) {
        self.sink.write_all(text.as_ref()).await.expect("a server");
        self.sink.write_all(b"\n").await.expect("a server");
    }

    async fn receive(&mut self) -> String {
        self.lines
            .next_line()
            .await
            .expect("text")
            .expect("a server")
    }

    /// Sends `text` and gives the next line that comes.
    async fn ask(&mut self, text: impl AsRef<[u8]>) -> String {
        self.send(text).await;
        self.receive().await
    }

    async fn leave(mut self) -> (Closed, Vec<Seen>) {
        drop((self.sink, self.lines));
        let reason = self.server.join_next().await.expect("a server");
        let mut seen = Vec::new();
        while let Some(Some(next)) = self.script.seen.recv().now_or_never() {
            seen.push(next);
        }
        (reason.expect("no panic"), seen)
    }

    async fn closed(&mut self) -> Closed {
        let reason = self.server.join_next().await.expect("a server");
        reason.expect("no panic")
    }
}

#[tokio::test]
async fn requests_are_served_at_once_and_answered_when_ready() {
    let mut client = connect(LineOptions::default());
    client.send(request(1, "wait", r#"{"n":1.10}"#)).await;
    assert_eq!(
        client.ask(request(r#""b""#, "echo", "{}")).await,
        result(r#""b""#, "{}")
    );
    client.script.open_gate();
    assert_eq!(client.receive().await, result(1, r#"{"n":1.10}"#));
}

#[tokio::test]
async fn notifications_and_responses_reach_the_conversation_in_order() {
    let mut client = connect(LineOptions::default());
    client.send(r#"{"jsonrpc":"2.0","method":"one"}"#).await;
    client.send(r#"{"jsonrpc":"2.0","id":5,"result":{}}"#).await;
    client.send(request(6, "wait", 1)).await;
    client.send(r#"{"jsonrpc":"2.0","method":"two"}"#).await;
    assert_eq!(client.script.next().await, Seen::Notification("one".into()));
    let response = r#"{"jsonrpc":"2.0","id":5,"result":{}}"#.into();
    assert_eq!(client.script.next().await, Seen::Response(response));
    assert_eq!(client.script.next().await, Seen::Request("6".into()));
    assert_eq!(client.script.next().await, Seen::Notification("two".into()));
}

#[tokio::test]
async fn what_a_request_says_comes_before_its_answer() {
    let mut client = connect(LineOptions::default());
    let told = r#"{"jsonrpc":"2.0","method":"told","params":[1]}"#;
    assert_eq!(client.ask(request(1, "tell", "[1]")).await, told);
    assert_eq!(client.receive().await, result(1, "[1]"));
}

#[tokio::test]
async fn the_outlet_reaches_the_client_until_the_connection_ends() {
    let mut client = connect(LineOptions::default());
    client.ask(request(1, "echo", 1)).await;
    let outlet = client.script.outlet();
    assert!(outlet.send(Bytes::from_static(b"{\n}")));
    assert_eq!(client.receive().await, "{ }");
    client.leave().await;
    assert!(!outlet.send(Bytes::from_static(b"{}")));
}

#[tokio::test]
async fn texts_that_are_no_messages_are_answered_with_errors() {
    let mut client = connect(LineOptions::default());
    for (text, id, code) in [
        ("{", "null", -32700),
        ("no JSON", "null", -32700),
        ("[1,", "null", -32700),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"x",,}"#,
            r#""a""#,
            -32700,
        ),
        (r#"{"jsonrpc":"2.0","id":3,"result":{,}"#, "null", -32700),
        (r#"{"jsonrpc":"2.0","id":4}"#, "4", -32600),
        (r#"{"id":5,"method":5}"#, "5", -32600),
        ("7", "null", -32600),
    ] {
        let answer = client.ask(text).await;
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"#);
        assert!(answer.starts_with(&expected), "{text}: {answer}");
    }
    assert_eq!(client.ask(request(8, "echo", 1)).await, result(8, 1));
}

#[tokio::test]
async fn a_line_over_the_cap_is_answered_and_the_next_one_is_served() {
    let mut client = connect(LineOptions {
        max_frame: 100,
        ..LineOptions::default()
    });
    let large = request(r#""x""#, "echo", format!(r#""{}""#, "x".repeat(200_000)));
    let message = "the message is over the cap of 100 bytes";
    assert_eq!(
        client.ask(large).await,
        error(r#""x""#, -32600, message),
        "the id is kept"
    );
    assert_eq!(client.ask(request(2, "echo", 1)).await, result(2, 1));
}

#[tokio::test]
async fn a_batch_is_answered_by_one_array_when_all_of_it_is_ready() {
    let mut client = connect(LineOptions::default());
    let batch = [
        request(1, "wait", 1),
        r#"{"jsonrpc":"2.0","method":"note"}"#.into(),
        request(2, "echo", 2),
        "3".into(),
    ];
    client.send(format!("[{}]", batch.join(","))).await;
    assert_eq!(
        client.ask(request(4, "echo", 4)).await,
        result(4, 4),
        "the batch is not ready"
    );
    client.script.open_gate();
    let answer = client.receive().await;
    let members: Vec<serde_json::Value> = serde_json::from_str(&answer).expect("an array");
    assert_eq!(members.len(), 3, "{answer}");
    assert_eq!(members[0]["error"]["code"], -32600, "{answer}");
    assert_eq!(members[1]["result"], 2, "{answer}");
    assert_eq!(members[2]["result"], 1, "{answer}");
    assert_eq!(client.script.next().await, Seen::Request("1".into()));
    assert_eq!(
        client.script.next().await,
        Seen::Notification("note".into())
    );
}

#[tokio::test]
async fn batches_that_ask_nothing_or_too_much_are_told_so() {
    let mut client = connect(LineOptions::default());
    client
        .send(r#"[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":1,"result":1}]"#)
        .await;
    assert_eq!(
        client.ask("[]").await,
        error("null", -32600, "an empty batch")
    );
    let member = request(1, "echo", 1);
    let most = vec![member.as_str(); MAX_BATCH_MESSAGES].join(",");
    let answer = client.ask(format!("[{most}]")).await;
    let answers: Vec<serde_json::Value> = serde_json::from_str(&answer).expect("an array");
    assert_eq!(answers.len(), MAX_BATCH_MESSAGES);
    let answer = client.ask(format!("[{most},{member}]")).await;
    assert!(answer.contains(r#""code":-32600"#), "{answer}");
    assert!(answer.contains("a batch of more than"), "{answer}");
}

#[tokio::test]
async fn requests_beyond_the_limit_are_refused_while_everything_else_gets_through() {
    let mut client = connect(LineOptions::default());
    for id in 0..MAX_REQUESTS_IN_FLIGHT {
        client.send(request(id, "wait", id)).await;
        assert_eq!(client.script.next().await, Seen::Request(id.to_string()));
    }
    let refused = error(r#""one""#, -32603, "too many requests at once");
    assert_eq!(client.ask(request(r#""one""#, "echo", 1)).await, refused);
    let batch = format!("[{}]", request(r#""one""#, "echo", 1));
    assert_eq!(client.ask(batch).await, format!("[{refused}]"));
    client
        .send(r#"{"jsonrpc":"2.0","method":"cancelled"}"#)
        .await;
    assert_eq!(
        client.script.next().await,
        Seen::Notification("cancelled".into())
    );
    client.script.open_gate();
    for _answer in 0..MAX_REQUESTS_IN_FLIGHT {
        let answer = client.receive().await;
        assert!(answer.contains("result"), "{answer}");
    }
    assert_eq!(
        client.ask(request(r#""two""#, "echo", 2)).await,
        result(r#""two""#, 2)
    );
}

#[tokio::test]
async fn many_requests_that_come_at_once_are_not_too_many_if_they_are_answered_at_once() {
    let mut client = connect(LineOptions::default());
    let n_requests = 4 * MAX_REQUESTS_IN_FLIGHT;
    let requests: Vec<String> = (0..n_requests).map(|id| request(id, "echo", id)).collect();
    // The pipe holds less than all of it: the server takes whatever is there.
    let text = requests.join("\n");
    let sending = async {
        client.sink.write_all(text.as_bytes()).await.expect("open");
        client.sink.write_all(b"\n").await.expect("open");
    };
    let lines = &mut client.lines;
    let receiving = async {
        for id in 0..n_requests {
            let line = lines.next_line().await.expect("text").expect("a server");
            assert_eq!(line, result(id, id));
        }
    };
    tokio::join!(sending, receiving);
}

#[tokio::test]
async fn nothing_is_sent_for_a_request_that_was_cancelled() {
    let mut client = connect(with_patience(Patience {
        max_in_flight: 1,
        ..Patience::default()
    }));
    client.send(request(1, "cancelled", 1)).await;
    assert_eq!(client.script.next().await, Seen::Request("1".into()));
    client
        .send(format!("[{}]", request(2, "cancelled", 1)))
        .await;
    assert_eq!(client.script.next().await, Seen::Request("2".into()));
    assert_eq!(
        client.ask(request(3, "echo", 3)).await,
        result(3, 3),
        "it makes room for others"
    );
}

#[tokio::test]
async fn when_the_input_ends_the_conversation_ends_and_requests_are_dropped() {
    let mut client = connect(LineOptions::default());
    client.send(request(1, "wait", 1)).await;
    client.ask(request(2, "echo", 1)).await;
    let (reason, seen) = client.leave().await;
    assert!(matches!(reason, Closed::ByPeer), "{reason:?}");
    let expected = [
        Seen::Request("1".into()),
        Seen::Request("2".into()),
        Seen::Ended,
        Seen::Dropped("1".into()),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_last_line_without_its_newline_is_answered() {
    let mut client = connect(LineOptions::default());
    client
        .sink
        .write_all(request(1, "echo", 1).as_bytes())
        .await
        .expect("a server");
    client.sink.shutdown().await.expect("a server");
    assert_eq!(client.receive().await, result(1, 1));
    assert!(matches!(client.closed().await, Closed::ByPeer));
    assert!(client.lines.next_line().await.expect("text").is_none());
}

#[tokio::test]
async fn a_patient_server_answers_after_the_input_has_ended() {
    let mut client = connect(with_patience(Patience {
        linger: Duration::from_hours(1),
        ..Patience::default()
    }));
    client.send(request(1, "wait", 1)).await;
    client.sink.shutdown().await.expect("a server");
    assert_eq!(client.script.next().await, Seen::Request("1".into()));
    client.script.open_gate();
    assert_eq!(client.receive().await, result(1, 1));
    assert!(matches!(client.closed().await, Closed::ByPeer));
}

#[tokio::test]
async fn subscriptions_are_not_waited_for_when_the_input_has_ended() {
    let mut client = connect(with_patience(Patience {
        linger: Duration::from_hours(1),
        ..Patience::default()
    }));
    client.send(request(1, "subscriptions/listen", 1)).await;
    client.ask(request(2, "echo", 1)).await;
    let (reason, seen) = client.leave().await;
    assert!(matches!(reason, Closed::ByPeer), "{reason:?}");
    assert_eq!(seen.last(), Some(&Seen::Dropped("1".into())));
}

#[tokio::test]
async fn subscriptions_are_waited_for_at_the_end_of_a_server_where_that_is_wanted() {
    for awaits_subscriptions in [true, false] {
        let mut client = connect(with_patience(Patience {
            drain: Duration::from_hours(1),
            awaits_subscriptions,
            ..Patience::default()
        }));
        client.send(request(1, "subscriptions/listen", 1)).await;
        client.ask(request(2, "echo", 1)).await;
        if awaits_subscriptions {
            client.script.open_gate();
        }
        let shutdown = client.shutdown.take().expect("it is asked once");
        shutdown.send(()).expect("a server");
        if awaits_subscriptions {
            assert_eq!(client.receive().await, result(1, 1));
        }
        assert!(matches!(client.closed().await, Closed::ByUs));
    }
}

#[tokio::test]
async fn what_was_read_before_is_served_first() {
    let unread = format!(
        "{}\n{{\"jsonrpc\":\"2.0\",\"method\":",
        request(1, "echo", 1)
    );
    let mut client = connect(LineOptions {
        unread: unread.into(),
        ..LineOptions::default()
    });
    assert_eq!(client.receive().await, result(1, 1));
    client.send(r#""rest"}"#).await;
    assert_eq!(client.script.next().await, Seen::Request("1".into()));
    assert_eq!(
        client.script.next().await,
        Seen::Notification("rest".into())
    );
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_read_from_and_loses_no_answer() {
    let mut client = connect(LineOptions::default());
    let size = MAX_QUEUED_BYTES / 4;
    for id in 0..50 {
        client.send(request(id, "large", size)).await;
    }
    let mut n_served = 0;
    // What the server wants to do, it has done when nothing else can run.
    for _turn in 0..1000 {
        tokio::task::yield_now().await;
        while let Some(Some(_seen)) = client.script.seen.recv().now_or_never() {
            n_served += 1;
        }
    }
    // One read brought them all: what was read is served, but nothing after it.
    client.send(request("\"late\"", "echo", 1)).await;
    for _turn in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(client.script.seen.recv().now_or_never().is_none());
    let outlet = client.script.outlet();
    assert!(!outlet.send(Bytes::from_static(b"{}")), "no room");
    let mut n_answers = 0;
    loop {
        let answer = client.receive().await;
        if answer == result("\"late\"", 1) {
            break;
        }
        assert!(answer.len() > size);
        n_answers += 1;
    }
    assert_eq!((n_served, n_answers), (50, 50));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_for_too_long_is_gone() {
    let mut client = connect(LineOptions::default());
    client.send(request(1, "wait", 1)).await;
    client.send(request(2, "large", 2 * MAX_QUEUED_BYTES)).await;
    let reason = client.closed().await;
    assert!(
        matches!(&reason, Closed::Protocol(why) if why.contains("taken nothing")),
        "{reason:?}"
    );
    assert_eq!(client.script.next().await, Seen::Request("1".into()));
    assert_eq!(client.script.next().await, Seen::Request("2".into()));
    assert_eq!(client.script.next().await, Seen::Ended);
    assert_eq!(client.script.next().await, Seen::Dropped("1".into()));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_little_is_not_gone() {
    let patience = Patience::default();
    let mut client = connect(with_patience(patience));
    client.send(request(1, "large", 4 * MAX_QUEUED_BYTES)).await;
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        tokio::time::sleep(patience.stall / 2).await;
        let source = client.lines.get_mut();
        let chunk = source.fill_buf().await.expect("text").to_vec();
        source.consume(chunk.len());
        assert!(!chunk.is_empty(), "the server has left");
        line.extend_from_slice(&chunk);
    }
    assert_eq!(client.ask(request(2, "echo", 2)).await, result(2, 2));
}

#[tokio::test]
async fn a_shutdown_lets_requests_finish_and_refuses_others() {
    let mut client = connect(LineOptions::default());
    client.send(request(1, "wait", 1)).await;
    assert_eq!(client.script.next().await, Seen::Request("1".into()));
    client
        .shutdown
        .take()
        .expect("once")
        .send(())
        .expect("sent");
    let refused = error("2", -32603, "the server is ending");
    // The news of the end and the request race for the server.
    while client.ask(request(2, "echo", 2)).await != refused {}
    client.script.open_gate();
    assert_eq!(client.receive().await, result(1, 1));
    assert!(matches!(client.closed().await, Closed::ByUs));
    assert!(client.lines.next_line().await.expect("text").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_ever() {
    let mut client = connect(LineOptions::default());
    client.send(request(1, "wait", 1)).await;
    assert_eq!(client.script.next().await, Seen::Request("1".into()));
    client
        .shutdown
        .take()
        .expect("once")
        .send(())
        .expect("sent");
    assert!(matches!(client.closed().await, Closed::ByUs));
    assert_eq!(client.script.next().await, Seen::Ended);
    assert_eq!(client.script.next().await, Seen::Dropped("1".into()));
}

#[tokio::test]
async fn a_server_that_is_dropped_ends_its_conversation() {
    let mut client = connect(LineOptions::default());
    client.send(request(1, "wait", 1)).await;
    assert_eq!(client.script.next().await, Seen::Request("1".into()));
    client.server.shutdown().await;
    assert_eq!(client.script.next().await, Seen::Ended);
    assert_eq!(client.script.next().await, Seen::Dropped("1".into()));
}

#[tokio::test]
async fn a_client_that_closes_its_output_is_gone() {
    let (ours, theirs) = tokio::io::duplex(64);
    let (endpoint, script) = scripted();
    script.open_gate();
    let (source, mut writer) = tokio::io::duplex(64 * 1024);
    let sink = theirs;
    let serving = serve_lines(
        source,
        sink,
        &endpoint,
        LineOptions::default(),
        std::future::pending(),
    );
    drop(ours);
    writer
        .write_all(format!("{}\n", request(1, "wait", 1)).as_bytes())
        .await
        .expect("a server");
    assert!(matches!(serving.await, Closed::ByPeer));
}
