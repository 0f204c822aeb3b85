//! Many requests at a time: a reader task gives each answer to the one who waits for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memchr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;

use super::child::Pipes;
use super::envelope::{self, Message};
use crate::Failure;
use crate::caller::{Caller, Echo};

/// Room for one read.
const READ_BYTES: usize = 256 * 1024;

/// How requests get into the pipe.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Writing {
    /// Each sender writes by itself: no task switch, one system call a request.
    BySender,
    /// A task writes what has gathered: a task switch, and few system calls under load.
    Gathered,
}

/// A cheap handle of one connection. The last one that is dropped ends the server.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<Connection>);

#[derive(Debug)]
struct Connection {
    next_id: AtomicU64,
    waiting: Arc<Waiting>,
    sink: Sink,
    _tasks: JoinSet<()>,
    _child: Child,
}

type Waiting = Mutex<HashMap<u64, oneshot::Sender<Bytes>>>;

#[derive(Debug)]
enum Sink {
    BySender(tokio::sync::Mutex<ChildStdin>),
    Gathered(Arc<Queue>),
}

#[derive(Debug, Default)]
struct Queue {
    lines: Mutex<Vec<u8>>,
    filled: Notify,
}

impl Shared {
    /// Starts the server and shakes hands.
    pub(crate) async fn start(n_tools: usize, writing: Writing) -> Result<Self, Failure> {
        Self::greet(Pipes::start(n_tools)?, writing).await
    }

    /// Shakes hands with a server that was just started.
    pub(crate) async fn greet(pipes: Pipes, writing: Writing) -> Result<Self, Failure> {
        let Pipes {
            child,
            stdin,
            stdout,
        } = pipes;
        let waiting: Arc<Waiting> = Arc::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(read(stdout, Arc::clone(&waiting)));
        let sink = match writing {
            Writing::BySender => Sink::BySender(tokio::sync::Mutex::new(stdin)),
            Writing::Gathered => {
                let queue: Arc<Queue> = Arc::default();
                tasks.spawn(write(stdin, Arc::clone(&queue)));
                Sink::Gathered(queue)
            }
        };
        let client = Self(Arc::new(Connection {
            next_id: AtomicU64::new(1),
            waiting,
            sink,
            _tasks: tasks,
            _child: child,
        }));
        client.request(Message::Initialize).await?;
        let mut line = Vec::new();
        envelope::push(&mut line, 0, Message::Initialized)?;
        client.send(&line).await?;
        Ok(client)
    }

    /// The result of a request.
    pub(crate) async fn request(&self, message: Message<'_>) -> Result<Bytes, Failure> {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let mut line = Vec::with_capacity(256);
        envelope::push(&mut line, id, message)?;
        let (sender, answer) = oneshot::channel();
        lock(&self.0.waiting).insert(id, sender);
        self.send(&line).await?;
        Ok(answer.await?)
    }

    #[expect(
        clippy::await_holding_invalid_type,
        reason = "whoever writes a line keeps the others out until it is written"
    )]
    async fn send(&self, line: &[u8]) -> Result<(), Failure> {
        match &self.0.sink {
            Sink::BySender(stdin) => stdin.lock().await.write_all(line).await?,
            Sink::Gathered(queue) => {
                let mut lines = lock(&queue.lines);
                lines.extend_from_slice(line);
                // Whoever comes first calls the writer for all who follow.
                if lines.len() == line.len() {
                    queue.filled.notify_one();
                }
            }
        }
        Ok(())
    }
}

impl Caller for Shared {
    async fn echo(&mut self, echo: &Echo) -> Result<usize, Failure> {
        Ok(self.request(Message::Echo(echo)).await?.len())
    }
}

/// Gives out answers until the stream ends. Then nobody waits any more: all see an error.
async fn read(mut stdout: ChildStdout, waiting: Arc<Waiting>) {
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    let mut searched = 0;
    while stdout
        .read_buf(&mut buffer)
        .await
        .is_ok_and(|read| read > 0)
    {
        while let Some(offset) = memchr(b'\n', &buffer[searched..]) {
            let line = buffer.split_to(searched + offset).freeze();
            buffer.advance(1);
            searched = 0;
            if let Ok(Some((id, result))) = envelope::parse(&line)
                && let Some(sender) = lock(&waiting).remove(&id)
            {
                // Nobody gives up here, so the receiver is there.
                drop(sender.send(line.slice_ref(result.get().as_bytes())));
            }
        }
        searched = buffer.len();
        if buffer.capacity() - buffer.len() < READ_BYTES / 8 {
            buffer.reserve(READ_BYTES);
        }
    }
    lock(&waiting).clear();
}

/// Writes what has gathered, until the stream ends.
async fn write(mut stdin: ChildStdin, queue: Arc<Queue>) {
    let mut batch = Vec::new();
    loop {
        queue.filled.notified().await;
        // Those who are ready to send get their turn first.
        tokio::task::yield_now().await;
        std::mem::swap(&mut *lock(&queue.lines), &mut batch);
        if stdin.write_all(&batch).await.is_err() {
            return;
        }
        batch.clear();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
