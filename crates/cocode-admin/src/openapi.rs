//! The OpenAPI document, made from the table of routes.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::parameter::Parameter;
use crate::refusal::{Problem, RefusalStatus};
use crate::reply::{AnswerKind, EVENTS, JSON};
use crate::route::{Access, Area, Route};
use crate::routes;
use crate::schema::{Described as _, Shelf};
use crate::sse::json_text;

const ABOUT: &str = "Looks after a gateway of MCP servers: what it serves, how its servers are, who \
    uses them, and what waits for a person.\n\n\
    Programs send `Authorization: Bearer` with the token of an administrator. Browsers exchange a \
    one-time code for a cookie (`POST /api/v1/sign-in`); what they change needs the header \
    `X-Cocode-CSRF` with the value that `GET /api/v1/session` gives, and has to come from a page of the \
    same origin.\n\n\
    Bodies are JSON of at most 1 MiB, for calls 16 MiB. Members and parameters that are not described \
    here are refused, with status 422 in bodies and 400 in queries. Where no body is described, none or \
    `{}` is sent. Answers may have more members than are described here. Times are in UTC, as \
    `2026-07-28T12:00:00.000Z`.";

/// The document as text.
pub(crate) fn text(version: &str, cookie: &str) -> Bytes {
    json_text(&document(version, cookie)).into()
}

/// The document.
fn document(version: &str, cookie: &str) -> Value {
    let mut shelf = Shelf::default();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in routes::all() {
        let method = route.method.as_str().to_ascii_lowercase();
        let operation = operation(route, &mut shelf);
        paths
            .entry(route.path)
            .or_default()
            .insert(method, operation);
    }
    let problem = Problem::schema(&mut shelf);
    let refusals: Map<_, _> = RefusalStatus::ALL
        .iter()
        .map(|status| (status.name().to_owned(), refusal(*status, &problem)))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Management API of a cocode gateway",
            "version": version,
            "description": ABOUT,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "The gateway that serves this document." }],
        "tags": Area::ALL.iter().map(|area| area.tag()).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "schemas": shelf.into_components(),
            "responses": refusals,
            "securitySchemes": {
                "bearer": {
                    "type": "http", "scheme": "bearer",
                    "description": "The token of an administrator.",
                },
                "cookie": {
                    "type": "apiKey", "in": "cookie", "name": cookie,
                    "description": "Given for a one-time code. Its name ends with the port of the \
                        gateway, and begins with `__Host-` where browsers come by https. What is \
                        changed needs the header `X-Cocode-CSRF` besides.",
                },
            },
        },
    })
}

fn operation(route: &Route, shelf: &mut Shelf) -> Value {
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "tags": [route.area.name()],
        "security": security(route.access),
        "responses": responses(route, shelf),
    });
    let put = |operation: &mut Value, key: &str, value: Value| {
        if let Value::Object(members) = operation {
            members.insert(key.to_owned(), value);
        }
    };
    let names = route.path_names().map(|name| {
        json!({
            "name": name, "in": "path", "required": true,
            "description": format!("The {name}, percent-encoded."),
            "schema": { "type": "string", "minLength": 1 },
        })
    });
    let query = route.query.iter().map(Parameter::description);
    let headers = route.headers.iter().map(|(name, about)| {
        json!({
            "name": name, "in": "header", "required": false, "description": about,
            "schema": { "type": "string" },
        })
    });
    let parameters: Vec<_> = names.chain(query).chain(headers).collect();
    if !parameters.is_empty() {
        put(&mut operation, "parameters", parameters.into());
    }
    if let Some(body) = &route.body {
        let described = json!({
            "required": !body.is_optional,
            "content": { JSON: { "schema": (body.schema)(shelf) } },
        });
        put(&mut operation, "requestBody", described);
    }
    operation
}

fn responses(route: &Route, shelf: &mut Shelf) -> Value {
    let mut responses = Map::new();
    for status in &route.refusals {
        let reference = format!("#/components/responses/{}", status.name());
        let reference = json!({ "$ref": reference });
        responses.insert(status.code().as_str().to_owned(), reference);
    }
    // An answer of its own counts more than the way in which all routes refuse.
    for answer in &route.answers {
        let described = described(route, answer, shelf);
        responses.insert(answer.status.as_str().to_owned(), described);
    }
    responses.into()
}

fn described(route: &Route, answer: &AnswerKind, shelf: &mut Shelf) -> Value {
    let mut described = json!({ "description": answer.about });
    let mut content = Map::new();
    for (kind, schema) in &answer.content {
        let schema = if *kind == EVENTS {
            event_schema(route, shelf)
        } else {
            schema(shelf)
        };
        content.insert((*kind).to_owned(), json!({ "schema": schema }));
    }
    if let (Value::Object(members), false) = (&mut described, content.is_empty()) {
        members.insert("content".to_owned(), content.into());
    }
    described
}

/// The schema of each event of a stream.
fn event_schema(route: &Route, shelf: &mut Shelf) -> Value {
    let events: Vec<_> = route
        .events
        .iter()
        .map(|(name, schema)| {
            let data = json!({
                "type": "string", "contentMediaType": JSON, "contentSchema": schema(shelf),
            });
            json!({ "properties": { "event": { "const": name }, "data": data } })
        })
        .collect();
    json!({
        "type": "object",
        "description": "One event of the stream.",
        "required": ["event", "data"],
        "properties": { "id": { "type": "string" } },
        "oneOf": events,
    })
}

fn refusal(status: RefusalStatus, problem: &Value) -> Value {
    let mut described = json!({
        "description": status.meaning(),
        "content": { JSON: { "schema": problem } },
    });
    if let (Value::Object(members), Some((name, about))) = (&mut described, status.header()) {
        let header = json!({ "description": about, "schema": { "type": "string" } });
        members.insert("headers".to_owned(), json!({ name: header }));
    }
    described
}

fn security(access: Access) -> Value {
    match access {
        Access::Anyone => json!([]),
        Access::Watchers => json!([{}, { "bearer": [] }, { "cookie": [] }]),
        Access::Oneself | Access::Administrators => json!([{ "bearer": [] }, { "cookie": [] }]),
    }
}

impl Area {
    const ALL: &'static [Self] = &[
        Self::Session,
        Self::Gateway,
        Self::Servers,
        Self::Login,
        Self::Tools,
        Self::Calls,
        Self::Questions,
        Self::Access,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Gateway => "gateway",
            Self::Servers => "servers",
            Self::Login => "login",
            Self::Tools => "tools",
            Self::Calls => "calls",
            Self::Questions => "questions",
            Self::Access => "access",
        }
    }

    fn tag(self) -> Value {
        let about = match self {
            Self::Session => "Signing in and out.",
            Self::Gateway => "The gateway as a whole.",
            Self::Servers => "Its servers.",
            Self::Login => "Signing in at servers.",
            Self::Tools => "What servers offer, and using it.",
            Self::Calls => "What clients have servers do.",
            Self::Questions => "What waits for a person.",
            Self::Access => "Who is let in.",
        };
        json!({ "name": self.name(), "description": about })
    }
}
