//! Servers that change: what they list, what they tell of, and which of them there are to be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cocode_client::{
    Answer, Applied, CallEnd, Concurrency, Connector, Event, Health, Manager, ManagerOptions,
    ReachError, Reached, ResourceReference, SANDBOX_STATE_CAPABILITY, SANDBOX_STATE_METHOD,
    StartLimiter, StateKind, Wanted,
};
use cocode_core::{QualifiedName, ServerName, ServerSpec};
use cocode_testkit::{Gate, Script};
use serde_json::json;

use crate::manager::faulty::{Faulty, Transport};
use crate::manager::story::{
    ONE, Story, assert_echoed, begun, call, echo, for_each, giving_up_after, listing_all, only,
    over_every_transport, quick, ready, state, tools, without_pings,
};
use crate::support::{raw, soon};

use StateKind::{Disabled, Failed, PendingTrust, Ready, Reconnecting, Stopped};

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

fn names(names: &[ServerName]) -> Vec<&str> {
    names.iter().map(ServerName::as_str).collect()
}

#[tokio::test]
async fn a_storm_of_changes_costs_a_handful_of_lists() {
    let mut options = without_pings();
    // The usual patience. One storm after the other, so that each is over soon.
    options.health.relist_after = Health::default().relist_after;
    options.health.relist_within = Health::default().relist_within;
    for transport in Transport::ALL {
        let before = r#"{"name":"echo","inputSchema":{"type":"object"}}"#;
        let after = r#"{"name":"echo","inputSchema":{"type":"object"}},{"name":"new","inputSchema":{"type":"object"}}"#;
        let script = Script::new().on("tools/call");
        let script = script.notify_times(1000, TOOLS_CHANGED, "{}").as_usual();
        // The first list is that of the start.
        let script = listing_all(script, before).nth(1);
        let script = listing_all(script, after);
        let (server, manager, mut story) = only(transport, &script, options.clone()).await;
        assert_echoed(transport, echo(&manager).await);
        let change = story
            .hears("another catalog", |event| match event {
                Event::CatalogChanged(change) => Some(change),
                _ => None,
            })
            .await;
        let added: Vec<_> = change.added.iter().map(QualifiedName::as_str).collect();
        assert_eq!(added, ["mcp__one__new"], "{transport:?}");
        // Whatever is still to come has come when the server was asked once more.
        let until = tokio::time::Instant::now() + Duration::from_secs(20);
        manager.refresh(&ONE.parse().unwrap(), until).await.unwrap();
        // The record of a program comes by another way than its answers: a last message shows when
        // it is complete.
        let session = manager.session(&ONE.parse().unwrap(), until).await.unwrap();
        session.notify("notifications/last", None).await.unwrap();
        server.hears("notifications/last", 1).await;
        let lists = server.heard("tools/list");
        assert!((3..=8).contains(&lists), "{transport:?}: {lists} lists");
    }
}

#[tokio::test]
async fn subscriptions_survive_the_connection() {
    over_every_transport(|transport| async move {
        let updated = r#"{"uri":"scripted://hello"}"#;
        let script = Script::new().on("resources/subscribe").as_usual();
        let script = script.notify("notifications/resources/updated", updated);
        // What a stateless server is asked to tell, it is asked with a request that stays open.
        let method = match transport {
            Transport::ModernHttp => "subscriptions/listen",
            _ => "resources/subscribe",
        };
        let about = "scripted://hello";
        let script = match transport {
            Transport::Http | Transport::ModernHttp | Transport::Sse => Script::new(),
            _ => script,
        };
        let (server, manager, mut story) = only(transport, &script, quick()).await;
        let reference = ResourceReference::parse("@one:scripted://hello").unwrap();
        soon("the subscription", manager.subscribe(&reference))
            .await
            .unwrap();
        server.hears_about(method, about, 1).await;
        server.take_down();
        story.reaches(ONE, Reconnecting).await;
        server.restart(&script);
        story.reaches(ONE, Ready).await;
        server.hears_about(method, about, 2).await;
        if !matches!(
            transport,
            Transport::Http | Transport::ModernHttp | Transport::Sse
        ) {
            let uri = story
                .hears("the news", |event| match event {
                    Event::ResourceUpdated { uri, .. } => Some(uri),
                    _ => None,
                })
                .await;
            assert_eq!(uri, about, "{transport:?}");
        }
        // Who does not want to know any more is not subscribed the next time.
        soon("the end", manager.unsubscribe(&reference))
            .await
            .unwrap();
        server.take_down();
        story.reaches(ONE, Reconnecting).await;
        server.restart(&script);
        story.reaches(ONE, Ready).await;
        assert_echoed(transport, echo(&manager).await);
        assert_eq!(server.heard_about(method, about), 2, "{transport:?}");
    })
    .await;
}

#[tokio::test]
async fn servers_are_kept_restarted_stopped_and_started_by_what_they_are() {
    let servers: Vec<_> = (0..5)
        .map(|_| Faulty::start(Transport::Stdio, &Script::new()))
        .collect();
    let spec = |number: usize, name: &str| servers[number].spec(name);
    let first = vec![
        spec(0, "kept"),
        spec(1, "filtered"),
        spec(2, "changed"),
        spec(3, "gone"),
    ];
    let (manager, mut story) = ready(quick(), first).await;
    let pids = |manager: &Manager| {
        let all = manager.status();
        let pids = all.iter().map(|status| {
            let pid = status.connection.as_ref().and_then(|facts| facts.pid);
            (status.name.to_string(), pid)
        });
        pids.collect::<std::collections::BTreeMap<_, _>>()
    };
    let before = pids(&manager);
    let mut filtered = spec(1, "filtered");
    filtered.tools.disabled = vec!["echo".to_owned()];
    let mut changed = spec(2, "changed");
    changed.protocol = cocode_client::Protocol::Legacy;
    let second = vec![spec(0, "kept"), filtered, changed, spec(4, "new")];
    let applied = manager.apply(second.clone()).await;
    assert_eq!(names(&applied.kept), ["filtered", "kept"]);
    assert_eq!(names(&applied.restarted), ["changed"]);
    assert_eq!(names(&applied.stopped), ["gone"]);
    assert_eq!(names(&applied.started), ["new"]);
    // The filter works at once, and without the server. What has changed may offer anything.
    assert_eq!(tools(&manager), ["mcp__kept__echo"]);
    story.reaches("new", Ready).await;
    let startup = soon("the start", manager.wait_for_startup()).await;
    assert_eq!(
        names(&startup.ready),
        ["changed", "filtered", "kept", "new"]
    );
    let after = pids(&manager);
    assert_eq!(after["kept"], before["kept"]);
    assert_eq!(after["filtered"], before["filtered"]);
    assert_ne!(after["changed"], before["changed"]);
    assert_eq!(story.states("kept").await, []);
    assert_eq!(story.states("filtered").await, []);
    for name in ["kept", "changed", "new"] {
        assert_echoed(name, call(&manager, &format!("mcp__{name}__echo")).await);
    }
    for name in ["mcp__gone__echo", "mcp__filtered__echo"] {
        let error = call(&manager, name).await.unwrap_err();
        assert_eq!(error.code(), "unknown-tool", "{name}: {error:?}");
    }
    // The same again changes nothing.
    let applied = manager.apply(second).await;
    let nothing = Applied {
        kept: applied.kept.clone(),
        ..Applied::default()
    };
    assert_eq!(applied, nothing);
    assert_eq!(applied.kept.len(), 4);
    assert_eq!(pids(&manager), after);
}

#[tokio::test]
async fn servers_that_must_not_run_are_known_and_cannot_be_called() {
    let server = Faulty::start(Transport::Stdio, &Script::new());
    let manager = Manager::new(quick());
    let off = |name: &str| name.parse::<ServerName>().unwrap();
    let wanted = [
        Wanted::from(server.spec(ONE)),
        Wanted::Disabled(off("off")),
        Wanted::PendingTrust(off("unknown")),
    ];
    manager.apply(wanted).await;
    soon("the start", manager.wait_for_startup()).await;
    let states: Vec<_> = manager
        .status()
        .iter()
        .map(|status| status.state.kind())
        .collect();
    assert_eq!(states, [Disabled, Ready, PendingTrust]);
    for (name, code) in [
        ("mcp__off__echo", "server-disabled"),
        ("mcp__unknown__echo", "pending-trust"),
    ] {
        let error = call(&manager, name).await.unwrap_err();
        assert_eq!(error.code(), code, "{error:?}");
        assert!(
            error.for_model().contains("Only the user can change that"),
            "{error:?}"
        );
    }
    // Switched off while it runs.
    manager.apply([Wanted::Disabled(off(ONE))]).await;
    assert_eq!(state(&manager).kind(), Disabled);
    assert_eq!(tools(&manager), [""; 0]);
    let error = echo(&manager).await.unwrap_err();
    assert_eq!(error.code(), "server-disabled", "{error:?}");
}

#[tokio::test]
async fn a_start_without_its_required_servers_has_failed() {
    let gate = Gate::new();
    let down = Script::new().on_start().exit(3);
    let slow = Script::new().on("initialize").hold(&gate).as_usual();
    let servers = [
        ("down", Faulty::start(Transport::Stdio, &down)),
        ("slow", Faulty::start(Transport::Stdio, &slow)),
        ("there", Faulty::start(Transport::Stdio, &Script::new())),
        ("unimportant", Faulty::start(Transport::Stdio, &down)),
    ];
    let specs = servers.iter().map(|(name, server)| {
        let mut spec = server.spec(name);
        spec.required = *name != "unimportant";
        if *name == "slow" {
            spec.startup_timeout = Duration::from_millis(50);
        }
        spec
    });
    let (manager, mut story) = begun(giving_up_after(1), specs.collect()).await;
    let startup = soon("the start", manager.wait_for_startup()).await;
    assert_eq!(names(&startup.ready), ["there"]);
    let missing = startup.check_required().unwrap_err();
    assert_eq!(names(&missing.slow), ["slow"]);
    let failed: Vec<_> = missing
        .failed
        .iter()
        .map(|(name, state)| (name.as_str(), state.kind()))
        .collect();
    assert_eq!(failed, [("down", Failed)]);
    let text = missing.to_string();
    for clue in [
        "`down` (failed",
        "exit code 3",
        "`slow` (not ready within its startup_timeout_sec)",
    ] {
        assert!(text.contains(clue), "{text}");
    }
    assert!(
        !text.contains("unimportant") && !text.contains("there` "),
        "{text}"
    );
    let (ready, failed, slow) = story
        .hears("the end of the start", |event| match event {
            Event::StartupComplete {
                ready,
                failed,
                slow,
            } => Some((ready, failed, slow)),
            _ => None,
        })
        .await;
    let [(there, Some(facts))] = ready.as_slice() else {
        panic!("{ready:?}");
    };
    assert_eq!((there.as_str(), names(&slow)), ("there", vec!["slow"]));
    assert_eq!(facts.server_name.as_deref(), Some("scripted"));
    let failed: Vec<_> = failed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(failed, ["down", "unimportant"]);
    gate.open();
    story.reaches("slow", Ready).await;
}

/// Takes a while to find out that a server cannot be reached, and counts how many it is asked for
/// at once.
#[derive(Default)]
struct Counting {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Connector for Counting {
    fn reach<'a>(&'a self, _spec: &'a ServerSpec) -> Answer<'a, Result<Reached, ReachError>> {
        Box::pin(async {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.now.fetch_sub(1, Ordering::SeqCst);
            Err(ReachError::unusable("invalid-target", "there is none"))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn only_so_many_servers_are_started_at_once() {
    let table = [
        (Concurrency::default(), 3),
        (Concurrency::AtMost(5), 5),
        (Concurrency::AtMost(0), 1),
        (Concurrency::All, 20),
    ];
    for (concurrency, most) in table {
        let connector = Arc::new(Counting::default());
        let mut options = ManagerOptions {
            connector: Arc::clone(&connector) as Arc<dyn Connector>,
            ..ManagerOptions::default()
        };
        options.start_limiter = StartLimiter::new(concurrency);
        // Managers of one process share the limit.
        let managers = [Manager::new(options.clone()), Manager::new(options)];
        for manager in &managers {
            let specs = (0..10).map(|number| {
                let name = format!("server-{number}").parse().unwrap();
                ServerSpec::program(name, "any", [""; 0])
            });
            manager.apply(specs).await;
        }
        for manager in &managers {
            let startup = manager.wait_for_startup().await;
            assert_eq!(startup.failed.len(), 10, "{concurrency:?}");
        }
        assert_eq!(
            connector.most.load(Ordering::SeqCst),
            most,
            "{concurrency:?}"
        );
    }
}

#[tokio::test]
async fn slow_servers_leave_their_places_to_the_fast_ones() {
    let gate = Gate::new();
    let slow = Script::new().on("initialize").hold(&gate).as_usual();
    let slow: Vec<_> = (0..3)
        .map(|_| Faulty::start(Transport::Unix, &slow))
        .collect();
    let fast: Vec<_> = (0..3)
        .map(|_| Faulty::start(Transport::Unix, &Script::new()))
        .collect();
    // By their names, the slow ones come first.
    let specs = slow
        .iter()
        .enumerate()
        .map(|(number, server)| server.spec(&format!("a-slow-{number}")));
    let specs = specs.chain(
        fast.iter()
            .enumerate()
            .map(|(number, server)| server.spec(&format!("fast-{number}"))),
    );
    let mut options = quick();
    options.start_limiter = StartLimiter::new(Concurrency::AtMost(2));
    let (manager, mut story) = begun(options, specs.collect()).await;
    for number in 0..3 {
        let name = format!("mcp__fast-{number}__echo");
        assert_echoed(&name, call(&manager, &name).await);
    }
    for number in 0..3 {
        assert_eq!(story.states(&format!("a-slow-{number}")).await, []);
    }
    gate.open();
    let startup = soon("the start", manager.wait_for_startup()).await;
    assert_eq!(startup.ready.len(), 6, "{startup:?}");
}

#[tokio::test]
async fn servers_that_care_are_told_about_the_sandbox() {
    let greeting = |capabilities: serde_json::Value| {
        let mut all = json!({"tools": {"listChanged": true}});
        let (Some(all_members), Some(more)) = (all.as_object_mut(), capabilities.as_object())
        else {
            panic!("{capabilities}");
        };
        all_members.extend(more.clone());
        Script::new().on("initialize").result(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": all,
            "serverInfo": {"name": "scripted", "version": "1"},
        }))
    };
    let capability = SANDBOX_STATE_CAPABILITY;
    let servers = [
        ("top", greeting(json!({capability: {}})).stdio()),
        (
            "experimental",
            greeting(json!({"experimental": {capability: {}}})).stdio(),
        ),
        ("careless", greeting(json!({})).stdio()),
    ];
    let specs = servers.iter().map(|(name, server)| {
        let program = server.program().to_str().unwrap();
        ServerSpec::program(name.parse().unwrap(), program, server.args())
    });
    let manager = Manager::new(quick());
    manager.set_sandbox_state(raw(r#"{"policy":"first"}"#));
    let mut story = Story::of(&manager);
    manager.apply(specs).await;
    soon("the start", manager.wait_for_startup()).await;
    // Each state comes twice: as a notification, and as a request.
    let told = async |count: usize| {
        for (name, server) in &servers[..2] {
            let received = server.received();
            let of_sandbox = |all: &[cocode_testkit::Message]| {
                let all = all
                    .iter()
                    .filter(|message| message.is(SANDBOX_STATE_METHOD));
                all.map(|message| (message.id().is_some(), message.params()["policy"].clone()))
                    .collect::<Vec<_>>()
            };
            received
                .wait_until(|all| of_sandbox(all).len() >= count)
                .await;
            let states = ["first", "second", "second"];
            let expected = states
                .into_iter()
                .flat_map(|policy| [false, true].map(|is_request| (is_request, json!(policy))));
            let expected: Vec<_> = expected.take(count).collect();
            assert_eq!(of_sandbox(&received.all()), expected, "{name}");
        }
    };
    told(2).await;
    manager.set_sandbox_state(raw(r#"{"policy":"second"}"#));
    told(4).await;
    // A new connection knows nothing of it.
    for (_, server) in &servers[..2] {
        server.kill();
    }
    story.hears("the first to be missed", is_reconnecting).await;
    story
        .hears("the second to be missed", is_reconnecting)
        .await;
    told(6).await;
    assert_echoed("careless", call(&manager, "mcp__careless__echo").await);
    let (_, careless) = &servers[2];
    careless.wait_for(|message| message.is("tools/call")).await;
    assert_eq!(
        careless
            .received()
            .count(|message| message.is(SANDBOX_STATE_METHOD)),
        0
    );
}

fn is_reconnecting(event: Event) -> Option<()> {
    match event {
        Event::ServerStateChanged { state, .. } if state.kind() == Reconnecting => Some(()),
        _ => None,
    }
}

#[tokio::test]
async fn a_server_can_be_stopped_and_comes_back_when_it_is_needed() {
    over_every_transport(|transport| async move {
        let (_server, manager, mut story) = only(transport, &Script::new(), quick()).await;
        let name = ONE.parse().unwrap();
        soon("the end", manager.stop(&name)).await.unwrap();
        assert_eq!(state(&manager).kind(), Stopped, "{transport:?}");
        assert_eq!(tools(&manager), ["mcp__one__echo"], "{transport:?}");
        assert_echoed(transport, echo(&manager).await);
        let states = story.states(ONE).await;
        assert_eq!(
            states,
            [Stopped, StateKind::Starting, Ready],
            "{transport:?}"
        );
        assert_eq!(story.catalog_changes().await, [], "{transport:?}");
        soon("the end", manager.shutdown()).await;
    })
    .await;
}

/// What ends a connection on purpose.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Stop,
    Restart,
    Remove,
    Shutdown,
}

#[tokio::test]
async fn a_call_whose_server_is_taken_away_ends_at_once_and_once() {
    let endings = [
        Ending::Stop,
        Ending::Restart,
        Ending::Remove,
        Ending::Shutdown,
    ];
    let cases = Transport::ALL
        .into_iter()
        .flat_map(|transport| endings.map(|ending| (transport, ending)));
    for_each(cases, |case| async move {
        let (transport, ending) = case;
        let gate = Gate::new();
        let script = Script::new().on("tools/call").hold(&gate).as_usual();
        let (server, manager, mut story) = only(transport, &script, without_pings()).await;
        let name = ONE.parse().unwrap();
        let (outcome, ()) = tokio::join!(echo(&manager), async {
            gate.reached().await;
            match ending {
                Ending::Stop => manager.stop(&name).await.unwrap(),
                Ending::Restart => manager.restart(&name).await.unwrap(),
                Ending::Remove => {
                    let applied = manager.apply([] as [ServerSpec; 0]).await;
                    assert_eq!(names(&applied.stopped), [ONE], "{case:?}");
                }
                Ending::Shutdown => manager.shutdown().await,
            }
        });
        let error = outcome.unwrap_err();
        assert_eq!(error.code(), "connection-closed", "{case:?}: {error:?}");
        let failed = CallEnd::Failed("connection-closed");
        assert_eq!(story.ends().await, [failed], "{case:?}");
        server.hears("tools/call", 1).await;
        assert_eq!(server.heard("tools/call"), 1, "{case:?}");
    })
    .await;
}

#[tokio::test]
async fn list_changed_is_ignored_where_it_does_not_invalidate() {
    let mut options = quick();
    options.health.invalidate_on_list_changed = false;
    let script = Script::new().on("tools/call");
    let script = script.notify_times(1, TOOLS_CHANGED, "{}").as_usual();
    let (server, manager, _story) = only(Transport::Unix, &script, options).await;
    assert_echoed(Transport::Unix, echo(&manager).await);
    // Pings go on for longer than the list would have been read within.
    server.hears("ping", server.heard("ping") + 30).await;
    assert_eq!(server.heard("tools/list"), 1);
}

#[tokio::test]
async fn list_ttl_decides_whether_lists_without_ttl_are_fresh() {
    for (list_ttl, is_fresh) in [(Duration::ZERO, false), (Duration::from_hours(1), true)] {
        let mut options = without_pings();
        options.health.list_ttl = list_ttl;
        let (_server, manager, _story) = only(Transport::Unix, &Script::new(), options).await;
        let found = manager.fresh_tool(&ONE.parse().unwrap(), "echo");
        assert_eq!(found.is_some(), is_fresh, "{list_ttl:?}");
    }
}
