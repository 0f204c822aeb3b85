//! Servers that refuse or cannot be reached: statuses, web pages, names and certificates that are
//! not there, at the start and in the middle of things.

use std::sync::Arc;

use cocode_client::{
    CallEnd, CallError, HttpClient, HttpSettings, PlainConnector, RequestError, ServerState,
    StateKind,
};
use cocode_core::{Reach, RemoteTransport, ServerSpec};
use cocode_testkit::Script;

use crate::manager::faulty::{Faulty, Transport};
use crate::manager::story::{
    ONE, assert_echoed, begun, call, echo, echo_within, for_each, giving_up_after, kinds, listing,
    only, over_every_transport, quick, ready, state, tools, without_pings,
};
use crate::support::environment;

use StateKind::{Failed, NeedsAuth, Ready, Reconnecting, Starting};

/// The transports that begin with an HTTP request.
const OVER_HTTP: [Transport; 4] = [
    Transport::Http,
    Transport::ModernHttp,
    Transport::Sse,
    Transport::WebSocket,
];

/// A wrong answer to an HTTP request.
#[derive(Clone, Copy, Debug)]
enum Answer {
    NotFound,
    Unauthorized,
    InternalError,
    /// 503 with `Retry-After`, in seconds.
    Unavailable(&'static str),
    WebPage,
}

impl Answer {
    const ALL: [Self; 5] = [
        Self::NotFound,
        Self::Unauthorized,
        Self::InternalError,
        Self::Unavailable("0"),
        Self::WebPage,
    ];

    fn parts(self) -> (u16, Vec<(&'static str, &'static str)>, &'static str) {
        match self {
            Self::NotFound => (404, Vec::new(), "not here"),
            Self::Unauthorized => (401, vec![("WWW-Authenticate", "Bearer")], ""),
            Self::InternalError => (500, Vec::new(), "the disk is full"),
            Self::Unavailable(seconds) => (503, vec![("Retry-After", seconds)], "later"),
            Self::WebPage => (200, vec![("Content-Type", "text/html")], "<h1>Welcome</h1>"),
        }
    }

    /// A server that answers everything so.
    fn everywhere(self, transport: Transport) -> Script {
        let (status, headers, body) = self.parts();
        match transport {
            Transport::WebSocket => Script::new().refuse_handshake_with(status, &headers, body),
            _ => ["GET", "POST"]
                .into_iter()
                .fold(Script::new(), |script, verb| {
                    script.on_http(verb).respond(status, &headers, body)
                }),
        }
    }

    /// Adds this as the answer to a call, by the open rule.
    fn here(self, script: Script) -> Script {
        let (status, headers, body) = self.parts();
        script.respond(status, &headers, body)
    }
}

#[tokio::test]
async fn a_server_that_refuses_from_the_start_is_told_from_one_that_may_come_up() {
    let cases = OVER_HTTP
        .into_iter()
        .flat_map(|transport| Answer::ALL.map(|answer| (transport, answer)))
        // What accepts without switching to WebSocket cannot be scripted.
        .filter(|case| !matches!(case, (Transport::WebSocket, Answer::WebPage)));
    for_each(cases, |case| async move {
        let (transport, answer) = case;
        let server = Faulty::start(transport, &answer.everywhere(transport));
        let neighbor = Faulty::start(transport, &Script::new());
        let specs = vec![server.spec(ONE), neighbor.spec("two")];
        let (manager, mut story) = begun(giving_up_after(5), specs).await;
        let (settled, way) = match answer {
            Answer::NotFound | Answer::WebPage => (Failed, vec![Failed]),
            Answer::Unauthorized => (NeedsAuth, vec![NeedsAuth]),
            Answer::InternalError | Answer::Unavailable(_) => (Failed, vec![Reconnecting, Failed]),
        };
        let states = story.reaches(ONE, settled).await;
        assert_eq!(kinds(&states), way, "{case:?}: {states:?}");
        if way.contains(&Reconnecting) {
            assert_eq!(states.len(), 6, "{case:?}: {states:?}");
        }
        // Whatever it is, it is said in so many words.
        let trouble = states.last().unwrap().trouble().unwrap().to_string();
        let clue = match answer {
            Answer::NotFound => "404",
            Answer::Unauthorized => "401",
            Answer::InternalError => "500",
            Answer::Unavailable(_) => "503",
            Answer::WebPage => "text/html",
        };
        assert!(trouble.contains(clue), "{case:?}: {trouble}");
        // The others do not mind.
        assert_echoed(case, call(&manager, "mcp__two__echo").await);
        // Somebody who needs it has it asked once more.
        let error = call(&manager, "mcp__one__echo").await.unwrap_err();
        match &error {
            CallError::Unavailable {
                state,
                in_time: true,
                ..
            } => {
                assert_eq!(state.kind(), settled, "{case:?}");
            }
            other => panic!("{case:?}: {other:?}"),
        }
        let states = story.reaches(ONE, settled).await;
        assert_eq!(kinds(&states), [Starting, settled], "{case:?}: {states:?}");
        server.restart(&Script::new());
        assert_echoed(case, call(&manager, "mcp__one__echo").await);
        let states = story.reaches(ONE, Ready).await;
        assert_eq!(kinds(&states), [Starting, Ready], "{case:?}: {states:?}");
    })
    .await;
}

/// The transports whose answers to single requests can be wrong by themselves.
const BY_REQUEST: [Transport; 3] = [Transport::Http, Transport::ModernHttp, Transport::Sse];

#[tokio::test]
async fn a_call_that_is_refused_fails_alone() {
    let cases = BY_REQUEST
        .into_iter()
        .flat_map(|transport| Answer::ALL.map(|answer| (transport, answer)));
    for_each(cases, |case| async move {
        let (transport, answer) = case;
        let script = answer.here(Script::new().on("tools/call").nth(1));
        let (server, manager, mut story) = only(transport, &script, without_pings()).await;
        let failed = match case {
            // A session that its server has forgotten is opened anew, and nothing was done in it.
            (Transport::Http, Answer::NotFound) => {
                assert_echoed(case, echo(&manager).await);
                None
            }
            // The answer does not come with the post, so nobody looks at what does.
            (Transport::Sse, Answer::WebPage) => {
                let error = echo_within(&manager, 100).await.unwrap_err();
                Some((error, "request-timeout"))
            }
            (_, Answer::Unauthorized) => Some((echo(&manager).await.unwrap_err(), "auth-required")),
            (_, Answer::WebPage) => Some((echo(&manager).await.unwrap_err(), "wrong-content-type")),
            _ => Some((echo(&manager).await.unwrap_err(), "http-status")),
        };
        if let Some((error, code)) = failed {
            assert_eq!(error.code(), code, "{case:?}: {error:?}");
            assert_eq!(story.ends().await, [CallEnd::Failed(code)], "{case:?}");
            assert_echoed(case, echo(&manager).await);
        }
        server.hears("tools/call", 2).await;
        assert_eq!(server.heard("tools/call"), 2, "{case:?}");
        assert_eq!(story.states(ONE).await, [], "{case:?}");
        assert_eq!(story.catalog_changes().await, [], "{case:?}");
    })
    .await;
}

#[tokio::test]
async fn a_call_that_may_be_repeated_is_made_again_after_a_refusal_of_the_moment() {
    let answers = [Answer::InternalError, Answer::Unavailable("0")];
    let cases = BY_REQUEST
        .into_iter()
        .flat_map(|transport| answers.map(|answer| (transport, answer)));
    for_each(cases, |case| async move {
        let (transport, answer) = case;
        let script = listing(Script::new(), r#""annotations":{"idempotentHint":true}"#);
        let script = answer.here(script.on("tools/call").nth(1));
        let (server, manager, mut story) = only(transport, &script, without_pings()).await;
        let outcome = echo(&manager).await;
        assert_eq!(
            outcome.as_ref().ok().map(|called| called.attempts),
            Some(2),
            "{case:?}"
        );
        assert_echoed(case, outcome);
        assert_eq!(story.ends().await, [CallEnd::Ok], "{case:?}");
        server.hears("tools/call", 2).await;
        assert_eq!(server.heard("tools/call"), 2, "{case:?}");
    })
    .await;
}

#[tokio::test]
async fn nobody_repeats_a_call_before_the_time_that_the_server_asks_for() {
    for_each(BY_REQUEST, |transport| async move {
        let script = listing(Script::new(), r#""annotations":{"readOnlyHint":true}"#);
        let script = Answer::Unavailable("3000").here(script.on("tools/call"));
        let (server, manager, _story) = only(transport, &script, without_pings()).await;
        // Its time is over before the server wants to be asked again.
        let error = echo(&manager).await.unwrap_err();
        assert_eq!(error.code(), "http-status", "{transport:?}: {error:?}");
        assert_eq!(server.heard("tools/call"), 1, "{transport:?}");
    })
    .await;
}

#[tokio::test]
async fn a_server_that_asks_for_time_is_left_alone() {
    for_each(OVER_HTTP, |transport| async move {
        let server = Faulty::start(
            transport,
            &Answer::Unavailable("3000").everywhere(transport),
        );
        let (manager, mut story) = begun(quick(), vec![server.spec(ONE)]).await;
        story.reaches(ONE, Reconnecting).await;
        // Long enough for many attempts, if nobody had asked for time.
        let error = echo_within(&manager, 500).await.unwrap_err();
        match &error {
            CallError::Unavailable {
                state: ServerState::Reconnecting { attempt, .. },
                in_time: false,
                ..
            } => assert_eq!(*attempt, 1, "{transport:?}"),
            other => panic!("{transport:?}: {other:?}"),
        }
        // But its user may insist.
        server.restart(&Script::new());
        manager.restart(&ONE.parse().unwrap()).await.unwrap();
        assert_echoed(transport, echo(&manager).await);
    })
    .await;
}

#[tokio::test]
async fn credentials_that_are_refused_later_make_the_server_need_new_ones() {
    for_each(BY_REQUEST, |transport| async move {
        let server = Faulty::start(transport, &Script::new());
        let neighbor = Faulty::start(transport, &Script::new());
        let specs = vec![server.spec(ONE), neighbor.spec("two")];
        let (manager, mut story) = ready(without_pings(), specs).await;
        server.restart(&Answer::Unauthorized.everywhere(transport));
        let outcome = echo(&manager).await;
        assert!(outcome.is_err(), "{transport:?}: {outcome:?}");
        let states = story.reaches(ONE, NeedsAuth).await;
        let way = kinds(&states);
        let lost = transport == Transport::Sse;
        let expected = if lost {
            vec![Reconnecting, NeedsAuth]
        } else {
            vec![NeedsAuth]
        };
        assert_eq!(way, expected, "{transport:?}: {states:?}");
        // Its tools are not offered, those of the other go on.
        assert_eq!(tools(&manager), ["mcp__two__echo"], "{transport:?}");
        assert_echoed(transport, call(&manager, "mcp__two__echo").await);
        let error = echo(&manager).await.unwrap_err();
        assert!(
            error.for_model().contains("sign in"),
            "{transport:?}: {error:?}"
        );
        // Somebody has signed in.
        server.restart(&Script::new());
        assert_echoed(transport, echo(&manager).await);
        assert_eq!(
            tools(&manager),
            ["mcp__one__echo", "mcp__two__echo"],
            "{transport:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_server_that_answers_nothing_but_errors_any_more_is_lost() {
    let answers = [
        Answer::NotFound,
        Answer::InternalError,
        Answer::Unavailable("0"),
        Answer::WebPage,
    ];
    let cases = [Transport::Http, Transport::ModernHttp]
        .into_iter()
        .flat_map(|transport| answers.map(|answer| (transport, answer)));
    for_each(cases, |case| async move {
        let (transport, answer) = case;
        let (server, manager, mut story) =
            only(transport, &Script::new(), giving_up_after(5)).await;
        server.restart(&answer.everywhere(transport));
        let states = story.reaches(ONE, Failed).await;
        assert_eq!(
            kinds(&states),
            [Reconnecting, Failed],
            "{case:?}: {states:?}"
        );
        server.restart(&Script::new());
        assert_echoed(case, echo(&manager).await);
        assert_eq!(state(&manager).kind(), Ready, "{case:?}");
    })
    .await;
}

/// A specification for a server at this URL.
fn remote(transport: RemoteTransport, url: &str) -> ServerSpec {
    let mut spec = ServerSpec::remote(ONE.parse().unwrap(), url);
    if let Reach::Remote(remote) = &mut spec.reach {
        remote.transport = transport;
    }
    spec
}

#[tokio::test]
async fn a_server_that_is_nowhere_fails_in_so_many_words() {
    let nowhere = tempfile::tempdir().unwrap();
    let missing = nowhere.path().join("missing");
    let missing = missing.to_str().unwrap();
    let host = "no-such-host.invalid";
    let cases = [
        (
            remote(RemoteTransport::Http, &format!("http://{host}/mcp")),
            "unreachable",
            host,
        ),
        (
            remote(RemoteTransport::Sse, &format!("http://{host}/sse")),
            "unreachable",
            host,
        ),
        (
            remote(RemoteTransport::WebSocket, &format!("ws://{host}/")),
            "unreachable",
            host,
        ),
        (
            remote(RemoteTransport::Unix, &format!("unix://{missing}")),
            "unreachable",
            missing,
        ),
        (
            ServerSpec::program(ONE.parse().unwrap(), missing, [""; 0]),
            "spawn-failed",
            missing,
        ),
    ];
    for_each(cases, |(spec, code, clue)| async move {
        let is_program = matches!(spec.reach, Reach::Program(_));
        let (manager, mut story) = begun(giving_up_after(5), vec![spec]).await;
        let states = story.reaches(ONE, Failed).await;
        // A program that is not there will not be there in a moment either.
        let way = if is_program {
            vec![Failed]
        } else {
            vec![Reconnecting, Failed]
        };
        assert_eq!(kinds(&states), way, "{clue}: {states:?}");
        let trouble = states.last().unwrap().trouble().unwrap();
        assert_eq!(trouble.code(), code, "{trouble}");
        assert!(trouble.to_string().contains(clue), "{trouble}");
        let error = echo(&manager).await.unwrap_err();
        assert_eq!(error.code(), code, "{error:?}");
        assert!(error.to_string().contains(clue), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_certificate_that_nobody_trusts_is_refused_until_somebody_does() {
    for_each(OVER_HTTP, |transport| async move {
        let server = Faulty::start(transport, &Script::new().tls());
        let spec = server.spec(ONE);
        let (manager, mut story) = begun(giving_up_after(5), vec![spec.clone()]).await;
        let states = story.reaches(ONE, Failed).await;
        let trouble = states.last().unwrap().trouble().unwrap();
        assert!(
            trouble.to_string().to_lowercase().contains("certificate"),
            "{transport:?}: {trouble}"
        );
        assert_eq!(server.heard("initialize"), 0, "{transport:?}");
        let error = echo(&manager).await.unwrap_err();
        assert!(
            matches!(error, CallError::Unavailable { .. }),
            "{transport:?}: {error:?}"
        );
        let trusted = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(trusted.path(), server.authority_pem()).unwrap();
        let mut options = quick();
        options.connector = Arc::new(PlainConnector {
            environment: environment(),
            http: HttpClient::new(HttpSettings {
                extra_ca_files: vec![trusted.path().to_owned()],
                ..HttpSettings::default()
            }),
            ..PlainConnector::default()
        });
        let (manager, _story) = ready(options, vec![spec]).await;
        assert_echoed(transport, echo(&manager).await);
    })
    .await;
}

#[tokio::test]
async fn a_call_that_the_server_has_not_taken_is_made_again_whatever_the_tool_does() {
    for_each(BY_REQUEST, |transport| async move {
        let script = listing(Script::new(), r#""annotations":{"destructiveHint":true}"#)
            .on("tools/call")
            .nth(1)
            .respond(429, &[("Retry-After", "0")], "too many");
        let (server, manager, mut story) = only(transport, &script, without_pings()).await;
        assert_echoed(transport, echo(&manager).await);
        server.hears("tools/call", 2).await;
        assert_eq!(server.heard("tools/call"), 2, "{transport:?}");
        assert_eq!(story.ends().await, [CallEnd::Ok], "{transport:?}");
    })
    .await;
}

#[tokio::test]
async fn an_error_that_the_server_means_is_its_answer_and_not_repeated() {
    over_every_transport(|transport| async move {
        let script = listing(Script::new(), r#""annotations":{"readOnlyHint":true}"#);
        let script = script.on("tools/call").error(-32602, "not with these");
        let (server, manager, mut story) = only(transport, &script, without_pings()).await;
        let error = echo(&manager).await.unwrap_err();
        match &error {
            CallError::Request {
                error: RequestError::Rpc { error, .. },
                ..
            } => {
                assert_eq!(error.message, "not with these", "{transport:?}");
            }
            other => panic!("{transport:?}: {other:?}"),
        }
        server.hears("tools/call", 1).await;
        assert_eq!(server.heard("tools/call"), 1, "{transport:?}");
        assert_eq!(story.states(ONE).await, [], "{transport:?}");
    })
    .await;
}
