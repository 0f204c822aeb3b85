//! Adds servers to the files and takes them out, as `mcp add` and `mcp remove` do.

use std::collections::BTreeMap;

use cocode_admin::model::{NewServer, RemoteTransport, Scope, Server};
use cocode_admin::{Refusal, RefusalStatus, Secret};
use cocode_config::{Entry, Text, Transport};

use super::interior::Interior;
use super::servers::names;
use crate::args::manage::WritableScope;
use crate::manage::add::settle_directory;
use crate::manage::remove::take_out;
use crate::manage::writing::{Added, write};

impl Interior {
    pub(super) async fn add(&self, wanted: NewServer) -> Result<Server, Refusal> {
        let name = wanted.name.clone();
        if names(&self.present()).contains(&name) {
            let message = format!("there is a server `{name}` already");
            return Err(
                Refusal::new(RefusalStatus::Conflict, "already-there", message)
                    .hint("choose another name, or remove that one first"),
            );
        }
        let scope = match wanted.scope {
            None | Some(Scope::User) => WritableScope::User,
            Some(Scope::Local) => WritableScope::Local,
            Some(Scope::Project) => WritableScope::Project,
        };
        let mut entry = entry_of(wanted);
        let server = name.clone();
        let added = self.change(&name, move |workspace| {
            // Where it starts is seen in its entry.
            let _directory = settle_directory(&mut entry, scope, workspace);
            write(&server, &entry, scope.into(), false, workspace)
        });
        let Added { warnings, .. } = added.await?;
        for warning in warnings {
            tracing::warn!(server = name, "{warning}");
        }
        self.server(&name)
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), Refusal> {
        self.is_not_built_in(name)?;
        let server = name.to_owned();
        let removed = self.change(name, move |workspace| take_out(&server, None, workspace));
        removed.await.map(drop)
    }
}

/// The same as a file has it.
fn entry_of(wanted: NewServer) -> Entry {
    let texts = |values: Option<BTreeMap<String, Secret>>| {
        let values = values.unwrap_or_default().into_iter();
        values
            .map(|(key, value)| (key, Text(value.expose().to_owned())))
            .collect()
    };
    Entry {
        transport: wanted.transport.map(|transport| match transport {
            RemoteTransport::Http => Transport::Http,
            RemoteTransport::Sse => Transport::Sse,
            RemoteTransport::WebSocket => Transport::Ws,
        }),
        command: wanted.command,
        args: wanted.args.unwrap_or_default(),
        env: texts(wanted.env),
        cwd: wanted.cwd,
        url: wanted.url,
        headers: texts(wanted.headers),
        description: wanted.description,
        ..Entry::default()
    }
}
