//! A server played by the test itself, over a memory link: no other thread takes part, so that
//! tests can pause the clock.

use cocode_client::{Protocol, RawJson, Session, SessionOptions, memory_pair};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

const CAP: usize = 1024 * 1024;

/// The other end of a session.
pub(crate) struct Peer {
    stream: BufReader<DuplexStream>,
}

impl Peer {
    /// A session of the older era with this peer.
    pub(crate) async fn legacy(options: SessionOptions) -> (Session, Self) {
        let result =
            r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"peer"}}"#;
        Self::meet(Protocol::Legacy, result, options).await
    }

    /// A session of the stateless era with this peer.
    pub(crate) async fn modern(options: SessionOptions) -> (Session, Self) {
        let result = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"resources":{"subscribe":true}}}"#;
        Self::meet(Protocol::Modern, result, options).await
    }

    async fn meet(
        protocol: Protocol,
        greeting: &str,
        mut options: SessionOptions,
    ) -> (Session, Self) {
        let (target, stream) = memory_pair(CAP);
        options.protocol = protocol;
        let mut peer = Self {
            stream: BufReader::new(stream),
        };
        let greet = async {
            let hello = peer.read().await;
            peer.result(&hello, greeting).await;
        };
        let (session, ()) = tokio::join!(Session::connect(target, options), greet);
        let session = session.unwrap();
        if protocol == Protocol::Legacy {
            assert_eq!(peer.read().await["method"], "notifications/initialized");
        }
        (session, peer)
    }

    /// The next message.
    pub(crate) async fn read(&mut self) -> Value {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// The next message, which must be of this method.
    pub(crate) async fn expect(&mut self, method: &str) -> Value {
        let message = self.read().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    pub(crate) async fn write(&mut self, text: &str) {
        let stream = self.stream.get_mut();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn result(&mut self, request: &Value, result: &str) {
        let id = &request["id"];
        RawJson::parse(result.to_owned()).unwrap();
        self.write(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
        ))
        .await;
    }

    pub(crate) async fn progress(&mut self, request: &Value, progress: u32) {
        let token = &request["params"]["_meta"]["progressToken"];
        assert!(token.is_number(), "no progress token: {request}");
        self.write(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{progress}}}}}"#
        ))
        .await;
    }
}
