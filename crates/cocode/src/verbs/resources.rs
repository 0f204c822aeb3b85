//! Lists resources and their templates, and reads resources.

use std::path::Path;

use cocode_client::{
    Listing, ReadResult, RequestOptions, Resource, ResourceContents, ResourceReference,
    ResourceTemplate,
};

use super::Context;
use super::listing::{print_raw, print_rows, quarantined_row, warn};
use crate::error::{CliError, Exit};
use crate::fleet::until;
use crate::printer::Printer;
use crate::render::{Row, decoded};
use crate::text::{plain, size, summary, tame};

pub(super) async fn resources(context: &Context<'_>) -> Result<(), CliError> {
    let listing = context.manager.list_resources(context.server, until());
    let listing = listing.await.map_err(|error| context.error(&error))?;
    print(&listing, context.printer)
}

pub(super) async fn templates(context: &Context<'_>) -> Result<(), CliError> {
    let (manager, server) = (context.manager, context.server);
    let listing = manager.list_resource_templates(server, until());
    let listing = listing.await.map_err(|error| context.error(&error))?;
    print_templates(&listing, context.printer)
}

pub(super) fn print(listing: &Listing<Resource>, printer: &Printer) -> Result<(), CliError> {
    warn(printer, "resource", listing);
    if printer.json() {
        return print_raw(printer, "resources", &listing.pages);
    }
    let list: Vec<Row> = listing
        .items
        .iter()
        .map(row_of)
        .chain(listing.quarantined.iter().map(quarantined_row))
        .collect();
    print_rows(printer, &list, "the server has no resources")
}

pub(super) fn print_templates(
    listing: &Listing<ResourceTemplate>,
    printer: &Printer,
) -> Result<(), CliError> {
    warn(printer, "resource template", listing);
    if printer.json() {
        return print_raw(printer, "resourceTemplates", &listing.pages);
    }
    let list: Vec<Row> = listing
        .items
        .iter()
        .map(row_of_template)
        .chain(listing.quarantined.iter().map(quarantined_row))
        .collect();
    print_rows(printer, &list, "the server has no resource templates")
}

/// A resource in a list.
pub(super) fn row_of(one: &Resource) -> Row {
    row(
        &one.uri,
        &one.name,
        one.description.as_deref(),
        one.mime_type.as_deref(),
    )
}

/// A template in a list.
pub(super) fn row_of_template(one: &ResourceTemplate) -> Row {
    row(
        &one.uri_template,
        &one.name,
        one.description.as_deref(),
        one.mime_type.as_deref(),
    )
}

fn row(uri: &str, name: &str, description: Option<&str>, mime_type: Option<&str>) -> Row {
    let name = if uri == name { "" } else { name };
    let description = summary(description.unwrap_or_default());
    let parts: Vec<&str> = [name, &description]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    Row {
        name: uri.to_owned(),
        text: parts.join(": "),
        note: mime_type
            .map(|kind| format!("[{kind}]"))
            .unwrap_or_default(),
    }
}

pub(super) async fn read(
    context: &Context<'_>,
    uri: &str,
    output: Option<&Path>,
) -> Result<(), CliError> {
    let reference = ResourceReference {
        server: context.server.clone(),
        uri: uri.to_owned(),
    };
    let read = context.manager.read(&reference, RequestOptions::default());
    let result = read.await.map_err(|error| context.error(&error))?;
    if let Some(path) = output {
        let bytes = bytes(uri, &result, BlobsAs::Bytes)?;
        std::fs::write(path, &bytes).map_err(|error| CliError::file("write", path, &error))?;
        context.printer.note(&format!(
            "wrote {} to {}",
            size(bytes.len()),
            path.display()
        ));
        if !context.printer.json() {
            return Ok(());
        }
    }
    if context.printer.json() {
        return context.printer.out_line(result.raw.as_str());
    }
    let blobs = if context.printer.stdout_is_terminal() {
        BlobsAs::Summary
    } else {
        BlobsAs::Bytes
    };
    context.printer.out(bytes(uri, &result, blobs)?)
}

/// What to do with contents that are not text.
#[derive(Clone, Copy)]
enum BlobsAs {
    Bytes,
    /// Fit for a terminal.
    Summary,
}

/// All contents, one after the other, and exactly as they are if there is only one. Half of a
/// resource would pass for the whole, so nothing is given if a part cannot be.
fn bytes(uri: &str, result: &ReadResult, blobs: BlobsAs) -> Result<Vec<u8>, CliError> {
    let contents = result.contents();
    if contents.is_empty() {
        return Err(unusable(uri, "has no contents"));
    }
    let at_terminal = matches!(blobs, BlobsAs::Summary);
    let mut all = Vec::new();
    for (index, one) in contents.iter().enumerate() {
        let ResourceContents {
            uri,
            mime_type,
            text,
            blob,
        } = one;
        match (text, blob) {
            (Some(text), _) => {
                if at_terminal {
                    all.extend_from_slice(tame(text).as_bytes());
                } else {
                    all.extend_from_slice(text.as_bytes());
                }
                let is_last = index + 1 == contents.len();
                if (at_terminal || !is_last) && !text.ends_with('\n') {
                    all.push(b'\n');
                }
            }
            (None, Some(blob)) => {
                let Some(bytes) = decoded(blob) else {
                    return Err(unusable(uri, "has a blob that is not valid base64"));
                };
                match blobs {
                    BlobsAs::Bytes => all.extend_from_slice(&bytes),
                    BlobsAs::Summary => {
                        let kind = plain(mime_type.as_deref().unwrap_or("binary"));
                        let line = format!(
                            "[{}, {kind}, {}; --output FILE saves it]\n",
                            plain(uri),
                            size(bytes.len())
                        );
                        all.extend_from_slice(line.as_bytes());
                    }
                }
            }
            (None, None) => return Err(unusable(uri, "has neither text nor blob")),
        }
    }
    Ok(all)
}

fn unusable(uri: &str, why: &str) -> CliError {
    let message = format!("the resource `{}` {why}", plain(uri));
    CliError::with(Exit::Server, "unexpected-answer", message)
        .hint("`--json` shows what the server sent")
}
