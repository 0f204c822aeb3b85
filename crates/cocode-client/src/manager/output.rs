//! Keeps results within what a model can read, and what does not fit where it can be read later.

use cocode_core::{OutputLimits, OutputSize, ServerName, ToolName};

use super::options::ManagerOptions;
use crate::features::CallResult;
use crate::results::{ResultHandle, ResultStore, ResultStoreError, limit, shorten_measured};

/// What is larger takes too long to look at beside everything else that a runtime has to do.
const MAX_MEASURED_INLINE: usize = 256 * 1024;

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
        let is_small = result.raw.as_bytes().len() <= MAX_MEASURED_INLINE;
        let size = is_small.then(|| limit(&result, &options.output));
        match size {
            Some(OutputSize::Fits) => return (result, Self::Fits),
            Some(OutputSize::Large { tokens }) => return (result, Self::Large { tokens }),
            Some(OutputSize::TooLarge { .. }) | None => {}
        }
        let work = Work {
            limits: options.output,
            store: options.results.clone(),
            server: server.clone(),
            tool: tool.clone(),
            result: result.clone(),
        };
        let worked = tokio::task::spawn_blocking(move || work.limited(size)).await;
        let (shown, output, not_kept) = worked.unwrap_or_else(|error| {
            tracing::error!(%server, %tool, %error, "a result was not measured");
            (result, Self::Whole, None)
        });
        // The disk does not take it: that costs the part that is not shown, and the preview says so.
        if let Some(error) = not_kept {
            tracing::warn!(%server, %tool, %error, "a result that is too large was not kept");
        }
        (shown, output)
    }
}

/// All that is to be done with a result, away from the runtime.
struct Work {
    limits: OutputLimits,
    store: Option<ResultStore>,
    server: ServerName,
    tool: ToolName,
    result: CallResult,
}

impl Work {
    /// What is shown of it, and why it was not kept, if it should have been.
    fn limited(self, size: Option<OutputSize>) -> (CallResult, Output, Option<ResultStoreError>) {
        let Self {
            limits,
            store,
            server,
            tool,
            result,
        } = self;
        let tokens = match size.unwrap_or_else(|| limit(&result, &limits)) {
            OutputSize::Fits => return (result, Output::Fits, None),
            OutputSize::Large { tokens } => return (result, Output::Large { tokens }, None),
            OutputSize::TooLarge { tokens } => tokens,
        };
        let kept = store.map(|store| store.keep(server.as_str(), tool.as_str(), &result.raw));
        let (handle, not_kept) = match kept.transpose() {
            Ok(handle) => (handle, None),
            Err(error) => (None, Some(error)),
        };
        let short = shorten_measured(&result, tokens, &limits, handle.as_ref());
        (short, Output::Shortened { tokens, handle }, not_kept)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use cocode_core::OutputLimits;
    use cocode_wire::RawJson;
    use futures_util::FutureExt as _;

    use super::{MAX_MEASURED_INLINE, Output};
    use crate::features::CallResult;
    use crate::manager::ManagerOptions;
    use crate::results::{ResultStore, ResultStoreOptions};

    fn result(bytes: usize) -> CallResult {
        let text = "x".repeat(bytes);
        let raw = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
        CallResult::parse(RawJson::parse(raw).unwrap())
    }

    fn options(cap_tokens: u64) -> ManagerOptions {
        ManagerOptions {
            output: OutputLimits::with_cap(cap_tokens),
            ..ManagerOptions::default()
        }
    }

    async fn limited(options: &ManagerOptions, result: CallResult) -> (CallResult, Output) {
        let (server, tool) = ("files".parse().unwrap(), "read".into());
        Output::limit(options, &server, &tool, result).await
    }

    /// A runtime whose only thread for blocking work is busy until the sender is dropped.
    fn busy() -> (tokio::runtime::Runtime, mpsc::Sender<()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        let (free, wait) = mpsc::channel::<()>();
        drop(runtime.spawn_blocking(move || wait.recv()));
        (runtime, free)
    }

    #[test]
    fn a_small_result_is_measured_at_once() {
        let (runtime, free) = busy();
        runtime.block_on(async {
            let measured = limited(&options(25_000), result(1_000)).now_or_never();
            assert_eq!(measured.map(|(_, output)| output), Some(Output::Fits));
        });
        drop(free);
    }

    #[test]
    fn nothing_of_a_large_result_is_looked_at_on_the_runtime() {
        let bytes = MAX_MEASURED_INLINE + 1;
        let tokens = bytes as u64 / 4 + 1;
        for (cap, expected) in [
            (1_000_000, Output::Large { tokens }),
            (
                1_000,
                Output::Shortened {
                    tokens,
                    handle: None,
                },
            ),
        ] {
            let (runtime, free) = busy();
            runtime.block_on(async {
                let options = options(cap);
                let mut measuring = Box::pin(limited(&options, result(bytes)));
                assert!(measuring.as_mut().now_or_never().is_none(), "{expected:?}");
                drop(free);
                assert_eq!(measuring.await.1, expected);
            });
        }
    }

    #[tokio::test]
    async fn what_is_too_large_is_kept_and_shortened_whatever_its_size() {
        let directory = tempfile::TempDir::new().unwrap();
        let store = ResultStore::open(ResultStoreOptions::new(directory.path()));
        let mut options = options(1_000);
        options.results = Some(store.clone());
        for bytes in [10_000, 2 * MAX_MEASURED_INLINE] {
            let whole = result(bytes);
            let (short, output) = limited(&options, whole.clone()).await;
            let Output::Shortened {
                handle: Some(handle),
                ..
            } = output
            else {
                panic!("{output:?}");
            };
            assert_eq!(store.read(&handle).unwrap().raw, whole.raw);
            assert!(short.raw.as_str().contains(handle.as_str()));
            assert!(short.raw.as_bytes().len() < 10_000);
        }
    }
}
