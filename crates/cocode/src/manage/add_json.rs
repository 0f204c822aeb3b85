//! Adds a server from a JSON object, as other tools write and document it.

use std::io::Read as _;

use cocode_config::{Problem, entry_from_json};

use super::add::{add, client_secret_variable};
use crate::args::manage::AddJsonArgs;
use crate::error::{CliError, Code, Exit};
use crate::workspace::{Workspace, with_problems};

pub(crate) fn run(args: &AddJsonArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let AddJsonArgs {
        name,
        object,
        scope,
        client_secret,
        force,
    } = args;
    let mut text = object.clone();
    if object == "-" {
        text.clear();
        let read = std::io::stdin().lock().read_to_string(&mut text);
        read.map_err(|error| CliError::new(Code::FileError, "cannot read stdin").because(&error))?;
    }
    let (mut entry, problems) = entry_from_json(name, &text).map_err(|problem| {
        let message = format!("the JSON of the server cannot be read: {}", problem.message);
        CliError::new(Code::InvalidUsage, message)
            .hint(r#"write one object, as in '{"command": "npx", "args": ["-y", "SERVER"]}'"#)
    })?;
    if problems.iter().any(Problem::is_error) {
        let message = "the JSON does not describe a server";
        // Warnings too: a misspelled key may be what is missing.
        let all: Vec<_> = problems.iter().collect();
        let error = with_problems(CliError::new(Code::InvalidUsage, message), &all);
        let whole_file = problems
            .iter()
            .any(|problem| problem.key.as_deref() == Some("mcpServers"));
        return Err(if whole_file {
            error.hint("give the object of one server, without `mcpServers` around it")
        } else {
            error
        });
    }
    for problem in &problems {
        let key = problem.key.as_deref().unwrap_or_default();
        let message = format!("`{key}`: {}; it was left out", problem.message);
        workspace.printer.warn(&message);
    }
    if *client_secret {
        let client_id = entry.oauth.client_id.as_deref();
        entry.oauth.client_secret_env =
            client_secret_variable(entry.url.as_deref(), client_id, workspace)?;
    }
    add(name, &entry, *scope, *force, workspace)
}
