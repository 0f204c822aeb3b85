//! A thread that accepts loopback connections from scripted servers, which may be other processes.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Gives each connection to a function until it is dropped.
#[derive(Debug)]
pub(crate) struct Acceptor {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    pub(crate) fn start(mut take: impl FnMut(TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on the loopback interface");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let stopping = Arc::new(AtomicBool::new(false));
        let stop_seen = Arc::clone(&stopping);
        let thread = thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if stop_seen.load(Ordering::SeqCst) {
                    break;
                }
                take(stream);
            }
        });
        Self {
            address,
            stopping,
            thread: Some(thread),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the thread; a thread that has already ended needs no waking.
        if TcpStream::connect(self.address).is_ok()
            && let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !thread::panicking()
        {
            panic!("the thread behind {} has panicked", self.address);
        }
    }
}
