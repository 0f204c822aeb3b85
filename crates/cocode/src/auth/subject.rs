//! Which server somebody wants to sign in to or out of: one of a file, or an address.

use cocode_client::Url;
use cocode_config::State;
use cocode_core::{Reach, Remote, ServerSpec};

use crate::admission::{Way, unlisted};
use crate::args::TargetArgs;
use crate::configured;
use crate::environment;
use crate::error::{CliError, Code};
use crate::target::{self, is_address, shown};
use crate::text::plain;
use crate::workspace::Workspace;

/// A server with an address.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// How messages and command lines call it.
    pub(crate) name: String,
    pub(crate) url: Url,
    pub(crate) remote: Remote,
    /// The whole specification of a server that stands in a file and may be used.
    pub(crate) spec: Option<Box<ServerSpec>>,
}

/// The server to sign in to. It must be one that may be contacted, and that lets people in by a
/// sign-in.
pub(super) fn to_sign_in(word: &str, workspace: &Workspace) -> Result<Subject, CliError> {
    let subject = if is_address(word) {
        let subject = at(word)?;
        let args = TargetArgs {
            url: Some(word.to_owned()),
            ..TargetArgs::default()
        };
        if let Some(reason) = workspace
            .config()?
            .refuses_unlisted(&target::unlisted(&args)?)
        {
            return Err(configured::blocked("this server", &reason));
        }
        subject
    } else {
        let spec = configured::ready(word, workspace)?;
        return with_spec(spec);
    };
    signing_in(subject)
}

/// A server of a file that may be used, to sign in to.
pub(crate) fn with_spec(spec: Box<ServerSpec>) -> Result<Subject, CliError> {
    let subject = of_spec(spec.name.as_str(), &spec)?;
    signing_in(Subject {
        spec: Some(spec),
        ..subject
    })
}

/// The same server, if it lets people in by a sign-in.
fn signing_in(subject: Subject) -> Result<Subject, CliError> {
    let name = &subject.name;
    let file = format!("`cocode mcp explain {name}` shows the file");
    match Way::of(&subject.remote) {
        Way::OAuth(_) => Ok(subject),
        Way::Fixed(key) => Err(usage(format!(
            "server `{name}` is let in by `{key}` of its file, not by signing in"
        ))
        .hint(format!("to sign in instead, take `{key}` out; {file}"))),
        Way::Helper(_) => Err(usage(format!(
            "server `{name}` is let in by what its `headers_helper` prints, not by signing in"
        ))
        .hint(format!("to sign in instead, take it out; {file}"))),
        Way::Nothing => Err(usage(format!(
            "server `{name}` is a socket, and nobody signs in to those"
        ))),
    }
}

/// The server to sign out of. It need not be one that may be used.
pub(crate) fn to_sign_out(word: &str, workspace: &Workspace) -> Result<Subject, CliError> {
    if is_address(word) {
        return at(word);
    }
    let config = workspace.config()?;
    let Some(server) = config.servers.get(word) else {
        return Err(configured::unknown(word, config).hint(
            "a server that is in no file any more is named by its address: `cocode mcp auth status`",
        ));
    };
    if let State::Ready(spec) = &server.state {
        return of_spec(word, spec);
    }
    let spec = server.winner.specify(&environment::text_variable);
    let spec = spec.map_err(|_problems| {
        let message = format!("the address of server `{}` cannot be told", plain(word));
        CliError::new(Code::InvalidConfig, message)
            .hint(format!("`cocode mcp explain {word}` says why"))
    })?;
    let mut subject = of_spec(word, &spec)?;
    // Nothing of what it says has been approved, and its address is all that is needed.
    subject.remote = unlisted(&subject.url);
    Ok(subject)
}

fn at(word: &str) -> Result<Subject, CliError> {
    let bad = || {
        CliError::new(Code::InvalidTarget, "this is no address to sign in at")
            .hint("it begins with https://, http://, wss:// or ws://")
    };
    let url = Url::parse(word).map_err(|_bad| bad())?;
    if url.scheme() == "unix" {
        return Err(bad());
    }
    Ok(Subject {
        name: shown(&url),
        remote: unlisted(&url),
        url,
        spec: None,
    })
}

fn of_spec(name: &str, spec: &ServerSpec) -> Result<Subject, CliError> {
    let Reach::Remote(remote) = &spec.reach else {
        return Err(usage(format!(
            "server `{name}` is a program of this machine, and nobody signs in to those"
        ))
        .hint(format!(
            "what it has to know is in `env` and `env_vars` of its file: `cocode mcp explain {name}`"
        )));
    };
    let url = Url::parse(&remote.url).map_err(|_bad| {
        let message = format!("server `{name}`: its `url` is no URL");
        CliError::new(Code::InvalidTarget, message)
    })?;
    Ok(Subject {
        name: name.to_owned(),
        url,
        remote: (**remote).clone(),
        spec: None,
    })
}

fn usage(message: String) -> CliError {
    CliError::new(Code::InvalidUsage, message)
}
