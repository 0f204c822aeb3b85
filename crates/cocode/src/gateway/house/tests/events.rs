//! What is told as it happens, to somebody who listens by the management API.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use cocode_admin::model::{CallWish, NewToken};
use cocode_admin::{CallListener, Decision, House as _, Refusal, Switch};
use cocode_client::RawJson;
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

#[tokio::test]
async fn what_became_of_entries_is_told_and_what_is_gone_was_not_approved() {
    let files = Files::with("");
    let rules = "[permissions]\nallow = ['mcp__a__b']\n";
    files.project(".cocode/config.toml", rules);
    files.project(".mcp.toml", &entry("shared", &Script::new(), ""));
    play(files, async |stage| {
        let mut ear = Ear::of(stage).await;
        let entries = stage.house.pending_trust().await.unwrap();
        let hash_of = |name: &str| {
            let entry = entries.iter().find(|entry| entry.name == name);
            entry.unwrap().hash.clone()
        };
        for (decision, expected) in [
            (Decision::Reject, "rejected"),
            (Decision::Approve, "approved"),
        ] {
            let hash = hash_of("shared");
            let decided = stage.house.decide_trust(ana(), "shared", hash, decision);
            decided.await.unwrap();
            let told = ear.until("trust", |_| true).await;
            assert_eq!(
                (&told["name"], &told["state"]),
                (&"shared".into(), &expected.into())
            );
        }
        // Of a file that is taken away, no more is told than that it is gone.
        std::fs::remove_file(stage.files.project_path(".cocode/config.toml")).unwrap();
        stage
            .files
            .project(".mcp.toml", &entry("other", &Script::new(), ""));
        let told = ear.until("trust", |_| true).await;
        assert_eq!(
            (&told["name"], &told["state"]),
            (&"other".into(), &"pending".into())
        );
        assert!(
            stage.house.pending_trust().await.unwrap().len() == 1,
            "the settings are gone"
        );
    })
    .await;
}

#[tokio::test]
async fn a_token_that_another_process_makes_is_told() {
    play(Files::with(""), async |stage| {
        let mut ear = Ear::of(stage).await;
        let new = |name: &str| NewToken {
            name: name.to_owned(),
            admin: None,
            expires_in_days: None,
        };
        stage.house.add_token(ana(), new("own")).await.unwrap();
        let told = ear.until("token", |_| true).await;
        assert_eq!(told["name"], "own");
        let (_token, record) =
            crate::govern::tokens::made(&"ci".parse().unwrap(), false, None).unwrap();
        stage.keeper.store().add(&record).await.unwrap();
        let told = ear.until("token", |_| true).await;
        assert_eq!(
            (&told["name"], &told["change"]),
            (&"ci".into(), &"added".into()),
            "the token of this process is not told twice"
        );
    })
    .await;
}

#[tokio::test]
async fn what_is_wrong_in_the_files_is_known_before_and_after_it_changes() {
    let files = Files::with("");
    files.user("config.toml", "no_such_setting = 1\n");
    play(files, async |stage| {
        let problems = async || stage.get("/api/v1/status").await["problems"].to_string();
        // Who tells of it has to be given the time to look first.
        while !problems().await.contains("no_such_setting") {
            tokio::task::yield_now().await;
        }
        let mut ear = Ear::of(stage).await;
        stage.files.user("config.toml", "no_other_setting = 1\n");
        ear.until("config", |_| true).await;
        let said = problems().await;
        assert!(said.contains("no_other_setting"), "{said}");
        assert!(!said.contains("no_such_setting"), "{said}");
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_gone_is_not_counted_any_more() {
    let files = Files::with(&entry("good", &Script::new(), ""));
    play(files, async |stage| {
        stage.connected("good").await;
        // Whatever comes of it, it was a call.
        drop(echo(stage).await);
        let latencies = async || stage.get("/api/v1/latencies").await["servers"].clone();
        assert_eq!(latencies().await[0]["name"], "good");
        let mut ear = Ear::of(stage).await;
        stage.house.remove_server(ana(), "good").await.unwrap();
        ear.until("server", |server| server["removed"] == true)
            .await;
        assert_eq!(latencies().await, serde_json::json!([]));
    })
    .await;
}

/// Calls a tool of `good`.
async fn echo(stage: &Stage) -> Result<RawJson, Refusal> {
    let wish = CallWish {
        tool: "echo".to_owned(),
        arguments: None,
        timeout_seconds: None,
    };
    let listener = CallListener::deaf();
    stage.house.call(ana(), "good", wish, listener).await
}

#[tokio::test]
async fn only_those_who_can_answer_keep_a_call_waiting() {
    let files = Files::with(&entry("good", &Script::new(), ""));
    files.user("config.toml", "[permissions]\nask = ['mcp__good__echo']\n");
    play(files, async |stage| {
        stage.connected("good").await;
        let new = NewToken {
            name: "root".to_owned(),
            admin: Some(true),
            expires_in_days: None,
        };
        let made = stage.house.add_token(ana(), new).await.unwrap();
        let listen = async |query: &str| {
            let bearer = format!("Bearer {}", made.token.expose());
            let path = format!("/api/v1/events{query}");
            let asked = Request::get(path).header(header::AUTHORIZATION, bearer);
            let answer = stage.pages.answer(asked.body(Bytes::new()).unwrap()).await;
            assert_eq!(answer.status(), 200);
            answer
        };
        let onlooker = listen("").await;
        let refused = tokio::time::timeout(PATIENCE, echo(stage)).await;
        assert!(refused.unwrap().is_err(), "nobody can allow it");
        let helper = listen("?inbox=true").await;
        let asked = async {
            while stage.get("/api/v1/elicitations").await["elicitations"] == serde_json::json!([]) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            ended = echo(stage) => panic!("it waits for nobody: {ended:?}"),
            () = asked => {}
            () = tokio::time::sleep(PATIENCE) => panic!("nobody is asked"),
        }
        drop((onlooker, helper));
    })
    .await;
}
