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
    let mut servers = Servers::default();
    // What went wrong before anybody listened.
    for server in talk.manager.status() {
        servers.changed(&talk, &server.name, &server.state);
    }
    while let Some(event) = events.next().await {
        match event {
            Event::ServerStateChanged { server, state } => {
                servers.changed(&talk, &server, &state);
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

/// What was told of servers.
#[derive(Default)]
struct Servers {
    known: BTreeMap<ServerName, StateKind>,
    /// What is wrong with a server is told once, however often it is tried again.
    told: BTreeMap<ServerName, String>,
}

impl Servers {
    fn changed(&mut self, talk: &Talk, server: &ServerName, state: &ServerState) {
        let before = self.known.insert(server.clone(), state.kind());
        if let ServerState::Ready = state {
            if self.told.remove(server).is_some() {
                let line = Line::new("● ", Style::PLAIN.color(Color::Green))
                    .with(&format!("{server} is ready"), Style::PLAIN.dim());
                show(&talk.say, line);
            }
            return;
        }
        let Some(text) = wrong(server, state, before) else {
            return;
        };
        if self.told.get(server) != Some(&text) {
            show(&talk.say, warning(&text));
            self.told.insert(server.clone(), text);
        }
    }
}

/// What is wrong with a server, and what to do about it.
fn wrong(server: &ServerName, state: &ServerState, before: Option<StateKind>) -> Option<String> {
    Some(match state {
        ServerState::Failed(trouble) => {
            let reason = reason(trouble);
            format!("{server} failed: {reason} (/mcp restart {server})")
        }
        ServerState::NeedsAuth(_) => {
            format!("{server} wants you to sign in: /mcp login {server}")
        }
        ServerState::NeedsClientRegistration(trouble) => {
            let reason = reason(trouble);
            format!("{server} wants you to sign in by a client that is registered there: {reason}")
        }
        // Who was never there has not failed yet.
        ServerState::Reconnecting { trouble, .. } if before == Some(StateKind::Ready) => {
            let reason = reason(trouble);
            format!("{server} was lost, and is being connected again: {reason}")
        }
        _ => return None,
    })
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
