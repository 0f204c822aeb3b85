//! What a server may ask of its client, and where it tells things: one trait for both eras.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;

use cocode_wire::{RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The future of a handler method.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The client's side of a session. Every method has a default that a cautious client would want.
///
/// The same methods serve both eras: a request of a legacy server and the `input_required` result
/// of a modern one look alike here.
pub trait Handler: Send + Sync + 'static {
    /// What the server is told this client can do.
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default()
    }

    /// The server told us something. Called in the order of arrival and before anything that came
    /// later is looked at, so it must return at once.
    fn notified(&self, _notification: &Notification) {}

    /// Any question of a server of the older era, before it is sorted into the methods below: who
    /// passes questions on as they are answers here.
    fn asked(
        &self,
        _method: &str,
        _params: Option<&RawJson>,
    ) -> Option<Answer<'_, Result<RawJson, RpcError>>> {
        None
    }

    /// The server asks the person something. The clocks of waiting requests stand still meanwhile.
    fn elicit(&self, _request: Elicitation) -> Answer<'_, ElicitationAnswer> {
        Box::pin(async { ElicitationAnswer::Decline })
    }

    /// The server asks for a completion of our model: the parameters of `sampling/createMessage`
    /// in, its result out.
    fn sample(&self, _params: RawJson) -> Answer<'_, Result<RawJson, RpcError>> {
        let refusal = RpcError::new(code::METHOD_NOT_FOUND, "this client offers no sampling");
        Box::pin(async { Err(refusal) })
    }

    /// The server asks which folders it may work in.
    fn roots(&self) -> Answer<'_, Result<Vec<Root>, RpcError>> {
        let refusal = RpcError::new(code::METHOD_NOT_FOUND, "this client offers no roots");
        Box::pin(async { Err(refusal) })
    }

    /// Any other request.
    fn request(
        &self,
        method: &str,
        _params: Option<RawJson>,
    ) -> Answer<'_, Result<RawJson, RpcError>> {
        let refusal = RpcError::new(code::METHOD_NOT_FOUND, format!("unknown method `{method}`"));
        Box::pin(async { Err(refusal) })
    }
}

/// A handler that offers nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHandler;

impl Handler for NoHandler {}

/// What a client can do for its servers.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the protocol"
)]
pub struct ClientCapabilities {
    /// Ask the person to fill in a form.
    pub elicitation_form: bool,
    /// Ask the person to visit a URL.
    pub elicitation_url: bool,
    /// Complete a prompt.
    pub sampling: bool,
    /// Name the folders a server may work in.
    pub roots: bool,
    /// More members of the capabilities object, each a name and its value. One that is named above
    /// is replaced by its value here, such as `roots` by `{"listChanged":true}`.
    pub others: Vec<(String, RawJson)>,
}

/// Something a server told us.
#[derive(Clone, Debug)]
pub struct Notification {
    /// Such as `notifications/tools/list_changed`.
    pub method: String,
    /// Its parameters, as they came.
    pub params: Option<RawJson>,
    /// Whether it came on the stream of a request that is passed on, so that whoever asked has
    /// heard it.
    pub is_heard: bool,
}

/// A question for the person.
#[derive(Clone, Debug)]
pub struct Elicitation {
    /// What the server wants to be told, in its words.
    pub message: String,
    /// How it is to be answered.
    pub mode: ElicitationMode,
    /// The parameters as they came.
    pub params: RawJson,
}

/// How a question is to be answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ElicitationMode {
    /// By filling in the form that this JSON Schema describes.
    Form(RawJson),
    /// By visiting this URL.
    Url(String),
}

/// The person's answer.
#[derive(Clone, Debug)]
pub enum ElicitationAnswer {
    /// Yes, with the filled-in form (a JSON object) where there is one.
    Accept(Option<RawJson>),
    /// No.
    Decline,
    /// No answer.
    Cancel,
}

/// A folder a server may work in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// A `file:` URI.
    pub uri: String,
    /// A name for people.
    pub name: Option<String>,
}

#[derive(Deserialize)]
struct ElicitationParams<'a> {
    #[serde(borrow, default)]
    message: Cow<'a, str>,
    #[serde(borrow, default)]
    mode: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    url: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "requestedSchema")]
    schema: Option<&'a RawValue>,
}

impl Elicitation {
    pub(crate) fn parse(params: RawJson) -> Result<Self, RpcError> {
        let invalid = |why: String| RpcError::new(code::INVALID_PARAMS, why);
        let parts: ElicitationParams<'_> = params
            .decode()
            .map_err(|error| invalid(error.to_string()))?;
        let mode = match (parts.mode.as_deref(), parts.url, parts.schema) {
            (Some("url"), Some(url), _) => ElicitationMode::Url(url.into_owned()),
            (Some("form") | None, _, Some(schema)) => ElicitationMode::Form(params.share(schema)),
            (mode, ..) => {
                let mode = mode.unwrap_or("form");
                return Err(invalid(format!(
                    "an elicitation of mode `{mode}` lacks its parts"
                )));
            }
        };
        let message = parts.message.into_owned();
        Ok(Self {
            message,
            mode,
            params,
        })
    }
}

impl ElicitationAnswer {
    pub(crate) fn to_json(&self) -> Result<RawJson, serde_json::Error> {
        let action = match self {
            Self::Accept(Some(content)) => {
                let text = format!(r#"{{"action":"accept","content":{content}}}"#);
                return RawJson::parse(text);
            }
            Self::Accept(None) => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        };
        RawJson::parse(format!(r#"{{"action":"{action}"}}"#))
    }
}

impl ClientCapabilities {
    pub(crate) fn to_json(&self) -> String {
        let mut modes = Vec::new();
        if self.elicitation_form {
            modes.push(r#""form":{}"#);
        }
        if self.elicitation_url {
            modes.push(r#""url":{}"#);
        }
        let elicitation = format!("{{{}}}", modes.join(","));
        let known = [
            ("elicitation", !modes.is_empty(), elicitation.as_str()),
            ("sampling", self.sampling, "{}"),
            ("roots", self.roots, "{}"),
        ];
        // What the caller spells out replaces what would be said by itself.
        let spelled_out = |name: &str| self.others.iter().any(|(other, _)| other == name);
        let known = known
            .iter()
            .filter(|(name, has, _)| *has && !spelled_out(name));
        let known = known.map(|(name, _, value)| (*name, *value));
        let others = self
            .others
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let mut text = Vec::new();
        for (name, value) in known.chain(others) {
            if !text.is_empty() {
                text.push(b',');
            }
            cocode_wire::encode::push_member(&mut text, name, value);
        }
        format!("{{{}}}", String::from_utf8_lossy(&text))
    }
}

pub(crate) fn roots_json(roots: &[Root]) -> Result<RawJson, serde_json::Error> {
    let list: Vec<_> = roots
        .iter()
        .map(|root| match &root.name {
            Some(name) => serde_json::json!({ "uri": root.uri, "name": name }),
            None => serde_json::json!({ "uri": root.uri }),
        })
        .collect();
    RawJson::of(&serde_json::json!({ "roots": list }))
}
