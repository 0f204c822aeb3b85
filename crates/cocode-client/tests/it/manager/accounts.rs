//! Whose lists are remembered: what one account was shown, no other is.

use std::path::Path;
use std::sync::Arc;

use cocode_client::{
    Answer, Connector, ListCache, ListKind, ManagerOptions, PlainConnector, ReachError, Reached,
    Remembered, StateKind, When,
};
use cocode_core::{Reach, ServerSpec};
use cocode_testkit::Script;

use crate::manager::faulty::{Faulty, Transport};
use crate::manager::story::{ONE, begun, for_each, listing_all, quick, ready, state, tools};
use crate::support::{environment, soon};

/// As [`quick`], with lists remembered here, for somebody who signs in with this.
fn signed_in(directory: &Path, when: When, token: &str) -> ManagerOptions {
    let mut options = quick();
    options.cache = ListCache::open(directory);
    options.start.when = when;
    options.connector = Arc::new(PlainConnector {
        variables: [("TOKEN".to_owned(), token.to_owned())].into(),
        environment: environment(),
        ..PlainConnector::default()
    });
    options
}

/// A connector that does not say as whom it reaches servers.
struct Anybody(PlainConnector);

impl Connector for Anybody {
    fn reach<'a>(&'a self, spec: &'a ServerSpec) -> Answer<'a, Result<Reached, ReachError>> {
        self.0.reach(spec)
    }
}

/// Tools for one account only, and prompts for all.
fn private_tools() -> Script {
    let tool = r#"{"name":"echo","inputSchema":{"type":"object"}}"#;
    listing_all(Script::new(), tool)
        .on("prompts/list")
        .result(
            r#"{"resultType":"complete","ttlMs":3600000,"cacheScope":"public","prompts":[{"name":"greet"}]}"#,
        )
}

/// Waits until this list is on disk.
async fn written(
    directory: &Path,
    spec: &ServerSpec,
    identity: &[&str],
    kind: ListKind,
) -> Remembered {
    let cache = ListCache::open(directory);
    let key = ListCache::key_for(&spec.fingerprint(), identity);
    soon("the lists on disk", async {
        loop {
            if let Some(remembered) = cache.load(&key)
                && remembered.lists.contains_key(&kind)
            {
                return remembered;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

#[tokio::test]
async fn what_one_account_was_shown_is_not_remembered_for_another() {
    let transports = [Transport::Http, Transport::ModernHttp, Transport::Sse];
    for_each(transports, |transport| async move {
        let directory = tempfile::tempdir().unwrap();
        let server = Faulty::start(transport, &private_tools());
        let mut spec = server.spec(ONE);
        if let Reach::Remote(remote) = &mut spec.reach {
            remote.bearer_token_env_var = Some("TOKEN".to_owned());
        }
        let options = signed_in(directory.path(), When::AtOnce, "alice");
        let (manager, _story) = ready(options, vec![spec.clone()]).await;
        written(directory.path(), &spec, &["alice"], ListKind::Prompts).await;
        soon("the end", manager.shutdown()).await;
        for (token, known) in [("alice", vec!["mcp__one__echo"]), ("bob", Vec::new())] {
            let options = signed_in(directory.path(), When::OnlyNeeded, token);
            let (manager, _story) = begun(options, vec![spec.clone()]).await;
            assert_eq!(tools(&manager), known, "{transport:?}: {token}");
            assert_eq!(
                state(&manager).kind(),
                StateKind::Stopped,
                "{transport:?}: {token}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_private_is_not_remembered_where_nobody_says_whose_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let server = Faulty::start(Transport::ModernHttp, &private_tools());
    let spec = server.spec(ONE);
    let mut options = quick();
    options.cache = ListCache::open(directory.path());
    options.connector = Arc::new(Anybody(PlainConnector::default()));
    let (manager, _story) = ready(options, vec![spec.clone()]).await;
    assert_eq!(tools(&manager), ["mcp__one__echo"]);
    let remembered = written(directory.path(), &spec, &[], ListKind::Prompts).await;
    assert!(!remembered.lists.contains_key(&ListKind::Tools));
}
