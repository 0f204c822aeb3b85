//! What servers offer: tools, resources, prompts.

use cocode_wire::RawJson;

use crate::schema::{record, words};

words! {
    /// What the rules say about calling a tool.
    pub enum Verdict {
        /// It may be called.
        Allow = "allow",
        /// Somebody has to be asked first.
        Ask = "ask",
        /// It must not be called, and clients do not see it.
        Deny = "deny",
    }
}

record! {
    /// The tools of a server.
    pub struct ServerTools {
        /// In the server's order, those that clients do not see included.
        tools: Vec<ServerTool>,
    }
}

record! {
    /// A tool.
    pub struct ServerTool {
        /// Its name at its server.
        name: String,
        /// Its name among the tools of all servers.
        qualified_name: String,
        /// A name for people.
        title: Option<String>,
        /// What it does, in the words of its server.
        description: Option<String>,
        /// The JSON Schema of its arguments, as the server wrote it.
        input_schema: RawJson where { "type": ["object", "boolean"] },
        /// The JSON Schema of its structured results, as the server wrote it.
        output_schema: Option<RawJson> where { "type": ["object", "boolean"] },
        /// What the server says about its effects.
        annotations: RawJson where { "type": "object" },
        /// What it costs a model to know of it, in tokens by estimate.
        tokens: u64,
        /// What the rules say about calling it.
        verdict: Verdict,
    }
}

record! {
    /// The resources of a server, each as the server sent it.
    pub struct Resources {
        /// Those that it lists.
        resources: Vec<RawJson>,
        /// Templates of addresses of others.
        templates: Vec<RawJson>,
    }
}

record! {
    /// The prompts of a server, each as the server sent it.
    pub struct Prompts {
        /// Those that it lists.
        prompts: Vec<RawJson>,
    }
}

record! {
    /// Tools of any server that fit a query.
    pub struct FoundTools {
        /// The best first; by server and name where there was no query.
        tools: Vec<FoundTool>,
    }
}

record! {
    /// A tool that fits a query.
    pub struct FoundTool {
        /// Its server.
        server: String,
        /// Its name at its server.
        name: String,
        /// Its name among the tools of all servers.
        qualified_name: String,
        /// What it does, in the words of its server.
        description: Option<String>,
        /// How well it fits; only of use to compare with the others.
        score: f64,
        /// What it costs a model to know of it, in tokens by estimate.
        tokens: u64,
    }
}
