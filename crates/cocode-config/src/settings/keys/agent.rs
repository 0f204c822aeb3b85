//! The keys of `[agent]`, in settings and in a policy.

use cocode_core::{ApprovalPolicy, SandboxMode};

use super::{Kind, SettingKey, key};
use crate::settings::agent::{COMPACT_PERCENT, STEPS};

/// The keys of `[agent]`.
pub(super) const AGENT: &[SettingKey] = &[
    key(
        "approval_policy",
        Kind::OneOf(ApprovalPolicy::WORDS),
        "When a person is asked (on-request): before everything but reading the workspace (untrusted), before \
         what the sandbox does not confine (on-request), only when something failed in the sandbox or is not \
         confined by it (on-failure), or never, so that what needs a question is not done.",
    ),
    key(
        "sandbox",
        Kind::OneOf(SandboxMode::WORDS),
        "What tools may touch (read-only): nothing is written, only the workspace is written, or whatever the \
         user may.",
    ),
    key(
        "network",
        Kind::Boolean,
        "Whether commands in the sandbox may use the network (false).",
    ),
    key(
        "writable_roots",
        Kind::Directories,
        "Directories beside the workspace that may be written in the mode workspace-write: absolute paths, or \
         such as begin with `~/`.",
    ),
    key(
        "instructions",
        Kind::Text,
        "What models are told besides the usual instructions.",
    ),
    key(
        "max_steps",
        Kind::Between(STEPS.0, STEPS.1),
        "How many times a model may be asked within one turn (100).",
    ),
    key(
        "compact_percent",
        Kind::Between(COMPACT_PERCENT.0, COMPACT_PERCENT.1),
        "A conversation is summed up when it takes so many percent of the context window (80).",
    ),
    key(
        "profiles",
        Kind::Named(AGENT_PROFILE),
        "Other settings for agents, by a name of your choice. Of two with one name the more important \
         file's counts, as a whole.",
    ),
];

/// The keys of `[agent.profiles.NAME]`.
const AGENT_PROFILE: &[SettingKey] = &[
    key("model", Kind::Text, "The model, whatever else is set."),
    key(
        "provider",
        Kind::Text,
        "The provider that has it: a name of `[providers]`.",
    ),
    key(
        "approval_policy",
        Kind::OneOf(ApprovalPolicy::WORDS),
        "When a person is asked, whatever [agent] says.",
    ),
    key(
        "sandbox",
        Kind::OneOf(SandboxMode::WORDS),
        "What tools may touch, whatever [agent] says.",
    ),
    key(
        "network",
        Kind::Boolean,
        "Whether commands in the sandbox may use the network, whatever [agent] says.",
    ),
    key(
        "instructions",
        Kind::Text,
        "What models are told besides, in the place of what [agent] says.",
    ),
    key(
        "max_steps",
        Kind::Between(STEPS.0, STEPS.1),
        "How many times a model may be asked within one turn, whatever [agent] says.",
    ),
];

/// The keys of `[agent]` in a policy.
pub(crate) const POLICY_AGENT: &[SettingKey] = &[
    key(
        "max_sandbox",
        Kind::OneOf(SandboxMode::WORDS),
        "The most that tools of an agent may touch, whoever asks for more.",
    ),
    key(
        "approval_policies",
        Kind::SomeOf(ApprovalPolicy::WORDS),
        "The approval policies that may be used. With one of them, those that ask more may be used as well; \
         `never` has to be named itself.",
    ),
];
