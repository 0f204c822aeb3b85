//! `cocode gateway calls`: what clients have servers do, once or as it happens.

use std::collections::BTreeSet;

use cocode_admin::model::{Call, CallState, Calls, Missed};
use cocode_wire::StreamEvent;

use super::contact::Contact;
use crate::api_client::{ApiEvents, told};
use crate::args::operate::CallsArgs;
use crate::error::{CliError, Code, Exit};
use crate::interrupt::Interrupts;
use crate::printer::{Printer, Style, print_json};
use crate::text::{duration, plain};
use crate::workspace::Workspace;

pub(super) async fn show(args: &CallsArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let gateway = Contact::find(&args.whom, workspace).await?;
    let printer = &*workspace.printer;
    if !args.follow {
        let calls = of_late(&gateway, args).await?;
        if calls.is_empty() {
            printer.note("nothing was called yet");
        }
        for call in &calls {
            say(call, printer)?;
        }
        return Ok(Exit::Ok);
    }
    let mut interrupts = Interrupts::catch()?;
    // What happens after this is told.
    let events = gateway.events().await?;
    let calls = of_late(&gateway, args).await?;
    for call in &calls {
        say(call, printer)?;
    }
    let ended = calls.iter().filter(|call| call.state != CallState::Running);
    let shown = ended.map(|call| call.id.clone()).collect();
    tokio::select! {
        biased;
        exit = interrupts.next() => {
            printer.leave_line();
            Ok(exit)
        }
        followed = follow(&gateway, events, shown, printer) => followed,
    }
}

/// The last calls, the newest last.
async fn of_late(gateway: &Contact, args: &CallsArgs) -> Result<Vec<Call>, CliError> {
    let Calls { mut calls } = gateway.list(&["calls"], args.limit).await?;
    calls.reverse();
    Ok(calls)
}

/// Shows calls as they end, until the gateway does or nobody reads any more.
async fn follow(
    gateway: &Contact,
    mut events: ApiEvents,
    shown: BTreeSet<String>,
    printer: &Printer,
) -> Result<Exit, CliError> {
    loop {
        let heard = events.next().await.map_err(|error| {
            CliError::new(Code::GatewayUnavailable, "the gateway is gone").because(&error)
        })?;
        let Some(event) = heard else {
            // Streams end from time to time, and with the gateway.
            match gateway.events().await {
                Ok(next) => events = next,
                Err(error) => {
                    tracing::debug!(?error, "the gateway cannot be asked any more");
                    printer.note("the gateway has ended");
                    return Ok(Exit::Ok);
                }
            }
            continue;
        };
        match event.name.as_str() {
            "call" => {
                let call: Call = read(&event)?;
                if call.state != CallState::Running && !shown.contains(&call.id) {
                    say(&call, printer)?;
                }
            }
            "missed" => {
                let Missed { missed } = read(&event)?;
                printer.warn(&format!(
                    "{missed} events were missed, so calls may be, too"
                ));
            }
            _ => {}
        }
        if !printer.is_read() {
            return Ok(Exit::Ok);
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(event: &StreamEvent) -> Result<T, CliError> {
    told(event).map_err(|error| {
        let message = "what the gateway tells is not understood";
        CliError::new(Code::GatewayUnavailable, message).because(&error)
    })
}

fn say(call: &Call, printer: &Printer) -> Result<(), CliError> {
    if printer.json() {
        return print_json(printer, call);
    }
    let Call {
        at,
        principal,
        server,
        method,
        name,
        state,
        milliseconds,
        error,
        ..
    } = call;
    let style = match state {
        CallState::Ok => Style::Bold,
        CallState::Running | CallState::Cancelled => Style::Dim,
        CallState::ToolError | CallState::Error | CallState::Denied => Style::Red,
    };
    let state = printer.paint().paint(style, &format!("{state:<10}"));
    let took = milliseconds.map(|took| duration(std::time::Duration::from_secs_f64(took / 1000.0)));
    let took = took.unwrap_or_else(|| "-".to_owned());
    let error = error.as_ref().map(|error| format!(": {error}"));
    let error = error.unwrap_or_default();
    let what = format!("{principal}  {server}  {method} {name}{error}");
    printer.out_line(&format!("{at}  {state}{took:>10}  {}", plain(&what)))
}
