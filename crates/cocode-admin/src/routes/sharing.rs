//! Who shares which servers.

use crate::ask::Ask;
use crate::model::{Restarted, SharedServers};
use crate::refusal::Refusal;
use crate::reply::Json;
use crate::route::{Area, Route};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/shared", "getShared", shared).about(
            Area::Servers,
            "Who shares which servers: the clients of `cocode mcp serve`, and every instance of a server.",
        ),
        Route::post("/api/v1/shared/{name}/restart", "restartShared", restart).about(
            Area::Servers,
            "Connects anew to every instance of that name, whoever uses it. There may be none.",
        ),
    ]
}

async fn shared(ask: Ask) -> Result<Json<SharedServers>, Refusal> {
    Ok(Json(ask.house().shared().await?))
}

async fn restart(ask: Ask) -> Result<Json<Restarted>, Refusal> {
    let done = ask
        .house()
        .restart_shared(ask.caller()?, ask.name())
        .await?;
    Ok(Json(done))
}
