//! Lines of the terminal, read by one thread and only when somebody wants one.
//!
//! A read of a terminal cannot be called back. If the question that wanted the line is gone, the
//! read goes on, and its line belongs to the next question: no dead question eats what is typed.

use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, Sender, channel as standard_channel};

use tokio::sync::mpsc;

/// What the thread read: a line, or nothing at the end of the input.
type Read = io::Result<Option<String>>;

/// The one reader of an input.
#[derive(Debug)]
pub(crate) struct Lines {
    wanted: Sender<()>,
    read: mpsc::Receiver<Read>,
    /// A line is being read, or was read for a question that is gone.
    waiting: bool,
}

impl Lines {
    /// Reads from what `open` gives, which is called in the thread that reads.
    pub(crate) fn of<R: BufRead>(open: impl FnOnce() -> R + Send + 'static) -> io::Result<Self> {
        let (wanted, wishes) = standard_channel();
        let (found, read) = mpsc::channel(1);
        let reading = move || serve(open(), &wishes, &found);
        // It ends with us, or with the program if it waits for a line then.
        let _unjoined = std::thread::Builder::new()
            .name("terminal".to_owned())
            .spawn(reading)?;
        Ok(Self {
            wanted,
            read,
            waiting: false,
        })
    }

    /// The next line, or nothing at the end. Dropping this early loses no line.
    pub(crate) async fn next(&mut self) -> Read {
        let gone = || io::Error::other("nobody reads the terminal any more");
        if !self.waiting {
            self.wanted.send(()).map_err(|_gone| gone())?;
            self.waiting = true;
        }
        let read = self.read.recv().await;
        self.waiting = false;
        read.unwrap_or_else(|| Err(gone()))
    }

    /// Forgets a line that was typed for a question that is gone.
    pub(crate) fn forget(&mut self) {
        if self.waiting && self.read.try_recv().is_ok() {
            self.waiting = false;
        }
    }
}

fn serve(mut input: impl BufRead, wishes: &Receiver<()>, found: &mpsc::Sender<Read>) {
    for () in wishes {
        let mut line = String::new();
        let read = input.read_line(&mut line);
        let read = read.map(|length| (length > 0).then_some(line));
        if found.blocking_send(read).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write as _, pipe};

    use super::Lines;

    #[tokio::test]
    async fn a_dropped_wish_leaves_its_line_to_the_next() {
        let (input, mut typed) = pipe().unwrap();
        let mut lines = Lines::of(|| BufReader::new(input)).unwrap();
        for _ in 0..3 {
            tokio::select! {
                biased;
                line = lines.next() => panic!("{line:?}"),
                () = std::future::ready(()) => {}
            }
        }
        typed.write_all(b"one\ntwo\n").unwrap();
        assert_eq!(lines.next().await.unwrap().as_deref(), Some("one\n"));
        assert_eq!(lines.next().await.unwrap().as_deref(), Some("two\n"));
        drop(typed);
        assert_eq!(lines.next().await.unwrap(), None);
        assert_eq!(lines.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_line_that_was_typed_for_a_dead_question_can_be_forgotten() {
        let (input, mut typed) = pipe().unwrap();
        let mut lines = Lines::of(|| BufReader::new(input)).unwrap();
        tokio::select! {
            biased;
            line = lines.next() => panic!("{line:?}"),
            () = std::future::ready(()) => {}
        }
        typed.write_all(b"for the dead\nfor the living\n").unwrap();
        // The thread is done with a line when it is there to be taken.
        while lines.read.is_empty() {
            tokio::task::yield_now().await;
        }
        lines.forget();
        lines.forget();
        let line = lines.next().await.unwrap();
        assert_eq!(line.as_deref(), Some("for the living\n"));
    }
}
