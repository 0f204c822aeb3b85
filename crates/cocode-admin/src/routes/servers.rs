//! Servers: how they are, adding and removing them, switching them on and off, their logs.

use crate::ask::Ask;
use crate::house::Switch;
use crate::model::{Logs, NewServer, Server, Servers};
use crate::parameter::{Parameter, ParameterKind};
use crate::refusal::{Refusal, RefusalStatus};
use crate::reply::{Created, Done, Json};
use crate::route::{Area, Route};

const LINES: Parameter = Parameter {
    name: "lines",
    about: "How many of the last lines.",
    kind: ParameterKind::Count {
        least: 1,
        most: 5000,
        otherwise: 200,
    },
};

pub(super) fn routes() -> Vec<Route> {
    use RefusalStatus::{Conflict, ServerFailed};
    let about = |route: Route, summary| route.about(Area::Servers, summary);
    vec![
        about(
            Route::get("/api/v1/servers", "listServers", list),
            "All servers, and how they are.",
        ),
        about(
            Route::post_with("/api/v1/servers", "addServer", add),
            "Adds a server to the configuration, and connects to it.",
        )
        .may_refuse(&[Conflict]),
        about(
            Route::get("/api/v1/servers/{name}", "getServer", one),
            "One server, and how it is.",
        ),
        about(
            Route::delete("/api/v1/servers/{name}", "removeServer", remove),
            "Takes a server out of the configuration.",
        )
        .may_refuse(&[Conflict]),
        about(
            Route::post("/api/v1/servers/{name}/enable", "enableServer", |ask| {
                switch(ask, Switch::Enable)
            }),
            "Switches a server on.",
        )
        .may_refuse(&[Conflict, ServerFailed]),
        about(
            Route::post("/api/v1/servers/{name}/disable", "disableServer", |ask| {
                switch(ask, Switch::Disable)
            }),
            "Switches a server off, until it is switched on again.",
        )
        .may_refuse(&[Conflict, ServerFailed]),
        about(
            Route::post("/api/v1/servers/{name}/connect", "connectServer", |ask| {
                switch(ask, Switch::Connect)
            }),
            "Connects to a server now.",
        )
        .may_refuse(&[Conflict, ServerFailed]),
        about(
            Route::post(
                "/api/v1/servers/{name}/disconnect",
                "disconnectServer",
                |ask| switch(ask, Switch::Disconnect),
            ),
            "Ends the connection to a server, until somebody needs it.",
        )
        .may_refuse(&[Conflict, ServerFailed]),
        about(
            Route::post("/api/v1/servers/{name}/restart", "restartServer", |ask| {
                switch(ask, Switch::Restart)
            }),
            "Connects to a server anew.",
        )
        .may_refuse(&[Conflict, ServerFailed]),
        about(
            Route::get("/api/v1/servers/{name}/logs", "getServerLogs", logs),
            "The last lines of the log of a server.",
        )
        .query(&[LINES]),
    ]
}

async fn list(ask: Ask) -> Result<Json<Servers>, Refusal> {
    let servers = ask.house().servers().await?;
    Ok(Json(Servers { servers }))
}

async fn one(ask: Ask) -> Result<Json<Server>, Refusal> {
    Ok(Json(ask.house().server(ask.name()).await?))
}

async fn add(ask: Ask, wanted: NewServer) -> Result<Created<Server>, Refusal> {
    let added = ask.house().add_server(ask.caller()?, wanted).await?;
    Ok(Created(added))
}

async fn remove(ask: Ask) -> Result<Done, Refusal> {
    ask.house().remove_server(ask.caller()?, ask.name()).await?;
    Ok(Done)
}

async fn switch(ask: Ask, switch: Switch) -> Result<Json<Server>, Refusal> {
    let caller = ask.caller()?;
    let server = ask.house().switch_server(caller, ask.name(), switch);
    Ok(Json(server.await?))
}

async fn logs(ask: Ask) -> Result<Json<Logs>, Refusal> {
    let lines = ask.house().logs(ask.name(), ask.count(&LINES)).await?;
    Ok(Json(Logs { lines }))
}
