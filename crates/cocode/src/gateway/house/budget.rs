//! What all tools cost a model that is shown them.

use cocode_admin::model::{Budget, SearchThreshold, ServerBudget};
use cocode_core::{CHARACTERS_PER_TOKEN, SearchPolicy, ToolSearchMode};

use super::interior::Interior;
use crate::budget::window::model_of;

/// Characters of a definition for each token of the estimate, by which the budget is counted.
const ESTIMATED_CHARACTERS_PER_TOKEN: f64 = 4.0;

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
            search: threshold(&self.search.policy),
            servers,
        }
    }
}

/// When models search by themselves, in the unit of the budget: what is a token for the threshold are
/// fewer characters than those of a token of the estimate.
fn threshold(policy: &SearchPolicy) -> Option<SearchThreshold> {
    let percent = match policy.mode {
        ToolSearchMode::Off | ToolSearchMode::On => return None,
        ToolSearchMode::Auto => policy.threshold_percent,
        ToolSearchMode::AutoFrom(percent) => f64::from(percent),
    };
    Some(SearchThreshold {
        percent: percent * CHARACTERS_PER_TOKEN / ESTIMATED_CHARACTERS_PER_TOKEN,
        least_window: policy.min_context_window,
    })
}

#[cfg(test)]
mod tests {
    use cocode_core::{SearchPolicy, ToolSearchMode};

    use super::threshold;

    #[test]
    fn the_threshold_is_told_in_the_unit_of_the_budget() {
        let of = |mode| {
            let policy = SearchPolicy {
                mode,
                threshold_percent: 20.0,
                min_context_window: 16_000,
            };
            threshold(&policy).map(|told| (told.percent, told.least_window))
        };
        assert_eq!(of(ToolSearchMode::Auto), Some((12.5, 16_000)));
        assert_eq!(of(ToolSearchMode::AutoFrom(40)), Some((25.0, 16_000)));
        assert_eq!(of(ToolSearchMode::On), None);
        assert_eq!(of(ToolSearchMode::Off), None);
    }
}
