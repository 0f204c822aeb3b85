//! What the servers of one connector share.

use cocode_client::{Connector as _, HttpClient, HttpSettings, PlainConnector, Session};
use cocode_testkit::Script;

use crate::manager::faulty::{Faulty, Transport};
use crate::manager::story::{ONE, for_each};
use crate::support::{connect, text_of};

#[tokio::test]
async fn certificates_are_read_once_for_all_attempts_and_clones() {
    let transports = [Transport::Http, Transport::Sse, Transport::WebSocket];
    for_each(transports, |transport| async move {
        let server = Faulty::start(transport, &Script::new().tls());
        let spec = server.spec(ONE);
        let trusted = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(trusted.path(), server.authority_pem()).unwrap();
        let connector = PlainConnector {
            http: HttpClient::new(HttpSettings {
                extra_ca_files: vec![trusted.path().to_owned()],
                ..HttpSettings::default()
            }),
            ..PlainConnector::default()
        };
        let first = connect(connector.reach(&spec).await.unwrap().target).await;
        assert_echoes(&first).await;
        // Whoever reads it again finds nothing.
        trusted.close().unwrap();
        for connector in [connector.clone(), connector] {
            let next = connect(connector.reach(&spec).await.unwrap().target).await;
            assert_echoes(&next).await;
        }
    })
    .await;
}

async fn assert_echoes(session: &Session) {
    let called = crate::support::call(session).await.unwrap();
    assert_eq!(text_of(&called), r#"{"word":"hello"}"#);
}
