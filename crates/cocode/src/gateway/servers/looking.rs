//! Looks at the servers of a view: how each of them is, and when that may be otherwise.

use cocode_client::StateWatch;
use cocode_core::{ServerName, ServerSpec};
use cocode_gateway::{Gate, View};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream, SelectAll};

use crate::manage::overview::view::Line;

/// What hints say that allows a server more time.
pub(crate) const MORE_TIME: &str = "connect_timeout_sec";

/// How a server of a view is, if there is such a server.
pub(crate) fn line_of(view: &View, gate: &dyn Gate, spec: &ServerSpec) -> Option<Line> {
    let manager = view.manager(&spec.name)?;
    let status = manager.status().into_iter().next()?;
    let line = Line::used(&status, spec, MORE_TIME, &manager);
    let line = line.with_terms(view.terms(&spec.name)?);
    let catalog = manager.catalog();
    let Some(listed) = catalog.server(&spec.name) else {
        return Some(line);
    };
    let shown = listed.tools.iter().filter(|tool| {
        let annotations = tool.tool.annotations;
        let verdict = || gate.decide(&spec.name, tool.name.as_str(), annotations);
        spec.tools.admits(tool.name.as_str()) && verdict().allows_listing()
    });
    let shown = shown.count();
    Some(line.with_tools(shown, listed.tools.len() - shown))
}

/// Names a server whenever it may be in another state, offer something else, or be shared in another
/// way. Ends for a server that is gone.
pub(crate) fn happenings<'a>(
    view: &View,
    specs: impl IntoIterator<Item = &'a ServerSpec>,
) -> SelectAll<BoxStream<'static, ServerName>> {
    let watched = specs.into_iter().filter_map(|spec| {
        let manager = view.manager(&spec.name)?;
        let states = stream::unfold(manager.watch_state(&spec.name)?, next_state);
        let catalogs = stream::unfold(manager.watch_catalog(), |mut catalogs| async {
            catalogs.changed().await.ok().map(|()| ((), catalogs))
        });
        let terms = stream::unfold(view.watch_terms(&spec.name)?, |mut terms| async {
            terms.changed().await.ok().map(|()| ((), terms))
        });
        let all = stream::select_all([states.boxed(), catalogs.boxed(), terms.boxed()]);
        let name = spec.name.clone();
        Some(all.map(move |()| name.clone()).boxed())
    });
    watched.collect()
}

async fn next_state(mut watch: StateWatch) -> Option<((), StateWatch)> {
    watch.changed().await.then_some(((), watch))
}
