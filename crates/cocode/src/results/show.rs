//! Shows a result: a page of its text, all of it, or what the server sent.

use cocode_client::{Page, PageSize, ResultStore};
use serde::Serialize;

use super::read;
use crate::args::results::ShowArgs;
use crate::error::{CliError, Code, Exit};
use crate::printer::print_json;
use crate::render::ended;
use crate::workspace::Workspace;

#[derive(Serialize)]
struct Report<'a> {
    handle: &'a str,
    page: usize,
    pages: usize,
    first_line: usize,
    last_line: usize,
    lines: usize,
    text: &'a str,
}

pub(super) fn run(
    args: &ShowArgs,
    store: &ResultStore,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let ShowArgs {
        handle,
        page,
        lines,
        all,
        raw,
    } = args;
    let printer = &workspace.printer;
    let stored = read(handle, store)?;
    let wants_page = page.is_some() || lines.is_some();
    if *raw || printer.json() && !wants_page {
        let text = ended(stored.raw.as_str().to_owned());
        // For a machine nothing is changed; a terminal must not obey what JSON may hold.
        let text = if printer.json() {
            text
        } else {
            printer.for_stdout(text)
        };
        printer.out(text)?;
        return Ok(Exit::Ok);
    }
    if *all {
        printer.out(printer.for_stdout(stored.text()))?;
        return Ok(Exit::Ok);
    }
    let size = lines.map_or_else(PageSize::default, PageSize::Lines);
    let number = page.map_or(1, std::num::NonZeroUsize::get);
    let Some(shown) = stored.page(number, size) else {
        let pages = stored.page(1, size).map_or(0, |first| first.pages);
        let message = format!("there is no page {number}: the last is {pages}");
        return Err(CliError::new(Code::InvalidUsage, message));
    };
    let Page {
        number,
        pages,
        first_line,
        last_line,
        lines,
        text,
    } = shown;
    if printer.json() {
        let report = Report {
            handle: stored.handle.as_str(),
            page: number,
            pages,
            first_line,
            last_line,
            lines,
            text: &text,
        };
        return print_json(printer, &report).map(|()| Exit::Ok);
    }
    printer.out(printer.for_stdout(ended(text)))?;
    if pages > 1 {
        let next = if number < pages {
            format!(", go on with --page {}", number + 1)
        } else {
            String::new()
        };
        printer.note(&format!(
            "page {number} of {pages}: lines {first_line} to {last_line} of {lines}{next}"
        ));
    }
    Ok(Exit::Ok)
}
