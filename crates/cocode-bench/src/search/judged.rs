//! How well searches find what people said that a task needs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cocode_core::ToolIndex;
use serde::Deserialize;

use super::bm25::Plain;
use super::{Tool, by_server, indexed};
use crate::Failure;

/// Tools that are taken for each step of a task, and for its question.
const PER_STEP: usize = 5;
const PER_QUESTION: usize = 10;

/// A task, and the tools that it needs.
#[derive(Debug, Deserialize)]
struct Task {
    question: String,
    steps: Vec<String>,
    tools: Vec<String>,
}

/// What part of the needed tools was found, on average.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scores {
    /// By the steps of a task, each with five tools.
    pub(crate) steps: f64,
    /// By the question alone, with ten tools.
    pub(crate) question: f64,
}

/// Judges both rankings by the tasks in `queries.json` over the tools in `catalog.json`.
pub(crate) fn judge(directory: &Path) -> Result<(Scores, Scores), Failure> {
    let read = |name: &str| {
        let path = directory.join(name);
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let tools: Vec<Tool> = serde_json::from_str(&read("catalog.json")?)?;
    let tasks: Vec<Task> = serde_json::from_str(&read("queries.json")?)?;
    let index = indexed(&by_server(&tools));
    let plain = Plain::of(&tools);
    let ours = score(&tasks, |query, limit| found(&index, query, limit));
    let theirs = score(&tasks, |query, limit| {
        let names = plain.search(query, limit).into_iter();
        names.map(str::to_owned).collect()
    });
    Ok((ours, theirs))
}

fn found(index: &ToolIndex, query: &str, limit: usize) -> BTreeSet<String> {
    let hits = index.search(query, limit).into_iter();
    hits.map(|hit| hit.tool.to_string()).collect()
}

fn score(tasks: &[Task], search: impl Fn(&str, usize) -> BTreeSet<String>) -> Scores {
    let share = |task: &Task, found: &BTreeSet<String>| {
        let needed: BTreeSet<_> = task.tools.iter().collect();
        let hit = needed.iter().filter(|name| found.contains(**name)).count();
        #[expect(clippy::cast_precision_loss, reason = "a handful of tools")]
        let share = hit as f64 / needed.len().max(1) as f64;
        share
    };
    let (mut steps, mut question) = (0.0, 0.0);
    for task in tasks {
        let by_step = task.steps.iter().map(|step| search(step, PER_STEP));
        steps += share(task, &by_step.flatten().collect());
        question += share(task, &search(&task.question, PER_QUESTION));
    }
    #[expect(clippy::cast_precision_loss, reason = "some hundred tasks")]
    let many = tasks.len().max(1) as f64;
    Scores {
        steps: steps / many,
        question: question / many,
    }
}
