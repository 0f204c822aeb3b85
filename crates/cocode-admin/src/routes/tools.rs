//! What servers offer, and using it.

use crate::ask::Ask;
use crate::calling;
use crate::model::{
    CallAnswer, CallProgress, FoundTools, LogLine, PromptWish, Prompts, ReadWish, Resources,
    ServerAnswer, ServerTools,
};
use crate::parameter::{Parameter, ParameterKind};
use crate::refusal::{Problem, Refusal, RefusalStatus};
use crate::reply::Json;
use crate::route::{Area, MAX_CALL_BYTES, Route};
use crate::schema::Described as _;

const QUERY: Parameter = Parameter {
    name: "query",
    about: "What the tool is to be for, in a few words.",
    kind: ParameterKind::Text { most: 1000 },
};
const LIMIT: Parameter = Parameter {
    name: "limit",
    about: "How many at most.",
    kind: ParameterKind::Count {
        least: 1,
        most: 1000,
        otherwise: 20,
    },
};

pub(super) fn routes() -> Vec<Route> {
    use RefusalStatus::{Conflict, ServerFailed};
    let about = |route: Route, summary| route.about(Area::Tools, summary);
    vec![
        about(
            Route::get("/api/v1/servers/{name}/tools", "listTools", tools),
            "The tools of a server.",
        )
        .may_refuse(&[Conflict, ServerFailed]),
        about(
            Route::get("/api/v1/servers/{name}/resources", "listResources", resources),
            "The resources of a server, and their templates.",
        )
        .may_refuse(&[Conflict, ServerFailed]),
        about(
            Route::get("/api/v1/servers/{name}/prompts", "listPrompts", prompts),
            "The prompts of a server.",
        )
        .may_refuse(&[Conflict, ServerFailed]),
        about(
            Route::post_with("/api/v1/servers/{name}/call", "callTool", calling::call),
            "Calls a tool. With `Accept: text/event-stream` the answer is events: `progress` and `log` \
             while it runs, then `result`, or `error` if it cannot be had.",
        )
        .may_refuse(&[Conflict, ServerFailed])
        .bounds(MAX_CALL_BYTES, calling::PATIENCE)
        .events(&[
            ("progress", CallProgress::schema),
            ("log", LogLine::schema),
            ("result", CallAnswer::schema),
            ("error", Problem::schema),
        ]),
        about(
            Route::post_with("/api/v1/servers/{name}/read", "readResource", read),
            "Reads a resource.",
        )
        .may_refuse(&[Conflict, ServerFailed]),
        about(
            Route::post_with("/api/v1/servers/{name}/prompt", "getPrompt", prompt),
            "Gets a prompt.",
        )
        .may_refuse(&[Conflict, ServerFailed]),
        about(
            Route::get("/api/v1/tools", "searchTools", search),
            "Looks for tools of any server by what they are for.",
        )
        .query(&[QUERY, LIMIT]),
    ]
}

async fn tools(ask: Ask) -> Result<Json<ServerTools>, Refusal> {
    let tools = ask.house().tools(ask.name()).await?;
    Ok(Json(ServerTools { tools }))
}

async fn resources(ask: Ask) -> Result<Json<Resources>, Refusal> {
    Ok(Json(ask.house().resources(ask.name()).await?))
}

async fn prompts(ask: Ask) -> Result<Json<Prompts>, Refusal> {
    Ok(Json(ask.house().prompts(ask.name()).await?))
}

async fn read(ask: Ask, wish: ReadWish) -> Result<Json<ServerAnswer>, Refusal> {
    let caller = ask.caller()?;
    let result = ask.house().read(caller, ask.name(), wish.uri).await?;
    Ok(Json(ServerAnswer { result }))
}

async fn prompt(ask: Ask, wish: PromptWish) -> Result<Json<ServerAnswer>, Refusal> {
    let caller = ask.caller()?;
    let result = ask.house().prompt(caller, ask.name(), wish).await?;
    Ok(Json(ServerAnswer { result }))
}

async fn search(ask: Ask) -> Result<Json<FoundTools>, Refusal> {
    let (query, limit) = (ask.text(&QUERY), ask.count(&LIMIT));
    let mut tools = ask.house().search_tools(query, limit).await?;
    tools.truncate(limit);
    Ok(Json(FoundTools { tools }))
}
