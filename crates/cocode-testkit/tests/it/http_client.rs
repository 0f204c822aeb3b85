//! A blocking HTTP client, small enough to see every byte.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use cocode_testkit::HttpServer;
use serde_json::Value;

pub(crate) struct Client {
    socket: BufReader<TcpStream>,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Client {
    pub(crate) fn connect(server: &HttpServer) -> Self {
        Self::connect_to(server.address())
    }

    pub(crate) fn connect_to(address: SocketAddr) -> Self {
        Self {
            socket: BufReader::new(TcpStream::connect(address).unwrap()),
        }
    }

    pub(crate) fn send(&mut self, verb: &str, path: &str, headers: &[(&str, &str)], body: &str) {
        let mut text = format!("{verb} {path} HTTP/1.1\r\nHost: localhost\r\n");
        for (name, value) in headers {
            text.extend([name, ": ", value, "\r\n"]);
        }
        text.extend([
            "Content-Length: ",
            &body.len().to_string(),
            "\r\n\r\n",
            body,
        ]);
        self.socket.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// Posts a message to `/mcp` with the headers that every server wants.
    pub(crate) fn post(&mut self, message: &Value, headers: &[(&str, &str)]) {
        let accept = ("Accept", "application/json, text/event-stream");
        let headers: Vec<_> = headers.iter().copied().chain([accept]).collect();
        self.send("POST", "/mcp", &headers, &message.to_string());
    }

    pub(crate) fn call(&mut self, message: &Value, headers: &[(&str, &str)]) -> Reply {
        self.post(message, headers);
        self.reply()
    }

    /// Reads the head of a response.
    pub(crate) fn head(&mut self) -> Reply {
        let line = self.line();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            if line.is_empty() {
                return Reply {
                    status,
                    headers,
                    body: String::new(),
                };
            }
            let (name, value) = line.split_once(": ").unwrap();
            headers.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Reads a whole response.
    pub(crate) fn reply(&mut self) -> Reply {
        let mut reply = self.head();
        if reply.header("Transfer-Encoding").is_some() {
            while let Some(chunk) = self.chunk() {
                reply.body.push_str(&chunk);
            }
        } else {
            let length: usize = reply.header("Content-Length").unwrap().parse().unwrap();
            let mut body = vec![0; length];
            self.socket.read_exact(&mut body).unwrap();
            reply.body = String::from_utf8(body).unwrap();
        }
        reply
    }

    /// The next chunk of a stream, or nothing at its proper end.
    pub(crate) fn chunk(&mut self) -> Option<String> {
        let size = usize::from_str_radix(&self.line(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        self.socket.read_exact(&mut chunk).unwrap();
        chunk.truncate(size);
        (size > 0).then(|| String::from_utf8(chunk).unwrap())
    }

    /// Everything until the server closes the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.socket.read_to_end(&mut rest).unwrap();
        rest
    }

    /// The connection itself. Nothing may be left to read of the last answer.
    pub(crate) fn socket(&self) -> &TcpStream {
        assert!(self.socket.buffer().is_empty());
        self.socket.get_ref()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.socket.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}
