//! What all lists have in common: the raw form for scripts, and what has to be said about gaps.

use cocode_client::{Listing, Quarantined, RawJson};
use serde_json::value::RawValue;

use crate::arguments::members;
use crate::error::CliError;
use crate::printer::Printer;
use crate::render::{Row, rows};
use crate::text::plain;

/// Warns about items that cannot be used, and about an end that was not reached.
pub(super) fn warn<T>(printer: &Printer, kind: &str, listing: &Listing<T>) {
    for warning in warnings(kind, listing) {
        printer.warn(&warning);
    }
}

/// What has to be said about a list.
pub(super) fn warnings<T>(kind: &str, listing: &Listing<T>) -> Vec<String> {
    let unusable = listing
        .quarantined
        .iter()
        .map(|Quarantined { name, reason }| {
            let name = name
                .as_ref()
                .map(|name| format!(" `{}`", plain(name)))
                .unwrap_or_default();
            format!("the {kind}{name} cannot be used: {reason}")
        });
    let incomplete = listing.incomplete.as_ref();
    unusable
        .chain(incomplete.map(|reason| format!("the list is not complete: {reason}")))
        .collect()
}

/// Prints a list as the server sent it: its one page, or the items of all pages as they are.
pub(super) fn print_raw(
    printer: &Printer,
    member: &str,
    pages: &[RawJson],
) -> Result<(), CliError> {
    if let [page] = pages {
        return printer.out_line(page.as_str());
    }
    printer.out_line(&joined(member, pages))
}

fn joined(member: &str, pages: &[RawJson]) -> String {
    let mut items: Vec<&str> = Vec::new();
    for page in pages {
        let members = members(page.as_str()).unwrap_or_default();
        let list = members
            .iter()
            .find(|(key, _)| key.get() == format!("\"{member}\""));
        let list =
            list.and_then(|(_, list)| serde_json::from_str::<Vec<&RawValue>>(list.get()).ok());
        items.extend(list.unwrap_or_default().iter().map(|item| item.get()));
    }
    format!("{{\"{member}\":[{}]}}", items.join(","))
}

/// Prints a list for people; `nothing` says that it is empty.
pub(super) fn print_rows(printer: &Printer, list: &[Row], nothing: &str) -> Result<(), CliError> {
    if list.is_empty() {
        printer.warn(nothing);
        return Ok(());
    }
    printer.out(rows(list, printer.width(), printer.paint()))
}

/// A row for an item that cannot be used.
pub(super) fn quarantined_row(quarantined: &Quarantined) -> Row {
    let Quarantined { name, reason } = quarantined;
    Row {
        name: name.clone().unwrap_or_else(|| "(no name)".to_owned()),
        text: String::new(),
        note: format!("cannot be used: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use cocode_client::RawJson;

    use super::joined;

    #[test]
    fn pages_are_joined_without_touching_the_items() {
        let pages = [
            r#"{"a":[{ "n":1.10 }, 1e400],"nextCursor":"x"}"#,
            r#"{ "a" : [] }"#,
            r#"{"a":["é"]}"#,
        ];
        let pages = pages.map(|page| RawJson::parse(page).unwrap());
        assert_eq!(joined("a", &pages), r#"{"a":[{ "n":1.10 },1e400,"é"]}"#);
    }
}
