//! What a toolbox is made with.

use std::collections::{BTreeMap, BTreeSet};

use cocode_core::{Dialect, Loading, SearchPolicy, Searcher, ServerName, ServerSpec};

/// How many tools that were found a model is shown where nobody says how many.
pub const DEFAULT_MAX_LOADED: usize = 64;

/// For whom a [`Toolbox`](crate::Toolbox) is, and what it shows.
#[derive(Clone, Debug)]
pub struct ToolboxOptions {
    /// Whose model it is. With [`Dialect::OpenAiStrict`], tools that cannot be strict are not.
    pub dialect: Dialect,
    /// When models search.
    pub policy: SearchPolicy,
    /// What is known of the model.
    pub searcher: Searcher,
    /// How it comes to what it finds.
    pub loading: Loading,
    /// Servers whose tools are always shown.
    pub always_load: BTreeSet<ServerName>,
    /// What servers are for, in better words than their own.
    pub about: BTreeMap<ServerName, String>,
    /// Whether it is decided anew if a model searches when there are other tools. If not, what holds
    /// for the first catalog with tools holds for the whole conversation.
    pub on_list_changed: bool,
    /// How many tools that were found are shown at once; at least one. The least recently used leaves
    /// first.
    pub max_loaded: usize,
}

impl ToolboxOptions {
    /// The usual options, for a model that calls tools and of which nobody knows how much it sees.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            policy: SearchPolicy::default(),
            searcher: Searcher {
                context_window: None,
                calls_tools: true,
            },
            loading: Loading::default(),
            always_load: BTreeSet::new(),
            about: BTreeMap::new(),
            on_list_changed: true,
            max_loaded: DEFAULT_MAX_LOADED,
        }
    }

    /// Takes over what the configuration says of servers: which are always shown, and what they are
    /// for.
    #[must_use]
    pub fn with_servers<'a>(mut self, specs: impl IntoIterator<Item = &'a ServerSpec>) -> Self {
        for spec in specs {
            if spec.always_load {
                self.always_load.insert(spec.name.clone());
            }
            if let Some(about) = &spec.description {
                self.about.insert(spec.name.clone(), about.clone());
            }
        }
        self
    }
}
