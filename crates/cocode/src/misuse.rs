//! What is said about a command line that cannot be understood, and what was probably meant by it.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use url::Url;

use crate::args::McpArgs;
use crate::error::{CliError, Code, Exit};
use crate::printer::Printer;
use crate::target::{is_address, shown};

/// Whether a server was to be used, and none was given in any way.
fn names_no_server(words: &[OsString]) -> bool {
    let is_server = |word: &OsString| {
        word == "--" || word == "--url" || word.to_string_lossy().starts_with("--url=")
    };
    // These take an address as it is.
    let takes_address = |word: &OsString| {
        ["add", "login", "logout", "auth"]
            .iter()
            .any(|verb| word == verb)
    };
    // These are about all servers. A tool may have such a name.
    let mut verbs = words.iter().skip_while(|word| *word != "mcp").skip(1);
    let is_about_all = verbs
        .next()
        .is_some_and(|verb| verb == "search" || verb == "budget");
    words.iter().any(|word| word == "mcp")
        && !is_about_all
        && !words.iter().any(takes_address)
        && !words.iter().any(is_server)
}

/// Says what clap has to say: help on stdout, complaints on stderr.
pub(crate) fn misused(error: &clap::Error, words: &[OsString], printer: &Printer) -> Exit {
    let rendered = error.render();
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        let text = if printer.paint().on {
            rendered.ansi().to_string()
        } else {
            rendered.to_string()
        };
        return match printer.out(text) {
            Ok(()) => Exit::Ok,
            Err(error) => error.exit,
        };
    }
    let text = rendered.to_string();
    let mut paragraphs = text.trim().split("\n\n");
    let first = paragraphs.next().unwrap_or_default();
    let mut told = CliError::new(
        Code::InvalidUsage,
        first.strip_prefix("error: ").unwrap_or(first),
    );
    for hint in hints(error, words) {
        told = told.hint(hint);
    }
    if printer.json() {
        let tips = paragraphs.filter_map(|paragraph| paragraph.trim().strip_prefix("tip: "));
        printer.error(&tips.fold(told, CliError::hint));
    } else {
        let text = if printer.error_paint().on {
            rendered.ansi().to_string()
        } else {
            text
        };
        printer.err_text(&text);
        // Who typed too little to go wrong is shown the help, and needs nothing explained.
        if error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            let lines = told.to_lines();
            let first = lines.len().saturating_sub(told.hints.len() + 1);
            for line in lines.iter().skip(first) {
                printer.err_line(line);
            }
        }
    }
    Exit::Usage
}

/// What the user may have meant.
fn hints(error: &clap::Error, words: &[OsString]) -> Vec<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let option = context(ContextKind::InvalidArg).and_then(|word| word.strip_prefix("--"));
            let is_option = |word: &str| word.starts_with('-');
            if let Some(name) =
                context(ContextKind::InvalidArg).filter(|word| serves(words) && !is_option(word))
            {
                let hint = format!(
                    "`--server {name}` serves one server as it is, `--servers {name}` only this one of all"
                );
                vec![hint]
            } else if let Some(hint) = stray_address(words) {
                vec![hint]
            } else if let Some(name) = option.filter(|_| words.iter().any(|word| word == "call")) {
                let name = name.split('=').next().unwrap_or(name);
                let hint = format!("an argument of the tool has no dashes: {name}=VALUE");
                vec![hint]
            } else if names_no_server(words) {
                let hint = "the program that is the server, and its arguments, come after `--`";
                vec![hint.to_owned()]
            } else {
                Vec::new()
            }
        }
        ErrorKind::InvalidSubcommand => {
            let verb = context(ContextKind::InvalidSubcommand).filter(|word| is_verb(word));
            verb.map(|verb| format!("did you mean `cocode mcp {verb}`?"))
                .into_iter()
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Whether the configured servers were to be served.
fn serves(words: &[OsString]) -> bool {
    let mut words = words.iter();
    words.any(|word| word == "mcp") && words.any(|word| word == "serve")
}

fn is_verb(word: &str) -> bool {
    McpArgs::command().find_subcommand(word).is_some()
}

/// How to write an address that stands where none is expected, if no server is given otherwise.
pub(crate) fn stray_address(words: &[OsString]) -> Option<String> {
    if !names_no_server(words) {
        return None;
    }
    let address = words.iter().filter_map(|word| word.to_str());
    let address = address.skip(1).find(|word| is_address(word))?;
    let address = Url::parse(address).map_or_else(|_| "URL".to_owned(), |url| shown(&url));
    Some(format!(
        "the address of a server comes after `--url`: --url {address}"
    ))
}
