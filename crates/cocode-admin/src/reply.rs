//! Answers: what a handler gives becomes a response, and says in the document what that looks like.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use serde_json::{Value, json};

use crate::headers;
use crate::refusal::{Refusal, RefusalStatus};
use crate::schema::{Described, SchemaOf, Shelf};
use crate::sse::json_text;
use cocode_wire::serve::PageBody;

pub(crate) const JSON: &str = "application/json";
pub(crate) const EVENTS: &str = "text/event-stream";
pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";

/// An answer as the document describes it.
#[derive(Debug)]
pub(crate) struct AnswerKind {
    pub(crate) status: StatusCode,
    pub(crate) about: &'static str,
    /// The types of its content, and the schema of each.
    pub(crate) content: Vec<(&'static str, SchemaOf)>,
}

/// What handlers answer with.
pub(crate) trait Respond {
    /// The answers that there may be.
    fn kinds() -> Vec<AnswerKind>;

    /// The answer that this is.
    fn response(self) -> Response<PageBody>;
}

/// Something as JSON.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

/// Something that was made, as JSON.
#[derive(Debug)]
pub(crate) struct Created<T>(pub(crate) T);

/// Something that is under way, as JSON.
#[derive(Debug)]
pub(crate) struct Accepted<T>(pub(crate) T);

/// It is done, and there is nothing to say.
#[derive(Debug)]
pub(crate) struct Done;

impl<T: Described + Serialize> Respond for Json<T> {
    fn kinds() -> Vec<AnswerKind> {
        vec![json_kind::<T>(StatusCode::OK, "What was asked for.")]
    }

    fn response(self) -> Response<PageBody> {
        json_response(StatusCode::OK, &self.0)
    }
}

impl<T: Described + Serialize> Respond for Created<T> {
    fn kinds() -> Vec<AnswerKind> {
        vec![json_kind::<T>(StatusCode::CREATED, "It was made.")]
    }

    fn response(self) -> Response<PageBody> {
        json_response(StatusCode::CREATED, &self.0)
    }
}

impl<T: Described + Serialize> Respond for Accepted<T> {
    fn kinds() -> Vec<AnswerKind> {
        vec![json_kind::<T>(StatusCode::ACCEPTED, "It has begun.")]
    }

    fn response(self) -> Response<PageBody> {
        json_response(StatusCode::ACCEPTED, &self.0)
    }
}

impl Respond for Done {
    fn kinds() -> Vec<AnswerKind> {
        vec![AnswerKind {
            status: StatusCode::NO_CONTENT,
            about: "It is done.",
            content: Vec::new(),
        }]
    }

    fn response(self) -> Response<PageBody> {
        let mut response = Response::new(PageBody::whole(Bytes::new()));
        *response.status_mut() = StatusCode::NO_CONTENT;
        response
    }
}

/// JSON of a type, with that status.
pub(crate) fn json_kind<T: Described>(status: StatusCode, about: &'static str) -> AnswerKind {
    AnswerKind {
        status,
        about,
        content: vec![(JSON, T::schema)],
    }
}

/// The schema of what is only text.
pub(crate) fn text_schema(_shelf: &mut Shelf) -> Value {
    json!({ "type": "string" })
}

/// A response with JSON.
pub(crate) fn json_response(status: StatusCode, value: &impl Serialize) -> Response<PageBody> {
    typed(status, JSON, PageBody::whole(json_text(value)))
}

/// A response with a body of that type.
pub(crate) fn typed(status: StatusCode, kind: &'static str, body: PageBody) -> Response<PageBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A response in events.
pub(crate) fn event_response(body: PageBody) -> Response<PageBody> {
    let mut response = typed(StatusCode::OK, EVENTS, body);
    // Proxies that collect answers before they pass them on are asked not to.
    let name = HeaderName::from_static("x-accel-buffering");
    let unbuffered = HeaderValue::from_static("no");
    response.headers_mut().insert(name, unbuffered);
    response
}

impl Refusal {
    /// The answer that says so, for those who refuse before [`Admin::answer`](crate::Admin::answer) is asked.
    pub fn page(self) -> Response<PageBody> {
        let mut response = self.response();
        headers::secure(response.headers_mut());
        response
    }

    /// The response that says so.
    pub(crate) fn response(self) -> Response<PageBody> {
        let (status, retry_after) = (self.status, self.retry_after);
        let mut response = json_response(status.code(), &self.problem());
        let headers = response.headers_mut();
        if status == RefusalStatus::SignedOut {
            let bearer = HeaderValue::from_static("Bearer realm=\"cocode\"");
            headers.insert(header::WWW_AUTHENTICATE, bearer);
        }
        if let Some(wait) = retry_after {
            // Whole seconds, rather one more than one too few.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
