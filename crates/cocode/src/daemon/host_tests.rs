//! The end of the daemon, whoever is there.

use cocode_gateway::Gateway;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use super::Hosting;
use super::fronts::unread;
use crate::daemon::hello::{self, Front, Hello, Refusal, Wants, Welcome};
use crate::daemon::place::Place;
use crate::daemon::world::world;
use crate::managing::{Purpose, Setup};

#[test]
fn the_end_does_not_wait_for_files_that_a_front_is_about_to_be_served_by() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build();
    runtime.unwrap().block_on(end());
}

async fn end() {
    // The only one who could read is at something else, until the end.
    let (go_on, busy) = std::sync::mpsc::channel::<()>();
    let reading = tokio::task::spawn_blocking(move || busy.recv());
    let scratch = tempfile::tempdir().unwrap();
    let front = Front {
        world: world(),
        directory: Some(scratch.path().into()),
        home: Some(scratch.path().into()),
        ..Front::default()
    };
    let mut workspace = unread(&front).unwrap();
    // What holds for the whole process is not the matter here.
    workspace.environment.variables = crate::environment::Variables::default();
    let setup = Setup::new(Purpose::Serving, &workspace).unwrap();
    let gateway = Gateway::new();
    let place = Place {
        socket: scratch.path().join("own/daemon.sock"),
        log: scratch.path().join("daemon.log"),
        home: None,
    };
    let hosting = Hosting::begin(&place, &gateway, &setup, &workspace, None).await;
    let mut hosting = hosting.unwrap();
    let mut client = UnixStream::connect(&place.socket).await.unwrap();
    let hello = Hello::new(Wants::Front(Box::new(front)));
    client
        .write_all(&hello::line(&hello).unwrap())
        .await
        .unwrap();
    let host = std::sync::Arc::clone(&hosting.host);
    let is_entering = async {
        while host.fronts.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = hosting.welcome() => panic!("nobody wants the end"),
        () = is_entering => {}
    }
    hosting.leave().await;
    hosting.over().await;
    let mut line = String::new();
    BufReader::new(client).read_line(&mut line).await.unwrap();
    let welcome: Welcome = serde_json::from_str(&line).unwrap();
    assert_eq!(welcome.refused, Some(Refusal::Ending));
    go_on.send(()).unwrap();
    reading.await.unwrap().unwrap();
    setup.end();
}
