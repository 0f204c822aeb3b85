//! Servers on a thread and a runtime of their own, so that they serve tests with and without a
//! runtime, and do not stand still with a test's paused clock.

use std::future::Future;
use std::thread::{self, JoinHandle};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A running server; dropping it ends the server and all its connections.
#[derive(Debug)]
pub(crate) struct Background {
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Runs `serve` until it is done or the handle is dropped.
    pub(crate) fn start<F: Future<Output = ()>>(
        serve: impl FnOnce() -> F + Send + 'static,
    ) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let runtime = runtime.expect("a runtime can be built");
            runtime.block_on(async { stopped.run_until_cancelled(serve()).await });
            runtime.shutdown_background();
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.cancel();
        let outcome = self.thread.take().map_or(Ok(()), JoinHandle::join);
        if let Err(panic) = outcome
            && !thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
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
