//! `[agent]`: what agents may do. Files that nobody approved can only make that stricter, and an
//! organization bounds what anybody may ask for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cocode_core::{ApprovalPolicy, SandboxMode};

use super::parse::RawSettings;
use super::reader::Given;
use super::{Setting, SettingOrigin};

/// How often a model may be asked within one turn: at least, and at most.
pub(crate) const STEPS: (u64, u64) = (1, 10_000);
/// How full a context window may become, in percent: at least, and at most. The rest is for the reply.
pub(crate) const COMPACT_PERCENT: (u64, u64) = (1, 95);

/// Policies from the strictest to the least strict. [`ApprovalPolicy::Never`] is not among them: it asks
/// nobody, which is stricter in one respect and less strict in another.
const STRICTNESS: [ApprovalPolicy; 3] = [
    ApprovalPolicy::Untrusted,
    ApprovalPolicy::OnRequest,
    ApprovalPolicy::OnFailure,
];

/// `[agent]`.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSettings {
    /// When a person is asked.
    pub approval_policy: Setting<ApprovalPolicy>,
    /// What tools may touch.
    pub sandbox: Setting<SandboxMode>,
    /// Whether commands in the sandbox may use the network.
    pub network: Setting<bool>,
    /// Directories beside the workspace that may be written, as they are written in the file: absolute, or
    /// beginning with `~/`. See [`Self::writable_in`].
    pub writable_roots: Setting<Vec<String>>,
    /// What models are told besides.
    pub instructions: Option<Setting<String>>,
    /// How often a model may be asked within one turn.
    pub max_steps: Setting<u32>,
    /// Percent of the context window from which on a conversation is summed up.
    pub compact_percent: Setting<u8>,
    /// Other settings, by name.
    pub profiles: BTreeMap<String, AgentProfile>,
}

/// `[agent.profiles.NAME]`: what it gives counts in the place of what else is set.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentProfile {
    /// Where the entry begins.
    pub from: SettingOrigin,
    /// The model.
    pub model: Option<String>,
    /// The provider that has it.
    pub provider: Option<String>,
    /// When a person is asked.
    pub approval_policy: Option<ApprovalPolicy>,
    /// What tools may touch.
    pub sandbox: Option<SandboxMode>,
    /// Whether commands in the sandbox may use the network.
    pub network: Option<bool>,
    /// What models are told besides.
    pub instructions: Option<String>,
    /// How often a model may be asked within one turn.
    pub max_steps: Option<u32>,
}

/// What an organization lets anybody ask of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentBounds {
    /// The most that tools may touch; anything, if not given.
    pub max_sandbox: Option<Setting<SandboxMode>>,
    /// The approval policies that may be used, and with each those that ask more; all, if not given.
    pub approval_policies: Option<Setting<Vec<ApprovalPolicy>>>,
}

impl AgentSettings {
    /// The directories beside the workspace that may be written, for a user with this home.
    pub fn writable_in(&self, home: &Path) -> Vec<PathBuf> {
        let roots = self.writable_roots.value.iter();
        roots
            .map(|root| match root.strip_prefix("~/") {
                Some(rest) => home.join(rest),
                None => PathBuf::from(root),
            })
            .collect()
    }

    /// Takes over what a file says that nobody approved, as far as that is stricter. Gives the paths of
    /// what need not be mentioned: it counts, or nothing less strict does.
    pub(super) fn tighten(
        &mut self,
        settings: &RawSettings,
        origin: impl Fn(&crate::problem::Origin) -> SettingOrigin,
    ) -> Vec<&'static str> {
        let mut heard = Vec::new();
        for path in [APPROVAL_POLICY, SANDBOX, NETWORK] {
            let Some((given, place)) = settings.values.get(path) else {
                continue;
            };
            let from = Some(origin(place));
            let is_heard = match path {
                APPROVAL_POLICY => tighten(
                    &mut self.approval_policy,
                    policy_of(given),
                    from,
                    |theirs, ours| is_as_strict(*theirs, *ours),
                ),
                SANDBOX => tighten(
                    &mut self.sandbox,
                    sandbox_of(given),
                    from,
                    |theirs, ours| theirs <= ours,
                ),
                _ => tighten(&mut self.network, truth_of(given), from, |theirs, ours| {
                    theirs <= ours
                }),
            };
            heard.extend(is_heard.then_some(path));
        }
        heard
    }
}

/// The paths of what a file that nobody approved may make stricter.
pub(super) const APPROVAL_POLICY: &str = "agent.approval_policy";
pub(super) const SANDBOX: &str = "agent.sandbox";
pub(super) const NETWORK: &str = "agent.network";

/// Puts theirs in the place of ours if it is stricter. Tells whether it is at least as strict.
fn tighten<T: PartialEq>(
    ours: &mut Setting<T>,
    theirs: Option<T>,
    from: Option<SettingOrigin>,
    is_as_strict: impl FnOnce(&T, &T) -> bool,
) -> bool {
    let Some(theirs) = theirs else {
        return false;
    };
    if !is_as_strict(&theirs, &ours.value) {
        return false;
    }
    if theirs != ours.value {
        let value = theirs;
        *ours = Setting { value, from };
    }
    true
}

fn is_as_strict(one: ApprovalPolicy, other: ApprovalPolicy) -> bool {
    let rank = |policy| STRICTNESS.iter().position(|known| *known == policy);
    match (rank(one), rank(other)) {
        (Some(one), Some(other)) => one <= other,
        _ => one == other,
    }
}

pub(super) fn policy_of(given: &Given) -> Option<ApprovalPolicy> {
    match given {
        Given::Text(word) => word.parse().ok(),
        _ => None,
    }
}

pub(super) fn sandbox_of(given: &Given) -> Option<SandboxMode> {
    match given {
        Given::Text(word) => word.parse().ok(),
        _ => None,
    }
}

fn truth_of(given: &Given) -> Option<bool> {
    match given {
        Given::Boolean(truth) => Some(*truth),
        _ => None,
    }
}

impl AgentBounds {
    /// Nothing is written and everything is asked: what counts where a policy cannot be understood.
    pub(crate) fn strictest(from: &SettingOrigin) -> Self {
        let from = Some(from.clone());
        Self {
            max_sandbox: Some(Setting {
                value: SandboxMode::ReadOnly,
                from: from.clone(),
            }),
            approval_policies: Some(Setting {
                value: vec![ApprovalPolicy::Untrusted],
                from,
            }),
        }
    }

    /// Why a mode may not be used, in one sentence without its full stop.
    pub fn objection_to_sandbox(&self, mode: SandboxMode) -> Option<String> {
        let bound = self.max_sandbox.as_ref()?;
        (mode > bound.value).then(|| {
            let Setting { value, from } = bound;
            format!(
                "your organization allows no sandbox mode beyond `{value}`{}",
                written(from.as_ref())
            )
        })
    }

    /// Why an approval policy may not be used, in one sentence without its full stop.
    pub fn objection_to_policy(&self, policy: ApprovalPolicy) -> Option<String> {
        let allowed = self.approval_policies.as_ref()?;
        (!is_among(policy, &allowed.value)).then(|| {
            let words: Vec<_> = allowed.value.iter().map(|policy| policy.as_str()).collect();
            format!(
                "your organization does not allow the approval policy `{policy}`, only {}{}",
                words.join(", "),
                written(allowed.from.as_ref())
            )
        })
    }

    /// The same settings, within these bounds: a mode that is too high becomes the highest that is
    /// allowed, and a policy that is not allowed the next stricter one that is; if there is none, the
    /// strictest that is allowed. Profiles are left as they are: who uses one asks whether there is an
    /// objection.
    #[must_use]
    pub fn applied_to(&self, settings: &AgentSettings) -> AgentSettings {
        let mut settings = settings.clone();
        if let Some(bound) = &self.max_sandbox
            && settings.sandbox.value > bound.value
        {
            settings.sandbox = bound.clone();
        }
        if let Some(allowed) = &self.approval_policies
            && !is_among(settings.approval_policy.value, &allowed.value)
            && let Some(value) = instead_of(settings.approval_policy.value, &allowed.value)
        {
            let from = allowed.from.clone();
            settings.approval_policy = Setting { value, from };
        }
        settings
    }
}

/// Whether a policy is one of these, or stricter than one.
fn is_among(policy: ApprovalPolicy, allowed: &[ApprovalPolicy]) -> bool {
    allowed.iter().any(|one| is_as_strict(policy, *one))
}

/// What is used in the place of a policy that is not allowed.
fn instead_of(policy: ApprovalPolicy, allowed: &[ApprovalPolicy]) -> Option<ApprovalPolicy> {
    let known = STRICTNESS.iter().copied();
    let mut stricter = known.filter(|known| allowed.contains(known));
    let strictest = stricter.clone().next();
    let nearest = stricter.rfind(|known| is_as_strict(*known, policy));
    nearest.or(strictest).or(allowed.first().copied())
}

fn written(from: Option<&SettingOrigin>) -> String {
    from.map_or_else(String::new, |from| format!(", at {}", from.origin))
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
