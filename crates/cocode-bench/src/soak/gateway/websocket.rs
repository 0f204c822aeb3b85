//! The least of a WebSocket client: whole text messages on one connection.

use std::net::SocketAddr;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Failure;
use crate::http::HttpConnection;

/// Room for one read.
const READ_BYTES: usize = 16 * 1024;

const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

/// One connection.
#[derive(Debug)]
pub(crate) struct WebSocket {
    stream: TcpStream,
    buffer: BytesMut,
}

impl WebSocket {
    pub(crate) async fn open(address: SocketAddr, path: &str) -> Result<Self, Failure> {
        let mut connection = HttpConnection::open(address).await?;
        // The key only keeps caches away, of which there are none here.
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             sec-websocket-protocol: mcp\r\n"
        );
        connection.send(&head, b"").await?;
        let answer = connection.answer().await?;
        if answer.status != 101 {
            return Err(format!("a WebSocket was refused with {}", answer.status).into());
        }
        let (stream, buffer) = connection.into_parts();
        Ok(Self { stream, buffer })
    }

    pub(crate) async fn send(&mut self, message: &[u8]) -> Result<(), Failure> {
        self.send_frame(TEXT, message).await
    }

    /// The next message.
    ///
    /// Cancel safe: what was read stays in the buffer.
    pub(crate) async fn receive(&mut self) -> Result<Vec<u8>, Failure> {
        loop {
            let Some((kind, payload)) = self.frame() else {
                self.buffer.reserve(READ_BYTES);
                if self.stream.read_buf(&mut self.buffer).await? == 0 {
                    return Err("the WebSocket has ended".into());
                }
                continue;
            };
            match kind {
                TEXT => return Ok(payload),
                PING => self.send_frame(PONG, &payload).await?,
                PONG => {}
                CLOSE => return Err("the WebSocket was closed".into()),
                other => return Err(format!("a frame of kind {other:#x}").into()),
            }
        }
    }

    /// Says goodbye and waits for the same.
    pub(crate) async fn close(mut self) -> Result<(), Failure> {
        self.send_frame(CLOSE, &1000_u16.to_be_bytes()).await?;
        while self.receive().await.is_ok() {}
        Ok(())
    }

    async fn send_frame(&mut self, kind: u8, payload: &[u8]) -> Result<(), Failure> {
        let mut frame = vec![kind];
        // Clients have to mask; a mask of zeros changes nothing.
        match u16::try_from(payload.len())? {
            length @ 0..=125 => frame.push(0x80 | u8::try_from(length)?),
            length => {
                frame.push(0x80 | 0x7e);
                frame.extend_from_slice(&length.to_be_bytes());
            }
        }
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(payload);
        self.stream.write_all(&frame).await?;
        Ok(())
    }

    /// Takes a whole frame out of the buffer.
    fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let (kind, short) = (*self.buffer.first()?, usize::from(*self.buffer.get(1)?));
        let (head, length) = match short {
            126 => {
                let length = self.buffer.get(2..4)?.try_into().ok()?;
                (4, usize::from(u16::from_be_bytes(length)))
            }
            127 => {
                let length = self.buffer.get(2..10)?.try_into().ok()?;
                (10, usize::try_from(u64::from_be_bytes(length)).ok()?)
            }
            _ => (2, short),
        };
        let payload = self.buffer.get(head..head + length)?.to_vec();
        self.buffer.advance(head + length);
        Some((kind, payload))
    }
}
