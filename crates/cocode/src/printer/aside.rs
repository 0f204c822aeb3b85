//! Lines of a program that serves others, written aside: a pipe that nobody reads, or a terminal that
//! was stopped, holds up no client.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::Printer;

/// Pieces of text that may wait to be written. What comes then is left out, and counted.
const MAX_WAITING: usize = 256;
/// How long the end waits for what is still to be written.
const WRITTEN_WITHIN: Duration = Duration::from_secs(2);

/// How soon the end looks again whether there is room.
const FULL_PAUSE: Duration = Duration::from_millis(10);

/// Where something is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

/// The way to the thread that writes.
#[derive(Clone, Debug)]
pub(super) struct Aside {
    queue: SyncSender<Queued>,
    shared: Arc<Shared>,
}

/// As long as it lives, what is printed is written aside.
#[derive(Debug)]
pub(crate) struct WrittenAside<'a>(&'a Printer);

#[derive(Debug)]
enum Queued {
    Text(Stream, Vec<u8>),
    /// All that was queued before is written.
    Flush(SyncSender<()>),
}

#[derive(Debug, Default)]
struct Shared {
    n_left_out: AtomicU64,
    /// Nobody reads stdout any more.
    is_broken: AtomicBool,
}

impl Printer {
    /// Writes aside from here on. If there can be no thread for that, everything stays as it is.
    pub(crate) fn write_aside(&self) -> WrittenAside<'_> {
        match Aside::start() {
            Ok(aside) => *self.aside() = Some(aside),
            Err(error) => tracing::warn!(%error, "who does not read what is said holds it up"),
        }
        WrittenAside(self)
    }

    pub(super) fn aside(&self) -> std::sync::MutexGuard<'_, Option<Aside>> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WrittenAside<'_> {
    fn drop(&mut self) {
        let aside = self.0.aside().clone();
        // Where nobody reads, what follows would wait for ever, too.
        if aside.is_some_and(|aside| aside.flush()) {
            *self.0.aside() = None;
        }
    }
}

impl Aside {
    fn start() -> io::Result<Self> {
        let (queue, received) = mpsc::sync_channel(MAX_WAITING);
        let shared = Arc::new(Shared::default());
        let thread = std::thread::Builder::new().name("output".to_owned());
        let of_thread = Arc::clone(&shared);
        // Ends with the last way to it, or with the process while it waits for a reader.
        let _unjoined = thread.spawn(move || of_thread.write(&received))?;
        Ok(Self { queue, shared })
    }

    /// Writes, unless too much waits already.
    pub(super) fn write(&self, stream: Stream, text: Vec<u8>) {
        let sent = self.queue.try_send(Queued::Text(stream, text));
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = sent {
            self.shared.n_left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.shared.is_broken.load(Ordering::Relaxed)
    }

    /// Whether all that was said before is written, soon enough.
    fn flush(&self) -> bool {
        let (done, written) = mpsc::sync_channel(1);
        let until = Instant::now() + WRITTEN_WITHIN;
        let mut flush = Queued::Flush(done);
        loop {
            flush = match self.queue.try_send(flush) {
                Ok(()) => break,
                // Somebody may read slowly.
                Err(TrySendError::Full(flush)) if Instant::now() < until => flush,
                Err(_) => return false,
            };
            std::thread::sleep(FULL_PAUSE);
        }
        let left = until.saturating_duration_since(Instant::now());
        written.recv_timeout(left).is_ok()
    }
}

impl Shared {
    fn write(&self, received: &Receiver<Queued>) {
        for queued in received {
            match queued {
                Queued::Text(stream, text) => {
                    self.write_one(stream, &text);
                    self.tell_what_was_left_out();
                }
                Queued::Flush(done) => {
                    // Who asked may not wait any more.
                    let _nobody_waits = done.send(());
                }
            }
        }
    }

    fn write_one(&self, stream: Stream, text: &[u8]) {
        match stream {
            Stream::Out if self.is_broken.load(Ordering::Relaxed) => {}
            Stream::Out => {
                let mut stdout = io::stdout().lock();
                if stdout
                    .write_all(text)
                    .and_then(|()| stdout.flush())
                    .is_err()
                {
                    self.is_broken.store(true, Ordering::Relaxed);
                }
            }
            Stream::Err => {
                let _nobody_listens = io::stderr().lock().write_all(text);
            }
        }
    }

    fn tell_what_was_left_out(&self) {
        let n_left_out = self.n_left_out.swap(0, Ordering::Relaxed);
        if n_left_out > 0 {
            let line = format!("{n_left_out} messages were left out, because nobody read them\n");
            self.write_one(Stream::Err, line.as_bytes());
        }
    }
}
