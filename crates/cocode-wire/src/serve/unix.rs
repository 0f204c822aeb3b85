//! A unix socket that only its owner can reach: one server at a time, in a directory that nobody
//! else can change, for clients of the same user that are in no sandbox, or in the same.

mod confined;
mod half_open;

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
    PermissionsExt as _,
};
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncReadExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::confined::Complaints;
use self::half_open::{HalfOpen, Handshake};
use super::http::{HttpLimits, Site, serve_accepted};
use super::line::{FirstLineError, LineOptions, read_first_line, serve_lines};
use super::service::Endpoint;
use crate::error::Closed;
use crate::limits::{ACCEPT_RETRY, CONNECT_TIMEOUT, MAX_UNIX_CLIENTS};

/// What a client gets to read that comes when there are too many.
const TOO_MANY: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":\"too many connections\"}}\n";

/// A socket that listens. Dropping it removes the socket.
#[derive(Debug)]
pub struct UnixServer {
    listener: UnixListener,
    path: PathBuf,
    /// Whose clients are let in.
    owner: u32,
    slots: Arc<Semaphore>,
    half_open: HalfOpen,
    complaints: Complaints,
    /// Held for as long as the server lives, so that there is only one. The file stays: removing it
    /// would let two servers hold two files of one name.
    _lock: File,
}

/// Why a socket cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnixServerError {
    /// Another server has the socket, or is about to.
    #[error("a server is already running at {}", path.display())]
    AlreadyRunning {
        /// The socket.
        path: PathBuf,
    },
    /// The system cannot name the socket.
    #[error("the path {} is too long or unfit for a unix socket", path.display())]
    Path {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Somebody else could replace the socket.
    #[error("the directory {} {why}", path.display())]
    NotPrivate {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Something that is no socket has its name.
    #[error("{} exists and is not a socket", path.display())]
    NotASocket {
        /// The socket.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

impl UnixServer {
    /// Listens at `path`. Makes the directory if there is none, and takes the place of a socket that
    /// a dead server has left.
    pub async fn bind(path: impl Into<PathBuf>) -> Result<Self, UnixServerError> {
        let path = path.into();
        if let Err(source) = SocketAddr::from_pathname(&path) {
            return Err(UnixServerError::Path { path, source });
        }
        let owner = rustix::process::geteuid().as_raw();
        prepare_directory(&path, owner)?;
        let lock = lock(&path)?;
        clear(&path).await?;
        let failed = |action| {
            let path = path.clone();
            move |source| UnixServerError::Io {
                action,
                path,
                source,
            }
        };
        let listener = UnixListener::bind(&path).map_err(failed("listen at"))?;
        let server = Self {
            listener,
            path: path.clone(),
            owner,
            slots: Arc::new(Semaphore::new(MAX_UNIX_CLIENTS)),
            half_open: HalfOpen::default(),
            complaints: Complaints::default(),
            _lock: lock,
        };
        // Until here the directory keeps others away, and after this the socket does as well.
        std::fs::set_permissions(&path, Permissions::from_mode(0o600))
            .map_err(failed("protect"))?;
        Ok(server)
    }

    /// Where the server listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next client. Clients of other users are refused, and so are programs in a sandbox that this process is not
    /// in, programs that this process has started, and all clients while there are too many. A client that has not
    /// yet sent a request makes room for the next one.
    ///
    /// Cancel safe.
    pub async fn accept(&self) -> UnixClient {
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _address)) => stream,
                Err(error) => {
                    // Out of descriptors, most likely: others have to leave first.
                    tracing::warn!(%error, path = %self.path.display(), "cannot accept");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                    continue;
                }
            };
            if let Some(client) = self.admit(stream) {
                return client;
            }
        }
    }

    fn admit(&self, stream: UnixStream) -> Option<UnixClient> {
        let peer = match stream.peer_cred() {
            Ok(peer) => peer,
            Err(error) => {
                tracing::warn!(%error, "a client that cannot be identified was turned away");
                return None;
            }
        };
        if peer.uid() != self.owner {
            tracing::warn!(uid = peer.uid(), "a client of another user was turned away");
            return None;
        }
        if let Err(why) = confined::check(&stream) {
            self.complaints.add(peer.pid(), &why);
            say(&stream, why.told());
            return None;
        }
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok();
        let Some(slot) = slot.or_else(|| self.half_open.evict_oldest()) else {
            tracing::warn!(limit = MAX_UNIX_CLIENTS, "too many clients");
            say(&stream, TOO_MANY);
            return None;
        };
        Some(UnixClient {
            stream,
            unread: Bytes::new(),
            pid: peer.pid(),
            handshake: self.half_open.add(slot),
            slot: None,
        })
    }
}

/// Says something to a client that is not let in, if there is room for it.
fn say(stream: &UnixStream, text: &[u8]) {
    if let Err(error) = stream.try_write(text) {
        tracing::debug!(%error, "a client was turned away without a word");
    }
}

impl Drop for UnixServer {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "the socket was not removed");
        }
    }
}

/// A client of the same user.
#[derive(Debug)]
pub struct UnixClient {
    stream: UnixStream,
    unread: Bytes,
    pid: Option<i32>,
    handshake: Arc<Handshake>,
    /// Counts among the clients until it is dropped. Before the client has said what it wants, the handshake has it.
    slot: Option<OwnedSemaphorePermit>,
}

impl UnixClient {
    /// The process of the client, as far as the system tells.
    pub fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// The connection itself, to say something before the client is served. What is read here is
    /// not served.
    pub fn stream(&mut self) -> &mut UnixStream {
        &mut self.stream
    }

    /// The first byte that the client sends, which must come within `patience`. It stays to be read.
    /// To be called once, before anything else is read.
    ///
    /// Cancel safe.
    pub async fn first_byte(&mut self, patience: Duration) -> Result<u8, FirstLineError> {
        self.read_more(patience).await?;
        self.unread.first().copied().ok_or(FirstLineError::Ended)
    }

    /// Waits for the whole head of an HTTP request, of at most `limit` bytes, which must come within `patience`. It
    /// stays to be read. What is too long is left to whoever reads it.
    ///
    /// Not cancel safe.
    pub async fn http_head(
        &mut self,
        limit: usize,
        patience: Duration,
    ) -> Result<(), FirstLineError> {
        let deadline = tokio::time::Instant::now() + patience;
        while self.unread.len() < limit && !self.unread.windows(4).any(|end| end == b"\r\n\r\n") {
            let before = self.unread.len();
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            self.read_more(left).await?;
            if self.unread.len() == before {
                return Err(FirstLineError::Ended);
            }
        }
        self.slot = Some(self.handshake.finish()?);
        Ok(())
    }

    /// Adds to what is unread, unless the client has ended.
    async fn read_more(&mut self, patience: Duration) -> Result<(), FirstLineError> {
        let mut buffer = [0; 1024];
        let reading = tokio::time::timeout(patience, self.stream.read(&mut buffer));
        let reading = tokio::select! {
            biased;
            () = self.handshake.evicted() => return Err(FirstLineError::Evicted),
            reading = reading => reading,
        };
        let n_read = reading
            .map_err(|_elapsed| FirstLineError::TimedOut { after: patience })?
            .map_err(FirstLineError::Io)?;
        let read = buffer.get(..n_read).unwrap_or_default();
        self.unread = [&self.unread, read].concat().into();
        Ok(())
    }

    /// Reads one line of at most `limit` bytes, all of which must come within `patience`. What follows
    /// is kept for [`serve`](Self::serve). To be called once, before anything else is read but the
    /// first byte.
    ///
    /// Not cancel safe: what was read is lost with the future.
    pub async fn first_line(
        &mut self,
        limit: usize,
        patience: Duration,
    ) -> Result<Bytes, FirstLineError> {
        let unread = std::mem::take(&mut self.unread);
        let mut source = (&unread[..]).chain(&mut self.stream);
        let first = tokio::select! {
            biased;
            () = self.handshake.evicted() => return Err(FirstLineError::Evicted),
            first = read_first_line(&mut source, limit, patience) => first?,
        };
        self.slot = Some(self.handshake.finish()?);
        // Nobody has read from the socket what had come before.
        let (before, _) = source.into_inner();
        self.unread = if before.is_empty() {
            first.rest
        } else {
            [&first.rest, before].concat().into()
        };
        Ok(first.line)
    }

    /// Serves the client as [`serve_lines`] does.
    pub async fn serve(
        self,
        endpoint: &dyn Endpoint,
        mut options: LineOptions,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Closed {
        let Self {
            stream,
            unread,
            pid: _,
            handshake,
            slot,
        } = self;
        options.unread = unread;
        // Held until the client leaves, whether it says something or not.
        let Some(_slot) = slot.or_else(|| handshake.finish().ok()) else {
            return Closed::ByUs;
        };
        let (source, sink) = stream.into_split();
        serve_lines(source, sink, endpoint, options, shutdown).await
    }
}

impl UnixClient {
    /// Serves the client HTTP, as an [`HttpServer`](super::HttpServer) does. When `shutdown` is ready,
    /// the request under way may finish.
    pub async fn serve_http(
        self,
        site: Arc<dyn Site>,
        limits: HttpLimits,
        shutdown: impl Future<Output = ()> + Send,
    ) {
        let Self {
            stream,
            unread,
            pid: _,
            handshake,
            slot,
        } = self;
        let Some(slot) = slot.or_else(|| handshake.finish().ok()) else {
            return;
        };
        let (source, sink) = stream.into_split();
        let source = std::io::Cursor::new(unread).chain(source);
        serve_accepted(tokio::io::join(source, sink), slot, site, limits, shutdown).await;
    }
}

/// Makes the directory of `path` if there is none, and makes sure that nobody but `owner` can put
/// something else in the place of the socket.
fn prepare_directory(path: &Path, owner: u32) -> Result<(), UnixServerError> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let failed = |action| {
        move |source| UnixServerError::Io {
            action,
            path: directory.to_owned(),
            source,
        }
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(failed("make the directory"))?;
    check_socket_directory(directory, owner)
}

/// Fails if another user than `owner` can replace a socket in this directory. Servers and
/// clients check it alike.
pub fn check_socket_directory(directory: &Path, owner: u32) -> Result<(), UnixServerError> {
    let found = std::fs::symlink_metadata(directory).map_err(|source| UnixServerError::Io {
        action: "look at",
        path: directory.to_owned(),
        source,
    })?;
    let why = if found.is_symlink() {
        "is a symbolic link"
    } else if found.uid() != owner {
        "belongs to another user"
    } else if found.mode() & 0o022 != 0 {
        "can be changed by other users"
    } else {
        return Ok(());
    };
    Err(UnixServerError::NotPrivate {
        path: directory.to_owned(),
        why,
    })
}

/// Holds the lock beside `path`, without waiting for it.
fn lock(path: &Path) -> Result<File, UnixServerError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let lock = PathBuf::from(name);
    let failed = |source| UnixServerError::Io {
        action: "lock",
        path: lock.clone(),
        source,
    };
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&lock)
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(UnixServerError::AlreadyRunning {
            path: path.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// Removes the socket that a dead server has left, if there is one.
async fn clear(path: &Path) -> Result<(), UnixServerError> {
    let failed = |action| {
        move |source| UnixServerError::Io {
            action,
            path: path.to_owned(),
            source,
        }
    };
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {}
        Ok(_other) => {
            return Err(UnixServerError::NotASocket {
                path: path.to_owned(),
            });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("look at")(error)),
    }
    // Another program may serve here that does not know of the lock.
    match tokio::time::timeout(CONNECT_TIMEOUT, UnixStream::connect(path)).await {
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(failed("remove"))
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // A queue of clients that is full has a server too.
        Ok(Err(error)) if error.kind() != io::ErrorKind::WouldBlock => {
            Err(failed("connect to")(error))
        }
        Ok(Ok(_) | Err(_)) | Err(_) => Err(UnixServerError::AlreadyRunning {
            path: path.to_owned(),
        }),
    }
}

#[cfg(test)]
#[path = "unix_tests.rs"]
mod tests;
