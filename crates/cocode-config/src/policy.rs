//! What an organization allows: `policy.toml`, and the verdict about each server.
//!
//! - A server that a `[[denied]]` matcher matches is blocked, whatever else is written.
//! - If there is an `allowed` list, even an empty one, a server that no matcher in it matches is
//!   blocked.
//! - `allowedMcpServers` and `deniedMcpServers`, the spelling of Claude Code, count beside these lists:
//!   a server has to be allowed by both. If `allowedMcpServers` has an entry by command, programs are not
//!   allowed by their name alone; the same holds for entries by URL and remote servers.
//! - A matcher matches if all of its `name`, `command` and `url` do. Nothing in the file is expanded,
//!   and the server is compared as it would be reached, after its own variables were.
//! - A matcher by `command` allows exactly that program: not with variables that can change what is
//!   run (unless `allow_env` has them), not in another directory (unless `cwd` names it), and a
//!   relative path only together with its `cwd`. One by `command` or `url` allows no other programs
//!   for secrets and headers (unless `allow_helpers` is true).
//!
//! The file fails closed: if it cannot be read, or anything in it cannot be understood, every server
//! is blocked, every tool denied, agents are as bounded as they can be, and gateways let nobody in whom they do not know. Only a file that does not exist means that there is no policy.

mod parse;
mod variables;

use std::path::{Path, PathBuf};

use cocode_core::{
    Authority, Program, Reach, Rule, RuleEntry, RuleSet, ServerSpec, Template, TemplatePart,
    Verdict, Wildcard,
};

use crate::problem::{Origin, Problem};
use crate::settings::{AgentBounds, RawPermissions, SettingOrigin};
use crate::url_pattern::UrlPattern;

/// The scope that rules of a policy show.
pub const POLICY_SCOPE: &str = "policy";

/// What an organization allows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy(State);

/// What a policy says about a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum PolicyVerdict {
    /// It may be used.
    Allowed,
    /// It may not.
    Blocked {
        /// Why, in one sentence without its full stop, with the place of the rule in it.
        reason: String,
        /// Where the rule is.
        origin: Origin,
    },
}

#[derive(Clone, Debug, Default, PartialEq)]
enum State {
    #[default]
    Absent,
    /// What is wrong, and where the first of it is.
    Broken {
        origin: Origin,
        problems: Vec<Problem>,
    },
    Usable(Box<Rules>),
}

#[derive(Clone, Debug, PartialEq)]
struct Rules {
    allowed: Vec<AllowList>,
    denied: Vec<Matcher>,
    permissions: RawPermissions,
    agent: AgentBounds,
    /// Where that is written, if clients of gateways have to say who they are.
    requires_authentication: Option<Origin>,
}

/// A list of allowed servers; without a matcher in it, it allows none.
#[derive(Clone, Debug, PartialEq)]
struct AllowList {
    origin: Origin,
    matchers: Vec<Matcher>,
    /// Whether names alone do not count where the list has commands, or URLs.
    restricts_names: bool,
}

/// One table of `allowed` or `denied`.
#[derive(Clone, Debug, PartialEq)]
struct Matcher {
    origin: Origin,
    name: Option<Wildcard>,
    command: Option<Vec<String>>,
    url: Option<UrlPattern>,
    reason: Option<String>,
    allow_env: Vec<Wildcard>,
    cwd: Option<PathBuf>,
    allow_helpers: bool,
}

impl Policy {
    /// No policy: everything is allowed.
    pub fn none() -> Self {
        Self::default()
    }

    /// The policy in a file. Never fails: what cannot be used blocks everything.
    pub fn read(path: &Path) -> Self {
        parse::read(path)
    }

    /// The policy in a text that was read from a file.
    pub fn parse(text: &str, path: &Path) -> Self {
        parse::text(text, path)
    }

    /// Whether there is a policy, even a broken one.
    pub fn is_present(&self) -> bool {
        self.0 != State::Absent
    }

    /// Whether the policy cannot be used, and so blocks everything.
    pub fn is_broken(&self) -> bool {
        matches!(self.0, State::Broken { .. })
    }

    /// What is wrong with the file.
    pub fn problems(&self) -> &[Problem] {
        match &self.0 {
            State::Broken { problems, .. } => problems,
            State::Absent | State::Usable(_) => &[],
        }
    }

    /// Rules that allow more than they seem to: where a command is a bare name, `PATH` says which
    /// program that is, and `PATH` is the user's.
    pub fn warnings(&self) -> Vec<Problem> {
        let State::Usable(rules) = &self.0 else {
            return Vec::new();
        };
        let allowed = rules.allowed.iter().flat_map(|list| &list.matchers);
        let bare = allowed.filter_map(|matcher| {
            let command = matcher.command.as_ref()?.first()?;
            let problem = bare_command(matcher.origin.clone(), command)?;
            Some(problem.key("command"))
        });
        bare.collect()
    }

    /// Whether a server may be used. The server is as it would be reached, nothing left to expand.
    pub fn verdict(&self, spec: &ServerSpec) -> PolicyVerdict {
        let rules = match &self.0 {
            State::Absent => return PolicyVerdict::Allowed,
            State::Broken { origin, problems } => return blocked_by_broken(origin, problems),
            State::Usable(rules) => rules,
        };
        if let Some(matcher) = rules.denied.iter().find(|matcher| matcher.denies(spec)) {
            let reason = format!("it is denied by the rule at {}", matcher.origin);
            return matcher.blocked(reason);
        }
        let mut verdicts = rules.allowed.iter().map(|list| list.verdict(spec));
        verdicts
            .find(|verdict| !verdict.is_allowed())
            .unwrap_or(PolicyVerdict::Allowed)
    }

    /// What anybody may ask of an agent. A broken policy allows the least that there is.
    pub fn agent_bounds(&self) -> AgentBounds {
        match &self.0 {
            State::Absent => AgentBounds::default(),
            State::Broken { origin, .. } => AgentBounds::strictest(&place(origin)),
            State::Usable(rules) => rules.agent.clone(),
        }
    }

    /// Whether clients of every gateway have to say who they are, and where that is written. A broken
    /// policy may have wanted it.
    pub fn requires_authentication(&self) -> Option<SettingOrigin> {
        match &self.0 {
            State::Absent => None,
            State::Broken { origin, .. } => Some(place(origin)),
            State::Usable(rules) => rules.requires_authentication.as_ref().map(place),
        }
    }

    /// Adds the rules about tools. A broken policy denies every tool.
    pub(crate) fn add_rules(&self, set: &mut RuleSet<SettingOrigin>) {
        let authority = Authority::Organization;
        match &self.0 {
            State::Absent => {}
            State::Broken { origin, .. } => {
                set.set_default(Verdict::Deny, authority, place(origin));
                set.push(RuleEntry {
                    kind: Verdict::Deny,
                    authority,
                    rule: Rule::everything(),
                    origin: place(origin),
                });
            }
            State::Usable(rules) => {
                let written = rules.permissions.rules.iter();
                set.extend(written.map(|(kind, rule, origin)| RuleEntry {
                    kind: *kind,
                    authority,
                    rule: rule.clone(),
                    origin: place(origin),
                }));
                if let Some((verdict, origin)) = &rules.permissions.default {
                    set.set_default(*verdict, authority, place(origin));
                }
            }
        }
    }

    fn broken(origin: Origin, problems: Vec<Problem>) -> Self {
        Self(State::Broken { origin, problems })
    }
}

/// As other settings tell where they are.
fn place(origin: &Origin) -> SettingOrigin {
    SettingOrigin {
        scope: POLICY_SCOPE,
        origin: origin.clone(),
    }
}

impl PolicyVerdict {
    /// Whether the server may be used.
    pub fn is_allowed(&self) -> bool {
        *self == Self::Allowed
    }
}

/// What to say of a command of the organization, if its program is whatever the user's `PATH` finds.
pub(crate) fn bare_command(origin: Origin, command: &str) -> Option<Problem> {
    if command.contains('/') {
        return None;
    }
    let message = format!("`{command}` is whatever program the user's PATH finds under this name");
    Some(Problem::warning(origin, message).hint("write the absolute path of the program"))
}

fn blocked_by_broken(origin: &Origin, problems: &[Problem]) -> PolicyVerdict {
    let file = origin.file.display();
    let reason = match problems.first() {
        Some(problem) => {
            format!("every server is blocked because the policy cannot be used: {problem}")
        }
        None => format!("every server is blocked because the policy {file} cannot be used"),
    };
    let origin = origin.clone();
    PolicyVerdict::Blocked { reason, origin }
}

impl AllowList {
    fn verdict(&self, spec: &ServerSpec) -> PolicyVerdict {
        let needs_more = self.restricts_names
            && self.matchers.iter().any(|matcher| match &spec.reach {
                Reach::Program(_) => matcher.command.is_some(),
                Reach::Remote(_) => matcher.url.is_some(),
            });
        let counts = |matcher: &&Matcher| !needs_more || matcher.name.is_none();
        let mut objection = None;
        let matchers = self.matchers.iter().filter(counts);
        for matcher in matchers.filter(|matcher| matcher.allows(spec)) {
            match matcher.objection(spec) {
                None => return PolicyVerdict::Allowed,
                Some(reason) => objection = objection.or(Some((matcher, reason))),
            }
        }
        let origin = &self.origin;
        match objection {
            Some((matcher, reason)) => matcher.blocked(reason),
            None => PolicyVerdict::Blocked {
                reason: format!("it is not on the list of allowed servers at {origin}"),
                origin: origin.clone(),
            },
        }
    }
}

impl Matcher {
    fn blocked(&self, reason: String) -> PolicyVerdict {
        let reason = match &self.reason {
            Some(said) => format!("{reason}: {said}"),
            None => reason,
        };
        let origin = self.origin.clone();
        PolicyVerdict::Blocked { reason, origin }
    }

    fn allows(&self, spec: &ServerSpec) -> bool {
        self.matches(spec, UrlPattern::allows)
    }

    fn denies(&self, spec: &ServerSpec) -> bool {
        self.matches(spec, UrlPattern::denies)
    }

    fn matches(&self, spec: &ServerSpec, compare: fn(&UrlPattern, &str) -> bool) -> bool {
        let name = |pattern: &Wildcard| pattern.matches(spec.name.as_str());
        let command = |words: &Vec<String>| match &spec.reach {
            Reach::Program(program) => is_exactly(words, program),
            Reach::Remote(_) => false,
        };
        let url = |pattern: &UrlPattern| match &spec.reach {
            Reach::Program(_) => false,
            Reach::Remote(remote) => compare(pattern, &remote.url),
        };
        self.name.as_ref().is_none_or(name)
            && self.command.as_ref().is_none_or(command)
            && self.url.as_ref().is_none_or(url)
    }

    /// Why a server that matches is still not what was allowed.
    fn objection(&self, spec: &ServerSpec) -> Option<String> {
        let place = &self.origin;
        if self.command.is_none() && self.url.is_none() {
            return None;
        }
        if !self.allow_helpers
            && let Some(helper) = helper(&spec.reach)
        {
            return Some(format!(
                "the rule at {place} allows this server, but not that it runs another program, as \
                 {helper} does"
            ));
        }
        let Reach::Program(program) = &spec.reach else {
            return None;
        };
        if let Some(cwd) = &self.cwd {
            if program.directory() != Some(cwd.as_path()) {
                let cwd = cwd.display();
                let reason = format!("the rule at {place} allows this command only in `{cwd}`");
                return Some(reason);
            }
        } else if let Some(cwd) = &program.cwd
            && program.base.as_ref() != Some(cwd)
        {
            let cwd = cwd.display();
            let reason = format!("the rule at {place} allows this command, but not in `{cwd}`");
            return Some(reason);
        }
        // A name is looked for in PATH. A path that is not absolute is another program elsewhere.
        let is_path = program.command.contains(['/', '\\']);
        let is_fixed = Path::new(&program.command).is_absolute() || self.cwd.is_some();
        if is_path && !is_fixed {
            return Some(format!(
                "the rule at {place} allows this command, but a relative path is another program \
                 in every directory, so the rule needs `cwd`"
            ));
        }
        let names = program.env.keys().chain(
            // The caller's own value of these goes to every program anyway.
            program
                .env_vars
                .iter()
                .filter(|name| !variables::is_passed_on(name)),
        );
        let changes = |name: &&String| {
            let allowed = |pattern: &Wildcard| pattern.matches(&name.to_ascii_uppercase());
            variables::changes_program(name) && !self.allow_env.iter().any(allowed)
        };
        let name = names.into_iter().find(changes)?;
        Some(format!(
            "the rule at {place} allows this command, but not with the variable `{name}`, which \
             can change what is run"
        ))
    }
}

fn is_exactly(words: &[String], program: &Program) -> bool {
    let Some((command, args)) = words.split_first() else {
        return false;
    };
    *command == program.command && args == program.args
}

/// What of a server runs a program besides the server.
fn helper(reach: &Reach) -> Option<String> {
    let runs = |template: &Template| {
        let mut parts = template.parts.iter();
        parts.any(|part| matches!(part, TemplatePart::Command(_)))
    };
    let (key, values) = match reach {
        Reach::Program(program) => ("env", &program.env),
        Reach::Remote(remote) if remote.headers_helper.is_some() => {
            return Some("its `headers_helper`".to_owned());
        }
        Reach::Remote(remote) if remote.oauth.assertion_command.is_some() => {
            return Some("its `oauth.assertion_command`".to_owned());
        }
        Reach::Remote(remote) => ("headers", &remote.headers),
    };
    let (name, _) = values.iter().find(|(_, template)| runs(template))?;
    Some(format!("its `{key}.{name}`"))
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
