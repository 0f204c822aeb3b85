//! What a server offers: its tools, hidden ones included, its resources and its prompts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cocode_admin::Refusal;
use cocode_admin::model::{Prompts, Resources, ServerTool, Verdict};
use cocode_client::{Catalog, CatalogTool, ListKind, RawJson};
use cocode_core::{NameTable, ServerSpec, ToolName};
use cocode_wire::members::Members;
use tokio::time::Instant;

use super::interior::Interior;
use super::refusing::{conflict, not_served};
use crate::gateway::servers::MORE_TIME;
use crate::hints::Doing;
use crate::trouble::About;

/// How long a server may take to say what it offers.
const LISTED_WITHIN: Duration = Duration::from_secs(30);

impl Interior {
    /// How a server is served, or why it is not.
    pub(super) fn served(&self, name: &str) -> Result<ServerSpec, Refusal> {
        let present = self.present();
        let spec = present.spec(name).cloned();
        spec.ok_or_else(|| not_served(&present, name))
    }

    pub(super) async fn tools(&self, name: &str) -> Result<Vec<ServerTool>, Refusal> {
        let (spec, catalog) = self.listed(name, ListKind::Tools).await?;
        let Some(listed) = catalog.server(&spec.name) else {
            return Ok(Vec::new());
        };
        let names = self.view.tool_names();
        let seen: BTreeMap<&ToolName, &Arc<str>> = names
            .iter()
            .filter(|(_, server, _)| **server == spec.name)
            .map(|(shown, _, tool)| (tool, shown))
            .collect();
        let pairs = listed.tools.iter();
        let table = NameTable::build(pairs.map(|tool| (spec.name.clone(), tool.name.clone())));
        let costs = self.costs.of(&spec.name, &catalog);
        let tools = listed.tools.iter().map(|tool| {
            let own = || table.name_of(&spec.name, &tool.name);
            let qualified = seen.get(&tool.name).map(ToString::to_string);
            let qualified = qualified.or_else(|| own().map(ToString::to_string));
            ServerTool {
                qualified_name: qualified.unwrap_or_else(|| tool.name.to_string()),
                tokens: costs.tokens(&tool.name),
                verdict: self.verdict(&spec, tool),
                name: tool.name.to_string(),
                title: tool.tool.title.clone(),
                description: tool.tool.description.clone(),
                input_schema: tool.tool.input_schema.clone(),
                output_schema: tool.tool.output_schema.clone().filter(is_schema),
                annotations: annotations(tool),
            }
        });
        Ok(tools.collect())
    }

    pub(super) async fn resources(&self, name: &str) -> Result<Resources, Refusal> {
        let (spec, catalog) = self.listed(name, ListKind::Resources).await?;
        let listed = catalog.server(&spec.name);
        let resources = listed.into_iter().flat_map(|listed| &listed.resources);
        let templates = listed.into_iter().flat_map(|listed| &listed.templates);
        Ok(Resources {
            resources: resources.map(|resource| resource.raw.clone()).collect(),
            templates: templates.map(|template| template.raw.clone()).collect(),
        })
    }

    pub(super) async fn prompts(&self, name: &str) -> Result<Prompts, Refusal> {
        let (spec, catalog) = self.listed(name, ListKind::Prompts).await?;
        let listed = catalog.server(&spec.name);
        let prompts = listed.into_iter().flat_map(|listed| &listed.prompts);
        Ok(Prompts {
            prompts: prompts.map(|prompt| prompt.raw.clone()).collect(),
        })
    }

    /// What the rules say about calling a tool.
    pub(super) fn verdict(&self, spec: &ServerSpec, tool: &CatalogTool) -> Verdict {
        if !spec.tools.admits(tool.name.as_str()) {
            return Verdict::Deny;
        }
        let annotations = tool.tool.annotations;
        match self
            .rules
            .decide(&spec.name, tool.name.as_str(), annotations)
        {
            cocode_core::Verdict::Allow => Verdict::Allow,
            cocode_core::Verdict::Ask => Verdict::Ask,
            cocode_core::Verdict::Deny => Verdict::Deny,
        }
    }

    /// What a server offers, with a list of this kind if it has one. What is remembered serves; else the
    /// server is asked, and started if it does not run.
    async fn listed(
        &self,
        name: &str,
        kind: ListKind,
    ) -> Result<(ServerSpec, Arc<Catalog>), Refusal> {
        let spec = self.served(name)?;
        let manager = self.view.manager(&spec.name);
        let manager = manager.ok_or_else(|| not_served(&self.present(), name))?;
        let is_known = |catalog: &Catalog| {
            let listed = catalog.server(&spec.name);
            listed.is_some_and(|listed| listed.known.contains(&kind))
        };
        let catalog = manager.catalog();
        if is_known(&catalog) {
            return Ok((spec, catalog));
        }
        let deadline = Instant::now() + LISTED_WITHIN;
        let session = manager.session(&spec.name, deadline).await;
        session.map_err(|error| {
            let about = About::configured(&spec, MORE_TIME);
            conflict(about.told(&error, Doing::Other))
        })?;
        manager.wait_for_lists(&spec.name, deadline).await;
        Ok((spec, manager.catalog()))
    }
}

/// What the server says about the effects of a tool, as it wrote it.
fn annotations(tool: &CatalogTool) -> RawJson {
    let raw = &tool.tool.raw;
    let members = raw.decode::<Members<'_>>().unwrap_or_default();
    let own = members.get("annotations").map(|part| raw.share(part));
    let own = own.filter(|own| own.as_str().starts_with('{'));
    own.unwrap_or_else(|| RawJson::of(&serde_json::json!({})).unwrap_or_else(|_never| raw.clone()))
}

/// Whether this can be a JSON Schema at all.
fn is_schema(schema: &RawJson) -> bool {
    let text = schema.as_str();
    text.starts_with('{') || matches!(text, "true" | "false")
}
