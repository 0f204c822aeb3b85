//! What a server reports about a request that is still running.

use std::borrow::Cow;
use std::sync::Arc;

use cocode_wire::RawJson;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Told about each report, in order, before the answer of the request. Must return at once.
pub type OnProgress = Arc<dyn Fn(&Progress) + Send + Sync>;

/// One report.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// How far it is; grows from report to report.
    pub progress: f64,
    /// How far it will go, if that is known.
    pub total: Option<f64>,
    /// What it is doing.
    pub message: Option<String>,
}

#[derive(Deserialize)]
struct Token<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: &'a RawValue,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(default)]
    progress: Option<f64>,
    #[serde(default)]
    total: Option<f64>,
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
}

impl Progress {
    /// The id of the request that a report is about: our tokens are our ids.
    pub(crate) fn request(params: &RawJson) -> Option<u64> {
        let Token { token } = params.decode().ok()?;
        token.get().trim_matches('"').parse().ok()
    }

    /// The report itself.
    pub(crate) fn parse(params: &RawJson) -> Option<Self> {
        let wire: Wire<'_> = params.decode().ok()?;
        Some(Self {
            progress: wire.progress?,
            total: wire.total,
            message: wire.message.map(Cow::into_owned),
        })
    }
}
