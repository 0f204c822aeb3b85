//! `cocode gateway calls`: what clients have servers do, once or as it happens.

use std::collections::{BTreeSet, VecDeque};

use cocode_admin::MAX_CALLS_KEPT;
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
        let calls = of_late(&gateway, args.limit).await?;
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
    let calls = of_late(&gateway, args.limit).await?;
    let mut shown = Shown::default();
    for call in &calls {
        say(call, printer)?;
        if call.state != CallState::Running {
            shown.add(&call.id);
        }
    }
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
async fn of_late(gateway: &Contact, limit: u64) -> Result<Vec<Call>, CliError> {
    let Calls { mut calls } = gateway.list(&["calls"], limit).await?;
    calls.reverse();
    Ok(calls)
}

/// The calls that were shown when they were over: as many as the gateway could tell of again.
#[derive(Default)]
struct Shown {
    ids: BTreeSet<String>,
    /// The oldest first.
    order: VecDeque<String>,
}

impl Shown {
    /// Whether this one was not there yet.
    fn add(&mut self, id: &str) -> bool {
        if !self.ids.insert(id.to_owned()) {
            return false;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > MAX_CALLS_KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }

    /// Shows a call that is over, once.
    fn say(&mut self, call: &Call, printer: &Printer) -> Result<(), CliError> {
        if call.state != CallState::Running && self.add(&call.id) {
            say(call, printer)?;
        }
        Ok(())
    }
}

/// Shows calls as they end, until the gateway does or nobody reads any more.
async fn follow(
    gateway: &Contact,
    mut events: ApiEvents,
    mut shown: Shown,
    printer: &Printer,
) -> Result<Exit, CliError> {
    loop {
        let heard = events.next().await.map_err(|error| {
            CliError::new(Code::GatewayUnavailable, "the gateway is gone").because(&error)
        })?;
        let Some(event) = heard else {
            // Streams end from time to time, and with the gateway.
            match gateway.events().await {
                Ok(next) => {
                    events = next;
                    // Some may have ended between the two streams.
                    for call in &of_late(gateway, MAX_CALLS_KEPT as u64).await? {
                        shown.say(call, printer)?;
                    }
                }
                Err(error) => {
                    tracing::debug!(?error, "the gateway cannot be asked any more");
                    printer.note("the gateway has ended");
                    return Ok(Exit::Ok);
                }
            }
            continue;
        };
        match event.name.as_str() {
            "call" => shown.say(&read(&event)?, printer)?,
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

#[cfg(test)]
mod tests {
    use cocode_admin::MAX_CALLS_KEPT;

    use super::Shown;

    #[test]
    fn a_call_is_shown_once_and_only_so_many_are_remembered() {
        let mut shown = Shown::default();
        assert!(shown.add("first"));
        assert!(!shown.add("first"));
        for number in 0..MAX_CALLS_KEPT {
            assert!(shown.add(&number.to_string()));
        }
        assert_eq!(shown.ids.len(), MAX_CALLS_KEPT);
        assert!(shown.add("first"), "nobody tells of it any more");
    }
}
