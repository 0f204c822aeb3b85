//! What a supervisor hears, at real sockets.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use tempfile::TempDir;

use super::{Notices, Supervisor, watchdog};
use crate::environment::Variables;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

fn variables(all: &[(&str, &str)]) -> Variables {
    let all = all.iter();
    all.map(|(name, value)| (OsString::from(name), OsString::from(value)))
        .collect()
}

/// The socket of a supervisor, in two ways: the runtime may not have noticed yet what is there.
struct Ear {
    noticed: tokio::net::UnixDatagram,
    arrived: UnixDatagram,
}

impl Ear {
    fn of(arrived: UnixDatagram) -> Self {
        arrived.set_nonblocking(true).unwrap();
        let noticed = arrived.try_clone().unwrap();
        Self {
            noticed: tokio::net::UnixDatagram::from_std(noticed).unwrap(),
            arrived,
        }
    }

    /// At a path, and that path.
    fn within(directory: &TempDir) -> (Self, String) {
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        (Self::of(socket), path.display().to_string())
    }

    async fn heard(&self) -> String {
        let mut bytes = [0; 64];
        let received = tokio::time::timeout(PATIENCE, self.noticed.recv(&mut bytes)).await;
        let length = received.unwrap().unwrap();
        String::from_utf8(bytes.into_iter().take(length).collect()).unwrap()
    }

    fn hears_nothing(&self) -> bool {
        let heard = self.arrived.recv(&mut [0; 64]);
        heard.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

#[tokio::test]
async fn a_supervisor_hears_when_the_gateway_serves_and_when_it_ends() {
    let directory = TempDir::new().unwrap();
    let (socket, address) = Ear::within(&directory);
    let told = Supervisor::ready(&variables(&[("NOTIFY_SOCKET", &address)])).await;
    assert_eq!(socket.heard().await, "READY=1");
    told.stopping().await;
    assert_eq!(socket.heard().await, "STOPPING=1");
    assert!(socket.hears_nothing(), "nobody wanted signs of life");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_abstract_name_is_an_address_as_well() {
    use std::os::linux::net::SocketAddrExt as _;

    let name = format!("cocode-supervisor-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let socket = Ear::of(UnixDatagram::bind_addr(&address).unwrap());
    let named = format!("@{name}");
    let _told = Supervisor::ready(&variables(&[("NOTIFY_SOCKET", &named)])).await;
    assert_eq!(socket.heard().await, "READY=1");
}

#[tokio::test]
async fn signs_of_life_come_from_the_runtime_that_serves() {
    let directory = TempDir::new().unwrap();
    let (socket, address) = Ear::within(&directory);
    let told = Supervisor::ready(&variables(&[
        ("NOTIFY_SOCKET", &address),
        ("WATCHDOG_USEC", "20000"),
    ]))
    .await;
    assert_eq!(socket.heard().await, "READY=1");
    for _ in 0..3 {
        assert_eq!(socket.heard().await, "WATCHDOG=1");
    }
    while !socket.hears_nothing() {}
    // The runtime of this test has one thread, as that of the gateway has: now it hangs.
    std::thread::sleep(Duration::from_millis(100));
    assert!(socket.hears_nothing(), "nothing else says that it lives");
    assert_eq!(socket.heard().await, "WATCHDOG=1", "it goes on");
    drop(told);
    while !socket.hears_nothing() {}
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(socket.hears_nothing(), "it is over");
}

#[tokio::test]
async fn nobody_is_told_where_nobody_asks() {
    for nobody in [&[][..], &[("NOTIFY_SOCKET", "")]] {
        assert!(Notices::wanted(&variables(nobody)).is_none());
        Supervisor::ready(&variables(nobody)).await.stopping().await;
    }
}

#[tokio::test]
async fn a_supervisor_that_is_gone_harms_nobody() {
    let directory = TempDir::new().unwrap();
    let gone = directory.path().join("gone").display().to_string();
    for address in [gone.as_str(), "vsock:2:1234", "relative", &"/x".repeat(200)] {
        let notices = Notices::wanted(&variables(&[("NOTIFY_SOCKET", address)])).unwrap();
        assert!(notices.try_say("READY=1").await.is_err(), "{address}");
        notices.say("READY=1").await;
        assert!(notices.has_failed.into_inner());
    }
    // One that comes back hears what is said from then on.
    let (first, address) = Ear::within(&directory);
    let told = Supervisor::ready(&variables(&[("NOTIFY_SOCKET", &address)])).await;
    drop(first);
    std::fs::remove_file(&address).unwrap();
    told.stopping().await;
    let (second, _) = Ear::within(&directory);
    told.stopping().await;
    assert_eq!(second.heard().await, "STOPPING=1");
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_that_does_not_listen_holds_nobody_up() {
    let directory = TempDir::new().unwrap();
    let (_deaf, address) = Ear::within(&directory);
    let notices = Notices::wanted(&variables(&[("NOTIFY_SOCKET", &address)])).unwrap();
    for _ in 0..100_000 {
        notices.say("WATCHDOG=1").await;
        if notices
            .has_failed
            .load(std::sync::atomic::Ordering::Relaxed)
        {
            return;
        }
    }
    panic!("the socket takes everything");
}

#[test]
fn signs_of_life_are_given_by_the_process_that_is_meant() {
    let wanted = |all: &[(&str, &str)]| watchdog(&variables(all), 7);
    let seconds = Some(Duration::from_secs(30));
    let period = ("WATCHDOG_USEC", "30000000");
    assert_eq!(wanted(&[period]), seconds);
    assert_eq!(wanted(&[period, ("WATCHDOG_PID", "7")]), seconds);
    for nobody in [
        &[][..],
        &[("WATCHDOG_PID", "7")],
        &[period, ("WATCHDOG_PID", "8")],
        &[period, ("WATCHDOG_PID", "")],
        &[("WATCHDOG_USEC", "0")],
        &[("WATCHDOG_USEC", "soon")],
    ] {
        assert_eq!(wanted(nobody), None, "{nobody:?}");
    }
}
