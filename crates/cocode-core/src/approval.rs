//! When an agent asks before it uses a tool, and what its tools may touch.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::permission::{Hints, Verdict};

/// When a person is asked before an agent does something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ApprovalPolicy {
    /// Before everything but what only reads the workspace.
    Untrusted,
    /// Before what the sandbox does not confine, and where the model asks for more than it allows.
    #[default]
    OnRequest,
    /// Before what failed in the sandbox is done again without it, and what it does not confine.
    OnFailure,
    /// Never: what may not be done without asking is not done.
    Never,
}

/// What the tools of an agent may touch, from the least to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SandboxMode {
    /// Nothing is written.
    #[default]
    ReadOnly,
    /// Only the workspace is written.
    WorkspaceWrite,
    /// Whatever the user may.
    DangerFullAccess,
}

/// No policy or mode has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no {what} `{given}`: use {words}")]
pub struct UnknownWord {
    what: &'static str,
    given: String,
    words: String,
}

/// What a tool does, as far as asking about it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Reads the workspace.
    Reading,
    /// Writes files of the workspace.
    Writing,
    /// Runs a command, in the sandbox.
    Command,
    /// Runs a command without the sandbox, because the model asks for that.
    UnconfinedCommand,
    /// Calls a tool of a server, which no sandbox of ours confines.
    Server(Hints),
    /// Calls a tool of a remote server after the conversation may have read data outside of its workspace.
    Disclosure,
}

/// What the rules of user and organization say of the use of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruled {
    /// Nothing: no rule is about it, and nobody set a default.
    Nothing,
    /// This.
    By(Verdict),
}

/// What happens to the use of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// It goes ahead.
    Granted,
    /// A person is asked, for this reason.
    Needed(Why),
    /// It does not happen, for this reason.
    Refused(Why),
}

/// Why a person is asked, or something does not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A rule says so.
    Rule,
    /// The policy wants everything asked that does more than read.
    Untrusted,
    /// It writes, and the sandbox lets nothing be written.
    ReadOnly,
    /// It is to run without the sandbox.
    Unconfined,
    /// It is a tool of a server that does not say that it only reads.
    Server,
    /// It could send data from outside of the workspace to a remote server.
    Disclosure,
}

/// Decides about the use of a tool. Rules come first; where they are silent, policy and mode decide.
pub fn approve(policy: ApprovalPolicy, mode: SandboxMode, doing: Doing, ruled: Ruled) -> Approval {
    let wanted = match ruled {
        Ruled::By(Verdict::Deny) => return Approval::Refused(Why::Rule),
        Ruled::By(Verdict::Ask) => Some(Why::Rule),
        // A rule lets a tool run; it does not take the sandbox away.
        Ruled::By(Verdict::Allow) => match doing {
            Doing::Writing if mode == SandboxMode::ReadOnly => Some(Why::ReadOnly),
            Doing::UnconfinedCommand if mode < SandboxMode::DangerFullAccess => {
                Some(Why::Unconfined)
            }
            _ => None,
        },
        Ruled::Nothing => by_policy(policy, mode, doing),
    };
    match wanted {
        None => Approval::Granted,
        Some(why) if policy == ApprovalPolicy::Never => Approval::Refused(why),
        Some(why) => Approval::Needed(why),
    }
}

/// Why the policy wants a person asked, if it does.
fn by_policy(policy: ApprovalPolicy, mode: SandboxMode, doing: Doing) -> Option<Why> {
    let is_free = mode == SandboxMode::DangerFullAccess;
    if policy == ApprovalPolicy::Untrusted {
        return (doing != Doing::Reading).then_some(Why::Untrusted);
    }
    match doing {
        Doing::Reading | Doing::Command => None,
        Doing::Writing => (mode == SandboxMode::ReadOnly).then_some(Why::ReadOnly),
        Doing::UnconfinedCommand => (!is_free).then_some(Why::Unconfined),
        Doing::Disclosure => Some(Why::Disclosure),
        Doing::Server(hints) if hints.is_read_only() && !hints.is_destructive() => None,
        // Where nobody can be asked, whoever allows writing has configured these servers for that.
        Doing::Server(_) if policy == ApprovalPolicy::Never => {
            (mode == SandboxMode::ReadOnly).then_some(Why::Server)
        }
        Doing::Server(_) => (!is_free).then_some(Why::Server),
    }
}

macro_rules! words {
    ($name:ident, $what:literal, { $($variant:ident = $word:literal,)* }) => {
        impl $name {
            /// Every one of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            /// Their words in files and commands, in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The word that files and commands use.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(UnknownWord {
                        what: $what,
                        given: word.chars().take(40).collect(),
                        words: Self::WORDS.join(", "),
                    }),
                }
            }
        }
    };
}

words!(ApprovalPolicy, "approval policy", {
    Untrusted = "untrusted",
    OnRequest = "on-request",
    OnFailure = "on-failure",
    Never = "never",
});

words!(SandboxMode, "sandbox mode", {
    ReadOnly = "read-only",
    WorkspaceWrite = "workspace-write",
    DangerFullAccess = "danger-full-access",
});

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Rule => "a permission rule says so",
            Self::Untrusted => {
                "the approval policy `untrusted` lets nothing run unasked that does more than read"
            }
            Self::ReadOnly => "it writes, and the sandbox mode is `read-only`",
            Self::Unconfined => "it is to run outside of the sandbox",
            Self::Server => "it is a tool of a server that does not say that it only reads",
            Self::Disclosure => {
                "its server is remote, and this conversation may have read data outside of its workspace: it \
                 has run a command or used a local server (an allow rule for the tool, or `trust_annotations = \
                 true` in the server's entry, permits this unasked)"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Approval, ApprovalPolicy as Policy, Doing, Hints, Ruled, SandboxMode as Mode, Verdict, Why,
        approve,
    };

    const READS: Doing = Doing::Server(Hints {
        read_only: Some(true),
        destructive: None,
    });
    const SILENT: Doing = Doing::Server(Hints {
        read_only: None,
        destructive: None,
    });

    fn check(policy: Policy, mode: Mode, doing: Doing, expected: Approval) {
        let decided = approve(policy, mode, doing, Ruled::Nothing);
        assert_eq!(decided, expected, "{policy} {mode} {doing:?}");
    }

    #[test]
    fn what_only_reads_the_workspace_is_never_asked_about() {
        for policy in Policy::ALL {
            for mode in Mode::ALL {
                check(*policy, *mode, Doing::Reading, Approval::Granted);
            }
        }
    }

    #[test]
    fn untrusted_asks_before_everything_else() {
        for doing in [Doing::Writing, Doing::Command, READS, SILENT] {
            let asked = Approval::Needed(Why::Untrusted);
            check(Policy::Untrusted, Mode::DangerFullAccess, doing, asked);
        }
    }

    #[test]
    fn what_the_sandbox_confines_runs_unasked() {
        for policy in [Policy::OnRequest, Policy::OnFailure, Policy::Never] {
            for mode in Mode::ALL {
                check(policy, *mode, Doing::Command, Approval::Granted);
            }
            check(
                policy,
                Mode::WorkspaceWrite,
                Doing::Writing,
                Approval::Granted,
            );
        }
    }

    #[test]
    fn what_leaves_the_sandbox_is_asked_about_or_refused() {
        let (ask, refuse) = (Approval::Needed, Approval::Refused);
        check(
            Policy::OnRequest,
            Mode::ReadOnly,
            Doing::Writing,
            ask(Why::ReadOnly),
        );
        check(
            Policy::Never,
            Mode::ReadOnly,
            Doing::Writing,
            refuse(Why::ReadOnly),
        );
        let doing = Doing::UnconfinedCommand;
        check(
            Policy::OnRequest,
            Mode::WorkspaceWrite,
            doing,
            ask(Why::Unconfined),
        );
        check(
            Policy::Never,
            Mode::WorkspaceWrite,
            doing,
            refuse(Why::Unconfined),
        );
        check(
            Policy::Never,
            Mode::DangerFullAccess,
            doing,
            Approval::Granted,
        );
    }

    #[test]
    fn tools_of_servers_run_unasked_if_they_only_read() {
        for mode in Mode::ALL {
            check(Policy::OnRequest, *mode, READS, Approval::Granted);
            check(Policy::Never, *mode, READS, Approval::Granted);
        }
        check(
            Policy::OnRequest,
            Mode::WorkspaceWrite,
            SILENT,
            Approval::Needed(Why::Server),
        );
        check(
            Policy::Never,
            Mode::ReadOnly,
            SILENT,
            Approval::Refused(Why::Server),
        );
        check(
            Policy::Never,
            Mode::WorkspaceWrite,
            SILENT,
            Approval::Granted,
        );
    }

    #[test]
    fn disclosure_is_asked_about_or_refused_in_every_mode() {
        for mode in Mode::ALL {
            for policy in [Policy::OnRequest, Policy::OnFailure] {
                check(
                    policy,
                    *mode,
                    Doing::Disclosure,
                    Approval::Needed(Why::Disclosure),
                );
            }
            check(
                Policy::Never,
                *mode,
                Doing::Disclosure,
                Approval::Refused(Why::Disclosure),
            );
        }
    }

    #[test]
    fn rules_come_before_the_policy_and_never_take_the_sandbox_away() {
        let ruled = |verdict, policy, mode, doing| approve(policy, mode, doing, Ruled::By(verdict));
        let free = Mode::DangerFullAccess;
        let denied = ruled(Verdict::Deny, Policy::OnRequest, free, Doing::Reading);
        assert_eq!(denied, Approval::Refused(Why::Rule));
        let asked = ruled(Verdict::Ask, Policy::OnRequest, free, Doing::Reading);
        assert_eq!(asked, Approval::Needed(Why::Rule));
        let nobody = ruled(Verdict::Ask, Policy::Never, free, Doing::Reading);
        assert_eq!(nobody, Approval::Refused(Why::Rule));
        let allowed = ruled(Verdict::Allow, Policy::Untrusted, Mode::ReadOnly, SILENT);
        assert_eq!(allowed, Approval::Granted);
        let written = ruled(
            Verdict::Allow,
            Policy::Never,
            Mode::ReadOnly,
            Doing::Writing,
        );
        assert_eq!(written, Approval::Refused(Why::ReadOnly));
    }

    #[test]
    fn words_are_read_back() {
        for policy in Policy::ALL {
            assert_eq!(policy.as_str().parse(), Ok(*policy));
        }
        for mode in Mode::ALL {
            assert_eq!(mode.as_str().parse(), Ok(*mode));
        }
        let error = "sometimes".parse::<Policy>().unwrap_err().to_string();
        assert!(
            error.contains("`sometimes`") && error.contains("on-request"),
            "{error}"
        );
    }
}
