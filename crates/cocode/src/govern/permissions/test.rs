//! What would happen to a call, and why. To ask is no failure: the exit code is 0 whatever the
//! answer is.

use cocode_config::State;
use cocode_core::{Hints, ToolUse};
use serde::Serialize;

use super::listing::PlaceReport;
use super::reason::{Owner, Reasons};
use super::{Tool, pattern, tool_name};
use crate::args::govern::TestArgs;
use crate::error::{CliError, Code, Exit};
use crate::manage::report::reason;
use crate::printer::print_json;
use crate::text::plain;
use crate::workspace::Workspace;

#[derive(Serialize)]
struct Report {
    tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    verdict: &'static str,
    reason: String,
    /// The rule that decided, or that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    organization: bool,
    /// Whether this is because something is broken that may have been a rule.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    broken: bool,
    #[serde(flatten)]
    place: Option<PlaceReport>,
    /// Why the server cannot be used at all, whatever the rules say.
    #[serde(rename = "serverProblem", skip_serializing_if = "Option::is_none")]
    server_problem: Option<String>,
}

pub(super) fn run(args: &TestArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let tool = Tool::parse(&args.tool, workspace)?;
    if let Tool::BuiltIn(name) = &tool
        && !pattern::is_built_in(name)
    {
        let servers: Vec<&str> = config.servers.keys().map(String::as_str).collect();
        let message = format!("`{}` is not the full name of a tool", plain(name));
        let error = CliError::new(Code::InvalidUsage, message);
        return Err(pattern::with_spelling(error, name, "SERVER", &servers));
    }
    let hints = Hints {
        read_only: args.read_only.then_some(true),
        destructive: args.not_destructive.then_some(false),
    };
    let rules = match &tool {
        Tool::Mcp(server, _) => config.rules_for(server.as_str()),
        Tool::BuiltIn(_) => config.rules(),
    };
    let wanted = ToolUse::new(tool.as_ref()).with_hints(hints);
    let decision = rules.decide(&wanted);
    let reasons = Reasons::of(config);
    let why = reasons.why(&decision);
    let broken = reasons.decider(&decision) == Owner::Broken;
    let rule = decision.rule().filter(|_| !broken);
    let mut report = Report {
        tool: tool_name(tool.as_ref()),
        server: None,
        verdict: decision.verdict.as_str(),
        reason: why.text,
        rule: rule.map(|(rule, _)| rule.to_string()),
        broken,
        organization: decision.is_by_organization(),
        place: decision.origin().map(PlaceReport::of),
        server_problem: None,
    };
    let mut place = why.place.map(ToString::to_string);
    if let Tool::Mcp(server, name) = &tool {
        let configured = config.servers.get(server.as_str());
        report.server = Some(server.to_string());
        report.server_problem = match configured {
            None => Some("no such server is configured".to_owned()),
            Some(configured) => reason(server.as_str(), configured)
                .map(|reason| format!("{}: {reason}", configured.state.as_str())),
        };
        if let Some(State::Ready(spec)) = configured.map(|configured| &configured.state)
            && !spec.tools.admits(name.as_str())
        {
            report.verdict = "deny";
            report.reason =
                format!("filtered out by `enabled_tools` or `disabled_tools` of server `{server}`");
            report.rule = None;
            report.organization = false;
            report.broken = false;
            report.place = None;
            place = configured.map(|configured| configured.winner.found.origin.to_string());
        }
    }
    let printer = &workspace.printer;
    if printer.json() {
        return print_json(printer, &report).map(|()| Exit::Ok);
    }
    let place = place.map(|place| format!(", in {place}"));
    let line = format!(
        "{}: `{}` is {}{}",
        report.verdict,
        report.tool,
        report.reason,
        place.unwrap_or_default()
    );
    printer.out_line(&plain(&line))?;
    if let Some(problem) = &report.server_problem {
        printer.note(&format!("its server cannot be used: {problem}"));
    }
    Ok(Exit::Ok)
}
