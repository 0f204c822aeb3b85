//! What is told as it happens, to somebody who listens by the management API.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use cocode_admin::model::NewToken;
use cocode_admin::{Decision, House as _, Switch};
use cocode_testkit::Script;
use futures_util::{Stream, StreamExt as _};
use http::{Request, header};
use serde_json::Value;

use super::stage::{Files, Stage, ana, entry, play};

/// Longer than anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(50);

/// Somebody who listens.
struct Ear {
    pieces: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    text: String,
}

impl Ear {
    async fn of(stage: &Stage) -> Self {
        let code = serde_json::json!({ "code": stage.pages.new_code().unwrap() });
        let sign_in = Request::post("/api/v1/sign-in")
            .header(header::CONTENT_TYPE, "application/json")
            .body(code.to_string().into());
        let signed_in = stage.pages.answer(sign_in.unwrap()).await;
        assert_eq!(signed_in.status(), 200);
        let cookie = signed_in.headers()[header::SET_COOKIE].to_str().unwrap();
        let (cookie, _attributes) = cookie.split_once(';').unwrap();
        let listen = Request::get("/api/v1/events").header(header::COOKIE, cookie);
        let response = stage.pages.answer(listen.body(Bytes::new()).unwrap()).await;
        assert_eq!(response.status(), 200);
        let mut ear = Self {
            pieces: response.into_body().into_stream(),
            text: String::new(),
        };
        ear.until("hello", |_| true).await;
        ear
    }

    /// The next event of this kind that fits. What came before it is passed over.
    async fn until(&mut self, kind: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let waiting = async {
            loop {
                while let Some((event, rest)) = self.text.split_once("\n\n") {
                    let (event, rest) = (event.to_owned(), rest.to_owned());
                    self.text = rest;
                    if let Some(data) = data_of(&event, kind).filter(|data| fits(data)) {
                        return data;
                    }
                }
                let piece = self.pieces.next().await.expect("the stream goes on");
                self.text.push_str(std::str::from_utf8(&piece).unwrap());
            }
        };
        let heard = tokio::time::timeout(PATIENCE, waiting).await;
        heard.unwrap_or_else(|_| panic!("no event `{kind}` that fits"))
    }
}

fn data_of(event: &str, kind: &str) -> Option<Value> {
    let field = |name: &str| {
        let mut lines = event.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    (field("event") == Some(kind)).then(|| serde_json::from_str(field("data").unwrap()).unwrap())
}

#[tokio::test]
async fn changes_of_servers_files_and_logs_are_told() {
    let files = Files::with(&entry("good", &Script::new(), ""));
    play(files, async |stage| {
        stage.connected("good").await;
        let mut ear = Ear::of(stage).await;
        stage
            .house
            .switch_server(ana(), "good", Switch::Disconnect)
            .await
            .unwrap();
        let told = ear.until("server", |server| server["name"] == "good").await;
        assert_eq!(told["state"], "stopped");
        stage.connected("good").await;
        ear.until("server", |server| server["state"] == "ready")
            .await;

        let two = [
            entry("good", &Script::new(), ""),
            "[mcp_servers.exits]\ncommand = 'sh'\nargs = ['-c', 'echo oh dear >&2; exit 3']\n"
                .to_owned(),
        ];
        stage.files.user("mcp.toml", &two.concat());
        let told = ear.until("config", |_| true).await;
        assert_eq!(told["changes"][0], "server `exits` is new");
        let told = ear.until("log", |log| log["stream"] == "stderr").await;
        assert_eq!(
            (&told["server"], &told["text"]),
            (&"exits".into(), &"oh dear".into())
        );
        let told = ear
            .until("server", |server| server["state"] == "failed")
            .await;
        assert_eq!(told["name"], "exits");

        stage
            .files
            .user("mcp.toml", &entry("good", &Script::new(), ""));
        let told = ear
            .until("server", |server| server["removed"] == true)
            .await;
        assert_eq!(told["name"], "exits");
    })
    .await;
}

#[tokio::test]
async fn approvals_and_tokens_are_told() {
    play(Files::with(""), async |stage| {
        let mut ear = Ear::of(stage).await;
        stage
            .files
            .project(".mcp.toml", &entry("shared", &Script::new(), ""));
        let told = ear.until("trust", |_| true).await;
        assert_eq!(
            (&told["name"], &told["state"]),
            (&"shared".into(), &"pending".into())
        );
        let pending = stage.house.pending_trust().await.unwrap().remove(0);
        let approved = stage
            .house
            .decide_trust(ana(), "shared", pending.hash, Decision::Approve);
        approved.await.unwrap();
        let told = ear.until("trust", |_| true).await;
        assert_eq!(told["state"], "approved");
        let new = NewToken {
            name: "ci".to_owned(),
            admin: None,
            expires_in_days: None,
        };
        stage.house.add_token(ana(), new).await.unwrap();
        let told = ear.until("token", |_| true).await;
        assert_eq!(
            (&told["name"], &told["change"]),
            (&"ci".into(), &"added".into())
        );
        stage.house.revoke_token(ana(), "ci").await.unwrap();
        let told = ear.until("token", |_| true).await;
        assert_eq!(
            (&told["name"], &told["change"]),
            (&"ci".into(), &"revoked".into())
        );
    })
    .await;
}
