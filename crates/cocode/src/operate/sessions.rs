//! `cocode gateway sessions`: who is connected to a gateway.

use std::time::Duration;

use cocode_admin::model::{ClientSession, ClientSessions, Front, SharedServers};
use serde::Serialize;

use super::contact::Contact;
use crate::args::operate::WhomArgs;
use crate::error::{CliError, Exit};
use crate::manage::sharing::serves;
use crate::printer::{Paint, Style, print_json};
use crate::table::{Cell, table};
use crate::text::age;
use crate::workspace::Workspace;

#[derive(Serialize)]
struct Report {
    sessions: Vec<ClientSession>,
    /// Clients of `cocode mcp serve`.
    fronts: Vec<Front>,
}

pub(super) async fn show(whom: &WhomArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let gateway = Contact::find(whom, workspace).await?;
    let ClientSessions { sessions } = gateway.get(&["sessions"]).await?;
    let SharedServers { fronts, .. } = gateway.get(&["shared"]).await?;
    let printer = &workspace.printer;
    if printer.json() {
        print_json(printer, &Report { sessions, fronts })?;
    } else if sessions.is_empty() && fronts.is_empty() {
        printer.note("nobody is connected; clients of revision 2026-07-28 have no sessions");
    } else {
        printer.out(told(&sessions, &fronts, printer.paint()))?;
    }
    Ok(Exit::Ok)
}

fn told(sessions: &[ClientSession], fronts: &[Front], paint: Paint) -> String {
    let head = ["WHO", "WHERE", "BY", "REVISION", "FOR", "IDLE"];
    let for_seconds = |seconds| Cell::new(age(Duration::from_secs(seconds)));
    let rows = sessions.iter().map(|session| {
        let or_dash = |text: &Option<String>| Cell::new(text.as_deref().unwrap_or("-"));
        vec![
            or_dash(&session.principal).styled(Style::Bold),
            Cell::new(&session.endpoint),
            Cell::new(&session.transport),
            or_dash(&session.revision),
            for_seconds(session.age_seconds),
            for_seconds(session.idle_seconds),
        ]
    });
    let fronts = fronts.iter().map(|front| {
        let pid = front.pid.map(|pid| format!("process {pid}"));
        let directory = front.directory.as_deref().unwrap_or("-");
        vec![
            Cell::new(pid.as_deref().unwrap_or("-")).styled(Style::Bold),
            Cell::new(format!("{} in {directory}", serves(front))),
            Cell::new("mcp serve"),
            Cell::new("-"),
            for_seconds(front.seconds),
            Cell::new("-"),
        ]
    });
    let rows: Vec<Vec<Cell>> = rows.chain(fronts).collect();
    table(&head, &rows, paint)
}
