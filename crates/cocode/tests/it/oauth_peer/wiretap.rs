//! A proxy that remembers all that went through it, and knows what of that nobody else may see.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use url::form_urlencoded;

/// The members of forms and answers that are secrets.
const SECRET_MEMBERS: [&str; 13] = [
    "access_token",
    "assertion",
    "client_assertion",
    "client_secret",
    "code",
    "code_verifier",
    "id_token",
    "password",
    "refresh_token",
    "registration_access_token",
    "state",
    "subject_token",
    "token",
];

/// Nothing shorter is a secret.
pub(super) const SHORTEST: usize = 16;

/// So that the end of a message is the end of a connection.
const CLOSE: &str = "connection: close\r\n\r\n";

/// A proxy for plain HTTP. It runs until the test is over.
pub(super) struct Wiretap {
    pub(super) url: String,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

/// One request and what was answered.
#[derive(Clone, Default)]
struct Exchange {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    answer: Arc<Mutex<Vec<u8>>>,
}

impl Wiretap {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let exchanges = Arc::default();
        let recorded = Arc::clone(&exchanges);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, recorded) = (client.unwrap(), Arc::clone(&recorded));
                // Who goes away in the midst of it has what they wanted.
                thread::spawn(move || pass_on(&client, &recorded));
            }
        });
        Self { url, exchanges }
    }

    /// Everything secret that was said so far.
    pub(super) fn secrets(&self) -> BTreeSet<String> {
        let exchanges = self.exchanges.lock().unwrap().clone();
        let mut found = BTreeSet::new();
        for exchange in &exchanges {
            exchange.collect(&mut found);
        }
        found.retain(|secret| secret.len() >= SHORTEST);
        found
    }
}

impl Exchange {
    fn collect(&self, found: &mut BTreeSet<String>) {
        for (name, value) in &self.headers {
            match name.as_str() {
                "authorization" => {
                    let (scheme, value) = value.split_once(' ').unwrap();
                    found.insert(value.to_owned());
                    if scheme == "Basic" {
                        let pair = String::from_utf8(STANDARD.decode(value).unwrap()).unwrap();
                        found.insert(pair.split_once(':').unwrap().1.to_owned());
                    }
                }
                "dpop" => {
                    found.insert(value.clone());
                }
                _ => {}
            }
        }
        for (name, value) in form_urlencoded::parse(&self.body) {
            if SECRET_MEMBERS.contains(&name.as_ref()) {
                found.insert(value.into_owned());
            }
        }
        let answer = self.answer.lock().unwrap();
        let answer = String::from_utf8_lossy(&answer);
        if let (Some(begin), Some(end)) = (answer.find('{'), answer.rfind('}'))
            && let Some(text) = answer.get(begin..=end)
            && let Ok(Value::Object(members)) = serde_json::from_str(text)
        {
            for (name, value) in members {
                if let Value::String(value) = value
                    && SECRET_MEMBERS.contains(&name.as_str())
                {
                    found.insert(value);
                }
            }
        }
    }
}

/// Carries one request to where it goes, and the answer back.
fn pass_on(client: &TcpStream, recorded: &Mutex<Vec<Exchange>>) -> io::Result<()> {
    let mut reader = BufReader::new(client);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let bad = || io::Error::other("no request for a proxy");
    let (method, rest) = line.split_once(" http://").ok_or_else(bad)?;
    let (authority, rest) = rest.split_once('/').ok_or_else(bad)?;
    let mut head = format!("{method} /{rest}");
    let mut exchange = Exchange::default();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        let name = name.to_ascii_lowercase();
        if name == "content-length" {
            length = value.parse().map_err(io::Error::other)?;
        }
        if name != "connection" {
            head.push_str(&line);
        }
        exchange.headers.push((name, value.to_owned()));
    }
    head.push_str(CLOSE);
    exchange.body.resize(length, 0);
    reader.read_exact(&mut exchange.body)?;
    let mut server = TcpStream::connect(authority)?;
    server.write_all(head.as_bytes())?;
    server.write_all(&exchange.body)?;
    let answer = Arc::clone(&exchange.answer);
    recorded.lock().unwrap().push(exchange);
    let (mut client, mut server) = (client, BufReader::new(server));
    loop {
        let mut line = String::new();
        if server.read_line(&mut line)? <= "\r\n".len() {
            break;
        }
        // Some servers say that the connection goes on, whatever they were asked for.
        if !line.to_ascii_lowercase().starts_with("connection:") {
            client.write_all(line.as_bytes())?;
        }
    }
    client.write_all(CLOSE.as_bytes())?;
    loop {
        let piece = server.fill_buf()?;
        if piece.is_empty() {
            return Ok(());
        }
        answer.lock().unwrap().extend_from_slice(piece);
        client.write_all(piece)?;
        let n_bytes = piece.len();
        server.consume(n_bytes);
    }
}
