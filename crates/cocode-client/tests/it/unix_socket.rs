//! Servers on a unix socket.

use cocode_client::{Closed, ConnectError, OpenError, RequestError, Session, SessionOptions};
use cocode_testkit::Script;

use crate::support::{assert_works, call, connect, text_of};

#[tokio::test]
async fn a_session_works_in_both_eras() {
    for script in [Script::new(), Script::modern()] {
        let server = script.unix();
        let session = connect(cocode_client::unix(server.path().to_owned())).await;
        assert_eq!(
            text_of(&call(&session).await.unwrap()),
            r#"{"word":"hello"}"#
        );
        assert_eq!((session.server().transport, session.pid()), ("unix", None));
        assert_works(&session).await;
        session.close().await;
    }
}

#[tokio::test]
async fn a_missing_socket_is_named() {
    let path = std::env::temp_dir().join("cocode-no-such.sock");
    let outcome = Session::connect(cocode_client::unix(path.clone()), SessionOptions::default());
    let error = outcome.await.unwrap_err();
    assert_eq!(error.code(), "unreachable");
    match error {
        ConnectError::Open(OpenError::Unix { path: named, .. }) => assert_eq!(named, path),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_hangs_up_ends_the_session() {
    let server = Script::new().on("tools/call").disconnect().unix();
    let session = connect(cocode_client::unix(server.path().to_owned())).await;
    match call(&session).await {
        Err(RequestError::Closed {
            reason: Closed::ByPeer | Closed::Io(_),
            ..
        }) => {}
        other => panic!("{other:?}"),
    }
}
