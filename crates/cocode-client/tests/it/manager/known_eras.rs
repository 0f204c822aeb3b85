//! The era of a server that was used before: kept unless the server itself refuses it.

use std::time::Duration;

use cocode_client::{Era, Session, SessionOptions, StateKind, Timeouts, When, unix};
use cocode_testkit::{Gate, Script};

use crate::manager::faulty::{Faulty, Transport};
use crate::manager::remembering::{learn, remembering};
use crate::manager::story::{NEVER, ONE, ready};
use crate::support::{assert_works, connect_with, http, soon, stdio};

/// Far below the time for which these tests hold the answer to a probe.
const SHORT_PROBE: Duration = Duration::from_millis(100);

fn options(known_era: Option<Era>) -> SessionOptions {
    SessionOptions {
        known_era,
        timeouts: Timeouts {
            probe: SHORT_PROBE,
            ..Timeouts::default()
        },
        ..SessionOptions::default()
    }
}

/// Lets a held probe pass when it would have timed out.
async fn open_late(gate: &Gate) {
    gate.reached().await;
    tokio::time::sleep(3 * SHORT_PROBE).await;
    gate.open();
}

fn holding(gate: &Gate) -> Script {
    let script = Script::dual().on("server/discover").nth(1);
    script.hold(gate).as_usual()
}

#[tokio::test]
async fn slow_probe_does_not_demote_a_server_known_as_modern() {
    let gate = Gate::new();
    let server = holding(&gate).unix();
    let target = unix(server.path().to_owned());
    let connecting = connect_with(target, options(Some(Era::Modern)));
    let (session, ()) = tokio::join!(connecting, open_late(&gate));
    assert_eq!(session.server().era(), Era::Modern);
    assert_works(&session).await;
}

#[tokio::test]
async fn killed_server_comes_back_in_its_era_although_it_is_slow() {
    let directory = tempfile::tempdir().unwrap();
    let gate = Gate::new();
    let server = Faulty::start(Transport::Unix, &Script::dual());
    learn(directory.path(), vec![server.spec(ONE)]).await;
    let mut options = remembering(directory.path(), When::AtOnce);
    options.timeouts.probe = SHORT_PROBE;
    options.health.ping_interval = NEVER;
    let (manager, mut story) = ready(options, vec![server.spec(ONE)]).await;
    server.restart(&holding(&gate));
    story.reaches(ONE, StateKind::Reconnecting).await;
    let (_, ()) = tokio::join!(story.reaches(ONE, StateKind::Ready), open_late(&gate));
    let status = manager.status();
    let connection = status[0].connection.as_ref().unwrap();
    assert_eq!(connection.revision.era(), Era::Modern);
    assert_eq!(server.heard("initialize"), 0);
}

#[tokio::test]
async fn server_that_ends_once_during_the_handshake_keeps_its_era() {
    for (method, era) in [
        ("server/discover", Era::Modern),
        ("initialize", Era::Legacy),
    ] {
        let server = Script::dual().on(method).run(1).exit(1).stdio();
        let session = connect_with(stdio(&server), options(Some(era))).await;
        assert_eq!(session.server().era(), era);
        assert_works(&session).await;
        assert_eq!(server.runs().all(), [1, 2]);
    }
}

#[tokio::test]
async fn overloaded_server_keeps_its_era() {
    for (method, era) in [
        ("server/discover", Era::Modern),
        ("initialize", Era::Legacy),
    ] {
        let server = Script::dual().on(method).respond(503, &[], "busy").http();
        let connecting = Session::connect(http(&server), options(Some(era)));
        let outcome = soon("the refusal", connecting).await;
        assert_eq!(outcome.unwrap_err().code(), "http-status");
        let others = server.requests().count(|request| !request.is(method));
        assert_eq!(others, 0, "{era:?}");
    }
}

#[tokio::test]
async fn probe_leaves_time_for_the_handshake_of_a_short_startup() {
    let server = Script::new().on("server/discover").ignore().unix();
    let mut options = SessionOptions::default();
    options.timeouts.connect = Duration::from_secs(2);
    assert!(options.timeouts.probe > options.timeouts.connect);
    let session = connect_with(unix(server.path().to_owned()), options).await;
    assert_eq!(session.server().era(), Era::Legacy);
    assert_works(&session).await;
}
