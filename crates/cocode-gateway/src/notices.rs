//! Notifications that belong to a subscription, and how they say so.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use cocode_wire::encode::{self, push_member};
use cocode_wire::members::{Members, never_mentions};
use cocode_wire::serve::Sink;
use cocode_wire::{RawJson, RpcError, code};
use serde::Deserialize;

use crate::downstream::updated_uri;
use crate::reply::Reply;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What a client wants to hear of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Filter {
    pub(crate) tools_list_changed: bool,
    pub(crate) prompts_list_changed: bool,
    pub(crate) resources_list_changed: bool,
    pub(crate) resource_subscriptions: Vec<String>,
}

/// Resources that one subscription may name.
const MAX_URIS: usize = 1024;
/// Notifications that are kept for a subscription until it is acknowledged.
const MAX_HELD: usize = 1024;

impl Filter {
    /// Reads the parameters of `subscriptions/listen`.
    pub(crate) fn read(params: Option<&RawJson>) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        struct Params {
            notifications: Filter,
        }
        let invalid = |what: String| RpcError::new(code::INVALID_PARAMS, what);
        let missing = || invalid("`notifications` is missing".into());
        let params = params.ok_or_else(missing)?;
        let Params { notifications } = params
            .decode()
            .map_err(|error| invalid(format!("`notifications`: {error}")))?;
        if notifications.resource_subscriptions.len() > MAX_URIS {
            let what = format!("at most {MAX_URIS} resources can be named");
            return Err(invalid(what));
        }
        Ok(notifications)
    }

    /// The filter, as it is acknowledged.
    pub(crate) fn to_json(&self) -> String {
        let mut filter = serde_json::Map::new();
        let flags = [
            ("toolsListChanged", self.tools_list_changed),
            ("promptsListChanged", self.prompts_list_changed),
            ("resourcesListChanged", self.resources_list_changed),
        ];
        for (name, _) in flags.into_iter().filter(|(_, on)| *on) {
            filter.insert(name.into(), true.into());
        }
        if !self.resource_subscriptions.is_empty() {
            let uris = self.resource_subscriptions.clone();
            filter.insert("resourceSubscriptions".into(), uris.into());
        }
        serde_json::Value::Object(filter).to_string()
    }

    fn wants(&self, method: &str, params: Option<&RawJson>) -> bool {
        match method {
            "notifications/tools/list_changed" => self.tools_list_changed,
            "notifications/prompts/list_changed" => self.prompts_list_changed,
            "notifications/resources/list_changed" => self.resources_list_changed,
            "notifications/resources/updated" => {
                let uri = updated_uri(params);
                uri.is_some_and(|uri| self.resource_subscriptions.contains(&uri))
            }
            _ => false,
        }
    }
}

/// A client that listens.
pub(crate) struct Subscription {
    id: RawJson,
    stream: Arc<dyn Sink>,
    stage: Mutex<Stage>,
}

enum Stage {
    /// Nothing may be told before the acknowledgment; this is to be told after it.
    Held(Vec<(String, Option<RawJson>)>),
    /// What is told.
    Agreed(Filter),
}

impl Subscription {
    /// From now on nothing is missed.
    pub(crate) fn begin(id: RawJson, stream: Arc<dyn Sink>) -> Arc<Self> {
        Arc::new(Self {
            id,
            stream,
            stage: Mutex::new(Stage::Held(Vec::new())),
        })
    }

    /// Acknowledges what is told from now on, and tells what of it came meanwhile.
    pub(crate) fn agree(&self, filter: Filter) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let params = format!(r#"{{"notifications":{}}}"#, filter.to_json());
        if let Ok(params) = RawJson::parse(params) {
            let method = "notifications/subscriptions/acknowledged";
            self.send(method, Some(&params));
        }
        if let Stage::Held(held) = &*stage {
            for (method, params) in held {
                if filter.wants(method, params.as_ref()) {
                    self.send(method, params.as_ref());
                }
            }
        }
        *stage = Stage::Agreed(filter);
    }

    /// Tells what its client wants to hear, and nothing else.
    pub(crate) fn tell(&self, method: &str, params: Option<&RawJson>) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *stage {
            Stage::Held(held) if held.len() < MAX_HELD => {
                held.push((method.to_owned(), params.cloned()));
            }
            Stage::Held(_) => tracing::warn!(method, "a subscriber missed a notification"),
            Stage::Agreed(filter) if filter.wants(method, params) => self.send(method, params),
            Stage::Agreed(_) => {}
        }
    }

    /// What a client is answered whose subscription ends in order. The protocol wants two things said,
    /// in two places: that it is taken back, and that this is no failure.
    pub(crate) fn end(&self) -> Reply {
        if let Ok(params) = RawJson::parse(format!(r#"{{"requestId":{}}}"#, self.id)) {
            self.send("notifications/cancelled", Some(&params));
        }
        let result = format!(
            r#"{{"resultType":"complete","_meta":{{"{SUBSCRIPTION}":{}}}}}"#,
            self.id
        );
        match RawJson::parse(result) {
            Ok(result) => Reply::Result(result),
            Err(error) => RpcError::new(code::INTERNAL_ERROR, error.to_string()).into(),
        }
    }

    fn send(&self, method: &str, params: Option<&RawJson>) {
        let params = of_subscription(params, Some(&self.id));
        let message = encode::notification(method, Some(&params));
        if !self.stream.send(Bytes::from(message)) {
            tracing::debug!(method, "a subscriber did not take a notification");
        }
    }
}

/// Parameters that name this subscription and no other; none at all for a client that has none.
pub(crate) fn of_subscription(params: Option<&RawJson>, id: Option<&RawJson>) -> Vec<u8> {
    let members = params.and_then(|params| params.decode::<Members<'_>>().ok());
    let members = members.unwrap_or_default();
    let meta = members
        .get("_meta")
        .and_then(Members::of)
        .unwrap_or_default();
    let mut inner = Vec::new();
    if let Some(id) = id {
        push_member(&mut inner, SUBSCRIPTION, id.as_str());
    }
    for (key, value) in meta.0.iter().filter(|(key, _)| key != SUBSCRIPTION) {
        if !inner.is_empty() {
            inner.push(b',');
        }
        push_member(&mut inner, key, value.get());
    }
    let mut text = b"{".to_vec();
    if !inner.is_empty() {
        text.extend_from_slice(b"\"_meta\":{");
        text.extend_from_slice(&inner);
        text.push(b'}');
    }
    for (key, value) in members.0.iter().filter(|(key, _)| key != "_meta") {
        if text.len() > 1 {
            text.push(b',');
        }
        push_member(&mut text, key, value.get());
    }
    text.push(b'}');
    text
}

/// The parameters for a client that has no subscriptions, but a session.
pub(crate) fn for_session(params: Option<&RawJson>) -> Option<RawJson> {
    let params = params?;
    if never_mentions(params, SUBSCRIPTION) {
        return Some(params.clone());
    }
    RawJson::parse(of_subscription(Some(params), None)).ok()
}

#[cfg(test)]
mod tests {
    use cocode_wire::RawJson;

    use super::of_subscription;

    #[track_caller]
    fn check(params: Option<&str>, id: Option<&str>, expected: &str) {
        let json = |text: &str| RawJson::parse(text.to_owned()).unwrap();
        let text = of_subscription(params.map(json).as_ref(), id.map(json).as_ref());
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn a_notification_names_the_subscription_of_its_own_client() {
        let theirs = r#"{"uri":"x","_meta":{"io.modelcontextprotocol/subscriptionId":7,"a":1}}"#;
        let ours = r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"s","a":1},"uri":"x"}"#;
        check(Some(theirs), Some("\"s\""), ours);
        check(Some(theirs), None, r#"{"_meta":{"a":1},"uri":"x"}"#);
        check(None, None, "{}");
    }
}
