//! What all tools cost a model that is shown them.

use cocode_admin::model::{Budget, ServerBudget};

use super::interior::Interior;
use crate::budget::window::model_of;

impl Interior {
    pub(super) fn budget(&self) -> Budget {
        let present = self.present();
        let servers = present.specs.iter().filter_map(|spec| {
            let catalog = self.view.manager(&spec.name)?.catalog();
            let listed = catalog.server(&spec.name)?;
            let costs = self.costs.of(&spec.name, &catalog);
            let seen = listed.tools.iter().filter(|tool| self.is_seen(spec, tool));
            let seen: Vec<u64> = seen.map(|tool| costs.tokens(&tool.name)).collect();
            Some(ServerBudget {
                name: spec.name.to_string(),
                tokens: seen.iter().sum(),
                tools: seen.len() as u64,
            })
        });
        let mut servers: Vec<ServerBudget> = servers.collect();
        servers.sort_by(|one, other| {
            let by_cost = other.tokens.cmp(&one.tokens);
            by_cost.then_with(|| one.name.cmp(&other.name))
        });
        let model = model_of(self.search.context_window, &present.config.settings);
        Budget {
            total: servers.iter().map(|server| server.tokens).sum(),
            window: model.is_told.then_some(model.window),
            servers,
        }
    }
}
