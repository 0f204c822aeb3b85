//! `cocode sessions`: conversations that are kept.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cocode_agent::{
    ConversationId, Store, StoreError, Stored, Summary, Wanted, remove_old_temporary,
    remove_temporary,
};
use serde_json::{Value, json};

use super::house::store;
use crate::args::agent::SessionsVerb;
use crate::error::{CliError, Code, Exit};
use crate::printer::print_json;
use crate::records::records;
use crate::session::on_runtime;
use crate::table::{Cell, table};
use crate::text::{plain, tame};
use crate::workspace::Workspace;

/// Conversations that are looked through for the beginning of an id.
const MAX_LOOKED_THROUGH: usize = 10_000;
/// Characters of an id that are enough to name a conversation: fewer are soon a mistake.
const MIN_PREFIX: usize = 4;
/// Characters of a title in a list.
const MAX_TITLE_CHARS: usize = 60;

pub(crate) fn run(verb: &SessionsVerb, workspace: &Workspace) -> Result<Exit, CliError> {
    on_runtime(workspace, async {
        let store: Arc<dyn Store> = if verb.place().gateway {
            records(workspace).await?.conversations()?
        } else {
            Arc::new(store(workspace)?)
        };
        match verb {
            SessionsVerb::List { limit, here, .. } => list(&*store, *limit, *here, workspace).await,
            SessionsVerb::Show { id, .. } => show(&*store, id, workspace).await,
            SessionsVerb::Rm {
                ids,
                older_than_days,
                ..
            } => remove(&*store, ids, *older_than_days, workspace).await,
        }
    })
}

async fn list(
    store: &dyn Store,
    limit: usize,
    here: bool,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let directory = workspace.places.directory.as_deref().filter(|_| here);
    let mut listed = if here {
        all(store).await?
    } else {
        let wanted = Wanted {
            owner: None,
            limit,
            offset: 0,
        };
        store.list(&wanted).await.map_err(told)?
    };
    listed.retain(|summary| directory.is_none_or(|directory| summary.cwd == directory));
    listed.truncate(limit);
    let printer = &workspace.printer;
    if printer.json() {
        let all: Vec<Value> = listed.iter().map(summary_json).collect();
        print_json(printer, &all)?;
        return Ok(Exit::Ok);
    }
    if listed.is_empty() {
        printer.note("no conversations are kept; `cocode exec PROMPT` begins one");
        return Ok(Exit::Ok);
    }
    let rows = listed.iter().map(|summary| {
        let state = match (summary.is_held, summary.is_closed) {
            (true, _) => " (in use)",
            (_, true) => " (finished)",
            _ => "",
        };
        let title: String = summary.title.chars().take(MAX_TITLE_CHARS).collect();
        let cells = [
            summary.id.to_string(),
            ago(summary.used),
            summary.turns.to_string(),
            summary.usage.total().to_string(),
            cost(summary.cost),
            summary.owner.clone(),
            format!("{title}{state}"),
        ];
        cells.iter().map(Cell::new).collect()
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    let head = ["ID", "USED", "TURNS", "TOKENS", "COST", "OWNER", "ABOUT"];
    printer.out(table(&head, &rows, printer.paint()))?;
    Ok(Exit::Ok)
}

async fn show(store: &dyn Store, id: &str, workspace: &Workspace) -> Result<Exit, CliError> {
    let id = find(store, id).await?;
    let stored = store.load(&id).await.map_err(told)?;
    let printer = &workspace.printer;
    if printer.json() {
        print_json(printer, &stored_json(&stored))?;
        return Ok(Exit::Ok);
    }
    printer.out_line(tame(&cocode_agent::render_markdown(&stored)).trim_end())?;
    Ok(Exit::Ok)
}

async fn remove(
    store: &dyn Store,
    ids: &[String],
    older_than_days: Option<u64>,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let printer = &workspace.printer;
    if let Some(days) = older_than_days {
        let removed = store.purge(days).await.map_err(told)?;
        remove_old_temporary(&workspace.places.state, days).map_err(|error| {
            CliError::new(Code::FileError, "temporary files of conversations are left")
                .because(&error)
        })?;
        printer.out_line(&format!("removed {removed} conversations"))?;
        return Ok(Exit::Ok);
    }
    // Whatever is wrong with one of them is found before any is removed.
    let mut found = Vec::new();
    for id in ids {
        found.push(find(store, id).await?);
    }
    for id in found {
        store.remove(&id).await.map_err(told)?;
        remove_temporary(&workspace.places.state, &id);
        printer.out_line(&format!("removed {id}"))?;
    }
    Ok(Exit::Ok)
}

/// All conversations, as far as they are looked through. A store gives only so many at once.
async fn all(store: &dyn Store) -> Result<Vec<Summary>, CliError> {
    let mut listed = Vec::new();
    while listed.len() < MAX_LOOKED_THROUGH {
        let wanted = Wanted {
            owner: None,
            limit: MAX_LOOKED_THROUGH - listed.len(),
            offset: listed.len(),
        };
        let more = store.list(&wanted).await.map_err(told)?;
        if more.is_empty() {
            break;
        }
        listed.extend(more);
    }
    Ok(listed)
}

/// The conversation whose id is or begins with this.
pub(crate) async fn find(store: &dyn Store, given: &str) -> Result<ConversationId, CliError> {
    if let Ok(id) = given.parse() {
        return Ok(id);
    }
    let listed = all(store).await?;
    let mut found = listed
        .into_iter()
        .map(|summary| summary.id)
        .filter(|id| given.len() >= MIN_PREFIX && id.as_str().starts_with(given));
    let error = match (found.next(), found.next()) {
        (Some(id), None) => return Ok(id),
        (Some(_), Some(_)) => format!("several conversations begin with `{}`", plain(given)),
        (None, _) if given.len() < MIN_PREFIX => {
            format!(
                "`{}` is too short: at least {MIN_PREFIX} characters name one",
                plain(given)
            )
        }
        (None, _) => format!("there is no conversation `{}`", plain(given)),
    };
    Err(CliError::new(Code::ConversationFailed, error)
        .hint("`cocode sessions list` shows what there is"))
}

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over results")]
fn told(error: StoreError) -> CliError {
    CliError::new(Code::ConversationFailed, error.to_string())
        .hint("`cocode sessions list` shows what there is")
}

fn summary_json(summary: &Summary) -> Value {
    let Summary {
        id,
        owner,
        title,
        cwd,
        began,
        used,
        turns,
        usage,
        cost,
        is_held,
        is_closed,
    } = summary;
    json!({
        "session_id": id.as_str(),
        "owner": owner,
        "title": title,
        "cwd": cwd,
        "began": seconds(*began),
        "used": seconds(*used),
        "turns": turns,
        "usage": usage,
        "cost_usd": cost,
        "in_use": is_held,
        "finished": is_closed,
    })
}

fn stored_json(stored: &Stored) -> Value {
    let records = stored.records.iter();
    let records: Vec<Value> = records
        .map(|(number, record)| json!({"number": number, "event": record}))
        .collect();
    let mut whole = summary_json(&stored.summary);
    whole["settings"] = json!(stored.settings);
    whole["events"] = Value::Array(records);
    whole
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn cost(cost: f64) -> String {
    if cost > 0.0 {
        format!("${cost:.2}")
    } else {
        "-".to_owned()
    }
}

/// How long ago something was.
pub(crate) fn ago(time: SystemTime) -> String {
    let ago = SystemTime::now()
        .duration_since(time)
        .unwrap_or(Duration::ZERO);
    let seconds = ago.as_secs();
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
