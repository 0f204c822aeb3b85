//! Lists that cannot be read, at the start or later, that change without a word, and that are said
//! to change all the time.

use std::time::Duration;

use cocode_client::{Event, ListKind, RawJson, StateKind};
use cocode_testkit::{Gate, Script};
use futures_util::FutureExt as _;
use tokio::time::Instant;

use crate::manager::faulty::{Faulty, Transport};
use crate::manager::story::{
    NEVER, ONE, Story, assert_echoed, begun, call, echo, for_each, giving_up_after, kinds,
    listing_all, only, over_every_transport, quick, ready, state, tools, without_pings,
};
use crate::support::{soon, text_of};

use StateKind::{Failed, NeedsAuth, Ready, Reconnecting};

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const OLD: &str = r#"{"name":"echo","inputSchema":{"type":"object"}}"#;
const NEW: &str = r#"{"name":"new","inputSchema":{"type":"object"}}"#;

/// The transports whose answers to single requests can be wrong by themselves.
const BY_REQUEST: [Transport; 3] = [Transport::Http, Transport::ModernHttp, Transport::Sse];

/// A failure of the moment.
#[derive(Clone, Copy, Debug)]
enum Moment {
    InternalError,
    Unavailable,
    Reset,
}

const MOMENTS: [Moment; 3] = [Moment::InternalError, Moment::Unavailable, Moment::Reset];

impl Moment {
    /// Adds this as the answer of the open rule.
    fn here(self, script: Script) -> Script {
        match self {
            Self::InternalError => script.respond(500, &[], "the disk is full"),
            Self::Unavailable => script.respond(503, &[("Retry-After", "0")], "later"),
            Self::Reset => script.raw("HTTP/1.1 20").reset(),
        }
    }
}

fn moments() -> impl Iterator<Item = (Transport, Moment)> {
    BY_REQUEST
        .into_iter()
        .flat_map(|transport| MOMENTS.map(|moment| (transport, moment)))
}

async fn another_catalog(story: &mut Story) {
    let is_change = |event| matches!(event, Event::CatalogChanged(_)).then_some(());
    story.hears("another catalog", is_change).await;
}

#[tokio::test]
async fn a_server_that_greets_everybody_and_shows_its_tools_to_none_needs_authentication() {
    for_each(BY_REQUEST, |transport| async move {
        let script = Script::new().on("tools/list");
        let script = script.unauthorized(&[("WWW-Authenticate", "Bearer")]);
        let server = Faulty::start(transport, &script);
        let (manager, mut story) = begun(quick(), vec![server.spec(ONE)]).await;
        let states = story.reaches(ONE, NeedsAuth).await;
        assert_eq!(kinds(&states), [NeedsAuth], "{transport:?}: {states:?}");
        let startup = soon("the start", manager.wait_for_startup()).await;
        assert_eq!(startup.failed.len(), 1, "{transport:?}: {startup:?}");
        server.restart(&Script::new());
        assert_echoed(transport, echo(&manager).await);
    })
    .await;
}

#[tokio::test]
async fn a_server_whose_tools_cannot_be_read_for_a_moment_is_tried_again() {
    for_each(moments(), |case| async move {
        let (transport, moment) = case;
        let script = moment.here(Script::new().on("tools/list").nth(1));
        let server = Faulty::start(transport, &script);
        let (manager, mut story) = begun(quick(), vec![server.spec(ONE)]).await;
        let states = story.reaches(ONE, Ready).await;
        assert_eq!(
            kinds(&states),
            [Reconnecting, Ready],
            "{case:?}: {states:?}"
        );
        assert_eq!(tools(&manager), ["mcp__one__echo"], "{case:?}");
        assert_echoed(case, echo(&manager).await);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_refuses_to_list_its_tools_can_be_used_without_them() {
    over_every_transport(|transport| async move {
        let script = Script::new()
            .on("tools/list")
            .error(-32603, "no tools today");
        let (_server, manager, mut story) = only(transport, &script, quick()).await;
        assert_eq!(state(&manager).kind(), Ready, "{transport:?}");
        assert_eq!(tools(&manager), [""; 0], "{transport:?}");
        let catalog = manager.catalog();
        let listed = catalog.server(&ONE.parse().unwrap()).unwrap();
        let why = &listed.unlisted[&ListKind::Tools];
        assert!(why.contains("no tools today"), "{transport:?}: {why}");
        assert_eq!(listed.prompts.len(), 1, "{transport:?}");
        assert_eq!(story.states(ONE).await, [], "{transport:?}");
    })
    .await;
}

#[tokio::test]
async fn a_change_that_cannot_be_read_for_a_moment_is_read_later() {
    for_each(moments(), |case| async move {
        let (transport, moment) = case;
        let script = Script::new()
            .on("tools/call")
            .notify_times(2, TOOLS_CHANGED, "{}");
        let script = listing_all(script.as_usual(), OLD).nth(1);
        let script = moment.here(script.on("tools/list").nth(2));
        let script = listing_all(script, NEW);
        let (_server, manager, mut story) = only(transport, &script, without_pings()).await;
        assert_echoed(case, echo(&manager).await);
        another_catalog(&mut story).await;
        assert_eq!(tools(&manager), ["mcp__one__new"], "{case:?}");
        assert_eq!(story.states(ONE).await, [], "{case:?}");
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_replaced_at_once_has_another_catalog_too() {
    over_every_transport(|transport| async move {
        let (server, manager, mut story) = only(transport, &Script::new(), without_pings()).await;
        server.restart(&Script::new().tools(1, 1));
        another_catalog(&mut story).await;
        assert_eq!(tools(&manager), ["mcp__one__tool-0"], "{transport:?}");
        let called = call(&manager, "mcp__one__tool-0").await.unwrap();
        let text = text_of(&called.result);
        assert_eq!(text, r#"{"word":"hello"}"#, "{transport:?}");
    })
    .await;
}

#[tokio::test]
async fn an_attempt_ends_in_time_also_if_the_tools_are_what_does_not_come() {
    over_every_transport(|transport| async move {
        let script = Script::new().on("tools/list").ignore();
        let server = Faulty::start(transport, &script);
        let mut spec = server.spec(ONE);
        spec.connect_timeout = Duration::from_millis(300);
        let (manager, mut story) = begun(giving_up_after(0), vec![spec]).await;
        let states = story.reaches(ONE, Failed).await;
        let trouble = states.last().unwrap().trouble().unwrap();
        assert_eq!(
            trouble.code(),
            "connect-timeout",
            "{transport:?}: {trouble}"
        );
        assert_eq!(state(&manager).kind(), Failed, "{transport:?}");
    })
    .await;
}

#[tokio::test]
async fn a_server_that_tells_of_a_change_whenever_it_is_asked_is_asked_ever_less_often() {
    over_every_transport(|transport| async move {
        let mut options = quick();
        options.health.relist_after = Duration::from_millis(1);
        options.health.relist_within = Duration::from_millis(20);
        let script = Script::new().on("tools/list");
        let script = script.notify_times(1, TOOLS_CHANGED, "{}").as_usual();
        let restless = Faulty::start(transport, &script);
        let calm = Faulty::start(Transport::Unix, &Script::new());
        let specs = vec![restless.spec(ONE), calm.spec("calm")];
        let (manager, _story) = ready(options, specs).await;
        // Signs of life come no more often than the lists could be read.
        calm.hears("ping", 60).await;
        let asked = restless.heard("tools/list");
        assert!(asked < 20, "{transport:?}: {asked}");
        assert_eq!(state_of(&manager, ONE), Ready, "{transport:?}");
    })
    .await;
}

fn state_of(manager: &cocode_client::Manager, name: &str) -> StateKind {
    let all = manager.status();
    let found = all.iter().find(|status| status.name.as_str() == name);
    found.unwrap().state.kind()
}

#[tokio::test]
async fn nobody_is_shown_a_catalog_that_is_no_other() {
    over_every_transport(|transport| async move {
        let (server, manager, mut story) = only(transport, &Script::new(), quick()).await;
        let mut watched = manager.watch_catalog();
        watched.mark_unchanged();
        let name = ONE.parse().unwrap();
        let until = Instant::now() + NEVER;
        soon("the lists", manager.refresh(&name, until))
            .await
            .unwrap();
        assert!(!watched.has_changed().unwrap(), "{transport:?}");
        server.take_down();
        story.reaches(ONE, Reconnecting).await;
        server.restart(&Script::new());
        story.reaches(ONE, Ready).await;
        soon("the lists", manager.wait_for_lists(&name, until)).await;
        assert!(!watched.has_changed().unwrap(), "{transport:?}");
    })
    .await;
}

#[tokio::test]
async fn nobody_waits_for_the_lists_of_a_server_that_is_gone() {
    over_every_transport(|transport| async move {
        let gate = Gate::new();
        let script = Script::new().on("prompts/list").hold(&gate).as_usual();
        let server = Faulty::start(transport, &script);
        let (manager, mut story) = begun(quick(), vec![server.spec(ONE)]).await;
        soon("the start", manager.wait_for_startup()).await;
        let (name, until) = (ONE.parse().unwrap(), Instant::now() + NEVER);
        let ((), ()) = tokio::join!(
            soon("the end of waiting", manager.wait_for_lists(&name, until)),
            async {
                gate.reached().await;
                server.take_down();
            }
        );
        // What the connection before has listed, or has not, says nothing about this one.
        story.reaches(ONE, Reconnecting).await;
        for arrivals in [2, 1] {
            let next = Gate::new();
            let held = if arrivals == 2 { &gate } else { &next };
            let script = Script::new().on("prompts/list").hold(held).as_usual();
            server.restart(&script);
            story.reaches(ONE, Ready).await;
            let mut waiting = Box::pin(manager.wait_for_lists(&name, until));
            held.reached_by(arrivals).await;
            assert!((&mut waiting).now_or_never().is_none(), "{transport:?}");
            held.open();
            soon("the lists", waiting).await;
            server.take_down();
            story.reaches(ONE, Reconnecting).await;
        }
    })
    .await;
}

#[tokio::test]
async fn of_two_answers_the_one_that_was_asked_for_later_counts() {
    over_every_transport(|transport| async move {
        let gate = Gate::new();
        let script = listing_all(Script::new(), OLD).nth(1);
        let list = |tool| {
            format!(
                r#"{{"resultType":"complete","ttlMs":3600000,"cacheScope":"private","tools":[{tool}]}}"#
            )
        };
        let script = script.on("tools/list").nth(2).hold(&gate).result(list(OLD));
        let script = script.on("tools/list").result(list(NEW));
        let (server, manager, _story) = only(transport, &script, without_pings()).await;
        let (name, until) = (ONE.parse().unwrap(), Instant::now() + NEVER);
        let (slow, ()) = tokio::join!(
            soon("the slow list", manager.refresh(&name, until)),
            async {
                gate.reached().await;
                let quick = manager.refresh(&name, until);
                soon("the quick list", quick).await.unwrap();
                assert_eq!(tools(&manager), ["mcp__one__new"], "{transport:?}");
                gate.open();
            }
        );
        slow.unwrap();
        assert_eq!(tools(&manager), ["mcp__one__new"], "{transport:?}");
        server.hears("tools/list", 3).await;
    })
    .await;
}

#[tokio::test]
async fn an_endless_log_message_is_cut_where_it_is_told() {
    over_every_transport(|transport| async move {
        // As long as the arguments of a program may be.
        let long = "x".repeat(100_000);
        let params = format!(r#"{{"level":"error","logger":"disk","data":"{long}"}}"#);
        let script = Script::new().on("tools/call");
        let script = script
            .notify_times(2, "notifications/message", params)
            .as_usual();
        let (_server, manager, mut story) = only(transport, &script, without_pings()).await;
        assert_echoed(transport, echo(&manager).await);
        let is_log = |event| match event {
            Event::LogReceived { level, data, .. } => Some((level, data)),
            _ => None,
        };
        let (level, data): (String, RawJson) = story.hears("the log message", is_log).await;
        assert_eq!(level, "error", "{transport:?}");
        let bytes = data.as_bytes().len();
        assert!((10_000..20_000).contains(&bytes), "{transport:?}: {bytes}");
        assert!(data.as_str().contains("xxxx"), "{transport:?}");
    })
    .await;
}
