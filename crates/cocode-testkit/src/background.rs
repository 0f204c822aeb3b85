//! Servers on a thread and a runtime of their own, so that they serve tests with and without a
//! runtime, and do not stand still with a test's paused clock.

use std::future::Future;
use std::sync::mpsc as blocking;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A running server; dropping it ends the server and all its connections.
#[derive(Debug)]
pub(crate) struct Background {
    stop: CancellationToken,
    freezes: mpsc::Sender<Freeze>,
    /// While the server hangs; dropping it lets the server go on.
    release: Mutex<Option<blocking::Sender<()>>>,
    thread: Option<JoinHandle<()>>,
}

/// An order to stand still.
struct Freeze {
    entered: blocking::Sender<()>,
    until: blocking::Receiver<()>,
}

impl Background {
    /// Runs `serve` until it is done or the handle is dropped.
    pub(crate) fn start<F: Future<Output = ()>>(
        serve: impl FnOnce() -> F + Send + 'static,
    ) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let (freezes, orders) = mpsc::channel(1);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let runtime = runtime.expect("a runtime can be built");
            runtime.block_on(stopped.run_until_cancelled(async {
                tokio::select! {
                    biased;
                    () = serve() => {}
                    () = freeze_on_order(orders) => {}
                }
            }));
            runtime.shutdown_background();
        });
        Self {
            stop,
            freezes,
            release: Mutex::default(),
            thread: Some(thread),
        }
    }

    /// Lets the whole server stand still, with all its connections, until it is resumed. Comes
    /// back when it does.
    pub(crate) fn hang(&self) {
        let (entered, has_entered) = blocking::channel();
        let (release, until) = blocking::channel();
        let freeze = Freeze { entered, until };
        let ordered = self.freezes.try_send(freeze);
        assert!(ordered.is_ok(), "the server hangs already, or has ended");
        has_entered.recv().expect("the server takes the order");
        *self.release.lock().unwrap_or_else(PoisonError::into_inner) = Some(release);
    }

    /// Lets a server that hangs go on.
    pub(crate) fn resume(&self) {
        let mut release = self.release.lock().unwrap_or_else(PoisonError::into_inner);
        drop(release.take());
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // First the end, so that a server that hangs does nothing in between.
        self.stop.cancel();
        self.resume();
        let outcome = self.thread.take().map_or(Ok(()), JoinHandle::join);
        if let Err(panic) = outcome
            && !thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Blocks the thread on which all connections are served, which is the point.
async fn freeze_on_order(mut orders: mpsc::Receiver<Freeze>) {
    while let Some(Freeze { entered, until }) = orders.recv().await {
        entered.send(()).expect("whoever orders it waits for this");
        assert!(until.recv().is_err(), "the end of the channel is the sign");
    }
}

/// Accepts connections for ever and serves each in its own task, numbered from one. A task that
/// panics takes the server, and so its test, with it.
pub(crate) async fn accept_all<C, A: Future<Output = C>, S>(
    mut accept: impl FnMut() -> A,
    mut serve: impl FnMut(u32, C) -> S,
) where
    S: Future<Output = ()> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for number in 1.. {
        let connection = loop {
            tokio::select! {
                connection = accept() => break connection,
                Some(ended) = tasks.join_next() => {
                    if let Err(error) = ended
                        && let Ok(panic) = error.try_into_panic()
                    {
                        std::panic::resume_unwind(panic);
                    }
                }
            }
        };
        tasks.spawn(serve(number, connection));
    }
}
