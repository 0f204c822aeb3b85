//! The address of a database with everything that it refers to: variables and secrets.

use cocode_auth::{CommandSettings, Reference, References};
use cocode_config::expand_secret;
use cocode_core::{TemplatePart, percent_encode};

use crate::error::{CliError, Code};
use crate::stores;
use crate::workspace::Workspace;

/// An address that stands in a file, with what `${…}` stands for. Within an address, values are taken as
/// they are: an `@` in a password is no end of it.
pub(super) async fn resolved(text: &str, workspace: &Workspace) -> Result<String, CliError> {
    let variables = &workspace.environment.variables;
    let is_within = text.starts_with("postgres");
    let as_part = |value: &str| {
        if is_within {
            percent_encode(value)
        } else {
            value.to_owned()
        }
    };
    let template = expand_secret(text, &|name: &str| {
        variables.text(name).map(|value| as_part(&value))
    });
    let template = template.map_err(|error| {
        let hint = error.hint();
        unavailable("the address of the database cannot be put together")
            .because(&error)
            .hint(hint)
    })?;
    let mut commands = CommandSettings::new(variables.for_servers());
    commands.directory.clone_from(&workspace.places.directory);
    let references = References::new(stores::secrets(workspace)?, commands);
    let mut address = String::new();
    for part in template.parts {
        let reference = match part {
            TemplatePart::Literal(text) => {
                address.push_str(&text);
                continue;
            }
            TemplatePart::Keyring(name) => {
                let name = name.parse().map_err(|error| {
                    unavailable("the address of the database refers to no secret that can be kept")
                        .because(&error)
                })?;
                Reference::Keyring(name)
            }
            TemplatePart::Command(line) => Reference::Command(line),
        };
        let secret = references.resolve(&reference).await.map_err(|error| {
            unavailable("a secret in the address of the database could not be looked up")
                .because(&error)
        })?;
        address.push_str(&as_part(secret.expose()));
    }
    Ok(address)
}

fn unavailable(message: &str) -> CliError {
    CliError::new(Code::SecretUnavailable, message)
}
