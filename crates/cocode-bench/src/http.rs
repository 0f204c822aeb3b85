//! The least of an HTTP client: one connection, one request at a time, whole answers.

use std::net::SocketAddr;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Failure;

/// Room for one read.
const READ_BYTES: usize = 64 * 1024;
/// Headers that an answer may have.
const MAX_HEADERS: usize = 32;

/// One connection.
#[derive(Debug)]
pub(crate) struct HttpConnection {
    stream: TcpStream,
    /// What was read and belongs to nothing yet.
    buffer: BytesMut,
    request: Vec<u8>,
}

/// An answer.
#[derive(Debug, Default)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) is_events: bool,
    pub(crate) body: Vec<u8>,
}

/// How long a body is.
enum Extent {
    Bytes(usize),
    Chunks,
    /// What follows is no HTTP any more.
    Upgraded,
}

impl HttpConnection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: BytesMut::with_capacity(READ_BYTES),
            request: Vec::new(),
        })
    }

    /// Sends a request, whose head has all lines but those that the body decides.
    pub(crate) async fn send(&mut self, head: &str, body: &[u8]) -> Result<(), Failure> {
        self.request.clear();
        self.request.extend_from_slice(head.as_bytes());
        let length = format!("content-length: {}\r\n\r\n", body.len());
        self.request.extend_from_slice(length.as_bytes());
        self.request.extend_from_slice(body);
        self.stream.write_all(&self.request).await?;
        Ok(())
    }

    /// The answer to the request that was sent.
    pub(crate) async fn answer(&mut self) -> Result<HttpAnswer, Failure> {
        let (mut answer, extent) = loop {
            if let Some(head) = self.head()? {
                break head;
            }
            self.read().await?;
        };
        match extent {
            Extent::Bytes(length) => {
                while self.buffer.len() < length {
                    self.read().await?;
                }
                answer.body = self.buffer[..length].to_vec();
                self.buffer.advance(length);
            }
            Extent::Chunks => self.chunks(&mut answer.body).await?,
            Extent::Upgraded => return Ok(answer),
        }
        if !self.buffer.is_empty() {
            let more = self.buffer.len();
            return Err(format!("{more} bytes came after the whole answer").into());
        }
        Ok(answer)
    }

    /// The connection without HTTP, and what was read of it already.
    pub(crate) fn into_parts(self) -> (TcpStream, BytesMut) {
        (self.stream, self.buffer)
    }

    async fn read(&mut self) -> Result<(), Failure> {
        self.buffer.reserve(READ_BYTES);
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Err("the connection has ended".into());
        }
        Ok(())
    }

    fn head(&mut self) -> Result<Option<(HttpAnswer, Extent)>, Failure> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(length) = response.parse(&self.buffer)? else {
            return Ok(None);
        };
        let status = response.code.unwrap_or_default();
        let mut answer = HttpAnswer {
            status,
            ..HttpAnswer::default()
        };
        let mut extent = if status == 101 {
            Extent::Upgraded
        } else {
            Extent::Bytes(0)
        };
        for header in response.headers.iter() {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                extent = Extent::Bytes(std::str::from_utf8(header.value)?.parse()?);
            } else if is("transfer-encoding") {
                extent = Extent::Chunks;
            } else if is("content-type") {
                answer.is_events = header.value.starts_with(b"text/event-stream");
            } else if is("mcp-session-id") {
                answer.session = Some(std::str::from_utf8(header.value)?.to_owned());
            }
        }
        self.buffer.advance(length);
        Ok(Some((answer, extent)))
    }

    async fn chunks(&mut self, body: &mut Vec<u8>) -> Result<(), Failure> {
        loop {
            let odd = |_invalid| "a chunk without a size";
            match httparse::parse_chunk_size(&self.buffer).map_err(odd)? {
                httparse::Status::Partial => self.read().await?,
                httparse::Status::Complete((head, size)) => {
                    let size = usize::try_from(size)?;
                    while self.buffer.len() < head + size + 2 {
                        self.read().await?;
                    }
                    self.buffer.advance(head);
                    body.extend_from_slice(&self.buffer[..size]);
                    self.buffer.advance(size + 2);
                    if size == 0 {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// The messages in a stream of events.
pub(crate) fn messages(events: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let mut current: Vec<u8> = Vec::new();
    for line in events.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(data) = line.strip_prefix(b"data:") {
            current.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        } else if line.is_empty() && !current.is_empty() {
            messages.push(std::mem::take(&mut current));
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::messages;

    #[test]
    fn messages_are_found_between_comments_and_empty_events() {
        let events =
            b": hello\n\nid: 1\ndata:\n\nevent: message\nid: 2\ndata: {\"a\":1}\n\ndata: {}\n\n";
        let expected: Vec<Vec<u8>> = vec![b"{\"a\":1}".to_vec(), b"{}".to_vec()];
        assert_eq!(messages(events), expected);
    }
}
