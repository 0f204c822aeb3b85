//! What a gateway serves at one moment, for whoever looks after it.

use std::collections::BTreeSet;
use std::sync::Arc;

use cocode_config::Config;
use cocode_core::{ServerName, ServerSpec};

/// What is served, and what the files say to it. Never changed: another takes its place.
#[derive(Clone, Debug)]
pub(crate) struct Present {
    /// What the files say.
    pub(crate) config: Arc<Config>,
    /// What is served.
    pub(crate) specs: Vec<ServerSpec>,
    /// Those of them that are within this process, and stand in no file.
    pub(crate) built_in: BTreeSet<ServerName>,
    /// Grows with every configuration that is applied; 0 before the first.
    pub(crate) generation: u64,
    /// What is different from the generation before, in words.
    pub(crate) news: ConfigurationNews,
}

/// What became of a change of the files, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConfigurationNews {
    pub(crate) changes: Vec<String>,
    /// What is wrong now, and what goes on as it was because of that.
    pub(crate) problems: Vec<String>,
}

impl Present {
    /// Before anything is served.
    pub(crate) fn before(config: Arc<Config>) -> Self {
        Self {
            config,
            specs: Vec::new(),
            built_in: BTreeSet::new(),
            generation: 0,
            news: ConfigurationNews::default(),
        }
    }

    /// How a server is to be served, if it is.
    pub(crate) fn spec(&self, name: &str) -> Option<&ServerSpec> {
        self.specs.iter().find(|spec| spec.name.as_str() == name)
    }
}
