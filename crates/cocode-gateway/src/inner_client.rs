//! A client inside of the gateway: whoever looks after it calls tools as everybody else does, through
//! the same gate and under the same eyes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use cocode_core::{Revision, ServerName};
use cocode_wire::encode::{self, push_member};
use cocode_wire::members::Members;
use cocode_wire::serve::{Asked, Conversation, Endpoint as _, Sink};
use cocode_wire::{Frame, RawJson, RpcError, code};
use http::HeaderMap;

use crate::oversight::Overseer;
use crate::view::View;

/// Hears what is told about a request before it is answered: the method of a notification, such as
/// `notifications/progress` or `notifications/message`, and its parameters. Must return at once.
pub type Hearing = Arc<dyn Fn(&str, Option<&RawJson>) + Send + Sync>;

/// A client of a view that comes by no connection. It cannot be asked anything itself, so that what
/// servers and rules want to know goes to the inbox of the view.
pub struct InnerClient {
    view: View,
    name: String,
    /// Who watches over what it has done, if it is not who watches over the other clients of the view.
    overseer: Option<Arc<dyn Overseer>>,
    next: AtomicU64,
    /// What it talks to: single servers, and all of them as one.
    places: Mutex<BTreeMap<Option<ServerName>, Arc<dyn Conversation>>>,
}

impl View {
    /// A client of this name (which is what servers and overseers are told) that makes requests from
    /// inside of the gateway.
    pub fn caller(&self, name: impl Into<String>) -> InnerClient {
        InnerClient {
            view: self.clone(),
            name: name.into(),
            overseer: None,
            next: AtomicU64::new(1),
            places: Mutex::default(),
        }
    }
}

impl InnerClient {
    /// The same client, watched over by somebody else: it does what it does for somebody whose view
    /// this is not.
    #[must_use]
    pub fn watched_by(mut self, overseer: Arc<dyn Overseer>) -> Self {
        self.overseer = Some(overseer);
        self
    }

    /// Makes a request: to one server, where everything is named as it names it, or to all of them as
    /// one. Who wants to hear of progress and log messages says by whom. Dropping the future cancels
    /// the request.
    pub async fn request(
        &self,
        method: &str,
        params: Option<&RawJson>,
        server: Option<&ServerName>,
        hearing: Option<Hearing>,
    ) -> Result<RawJson, RpcError> {
        let place = self.place(server)?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let params = self.with_meta(params, id, hearing.is_some())?;
        let text = encode::request(id, method, Some(&params));
        let asked = Asked {
            frame: Frame::parse(Bytes::from(text)).map_err(|error| internal(&error))?,
            headers: HeaderMap::new(),
            stream: Arc::new(Ear(hearing)),
        };
        let answer = place.request(asked).await;
        let answer = Frame::parse(answer.body).map_err(|error| internal(&error))?;
        match (answer.result(), answer.error()) {
            (Some(result), _) => Ok(result),
            (None, Some(error)) => Err(error),
            (None, None) => Err(internal(&"the answer is empty")),
        }
    }

    /// What this client talks to, as if it came by a connection that stays.
    fn place(&self, server: Option<&ServerName>) -> Result<Arc<dyn Conversation>, RpcError> {
        let endpoint = match server {
            None => self.view.all_place(),
            Some(name) => self.view.place(name).ok_or_else(|| {
                let what = format!("there is no server `{name}`");
                RpcError::new(code::INVALID_PARAMS, what)
            })?,
        };
        let names = self.view.names();
        let mut places = self.lock();
        let is_gone = |name: &Option<ServerName>| {
            let name = name.as_ref();
            name.is_some_and(|name| !names.contains(name))
        };
        let gone: Vec<_> = places.extract_if(.., |name, _| is_gone(name)).collect();
        let key = server.cloned();
        let place = places.entry(key).or_insert_with(|| match &self.overseer {
            Some(overseer) => endpoint.watched_by(Arc::clone(overseer)).converse(deaf()),
            None => endpoint.converse(deaf()),
        });
        let place = Arc::clone(place);
        drop(places);
        for (_, place) in gone {
            place.ended();
        }
        Ok(place)
    }

    /// Parameters that say who asks.
    fn with_meta(
        &self,
        params: Option<&RawJson>,
        token: u64,
        hears: bool,
    ) -> Result<Vec<u8>, RpcError> {
        let odd = |error: serde_json::Error| {
            let what = format!("the parameters are no JSON object: {error}");
            RpcError::new(code::INVALID_PARAMS, what)
        };
        let members = params.map(RawJson::decode::<Members<'_>>).transpose();
        let members = members.map_err(odd)?.unwrap_or_default();
        let mut meta = serde_json::json!({
            "io.modelcontextprotocol/protocolVersion": Revision::LATEST_MODERN.as_str(),
            "io.modelcontextprotocol/clientInfo": {
                "name": self.name, "version": env!("CARGO_PKG_VERSION"),
            },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        if hears && let Some(meta) = meta.as_object_mut() {
            meta.insert("progressToken".into(), token.into());
            meta.insert("io.modelcontextprotocol/logLevel".into(), "debug".into());
        }
        let mut text = b"{".to_vec();
        push_member(&mut text, "_meta", &meta.to_string());
        for (key, value) in members.0.iter().filter(|(key, _)| key != "_meta") {
            text.push(b',');
            push_member(&mut text, key, value.get());
        }
        text.push(b'}');
        Ok(text)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Option<ServerName>, Arc<dyn Conversation>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InnerClient {
    fn drop(&mut self) {
        let places = std::mem::take(&mut *self.lock());
        for place in places.into_values() {
            place.ended();
        }
    }
}

impl std::fmt::Debug for InnerClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("InnerClient")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Takes what is told, and passes it on to whoever wants to hear it.
struct Ear(Option<Hearing>);

impl Sink for Ear {
    fn send(&self, message: Bytes) -> bool {
        if let Some(hearing) = &self.0
            && let Ok(frame) = Frame::parse(message)
        {
            hearing(frame.method(), frame.params().as_ref());
        }
        true
    }
}

/// For what is told outside of requests.
fn deaf() -> Arc<dyn Sink> {
    Arc::new(Ear(None))
}

fn internal(what: &impl std::fmt::Display) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, what.to_string())
}
