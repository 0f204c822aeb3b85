//! Signing in at servers.

use std::time::Duration;

use crate::ask::Ask;
use crate::model::{Completion, Login, LoginState, LoginWish};
use crate::refusal::{Refusal, RefusalStatus};
use crate::reply::{Done, Json};
use crate::route::{Area, MAX_BODY_BYTES, Route};

/// How long somebody has to sign in who is waited for.
const LOGIN_WAIT: Duration = Duration::from_mins(5);
/// The same, and what it takes besides.
const LOGIN_PATIENCE: Duration = Duration::from_mins(6);

pub(super) fn routes() -> Vec<Route> {
    use RefusalStatus::{Conflict, ServerFailed};
    vec![
        Route::post_with("/api/v1/servers/{name}/login", "startLogin", login)
            .about(
                Area::Login,
                "Begins to sign in at a server. With `wait`, answers when that is over, or after \
                 five minutes.",
            )
            .may_refuse(&[Conflict, ServerFailed])
            .bounds(MAX_BODY_BYTES, LOGIN_PATIENCE),
        Route::get("/api/v1/servers/{name}/login", "getLogin", state)
            .about(Area::Login, "How far the last login at a server is."),
        Route::post_with(
            "/api/v1/servers/{name}/login/complete",
            "completeLogin",
            complete,
        )
        .about(
            Area::Login,
            "Ends a login with what the authorization server has sent the browser to.",
        )
        .may_refuse(&[Conflict, ServerFailed]),
        Route::delete(
            "/api/v1/servers/{name}/credentials",
            "dropCredentials",
            drop_credentials,
        )
        .about(Area::Login, "Forgets the credentials for a server.")
        .may_refuse(&[Conflict, ServerFailed]),
    ]
}

async fn login(ask: Ask, wish: LoginWish) -> Result<Json<Login>, Refusal> {
    let (house, name) = (ask.house(), ask.name());
    let begun = house.login(ask.caller()?, name, wish.scopes).await?;
    if wish.wait != Some(true) || begun.state != LoginState::Waiting {
        return Ok(Json(begun));
    }
    let over = tokio::time::timeout(LOGIN_WAIT, house.login_over(name)).await;
    match over {
        Ok(over) => Ok(Json(over?)),
        // It goes on; whoever wants to know more asks again.
        Err(_elapsed) => Ok(Json(house.login_state(name).await?)),
    }
}

async fn state(ask: Ask) -> Result<Json<Login>, Refusal> {
    Ok(Json(ask.house().login_state(ask.name()).await?))
}

async fn complete(ask: Ask, completion: Completion) -> Result<Json<Login>, Refusal> {
    let caller = ask.caller()?;
    let login = ask.house().complete_login(caller, ask.name(), completion);
    Ok(Json(login.await?))
}

async fn drop_credentials(ask: Ask) -> Result<Done, Refusal> {
    let caller = ask.caller()?;
    ask.house().drop_credentials(caller, ask.name()).await?;
    Ok(Done)
}
