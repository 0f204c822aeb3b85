//! `mcp search`: finds tools by what they are for, one query or many at once.

use std::path::Path;
use std::sync::Arc;

use cocode_core::{Explained, Hit, ScorePart};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::args::search::SearchArgs;
use crate::error::{CliError, Code, Exit};
use crate::printer::{Paint, Printer, Style, print_json};
use crate::text::{cut, plain, summary};
use crate::toolbox::{self, Opened, STDIN, Toolbox, bad_file, callable};
use crate::workspace::Workspace;

/// Queries of one batch.
const MAX_QUERIES: usize = 100_000;
/// How much of a description is shown at least, however narrow the terminal.
const MIN_SUMMARY_CHARACTERS: usize = 20;

/// A tool that was found, for scripts.
#[derive(Serialize)]
struct Found<'a> {
    server: &'a str,
    tool: &'a str,
    /// As `mcp call` takes it.
    name: String,
    score: f64,
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Serialize)]
struct Part<'a> {
    what: &'a str,
    found: &'a str,
    score: f64,
}

/// A tool that was found by one of many queries.
#[derive(Serialize)]
struct Brief<'a> {
    server: &'a str,
    tool: &'a str,
    score: f64,
}

impl<'a> Brief<'a> {
    fn of(hit: &'a Hit) -> Self {
        let Hit {
            server,
            tool,
            score,
        } = hit;
        Self {
            server,
            tool,
            score: *score,
        }
    }
}

pub(crate) fn run(
    args: &SearchArgs,
    printer: &Arc<Printer>,
    workspace: impl FnOnce() -> Result<Workspace, CliError>,
) -> Result<Exit, CliError> {
    let SearchArgs {
        query,
        limit,
        explain,
        batch,
        toolbox,
    } = args;
    let limit = usize::from(*limit);
    if let Some(file) = batch {
        let is_stdin = |path: &Path| path.as_os_str() == STDIN;
        if is_stdin(file) && toolbox.catalog.as_deref().is_some_and(is_stdin) {
            let message = "`--catalog -` and `--batch -` both want stdin";
            return Err(
                CliError::new(Code::InvalidUsage, message).hint("give one of them as a file")
            );
        }
        let queries = queries(file)?;
        let Opened { toolbox, .. } = toolbox::open(toolbox, printer, workspace)?;
        return all(&queries, limit, &toolbox, printer);
    }
    let query = query.join(" ");
    if query.trim().is_empty() {
        return Err(CliError::new(Code::InvalidUsage, "the query is empty")
            .hint("say in words what the tool is to do: `cocode mcp search read a file`"));
    }
    let Opened { toolbox, .. } = toolbox::open(toolbox, printer, workspace)?;
    let index = toolbox.index();
    let found = if *explain {
        index.explain(&query, limit)
    } else {
        let hits = index.search(&query, limit).into_iter();
        let alone = |hit| Explained {
            hit,
            parts: Vec::new(),
        };
        hits.map(alone).collect()
    };
    if printer.json() {
        let found = found.iter().map(|one| for_scripts(one, *explain, &toolbox));
        print_json(printer, &found.collect::<Vec<_>>())?;
    } else if found.is_empty() {
        printer.note(&format!(
            "none of the {} tools that are known fits `{}`",
            index.len(),
            plain(&query)
        ));
    } else {
        let paint = printer.paint();
        let width = printer.width();
        printer.out(for_people(&found, &toolbox, width, paint))?;
    }
    Ok(if found.is_empty() {
        Exit::Tool
    } else {
        Exit::Ok
    })
}

/// Answers many queries: the tools are indexed once.
fn all(
    queries: &[String],
    limit: usize,
    toolbox: &Toolbox,
    printer: &Printer,
) -> Result<Exit, CliError> {
    let index = toolbox.index();
    let found: Vec<Vec<Hit>> = queries
        .iter()
        .map(|query| index.search(query, limit))
        .collect();
    let found = found
        .iter()
        .map(|hits| hits.iter().map(Brief::of).collect());
    print_json(printer, &found.collect::<Vec<Vec<Brief<'_>>>>())?;
    Ok(Exit::Ok)
}

/// The queries of a batch.
fn queries(path: &Path) -> Result<Vec<String>, CliError> {
    let bad = |wrong: String| {
        bad_file(path, "batch of queries", wrong).hint(
            "a batch is a list of texts: [\"read a file\", \"open an issue\"]; the first is [0]",
        )
    };
    let bytes = toolbox::read(path)?;
    let items: &RawValue =
        serde_json::from_slice(&bytes).map_err(|error| bad(format!("it is not JSON: {error}")))?;
    let items: Vec<&RawValue> = serde_json::from_str(items.get()).map_err(|_no_list| {
        bad(format!(
            "it is {}, and must be a list",
            toolbox::kind(items)
        ))
    })?;
    if items.len() > MAX_QUERIES {
        let many = items.len();
        return Err(bad(format!(
            "it has {many} queries, and may have {MAX_QUERIES}"
        )));
    }
    let query = |(index, item): (usize, &&RawValue)| {
        serde_json::from_str(item.get()).map_err(|_no_text| {
            let kind = toolbox::kind(item);
            bad(format!("[{index}] is {kind}, and must be a text"))
        })
    };
    items.iter().enumerate().map(query).collect()
}

fn for_scripts<'a>(one: &'a Explained, explain: bool, toolbox: &'a Toolbox) -> Found<'a> {
    let Explained { hit, parts } = one;
    let Hit {
        server,
        tool,
        score,
    } = hit;
    let part = |part: &'a ScorePart| {
        let ScorePart { what, found, score } = part;
        let score = *score;
        Part { what, found, score }
    };
    let known = toolbox.tool(server, tool);
    Found {
        server,
        tool,
        name: callable(server, tool),
        score: *score,
        description: known.and_then(|tool| tool.description.as_deref()),
        parts: explain.then(|| parts.iter().map(part).collect()),
    }
}

/// A line for each tool, and below it what its score is made of.
fn for_people(found: &[Explained], toolbox: &Toolbox, width: usize, paint: Paint) -> String {
    let score = |score: f64| format!("{score:.2}");
    let rank_column = found.len().to_string().len();
    let scores = found.iter().map(|one| score(one.hit.score).len());
    let score_column = scores.max().unwrap_or_default();
    let name = |hit: &Hit| plain(&callable(&hit.server, &hit.tool));
    let names = found.iter().map(|one| name(&one.hit).chars().count());
    let name_column = names.max().unwrap_or_default();
    let before = rank_column + score_column + name_column + 6;
    let room = width.saturating_sub(before).max(MIN_SUMMARY_CHARACTERS);
    let mut text = String::new();
    for (index, Explained { hit, parts }) in found.iter().enumerate() {
        let known = toolbox.tool(&hit.server, &hit.tool);
        let known = known.and_then(|tool| tool.description.as_deref().or(tool.title.as_deref()));
        let about = cut(&summary(known.unwrap_or_default()), room);
        let name = name(hit);
        let padding = " ".repeat(name_column.saturating_sub(name.chars().count()) + 2);
        let line = format!(
            "{:>rank_column$}  {:>score_column$}  {}{padding}{about}",
            index + 1,
            score(hit.score),
            paint.paint(Style::Bold, &name),
        );
        text.push_str(line.trim_end());
        text.push('\n');
        for ScorePart {
            what,
            found,
            score: part,
        } in parts
        {
            let indent = " ".repeat(rank_column + 2);
            let (part, what, found) = (score(*part), plain(what), plain(found));
            let line = format!("{indent}{part:>score_column$}    {what}: {found}");
            text.push_str(&paint.paint(Style::Dim, line.trim_end()));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
