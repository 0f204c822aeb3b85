//! What the fixture lists: the files in `catalog`, with hints for caches where the client's era
//! has them.

use rmcp::model::{
    CacheScope, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, Prompt, Resource, ResourceTemplate, Tool,
};

/// Each list has its own freshness, so that one taken for another is noticed.
const TOOLS_TTL_MS: u64 = 1_000;
const PROMPTS_TTL_MS: u64 = 2_000;
const RESOURCES_TTL_MS: u64 = 3_000;
const TEMPLATES_TTL_MS: u64 = 4_000;

pub(crate) struct Catalog {
    tools: Vec<Tool>,
    prompts: Vec<Prompt>,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
}

impl Catalog {
    pub(crate) fn load() -> Self {
        Self {
            tools: read(include_str!("../catalog/tools.json")),
            prompts: read(include_str!("../catalog/prompts.json")),
            resources: read(include_str!("../catalog/resources.json")),
            templates: read(include_str!("../catalog/templates.json")),
        }
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    pub(crate) fn tools(&self, modern: bool) -> ListToolsResult {
        let list = ListToolsResult::with_all_items(self.tools.clone());
        if modern {
            list.with_ttl_ms(TOOLS_TTL_MS)
                .with_cache_scope(CacheScope::Public)
        } else {
            list
        }
    }

    pub(crate) fn prompts(&self, modern: bool) -> ListPromptsResult {
        let list = ListPromptsResult::with_all_items(self.prompts.clone());
        if modern {
            list.with_ttl_ms(PROMPTS_TTL_MS)
                .with_cache_scope(CacheScope::Public)
        } else {
            list
        }
    }

    pub(crate) fn resources(&self, modern: bool) -> ListResourcesResult {
        let list = ListResourcesResult::with_all_items(self.resources.clone());
        if modern {
            list.with_ttl_ms(RESOURCES_TTL_MS)
                .with_cache_scope(CacheScope::Private)
        } else {
            list
        }
    }

    pub(crate) fn templates(&self, modern: bool) -> ListResourceTemplatesResult {
        let list = ListResourceTemplatesResult::with_all_items(self.templates.clone());
        if modern {
            list.with_ttl_ms(TEMPLATES_TTL_MS)
                .with_cache_scope(CacheScope::Public)
        } else {
            list
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).expect("the catalog is what rmcp understands")
}
