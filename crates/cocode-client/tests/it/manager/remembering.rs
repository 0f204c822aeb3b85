//! What is known while servers do not run: lists on disk, servers that start when they are needed
//! and stop when they are not, results that are too large to show.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cocode_client::{
    CallContext, CallError, ListCache, Manager, ManagerOptions, Output, OutputWanted, ResultStore,
    ResultStoreOptions, StateKind, When,
};
use cocode_core::{OutputLimits, ServerSpec};
use cocode_testkit::{Gate, Script};

use crate::manager::faulty::{Faulty, Transport};
use crate::manager::story::{
    ONE, Story, assert_echoed, begun, echo, giving_up_after, listing, listing_all, only,
    over_every_transport, quick, ready, state, tools, without_pings,
};
use crate::support::{raw, soon, text_of};

use StateKind::{Ready, Starting, Stopped};

/// As [`quick`], with lists remembered here and servers started like this.
pub(crate) fn remembering(directory: &Path, when: When) -> ManagerOptions {
    let mut options = quick();
    options.cache = ListCache::open(directory);
    options.start.when = when;
    options
}

/// A manager for which nobody has started a server yet.
async fn resting(options: ManagerOptions, specs: Vec<ServerSpec>) -> (Manager, Story) {
    let (manager, story) = begun(options, specs).await;
    let startup = soon("the start", manager.wait_for_startup()).await;
    assert!(
        startup.failed.is_empty() && startup.slow.is_empty(),
        "{startup:?}"
    );
    (manager, story)
}

/// Lets a manager list everything once, and remember it.
pub(crate) async fn learn(directory: &Path, specs: Vec<ServerSpec>) {
    let options = remembering(directory, When::AtOnce);
    let connector = Arc::clone(&options.connector);
    let (manager, _story) = ready(options, specs.clone()).await;
    let cache = ListCache::open(directory);
    for spec in specs {
        let identity = connector.identity(&spec).unwrap();
        let identity: Vec<&str> = identity.iter().map(String::as_str).collect();
        let key = ListCache::key_for(&spec.fingerprint(), &identity);
        soon("the lists on disk", async {
            while cache.load(&key).is_none() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    soon("the end", manager.shutdown()).await;
}

#[tokio::test]
async fn tools_are_known_with_every_server_stopped_and_the_first_call_starts_one() {
    over_every_transport(|transport| async move {
        let directory = tempfile::tempdir().unwrap();
        let one = Faulty::start(transport, &Script::new());
        let two = Faulty::start(transport, &Script::new().tools(2, 1));
        let specs = vec![one.spec(ONE), two.spec("two")];
        learn(directory.path(), specs.clone()).await;
        one.hears("tools/list", 1).await;
        two.hears("tools/list", 2).await;
        let options = remembering(directory.path(), When::OnlyNeeded);
        let (manager, mut story) = resting(options, specs).await;
        let known = ["mcp__one__echo", "mcp__two__tool-0", "mcp__two__tool-1"];
        assert_eq!(tools(&manager), known, "{transport:?}");
        let kinds: Vec<_> = manager
            .status()
            .iter()
            .map(|status| status.state.kind())
            .collect();
        assert_eq!(kinds, [Stopped, Stopped], "{transport:?}");
        assert_eq!(one.heard("tools/list"), 1, "{transport:?}");
        assert_echoed(transport, echo(&manager).await);
        assert_eq!(story.states(ONE).await, [Starting, Ready], "{transport:?}");
        // Nobody has asked for the other one.
        assert_eq!(story.states("two").await, [], "{transport:?}");
        assert_eq!(two.heard("tools/list"), 2, "{transport:?}");
        assert_eq!(tools(&manager), known, "{transport:?}");
    })
    .await;
}

#[tokio::test]
async fn a_server_of_which_nothing_is_known_starts_at_once_and_others_when_they_are_needed() {
    let directory = tempfile::tempdir().unwrap();
    // A stateless server says how long its lists count; an older one gets five minutes.
    let known = Faulty::start(Transport::Unix, &Script::new());
    let outdated = Faulty::start(Transport::ModernHttp, &Script::new());
    let unknown = Faulty::start(Transport::Unix, &Script::new());
    let specs = vec![known.spec("known"), outdated.spec("outdated")];
    learn(directory.path(), specs.clone()).await;
    let mut all = specs;
    all.push(unknown.spec("unknown"));
    let options = remembering(directory.path(), When::Needed);
    let (manager, mut story) = resting(options, all).await;
    let kinds: Vec<_> = manager
        .status()
        .iter()
        .map(|status| status.state.kind())
        .collect();
    assert_eq!(kinds, [Stopped, Ready, Ready]);
    assert_eq!(story.states("known").await, []);
}

/// A server whose tool `echo` takes an object with exactly this member.
fn taking(member: &str) -> Script {
    let schema = format!(
        r#"{{"type":"object","required":["{member}"],"additionalProperties":false,"properties":{{"{member}":{{"type":"string"}}}}}}"#
    );
    listing_all(
        Script::new(),
        &format!(r#"{{"name":"echo","inputSchema":{schema}}}"#),
    )
}

#[tokio::test]
async fn a_remembered_schema_is_read_again_before_a_call_is_refused_for_it() {
    over_every_transport(|transport| async move {
        let directory = tempfile::tempdir().unwrap();
        let server = Faulty::start(transport, &taking("old"));
        let specs = vec![server.spec(ONE)];
        learn(directory.path(), specs.clone()).await;
        server.restart(&taking("word"));
        let options = remembering(directory.path(), When::OnlyNeeded);
        let (manager, mut story) = resting(options, specs).await;
        // It does not fit what is remembered, but what the server says now.
        assert_echoed(transport, echo(&manager).await);
        assert_eq!(story.states(ONE).await, [Starting, Ready], "{transport:?}");
        // And what fits neither is refused, and not sent.
        let wrong = raw(r#"{"other":1}"#);
        let call = manager.call("mcp__one__echo", Some(&wrong), CallContext::default());
        let error = soon("the end of the call", call).await.unwrap_err();
        match &error {
            CallError::Arguments { .. } => {}
            other => panic!("{transport:?}: {other:?}"),
        }
        let text = error.for_model();
        assert!(text.contains("word"), "{transport:?}: {text}");
        server.hears("tools/call", 1).await;
        assert_eq!(server.heard("tools/call"), 1, "{transport:?}");
    })
    .await;
}

#[tokio::test]
async fn a_remembered_tool_of_a_server_that_is_gone_fails_in_so_many_words() {
    over_every_transport(|transport| async move {
        let directory = tempfile::tempdir().unwrap();
        let server = Faulty::start(transport, &Script::new());
        let specs = vec![server.spec(ONE)];
        learn(directory.path(), specs.clone()).await;
        server.take_down();
        let mut options = giving_up_after(2);
        options.cache = ListCache::open(directory.path());
        options.start.when = When::OnlyNeeded;
        let (manager, _story) = resting(options, specs).await;
        let error = echo(&manager).await.unwrap_err();
        assert!(
            matches!(error, CallError::Unavailable { .. }),
            "{transport:?}: {error:?}"
        );
        server.restart(&Script::new());
        assert_echoed(transport, echo(&manager).await);
    })
    .await;
}

#[tokio::test]
async fn an_idle_server_is_stopped_and_one_at_work_is_not() {
    over_every_transport(|transport| async move {
        let gate = Gate::new();
        let script = Script::new().on("tools/call").hold(&gate).as_usual();
        let busy = Faulty::start(transport, &script);
        let idle = Faulty::start(transport, &Script::new());
        let mut specs = vec![busy.spec(ONE), idle.spec("idle")];
        for spec in &mut specs {
            spec.idle_stop = Some(Duration::from_millis(100));
        }
        let (manager, mut story) = begun(without_pings(), specs).await;
        let (outcome, ()) = tokio::join!(echo(&manager), async {
            gate.reached().await;
            story.reaches("idle", Stopped).await;
            // Used, stopped, and used again: time enough for the other one to idle, if it did.
            for _ in 0..2 {
                let until = tokio::time::Instant::now() + Duration::from_secs(20);
                manager
                    .session(&"idle".parse().unwrap(), until)
                    .await
                    .unwrap();
                story.reaches("idle", Stopped).await;
            }
            assert_eq!(
                story.states(ONE).await.last(),
                Some(&Ready),
                "{transport:?}"
            );
            gate.open();
        });
        assert_echoed(transport, outcome);
        story.reaches(ONE, Stopped).await;
        assert_eq!(
            tools(&manager),
            ["mcp__idle__echo", "mcp__one__echo"],
            "{transport:?}"
        );
        // The next call brings it back.
        assert_echoed(transport, echo(&manager).await);
    })
    .await;
}

#[tokio::test]
async fn a_result_that_is_too_large_is_kept_and_its_place_taken_by_a_preview() {
    over_every_transport(|transport| async move {
        let directory = tempfile::tempdir().unwrap();
        let lines: Vec<_> = (0..2000).map(|number| format!("line {number}")).collect();
        let long = lines.join("\n");
        let script = listing(Script::new(), "")
            .on("tools/call")
            .text_result(&long);
        let store = ResultStore::open(ResultStoreOptions::new(directory.path()));
        let mut options = without_pings();
        options.output = OutputLimits {
            warn_tokens: 50,
            cap_tokens: 100,
        };
        options.results = Some(store.clone());
        let (_server, manager, _story) = only(transport, &script, options).await;
        let called = echo(&manager).await.unwrap();
        let Output::Shortened {
            tokens,
            handle: Some(handle),
        } = &called.output
        else {
            panic!("{transport:?}: {:?}", called.output);
        };
        assert!(*tokens > 1000, "{transport:?}: {tokens}");
        let shown = text_of(&called.result);
        assert!(shown.len() < long.len() / 4, "{transport:?}: {shown}");
        assert!(shown.contains("line 0\n"), "{transport:?}: {shown}");
        let kept = store.read(handle).unwrap();
        assert_eq!(
            (kept.server.as_str(), kept.tool.as_str()),
            (ONE, "echo"),
            "{transport:?}"
        );
        assert_eq!(text_of(&kept.result()), long, "{transport:?}");
        // Who wants all of it gets all of it, and nothing is kept.
        let context = CallContext {
            output: OutputWanted::Whole,
            ..CallContext::default()
        };
        let whole = manager.call("mcp__one__echo", None, context);
        let whole = soon("the end of the call", whole).await.unwrap();
        assert_eq!(whole.output, Output::Whole, "{transport:?}");
        assert_eq!(text_of(&whole.result), long, "{transport:?}");
        assert_eq!(store.list().unwrap().len(), 1, "{transport:?}");
        assert_eq!(state(&manager).kind(), Ready, "{transport:?}");
    })
    .await;
}
