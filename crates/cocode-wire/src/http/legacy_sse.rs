//! The HTTP+SSE link of revision 2024-11-05: one event stream in, POSTs out.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use reqwest::Response;
use tokio::task::JoinSet;
use url::Url;

use super::client::{chain, debug_target, same_origin, shown};
use super::events::{EventParser, EventTooLarge};
use super::posts::Posts;
use super::response::{Body, body_kind, refuse, transport_error};
use super::sender::Sender;
use super::streamable::HttpTarget;
use crate::deliver::deliver_text;
use crate::error::{Closed, LinkError};
use crate::inbox::{Inbox, Malformed, Origin};
use crate::limits::GOODBYE_TIMEOUT;
use crate::link::OpenError;

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(crate) struct LegacySseLink {
    sender: Sender,
    target: HttpTarget,
    /// Where the server wants messages to be posted.
    endpoint: Url,
    reader: Mutex<JoinSet<()>>,
    posts: Posts,
}

impl LegacySseLink {
    /// Opens the stream and waits for its first event, which names the endpoint.
    pub(crate) async fn open(target: HttpTarget, inbox: Arc<dyn Inbox>) -> Result<Self, OpenError> {
        let sender = Sender::new(&target.client, &target.url, target.credentials.clone())
            .map_err(OpenError::HttpSetup)?;
        let mut headers = target.headers.clone();
        headers.insert(header::ACCEPT, EVENTS);
        let sent = sender.send(Method::GET, &target.url, headers, None);
        let response = sent.await?;
        let mut response = refuse(response, false).await?;
        if let Body::Json | Body::None | Body::Other(_) = body_kind(&response) {
            let content_type =
                super::response::text(response.headers(), header::CONTENT_TYPE.as_str());
            let content_type = content_type.unwrap_or_else(|| "no content type".into());
            return Err(LinkError::ContentType {
                content_type,
                excerpt: String::new(),
            }
            .into());
        }
        let max_event = target.max_frame;
        let mut parser = EventParser::new(max_event);
        let endpoint = first_endpoint(&mut response, &mut parser, &target.url).await?;
        let mut reader = JoinSet::new();
        reader.spawn(async move {
            let reason = read_on(response, parser, &*inbox, max_event).await;
            inbox.closed(reason);
        });
        Ok(Self {
            sender,
            target,
            endpoint,
            reader: Mutex::new(reader),
            posts: Posts::new(),
        })
    }

    /// Posts one message; its answer, if any, comes on the stream.
    pub(crate) async fn send(&self, body: Bytes) -> Result<(), LinkError> {
        let sent = self
            .sender
            .send(Method::POST, &self.endpoint, self.headers(), Some(body));
        refuse(sent.await?, false).await.map(drop)
    }

    /// Posts a message without anybody waiting for it, unless too many are under way. Needs no
    /// runtime around it.
    pub(crate) fn post(&self, body: Bytes) -> bool {
        let (sender, endpoint, headers) =
            (self.sender.clone(), self.endpoint.clone(), self.headers());
        self.posts.start(async move {
            let sent = sender.send(Method::POST, &endpoint, headers, Some(body));
            match tokio::time::timeout(GOODBYE_TIMEOUT, sent).await {
                Ok(Ok(_answer)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "message not taken"),
                Err(_elapsed) => tracing::debug!("message not taken in time"),
            }
        })
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = self.target.headers.clone();
        headers.insert(header::CONTENT_TYPE, JSON);
        headers
    }

    pub(crate) async fn close(&self) {
        self.posts.finish().await;
        self.reader
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .abort_all();
    }
}

impl std::fmt::Debug for LegacySseLink {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The endpoint names the session.
        let target = &self.target;
        debug_target(formatter, "LegacySseLink", &target.url, &target.headers)
    }
}

async fn first_endpoint(
    response: &mut Response,
    parser: &mut EventParser,
    base: &Url,
) -> Result<Url, LinkError> {
    let no_endpoint = |detail: String| LinkError::NoAnswer { detail };
    loop {
        match parser.next() {
            Ok(Some(event)) if event.name == "endpoint" => {
                let text = String::from_utf8_lossy(&event.data).into_owned();
                let endpoint = base.join(text.trim());
                let endpoint = endpoint.map_err(|error| no_endpoint(error.to_string()))?;
                if !same_origin(base, &endpoint) {
                    // Messages and credentials must not go where the URL did not point.
                    let location = shown(&endpoint);
                    return Err(LinkError::Redirect {
                        status: 200,
                        location,
                    });
                }
                return Ok(endpoint);
            }
            Ok(Some(event)) => {
                let text = format!("the first event is `{}`, not `endpoint`", event.name);
                return Err(no_endpoint(text));
            }
            Ok(None) => {}
            Err(EventTooLarge { .. }) => {
                return Err(no_endpoint("the first event is too large".into()));
            }
        }
        match response.chunk().await {
            Ok(Some(chunk)) => parser.feed(&chunk),
            Ok(None) => return Err(no_endpoint("the stream named no endpoint".into())),
            Err(error) => return Err(transport_error(base, error)),
        }
    }
}

async fn read_on(
    mut response: Response,
    mut parser: EventParser,
    inbox: &dyn Inbox,
    max_event: usize,
) -> Closed {
    loop {
        loop {
            match parser.next() {
                Ok(Some(event)) if matches!(event.name.as_str(), "" | "message") => {
                    deliver_text(inbox, &event.data, Origin::Shared);
                }
                Ok(Some(_other)) => {}
                Ok(None) => break,
                Err(EventTooLarge { id }) => inbox.malformed(Malformed::too_large(max_event, id)),
            }
        }
        match response.chunk().await {
            Ok(Some(chunk)) => parser.feed(&chunk),
            Ok(None) => return Closed::ByPeer,
            Err(error) => return Closed::Protocol(chain(&error.without_url())),
        }
    }
}
