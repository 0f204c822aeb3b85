//! Keeps results within what a model can read, and what does not fit where it can be read later.

use cocode_core::{OutputSize, ServerName, ToolName};

use super::options::ManagerOptions;
use crate::features::CallResult;
use crate::results::{ResultHandle, limit, shorten};

/// How large a result was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Nobody measured it.
    Whole,
    /// It is of a usual size.
    Fits,
    /// It is large, and complete.
    Large {
        /// About so many tokens.
        tokens: u64,
    },
    /// It was too large, and what is there is a preview.
    Shortened {
        /// About so many tokens.
        tokens: u64,
        /// Where the whole of it is; nothing if it could not be kept.
        handle: Option<ResultHandle>,
    },
}

impl Output {
    pub(super) async fn limit(
        options: &ManagerOptions,
        server: &ServerName,
        tool: &ToolName,
        result: CallResult,
    ) -> (CallResult, Self) {
        match limit(&result, &options.output) {
            OutputSize::Fits => (result, Self::Fits),
            OutputSize::Large { tokens } => (result, Self::Large { tokens }),
            OutputSize::TooLarge { tokens } => {
                let kept = keep(options, server, tool, &result);
                let handle = Box::pin(kept).await;
                let short = shorten(&result, &options.output, handle.as_ref());
                (short, Self::Shortened { tokens, handle })
            }
        }
    }
}

/// Keeps a result. A disk that does not take it costs the part that is not shown, and the preview
/// says so.
async fn keep(
    options: &ManagerOptions,
    server: &ServerName,
    tool: &ToolName,
    result: &CallResult,
) -> Option<ResultHandle> {
    let store = options.results.clone()?;
    let (owner, name, raw) = (server.clone(), tool.clone(), result.raw.clone());
    let keeping = move || store.keep(owner.as_str(), name.as_str(), &raw);
    match tokio::task::spawn_blocking(keeping).await {
        Ok(Ok(handle)) => Some(handle),
        Ok(Err(error)) => {
            tracing::warn!(%server, %tool, %error, "a result that is too large was not kept");
            None
        }
        Err(error) => {
            tracing::warn!(%server, %tool, %error, "a result that is too large was not kept");
            None
        }
    }
}
