//! `cocode gateway status`: one screen about a gateway.

use std::time::Duration;

use cocode_admin::model::{Authentication, ServerCounts, ServerState, Status};

use super::contact::Contact;
use crate::args::operate::WhomArgs;
use crate::error::{CliError, Exit};
use crate::printer::{Paint, Style, print_json};
use crate::text::{age, plain};
use crate::workspace::Workspace;

pub(super) async fn show(whom: &WhomArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let gateway = Contact::find(whom, workspace).await?;
    let status: Status = gateway.get(&["status"]).await?;
    let printer = &workspace.printer;
    if printer.json() {
        print_json(printer, &status)?;
    } else {
        printer.out(told(&status, printer.paint()))?;
    }
    Ok(Exit::Ok)
}

/// A gateway for people.
fn told(status: &Status, paint: Paint) -> String {
    let Status {
        version,
        pid,
        url,
        dashboard,
        directory,
        uptime_seconds,
        servers,
        sessions,
        calls_in_flight,
        authentication,
        tool_search,
        problems,
        ..
    } = status;
    let age = age(Duration::from_secs(*uptime_seconds));
    let mut text = format!("gateway {}, process {pid}, for {age}\n", plain(version));
    let who = match authentication {
        Authentication::Open => "every program of that machine is let in",
        Authentication::Tokens => "clients need a token",
        Authentication::OAuth => "clients need a token, also of an authorization server",
    };
    let rows = [
        ("clients", format!("{url} ({who})")),
        (
            "dashboard",
            dashboard.clone().unwrap_or_else(|| "-".to_owned()),
        ),
        ("directory", directory.clone()),
        ("servers", counted(servers)),
        ("sessions", sessions.to_string()),
        ("calls", format!("{calls_in_flight} under way")),
        ("tool search", tool_search.clone()),
    ];
    let problems = problems.iter().map(|problem| ("problem", problem.clone()));
    for (name, value) in rows.into_iter().chain(problems) {
        let name = paint.paint(Style::Dim, &format!("{name:<12}"));
        text.extend(["  ", &name, &plain(&value), "\n"]);
    }
    text
}

/// How many servers are in which state, as far as any are.
fn counted(servers: &ServerCounts) -> String {
    let ServerCounts {
        ready,
        starting,
        slow,
        retrying,
        failed,
        needs_auth,
        stopped,
        disabled,
        pending,
        rejected,
        blocked,
        invalid,
    } = *servers;
    let all = [
        (ready, ServerState::Ready),
        (starting, ServerState::Starting),
        (slow, ServerState::Slow),
        (retrying, ServerState::Retrying),
        (failed, ServerState::Failed),
        (needs_auth, ServerState::NeedsAuth),
        (stopped, ServerState::Stopped),
        (disabled, ServerState::Disabled),
        (pending, ServerState::Pending),
        (rejected, ServerState::Rejected),
        (blocked, ServerState::Blocked),
        (invalid, ServerState::Invalid),
    ];
    let some = all.into_iter().filter(|(count, _)| *count > 0);
    let some: Vec<String> = some
        .map(|(count, state)| format!("{count} {state}"))
        .collect();
    if some.is_empty() {
        "none".to_owned()
    } else {
        some.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use cocode_admin::model::ServerCounts;

    use super::counted;

    #[test]
    fn only_states_that_some_server_is_in_are_told() {
        let mut servers = ServerCounts {
            ready: 0,
            starting: 0,
            slow: 0,
            retrying: 0,
            failed: 0,
            needs_auth: 0,
            stopped: 0,
            disabled: 0,
            pending: 0,
            rejected: 0,
            blocked: 0,
            invalid: 0,
        };
        assert_eq!(counted(&servers), "none");
        (servers.ready, servers.needs_auth) = (2, 1);
        assert_eq!(counted(&servers), "2 ready, 1 needs-auth");
    }
}
