//! The names of servers and tools that metrics may carry: servers choose the names of their tools,
//! and must not be able to fill a collector with them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

/// Servers that metrics tell apart; all further ones are `other`.
pub const MAX_TELEMETRY_SERVERS: usize = 500;
/// Tools, of all servers together, that metrics tell apart; all further ones are `other`.
pub const MAX_TELEMETRY_TOOLS: usize = 2_000;
/// A longer name is `other`.
const MAX_NAME_BYTES: usize = 256;

static OTHER: LazyLock<Arc<str>> = LazyLock::new(|| "other".into());

/// The names that have been seen.
#[derive(Default)]
pub(super) struct Names(RwLock<Seen>);

#[derive(Default)]
struct Seen {
    servers: HashMap<Arc<str>, HashSet<Arc<str>>>,
    tools: usize,
}

impl Names {
    /// How metrics call this server.
    pub(super) fn server(&self, server: &str) -> Arc<str> {
        if server.len() > MAX_NAME_BYTES {
            return Arc::clone(&OTHER);
        }
        let seen = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((server, _)) = seen.servers.get_key_value(server) {
            return Arc::clone(server);
        }
        drop(seen);
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .add_server(server)
    }

    /// How metrics call this tool of a server.
    pub(super) fn tool(&self, server: &str, tool: &str) -> (Arc<str>, Arc<str>) {
        let seen = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((server, tools)) = seen.servers.get_key_value(server)
            && let Some(tool) = tools.get(tool)
        {
            return (Arc::clone(server), Arc::clone(tool));
        }
        drop(seen);
        let server = self.server(server);
        if tool.len() > MAX_NAME_BYTES {
            return (server, Arc::clone(&OTHER));
        }
        let mut seen = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let tool = seen.add_tool(&server, tool);
        (server, tool)
    }
}

impl Seen {
    fn add_server(&mut self, server: &str) -> Arc<str> {
        if let Some((server, _)) = self.servers.get_key_value(server) {
            return Arc::clone(server);
        }
        if self.servers.len() >= MAX_TELEMETRY_SERVERS {
            return Arc::clone(&OTHER);
        }
        let server: Arc<str> = server.into();
        self.servers.insert(Arc::clone(&server), HashSet::new());
        server
    }

    fn add_tool(&mut self, server: &str, tool: &str) -> Arc<str> {
        let full = self.tools >= MAX_TELEMETRY_TOOLS;
        let Some(tools) = self.servers.get_mut(server) else {
            // Tools of servers that are not told apart are not either.
            return Arc::clone(&OTHER);
        };
        if let Some(tool) = tools.get(tool) {
            return Arc::clone(tool);
        }
        if full {
            return Arc::clone(&OTHER);
        }
        let tool: Arc<str> = tool.into();
        tools.insert(Arc::clone(&tool));
        self.tools += 1;
        tool
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_NAME_BYTES, MAX_TELEMETRY_SERVERS, MAX_TELEMETRY_TOOLS, Names};

    #[track_caller]
    fn check(names: &Names, (server, tool): (&str, &str), expected: (&str, &str)) {
        let (server, tool) = names.tool(server, tool);
        assert_eq!((&*server, &*tool), expected);
    }

    #[test]
    fn tools_beyond_the_cap_are_others_and_earlier_ones_keep_their_names() {
        let names = Names::default();
        for number in 0..MAX_TELEMETRY_TOOLS {
            let tool = format!("tool-{number}");
            check(&names, ("a", &tool), ("a", &tool));
        }
        check(&names, ("a", "one more"), ("a", "other"));
        check(&names, ("b", "tool-0"), ("b", "other"));
        check(&names, ("a", "tool-0"), ("a", "tool-0"));
    }

    #[test]
    fn servers_beyond_the_cap_are_others_with_all_their_tools() {
        let names = Names::default();
        for number in 0..MAX_TELEMETRY_SERVERS {
            let server = format!("server-{number}");
            assert_eq!(&*names.server(&server), server);
        }
        assert_eq!(&*names.server("one more"), "other");
        check(&names, ("one more", "tool"), ("other", "other"));
        check(&names, ("server-0", "tool"), ("server-0", "tool"));
    }

    #[test]
    fn names_too_long_to_be_told_are_others() {
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        let names = Names::default();
        check(&names, ("a", &long), ("a", "other"));
        check(&names, (&long, "tool"), ("other", "other"));
    }
}
