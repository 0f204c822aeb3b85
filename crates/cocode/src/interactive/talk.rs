//! The host of the session: what it shares, and what becomes of what the person says.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cocode_agent::serve::SavedPrompts;
use cocode_agent::{Agent, Block, Company, Settings, Work};
use cocode_client::{Manager, StateKind};
use cocode_config::Config;
use cocode_terminal::{
    CommandOutcome, Completer, Host, HostNotice, ServerCounts, StatusFacts, TurnOutcome,
};
use tokio::sync::mpsc;

use super::child::Itself;
use super::commands;
use super::completing::Words;
use super::holding::Held;
use super::spending::{Hearing, Spent};
use crate::agent::served::saved_prompts;
use crate::agent::{AgentSetup, House, Wishes};
use crate::args::agent::InteractiveArgs;
use crate::error::CliError;
use crate::workspace::Workspace;

/// One person, one agent, one conversation at a time.
pub(super) struct Talk {
    pub(super) agent: Agent,
    pub(super) setup: AgentSetup,
    pub(super) manager: Manager,
    pub(super) prompts: SavedPrompts,
    pub(super) say: mpsc::Sender<HostNotice>,
    pub(super) spent: Arc<Spent>,
    pub(super) itself: Itself,
    pub(super) models: Vec<String>,
    pub(super) held: Mutex<Held>,
    wishes: Mutex<Wishes>,
    settings: Arc<Mutex<Settings>>,
    words: Arc<Words>,
    /// What a command has made to be said. Nothing in it was typed by the person, so nothing that it
    /// mentions is read.
    prepared: Mutex<Option<Vec<Block>>>,
    config: Box<dyn Fn() -> Config + Send + Sync>,
}

impl Talk {
    pub(super) fn new(
        house: &House,
        args: &InteractiveArgs,
        workspace: &Workspace,
        say: mpsc::Sender<HostNotice>,
    ) -> Result<Self, CliError> {
        let wishes = Wishes::from(&args.agent);
        let settings = Arc::new(Mutex::new(house.setup.settings(&wishes)?));
        let prompts = saved_prompts(workspace);
        let (places, variables) = (
            workspace.places.clone(),
            workspace.environment.variables.clone(),
        );
        let config = move || Config::load(&places, &|name: &str| variables.text(name));
        let models: Vec<String> = workspace
            .config()?
            .settings
            .models
            .keys()
            .cloned()
            .collect();
        let words = Words::new(
            house.manager.clone(),
            prompts.clone(),
            Arc::clone(&settings),
            models.clone(),
        );
        Ok(Self {
            agent: house.agent.clone(),
            setup: house.setup.clone(),
            manager: house.manager.clone(),
            words: Arc::new(words),
            prompts,
            say,
            spent: Arc::new(Spent::default()),
            itself: Itself::new(workspace)?,
            models,
            held: Mutex::default(),
            wishes: Mutex::new(wishes),
            settings,
            prepared: Mutex::default(),
            config: Box::new(config),
        })
    }

    /// What the conversation is held with, or the next one would be.
    pub(super) fn settings(&self) -> Settings {
        locked(&self.settings).clone()
    }

    pub(super) fn set_settings(&self, settings: Settings) {
        *locked(&self.settings) = settings;
    }

    pub(super) fn wishes(&self) -> Wishes {
        locked(&self.wishes).clone()
    }

    pub(super) fn set_wishes(&self, wishes: Wishes) {
        *locked(&self.wishes) = wishes;
    }

    /// The configuration as the files have it now.
    pub(super) fn config(&self) -> Config {
        (self.config)()
    }

    /// What a command has made, to be said to the model.
    pub(super) fn prepared(&self, content: Vec<Block>, shown: String) -> CommandOutcome {
        *locked(&self.prepared) = Some(content.clone());
        CommandOutcome::Submit { shown, content }
    }

    async fn turn(&self, said: Vec<Block>, company: Company) -> TurnOutcome {
        let prepared = locked(&self.prepared).take();
        let company = Company {
            listener: Arc::new(Hearing::new(company.listener, Arc::clone(&self.spent))),
            ..company
        };
        let is_begun = matches!(&*locked(&self.held), Held::None);
        let mut taken = match self.conversation(&said).await {
            Ok(taken) => taken,
            Err(error) => return not_begun(error),
        };
        let said = if prepared.as_ref() == Some(&said) {
            said
        } else {
            self.with_mentions(said, &company).await
        };
        let ended = taken.conversation.turn(said, &company).await;
        if is_begun && ended.is_err() {
            self.forget(taken).await;
        } else {
            taken.put_back();
        }
        match ended {
            Ok(end) => {
                self.spent.end_turn(end.usage, end.cost.unwrap_or_default());
                TurnOutcome::Ended(end.ending)
            }
            Err(error) => not_begun(crate::agent::trouble(&error)),
        }
    }
}

impl Host for Talk {
    fn submit(&self, said: Vec<Block>, company: Company) -> Work<'_, TurnOutcome> {
        Box::pin(self.turn(said, company))
    }

    fn command(&self, line: String, company: Company) -> Work<'_, CommandOutcome> {
        Box::pin(commands::run(self, line, company))
    }

    fn runs_beside_turn(&self, line: &str) -> bool {
        commands::runs_beside_turn(line)
    }

    fn completer(&self) -> Arc<dyn Completer> {
        Arc::clone(&self.words) as Arc<dyn Completer>
    }

    fn status(&self) -> StatusFacts {
        let settings = locked(&self.settings);
        let (approval, sandbox) = (settings.approval.to_string(), settings.sandbox.to_string());
        let wished = settings.model.model.clone();
        drop(settings);
        let now = self.spent.now();
        StatusFacts {
            model: now.model.or(wished).unwrap_or_default(),
            context: now.context,
            cost: (now.cost > 0.0).then_some(now.cost),
            sandbox,
            approval,
            servers: self.server_counts(),
        }
    }
}

impl Talk {
    fn server_counts(&self) -> ServerCounts {
        let mut counts = ServerCounts::default();
        for server in self.manager.status() {
            let count = match server.state.kind() {
                // Who sleeps until it is needed can be used.
                StateKind::Ready | StateKind::Stopped => &mut counts.ready,
                StateKind::Starting | StateKind::Reconnecting => &mut counts.starting,
                StateKind::NeedsAuth | StateKind::NeedsClientRegistration => &mut counts.need_login,
                StateKind::Failed => &mut counts.failed,
                _ => continue,
            };
            *count += 1;
        }
        counts
    }
}

/// Why something was not done, as the session shows it.
pub(super) fn failed(error: CliError) -> CommandOutcome {
    let (message, hints) = in_words(error);
    CommandOutcome::Failed { message, hints }
}

/// The same, for what only this session can find wrong.
pub(super) fn refused(message: impl Into<String>) -> CommandOutcome {
    CommandOutcome::Failed {
        message: message.into(),
        hints: Vec::new(),
    }
}

fn not_begun(error: CliError) -> TurnOutcome {
    let (message, hints) = in_words(error);
    TurnOutcome::NotBegun { message, hints }
}

pub(super) fn in_words(error: CliError) -> (String, Vec<String>) {
    let whole: Vec<String> = std::iter::once(error.message).chain(error.causes).collect();
    (whole.join(": "), error.hints)
}

/// Nothing that is done under these locks can leave anything half done.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
