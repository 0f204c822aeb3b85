//! A small HTTP client for probes: one connection for each request, and answers that can be read
//! while they come.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::failure::Failure;

/// Longer than any tool of the fixture takes.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where requests go: `http://HOST:PORT/PATH`.
#[derive(Clone)]
pub(super) struct Endpoint {
    authority: String,
    path: String,
}

pub(super) type Headers<'a> = [(&'a str, &'a str)];

/// The head of an answer, with its body still to be read.
pub(super) struct Answer {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    body: BufReader<Body>,
}

/// The bytes between the head and the end.
struct Body {
    stream: BufReader<TcpStream>,
    length: Length,
}

enum Length {
    /// This many to come.
    Known(u64),
    /// This many to come of the current chunk.
    Chunked(u64),
    /// Until the connection ends, or nothing more.
    UntilEnd,
}

impl Endpoint {
    pub(super) fn parse(url: &str) -> Result<Self, Failure> {
        let rest = url.strip_prefix("http://");
        let (authority, path) = rest
            .and_then(|rest| rest.split_once('/'))
            .ok_or_else(|| Failure::new(format!("no URL of a local server: {url}")))?;
        Ok(Self {
            authority: authority.to_owned(),
            path: format!("/{path}"),
        })
    }

    /// Sends a request with the headers that it always has, unless `headers` has them.
    pub(super) fn send(
        &self,
        method: &str,
        headers: &Headers<'_>,
        body: &str,
    ) -> Result<Answer, Failure> {
        self.exchange(method, headers, body)
            .map_err(|error| Failure::because(format!("{method} {}", self.path), error))
    }

    fn exchange(&self, method: &str, headers: &Headers<'_>, body: &str) -> io::Result<Answer> {
        let stream = TcpStream::connect(&*self.authority)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        let length = body.len().to_string();
        let usual = [
            ("Host", self.authority.as_str()),
            ("Connection", "close"),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("Content-Length", &length),
        ];
        let given = |name: &str| {
            headers
                .iter()
                .any(|(given, _)| given.eq_ignore_ascii_case(name))
        };
        let mut head = format!("{method} {} HTTP/1.1\r\n", self.path);
        let usual = usual.iter().filter(|(name, _)| !given(name));
        for (name, value) in usual.chain(headers) {
            head.extend([*name, ": ", *value, "\r\n"]);
        }
        (&stream).write_all(format!("{head}\r\n{body}").as_bytes())?;
        Answer::read(BufReader::new(stream))
    }
}

impl Answer {
    fn read(mut stream: BufReader<TcpStream>) -> io::Result<Self> {
        let status = line(&mut stream)?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("no status line"))?;
        let mut headers = Vec::new();
        loop {
            let line = line(&mut stream)?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Self {
            status,
            headers,
            body: BufReader::new(Body {
                stream,
                length: Length::UntilEnd,
            }),
        };
        let length = if answer.header("transfer-encoding") == Some("chunked") {
            Length::Chunked(0)
        } else if let Some(length) = answer.header("content-length") {
            Length::Known(length.parse().map_err(io::Error::other)?)
        } else {
            Length::UntilEnd
        };
        answer.body.get_mut().length = length;
        Ok(answer)
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The next JSON-RPC message: the whole body, or an event of a stream. None at the end.
    pub(super) fn next_message(&mut self) -> Result<Option<Value>, Failure> {
        let because = |error: io::Error| Failure::because("a body", error);
        let mut data = String::new();
        if !self.is_stream() {
            self.body.read_to_string(&mut data).map_err(because)?;
            if data.trim().is_empty() {
                return Ok(None);
            }
            return parse(&data).map(Some);
        }
        loop {
            let mut line = String::new();
            let at_end = self.body.read_line(&mut line).map_err(because)? == 0;
            let line = line.trim_end();
            if let Some(more) = line.strip_prefix("data:") {
                data.push_str(more.trim_start());
            }
            if (line.is_empty() || at_end) && !data.trim().is_empty() {
                return parse(&data).map(Some);
            }
            if at_end {
                return Ok(None);
            }
        }
    }

    fn is_stream(&self) -> bool {
        self.header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"))
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Length::Chunked(0) = self.length {
            let size = line(&mut self.stream)?;
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16).map_err(io::Error::other)?;
            if size == 0 {
                line(&mut self.stream)?;
                self.length = Length::Known(0);
            } else {
                self.length = Length::Chunked(size);
            }
        }
        let (Length::Known(left) | Length::Chunked(left)) = &mut self.length else {
            return self.stream.read(buffer);
        };
        let n_wanted = usize::try_from(*left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let buffer = buffer.get_mut(..n_wanted).unwrap_or_default();
        let n_read = self.stream.read(buffer)?;
        *left -= n_read as u64;
        if n_read > 0 && matches!(self.length, Length::Chunked(0)) {
            // The line end after a chunk.
            line(&mut self.stream)?;
        }
        Ok(n_read)
    }
}

fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    line.truncate(line.trim_end().len());
    Ok(line)
}

fn parse(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::because("not JSON", error))
}
