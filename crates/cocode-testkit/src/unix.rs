//! A scripted server on a unix socket, one message a line.

use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::net::UnixListener;

use crate::background::{Background, accept_all};
use crate::lines;
use crate::message::Message;
use crate::presence::Presence;
use crate::recorder::Recorder;
use crate::script::Script;

/// A running server. Dropping it ends it and removes the socket.
#[derive(Debug)]
pub struct UnixServer {
    path: PathBuf,
    records: Records,
    presence: Presence,
}

#[derive(Debug, Clone, Default)]
struct Records {
    received: Recorder<Message>,
    connections: Recorder<u32>,
}

impl Script {
    /// Starts the script on a unix socket in the directory for temporary files.
    pub fn unix(&self) -> UnixServer {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::SeqCst);
        let name = format!("cocode-scripted-{}-{number}.sock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let records = Records::default();
        UnixServer {
            presence: Presence::new(start(self, &path, &records)),
            path,
            records,
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
        &self.records.received
    }

    /// The connections that were accepted, numbered from one after every start.
    pub fn connections(&self) -> &Recorder<u32> {
        &self.records.connections
    }

    /// The first received message that fits, waiting for it if need be.
    pub async fn wait_for(&self, fits: impl Fn(&Message) -> bool) -> Message {
        self.records.received.wait_for(fits).await
    }

    /// Ends the server without a chance to tidy up: open connections end, and the socket stays
    /// where it is but refuses.
    pub fn kill(&self) {
        assert!(self.presence.is_up(), "the server is down already");
        self.presence.end();
    }

    /// Starts the script at the same path. A server that still runs is killed first.
    pub fn restart(&self, script: &Script) {
        self.presence.end();
        // Only a test that has removed the socket as its fault has none here.
        drop(std::fs::remove_file(&self.path));
        self.presence
            .begin(start(script, &self.path, &self.records));
    }

    /// Lets the server stand still with all its connections: nothing is read or answered.
    pub fn hang(&self) {
        self.presence.hang();
    }

    /// Lets a server that hangs go on.
    pub fn resume(&self) {
        self.presence.resume();
    }
}

impl Drop for UnixServer {
    fn drop(&mut self) {
        // A test may have removed the socket as its fault.
        drop(std::fs::remove_file(&self.path));
    }
}

fn start(script: &Script, path: &Path, records: &Records) -> Background {
    script.assert_fits_unix();
    let listener = StdListener::bind(path).expect("a socket among the temporary files");
    listener
        .set_nonblocking(true)
        .expect("sockets can be nonblocking");
    let serving = serve(script.clone(), listener, records.clone());
    Background::start(|| serving)
}

async fn serve(script: Script, listener: StdListener, records: Records) {
    let listener = UnixListener::from_std(listener).expect("the socket is nonblocking");
    let accept = async || {
        let (socket, _) = listener
            .accept()
            .await
            .expect("connections can be accepted");
        socket
    };
    accept_all(accept, |number, socket| {
        records.connections.push(number);
        let (script, received) = (script.clone(), records.received.clone());
        async move {
            let (input, output) = socket.into_split();
            let record = |message: &Message| received.push(message.clone());
            lines::serve(&script, number, input, output, record).await;
        }
    })
    .await;
}
