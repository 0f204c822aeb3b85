//! Whether a client searches for tools: what whoever runs the gateway allows, what the client says of
//! its model, and what follows from both.

use cocode_core::{
    SearchDecision, SearchPolicy, Searcher, ToolLoad, ToolSearchMode, UnknownToolSearchMode,
};
use cocode_wire::members::Members;
use cocode_wire::{RawJson, RpcError, code};
use serde_json::value::RawValue;
use thiserror::Error;

/// What clients call it where they say what they can do, and in the `_meta` of their requests.
pub(crate) const KEY: &str = "cocode/toolSearch";

/// When clients search, where all servers are one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchOptions {
    /// When they do. Where its mode is [`ToolSearchMode::Off`], nobody does; else what a client says
    /// counts more than the mode.
    pub policy: SearchPolicy,
    /// How much the model of a client sees that does not say it.
    pub context_window: Option<u64>,
    /// Whether it is decided anew when tools have changed. Otherwise a session stays as it was at first.
    pub on_list_changed: bool,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            policy: SearchPolicy::default(),
            context_window: None,
            on_list_changed: true,
        }
    }
}

impl SearchOptions {
    /// Whether nobody searches, whatever they say.
    pub(crate) fn is_off(&self) -> bool {
        self.policy.mode == ToolSearchMode::Off
    }

    /// What holds for a client. Tools are only counted if it depends on them.
    pub(crate) fn decide(
        &self,
        client: Announced,
        tools: impl FnOnce() -> ToolLoad,
    ) -> SearchDecision {
        let policy = SearchPolicy {
            mode: match client.mode {
                Some(mode) if !self.is_off() => mode,
                _ => self.policy.mode,
            },
            ..self.policy
        };
        let model = Searcher {
            context_window: client.context_window.or(self.context_window),
            // It has asked for tools.
            calls_tools: true,
        };
        let most = ToolLoad {
            characters: u64::MAX,
            deferrable: usize::MAX,
        };
        match policy.decide(model, most) {
            // It would be so with any tools.
            decision @ SearchDecision::ShowAll(_) => decision,
            SearchDecision::Search(_) => policy.decide(model, tools()),
        }
    }
}

/// What a client says of the model that it calls tools for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announced {
    /// Tokens that the model can see at once.
    pub context_window: Option<u64>,
    /// Whether it is to search.
    pub mode: Option<ToolSearchMode>,
}

/// What is wrong with what a client says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidAnnouncement {
    /// It is no number of tokens.
    #[error("`{0}` is no context window: write a number of tokens above zero, as in 200000")]
    Window(String),
    /// It is no mode.
    #[error("{0}")]
    Mode(#[from] UnknownToolSearchMode),
    /// It is not written as it should be.
    #[error(
        "`{KEY}` is not understood ({0}): it is an object, and may have `contextWindow` (a number of \
         tokens) and `mode` (auto, auto:N, true or false)"
    )]
    Form(String),
}

impl Announced {
    /// What two texts say, each of which may be missing.
    pub fn parse(window: Option<&str>, mode: Option<&str>) -> Result<Self, InvalidAnnouncement> {
        Ok(Self {
            context_window: window.map(parse_window).transpose()?,
            mode: mode.map(str::parse).transpose()?,
        })
    }

    /// The same, and where it says nothing what another says.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            context_window: self.context_window.or(other.context_window),
            mode: self.mode.or(other.mode),
        }
    }

    /// What a client has said along with what it can do.
    pub(crate) fn in_capabilities(capabilities: Option<&RawJson>) -> Result<Self, RpcError> {
        let members = capabilities.and_then(|all| all.decode::<Members<'_>>().ok());
        let experimental = members.and_then(|members| members.get("experimental"));
        let said = experimental.and_then(Members::of);
        let said = said.and_then(|said| said.get(KEY));
        said.map_or(Ok(Self::default()), Self::in_value)
    }

    /// What a client says as a JSON value.
    pub(crate) fn in_value(value: &RawValue) -> Result<Self, RpcError> {
        let invalid =
            |error: InvalidAnnouncement| RpcError::new(code::INVALID_PARAMS, error.to_string());
        Self::read(value).map_err(invalid)
    }

    fn read(value: &RawValue) -> Result<Self, InvalidAnnouncement> {
        let form = |what: &str| InvalidAnnouncement::Form(what.to_owned());
        let members = Members::of(value).ok_or_else(|| form("no object"))?;
        let mut said = Self::default();
        for (key, value) in members.0 {
            let text = value.get();
            match &*key {
                "contextWindow" => said.context_window = Some(parse_window(text)?),
                // As in files, it may be a text or a truth value.
                "mode" => {
                    let mode: Option<String> = serde_json::from_str(text).ok();
                    said.mode = Some(mode.as_deref().unwrap_or(text).parse()?);
                }
                other => return Err(form(&format!("`{other}` is unknown"))),
            }
        }
        Ok(said)
    }
}

fn parse_window(text: &str) -> Result<u64, InvalidAnnouncement> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| is_number && *number > 0);
    number.ok_or_else(|| InvalidAnnouncement::Window(text.to_owned()))
}

/// Whether one client searches, as long as it is there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choice {
    announced: Announced,
    is_search: Option<bool>,
}

impl Choice {
    /// Nothing is decided yet about a client that says this.
    pub(crate) fn open(announced: Announced) -> Self {
        Self {
            announced,
            is_search: None,
        }
    }

    /// Whether it was decided that the client searches.
    pub(crate) fn is_search(self) -> bool {
        self.is_search == Some(true)
    }

    /// Decides, or stays with what was decided.
    pub(crate) fn decide(
        &mut self,
        options: &SearchOptions,
        tools: impl FnOnce() -> ToolLoad,
    ) -> bool {
        if let Some(decided) = self.is_search
            && !options.on_list_changed
        {
            return decided;
        }
        let decision = options.decide(self.announced, tools);
        let is_search = decision.is_search();
        if self.is_search.is_none_or(|before| before != is_search) {
            tracing::debug!("{decision}");
        }
        self.is_search = Some(is_search);
        is_search
    }

    /// Decides anew if something was decided: who never asked for tools is told when it does.
    pub(crate) fn reconsider(
        &mut self,
        options: &SearchOptions,
        tools: impl FnOnce() -> ToolLoad,
    ) -> bool {
        self.is_search.is_some() && self.decide(options, tools)
    }
}

#[cfg(test)]
#[path = "searching_tests.rs"]
mod tests;
