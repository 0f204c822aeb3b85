//! Asks an API as browsers and programs do, and reads what it answers.

use std::sync::Arc;

use bytes::Bytes;
use cocode_admin::{Admin, AdminOptions, Desk, Who};
use cocode_wire::serve::PageBody;
use futures_util::StreamExt as _;
use http::{HeaderMap, Method, Request, StatusCode, header};
use serde_json::Value;

use crate::house::Scripted;

/// An API, its house and its desk.
pub(crate) struct Place {
    pub(crate) admin: Admin,
    pub(crate) house: Arc<Scripted>,
    pub(crate) desk: Desk,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::with(AdminOptions::default())
    }

    pub(crate) fn with(options: AdminOptions) -> Self {
        let (house, desk) = (Scripted::new(), Desk::new());
        let admin = Admin::new(house.clone(), desk.clone(), options);
        Self { admin, house, desk }
    }

    /// A request that nobody in particular makes.
    pub(crate) fn ask(&self, method: &Method, path: &str) -> Asking {
        Asking {
            admin: self.admin.clone(),
            who: Who::Anonymous,
            method: method.clone(),
            path: path.to_owned(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
        .with("host", "localhost:7777")
    }

    pub(crate) fn get(&self, path: &str) -> Asking {
        self.ask(&Method::GET, path)
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Asking {
        self.ask(&Method::POST, path).json(body)
    }

    /// Signs in by a fresh code, as a browser does.
    pub(crate) async fn sign_in(&self) -> Browser {
        let code = self.admin.new_code().unwrap();
        let body = serde_json::json!({ "code": code.code.expose() }).to_string();
        let answer = self.post("/api/v1/sign-in", &body).send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer.header("set-cookie").split(';').next().unwrap();
        Browser {
            cookie: cookie.to_owned(),
            csrf: answer.json()["csrf"].as_str().unwrap().to_owned(),
        }
    }
}

/// What a browser holds that has signed in.
#[derive(Clone, Debug)]
pub(crate) struct Browser {
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

/// A request that is being made.
#[derive(Clone)]
pub(crate) struct Asking {
    admin: Admin,
    who: Who,
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Asking {
    /// Made by an administrator with a token.
    pub(crate) fn admin(mut self) -> Self {
        self.who = bearer("root", true);
        self
    }

    /// Made by a client with a token.
    pub(crate) fn client(mut self) -> Self {
        self.who = bearer("ana", false);
        self
    }

    pub(crate) fn by(mut self, who: Who) -> Self {
        self.who = who;
        self
    }

    /// Made by a page of the dashboard.
    pub(crate) fn page(self, browser: &Browser) -> Self {
        self.with("cookie", &browser.cookie)
            .with("x-cocode-csrf", &browser.csrf)
            .with("sec-fetch-site", "same-origin")
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.insert(name, value.parse().unwrap());
        self
    }

    pub(crate) fn without(mut self, name: &'static str) -> Self {
        self.headers.remove(name);
        self
    }

    pub(crate) fn json(self, body: &str) -> Self {
        let mut asking = self.with("content-type", "application/json");
        asking.body = Bytes::copy_from_slice(body.as_bytes());
        asking
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// The head of the answer, and its body as it comes.
    pub(crate) async fn open(self) -> (StatusCode, HeaderMap, PageBody) {
        let mut request = Request::new(self.body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.path.parse().unwrap();
        *request.headers_mut() = self.headers;
        let response = self.admin.answer(request, self.who).await;
        let (head, body) = response.into_parts();
        (head.status, head.headers, body)
    }

    /// The whole answer.
    pub(crate) async fn send(self) -> Answer {
        let (status, headers, body) = self.open().await;
        let pieces: Vec<_> = body.into_stream().collect().await;
        let text = String::from_utf8(pieces.concat()).unwrap();
        Answer {
            status: status.as_u16(),
            headers,
            text,
        }
    }
}

fn bearer(name: &str, is_admin: bool) -> Who {
    Who::Bearer {
        name: name.into(),
        is_admin,
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn kind(&self) -> &str {
        self.header(header::CONTENT_TYPE.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.text);
        parsed.unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a refusal.
    pub(crate) fn code(&self) -> String {
        let problem = self.json();
        let code = problem["error"]["code"].as_str();
        code.unwrap_or_else(|| panic!("no refusal: {self:?}"))
            .to_owned()
    }
}

/// The events of a piece of text: their names and data.
pub(crate) fn events_in(text: &str) -> Vec<(String, Value)> {
    let mut events = Vec::new();
    for event in text.split_terminator("\n\n") {
        let field = |name: &str| {
            let lines = event.lines().filter_map(|line| line.strip_prefix(name));
            lines.collect::<Vec<_>>().join("\n")
        };
        let (name, data) = (field("event: "), field("data: "));
        if !name.is_empty() {
            events.push((name, serde_json::from_str(&data).unwrap()));
        }
    }
    events
}
