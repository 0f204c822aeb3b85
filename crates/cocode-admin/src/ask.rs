//! A request as a handler sees it: who makes it, what is in its address, what it brings.

use std::sync::Arc;

use bytes::Bytes;
use cocode_wire::RawJson;
use http::{HeaderMap, Method, header};
use serde::de::DeserializeOwned;

use crate::admin::Inner;
use crate::guard::Visitor;
use crate::house::{Caller, House};
use crate::parameter::{Parameter, Query};
use crate::refusal::{Refusal, RefusalStatus};
use crate::reply::{EVENTS, JSON};
use crate::route::Route;

/// A request that was let in.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) inner: Arc<Inner>,
    /// Who makes it, if they have shown it.
    pub(crate) visitor: Option<Visitor>,
    pub(crate) headers: HeaderMap,
    /// What stands in the path in place of its names, in their order.
    names: Vec<String>,
    query: Query,
    /// The body, if it is of use; it is JSON.
    body: Option<RawJson>,
    /// Whether it fits what the route wants.
    checked: Result<(), Refusal>,
}

impl Ask {
    pub(crate) fn read(
        inner: Arc<Inner>,
        visitor: Option<Visitor>,
        route: &Route,
        names: Vec<String>,
        request: http::Request<Bytes>,
    ) -> Result<Self, Refusal> {
        let (head, body) = request.into_parts();
        let body = if route.is_changing() {
            check_content_type(&head.headers, &body)?;
            read_body(&body, route.max_body)?
        } else {
            // What comes with a question has no meaning.
            None
        };
        let query = Query::parse(head.uri.query(), route.query)?;
        let checked = match (&route.body, &body) {
            (Some(kind), Some(body)) => kind.examine(body),
            (Some(kind), None) if kind.is_optional => Ok(()),
            (Some(_), None) => Err(unfit("a body is wanted here, and there is none")),
            (None, _) => Ok(()),
        };
        Ok(Self {
            inner,
            visitor,
            headers: head.headers,
            names,
            query,
            body,
            checked,
        })
    }

    /// The one who asks, if they have shown who they are. Only routes for everybody are reached otherwise.
    pub(crate) fn caller(&self) -> Result<&Caller, Refusal> {
        let visitor = self.visitor.as_ref();
        visitor
            .map(|visitor| &visitor.caller)
            .ok_or_else(crate::guard::signed_out)
    }

    pub(crate) fn house(&self) -> &dyn House {
        &*self.inner.house
    }

    /// The first name in the path.
    pub(crate) fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// The number that a parameter of the query says.
    pub(crate) fn count(&self, parameter: &Parameter) -> usize {
        self.query.count(parameter)
    }

    /// The text that a parameter of the query says.
    pub(crate) fn text(&self, parameter: &Parameter) -> &str {
        self.query.text(parameter)
    }

    /// Whether a parameter of the query says so.
    pub(crate) fn is_set(&self, parameter: &Parameter) -> bool {
        self.query.is_set(parameter)
    }

    /// Whether the answer is wanted as events.
    pub(crate) fn wants_events(&self) -> bool {
        let accepted = self.headers.get_all(header::ACCEPT).iter();
        accepted
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|kind| essence(kind).eq_ignore_ascii_case(EVENTS))
    }

    /// The body as what the route wants.
    pub(crate) fn take_body<B: DeserializeOwned>(&mut self) -> Result<B, Refusal> {
        std::mem::replace(&mut self.checked, Ok(()))?;
        let body = self.body.take();
        let text = body.as_ref().map_or("{}", RawJson::as_str);
        serde_json::from_str(text).map_err(|error| {
            unfit("the body does not fit what is wanted here").hint(error.to_string())
        })
    }

    /// Where no body is wanted, an empty object is none.
    pub(crate) fn check_no_body(&self) -> Result<(), Refusal> {
        let is_empty = |body: &RawJson| {
            body.decode::<serde_json::Map<String, serde_json::Value>>()
                .is_ok_and(|members| members.is_empty())
        };
        if self.body.as_ref().is_none_or(is_empty) {
            return Ok(());
        }
        Err(unfit("no body is wanted here").hint("leave it out, or send {}"))
    }
}

/// A body that does not fit.
pub(crate) fn unfit(message: &str) -> Refusal {
    Refusal::new(RefusalStatus::Unfit, "body-unfit", message)
}

/// The segments of a path, decoded. The first is empty.
pub(crate) fn segments(path: &str) -> Result<Vec<String>, Refusal> {
    let decoded = path.split('/').map(decoded);
    decoded.collect::<Option<_>>().ok_or_else(|| {
        Refusal::new(
            RefusalStatus::Malformed,
            "path-unreadable",
            "the path of the address is not percent-encoded UTF-8",
        )
    })
}

fn decoded(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// What comes with a changing request is JSON: this is also what keeps out the forms of other pages, which
/// cannot send it.
fn check_content_type(headers: &HeaderMap, body: &Bytes) -> Result<(), Refusal> {
    let mut kinds = headers.get_all(header::CONTENT_TYPE).iter();
    let is_fine = match (kinds.next(), kinds.next()) {
        (None, _) => body.is_empty(),
        (Some(kind), None) => kind
            .to_str()
            .is_ok_and(|kind| essence(kind).eq_ignore_ascii_case(JSON)),
        (Some(_), Some(_)) => false,
    };
    if is_fine {
        return Ok(());
    }
    Err(Refusal::new(
        RefusalStatus::NotJson,
        "not-json",
        "the body has to come as `Content-Type: application/json`",
    ))
}

fn read_body(body: &Bytes, most: usize) -> Result<Option<RawJson>, Refusal> {
    if body.len() > most {
        return Err(too_large(most));
    }
    if body.is_empty() {
        return Ok(None);
    }
    RawJson::parse(body.clone()).map(Some).map_err(|error| {
        Refusal::new(
            RefusalStatus::Malformed,
            "body-malformed",
            format!("the body is not JSON: {error}"),
        )
    })
}

/// A body that is more than is taken.
pub(crate) fn too_large(most: usize) -> Refusal {
    Refusal::new(
        RefusalStatus::TooLarge,
        "body-too-large",
        format!("the body is too large: at most {most} bytes are taken here"),
    )
}

/// A media type without its parameters.
fn essence(kind: &str) -> &str {
    kind.split(';').next().unwrap_or_default().trim()
}

/// Whether a request is for reading only.
pub(crate) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

#[cfg(test)]
mod tests {
    use super::segments;

    #[test]
    fn paths_are_decoded_segment_by_segment() {
        let of = |path| segments(path).unwrap();
        assert_eq!(of("/"), ["", ""]);
        assert_eq!(of("/a%2Fb/%C3%A9+%25"), ["", "a/b", "é+%"]);
        for bad in ["/%", "/%4", "/%zz", "/%ff", "/%+1"] {
            assert_eq!(segments(bad).unwrap_err().code, "path-unreadable", "{bad}");
        }
    }
}
