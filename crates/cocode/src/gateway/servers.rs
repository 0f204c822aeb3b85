//! The servers behind a gateway: those that the configuration says now, and how each of them is.

mod looking;
mod present;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cocode_client::ServerState;
use cocode_config::{Live, Reload};
use cocode_core::{ServerName, ServerSpec};
use cocode_gateway::{Shadowed, View};
use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, SelectAll};
use tokio::sync::watch;
use tokio::time::Interval;

use super::agent::AgentPlace;
use super::builtin::{self, BuiltIn};
use super::connector::Ways;
use super::plan::Plan;
use super::principals::Principals;
use super::views::Wish;
use super::voice::Voice;
use crate::manage::overview::view::Line;
use crate::serving::gate::Rules;
use crate::workspace::{Workspace, told_after};

pub(crate) use looking::{MORE_TIME, happenings, line_of};
pub(crate) use present::{ConfigurationNews, Present};

/// How long the start waits for the stores of credentials, which may ask their user something.
/// Without what they say, servers are not shared with other gateways.
const RECALLED_WITHIN: Duration = Duration::from_secs(2);

/// How often it is looked who has not come for a while.
const SWEPT_EVERY: Duration = Duration::from_mins(1);

pub(crate) struct Servers<'a> {
    plan: &'a Plan,
    view: View,
    connector: Arc<Ways>,
    rules: Arc<Rules>,
    live: Live,
    /// The servers that are served.
    specs: Vec<ServerSpec>,
    /// What was said last of each server.
    told: BTreeMap<String, String>,
    /// What was said last of names that are taken.
    shadowed: Vec<String>,
    /// Something goes on as it was, because what is written now cannot be used.
    keeps: bool,
    /// Everybody who is served something of their own.
    principals: Principals<'a>,
    sweep: Interval,
    /// What became of the last change of the files, until it is published.
    news: ConfigurationNews,
    present: watch::Sender<Arc<Present>>,
    happenings: SelectAll<BoxStream<'static, ServerName>>,
    voice: &'a Voice<'a>,
}

/// Something that has to be seen to.
pub(crate) enum Happening {
    /// A server may be in another state, or offer something else.
    State,
    /// Somebody has come for the first time.
    Came(Wish),
    /// It is time to look who has left.
    Left,
}

impl<'a> Servers<'a> {
    pub(crate) fn new(
        (plan, voice, workspace): (&'a Plan, &'a Voice<'a>, &Workspace),
        view: View,
        connector: Arc<Ways>,
        rules: Arc<Rules>,
        principals: Principals<'a>,
    ) -> Self {
        let live = workspace.live();
        let before = Present::before(live.shared_config());
        Self {
            plan,
            view,
            connector,
            rules,
            live,
            specs: Vec::new(),
            told: BTreeMap::new(),
            shadowed: Vec::new(),
            keeps: false,
            news: ConfigurationNews::default(),
            present: watch::Sender::new(Arc::new(before)),
            happenings: SelectAll::new(),
            principals,
            sweep: tokio::time::interval(SWEPT_EVERY),
            voice,
        }
    }

    /// Publishes what is served here.
    #[must_use]
    pub(crate) fn publishing(mut self, present: watch::Sender<Arc<Present>>) -> Self {
        self.present = present;
        self
    }

    /// Serves what the configuration says now.
    pub(crate) async fn apply(&mut self) {
        self.rules.replace(self.live.config());
        self.principals.follow(self.live.config());
        let built_in = self.connector.built_in.as_deref();
        let specs = self.live.specs();
        let specs = specs.filter(|spec| self.plan.selection.has(spec.name.as_str()));
        // A name that was free at the start stays with whoever has it.
        let specs = specs.filter(|spec| built_in.is_none_or(|own| own.spec().name != spec.name));
        let agent = self.connector.agent.as_ref();
        let specs = specs.filter(|spec| agent.is_none_or(|own| own.spec().name != spec.name));
        let config = self.live.config();
        let specs = specs.cloned().map(|spec| self.plan.confined(spec, config));
        let specs = specs.chain(built_in.map(BuiltIn::spec).cloned());
        self.specs = specs.chain(agent.map(AgentPlace::spec).cloned()).collect();
        let configured = &self.connector.configured;
        configured.recall_within(RECALLED_WITHIN, &self.specs).await;
        self.view.apply(self.specs.clone()).await;
        let config = self.live.config();
        self.principals.apply(config, &self.specs).await;
        self.happenings = happenings(&self.view, &self.specs);
        self.publish();
        self.tell();
    }

    /// Lets those who look after the gateway know what is served now.
    fn publish(&mut self) {
        let built_in = self.connector.built_in.as_deref().map(BuiltIn::spec);
        let agent = self.connector.agent.as_ref().map(AgentPlace::spec);
        let built_in = built_in.into_iter().chain(agent);
        let present = Present {
            config: self.live.shared_config(),
            specs: self.specs.clone(),
            built_in: built_in.map(|spec| spec.name.clone()).collect(),
            generation: self.present.borrow().generation + 1,
            news: std::mem::take(&mut self.news),
        };
        self.present.send_replace(Arc::new(present));
    }

    /// Reads the files again, says what is other than before, and serves that.
    pub(crate) async fn reload(&mut self) {
        let reload = self.live.reload();
        self.say(&reload);
        self.apply().await;
    }

    /// What has to be seen to next. Cancel safe.
    pub(crate) async fn happened(&mut self) -> Happening {
        tokio::select! {
            Some(_name) = self.happenings.next() => Happening::State,
            wish = self.principals.wish() => Happening::Came(wish),
            _ = self.sweep.tick() => Happening::Left,
        }
    }

    /// Sees to it.
    pub(crate) async fn see_to(&mut self, happening: Happening) {
        match happening {
            Happening::State => self.tell(),
            Happening::Came(wish) => {
                let config = self.live.config();
                self.principals.fulfil(wish, config, &self.specs).await;
            }
            Happening::Left => self.principals.sweep().await,
        }
    }

    /// Lets go of everybody who is served something of their own.
    pub(crate) async fn leave(self) {
        self.principals.leave().await;
    }

    /// Says what is other than it was said last.
    pub(crate) fn tell(&mut self) {
        let mut lines: BTreeMap<String, Line> = BTreeMap::new();
        for spec in &self.specs {
            if let Some(line) = self.line(spec) {
                lines.insert(spec.name.to_string(), line);
            }
        }
        for (name, server) in &self.live.config().servers {
            let is_served = self.specs.iter().any(|spec| spec.name.as_str() == name);
            if self.plan.selection.has(name) && !is_served {
                lines.insert(name.clone(), Line::withheld(name, server));
            }
        }
        let is_known = |name: &String| {
            lines.contains_key(name) || self.specs.iter().any(|spec| spec.name.as_str() == name)
        };
        self.told.retain(|name, _| is_known(name));
        for (name, line) in &lines {
            let told = line.told();
            if self.told.get(name) != Some(&told) {
                self.voice.state(line, name);
                self.told.insert(name.clone(), told);
            }
        }
        self.tell_shadowed();
    }

    /// Says once what is not shown at the address of all servers, because another server has its
    /// name.
    fn tell_shadowed(&mut self) {
        let shadowed = self.view.shadowed().into_iter();
        let shadowed: Vec<String> = shadowed
            .map(|Shadowed { server, name, by }| {
                let name = name.as_str();
                format!("`{name}` of server `{server}` is not shown at /mcp: `{by}` has one too")
            })
            .collect();
        let is_new = |text: &&String| !self.shadowed.contains(*text);
        let new: Vec<String> = shadowed.iter().filter(is_new).cloned().collect();
        self.shadowed = shadowed;
        self.voice.configuration(&[], &new, &[]);
    }

    /// How a server is, unless there is nothing to say yet.
    fn line(&self, spec: &ServerSpec) -> Option<Line> {
        let manager = self.view.manager(&spec.name)?;
        let status = manager.status().into_iter().next()?;
        if matches!(status.state, ServerState::Starting { slow: false }) {
            return None;
        }
        line_of(&self.view, &*self.rules, spec)
    }

    /// Says what became of a change of the configuration.
    fn say(&mut self, reload: &Reload) {
        let Reload {
            changes,
            settings_changed,
            kept,
            problems,
        } = reload;
        let changes = changes.iter();
        let changes = changes.filter(|change| self.plan.selection.has(&change.server));
        let mut changes: Vec<String> = changes.map(ToString::to_string).collect();
        if *settings_changed {
            changes.push(
                "settings have changed: rules count at once, others at the next start".into(),
            );
        }
        let mut problems = told_after(problems, kept);
        let kept: Vec<String> = kept.iter().map(ToString::to_string).collect();
        if kept.is_empty() && std::mem::take(&mut self.keeps) {
            changes.push("it is in order again".into());
        }
        self.keeps = !kept.is_empty();
        let is_taken = self.live.config().servers.contains_key(builtin::NAME);
        if is_taken && self.connector.built_in.is_some() {
            problems.push(format!(
                "server `{}` is not served: the built-in tools have that name until the next start",
                builtin::NAME
            ));
        }
        self.voice.configuration(&changes, &problems, &kept);
        problems.extend(kept);
        self.news = ConfigurationNews { changes, problems };
    }
}
