//! Entries that wait for approval.

use cocode_admin::model::{ServerState, TrustKind};
use cocode_admin::{Decision, House as _, RefusalStatus};
use cocode_testkit::Script;

use super::stage::{Files, ana, entry, play};

#[tokio::test]
async fn what_is_approved_is_what_was_shown_and_nothing_else() {
    let files = Files::with("");
    let entry = |more: &str| entry("shared", &Script::new(), more);
    files.project(".mcp.toml", &entry("description = 'First.'"));
    play(files, async |stage| {
        let pending = stage.house.pending_trust().await.unwrap();
        let [first] = pending.as_slice() else {
            panic!("{pending:?}");
        };
        assert_eq!(
            (first.name.as_str(), first.scope.as_str()),
            ("shared", "project")
        );
        assert!(first.is_new && first.before.is_none());
        assert_eq!(first.kind, TrustKind::Server);
        assert!(first.file.ends_with(".mcp.toml"));
        assert!(
            first.after.contains("description = \"First.\""),
            "{}",
            first.after
        );

        // The file changes after somebody has looked at it.
        let env = "description = 'First.'\n[mcp_servers.shared.env]\nA = '1'";
        stage.files.project(".mcp.toml", &entry(env));
        let decide = async |hash: &str, decision| {
            stage
                .house
                .decide_trust(ana(), "shared", hash.to_owned(), decision)
                .await
        };
        let refused = decide(&first.hash, Decision::Approve).await.unwrap_err();
        assert_eq!(
            (refused.status, refused.code.as_str()),
            (RefusalStatus::Conflict, "changed-since")
        );
        let second = stage.house.pending_trust().await.unwrap().remove(0);
        assert_ne!(second.hash, first.hash);
        decide(&second.hash, Decision::Approve).await.unwrap();
        stage.connected("shared").await;
        assert_eq!(stage.house.pending_trust().await.unwrap(), []);
        let again = decide(&second.hash, Decision::Approve).await.unwrap_err();
        assert_eq!(
            (again.status, again.code.as_str()),
            (RefusalStatus::Conflict, "nothing-waits")
        );

        // What was approved is shown beside what it says now.
        stage
            .files
            .project(".mcp.toml", &entry("description = 'Third.'"));
        stage.server_in("shared", ServerState::Pending).await;
        let third = stage.house.pending_trust().await.unwrap().remove(0);
        assert!(!third.is_new);
        let before = third.before.unwrap();
        assert!(before.contains("description = \"First.\""), "{before}");
        assert!(before.contains("env.A = "), "{before}");
        assert!(
            third.after.contains("description = \"Third.\""),
            "{}",
            third.after
        );
        assert!(!third.after.contains("env.A"), "{}", third.after);
        decide(&third.hash, Decision::Reject).await.unwrap();
        // It waits for nobody any more, and is still there for whoever thinks otherwise.
        let listed = stage.house.pending_trust().await.unwrap();
        let [refused] = listed.as_slice() else {
            panic!("{listed:?}");
        };
        assert!(refused.is_rejected && refused.hash == third.hash);
        let rejected = stage.house.server("shared").await.unwrap();
        assert_eq!(rejected.state, ServerState::Rejected);
        let reason = rejected.reason.unwrap();
        assert!(reason.message.contains("was rejected"), "{reason:?}");
        decide(&third.hash, Decision::Approve).await.unwrap();
        stage.connected("shared").await;
        assert_eq!(stage.house.pending_trust().await.unwrap(), []);
    })
    .await;
}

#[tokio::test]
async fn settings_of_a_work_tree_wait_for_approval_too() {
    let files = Files::with("");
    files.project(
        ".cocode/config.toml",
        "[permissions]\nallow = ['mcp__a__b']\n",
    );
    play(files, async |stage| {
        let pending = stage.house.pending_trust().await.unwrap();
        let [settings] = pending.as_slice() else {
            panic!("{pending:?}");
        };
        assert_eq!(settings.name, "config.toml");
        assert_eq!(settings.kind, TrustKind::Settings);
        assert!(settings.is_new);
        assert!(
            settings.after.contains("allow = ['mcp__a__b']"),
            "{}",
            settings.after
        );
        let hash = settings.hash.clone();
        let decided = stage
            .house
            .decide_trust(ana(), "config.toml", hash, Decision::Approve);
        decided.await.unwrap();
        assert_eq!(stage.house.pending_trust().await.unwrap(), []);
        let unknown = stage
            .house
            .decide_trust(ana(), "none", String::new(), Decision::Reject);
        assert_eq!(unknown.await.unwrap_err().status, RefusalStatus::Unknown);
    })
    .await;
}
