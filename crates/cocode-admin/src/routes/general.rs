//! The gateway as a whole: status, events, health, metrics, the document, the end.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::ask::Ask;
use crate::events;
use crate::metrics::{self, Numbers};
use crate::model::{
    Budget, Call, ConfigNews, Elicitation, Hello, LogNews, Missed, Readiness, Removed, Server,
    ServerCounts, ServerState, SharedNews, Status, Stopping, TokenNews, TrustNews,
};
use crate::openapi;
use crate::refusal::{Refusal, RefusalStatus};
use crate::reply::{Accepted, AnswerKind, JSON, Json, PLAIN, Respond};
use crate::reply::{json_kind, json_response, text_schema, typed};
use crate::route::{Access, Area, Route};
use crate::schema::{Described as _, Shelf};
use cocode_wire::serve::PageBody;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/status", "getStatus", status)
            .about(Area::Gateway, "The gateway, and how it is."),
        Route::get("/api/v1/budget", "getBudget", budget)
            .about(Area::Gateway, "What all tools cost a model, in tokens."),
        Route::get("/api/v1/events", "listen", events::events)
            .about(
                Area::Gateway,
                "Everything that happens, as server-sent events. The first is `hello`. With \
                 `Last-Event-ID`, what has happened since is told first; `missed` says that not all \
                 of it is known any more. A comment comes every 15 s.",
            )
            .query(&[events::INBOX])
            .headers(&[(
                "Last-Event-ID",
                "The id of the last event that was heard: what has happened since is told first.",
            )])
            .events(&[
                ("hello", Hello::schema),
                ("missed", Missed::schema),
                ("server", server_news),
                ("call", Call::schema),
                ("elicitation", Elicitation::schema),
                ("trust", TrustNews::schema),
                ("token", TokenNews::schema),
                ("config", ConfigNews::schema),
                ("log", LogNews::schema),
                ("shared", SharedNews::schema),
            ]),
        Route::get("/api/v1/openapi.json", "getDocument", document)
            .about(Area::Gateway, "This document."),
        Route::post("/api/v1/stop", "stop", stop)
            .about(Area::Gateway, "Ends the gateway, as a signal would.")
            .may_refuse(&[RefusalStatus::Conflict]),
        Route::get("/healthz", "getHealth", health)
            .about(Area::Gateway, "Whether the gateway is alive.")
            .open_to(Access::Anyone),
        Route::get("/readyz", "getReadiness", readiness)
            .about(Area::Gateway, "Whether the gateway is ready for clients.")
            .open_to(Access::Anyone),
        Route::get("/metrics", "getMetrics", metrics_text)
            .about(Area::Gateway, "Numbers for Prometheus.")
            .open_to(Access::Watchers),
    ]
}

/// How a server is, or that it is gone.
fn server_news(shelf: &mut Shelf) -> Value {
    json!({ "anyOf": [Server::schema(shelf), Removed::schema(shelf)] })
}

async fn status(ask: Ask) -> Result<Json<Status>, Refusal> {
    let facts = ask.house().facts();
    let servers = ask.house().servers().await?;
    let sessions = ask.house().sessions().await?;
    let uptime = facts.started_at.time().elapsed();
    Ok(Json(Status {
        version: facts.version,
        pid: facts.pid,
        url: facts.url,
        dashboard: facts.dashboard,
        directory: facts.directory,
        started_at: facts.started_at,
        // A clock that was set back says nothing about the time that went by.
        uptime_seconds: uptime.map_or(0, |uptime| uptime.as_secs()),
        servers: counts(&servers),
        sessions: sessions.len() as u64,
        calls_in_flight: ask.inner.desk.calls.in_flight(),
        authentication: facts.authentication,
        tool_search: facts.tool_search,
        problems: problems(&ask),
    }))
}

fn problems(ask: &Ask) -> Vec<String> {
    let mut problems = ask.house().troubles();
    problems.extend(ask.inner.desk.bulletin.problems());
    problems
}

fn counts(servers: &[Server]) -> ServerCounts {
    let of = |state| servers.iter().filter(|one| one.state == state).count() as u64;
    ServerCounts {
        ready: of(ServerState::Ready),
        starting: of(ServerState::Starting),
        slow: of(ServerState::Slow),
        retrying: of(ServerState::Retrying),
        failed: of(ServerState::Failed),
        needs_auth: of(ServerState::NeedsAuth) + of(ServerState::NeedsClientRegistration),
        stopped: of(ServerState::Stopped),
        disabled: of(ServerState::Disabled),
        pending: of(ServerState::Pending),
        rejected: of(ServerState::Rejected),
        blocked: of(ServerState::Blocked),
        invalid: of(ServerState::Invalid),
    }
}

async fn budget(ask: Ask) -> Result<Json<Budget>, Refusal> {
    Ok(Json(ask.house().budget().await?))
}

async fn stop(ask: Ask) -> Result<Accepted<Stopping>, Refusal> {
    ask.house().stop(ask.caller()?).await?;
    Ok(Accepted(Stopping {
        message: "the gateway ends as soon as requests under way are done, within some seconds"
            .to_owned(),
    }))
}

/// The OpenAPI document.
struct Document(Bytes);

impl Respond for Document {
    fn kinds() -> Vec<AnswerKind> {
        vec![AnswerKind {
            status: StatusCode::OK,
            about: "An OpenAPI 3.1 document.",
            content: vec![(JSON, document_schema)],
        }]
    }

    fn response(self) -> Response<PageBody> {
        typed(StatusCode::OK, JSON, PageBody::whole(self.0))
    }
}

fn document_schema(_shelf: &mut Shelf) -> Value {
    json!({ "type": "object", "required": ["openapi", "info", "paths"] })
}

async fn document(ask: Ask) -> Result<Document, Refusal> {
    Ok(Document(openapi::text(
        &ask.house().facts().version,
        ask.inner.cookie().name(),
    )))
}

/// A word or many, as text.
struct Text {
    kind: &'static str,
    text: String,
}

impl Respond for Text {
    fn kinds() -> Vec<AnswerKind> {
        vec![AnswerKind {
            status: StatusCode::OK,
            about: "Text.",
            content: vec![("text/plain", text_schema)],
        }]
    }

    fn response(self) -> Response<PageBody> {
        typed(StatusCode::OK, self.kind, PageBody::whole(self.text))
    }
}

async fn health(_ask: Ask) -> Result<Text, Refusal> {
    Ok(Text {
        kind: PLAIN,
        text: "ok\n".to_owned(),
    })
}

impl Respond for Readiness {
    fn kinds() -> Vec<AnswerKind> {
        let (ready, not) = (StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE);
        vec![
            json_kind::<Self>(ready, "It is ready."),
            json_kind::<Self>(not, "It is not ready; `waitingFor` says why."),
        ]
    }

    fn response(self) -> Response<PageBody> {
        let status = if self.ready {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        json_response(status, &self)
    }
}

async fn readiness(ask: Ask) -> Result<Readiness, Refusal> {
    Ok(ask.house().readiness())
}

async fn metrics_text(ask: Ask) -> Result<Text, Refusal> {
    let (house, desk) = (ask.house(), &ask.inner.desk);
    let facts = house.facts();
    let servers = house.servers().await?;
    let sessions = house.sessions().await?;
    let numbers = Numbers {
        facts: &facts,
        servers: &servers,
        sessions: &sessions,
        calls: &desk.calls,
        listeners: desk.bulletin.listeners(),
        questions: desk.inbox.pending().len(),
        troubles: ask.house().troubles().len(),
    };
    Ok(Text {
        kind: metrics::CONTENT_TYPE,
        text: numbers.text(),
    })
}
