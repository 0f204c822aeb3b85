//! Calls of late, and how long they take.

use crate::ask::Ask;
use crate::call_book::MAX_CALLS_KEPT;
use crate::model::{Calls, Latencies};
use crate::parameter::{Parameter, ParameterKind};
use crate::refusal::Refusal;
use crate::reply::Json;
use crate::route::{Area, Route};

const LIMIT: Parameter = Parameter {
    name: "limit",
    about: "How many at most.",
    kind: ParameterKind::Count {
        least: 1,
        most: MAX_CALLS_KEPT,
        otherwise: 100,
    },
};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/calls", "listCalls", calls)
            .about(Area::Calls, "The calls of late, the newest first.")
            .query(&[LIMIT]),
        Route::get("/api/v1/latencies", "getLatencies", latencies)
            .about(Area::Calls, "How long calls take, by server."),
    ]
}

async fn calls(ask: Ask) -> Result<Json<Calls>, Refusal> {
    let calls = ask.inner.desk.calls.recent(ask.count(&LIMIT));
    Ok(Json(Calls { calls }))
}

async fn latencies(ask: Ask) -> Result<Json<Latencies>, Refusal> {
    let servers = ask.inner.desk.calls.latencies();
    Ok(Json(Latencies { servers }))
}
