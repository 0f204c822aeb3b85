//! Requests that are passed on for somebody else: raw in, raw out, and everything that belongs to
//! them on the way.

use std::sync::Arc;

use cocode_wire::{Frame, LinkError, RawJson, RpcError, code, encode};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::clock::Deadlines;
use crate::connection::Begun;
use crate::error::RequestError;
use crate::features::name_in;
use crate::handler::{Answer, Notification};
use crate::mux::Reports;
use crate::session::{Call, Session};
use cocode_core::Era;
use cocode_wire::encode::push_member;
use cocode_wire::members::{Members, never_mentions};

/// Hears what belongs to a request that is passed on. Methods without a future are called in the
/// order of arrival and must return at once.
pub trait Witness: Send + Sync + 'static {
    /// A report of progress, whose `progressToken` is of this session and means nothing outside.
    fn progress(&self, params: &RawJson);

    /// Something that came on the request's own stream, where it has one.
    fn notified(&self, notification: &Notification);

    /// A question that came on the request's own stream, where it has one.
    fn asked(&self, method: &str, params: Option<RawJson>)
    -> Answer<'_, Result<RawJson, RpcError>>;

    /// The request is sent again after this error: its progress begins anew.
    fn repeats(&self, error: &RequestError);
}

/// A request of somebody else.
#[derive(Clone)]
pub struct Relayed<'a> {
    /// What is asked.
    pub method: &'a str,
    /// Its parameters as they came. What their `_meta` says for another connection than this one
    /// is replaced.
    pub params: Option<&'a RawJson>,
    /// On whose behalf.
    pub behalf: &'a Behalf,
    /// Whether the one who asks wants to hear of progress.
    pub wants_progress: bool,
    /// How long it may take.
    pub deadlines: Deadlines,
    /// Hears what belongs to it.
    pub witness: Arc<dyn Witness>,
}

/// Somebody on whose behalf requests are made: what a server of the stateless era is told with each
/// of them.
#[derive(Clone, Debug, Default)]
pub struct Behalf {
    /// The name and version of the client, as it gave them.
    pub client: Option<RawJson>,
    /// What the client can do, as a JSON object.
    pub capabilities: Option<RawJson>,
    /// The least severe log messages that are wanted.
    pub log_level: Option<String>,
}

/// The members of `_meta` that say who asks, and how.
const OF_THE_CONNECTION: [&str; 4] = [
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
];

impl Session {
    /// Passes a request on, and gives the whole answer as it came, be it a result or an error. The
    /// server's session is renewed if it is gone. Dropping the future cancels the request.
    pub async fn relay(&self, relayed: &Relayed<'_>) -> Result<Frame, RequestError> {
        let begun = Instant::now();
        let seen = self.renewals();
        let mut mirrored = None;
        let answer = self.relay_once(relayed, relayed.deadlines, &mut mirrored);
        let answer = answer.await;
        let Some(hindrance) = self.hindrance(&answer) else {
            return answer;
        };
        // Rare, and kept out of the size of every other request.
        Box::pin(async move {
            match hindrance {
                Hindrance::SessionGone => {
                    let renewed = self.renew_for(seen, relayed.method, relayed.deadlines);
                    renewed.await?;
                }
                Hindrance::HeadersWanted => {
                    self.tools().await?;
                    let name = name_in(relayed.method, relayed.params);
                    let headers = self.mirrored(relayed.method, name.as_deref(), relayed.params);
                    if headers == mirrored.map_or_else(HeaderMap::new, |sent| *sent) {
                        return answer;
                    }
                }
            }
            let deadlines = relayed.deadlines.after(begun.elapsed());
            self.relay_once(relayed, deadlines, &mut None).await
        })
        .await
    }

    /// The same, once. `mirrored` becomes what was sent as headers of its arguments, if anything was.
    async fn relay_once(
        &self,
        relayed: &Relayed<'_>,
        deadlines: Deadlines,
        mirrored: &mut Option<Box<HeaderMap>>,
    ) -> Result<Frame, RequestError> {
        let (_place, deadlines) = self.place(relayed.method, deadlines).await?;
        let mut begun = self.begin_relay(relayed, deadlines, mirrored)?;
        begun.answer(relayed.method).await
    }

    fn begin_relay(
        &self,
        relayed: &Relayed<'_>,
        deadlines: Deadlines,
        mirrored: &mut Option<Box<HeaderMap>>,
    ) -> Result<Begun<'_>, RequestError> {
        let method = relayed.method;
        let modern = self.server().era() == Era::Modern;
        let cleaned = cleaned(relayed.params, modern);
        let params = cleaned.as_ref().or(relayed.params);
        let meta = if modern {
            self.meta_of(relayed.behalf)
        } else {
            Vec::new()
        };
        let name = modern.then(|| name_in(method, params)).flatten();
        let headers = self.mirrored(method, name.as_deref(), params);
        *mirrored = (!headers.is_empty()).then(|| Box::new(headers.clone()));
        self.begin(
            &Call {
                method,
                params: params.map(RawJson::as_bytes),
                name: name.as_deref(),
                headers,
                deadlines,
                reports: Reports::Relay {
                    witness: Arc::clone(&relayed.witness),
                    progress: relayed.wants_progress,
                },
                meta: Some(&meta),
            },
            deadlines,
        )
    }

    /// What kept a request from being answered as it should, if another attempt may help.
    fn hindrance(&self, answer: &Result<Frame, RequestError>) -> Option<Hindrance> {
        match answer {
            Err(RequestError::Link {
                error: LinkError::SessionGone,
                ..
            }) => Some(Hindrance::SessionGone),
            other if is_header_mismatch(other) && self.mirrors_arguments() => {
                Some(Hindrance::HeadersWanted)
            }
            _ => None,
        }
    }

    /// The headers for arguments that travel as headers too.
    fn mirrored(&self, method: &str, name: Option<&str>, params: Option<&RawJson>) -> HeaderMap {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow, default)]
            arguments: Option<&'a RawValue>,
        }
        let (Some(name), Some(params)) = (name, params) else {
            return HeaderMap::new();
        };
        if method != "tools/call" || !self.mirrors_arguments() {
            return HeaderMap::new();
        }
        let arguments = params.decode::<Params<'_>>().ok();
        let arguments = arguments.and_then(|params| params.arguments);
        let arguments = arguments.map(|arguments| params.share(arguments));
        self.shared().tool_headers.headers(name, arguments.as_ref())
    }

    fn meta_of(&self, behalf: &Behalf) -> Vec<u8> {
        let revision = self.server().revision;
        let [version, client, capabilities, level] = OF_THE_CONNECTION;
        let mut meta = Vec::with_capacity(256);
        push_member(&mut meta, version, &format!("\"{revision}\""));
        if let Some(info) = &behalf.client {
            meta.push(b',');
            push_member(&mut meta, client, info.as_str());
        }
        meta.push(b',');
        let known = behalf.capabilities.as_ref().map_or("{}", RawJson::as_str);
        push_member(&mut meta, capabilities, known);
        if let Some(wanted) = &behalf.log_level {
            meta.push(b',');
            encode::push_string(&mut meta, level);
            meta.push(b':');
            encode::push_string(&mut meta, wanted);
        }
        meta
    }
}

enum Hindrance {
    /// The server has ended its session.
    SessionGone,
    /// The server wants headers for arguments that we did not know of.
    HeadersWanted,
}

fn is_header_mismatch(answer: &Result<Frame, RequestError>) -> bool {
    let error = match answer {
        Ok(frame) => frame.error(),
        Err(RequestError::Rpc { error, .. }) => Some(error.clone()),
        Err(_) => None,
    };
    error.is_some_and(|error| error.code == code::HEADER_MISMATCH)
}

/// Parameters without what their `_meta` says about another connection; nothing if they say
/// nothing of the kind, and can be passed on as they are. A server of the stateless era is told
/// everything anew, and so is any server the token of progress, which replaces what is there.
fn cleaned(params: Option<&RawJson>, modern: bool) -> Option<RawJson> {
    let params = params?;
    if modern || never_mentions(params, "_meta") {
        return None;
    }
    let wanted = |key: &str| !OF_THE_CONNECTION.contains(&key);
    let members: Members<'_> = params.decode().ok()?;
    let meta = Members::of(members.get("_meta")?)?;
    if meta.0.iter().all(|(key, _)| wanted(key)) {
        return None;
    }
    let mut text = Vec::with_capacity(params.as_bytes().len());
    text.push(b'{');
    for (key, value) in &members.0 {
        if text.len() > 1 {
            text.push(b',');
        }
        if key != "_meta" {
            push_member(&mut text, key, value.get());
            continue;
        }
        text.extend_from_slice(b"\"_meta\":{");
        let kept = meta.0.iter().filter(|(key, _)| wanted(key));
        for (index, (key, value)) in kept.enumerate() {
            if index > 0 {
                text.push(b',');
            }
            push_member(&mut text, key, value.get());
        }
        text.push(b'}');
    }
    text.push(b'}');
    RawJson::parse(text).ok()
}

impl std::fmt::Debug for Relayed<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Relayed")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use cocode_wire::RawJson;

    use super::cleaned;

    #[track_caller]
    fn check(params: &str, modern: bool, expected: Option<&str>) {
        let params = RawJson::parse(params.to_owned()).unwrap();
        let cleaned = cleaned(Some(&params), modern);
        assert_eq!(cleaned.as_ref().map(RawJson::as_str), expected);
    }

    #[test]
    fn what_is_said_about_another_connection_is_taken_out_and_nothing_else() {
        check(r#"{"name":"x"}"#, false, None);
        check(r#"{"_meta":{"com.example/a":1}}"#, false, None);
        check(
            r#"{"arguments":{"_meta":{"io.modelcontextprotocol/logLevel":1}}}"#,
            false,
            None,
        );
        check(
            r#"{"name":"x","_meta":{"io.modelcontextprotocol/logLevel":"info","a": 1.0},"arguments":{"n":1e400}}"#,
            false,
            Some(r#"{"name":"x","_meta":{"a":1.0},"arguments":{"n":1e400}}"#),
        );
        let modern = r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}"#;
        check(modern, false, Some(r#"{"_meta":{}}"#));
        check(modern, true, None);
    }
}
