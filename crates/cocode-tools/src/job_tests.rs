//! Tests of the runner of blocking work.

use std::pin::pin;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use tokio::sync::{Semaphore, oneshot};

use super::*;
use crate::progress::NoProgress;

fn room(size: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(size))
}

/// Keeps what it hears, and lets the work go on each time.
struct Heard {
    reports: Mutex<Vec<(u64, String)>>,
    go_on: mpsc::Sender<()>,
}

impl Progress for Heard {
    fn report(&self, done: u64, total: Option<u64>, message: &str) {
        assert_eq!(total, None);
        self.reports
            .lock()
            .unwrap()
            .push((done, message.to_owned()));
        self.go_on.send(()).unwrap();
    }
}

#[tokio::test]
async fn reports_are_heard_while_work_goes_on_and_only_if_they_grow() {
    let (go_on, wait) = mpsc::channel();
    let heard = Heard {
        reports: Mutex::default(),
        go_on,
    };
    let result = run(&room(1), &heard, move |job| {
        for done in [1, 5] {
            job.report(done, format!("{done} done"));
            wait.recv().unwrap();
        }
        // Nobody hears this, so nobody is waited for.
        job.report(5, "again".to_owned());
        "result"
    })
    .await
    .unwrap();
    assert_eq!(result, "result");
    assert_eq!(
        *heard.reports.lock().unwrap(),
        [(1, "1 done".to_owned()), (5, "5 done".to_owned())]
    );
}

#[tokio::test]
async fn dropping_the_future_tells_the_work_to_stop_and_frees_its_room() {
    let room = room(1);
    let (started, mut has_started) = oneshot::channel();
    let (stopped, has_stopped) = oneshot::channel();
    {
        let mut waiting = pin!(run(&room, &NoProgress, move |job| {
            started.send(()).unwrap();
            while job.check().is_ok() {
                std::thread::yield_now();
            }
            stopped.send(()).unwrap();
        }));
        tokio::select! {
            _ = &mut waiting => panic!("it runs until it is told to stop"),
            started = &mut has_started => started.unwrap(),
        }
        assert_eq!(room.available_permits(), 0);
    }
    has_stopped.await.unwrap();
    // Comes only when the room is free again.
    run(&room, &NoProgress, |_| ()).await.unwrap();
}

#[tokio::test]
async fn work_waits_for_room() {
    let room = room(1);
    let (release, wait) = mpsc::channel();
    let mut first = pin!(run(&room, &NoProgress, move |_| wait.recv().unwrap()));
    assert!(first.as_mut().now_or_never().is_none());
    let mut second = pin!(run(&room, &NoProgress, |_| "second"));
    assert!(second.as_mut().now_or_never().is_none());
    assert_eq!(room.available_permits(), 0);
    release.send("first").unwrap();
    assert_eq!(first.await.unwrap(), "first");
    assert_eq!(second.await.unwrap(), "second");
}

#[tokio::test]
async fn work_that_panics_is_an_error_and_frees_its_room() {
    let room = room(1);
    let error = run(&room, &NoProgress, |_| panic!("on purpose"))
        .await
        .map(|(): ()| ())
        .unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
    assert_eq!(room.available_permits(), 1);
}
