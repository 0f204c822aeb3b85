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
struct Wire<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: &'a RawValue,
    #[serde(default)]
    progress: Option<f64>,
    #[serde(default)]
    total: Option<f64>,
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
}

impl Progress {
    /// The report and the id of the request it is about: our tokens are our ids.
    pub(crate) fn parse(params: &RawJson) -> Option<(u64, Self)> {
        let wire: Wire<'_> = params.decode().ok()?;
        let id = wire.token.get().trim_matches('"').parse().ok()?;
        let message = wire.message.map(Cow::into_owned);
        Some((
            id,
            Self {
                progress: wire.progress?,
                total: wire.total,
                message,
            },
        ))
    }
}
