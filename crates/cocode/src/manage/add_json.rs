//! Adds a server from a JSON object, as other tools write and document it.

use std::io::Read as _;

use cocode_config::entry_from_json;

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
    let errors: Vec<_> = problems
        .iter()
        .filter(|problem| problem.is_error())
        .collect();
    if !errors.is_empty() {
        let message = "the JSON does not describe a server";
        return Err(with_problems(
            CliError::new(Code::InvalidUsage, message),
            &errors,
        ));
    }
    for problem in &problems {
        let key = problem.key.as_deref().unwrap_or_default();
        let message = format!("`{key}`: {}; it was left out", problem.message);
        workspace.printer.warn(&message);
    }
    if *client_secret {
        entry.oauth.client_secret_env = Some(client_secret_variable()?.to_owned());
    }
    add(name, &entry, *scope, *force, workspace)
}
