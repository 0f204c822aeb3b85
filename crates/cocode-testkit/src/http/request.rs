//! One HTTP/1.1 request, read from a socket and kept for the test.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

use crate::message::Message;

/// A request that a scripted HTTP server received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// The number of the connection that it came on, counted from one.
    pub connection: u32,
    /// The verb, such as `POST`.
    pub method: String,
    /// The path with the query.
    pub path: String,
    /// The headers, with names as they were sent.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// The value of the first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as a JSON-RPC message; a message without parts if it is none.
    pub fn message(&self) -> Message {
        Message::parse(self.connection, String::from_utf8_lossy(&self.body))
    }

    /// Whether the body is a request or notification of this JSON-RPC method.
    pub fn is(&self, method: &str) -> bool {
        self.message().is(method)
    }

    /// The body as JSON, or null.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The next request of a connection, or nothing when it has ended.
    pub(crate) async fn read(
        connection: u32,
        input: &mut (impl AsyncBufRead + Unpin),
    ) -> io::Result<Option<Self>> {
        let Some(line) = read_line(input).await? else {
            return Ok(None);
        };
        let mut words = line.split(' ').map(str::to_owned);
        let (Some(method), Some(path)) = (words.next(), words.next()) else {
            return Err(io::Error::other(format!("not a request line: {line:?}")));
        };
        let mut headers = Vec::new();
        while let Some(line) = read_line(input).await?.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let mut request = Self {
            connection,
            method,
            path,
            headers,
            body: Vec::new(),
        };
        request.body = request.read_body(input).await?;
        Ok(Some(request))
    }

    async fn read_body(&self, input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if self
            .header("Transfer-Encoding")
            .is_some_and(|value| value.contains("chunked"))
        {
            loop {
                let line = read_line(input).await?.unwrap_or_default();
                let size = line.split(';').next().unwrap_or_default();
                let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
                let start = body.len();
                body.resize(start + size, 0);
                input
                    .read_exact(body.get_mut(start..).unwrap_or_default())
                    .await?;
                read_line(input).await?;
                if size == 0 {
                    return Ok(body);
                }
            }
        }
        if let Some(length) = self.header("Content-Length") {
            body.resize(length.parse().map_err(io::Error::other)?, 0);
            input.read_exact(&mut body).await?;
        }
        Ok(body)
    }
}

async fn read_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if input.read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()))
}
