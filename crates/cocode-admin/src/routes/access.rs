//! Who is let in: tokens, sessions of clients, the audit log.

use crate::ask::Ask;
use crate::model::{AuditEntries, ClientSessions, MadeToken, NewToken, Tokens};
use crate::parameter::{Parameter, ParameterKind};
use crate::refusal::{Refusal, RefusalStatus};
use crate::reply::{Created, Done, Json};
use crate::route::{Area, Route};

const LIMIT: Parameter = Parameter {
    name: "limit",
    about: "How many at most.",
    kind: ParameterKind::Count {
        least: 1,
        most: 1000,
        otherwise: 100,
    },
};

pub(super) fn routes() -> Vec<Route> {
    use RefusalStatus::Conflict;
    let about = |route: Route, summary| route.about(Area::Access, summary);
    vec![
        about(
            Route::get("/api/v1/tokens", "listTokens", tokens),
            "The tokens that let clients in.",
        ),
        about(
            Route::post_with("/api/v1/tokens", "addToken", add),
            "Makes a token. Its text is told only now.",
        )
        .may_refuse(&[Conflict]),
        about(
            Route::delete("/api/v1/tokens/{name}", "revokeToken", revoke),
            "Makes a token worthless, and ends what was begun with it.",
        )
        .may_refuse(&[Conflict]),
        about(
            Route::get("/api/v1/sessions", "listSessions", sessions),
            "The sessions of clients.",
        ),
        about(
            Route::get("/api/v1/audit", "getAudit", audit),
            "The end of the audit log, the newest first.",
        )
        .query(&[LIMIT]),
    ]
}

async fn tokens(ask: Ask) -> Result<Json<Tokens>, Refusal> {
    let tokens = ask.house().tokens().await?;
    Ok(Json(Tokens { tokens }))
}

async fn add(ask: Ask, wanted: NewToken) -> Result<Created<MadeToken>, Refusal> {
    let made = ask.house().add_token(ask.caller()?, wanted).await?;
    Ok(Created(made))
}

async fn revoke(ask: Ask) -> Result<Done, Refusal> {
    ask.house().revoke_token(ask.caller()?, ask.name()).await?;
    Ok(Done)
}

async fn sessions(ask: Ask) -> Result<Json<ClientSessions>, Refusal> {
    let sessions = ask.house().sessions().await?;
    Ok(Json(ClientSessions { sessions }))
}

async fn audit(ask: Ask) -> Result<Json<AuditEntries>, Refusal> {
    let limit = ask.count(&LIMIT);
    let mut entries = ask.house().audit(limit).await?;
    entries.truncate(limit);
    Ok(Json(AuditEntries { entries }))
}
