//! Errors of commands as refusals of the API.

use cocode_admin::{Refusal, RefusalStatus};
use cocode_config::Config;

use crate::configured;
use crate::error::{CliError, Code, Exit};
use crate::gateway::servers::Present;

/// What stable codes mean to somebody who comes by HTTP.
const STATUSES: &[(Code, RefusalStatus)] = &[
    (Code::UnknownServer, RefusalStatus::Unknown),
    (Code::UnknownToken, RefusalStatus::Unknown),
    (Code::UnknownTool, RefusalStatus::Unknown),
    (Code::AlreadyThere, RefusalStatus::Conflict),
    (Code::BlockedByPolicy, RefusalStatus::Conflict),
    (Code::PendingTrust, RefusalStatus::Conflict),
    (Code::ServerDisabled, RefusalStatus::Conflict),
    (Code::PermissionDenied, RefusalStatus::Forbidden),
    (Code::InvalidUsage, RefusalStatus::Unfit),
    (Code::InvalidConfig, RefusalStatus::Unfit),
    (Code::InvalidTarget, RefusalStatus::Unfit),
    (Code::InvalidArguments, RefusalStatus::Unfit),
    (Code::FileError, RefusalStatus::Unavailable),
    (Code::SetupFailed, RefusalStatus::Unavailable),
];

/// Why something was not done, for whoever asked for it by the API.
pub(super) fn refusal(error: CliError) -> Refusal {
    let status = STATUSES
        .iter()
        .find(|(code, _)| code.as_str() == error.code);
    let status = status.map_or_else(|| by_exit(error.exit), |(_, status)| *status);
    let message = told(&error);
    Refusal::new(status, error.code, message).hints(error.hints)
}

/// What happened and why, in one sentence.
pub(super) fn told(error: &CliError) -> String {
    let mut parts = vec![error.message.as_str()];
    parts.extend(error.causes.iter().map(String::as_str));
    parts.join(": ")
}

fn by_exit(exit: Exit) -> RefusalStatus {
    match exit {
        Exit::Tool | Exit::Server | Exit::Auth | Exit::Timeout => RefusalStatus::ServerFailed,
        Exit::Usage => RefusalStatus::Unfit,
        Exit::Blocked => RefusalStatus::Conflict,
        Exit::Ok | Exit::HungUp | Exit::Interrupted | Exit::Terminated => {
            RefusalStatus::Unavailable
        }
    }
}

/// As an error about how things are, whatever its kind: where nothing was asked for that could be
/// unfit.
pub(super) fn conflict(error: CliError) -> Refusal {
    let refusal = refusal(error);
    let status = match refusal.status {
        RefusalStatus::Unfit | RefusalStatus::Forbidden => RefusalStatus::Conflict,
        status => status,
    };
    Refusal { status, ..refusal }
}

/// Why a server is not served.
pub(super) fn not_served(present: &Present, name: &str) -> Refusal {
    conflict(withheld(&present.config, name))
}

/// Why a server that the configuration may know is not among those that are served.
pub(super) fn withheld(config: &Config, name: &str) -> CliError {
    let Some(server) = config.servers.get(name) else {
        return configured::unknown(name, config);
    };
    let why = configured::usable(name, server).err();
    why.unwrap_or_else(|| {
        let message = format!("server `{name}` is not among those that this gateway serves");
        CliError::new(Code::ServerDisabled, message).hint(
            "`--servers` or the profile chose others when the gateway was started, or a built-in \
             server has its name",
        )
    })
}

#[cfg(test)]
mod tests {
    use cocode_admin::RefusalStatus;

    use super::{conflict, refusal};
    use crate::error::{CliError, Code, Exit};

    #[test]
    fn errors_keep_their_codes_causes_and_hints_and_get_a_status() {
        let error = CliError::new(Code::AlreadyThere, "it is there").hint("take another name");
        let told = refusal(error.because(&std::io::Error::other("on the disk")));
        assert_eq!(told.status, RefusalStatus::Conflict);
        assert_eq!(told.code, "already-there");
        assert_eq!(told.message, "it is there: on the disk");
        assert_eq!(told.hints, ["take another name"]);
        for (exit, code, expected) in [
            (Exit::Auth, "auth-required", RefusalStatus::ServerFailed),
            (
                Exit::Timeout,
                "connect-timeout",
                RefusalStatus::ServerFailed,
            ),
            (Exit::Usage, "not-cached", RefusalStatus::Unfit),
            (Exit::Blocked, "something-else", RefusalStatus::Conflict),
        ] {
            assert_eq!(refusal(CliError::with(exit, code, "no")).status, expected);
        }
        let unfit = CliError::new(Code::InvalidConfig, "no");
        assert_eq!(conflict(unfit).status, RefusalStatus::Conflict);
    }
}
