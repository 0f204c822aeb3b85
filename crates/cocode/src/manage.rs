//! Keeping servers in files: one file for each verb.

pub(crate) mod add;
mod add_json;
pub(crate) mod daemon;
mod doctor;
pub(crate) mod enable;
mod exchange;
mod explain;
mod export;
mod get;
mod import;
mod list;
pub(crate) mod logs;
pub(crate) mod overview;
pub(crate) mod remove;
pub(crate) mod report;
mod restart;
pub(crate) mod sharing;
mod status;
pub(crate) mod trust;
pub(crate) mod writing;

use crate::args::auth::AuthVerb;
use crate::args::manage::{ManageVerb, WritableScope};
use crate::auth;
use crate::error::{CliError, Exit};
use crate::workspace::Workspace;

/// Does what is asked.
pub(crate) fn run(verb: &ManageVerb, workspace: &Workspace) -> Result<Exit, CliError> {
    match verb {
        ManageVerb::Add(args) => add::run(args, workspace),
        ManageVerb::AddJson(args) => add_json::run(args, workspace),
        ManageVerb::List(args) => list::run(args, workspace),
        ManageVerb::Get(args) => get::run(args, workspace),
        ManageVerb::Remove(args) => remove::run(args, workspace),
        ManageVerb::Enable(args) => enable::run(args, true, workspace),
        ManageVerb::Disable(args) => enable::run(args, false, workspace),
        ManageVerb::Trust(args) => trust::run(args, workspace),
        ManageVerb::Explain(args) => explain::run(args, workspace),
        ManageVerb::Import(args) => import::run(args, workspace),
        ManageVerb::Export(args) => export::run(args, workspace),
        ManageVerb::Doctor(args) => doctor::run(args, workspace),
        ManageVerb::Logs(args) => logs::run(args, workspace),
        ManageVerb::Status(args) => overview::run(args, workspace),
        ManageVerb::Restart(args) => restart::run(args, workspace),
        ManageVerb::Login(args) => auth::login::run(args, workspace),
        ManageVerb::Logout(args) => auth::logout::run(args, workspace),
        ManageVerb::Auth(AuthVerb::Status(args)) => auth::status::run(args, workspace),
        ManageVerb::Auth(AuthVerb::ClientMetadata(args)) => auth::document::run(args, workspace),
    }
}

impl From<WritableScope> for cocode_config::Scope {
    fn from(scope: WritableScope) -> Self {
        match scope {
            WritableScope::Local => Self::Local,
            WritableScope::Project => Self::Project,
            WritableScope::User => Self::User,
        }
    }
}
