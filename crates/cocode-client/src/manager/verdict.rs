//! What to do after a server failed: the decision alone.

use std::time::Duration;

use cocode_wire::{CredentialsErrorKind, LinkError, OpenError};

use super::connector::ReachErrorKind;
use super::state::Cause;
use crate::error::{ConnectError, RequestError, Retry};

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Wait until somebody has signed in.
    NeedsAuth,
    /// Wait until somebody has registered a client.
    NeedsClientRegistration,
    /// Try again, after at least so long if the server said so.
    TryAgain(Option<Duration>),
    /// Trying again brings the same.
    GiveUp,
}

/// Decides. A server that worked before is tried again after failures that would otherwise settle
/// it: it may be in the middle of its own start.
pub(crate) fn after(cause: &Cause, worked_before: bool) -> Next {
    match cause {
        Cause::Reach(error) => match error.kind {
            ReachErrorKind::NeedsAuth => Next::NeedsAuth,
            ReachErrorKind::NeedsClientRegistration => Next::NeedsClientRegistration,
            ReachErrorKind::Temporary => Next::TryAgain(None),
            ReachErrorKind::Unusable => Next::GiveUp,
        },
        Cause::Connect(error) => after_connect(error, worked_before),
        Cause::Lost(_) => Next::TryAgain(None),
        Cause::Request(error) => match &**error {
            RequestError::Link { error, .. } if unadmitted(error).is_some() => {
                unadmitted(error).unwrap_or(Next::GiveUp)
            }
            other => Next::TryAgain(other.retry_after()),
        },
    }
}

fn after_connect(error: &ConnectError, worked_before: bool) -> Next {
    match error {
        ConnectError::Open(OpenError::Link(error))
        | ConnectError::Handshake {
            error: RequestError::Link { error, .. },
            ..
        } if unadmitted(error).is_some() => unadmitted(error).unwrap_or(Next::GiveUp),
        // The program is not there, or the two have no revision in common.
        ConnectError::Open(
            OpenError::Spawn(_) | OpenError::Target(_) | OpenError::HttpSetup(_),
        )
        | ConnectError::Version { .. } => Next::GiveUp,
        other if worked_before || other.retry() != Retry::Pointless => {
            let retry_after = match other {
                ConnectError::Handshake { error, .. } => error.retry_after(),
                ConnectError::Open(OpenError::Link(LinkError::Status { retry_after, .. })) => {
                    retry_after.map(Duration::from_secs)
                }
                _ => None,
            };
            Next::TryAgain(retry_after)
        }
        _ => Next::GiveUp,
    }
}

/// Whether somebody has to do something before the server lets us in.
pub(crate) fn needs_somebody(error: &LinkError) -> bool {
    match error {
        LinkError::AuthRequired(_) => true,
        LinkError::Credentials(error) => is_for_somebody(error.kind),
        _ => false,
    }
}

pub(crate) fn is_for_somebody(kind: CredentialsErrorKind) -> bool {
    matches!(
        kind,
        CredentialsErrorKind::NeedsAuth | CredentialsErrorKind::NeedsClientRegistration
    )
}

/// Whether the server does not let us in, so that a sign-in from elsewhere may change that.
pub(crate) fn is_unadmitted(cause: &Cause) -> bool {
    match cause {
        Cause::Reach(error) => matches!(
            error.kind,
            ReachErrorKind::NeedsAuth | ReachErrorKind::NeedsClientRegistration
        ),
        Cause::Connect(error) => match &**error {
            ConnectError::Open(OpenError::Link(error))
            | ConnectError::Handshake {
                error: RequestError::Link { error, .. },
                ..
            } => unadmitted(error).is_some(),
            _ => false,
        },
        Cause::Request(error) => match &**error {
            RequestError::Link { error, .. } => unadmitted(error).is_some(),
            _ => false,
        },
        Cause::Lost(_) => false,
    }
}

/// What to do about a server that does not let us in, if that is what is wrong.
fn unadmitted(error: &LinkError) -> Option<Next> {
    match error {
        LinkError::AuthRequired(_) => Some(Next::NeedsAuth),
        LinkError::Credentials(error) => Some(match error.kind {
            CredentialsErrorKind::NeedsAuth => Next::NeedsAuth,
            CredentialsErrorKind::NeedsClientRegistration => Next::NeedsClientRegistration,
            CredentialsErrorKind::Temporary => Next::TryAgain(None),
            _ => Next::GiveUp,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use cocode_wire::{
        Challenge, Closed, CredentialsError, CredentialsErrorKind, LinkError, OpenError,
    };

    use super::{Next, after};
    use crate::error::{ConnectError, RequestError};
    use crate::manager::state::Cause;

    fn handshake(error: LinkError) -> Cause {
        Cause::Connect(Arc::new(ConnectError::Handshake {
            error: RequestError::Link {
                method: "initialize".into(),
                error,
            },
            stderr: Vec::new(),
            noise: Vec::new(),
        }))
    }

    fn status(status: u16, retry_after: Option<u64>) -> Cause {
        handshake(LinkError::Status {
            status,
            body: String::new(),
            rpc: None,
            retry_after,
        })
    }

    #[test]
    fn each_failure_has_its_consequence() {
        let challenge = Challenge {
            status: 401,
            www_authenticate: Vec::new(),
            auth_server: None,
        };
        let version = ConnectError::Version {
            offered: "1".into(),
            wanted: "2".into(),
        };
        let target = ConnectError::Open(OpenError::Target("none".into()));
        let credentials =
            |kind| handshake(LinkError::Credentials(CredentialsError::new(kind, "none")));
        let table = [
            (
                credentials(CredentialsErrorKind::NeedsAuth),
                Next::NeedsAuth,
                Next::NeedsAuth,
            ),
            (
                credentials(CredentialsErrorKind::NeedsClientRegistration),
                Next::NeedsClientRegistration,
                Next::NeedsClientRegistration,
            ),
            (
                credentials(CredentialsErrorKind::Temporary),
                Next::TryAgain(None),
                Next::TryAgain(None),
            ),
            (
                credentials(CredentialsErrorKind::Unusable),
                Next::GiveUp,
                Next::GiveUp,
            ),
            (
                handshake(LinkError::AuthRequired(challenge)),
                Next::NeedsAuth,
                Next::NeedsAuth,
            ),
            (status(404, None), Next::GiveUp, Next::TryAgain(None)),
            (
                status(500, None),
                Next::TryAgain(None),
                Next::TryAgain(None),
            ),
            (
                status(503, Some(7)),
                Next::TryAgain(Some(Duration::from_secs(7))),
                Next::TryAgain(Some(Duration::from_secs(7))),
            ),
            (
                Cause::Connect(Arc::new(version)),
                Next::GiveUp,
                Next::GiveUp,
            ),
            (Cause::Connect(Arc::new(target)), Next::GiveUp, Next::GiveUp),
            (
                Cause::Lost(Closed::ByPeer),
                Next::TryAgain(None),
                Next::TryAgain(None),
            ),
        ];
        for (cause, at_first, later) in table {
            assert_eq!(after(&cause, false), at_first, "{cause:?}");
            assert_eq!(after(&cause, true), later, "{cause:?}");
        }
    }
}
