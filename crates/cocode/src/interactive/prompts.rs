//! Prompts as commands: those of servers, and those that the person has saved.

use std::collections::BTreeMap;
use std::time::Duration;

use cocode_agent::serve::SavedPrompt;
use cocode_agent::{Block, Company, text_of};
use cocode_client::{
    Content, PromptCommand, PromptError, PromptResult, RequestOptions, ResourceContents,
    command_words,
};
use cocode_terminal::CommandOutcome;
use tokio::time::Instant;

use super::mentions::{image, is_image};
use super::talk::{Talk, failed, refused};
use crate::error::{CliError, Code};

/// How long servers may take to say which prompts they have.
const LISTED_WITHIN: Duration = Duration::from_secs(10);

/// Lines and characters of a prompt that are shown.
const MAX_SHOWN_LINES: usize = 8;
const MAX_SHOWN_CHARS: usize = 600;

/// `/mcp__server__prompt` with its arguments.
pub(super) async fn of_server(talk: &Talk, line: &str, company: &Company) -> CommandOutcome {
    tokio::select! {
        outcome = got(talk, line) => outcome,
        () = company.interrupt.cancelled() => CommandOutcome::Done,
    }
}

async fn got(talk: &Talk, line: &str) -> CommandOutcome {
    let command = match PromptCommand::parse(line, &talk.manager.catalog()) {
        Err(PromptError::Unknown { .. }) => {
            // A server that is still on its way may have it.
            let until = Instant::now() + LISTED_WITHIN;
            talk.manager.prompts(until).await;
            PromptCommand::parse(line, &talk.manager.catalog())
        }
        parsed => parsed,
    };
    let command = match command {
        Ok(command) => command,
        Err(error) => return refused(error.to_string()),
    };
    match talk
        .manager
        .prompt(&command, RequestOptions::default())
        .await
    {
        Ok(result) => submit(talk, blocks(&result)),
        Err(error) => refused(cocode_wire::chain(&error)),
    }
}

/// A prompt that is saved under this name, if there is one.
pub(super) fn saved(talk: &Talk, name: &str, rest: &str) -> Option<CommandOutcome> {
    let name = name.strip_prefix('/')?;
    let all = talk.prompts.read();
    let prompt = all.into_iter().find(|prompt| prompt.name == name)?;
    let expanded = arguments(&prompt, rest)
        .and_then(|given| prompt.expand(&given).map_err(|error| error.to_string()));
    Some(match expanded {
        Ok(text) => submit(talk, vec![Block::text(text)]),
        Err(why) => {
            let usage = prompt.arguments.iter().map(|argument| {
                let name = argument.name.to_uppercase();
                if argument.is_required {
                    name
                } else {
                    format!("[{name}]")
                }
            });
            let usage: Vec<String> = usage.collect();
            let usage = format!("/{name} {}", usage.join(" "));
            failed(CliError::new(Code::InvalidUsage, why).hint(usage.trim()))
        }
    })
}

/// What a saved prompt is told: by name, or in the order of its arguments. The last takes the rest.
fn arguments(prompt: &SavedPrompt, rest: &str) -> Result<BTreeMap<String, String>, String> {
    let names: Vec<&str> = prompt
        .arguments
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    let mut given = BTreeMap::new();
    let mut by_place: Vec<String> = Vec::new();
    if let [only] = names.as_slice() {
        let rest = rest.trim();
        let value = rest.strip_prefix(&format!("{only}=")).unwrap_or(rest);
        if !value.is_empty() {
            given.insert((*only).to_owned(), value.to_owned());
        }
        return Ok(given);
    }
    for word in command_words(rest).map_err(|error| error.to_string())? {
        match word.split_once('=') {
            Some((name, value)) if names.contains(&name) => {
                given.insert(name.to_owned(), value.to_owned());
            }
            _ => by_place.push(word),
        }
    }
    let free: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| !given.contains_key(*name))
        .collect();
    if by_place.len() > free.len() {
        return Err(format!(
            "there are {} words for {} arguments; quotation marks hold words together",
            by_place.len(),
            free.len()
        ));
    }
    for (name, value) in free.into_iter().zip(by_place) {
        given.insert(name.to_owned(), value);
    }
    Ok(given)
}

fn submit(talk: &Talk, content: Vec<Block>) -> CommandOutcome {
    if content.is_empty() {
        return refused("the prompt is empty");
    }
    let text = text_of(&content);
    let mut lines: Vec<&str> = text.lines().take(MAX_SHOWN_LINES + 1).collect();
    let is_cut = lines.len() > MAX_SHOWN_LINES || text.chars().count() > MAX_SHOWN_CHARS;
    lines.truncate(MAX_SHOWN_LINES);
    let mut shown: String = lines.join("\n").chars().take(MAX_SHOWN_CHARS).collect();
    if is_cut {
        shown.push_str(" …");
    }
    talk.prepared(content, shown)
}

/// What a server wants to be said to the model.
fn blocks(result: &PromptResult) -> Vec<Block> {
    let messages = result.messages().into_iter();
    let blocks = messages.filter_map(|message| {
        let block = block(message.content)?;
        match block {
            Block::Text { text } if message.role == "assistant" => Some(Block::text(format!(
                "You have answered this before: {text}"
            ))),
            block => Some(block),
        }
    });
    blocks.collect()
}

fn block(content: Content) -> Option<Block> {
    match content {
        Content::Text(text) => Some(Block::text(text)),
        Content::Image { data, mime_type } => Some(image(mime_type, data)),
        Content::Audio { mime_type, .. } => Some(left_out(&mime_type)),
        Content::Link { uri, name, .. } => Some(Block::text(format!("[{name}]({uri})"))),
        Content::Embedded(contents) => resource(contents),
        Content::Unknown { kind, .. } => Some(left_out(&kind)),
        _ => None,
    }
}

fn resource(contents: ResourceContents) -> Option<Block> {
    let ResourceContents {
        uri,
        mime_type,
        text,
        blob,
    } = contents;
    if let Some(text) = text {
        return Some(Block::text(format!(
            "<resource uri=\"{uri}\">\n{text}\n</resource>"
        )));
    }
    match (mime_type, blob) {
        (Some(kind), Some(data)) if is_image(&kind) => Some(image(kind, data)),
        (kind, Some(_)) => Some(left_out(&kind.unwrap_or(uri))),
        (_, None) => None,
    }
}

fn left_out(kind: &str) -> Block {
    Block::text(format!(
        "({kind} was left out: it cannot be shown to a model)"
    ))
}
