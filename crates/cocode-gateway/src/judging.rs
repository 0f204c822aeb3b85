//! What the rules of a view say about the call of a tool, and why.

use cocode_client::Annotations;
use cocode_core::Verdict;

use crate::view::{Entry, Inner};

impl Inner {
    /// What is to be done about a call of this tool.
    pub(crate) fn verdict(&self, entry: &Entry, tool: &str) -> Verdict {
        let server = &entry.spec.name;
        if !entry.spec.tools.admits(tool) {
            return Verdict::Deny;
        }
        if self.gate().is_open() {
            return Verdict::Allow;
        }
        self.gate().decide(server, tool, annotations(entry, tool))
    }

    /// Why that is so, in words for whoever is asked to allow it.
    pub(crate) fn reason(&self, entry: &Entry, tool: &str) -> Option<String> {
        self.gate()
            .reason(&entry.spec.name, tool, annotations(entry, tool))
    }
}

/// What a tool says of itself, as far as that is known.
fn annotations(entry: &Entry, tool: &str) -> Annotations {
    let catalog = entry.instance.manager().catalog();
    let found = catalog.find(&entry.spec.name, tool);
    let annotations = found.map(|found| found.tool.tool.annotations);
    annotations.unwrap_or_default()
}
