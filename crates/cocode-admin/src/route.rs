//! A route: where it is, who may use it, what it takes and gives, and what is done there. The dispatch
//! and the document of the API are made from the same values, by types: what a handler takes is what is
//! described, and what it gives, too.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use cocode_client::{Checked, SchemaCell};
use cocode_wire::RawJson;
use http::{Method, Response};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::ask::{Ask, unfit};
use crate::parameter::Parameter;
use crate::refusal::{Refusal, RefusalStatus};
use crate::reply::{AnswerKind, Respond};
use crate::schema::{Described, SchemaOf, Shelf};
use crate::sse::raw_json;
use cocode_wire::serve::PageBody;

/// The body of most requests, in bytes.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;
/// The body of a call, in bytes.
pub const MAX_CALL_BYTES: usize = 16 * 1024 * 1024;
/// The body of a request that everybody may make, in bytes.
pub(crate) const MAX_OPEN_BYTES: usize = 64 * 1024;
/// How long an answer may take, unless its route says more.
const PATIENCE: Duration = Duration::from_mins(2);

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody.
    Anyone,
    /// Whoever shows who they are, about themselves.
    Oneself,
    /// Administrators, and everybody where that is wanted, or clients need not show who they are either.
    Watchers,
    /// Administrators.
    Administrators,
}

/// What a route belongs to, for readers of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Area {
    Session,
    Gateway,
    Servers,
    Login,
    Tools,
    Calls,
    Questions,
    Access,
}

/// What the body of a request is.
pub(crate) struct BodyKind {
    /// How it is described.
    pub(crate) schema: SchemaOf,
    /// What it is checked by.
    pub(crate) check: SchemaCell,
    /// Whether it can be left out.
    pub(crate) is_optional: bool,
}

type Handling = Pin<Box<dyn Future<Output = Result<Response<PageBody>, Refusal>> + Send>>;

/// A method at a path.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// Its name in the document.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) area: Area,
    pub(crate) access: Access,
    pub(crate) query: &'static [Parameter],
    /// Headers that mean something here, with what they mean.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    pub(crate) body: Option<BodyKind>,
    /// The longest body, in bytes.
    pub(crate) max_body: usize,
    pub(crate) answers: Vec<AnswerKind>,
    pub(crate) refusals: BTreeSet<RefusalStatus>,
    /// How long it may take.
    pub(crate) patience: Duration,
    /// What is told by its events, if it has any, and the schema of each.
    pub(crate) events: Vec<(&'static str, SchemaOf)>,
    handle: Box<dyn Fn(Ask) -> Handling + Send + Sync>,
}

impl Route {
    /// Something that is read.
    pub(crate) fn get<R, F>(path: &'static str, id: &'static str, handle: fn(Ask) -> F) -> Self
    where
        R: Respond + 'static,
        F: Future<Output = Result<R, Refusal>> + Send + 'static,
    {
        Self::new(Method::GET, path, id, R::kinds(), respond(handle))
    }

    /// Something that is done, and needs no more to be said.
    pub(crate) fn post<R, F>(path: &'static str, id: &'static str, handle: fn(Ask) -> F) -> Self
    where
        R: Respond + 'static,
        F: Future<Output = Result<R, Refusal>> + Send + 'static,
    {
        Self::new(Method::POST, path, id, R::kinds(), respond(handle))
    }

    /// Something that is taken away.
    pub(crate) fn delete<R, F>(path: &'static str, id: &'static str, handle: fn(Ask) -> F) -> Self
    where
        R: Respond + 'static,
        F: Future<Output = Result<R, Refusal>> + Send + 'static,
    {
        Self::new(Method::DELETE, path, id, R::kinds(), respond(handle))
    }

    /// Something that is done as a body says.
    pub(crate) fn post_with<B, R, F>(
        path: &'static str,
        id: &'static str,
        handle: fn(Ask, B) -> F,
    ) -> Self
    where
        B: Described + DeserializeOwned + Send + 'static,
        R: Respond + 'static,
        F: Future<Output = Result<R, Refusal>> + Send + 'static,
    {
        let handle = move |mut ask: Ask| -> Handling {
            let body = ask.take_body::<B>();
            Box::pin(async move { Ok(handle(ask, body?).await?.response()) })
        };
        let mut route = Self::new(Method::POST, path, id, R::kinds(), Box::new(handle));
        route.body = Some(BodyKind::of::<B>());
        route
    }

    fn new(
        method: Method,
        path: &'static str,
        id: &'static str,
        answers: Vec<AnswerKind>,
        handle: Box<dyn Fn(Ask) -> Handling + Send + Sync>,
    ) -> Self {
        use RefusalStatus as Status;
        let mut refusals = BTreeSet::from([
            Status::Malformed,
            Status::SignedOut,
            Status::Forbidden,
            Status::WrongMethod,
            Status::TooMany,
            Status::Unavailable,
        ]);
        if method != Method::GET {
            refusals.extend([Status::TooLarge, Status::NotJson, Status::Unfit]);
        }
        if path.contains('{') {
            refusals.insert(Status::Unknown);
        }
        Self {
            method,
            path,
            id,
            summary: "",
            area: Area::Gateway,
            access: Access::Administrators,
            query: &[],
            headers: &[],
            body: None,
            max_body: MAX_BODY_BYTES,
            answers,
            refusals,
            patience: PATIENCE,
            events: Vec::new(),
            handle,
        }
    }

    /// What it is for.
    pub(crate) fn about(mut self, area: Area, summary: &'static str) -> Self {
        (self.area, self.summary) = (area, summary);
        self
    }

    /// Which headers mean something here, and what.
    pub(crate) fn headers(mut self, headers: &'static [(&'static str, &'static str)]) -> Self {
        self.headers = headers;
        self
    }

    /// Who else than administrators may use it.
    pub(crate) fn open_to(mut self, access: Access) -> Self {
        self.access = access;
        if access == Access::Anyone {
            self.max_body = MAX_OPEN_BYTES;
            self.refusals.remove(&RefusalStatus::SignedOut);
            if self.method == Method::GET {
                self.refusals.remove(&RefusalStatus::Forbidden);
            }
        }
        self
    }

    /// What may stand in the query.
    pub(crate) fn query(mut self, query: &'static [Parameter]) -> Self {
        self.query = query;
        self
    }

    /// How else it may be refused.
    pub(crate) fn may_refuse(mut self, statuses: &[RefusalStatus]) -> Self {
        self.refusals.extend(statuses);
        self
    }

    /// How large a body may be, and how long the answer may take.
    pub(crate) fn bounds(mut self, max_body: usize, patience: Duration) -> Self {
        (self.max_body, self.patience) = (max_body, patience);
        self
    }

    /// What its events tell.
    pub(crate) fn events(mut self, events: &[(&'static str, SchemaOf)]) -> Self {
        self.events = events.to_vec();
        self
    }

    /// Whether something is different after it.
    pub(crate) fn is_changing(&self) -> bool {
        self.method != Method::GET
    }

    /// Does it.
    pub(crate) fn handle(&self, ask: Ask) -> Handling {
        (self.handle)(ask)
    }

    /// The names in the path.
    pub(crate) fn path_names(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(placeholder)
    }

    /// What stands in a path in place of the names, if this is a path of the route.
    pub(crate) fn matches(&self, segments: &[String]) -> Option<Vec<String>> {
        let own: Vec<_> = self.path.split('/').collect();
        if own.len() != segments.len() {
            return None;
        }
        let mut found = Vec::new();
        for (own, segment) in own.iter().zip(segments) {
            match placeholder(own) {
                // Nothing has an empty name.
                Some(_) if segment.is_empty() => return None,
                Some(_) => found.push(segment.clone()),
                None if own == segment => {}
                None => return None,
            }
        }
        Some(found)
    }
}

impl BodyKind {
    fn of<B: Described>() -> Self {
        let check = SchemaCell::new(raw_json(&Shelf::whole::<B>()));
        let is_optional = check.check(&raw_json(&json!({}))) == Checked::Fits;
        Self {
            schema: B::schema,
            check,
            is_optional,
        }
    }

    /// Whether a body is what it should be.
    pub(crate) fn examine(&self, body: &RawJson) -> Result<(), Refusal> {
        match self.check.check(body) {
            Checked::Fits => Ok(()),
            Checked::Mismatch(mismatch) => {
                let hints = mismatch.problems().iter().map(ToString::to_string);
                Err(unfit("the body does not fit what is wanted here").hints(hints))
            }
            Checked::NotCheckable(error) => {
                Err(unfit("the body cannot be read").hint(error.to_string()))
            }
        }
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Route({} {})", self.method, self.path)
    }
}

fn placeholder(segment: &'static str) -> Option<&'static str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

fn respond<R, F>(handle: fn(Ask) -> F) -> Box<dyn Fn(Ask) -> Handling + Send + Sync>
where
    R: Respond + 'static,
    F: Future<Output = Result<R, Refusal>> + Send + 'static,
{
    Box::new(move |ask| {
        let empty = ask.check_no_body();
        Box::pin(async move {
            empty?;
            Ok(handle(ask).await?.response())
        })
    })
}
