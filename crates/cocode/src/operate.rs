//! `cocode gateway status`, `code`, `sessions`, `calls`, `stop`: looks after a gateway that runs, by its
//! management API.

mod calls;
mod contact;
mod sessions;
mod status;

use std::time::Duration;

use cocode_admin::Moment;
use cocode_admin::model::{Code as OneTimeCode, Status, Stopping};
use serde::Serialize;

use self::contact::Contact;
pub(crate) use self::contact::own_gateways;
use crate::args::operate::{GatewayVerb, WhomArgs};
use crate::daemon::{self, How};
use crate::error::{CliError, Exit};
use crate::govern;
use crate::printer::{Style, print_json};
use crate::session::on_runtime;
use crate::workspace::Workspace;

/// How long a gateway elsewhere may take for what needs nothing but itself.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

pub(crate) fn run(verb: &GatewayVerb, workspace: &Workspace) -> Result<Exit, CliError> {
    match verb {
        GatewayVerb::Status(whom) => on_runtime(workspace, status::show(whom, workspace)),
        GatewayVerb::Code(whom) => on_runtime(workspace, code(whom, workspace)),
        GatewayVerb::Sessions(whom) => on_runtime(workspace, sessions::show(whom, workspace)),
        GatewayVerb::Calls(args) => on_runtime(workspace, calls::show(args, workspace)),
        GatewayVerb::Stop(whom) => on_runtime(workspace, stop(whom, workspace)),
        // They are where the gateway keeps them, whether one runs or not.
        GatewayVerb::Token(verb) => govern::tokens::run(verb, workspace),
    }
}

/// What lets somebody in, once.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CodeReport<'a> {
    url: &'a str,
    code: &'a str,
    expires_at: Moment,
}

async fn code(whom: &WhomArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let gateway = Contact::find(whom, workspace).await?;
    let status: Status = gateway.get(&["status"]).await?;
    let made: OneTimeCode = gateway.post(&["sign-in", "code"]).await?;
    let url = status.dashboard.unwrap_or(status.url);
    let (code, printer) = (made.code.expose(), &workspace.printer);
    if printer.json() {
        let report = CodeReport {
            url: &url,
            code,
            expires_at: made.expires_at,
        };
        print_json(printer, &report)?;
        return Ok(Exit::Ok);
    }
    let bold = |text: &str| printer.paint().paint(Style::Bold, text);
    let line = format!("dashboard at {}, sign in with {}", bold(&url), bold(code));
    printer.out_line(&line)?;
    printer.note(&format!(
        "it is good once, until {}; any other code is worthless now",
        made.expires_at
    ));
    Ok(Exit::Ok)
}

#[derive(Serialize)]
struct StopReport {
    /// The process that has ended, where it was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<i32>,
    /// Whether it had to be ended by the system.
    forced: bool,
}

async fn stop(whom: &WhomArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let printer = &workspace.printer;
    let gateway = Contact::find(whom, workspace).await?;
    if let Some(url) = gateway.elsewhere() {
        let Stopping { message } = gateway.post(&["stop"]).await?;
        if printer.json() {
            let (stopped, forced) = (None, false);
            print_json(printer, &StopReport { stopped, forced })?;
        } else {
            printer.out_line(&format!("{url}: {message}"))?;
        }
        return Ok(Exit::Ok);
    }
    let ended = daemon::stop(gateway.place(), printer).await?;
    // It may have ended by itself meanwhile.
    let pid = ended.map(|ended| ended.pid);
    let forced = ended.is_some_and(|ended| ended.how != How::Asked);
    if printer.json() {
        let stopped = pid;
        print_json(printer, &StopReport { stopped, forced })?;
    } else if let Some(pid) = pid {
        let how = if forced { ", which did not answer" } else { "" };
        printer.out_line(&format!("stopped the gateway (process {pid}){how}"))?;
    } else {
        printer.note("the gateway has ended already");
    }
    Ok(Exit::Ok)
}
