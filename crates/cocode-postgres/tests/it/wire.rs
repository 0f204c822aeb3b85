//! A wire to the server of a database that can be cut around a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use cocode_testkit::PostgresPeer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What the wire does with the next request that has certain words in it: it is carried.
pub(crate) const CARRY: u8 = 0;
/// The server gets it, and its answer does not arrive.
pub(crate) const LOSE_THE_ANSWER: u8 = 1;
/// The server does not get it.
pub(crate) const LOSE_THE_REQUEST: u8 = 2;

/// The server does not get it, and nobody hears anything any more.
pub(crate) const HANG: u8 = 3;

/// A wire that can be cut once, as it is planned.
pub(crate) struct Wire {
    port: u16,
    pub(crate) plan: Arc<AtomicU8>,
    _carrying: JoinSet<()>,
}

impl Wire {
    /// A wire that knows requests by these words.
    pub(crate) async fn to(peer: &PostgresPeer, words: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, of_server) = (listener.local_addr().unwrap().port(), peer.port());
        let plan = Arc::new(AtomicU8::new(CARRY));
        let mut carrying = JoinSet::new();
        let of_task = Arc::clone(&plan);
        carrying.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(("127.0.0.1", of_server)).await.unwrap();
                connections.spawn(carry(client, server, words, Arc::clone(&of_task)));
            }
        });
        Self {
            port,
            plan,
            _carrying: carrying,
        }
    }

    /// The address of a database by this wire.
    pub(crate) fn address(&self, peer: &PostgresPeer, database: &str) -> String {
        let direct = format!(":{}/", peer.port());
        let address = peer.address(database);
        address.replace(&direct, &format!(":{}/", self.port))
    }
}

/// Carries bytes both ways until one side ends, or something is to be lost.
async fn carry(
    mut client: TcpStream,
    mut server: TcpStream,
    words: &'static [u8],
    plan: Arc<AtomicU8>,
) {
    let mut said = vec![0; 65_536];
    let mut answered = vec![0; 65_536];
    loop {
        tokio::select! {
            length = client.read(&mut said) => {
                let Ok(length @ 1..) = length else { return };
                let said = &said[..length];
                let is_here = said.windows(words.len()).any(|found| found == words);
                let planned = if is_here { plan.swap(CARRY, Ordering::SeqCst) } else { CARRY };
                if planned == LOSE_THE_REQUEST {
                    return;
                }
                if planned == HANG {
                    std::future::pending::<()>().await;
                }
                server.write_all(said).await.unwrap();
                if planned == LOSE_THE_ANSWER {
                    // It is done when the server has answered.
                    assert!(server.read(&mut answered).await.unwrap() > 0);
                    return;
                }
            }
            length = server.read(&mut answered) => {
                let Ok(length @ 1..) = length else { return };
                if client.write_all(&answered[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}
