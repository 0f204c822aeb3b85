//! The document that describes this client to authorization servers, to be put on the web by whoever
//! wants to be known by it.

use cocode_auth::oauth::{CALLBACK_PATH, check_metadata_url, client_metadata_document};
use cocode_client::Url;

use crate::args::auth::ClientMetadataArgs;
use crate::error::{CliError, Code, Exit};
use crate::workspace::Workspace;

pub(crate) fn run(args: &ClientMetadataArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let settings = &workspace.config()?.settings.oauth;
    let configured = settings.client_metadata_url.as_ref();
    let given = args
        .url
        .as_ref()
        .or(configured.map(|setting| &setting.value));
    let given = given.ok_or_else(|| {
        CliError::new(
            Code::InvalidUsage,
            "it is not said where the document will be",
        )
        .hint("as in: cocode mcp auth client-metadata --url https://example.com/cocode.json")
    })?;
    let url = Url::parse(given).map_err(|error| {
        CliError::new(Code::InvalidUsage, "the value of `--url` is no URL").because(&error)
    })?;
    check_metadata_url(&url).map_err(|error| {
        let message = "authorization servers would not take this address for a client";
        CliError::new(Code::InvalidUsage, message).because(&error)
    })?;
    let configured = settings.callback_port.as_ref();
    let port = args
        .callback_port
        .or(configured.map(|setting| setting.value));
    // Without a port, authorization servers that follow RFC 8252 take any.
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let redirects = ["127.0.0.1", "localhost", "[::1]"]
        .map(|host| format!("http://{host}{port}{CALLBACK_PATH}"));
    let document = client_metadata_document(&url, &redirects);
    let text = serde_json::to_string_pretty(&document)
        .map_err(|error| CliError::new(Code::SetupFailed, "cannot write JSON").because(&error))?;
    let printer = &workspace.printer;
    printer.out_line(&text)?;
    let and_port = match args.callback_port {
        Some(port) => format!(" and `callback_port = {port}`"),
        None => String::new(),
    };
    printer.note(&format!(
        "put it at {url} as application/json, and set `client_metadata_url = \"{url}\"`{and_port} in \
         [oauth] of config.toml"
    ));
    Ok(Exit::Ok)
}
