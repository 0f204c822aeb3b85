//! Which server is meant, and how it is to be used: from the options of the command line to a target,
//! limits and wishes.
//!
//! Values of headers and variables and the query of a URL may be secrets, so no message repeats
//! them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use cocode_client::{
    Deadlines, HttpClient, HttpSettings, HttpTarget, Protocol, StdioTarget, Target, Timeouts,
    UnixTarget, WebSocketTarget, http as http_target, legacy_sse, stdio, unix, websocket,
};
use cocode_core::{OAuth, Program, Reach, Remote, RemoteTransport, ServerSpec, Template};
use http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use crate::args::{TargetArgs, Transport};
use crate::environment;
use crate::error::{CliError, Code};
use crate::printer::Printer;
use crate::text::plain;

/// What rules call a server that stands in no file.
pub(crate) const UNLISTED: &str = "(unlisted)";

/// What a server may write for people with one `-v`, and with more.
const LOG_LEVELS: [&str; 2] = ["info", "debug"];

/// A server and how to show it: without arguments, credentials and query.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) target: Target,
    pub(crate) shown: String,
    /// Whether a failed streamable HTTP handshake may be followed by HTTP+SSE.
    pub(crate) sse_fallback: bool,
}

impl Server {
    pub(crate) fn of(
        args: &TargetArgs,
        http: &HttpSettings,
        printer: &Arc<Printer>,
    ) -> Result<Self, CliError> {
        match (args.command.split_first(), &args.url) {
            (Some(_), Some(_)) => Err(usage("both a command and `--url` are given")
                .hint("a server is either a program or an address")),
            (None, None) => Err(usage("no server is given")
                .hint("name a program after `--`, as in: cocode mcp tools -- npx -y SERVER")
                .hint("or an address, as in: cocode mcp tools --url https://example.com/mcp")),
            (Some((address_after_dashes, [])), None)
                if address_after_dashes.to_str().is_some_and(is_address) =>
            {
                address(&address_after_dashes.to_string_lossy(), args, http)
            }
            (Some((program, rest)), None) => process(program, rest, args, printer),
            (None, Some(url)) => address(url, args, http),
        }
    }
}

/// A server that stands in no file, as the policy of an organization sees it.
pub(crate) fn unlisted(args: &TargetArgs) -> Result<ServerSpec, CliError> {
    let text = |word: &OsStr| word.to_string_lossy().into_owned();
    let mut words = args.command.iter().map(|word| text(word));
    let first = words.next();
    let address = args.url.clone().or_else(|| {
        let alone = args.command.len() == 1;
        first.clone().filter(|word| alone && is_address(word))
    });
    let reach = match (address, first) {
        (Some(url), _) => Reach::Remote(Box::new(Remote {
            transport: RemoteTransport::HttpWithFallback,
            // A socket may be given by its path alone.
            url: if url.starts_with('/') {
                format!("unix://{url}")
            } else {
                url
            },
            headers: BTreeMap::new(),
            env_headers: BTreeMap::new(),
            bearer_token_env_var: None,
            headers_helper: None,
            oauth: OAuth::default(),
            base: None,
        })),
        (None, Some(command)) => {
            let names = args.env.iter().map(|given| {
                let given = text(given);
                let name = given.split('=').next().unwrap_or_default();
                (name.to_owned(), Template::default())
            });
            Reach::Program(Program {
                command,
                args: words.collect(),
                env: names.collect(),
                env_vars: Vec::new(),
                cwd: args.cwd.clone(),
                base: None,
                beside: None,
            })
        }
        (None, None) => return Err(usage("no server is given")),
    };
    let name = UNLISTED
        .parse()
        .map_err(|error| invalid("a server without a name cannot be named").because(&error))?;
    Ok(ServerSpec {
        protocol: args.protocol,
        ..ServerSpec::new(name, reach)
    })
}

/// Whether a word is the address of a server, and cannot be a program.
pub(crate) fn is_address(word: &str) -> bool {
    let schemes = ["http://", "https://", "ws://", "wss://", "unix:///"];
    schemes.iter().any(|scheme| {
        let beginning = word.get(..scheme.len());
        beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(scheme))
    })
}

/// A server as this command line wants it used.
pub(crate) fn adjusted(mut spec: ServerSpec, args: &TargetArgs) -> ServerSpec {
    if is_protocol_chosen(args) {
        spec.protocol = args.protocol;
    }
    if let Some(limit) = args.timeout {
        // Who waits two seconds for an answer does not wait a minute for the server.
        spec.connect_timeout = spec.connect_timeout.min(limit);
    }
    if let Some(limit) = args.connect_timeout {
        spec.connect_timeout = limit;
    }
    spec
}

/// How long requests may take.
pub(crate) fn timeouts(args: &TargetArgs) -> Timeouts {
    let mut timeouts = Timeouts::default();
    if let Some(limit) = args.timeout {
        timeouts.request = limit;
    }
    timeouts
}

/// How long a call may take, if the command line says.
pub(crate) fn deadlines(args: &TargetArgs) -> Option<Deadlines> {
    args.timeout.map(|idle| Deadlines {
        idle,
        total: Timeouts::default().call.total.max(idle),
    })
}

/// The least severe log messages that the server should send.
pub(crate) fn log_level(verbose: u8) -> Option<String> {
    let level = match verbose {
        0 => None,
        1 => LOG_LEVELS.first(),
        _ => LOG_LEVELS.last(),
    };
    level.map(|level| (*level).to_owned())
}

/// Whether the user chose what to speak.
pub(crate) fn is_protocol_chosen(args: &TargetArgs) -> bool {
    args.protocol != Protocol::Auto
}

fn process(
    program: &OsStr,
    rest: &[OsString],
    args: &TargetArgs,
    printer: &Arc<Printer>,
) -> Result<Server, CliError> {
    if args
        .transport
        .is_some_and(|transport| transport != Transport::Stdio)
    {
        return Err(usage("this transport needs `--url`, not a command"));
    }
    if !args.header.is_empty() {
        return Err(usage("`--header` is for servers with a URL").hint("`--env` reaches a program"));
    }
    let mut env = environment::for_servers();
    for given in &args.env {
        let (name, value) = variable(given)?;
        env.retain(|(other, _)| *other != name);
        env.push((name, value));
    }
    let mut target = stdio(program, rest, env);
    if let Target::Stdio(StdioTarget { process, max_frame }) = &mut target {
        process.cwd.clone_from(&args.cwd);
        set_limit(max_frame, args)?;
        if printer.verbose() {
            let printer = Arc::clone(printer);
            process.stderr_tap = Some(Arc::new(move |line: &str| {
                printer.err_line(&format!("server: {}", plain(line)));
            }));
        }
    }
    Ok(Server {
        target,
        shown: plain(&program.to_string_lossy()),
        sse_fallback: false,
    })
}

/// `NAME=VALUE`, or `NAME` for what is set here.
fn variable(given: &OsStr) -> Result<(OsString, OsString), CliError> {
    let bytes = given.as_bytes();
    let split = bytes.iter().position(|byte| *byte == b'=');
    let (name, value) = match split {
        Some(at) => {
            let (name, rest) = bytes.split_at(at);
            (name, rest.get(1..))
        }
        None => (bytes, None),
    };
    let name = OsStr::from_bytes(name).to_owned();
    if name.is_empty() {
        return Err(usage("a variable in `--env` has no name"));
    }
    let value = value.map(|value| OsStr::from_bytes(value).to_owned());
    let Some(value) = value.or_else(|| environment::variable(&name)) else {
        let name = plain(&name.to_string_lossy());
        return Err(usage(format!("the variable `{name}` is not set here"))
            .hint("`--env NAME=VALUE` sets a variable"));
    };
    Ok((name, value))
}

fn address(given: &str, args: &TargetArgs, http: &HttpSettings) -> Result<Server, CliError> {
    if !args.env.is_empty() || args.cwd.is_some() {
        return Err(usage(
            "`--env` and `--cwd` are for servers that are programs",
        ));
    }
    if args.transport == Some(Transport::Stdio) {
        return Err(usage("the transport stdio needs a command, not `--url`"));
    }
    if args.transport == Some(Transport::Unix) && given.starts_with('/') {
        return socket(PathBuf::from(given), args);
    }
    let url = Url::parse(given).map_err(|error| {
        invalid("the value of `--url` is no URL")
            .because(&error)
            .hint("a URL begins with http://, https://, ws://, wss:// or unix://")
    })?;
    let transport = match (url.scheme(), args.transport) {
        ("unix", None | Some(Transport::Unix)) => return socket(socket_path(&url)?, args),
        ("http" | "https", transport @ (None | Some(Transport::Http | Transport::Sse))) => {
            transport
        }
        ("ws" | "wss", None | Some(Transport::Ws)) => Some(Transport::Ws),
        (scheme, None) => {
            let message = format!("a server cannot be reached by `{scheme}:`");
            return Err(invalid(message)
                .hint("use http, https, ws, wss or unix, as in http://localhost:3000/mcp"));
        }
        (scheme, Some(_)) => {
            let message = format!("a URL with `{scheme}:` does not fit this transport");
            return Err(invalid(message)
                .hint("http and sse need http(s)://, ws needs ws(s)://, unix needs unix:///path"));
        }
    };
    let shown = shown(&url);
    let parts = HttpParts {
        headers: headers(&args.header)?,
        client: HttpClient::new(http.clone()),
    };
    let mut target = match transport {
        Some(Transport::Ws) => websocket(url),
        Some(Transport::Sse) => legacy_sse(url),
        _ => http_target(url),
    };
    parts.put_into(&mut target, args)?;
    let sse_fallback = transport.is_none();
    Ok(Server {
        target,
        shown,
        sse_fallback,
    })
}

/// What all targets with a URL have in common.
struct HttpParts {
    headers: HeaderMap,
    client: HttpClient,
}

impl HttpParts {
    fn put_into(self, target: &mut Target, args: &TargetArgs) -> Result<(), CliError> {
        let Self {
            headers: own_headers,
            client: own_client,
        } = self;
        match target {
            Target::Http(HttpTarget {
                headers,
                client,
                max_frame,
                ..
            })
            | Target::LegacySse(HttpTarget {
                headers,
                client,
                max_frame,
                ..
            })
            | Target::WebSocket(WebSocketTarget {
                headers,
                client,
                max_frame,
                ..
            }) => {
                *headers = own_headers;
                *client = own_client;
                set_limit(max_frame, args)
            }
            _ => Ok(()),
        }
    }
}

fn socket(path: PathBuf, args: &TargetArgs) -> Result<Server, CliError> {
    if !args.header.is_empty() {
        return Err(usage("a unix socket carries no headers"));
    }
    let shown = path.display().to_string();
    let mut target = unix(path);
    if let Target::Unix(UnixTarget { max_frame, .. }) = &mut target {
        set_limit(max_frame, args)?;
    }
    let sse_fallback = false;
    Ok(Server {
        target,
        shown,
        sse_fallback,
    })
}

pub(crate) fn socket_path(url: &Url) -> Result<PathBuf, CliError> {
    let bad = || {
        invalid("the URL of a unix socket names no absolute path")
            .hint("write unix:///path/to/socket")
    };
    cocode_client::socket_path(url).ok_or_else(bad)
}

fn headers(given: &[String]) -> Result<HeaderMap, CliError> {
    let mut headers = HeaderMap::new();
    for (index, header) in given.iter().enumerate() {
        let number = index + 1;
        let Some((name, value)) = header.split_once(':') else {
            let message = format!("header number {number} has no colon");
            return Err(usage(message).hint("write --header 'Name: value'"));
        };
        let Ok(name) = HeaderName::from_bytes(name.trim().as_bytes()) else {
            return Err(usage(format!(
                "the name of header number {number} is not valid"
            )));
        };
        let Ok(mut value) = HeaderValue::from_str(value.trim()) else {
            let message =
                format!("the value of header `{name}` has characters that no header can have");
            return Err(usage(message));
        };
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

fn set_limit(max_frame: &mut usize, args: &TargetArgs) -> Result<(), CliError> {
    if let Some(limit) = args.max_message_bytes {
        let too_large = |_| usage("`--max-message-bytes` is larger than memory");
        *max_frame = usize::try_from(limit).map_err(too_large)?;
    }
    Ok(())
}

/// A URL without what may be secret.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // These fail only for URLs that cannot have credentials.
    let _cannot_have_any = url.set_username("").and_then(|()| url.set_password(None));
    url.set_fragment(None);
    if url.query().is_some() {
        url.set_query(None);
        return format!("{url}?…");
    }
    url.to_string()
}

fn usage(message: impl Into<String>) -> CliError {
    CliError::new(Code::InvalidUsage, message)
}

fn invalid(message: impl Into<String>) -> CliError {
    CliError::new(Code::InvalidTarget, message)
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
