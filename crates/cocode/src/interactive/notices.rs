//! What the session says by itself: how servers are, and what is wrong with the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use cocode_client::{Event, Events, ServerName, ServerState, StateKind, Trouble};
use cocode_terminal::{Color, HostNotice, Line, Style};
use tokio::sync::mpsc;

use super::talk::{Talk, in_words};
use crate::agent::trouble;

/// Characters of a reason.
const MAX_REASON_CHARS: usize = 400;

/// Tells of what happens to servers, for as long as the session lasts.
pub(super) async fn follow(talk: Arc<Talk>, mut events: Events) {
    tell_of_model(&talk).await;
    let mut known: BTreeMap<ServerName, StateKind> = BTreeMap::new();
    // What went wrong before anybody listened.
    for server in talk.manager.status() {
        known.insert(server.name.clone(), server.state.kind());
        tell(&talk, &server.name, &server.state, None);
    }
    while let Some(event) = events.next().await {
        match event {
            Event::ServerStateChanged { server, state } => {
                let before = known.insert(server.clone(), state.kind());
                if before != Some(state.kind()) {
                    tell(&talk, &server, &state, before);
                }
            }
            Event::ConfigurationRejected { problems } => {
                show(
                    &talk.say,
                    warning("the configuration was changed, and cannot be used as it is:"),
                );
                for problem in problems {
                    show(&talk.say, warning(&problem));
                }
            }
            Event::CatalogChanged(_) => {}
            _ => continue,
        }
        changed(&talk.say);
    }
}

/// Finds out which model it will be, so that whoever has none knows before they have typed much.
async fn tell_of_model(talk: &Talk) {
    let choice = talk.settings().model;
    match talk.agent.options().providers.choose(&choice, None).await {
        Ok(chosen) => talk.spent.set_model(&chosen.model.name),
        Err(error) => {
            let (message, hints) = in_words(trouble(&error.into()));
            show(&talk.say, warning(&message));
            for hint in hints {
                show(
                    &talk.say,
                    Line::new(&format!("  {hint}"), Style::PLAIN.dim()),
                );
            }
        }
    }
    changed(&talk.say);
}

fn tell(talk: &Talk, server: &ServerName, state: &ServerState, before: Option<StateKind>) {
    let line = match state {
        ServerState::Failed(trouble) => {
            let reason = reason(trouble);
            warning(&format!(
                "{server} failed: {reason} (/mcp restart {server})"
            ))
        }
        ServerState::NeedsAuth(_) => warning(&format!(
            "{server} wants you to sign in: /mcp login {server}"
        )),
        ServerState::NeedsClientRegistration(trouble) => {
            let reason = reason(trouble);
            warning(&format!(
                "{server} wants you to sign in by a client that is registered there: {reason}"
            ))
        }
        ServerState::Reconnecting { trouble, .. } => {
            let reason = reason(trouble);
            warning(&format!(
                "{server} was lost, and is being connected again: {reason}"
            ))
        }
        ServerState::Ready => match before {
            Some(
                StateKind::Failed
                | StateKind::NeedsAuth
                | StateKind::NeedsClientRegistration
                | StateKind::Reconnecting,
            ) => Line::new("● ", Style::PLAIN.color(Color::Green))
                .with(&format!("{server} is ready"), Style::PLAIN.dim()),
            _ => return,
        },
        _ => return,
    };
    show(&talk.say, line);
}

/// Why a server cannot be used, in one line.
pub(super) fn reason(trouble: &Trouble) -> String {
    let mut text = trouble.to_string();
    let last = trouble
        .stderr()
        .iter()
        .rfind(|line| !line.trim().is_empty());
    if let Some(last) = last {
        text = format!("{text}; its last words: {}", last.trim());
    }
    if text.chars().count() > MAX_REASON_CHARS {
        text = text.chars().take(MAX_REASON_CHARS - 1).collect();
        text.push('…');
    }
    text
}

/// Something that the person should know.
pub(super) fn warning(text: &str) -> Line {
    Line::new("! ", Style::PLAIN.bold().color(Color::Yellow))
        .with(text, Style::PLAIN.color(Color::Yellow))
}

/// Shows a line. What comes faster than it can be shown is left out.
pub(super) fn show(say: &mpsc::Sender<HostNotice>, line: Line) {
    if let Err(error) = say.try_send(HostNotice::Said(line)) {
        tracing::warn!(%error, "a line was not shown");
    }
}

/// The status line says something else now. Whoever is told something anyway draws it, too.
fn changed(say: &mpsc::Sender<HostNotice>) {
    if let Err(error) = say.try_send(HostNotice::Changed) {
        tracing::debug!(%error, "the status line is drawn later");
    }
}
