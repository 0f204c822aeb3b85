//! A scripted server on a unix socket, one message a line.

use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::net::UnixListener;

use crate::background::{Background, accept_all};
use crate::lines;
use crate::message::Message;
use crate::recorder::Recorder;
use crate::script::Script;

/// A running server. Dropping it ends it and removes the socket.
#[derive(Debug)]
pub struct UnixServer {
    path: PathBuf,
    received: Recorder<Message>,
    connections: Recorder<u32>,
    _background: Background,
}

impl Script {
    /// Starts the script on a unix socket in the directory for temporary files.
    pub fn unix(&self) -> UnixServer {
        static LAST: AtomicU32 = AtomicU32::new(0);
        self.assert_fits_unix();
        let number = LAST.fetch_add(1, Ordering::SeqCst);
        let name = format!("cocode-scripted-{}-{number}.sock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let listener = StdListener::bind(&path).expect("a socket among the temporary files");
        listener
            .set_nonblocking(true)
            .expect("sockets can be nonblocking");
        let (received, connections) = (Recorder::default(), Recorder::default());
        let serving = serve(
            self.clone(),
            listener,
            received.clone(),
            connections.clone(),
        );
        let background = Background::start(|| serving);
        UnixServer {
            path,
            received,
            connections,
            _background: background,
        }
    }
}

impl UnixServer {
    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The socket as a URL, `unix:///…`.
    pub fn url(&self) -> String {
        format!("unix://{}", self.path.display())
    }

    /// What the server has received, on all its connections.
    pub fn received(&self) -> &Recorder<Message> {
        &self.received
    }

    /// The connections that were accepted, numbered from one.
    pub fn connections(&self) -> &Recorder<u32> {
        &self.connections
    }

    /// The first received message that fits, waiting for it if need be.
    pub async fn wait_for(&self, fits: impl Fn(&Message) -> bool) -> Message {
        self.received.wait_for(fits).await
    }
}

impl Drop for UnixServer {
    fn drop(&mut self) {
        // A test may have removed the socket as its fault.
        drop(std::fs::remove_file(&self.path));
    }
}

async fn serve(
    script: Script,
    listener: StdListener,
    received: Recorder<Message>,
    connections: Recorder<u32>,
) {
    let listener = UnixListener::from_std(listener).expect("the socket is nonblocking");
    let accept = async || {
        let (socket, _) = listener
            .accept()
            .await
            .expect("connections can be accepted");
        socket
    };
    accept_all(accept, |number, socket| {
        connections.push(number);
        let (script, received) = (script.clone(), received.clone());
        async move {
            let (input, output) = socket.into_split();
            let record = |message: &Message| received.push(message.clone());
            lines::serve(&script, number, input, output, record).await;
        }
    })
    .await;
}
