//! Back-pressure and the promise that a line is written whole or not at all.

use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, DuplexStream};
use tokio::task::JoinSet;

use super::{KEPT_ROOM, LineWriter, Taken};
use crate::error::{Closed, LinkError};
use crate::limits::MAX_QUEUED_BYTES;
use crate::line::cork::Cork;

fn start(capacity: usize) -> (Arc<LineWriter>, DuplexStream, JoinSet<()>) {
    let (ours, theirs) = tokio::io::duplex(capacity);
    let writer = Arc::new(LineWriter::new(Box::pin(ours)));
    let mut tasks = JoinSet::new();
    tasks.spawn(Arc::clone(&writer).drain());
    (writer, theirs, tasks)
}

async fn send(writer: &Arc<LineWriter>, line: Vec<u8>) -> Result<(), LinkError> {
    match writer.send_now(line)? {
        Taken::Whole => Ok(()),
        Taken::Not(line) => writer.send_later(line).await,
    }
}

#[tokio::test]
async fn lines_arrive_whole_and_in_order_through_a_narrow_pipe() {
    let (writer, theirs, _tasks) = start(7);
    let sender = async {
        for number in 0..100 {
            send(&writer, format!("line\n{number}").into_bytes())
                .await
                .unwrap();
        }
    };
    let reader = async {
        let mut lines = BufReader::new(theirs).lines();
        for number in 0..100 {
            assert_eq!(
                lines.next_line().await.unwrap().unwrap(),
                format!("line {number}")
            );
        }
    };
    tokio::join!(sender, reader);
}

#[tokio::test]
async fn a_slow_reader_holds_senders_back_instead_of_filling_memory() {
    let (writer, mut theirs, _tasks) = start(16);
    let line = vec![b'x'; 64 * 1024];
    let mut taken = 0;
    while send(&writer, line.clone())
        .now_or_never()
        .is_some_and(|sent| sent.is_ok())
    {
        taken += line.len() + 1;
        assert!(taken < 2 * MAX_QUEUED_BYTES, "nothing held the sender back");
    }
    // The send that had to wait was given up: not a byte of it may arrive.
    let mut received = vec![0; taken];
    theirs.read_exact(&mut received).await.unwrap();
    send(&writer, b"end".to_vec()).await.unwrap();
    let mut rest = [0; 4];
    theirs.read_exact(&mut rest).await.unwrap();
    assert_eq!(&rest, b"end\n");
}

#[tokio::test]
async fn closing_wakes_those_who_wait_for_room() {
    let (writer, _theirs, _tasks) = start(16);
    let line = vec![b'x'; MAX_QUEUED_BYTES];
    send(&writer, line.clone()).await.unwrap();
    let waiting = send(&writer, line);
    tokio::pin!(waiting);
    assert!(waiting.as_mut().now_or_never().is_none());
    writer.close(Closed::ByUs);
    assert!(matches!(
        waiting.await,
        Err(LinkError::Closed(Closed::ByUs))
    ));
}

#[tokio::test]
async fn a_closed_reader_is_reported_to_the_next_sender() {
    let (writer, theirs, _tasks) = start(16);
    drop(theirs);
    assert!(matches!(
        send(&writer, b"x".to_vec()).await,
        Err(LinkError::Closed(Closed::ByPeer))
    ));
}

#[tokio::test]
async fn what_is_sent_while_gathering_goes_out_together_on_release() {
    let (writer, mut theirs, _tasks) = start(64);
    writer.gather();
    send(&writer, b"one".to_vec()).await.unwrap();
    send(&writer, b"two".to_vec()).await.unwrap();
    let mut received = [0; 8];
    assert!(theirs.read(&mut received).now_or_never().is_none());
    writer.release();
    assert_eq!(theirs.read(&mut received).await.unwrap(), 8);
    assert_eq!(&received, b"one\ntwo\n");
}

#[tokio::test]
async fn what_is_sent_under_a_cork_goes_out_together_at_its_end() {
    let (writer, mut theirs, _tasks) = start(64);
    let cork = Cork::put();
    assert!(Cork::put().is_none(), "the first one decides");
    send(&writer, b"one".to_vec())
        .now_or_never()
        .unwrap()
        .unwrap();
    send(&writer, b"two".to_vec())
        .now_or_never()
        .unwrap()
        .unwrap();
    let mut received = [0; 8];
    assert!(theirs.read(&mut received).now_or_never().is_none());
    drop(cork);
    assert_eq!(theirs.read(&mut received).await.unwrap(), 8);
    assert_eq!(&received, b"one\ntwo\n");
    send(&writer, b"end".to_vec()).await.unwrap();
    theirs.read_exact(&mut received[..4]).await.unwrap();
    assert_eq!(&received[..4], b"end\n");
}

#[tokio::test]
async fn what_does_not_fit_when_a_cork_ends_is_written_by_the_task() {
    let (writer, theirs, _tasks) = start(7);
    let cork = Cork::put();
    for number in 0..20 {
        let line = format!("line {number}").into_bytes();
        assert!(matches!(writer.send_now(line), Ok(Taken::Whole)));
    }
    drop(cork);
    let mut lines = BufReader::new(theirs).lines();
    for number in 0..20 {
        let line = lines.next_line().await.unwrap().unwrap();
        assert_eq!(line, format!("line {number}"));
    }
}

#[tokio::test]
async fn the_end_of_a_cork_takes_nothing_from_the_task_that_writes_already() {
    let (writer, mut theirs, _tasks) = start(4);
    let cork = Cork::put();
    assert!(matches!(
        writer.send_now(b"0123456789".to_vec()),
        Ok(Taken::Whole)
    ));
    // As if on another thread: the task writes what fits, and waits for the reader.
    writer.release();
    while writer.backlog() == 11 {
        tokio::task::yield_now().await;
    }
    drop(cork);
    let mut received = [0; 11];
    theirs.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"0123456789\n");
}

#[tokio::test]
async fn room_for_something_large_is_given_back() {
    let (writer, mut theirs, _tasks) = start(64);
    for length in [1024 * 1024, 8] {
        writer.gather();
        send(&writer, vec![b'x'; length - 1]).await.unwrap();
        writer.release();
        let mut received = vec![0; length];
        theirs.read_exact(&mut received).await.unwrap();
        while writer.lock().draining {
            tokio::task::yield_now().await;
        }
        assert!(!writer.lock().queued.try_reclaim(KEPT_ROOM + 1), "{length}");
    }
}

#[tokio::test]
async fn after_a_gathering_senders_write_by_themselves_again() {
    let (writer, mut theirs, mut tasks) = start(64);
    writer.gather();
    send(&writer, b"one".to_vec()).await.unwrap();
    writer.release();
    let mut received = [0; 4];
    theirs.read_exact(&mut received).await.unwrap();
    tasks.shutdown().await;
    send(&writer, b"two".to_vec()).await.unwrap();
    theirs.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"two\n");
}
