//! One server from its entry to its tools, step by step. A step that fails ends the examination of
//! that server; what is not ready is never started or contacted.

use std::collections::BTreeSet;
use std::time::Instant;

use cocode_auth::Reference;
use cocode_client::Session;
use cocode_config::{Config, Server, State};
use cocode_core::{Reach, ServerSpec, TemplatePart};

use super::before::{self, Lookup};
use super::check::{Check, Outcome, more_serious};
use super::tools;
use crate::error::{CliError, Exit};
use crate::fleet::{Fleet, until};
use crate::gate::Gate;
use crate::hints::{Doing, stderr_may_explain};
use crate::text::duration;
use crate::trouble::{Failure, Phase};
use crate::workspace::Workspace;

/// The steps that need a connection.
const ONLINE: [&str; 4] = ["secrets", "connect", "handshake", "tools"];

/// How servers are examined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doctor<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) config: &'a Config,
    pub(super) fleet: &'a Fleet,
    pub(super) offline: bool,
}

/// What was found out about a server.
#[derive(Debug)]
pub(super) struct Diagnosis<'a> {
    pub(super) name: &'a str,
    pub(super) state: &'static str,
    pub(super) checks: Vec<Check>,
}

impl Diagnosis<'_> {
    fn push(&mut self, check: Check) -> bool {
        let goes_on = check.outcome != Outcome::Failed;
        self.checks.push(check);
        goes_on
    }

    fn last_failed(&self) -> bool {
        let last = self.checks.last();
        last.is_some_and(|check| check.outcome == Outcome::Failed)
    }

    /// The steps that are left out because of an earlier one.
    fn leave_out(&mut self, stages: &[&'static str]) {
        let left_out = stages.iter().map(|stage| Check::skipped(stage, ""));
        self.checks.extend(left_out);
    }

    /// How the program ends because of this server.
    pub(super) fn exit(&self) -> Exit {
        self.checks
            .iter()
            .map(Check::exit)
            .fold(Exit::Ok, more_serious)
    }

    /// What it comes to, in a word.
    pub(super) fn result(&self) -> &'static str {
        let has = |outcome| self.checks.iter().any(|check| check.outcome == outcome);
        match self.state {
            state @ ("pending" | "blocked" | "disabled") => state,
            _ if has(Outcome::Failed) => "failed",
            _ if has(Outcome::Warning) => "warning",
            _ => "ok",
        }
    }
}

impl<'a> Doctor<'a> {
    /// Examines one server.
    pub(super) async fn examine(self, name: &'a str, server: &'a Server) -> Diagnosis<'a> {
        let mut diagnosis = Diagnosis {
            name,
            state: server.state.as_str(),
            checks: Vec::new(),
        };
        let Some(spec) = self.before(&mut diagnosis, server).await else {
            return diagnosis;
        };
        if self.offline {
            leave_online(&mut diagnosis, &spec);
            return diagnosis;
        }
        self.online(&mut diagnosis, &spec).await;
        diagnosis
    }

    /// The steps without a connection. Gives the specification of a server that may be contacted.
    async fn before(self, diagnosis: &mut Diagnosis<'a>, server: &Server) -> Option<ServerSpec> {
        let name = diagnosis.name;
        if let State::Disabled(origin) = &server.state {
            let check = Check::skipped("config", format!("switched off in {origin}"));
            diagnosis.push(check.hint(format!("`cocode mcp enable {name}` switches it on")));
            diagnosis.leave_out(&["command", "policy", "trust", "variables"]);
            diagnosis.leave_out(&ONLINE);
            return None;
        }
        let is_ready = matches!(server.state, State::Ready(_));
        if !diagnosis.push(before::config(server)) {
            diagnosis.leave_out(&["command", "policy", "trust", "variables"]);
            diagnosis.leave_out(&ONLINE);
            return None;
        }
        let spec = before::specification(server);
        let check = match &spec {
            Some(spec) => {
                let lookup = if is_ready && !self.offline {
                    Lookup::Allowed
                } else {
                    Lookup::Forbidden
                };
                before::place(spec, lookup, self.workspace).await
            }
            None => Check::skipped("command", "cannot be told while variables are not set"),
        };
        // A program that is not used anyway may be missing.
        let check = if is_ready { check } else { softened(check) };
        if !diagnosis.push(check) {
            diagnosis.leave_out(&["policy", "trust", "variables"]);
            diagnosis.leave_out(&ONLINE);
            return None;
        }
        let (check, goes_on) = before::policy(server, self.config, self.workspace);
        diagnosis.push(check);
        if !goes_on {
            diagnosis.leave_out(&["trust", "variables"]);
            diagnosis.leave_out(&ONLINE);
            return None;
        }
        let (check, goes_on) = before::trust(name, server);
        diagnosis.push(check);
        if !goes_on {
            diagnosis.leave_out(&["variables"]);
            diagnosis.leave_out(&ONLINE);
            return None;
        }
        diagnosis.push(before::variables(server));
        // Whatever was seen before: only what is ready goes on.
        if diagnosis.last_failed() || !is_ready {
            diagnosis.leave_out(&ONLINE);
            return None;
        }
        spec
    }

    async fn online(self, diagnosis: &mut Diagnosis<'_>, spec: &ServerSpec) {
        let begun = Instant::now();
        let references = references(spec);
        let secrets = || match references.len() {
            0 => Check::skipped("secrets", "none are needed"),
            1 => Check::ok("secrets", "the one that is needed was found"),
            n_secrets => Check::ok("secrets", format!("all {n_secrets} were found")),
        };
        let session = match self.fleet.session(spec).await {
            Ok(session) => session,
            Err(Failure { phase, error }) => {
                match phase {
                    Phase::Secrets => {
                        diagnosis.push(Check::failed("secrets", error));
                        diagnosis.leave_out(&["connect", "handshake", "tools"]);
                    }
                    Phase::Connect => {
                        diagnosis.push(secrets());
                        diagnosis.push(Check::failed("connect", error));
                        diagnosis.leave_out(&["handshake", "tools"]);
                    }
                    Phase::Handshake => {
                        diagnosis.push(secrets());
                        diagnosis.push(Check::ok("connect", connected(spec)));
                        diagnosis.push(Check::failed("handshake", error));
                        diagnosis.leave_out(&["tools"]);
                    }
                }
                return;
            }
        };
        let facts = session.server();
        diagnosis.push(secrets());
        diagnosis.push(Check::ok(
            "connect",
            match session.pid() {
                Some(pid) => format!("started, process {pid}"),
                None => format!("reached by {}", facts.transport),
            },
        ));
        let version = facts.version.as_deref().unwrap_or_default();
        let server = format!("{} {version}", facts.name.as_deref().unwrap_or("(no name)"));
        diagnosis.push(Check::ok(
            "handshake",
            format!(
                "{}, {} ({}), after {}",
                server.trim(),
                facts.revision.as_str(),
                facts.era(),
                duration(begun.elapsed())
            ),
        ));
        diagnosis.push(self.tools(spec, &session).await);
    }

    async fn tools(self, spec: &ServerSpec, session: &Session) -> Check {
        if !session.server().capabilities.tools {
            return Check::skipped("tools", "it offers none");
        }
        let gate = match Gate::new(Some(spec), self.workspace) {
            Ok(gate) => gate,
            Err(error) => return Check::failed("tools", error),
        };
        match self.fleet.manager.list_tools(&spec.name, until()).await {
            Ok(listing) => tools::examine(spec, &gate, &listing),
            Err(error) => {
                let about = self.fleet.about(spec);
                let mut error = unlisted(about.told(&error, Doing::Other));
                if stderr_may_explain(&error) && error.stderr.is_empty() {
                    error.stderr = session.stderr_lines();
                }
                Check::failed("tools", error)
            }
        }
    }
}

/// The steps that are not taken offline.
fn leave_online(diagnosis: &mut Diagnosis<'_>, spec: &ServerSpec) {
    let references = references(spec);
    let message = if references.is_empty() {
        "none are needed".to_owned()
    } else {
        let references: Vec<String> = references.into_iter().collect();
        format!("not looked up offline: {}", references.join(", "))
    };
    diagnosis.push(Check::skipped("secrets", message));
    diagnosis.push(Check::skipped("connect", "not tried, because of --offline"));
    diagnosis.leave_out(&["handshake", "tools"]);
}

fn unlisted(mut error: CliError) -> CliError {
    let cause = std::mem::replace(&mut error.message, "its tools could not be listed".into());
    error.causes.insert(0, cause);
    error
}

/// How the connection was made that no handshake followed on.
fn connected(spec: &ServerSpec) -> &'static str {
    match &spec.reach {
        Reach::Program(_) => "started",
        Reach::Remote(_) => "reached",
    }
}

/// A failure that stops nothing.
fn softened(mut check: Check) -> Check {
    if check.outcome == Outcome::Failed {
        check.outcome = Outcome::Warning;
    }
    check
}

/// The secrets that a server refers to, as they may be shown.
fn references(spec: &ServerSpec) -> BTreeSet<String> {
    let (templates, helper) = match &spec.reach {
        Reach::Program(program) => (&program.env, None),
        Reach::Remote(remote) => (&remote.headers, remote.headers_helper.as_ref()),
    };
    let parts = templates.values().flat_map(|template| &template.parts);
    let named = parts.filter_map(|part| match part {
        TemplatePart::Literal(_) => None,
        TemplatePart::Keyring(name) => Some(format!("keyring:{name}")),
        TemplatePart::Command(line) => Some(Reference::Command(line.clone()).to_string()),
    });
    let helper = helper.map(|line| {
        let shown = Reference::Command(line.clone()).to_string();
        format!("headers_helper {}", shown.trim_start_matches("cmd:"))
    });
    named.chain(helper).collect()
}
