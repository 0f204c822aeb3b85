//! Removes results.

use cocode_client::{ResultHandle, ResultStore};
use serde::Serialize;

use super::failed;
use crate::args::results::RemoveResultsArgs;
use crate::error::{CliError, Exit};
use crate::printer::print_json;
use crate::text::size;
use crate::workspace::Workspace;

#[derive(Serialize)]
struct Report {
    removed: usize,
}

pub(super) fn run(
    args: &RemoveResultsArgs,
    store: &ResultStore,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let printer = &workspace.printer;
    let (removed, told) = if args.all {
        let purged = store.clear().map_err(|error| failed(&error))?;
        let bytes = usize::try_from(purged.bytes).unwrap_or(usize::MAX);
        let told = format!("removed {} ({})", counted(purged.results), size(bytes));
        (purged.results, told)
    } else {
        // Before anything is removed: a word that means nothing stops all of it.
        let handles: Result<Vec<ResultHandle>, _> = args
            .handles
            .iter()
            .map(|handle| store.resolve(handle))
            .collect();
        let mut removed = 0;
        for handle in &handles.map_err(|error| failed(&error))? {
            removed += usize::from(store.remove(handle).map_err(|error| failed(&error))?);
        }
        (removed, format!("removed {}", counted(removed)))
    };
    if printer.json() {
        print_json(printer, &Report { removed })?;
    } else {
        printer.out_line(&told)?;
    }
    Ok(Exit::Ok)
}

fn counted(results: usize) -> String {
    match results {
        1 => "1 result".to_owned(),
        _ => format!("{results} results"),
    }
}
