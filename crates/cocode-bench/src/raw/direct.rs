//! One request at a time: write a line, read a line, in one task.

use std::ops::Range;

use memchr::memchr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::child::Pipes;
use super::envelope::{self, Message};
use crate::Failure;
use crate::caller::{Caller, Echo};

/// Room for one read.
const READ_BYTES: usize = 256 * 1024;

#[derive(Debug)]
pub(crate) struct Direct {
    pipes: Pipes,
    next_id: u64,
    line: Vec<u8>,
    buffer: Vec<u8>,
}

impl Direct {
    /// Starts the server and shakes hands.
    pub(crate) async fn start(n_tools: usize) -> Result<Self, Failure> {
        Self::greet(Pipes::start(n_tools)?).await
    }

    /// Shakes hands with a server that was just started.
    pub(crate) async fn greet(pipes: Pipes) -> Result<Self, Failure> {
        let mut client = Self {
            pipes,
            next_id: 1,
            line: Vec::new(),
            buffer: Vec::with_capacity(READ_BYTES),
        };
        client.request(Message::Initialize).await?;
        client.line.clear();
        envelope::push(&mut client.line, 0, Message::Initialized)?;
        client.pipes.stdin.write_all(&client.line).await?;
        Ok(client)
    }

    /// The result of a request, which stays where it is until the next one.
    pub(crate) async fn request(&mut self, message: Message<'_>) -> Result<&[u8], Failure> {
        let id = self.next_id;
        self.next_id += 1;
        self.line.clear();
        envelope::push(&mut self.line, id, message)?;
        self.pipes.stdin.write_all(&self.line).await?;
        self.buffer.clear();
        let result = self.answer(id).await?;
        Ok(&self.buffer[result])
    }

    /// Reads until the answer to `id` is in the buffer, and says where.
    async fn answer(&mut self, id: u64) -> Result<Range<usize>, Failure> {
        let (mut begin, mut searched) = (0, 0);
        loop {
            while let Some(offset) = memchr(b'\n', &self.buffer[searched..]) {
                let end = searched + offset;
                if let Some((found, result)) = envelope::parse(&self.buffer[begin..end])?
                    && found == id
                {
                    let start = result.get().as_ptr() as usize - self.buffer.as_ptr() as usize;
                    return Ok(start..start + result.get().len());
                }
                (begin, searched) = (end + 1, end + 1);
            }
            searched = self.buffer.len();
            if self.buffer.capacity() - self.buffer.len() < READ_BYTES / 2 {
                self.buffer.reserve(READ_BYTES);
            }
            if self.pipes.stdout.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server has ended".into());
            }
        }
    }

    /// Kills the server and waits for it: some take seconds to end by themselves.
    pub(crate) async fn kill(self) -> Result<(), Failure> {
        let mut child = self.pipes.child;
        child.kill().await?;
        Ok(())
    }

    /// Ends the server and waits for it.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        let Pipes {
            mut child,
            stdin,
            stdout,
        } = self.pipes;
        drop((stdin, stdout));
        child.wait().await?;
        Ok(())
    }
}

impl Caller for Direct {
    async fn echo(&mut self, echo: &Echo) -> Result<usize, Failure> {
        Ok(self.request(Message::Echo(echo)).await?.len())
    }
}
