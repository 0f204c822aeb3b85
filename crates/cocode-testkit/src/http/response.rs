//! Writing an HTTP/1.1 response: whole, as a stream in chunks, or as any bytes at all.

use std::io;

use tokio::io::{AsyncWriteExt as _, WriteHalf};

use crate::tcp::Stream;

/// How far the response to one request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Not a byte has been sent.
    Nothing,
    /// An event stream is open.
    Streaming,
    /// The response is complete, and the connection can be used again.
    Complete,
    /// Bytes have been sent of which only the script knows what they are.
    Unknown,
}

/// The sending half of a connection.
pub(crate) type Socket = WriteHalf<Box<dyn Stream>>;

/// The response to one request.
pub(crate) struct Response<'socket> {
    socket: &'socket mut Socket,
    pub(crate) progress: Progress,
    /// How many bytes of the stream go out at once.
    pub(crate) piece: usize,
}

type Headers<'a> = &'a [(String, String)];

impl<'socket> Response<'socket> {
    pub(crate) fn new(socket: &'socket mut Socket) -> Self {
        Self {
            socket,
            progress: Progress::Nothing,
            piece: usize::MAX,
        }
    }

    /// Sends a complete response.
    pub(crate) async fn send(
        &mut self,
        status: u16,
        headers: Headers<'_>,
        body: &[u8],
    ) -> io::Result<()> {
        let length = ("Content-Length".to_owned(), body.len().to_string());
        let mut bytes = head(status, headers.iter().chain([&length]));
        bytes.extend_from_slice(body);
        self.progress = Progress::Complete;
        self.put(&bytes).await
    }

    /// Opens an event stream, unless one is open.
    pub(crate) async fn open_stream(&mut self, headers: Headers<'_>) -> io::Result<()> {
        if self.progress == Progress::Streaming {
            return Ok(());
        }
        let mut all = vec![("Transfer-Encoding".to_owned(), "chunked".to_owned())];
        if !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("Content-Type"))
        {
            all.push(("Content-Type".to_owned(), "text/event-stream".to_owned()));
        }
        all.extend_from_slice(headers);
        self.progress = Progress::Streaming;
        self.put(&head(200, all.iter())).await
    }

    /// Sends bytes: into the stream if one is open, and on the bare socket otherwise.
    pub(crate) async fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.progress != Progress::Streaming {
            self.progress = Progress::Unknown;
            return self.put(bytes).await;
        }
        for piece in bytes.chunks(self.piece) {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            self.put(&chunk).await?;
        }
        Ok(())
    }

    /// Ends the stream properly, if one is open.
    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        if self.progress == Progress::Streaming {
            self.progress = Progress::Complete;
            self.put(b"0\r\n\r\n").await?;
        }
        Ok(())
    }

    async fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes).await?;
        // What is behind TLS is not sent before this.
        self.socket.flush().await
    }
}

fn head<'a>(status: u16, headers: impl Iterator<Item = &'a (String, String)>) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} Scripted\r\n");
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    text.push_str("\r\n");
    text.into_bytes()
}
