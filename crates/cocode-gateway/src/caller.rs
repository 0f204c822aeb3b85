//! Who makes a request, and what can be asked of them in return.

use cocode_client::Behalf;
use cocode_core::{Era, Revision};
use cocode_wire::encode::push_member;
use cocode_wire::members::Members;
use cocode_wire::{RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::view::Entry;

/// A client, as it presented itself: at the beginning of its session, or with its request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// What it speaks.
    pub(crate) revision: Revision,
    /// What servers are told about it.
    pub(crate) behalf: Behalf,
    /// What it can do for servers.
    pub(crate) can: Abilities,
}

/// What a client can do for servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the protocol"
)]
pub(crate) struct Abilities {
    pub(crate) form: bool,
    pub(crate) url: bool,
    pub(crate) sampling: bool,
    pub(crate) roots: bool,
}

impl Caller {
    pub(crate) fn era(&self) -> Era {
        self.revision.era()
    }

    /// What it calls itself.
    pub(crate) fn name(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Info {
            name: String,
        }
        let info = self.behalf.client.as_ref()?;
        Some(info.decode::<Info>().ok()?.name)
    }

    /// Whether it has declared an extension.
    pub(crate) fn has_extension(&self, name: &str) -> bool {
        let capabilities = self.behalf.capabilities.as_ref();
        let capabilities = capabilities.and_then(|raw| raw.decode::<Members<'_>>().ok());
        let extensions = capabilities.as_ref().and_then(|all| all.get("extensions"));
        let extensions = extensions.and_then(Members::of);
        extensions.is_some_and(|extensions| extensions.get(name).is_some())
    }

    /// The same client, for whom servers may also ask this.
    pub(crate) fn also(&self, can: Abilities) -> Self {
        let mut caller = self.clone();
        let said = caller.behalf.capabilities.as_ref();
        let said = said.and_then(|said| said.decode::<Members<'_>>().ok());
        let all = self.can.or(can).to_json();
        let elicitation = all.get("elicitation").map(ToString::to_string);
        let mut text = b"{".to_vec();
        let members = said.unwrap_or_default().0;
        let others = members.iter().filter(|(key, _)| key != "elicitation");
        let others = others.map(|(key, value)| (&**key, value.get()));
        let elicitation = elicitation.as_deref().map(|modes| ("elicitation", modes));
        for (index, (key, value)) in others.chain(elicitation).enumerate() {
            if index > 0 {
                text.push(b',');
            }
            push_member(&mut text, key, value);
        }
        text.push(b'}');
        if let Ok(capabilities) = RawJson::parse(text) {
            caller.behalf.capabilities = Some(capabilities);
        }
        caller
    }

    /// A client with these capabilities, if they are such.
    pub(crate) fn new(
        revision: Revision,
        client: Option<RawJson>,
        capabilities: Option<RawJson>,
    ) -> Self {
        let can = capabilities.as_ref().map(Abilities::parse);
        Self {
            revision,
            can: can.unwrap_or_default(),
            behalf: Behalf {
                client,
                capabilities,
                log_level: None,
            },
        }
    }
}

impl Abilities {
    fn parse(capabilities: &RawJson) -> Self {
        let members: Members<'_> = capabilities.decode().unwrap_or_default();
        let has =
            |value: Option<&RawValue>| value.is_some_and(|value| value.get().starts_with('{'));
        let elicitation = members.get("elicitation").and_then(Members::of);
        let url = elicitation
            .as_ref()
            .is_some_and(|modes| has(modes.get("url")));
        // No mode at all means a form, which is how it was before there were modes.
        let form = elicitation
            .as_ref()
            .is_some_and(|modes| has(modes.get("form")) || modes.get("url").is_none());
        Self {
            form,
            url,
            sampling: has(members.get("sampling")),
            roots: has(members.get("roots")),
        }
    }

    /// Words for it, as the protocol has them.
    pub(crate) fn words(self) -> Vec<&'static str> {
        let all = [
            ("elicitation", self.form || self.url),
            ("sampling", self.sampling),
            ("roots", self.roots),
        ];
        let all = all.into_iter().filter(|(_, on)| *on);
        all.map(|(word, _)| word).collect()
    }

    /// Whether a client can be asked at all.
    pub(crate) fn any(self) -> bool {
        self != Self::default()
    }

    /// Everything that either of two can do.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            form: self.form || other.form,
            url: self.url || other.url,
            sampling: self.sampling || other.sampling,
            roots: self.roots || other.roots,
        }
    }

    /// Everything that both of two can do.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            form: self.form && other.form,
            url: self.url && other.url,
            sampling: self.sampling && other.sampling,
            roots: self.roots && other.roots,
        }
    }

    /// What this can do and the other cannot.
    pub(crate) fn without(self, other: Self) -> Self {
        Self {
            form: self.form && !other.form,
            url: self.url && !other.url,
            sampling: self.sampling && !other.sampling,
            roots: self.roots && !other.roots,
        }
    }

    /// What answering this question takes.
    pub(crate) fn needed_for(method: &str, params: Option<&RawJson>) -> Self {
        let none = Self::default();
        match method {
            "sampling/createMessage" => Self {
                sampling: true,
                ..none
            },
            "roots/list" => Self {
                roots: true,
                ..none
            },
            "elicitation/create" if is_of_mode_url(params) => Self { url: true, ..none },
            "elicitation/create" => Self { form: true, ..none },
            _ => none,
        }
    }

    /// The capabilities of a client that can do this, as it would declare them.
    pub(crate) fn to_json(self) -> serde_json::Value {
        let mut all = serde_json::Map::new();
        let empty = || serde_json::json!({});
        let modes = [("form", self.form), ("url", self.url)];
        let modes = modes.into_iter().filter(|(_, on)| *on);
        let modes: serde_json::Map<_, _> =
            modes.map(|(mode, _)| (mode.to_owned(), empty())).collect();
        if !modes.is_empty() {
            all.insert("elicitation".into(), modes.into());
        }
        for (name, _) in [("sampling", self.sampling), ("roots", self.roots)]
            .into_iter()
            .filter(|(_, on)| *on)
        {
            all.insert(name.into(), empty());
        }
        all.into()
    }

    /// Refuses a question that a client did not offer to answer.
    pub(crate) fn check(self, method: &str, params: Option<&RawJson>) -> Result<(), RpcError> {
        let needed = Self::needed_for(method, params);
        if self.and(needed) == needed {
            return Ok(());
        }
        let what = format!("the client does not support `{method}` of this kind");
        Err(RpcError::new(code::METHOD_NOT_FOUND, what))
    }
}

fn is_of_mode_url(params: Option<&RawJson>) -> bool {
    let members = params.and_then(|params| params.decode::<Members<'_>>().ok());
    let mode = members.and_then(|members| members.get("mode"));
    mode.is_some_and(|mode| mode.get() == "\"url\"")
}

/// What a client is told whose request belongs to no session, where sessions must not share.
pub(crate) fn needs_session(entry: &Entry, caller: &Caller) -> RpcError {
    let legacy = Revision::ALL.into_iter().rev();
    let legacy = legacy.filter(|revision| revision.era() == Era::Legacy);
    let supported: Vec<_> = legacy.map(Revision::as_str).collect();
    let requested = caller.revision.as_str();
    let data = serde_json::json!({ "supported": supported, "requested": requested });
    RpcError {
        code: code::UNSUPPORTED_PROTOCOL_VERSION,
        message: format!(
            "server `{}` runs for each session (`isolation = \"per-session\"`), and this request \
             belongs to none: use a revision with sessions, or a connection that stays open",
            entry.spec.name
        ),
        data: RawJson::of(&data).ok(),
    }
}

#[cfg(test)]
mod tests {
    use cocode_wire::RawJson;

    use super::Abilities;

    #[track_caller]
    fn check(capabilities: &str, expected: [bool; 4]) {
        let can = Abilities::parse(&RawJson::parse(capabilities.to_owned()).unwrap());
        assert_eq!([can.form, can.url, can.sampling, can.roots], expected);
    }

    #[test]
    fn an_elicitation_without_modes_is_a_form() {
        check("{}", [false; 4]);
        check(r#"{"elicitation":{}}"#, [true, false, false, false]);
        check(r#"{"elicitation":{"url":{}}}"#, [false, true, false, false]);
        check(
            r#"{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}"#,
            [true, true, false, true],
        );
        check(
            r#"{"sampling":{"tools":{}},"roots":null}"#,
            [false, false, true, false],
        );
    }
}
