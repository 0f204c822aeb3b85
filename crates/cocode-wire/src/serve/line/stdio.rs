//! The standard streams of this process as a connection.
//!
//! Where they are pipes or sockets they are read and written without threads, which takes a flag
//! (`O_NONBLOCK`) that whoever holds the other copies of the same stream gets to feel. So they get it
//! back as it was. A terminal, which the shell shares, is never touched.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::Pin;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::{LineOptions, serve_lines};
use crate::error::Closed;
use crate::line::reader::Source;
use crate::line::writer::Sink;
use crate::serve::service::Endpoint;

/// Serves the client on the standard streams of this process, as [`serve_lines`] does.
///
/// Where standard input is neither a pipe nor a socket, a thread reads it, and that thread may still
/// wait for input when this is over: end the runtime without waiting for it.
pub async fn stdio(
    endpoint: &dyn Endpoint,
    options: LineOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> Closed {
    let StandardStreams {
        source,
        sink,
        restore: _restore,
    } = standard_streams();
    serve_lines(source, sink, endpoint, options, shutdown).await
}

/// The standard streams of this process.
pub struct StandardStreams {
    /// Standard input.
    pub source: Pin<Box<dyn AsyncRead + Send>>,
    /// Standard output.
    pub sink: Pin<Box<dyn AsyncWrite + Send>>,
    /// Gives the streams back as they were when it is dropped.
    pub restore: Restored,
}

/// Gives the standard streams back as they were when it is dropped.
#[derive(Debug)]
pub struct Restored {
    _both: [io::Result<Restore>; 2],
}

/// Takes the standard streams of this process. What is said of [`stdio`] about threads holds here, too.
pub fn standard_streams() -> StandardStreams {
    let (input, output) = (io::stdin(), io::stdout());
    // Both flags are read before one of them is set: the two may be one stream.
    let both = [Restore::of(input.as_fd()), Restore::of(output.as_fd())];
    let source = source_of(input.as_fd()).unwrap_or_else(|error| {
        tracing::debug!(%error, "standard input is read by a thread");
        Box::pin(tokio::io::stdin())
    });
    let sink = sink_of(output.as_fd()).unwrap_or_else(|error| {
        tracing::debug!(%error, "standard output is written by a thread");
        Box::pin(tokio::io::stdout())
    });
    StandardStreams {
        source,
        sink,
        restore: Restored { _both: both },
    }
}

impl std::fmt::Debug for StandardStreams {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("StandardStreams")
            .finish_non_exhaustive()
    }
}

fn source_of(stream: BorrowedFd<'_>) -> io::Result<Source> {
    Ok(match Stream::of(stream)? {
        Stream::Pipe(file) => Box::pin(pipe::Receiver::from_file(file)?),
        Stream::Socket(socket) => Box::pin(socket),
    })
}

fn sink_of(stream: BorrowedFd<'_>) -> io::Result<Sink> {
    Ok(match Stream::of(stream)? {
        Stream::Pipe(file) => Box::pin(pipe::Sender::from_file(file)?),
        Stream::Socket(socket) => Box::pin(socket),
    })
}

/// A copy of a stream that can be waited for.
enum Stream {
    Pipe(File),
    Socket(UnixStream),
}

impl Stream {
    fn of(stream: BorrowedFd<'_>) -> io::Result<Self> {
        let file = File::from(stream.try_clone_to_owned()?);
        let kind = file.metadata()?.file_type();
        if kind.is_fifo() {
            return Ok(Self::Pipe(file));
        }
        if kind.is_socket() {
            // Reading and writing do not ask of which family a socket is.
            let socket = StdUnixStream::from(OwnedFd::from(file));
            socket.set_nonblocking(true)?;
            return UnixStream::from_std(socket).map(Self::Socket);
        }
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "neither a pipe nor a socket",
        ))
    }
}

/// Gives a stream its flags back when it is dropped, if they have changed.
#[derive(Debug)]
struct Restore {
    stream: OwnedFd,
    flags: OFlags,
}

impl Restore {
    fn of(stream: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Self {
            flags: fcntl_getfl(stream)?,
            stream: stream.try_clone_to_owned()?,
        })
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        let restored = fcntl_getfl(&self.stream).and_then(|flags| {
            if flags == self.flags {
                Ok(())
            } else {
                fcntl_setfl(&self.stream, self.flags)
            }
        });
        if let Err(error) = restored {
            tracing::warn!(%error, "a standard stream did not get its flags back");
        }
    }
}

#[cfg(test)]
#[path = "stdio_tests.rs"]
mod tests;
