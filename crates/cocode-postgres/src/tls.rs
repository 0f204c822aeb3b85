//! TLS for connections to a database: certificates are checked as those of HTTP servers are.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};

use cocode_wire::{HttpClient, Secured};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// Encrypts connections.
#[derive(Clone)]
pub(crate) struct Encryption(HttpClient);

impl Encryption {
    /// Trusts whom HTTP trusts, and the authorities in a file.
    pub(crate) fn new(http: &HttpClient, ca_file: Option<PathBuf>) -> Self {
        Self(match ca_file {
            Some(file) => http.with_ca_file(file),
            None => http.clone(),
        })
    }
}

impl MakeTlsConnect<Socket> for Encryption {
    type Stream = Encrypted;
    type TlsConnect = EncryptionFor;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<EncryptionFor> {
        Ok(EncryptionFor {
            http: self.0.clone(),
            host: domain.to_owned(),
        })
    }
}

/// Encrypts connections to one host.
pub(crate) struct EncryptionFor {
    http: HttpClient,
    host: String,
}

impl TlsConnect<Socket> for EncryptionFor {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let stream = self.http.secured(&self.host, socket).await?;
            Ok(Encrypted(stream))
        })
    }
}

/// An encrypted connection. The certificate was verified, so the password is not bound to it besides.
pub(crate) struct Encrypted(Secured<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
