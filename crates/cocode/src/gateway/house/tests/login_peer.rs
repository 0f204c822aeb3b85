//! Signing in at a real authorization server, by way of the house.

use cocode_admin::model::{Completion, Login, LoginState, ServerState};
use cocode_admin::{House as _, RefusalStatus, Secret};
use cocode_testkit::{Decision, OAuthPeer, Script};

use super::stage::{Files, Stage, ana, entry, play};

async fn begun(stage: &Stage) -> (Login, String) {
    let login = stage.house.login(ana(), "notes", None).await.unwrap();
    assert_eq!(login.state, LoginState::Waiting, "{login:?}");
    let url = login.authorization_url.clone().unwrap();
    (login, url)
}

fn completion(redirect: &str) -> Completion {
    Completion {
        redirect: Some(Secret::new(redirect)),
        code: None,
        state: None,
    }
}

/// Does what a person does, on a thread of its own.
async fn person<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

#[tokio::test]
async fn a_person_signs_in_comes_back_and_the_server_is_there() {
    let peer = OAuthPeer::start();
    let files = Files::with(&format!("[mcp_servers.notes]\nurl = '{}'\n", peer.mcp()));
    play(files, async |stage| {
        let before = stage.server_in("notes", ServerState::NeedsAuth).await;
        assert!(before.can_login);
        assert_eq!(before.is_signed_in, Some(false));
        assert_eq!(before.reason.unwrap().code, "auth-required");
        let none = stage.house.login_state("notes").await.unwrap_err();
        assert_eq!(none.status, RefusalStatus::Unknown);

        let (login, url) = begun(stage).await;
        // One at a time.
        let again = stage.house.login(ana(), "notes", None).await.unwrap();
        assert_eq!(again, login);
        assert_eq!(stage.house.login_state("notes").await.unwrap(), login);
        let own = peer.clone();
        let visiting = person(move || own.visit(&url, Decision::Allow));
        let (over, _visit) = tokio::join!(stage.house.login_over("notes"), visiting);
        let over = over.unwrap();
        assert_eq!(
            (over.state, &over.id),
            (LoginState::Done, &login.id),
            "{over:?}"
        );
        assert_eq!(over.authorization_url, None);
        let after = stage.server_in("notes", ServerState::Ready).await;
        assert_eq!((after.is_signed_in, after.can_login), (Some(true), true));

        stage.house.drop_credentials(ana(), "notes").await.unwrap();
        let out = stage.server_in("notes", ServerState::NeedsAuth).await;
        assert_eq!(out.is_signed_in, Some(false));
        // Once more is no mistake.
        stage.house.drop_credentials(ana(), "notes").await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_somebody_brings_ends_a_login_at_a_peer() {
    let peer = OAuthPeer::start();
    let files = Files::with(&format!("[mcp_servers.notes]\nurl = '{}'\n", peer.mcp()));
    play(files, async |stage| {
        let (_, url) = begun(stage).await;
        let wrong = stage.house.complete_login(
            ana(),
            "notes",
            completion("http://127.0.0.1/callback?code=x&state=y"),
        );
        assert_eq!(wrong.await.unwrap_err().status, RefusalStatus::Unfit);
        let own = peer.clone();
        let redirect = person(move || own.redirect(&url, Decision::Allow)).await;
        let done = stage
            .house
            .complete_login(ana(), "notes", completion(&redirect))
            .await;
        assert_eq!(done.unwrap().state, LoginState::Done);
        stage.server_in("notes", ServerState::Ready).await;
        let late = stage
            .house
            .complete_login(ana(), "notes", completion(&redirect))
            .await;
        assert_eq!(late.unwrap_err().status, RefusalStatus::Conflict);

        // Whoever says no ends it, too.
        let (_, url) = begun(stage).await;
        let own = peer.clone();
        let visiting = person(move || own.visit(&url, Decision::Deny));
        let (over, _visit) = tokio::join!(stage.house.login_over("notes"), visiting);
        let over = over.unwrap();
        assert_eq!(over.state, LoginState::Failed, "{over:?}");
        assert!(over.message.unwrap().contains("nobody was signed in"));
    })
    .await;
}

#[tokio::test]
async fn nobody_signs_in_where_that_is_not_possible_or_of_no_use() {
    let open = Script::new().http();
    let servers = [
        entry("program", &Script::new(), ""),
        format!("[mcp_servers.open]\nurl = '{}'\n", open.url()),
        format!(
            "[mcp_servers.fixed]\nurl = '{}'\nheaders = {{ Authorization = 'Bearer x' }}\n",
            open.url()
        ),
    ];
    play(Files::with(&servers.concat()), async |stage| {
        for name in ["program", "fixed"] {
            let refused = stage.house.login(ana(), name, None).await.unwrap_err();
            assert_eq!(
                refused.status,
                RefusalStatus::Conflict,
                "{name}: {refused:?}"
            );
        }
        let refused = stage.house.login(ana(), "none", None).await.unwrap_err();
        assert_eq!(refused.status, RefusalStatus::Unknown);
        let refused = stage
            .house
            .drop_credentials(ana(), "program")
            .await
            .unwrap_err();
        assert_eq!(refused.status, RefusalStatus::Conflict);
        assert!(!stage.connected("open").await.can_login);
        let login = stage.house.login(ana(), "open", None).await.unwrap();
        assert_eq!(login.state, LoginState::Done);
        assert!(login.message.unwrap().contains("asks for no sign-in"));
    })
    .await;
}
