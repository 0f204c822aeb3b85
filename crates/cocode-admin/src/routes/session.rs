//! Signing in and out.

use http::{Response, StatusCode, header};

use crate::ask::Ask;
use crate::call_book::TurnedAway;
use crate::codes::Redeemed;
use crate::cookie::Cookie;
use crate::guard::OPERATOR;
use crate::house::{Act, Caller, Credential, Record};
use crate::model::{Code, SignIn, SignedIn};
use crate::refusal::{Refusal, RefusalStatus};
use crate::reply::{AnswerKind, Created, Done, Json, Respond, json_kind, json_response};
use crate::route::{Access, Area, Route};
use crate::secret::Secret;
use crate::sessions::Session;
use cocode_wire::serve::PageBody;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/session", "getSession", session)
            .about(Area::Session, "Who is signed in.")
            .open_to(Access::Oneself),
        Route::post_with("/api/v1/sign-in", "signIn", sign_in)
            .about(Area::Session, "Exchanges a one-time code for a cookie.")
            .open_to(Access::Anyone)
            .may_refuse(&[RefusalStatus::SignedOut]),
        Route::post("/api/v1/sign-in/code", "makeCode", make_code).about(
            Area::Session,
            "Makes a one-time code, for another browser. Any other code is worthless from then on.",
        ),
        Route::post("/api/v1/sign-out", "signOut", sign_out)
            .about(Area::Session, "Ends the session of the cookie.")
            .open_to(Access::Oneself),
    ]
}

fn write_down(
    ask: &Ask,
    method: &'static str,
    by: Option<&Caller>,
) -> Result<Box<dyn Record>, Refusal> {
    ask.house().record(&Act {
        method,
        by,
        server: None,
        name: None,
    })
}

async fn session(ask: Ask) -> Result<Json<SignedIn>, Refusal> {
    let visitor = ask.visitor.as_ref().ok_or_else(crate::guard::signed_out)?;
    Ok(Json(SignedIn {
        name: visitor.caller.name.to_string(),
        csrf: visitor.session.as_ref().map(Session::csrf),
        version: ask.house().facts().version,
        is_admin: visitor.is_admin,
    }))
}

/// Somebody has signed in.
struct Welcome {
    signed_in: SignedIn,
    value: Secret,
    cookie: Cookie,
}

impl Respond for Welcome {
    fn kinds() -> Vec<AnswerKind> {
        let about = "Signed in; the answer sets the cookie.";
        vec![json_kind::<SignedIn>(StatusCode::OK, about)]
    }

    fn response(self) -> Response<PageBody> {
        let mut response = json_response(StatusCode::OK, &self.signed_in);
        if let Some(cookie) = self.cookie.set(&self.value) {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }
}

async fn sign_in(ask: Ask, body: SignIn) -> Result<Welcome, Refusal> {
    let inner = &ask.inner;
    let operator = Caller {
        name: OPERATOR.into(),
        by: Credential::Cookie,
    };
    // Before the code is used up: what cannot be written down is not done.
    let record = write_down(&ask, "sign-in", Some(&operator))?;
    match inner.codes.redeem(body.code.expose()) {
        Redeemed::Right => {}
        Redeemed::Wrong => {
            record.forget();
            write_down(&ask, "sign-in", None)?.ended(false);
            inner.desk.calls.turn_away(TurnedAway::Authentication);
            return Err(Refusal::new(
                RefusalStatus::SignedOut,
                "code-wrong",
                "this code is wrong, was used already, or is too old",
            )
            .hint("`cocode gateway code` makes another, where the gateway runs"));
        }
        Redeemed::TooMany(wait) => {
            record.forget();
            inner.desk.calls.turn_away(TurnedAway::Limit);
            return Err(Refusal::new(
                RefusalStatus::TooMany,
                "too-many-codes",
                "there were too many wrong codes, so none is looked at for a while",
            )
            .retry_after(wait));
        }
    }
    let (value, session) = inner.sessions.open()?;
    record.ended(true);
    Ok(Welcome {
        signed_in: SignedIn {
            name: OPERATOR.to_owned(),
            csrf: Some(session.csrf()),
            version: ask.house().facts().version,
            is_admin: true,
        },
        value,
        cookie: inner.cookie().clone(),
    })
}

async fn make_code(ask: Ask) -> Result<Created<Code>, Refusal> {
    let record = write_down(&ask, "sign-in/code", Some(ask.caller()?))?;
    let made = ask.inner.codes.make();
    record.ended(made.is_ok());
    made.map(Created)
}

/// Somebody has signed out.
struct Farewell {
    cookie: Cookie,
}

impl Respond for Farewell {
    fn kinds() -> Vec<AnswerKind> {
        Done::kinds()
    }

    fn response(self) -> Response<PageBody> {
        let mut response = Done.response();
        if let Some(cookie) = self.cookie.clear() {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }
}

async fn sign_out(ask: Ask) -> Result<Farewell, Refusal> {
    let record = write_down(&ask, "sign-out", Some(ask.caller()?))?;
    let session = ask
        .visitor
        .as_ref()
        .and_then(|visitor| visitor.session.as_ref());
    if let Some(session) = session {
        ask.inner.sessions.close(session);
    }
    record.ended(true);
    Ok(Farewell {
        cookie: ask.inner.cookie().clone(),
    })
}
