//! Short ways to name a server. Whoever needs more fills in a [`Target`] by hand.

use std::ffi::OsString;
use std::path::PathBuf;

use cocode_wire::limits::DEFAULT_MAX_FRAME_BYTES;
use cocode_wire::{
    HttpClient, HttpTarget, ProcessSpec, StdioTarget, Target, UnixTarget, WebSocketTarget,
};
use url::Url;

/// A program that speaks MCP on its standard streams. `env` is its whole environment; see
/// [`baseline_environment`](crate::baseline_environment) for what it usually should hold.
pub fn stdio(
    program: impl Into<OsString>,
    args: impl IntoIterator<Item = impl Into<OsString>>,
    env: impl IntoIterator<Item = (OsString, OsString)>,
) -> Target {
    let mut process = ProcessSpec::new(program);
    process.args = args.into_iter().map(Into::into).collect();
    process.env = env.into_iter().collect();
    Target::Stdio(StdioTarget {
        process,
        max_frame: DEFAULT_MAX_FRAME_BYTES,
    })
}

/// A server over streamable HTTP, or HTTP+SSE where it knows no better.
pub fn http(url: Url) -> Target {
    Target::Http(http_target(url))
}

/// A server over HTTP+SSE.
pub fn legacy_sse(url: Url) -> Target {
    Target::LegacySse(http_target(url))
}

/// A server over a WebSocket.
pub fn websocket(url: Url) -> Target {
    let HttpTarget {
        url,
        headers,
        client,
        max_frame,
    } = http_target(url);
    Target::WebSocket(WebSocketTarget {
        url,
        headers,
        client,
        max_frame,
    })
}

/// A server on a unix socket.
pub fn unix(path: PathBuf) -> Target {
    Target::Unix(UnixTarget {
        path,
        max_frame: DEFAULT_MAX_FRAME_BYTES,
    })
}

fn http_target(url: Url) -> HttpTarget {
    let headers = http::HeaderMap::new();
    HttpTarget {
        url,
        headers,
        client: HttpClient::default(),
        max_frame: DEFAULT_MAX_FRAME_BYTES,
    }
}
