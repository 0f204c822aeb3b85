//! Short ways to name a server. Whoever needs more fills in a [`Target`] by hand.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cocode_core::{RemoteTransport, Sandbox};
use cocode_wire::limits::DEFAULT_MAX_FRAME_BYTES;
use cocode_wire::{
    ConfineError, Confinement, Credentials, HttpClient, HttpTarget, PathHandle, ProcessSpec,
    StdioTarget, Target, UnixTarget, WebSocketTarget,
};
use http::HeaderMap;
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

/// Confines a program that is to run in a sandbox. Its working directory is opened here, without following links.
/// Servers keep the network: few are of use without.
pub fn confine(process: &mut ProcessSpec, sandbox: Sandbox) -> Result<(), ConfineError> {
    let confinement = match sandbox {
        Sandbox::Off => return Ok(()),
        Sandbox::ReadOnly => Confinement::read_only(),
        Sandbox::WorkspaceWrite => {
            let directory = process.cwd.as_deref().unwrap_or(Path::new("."));
            let directory = PathHandle::open(directory)?;
            process.directory = Some(directory.clone());
            Confinement::workspace_write(directory)
        }
    };
    process.confinement = Some(confinement.with_network());
    Ok(())
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
        credentials,
        client,
        max_frame,
    } = http_target(url);
    Target::WebSocket(WebSocketTarget {
        url,
        headers,
        credentials,
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

/// The socket that a `unix:` URL names, if it names one.
pub fn socket_path(url: &Url) -> Option<PathBuf> {
    // The path of such a URL is the same as that of a file.
    let path = url.as_str().strip_prefix("unix:")?;
    let path = Url::parse(&format!("file:{path}")).ok()?.to_file_path();
    path.ok()
        .filter(|_| url.path().starts_with('/') && url.host_str().is_none_or(str::is_empty))
}

/// Why an address with its headers is no target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteTargetError {
    /// The URL of a unix socket names no absolute path.
    #[error("the URL of a unix socket names no absolute path")]
    NoSocketPath,
    /// A unix socket carries no headers.
    #[error("a unix socket carries no headers")]
    HeadersOnSocket,
}

/// A server at an address, spoken to in this way.
pub fn remote(
    transport: RemoteTransport,
    url: Url,
    made: HeaderMap,
    with: HttpClient,
) -> Result<Target, RemoteTargetError> {
    let mut target = match transport {
        RemoteTransport::HttpWithFallback | RemoteTransport::Http => http(url),
        RemoteTransport::Sse => legacy_sse(url),
        RemoteTransport::WebSocket => websocket(url),
        RemoteTransport::Unix if !made.is_empty() => {
            return Err(RemoteTargetError::HeadersOnSocket);
        }
        RemoteTransport::Unix => unix(socket_path(&url).ok_or(RemoteTargetError::NoSocketPath)?),
    };
    if let Target::Http(HttpTarget {
        headers, client, ..
    })
    | Target::LegacySse(HttpTarget {
        headers, client, ..
    })
    | Target::WebSocket(WebSocketTarget {
        headers, client, ..
    }) = &mut target
    {
        (*headers, *client) = (made, with);
    }
    Ok(target)
}

/// The same server, with something that lets us in. A target that carries no headers stays as it is.
#[must_use]
pub fn with_credentials(mut target: Target, made: Arc<dyn Credentials>) -> Target {
    if let Target::Http(HttpTarget { credentials, .. })
    | Target::LegacySse(HttpTarget { credentials, .. })
    | Target::WebSocket(WebSocketTarget { credentials, .. }) = &mut target
    {
        *credentials = Some(made);
    }
    target
}

fn http_target(url: Url) -> HttpTarget {
    let headers = http::HeaderMap::new();
    HttpTarget {
        url,
        headers,
        credentials: None,
        client: HttpClient::default(),
        max_frame: DEFAULT_MAX_FRAME_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use cocode_core::Sandbox;

    use super::{PathHandle, ProcessSpec, confine, socket_path};

    #[test]
    fn servers_in_a_sandbox_keep_the_network_and_write_where_they_start() {
        let directory = tempfile::tempdir().unwrap();
        let start = directory.path().canonicalize().unwrap();
        let confined = |sandbox| {
            let mut process = ProcessSpec::new("server");
            process.cwd = Some(start.clone());
            confine(&mut process, sandbox).unwrap();
            process
        };
        assert!(confined(Sandbox::Off).confinement.is_none());
        let read_only = confined(Sandbox::ReadOnly).confinement.unwrap();
        assert!(read_only.has_network() && read_only.writable().is_empty());
        let process = confined(Sandbox::WorkspaceWrite);
        assert_eq!(process.directory.unwrap().path(), start);
        let confinement = process.confinement.unwrap();
        let writable: Vec<_> = confinement
            .writable()
            .iter()
            .map(PathHandle::path)
            .collect();
        assert_eq!(writable, [start.as_path()]);
    }

    #[test]
    fn a_socket_is_an_absolute_path_decoded_and_of_no_host() {
        let path = |url: &str| socket_path(&url.parse().unwrap());
        assert_eq!(
            path("unix:///run/my%20server.sock"),
            Some(PathBuf::from("/run/my server.sock"))
        );
        for bad in ["unix://host/run/x", "unix:relative", "http://host/x"] {
            assert_eq!(path(bad), None, "{bad}");
        }
    }
}
