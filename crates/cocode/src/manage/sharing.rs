//! What people are told of servers that clients share.

use cocode_admin::model::{Front, Instance};
use cocode_gateway::Sharing;

/// Which of the servers a front serves.
pub(crate) fn serves(front: &Front) -> String {
    let servers = selects(front);
    match &front.tool_search {
        Some(mode) => format!("{servers}, tool search {mode}"),
        None => servers,
    }
}

fn selects(front: &Front) -> String {
    match (&front.server, &front.servers, &front.profile) {
        (Some(server), _, _) => format!("{server}, as it is"),
        // What is named counts more than the profile.
        (None, Some(servers), _) => servers.join(","),
        (None, None, Some(profile)) => format!("profile {profile}"),
        (None, None, None) => "all".to_owned(),
    }
}

/// How a server is shared and why, unless it simply is.
pub(super) fn terms(server: &Instance) -> Option<String> {
    let Instance { name, sharing, .. } = server;
    let reason = server.sharing_reason.as_ref()?;
    Some(if sharing == Sharing::Catalog.as_str() {
        format!("`{name}` runs for each session, and once to know what it offers, because {reason}")
    } else {
        format!("`{name}` is {sharing} because {reason}")
    })
}
