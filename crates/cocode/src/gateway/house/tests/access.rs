//! Tokens, sessions and the audit log.

use std::time::SystemTime;

use cocode_access::Token;
use cocode_admin::model::{Authentication, NewToken};
use cocode_admin::{House as _, RefusalStatus, Switch};
use cocode_client::{Protocol, Session, SessionOptions, http};
use cocode_testkit::Script;
use serde_json::Value;

use super::stage::{Files, ana, entry, play};

fn wanted(name: &str) -> NewToken {
    NewToken {
        name: name.to_owned(),
        admin: None,
        expires_in_days: None,
    }
}

#[tokio::test]
async fn tokens_are_shown_once_listed_and_revoked() {
    play(Files::with(""), async |stage| {
        let new = NewToken {
            admin: Some(true),
            expires_in_days: Some(2.into()),
            ..wanted("ci")
        };
        let made = stage.house.add_token(ana(), new).await.unwrap();
        let token = Token::parse(made.token.expose()).unwrap();
        assert!(stage.keeper.find(&token).unwrap().is_admin);
        assert_eq!(stage.house.facts().authentication, Authentication::Tokens);
        let listed = stage.house.tokens().await.unwrap();
        let [listed] = listed.as_slice() else {
            panic!("{listed:?}");
        };
        assert_eq!((listed.name.as_str(), listed.admin), ("ci", true));
        let left = listed
            .expires_at
            .unwrap()
            .time()
            .duration_since(SystemTime::now());
        assert!(left.unwrap().as_secs().abs_diff(2 * 24 * 60 * 60) < 60);
        let taken = stage
            .house
            .add_token(ana(), wanted("ci"))
            .await
            .unwrap_err();
        assert_eq!(taken.status, RefusalStatus::Conflict);
        let odd = stage
            .house
            .add_token(ana(), wanted("no good"))
            .await
            .unwrap_err();
        assert_eq!(odd.status, RefusalStatus::Unfit);
        stage.house.revoke_token(ana(), "ci").await.unwrap();
        assert!(stage.keeper.find(&token).is_none());
        for name in ["ci", "no good"] {
            let unknown = stage.house.revoke_token(ana(), name).await.unwrap_err();
            assert_eq!(unknown.status, RefusalStatus::Unknown, "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn sessions_of_clients_are_shown_without_their_ids() {
    let files = Files::with(&entry("good", &Script::new(), ""));
    play(files, async |stage| {
        assert_eq!(stage.house.sessions().await.unwrap(), []);
        let url = format!("{}/good", stage.url).parse().unwrap();
        let options = SessionOptions {
            protocol: Protocol::Legacy,
            ..SessionOptions::default()
        };
        let session = Session::connect(http(url), options).await.unwrap();
        let shown = stage.house.sessions().await.unwrap();
        let [shown] = shown.as_slice() else {
            panic!("{shown:?}");
        };
        assert_eq!(
            (shown.endpoint.as_str(), shown.transport.as_str()),
            ("/mcp/good", "http")
        );
        assert_eq!(shown.principal, None);
        assert!(shown.revision.is_some());
        session.close().await;
    })
    .await;
}

#[tokio::test]
async fn what_is_done_is_written_down_with_who_did_it() {
    let files = Files::with(&entry("good", &Script::new(), ""));
    files.user("config.toml", "[gateway.audit]\nenabled = true\n");
    play(files, async |stage| {
        stage.connected("good").await;
        let refused = stage
            .house
            .switch_server(ana(), "none", Switch::Disable)
            .await;
        refused.unwrap_err();
        stage.house.add_token(ana(), wanted("ci")).await.unwrap();
        let entries = stage.house.audit(10).await.unwrap();
        let told: Vec<Value> = entries
            .iter()
            .map(|entry| entry.decode().unwrap())
            .filter(|entry: &Value| entry["method"] != "audit")
            .collect();
        let told: Vec<[&str; 4]> = told
            .iter()
            .map(|entry| {
                let about = entry["server"].as_str().or_else(|| entry["name"].as_str());
                let [who, method] = ["principal", "method"].map(|key| entry[key].as_str().unwrap());
                [
                    who,
                    method,
                    about.unwrap(),
                    entry["outcome"].as_str().unwrap(),
                ]
            })
            .collect();
        assert_eq!(
            told,
            [
                ["ana", "gateway/tokens/add", "ci", "ok"],
                ["ana", "gateway/servers/disable", "none", "error"],
                ["ana", "gateway/servers/connect", "good", "ok"],
            ]
        );
        assert_eq!(stage.house.audit(1).await.unwrap().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn the_first_token_is_the_first_thing_that_is_written_down() {
    let files = Files::with(&entry("good", &Script::new(), ""));
    play(files, async |stage| {
        stage.connected("good").await;
        assert_eq!(stage.house.audit(10).await.unwrap().len(), 0);
        stage.house.add_token(ana(), wanted("ci")).await.unwrap();
        stage.house.revoke_token(ana(), "ci").await.unwrap();
        let entries = stage.house.audit(10).await.unwrap();
        let methods: Vec<String> = entries
            .iter()
            .map(|entry| entry.decode::<Value>().unwrap()["method"].to_string())
            .collect();
        assert_eq!(
            methods,
            ["\"gateway/tokens/revoke\"", "\"gateway/tokens/add\""]
        );
    })
    .await;
}
