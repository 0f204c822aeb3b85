//! `/tools`: what the model is shown.

use std::collections::BTreeMap;

use cocode_core::{TOOL_CALL, TOOL_SEARCH};
use cocode_terminal::{CommandOutcome, Line, Style};

use super::talk::{Talk, failed};
use crate::agent::trouble;

pub(super) async fn told(talk: &Talk) -> CommandOutcome {
    let shown = match talk.taken().await {
        Ok(Some(mut taken)) => {
            let tools = taken.conversation.tools().await;
            taken.put_back();
            tools
        }
        Ok(None) => talk.agent.tools(&talk.settings()).await,
        Err(error) => return failed(error),
    };
    let shown = match shown {
        Ok(shown) => shown,
        Err(error) => return failed(trouble(&error)),
    };
    let catalog = talk.manager.catalog();
    let mut own: Vec<&str> = Vec::new();
    let mut of_servers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut searches = false;
    for tool in &shown {
        match catalog.resolve(&tool.name) {
            Some(found) => {
                let tools = of_servers.entry(found.server.to_string()).or_default();
                tools.push(found.tool.name.to_string());
            }
            None if tool.name == TOOL_SEARCH || tool.name == TOOL_CALL => searches = true,
            None => own.push(&tool.name),
        }
    }
    let offered = catalog.servers().filter(|server| server.is_offered);
    let n_all: usize = offered.map(|server| server.tools.len()).sum();
    let n_shown: usize = of_servers.values().map(Vec::len).sum();
    let mut lines = vec![group("workspace", &own.join(", "))];
    for (server, tools) in &of_servers {
        lines.push(group(server, &tools.join(", ")));
    }
    let dim = Style::PLAIN.dim();
    if searches {
        let text = format!(
            "the model searches: it is shown {n_shown} of {n_all} tools of servers, and finds the others \
             by {TOOL_SEARCH}"
        );
        lines.push(Line::new(&text, dim));
    } else if n_shown < n_all {
        let hidden = n_all - n_shown;
        let text = format!(
            "{hidden} tools of servers are not shown: rules deny them, or the model cannot take them"
        );
        lines.push(Line::new(&text, dim));
    }
    if shown.is_empty() {
        lines = vec![Line::new(
            "the model is shown no tools: it cannot call any",
            dim,
        )];
    }
    CommandOutcome::Said(lines)
}

fn group(label: &str, text: &str) -> Line {
    Line::new(label, Style::PLAIN.bold())
        .with(": ", Style::PLAIN)
        .with(text, Style::PLAIN)
}
