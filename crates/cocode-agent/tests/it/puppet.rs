//! A model that says what a test wants, and a company that hears and answers for it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

use cocode_agent::{
    Agent, AgentOptions, ApprovalAnswer, ApprovalQuestion, Approver, Arguments, Block, ChoiceError,
    Chosen, Company, DEFAULT_COMPACT_PERCENT, Delta, Listener, Message, Model, ModelChoice,
    ModelRequest, NoRules, Notice, Price, Provider, ProviderError, Providers, Reply, Sampler,
    Settings, SqliteStore, Stop, ToolCall, Usage, Work, text_of,
};
use cocode_client::{Manager, SearchPolicy};
use cocode_core::{ApprovalPolicy, Dialect, OutputLimits, SandboxMode};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// What the model does when it is asked.
pub(crate) type Act =
    Box<dyn FnOnce(&Seen, &mut (dyn FnMut(Delta) + Send)) -> Result<Reply, ProviderError> + Send>;

/// Whether this is the moment for something.
type IsMoment = Box<dyn Fn(&Notice) -> bool + Send>;

/// What the model was shown.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) system: String,
    pub(crate) messages: Vec<Message>,
    pub(crate) tools: Vec<String>,
}

impl Seen {
    /// The texts of the results in the last message.
    pub(crate) fn results(&self) -> Vec<String> {
        let last = self.messages.last().unwrap();
        let results = last.content.iter().filter_map(|block| match block {
            Block::ToolResult(result) => Some(text_of(&result.content)),
            _ => None,
        });
        results.collect()
    }
}

/// A provider whose model follows a script.
#[derive(Clone, Default)]
pub(crate) struct Puppet {
    acts: Arc<Mutex<VecDeque<Act>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    window: Arc<Mutex<Option<u64>>>,
}

impl Puppet {
    pub(crate) fn then(
        &self,
        act: impl FnOnce(&Seen, &mut (dyn FnMut(Delta) + Send)) -> Result<Reply, ProviderError>
        + Send
        + 'static,
    ) -> &Self {
        self.acts.lock().unwrap().push_back(Box::new(act));
        self
    }

    pub(crate) fn says(&self, text: &str) -> &Self {
        let text = text.to_owned();
        self.then(move |_, on_delta| {
            on_delta(Delta::Text(text.clone()));
            Ok(said(vec![Block::text(text)], Stop::Done))
        })
    }

    pub(crate) fn calls(&self, calls: &[(&str, &str, Value)]) -> &Self {
        let content: Vec<Block> = calls
            .iter()
            .map(|(id, name, arguments)| call(id, name, Arguments::Json(arguments.clone())))
            .collect();
        self.then(move |_, _| Ok(said(content, Stop::ToolCalls)))
    }

    pub(crate) fn sees_at_once(&self, tokens: u64) -> &Self {
        *self.window.lock().unwrap() = Some(tokens);
        self
    }

    /// Forgets what it was to do.
    pub(crate) fn acts_clear(&self) {
        self.acts.lock().unwrap().clear();
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

pub(crate) fn said(content: Vec<Block>, stop: Stop) -> Reply {
    Reply {
        content,
        stop,
        usage: Usage {
            input: 100,
            output: 10,
            ..Usage::default()
        },
        model: None,
    }
}

pub(crate) fn call(id: &str, name: &str, arguments: Arguments) -> Block {
    Block::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
    })
}

impl Provider for Puppet {
    fn name(&self) -> &'static str {
        "puppet"
    }

    fn dialect(&self) -> Dialect {
        Dialect::Anthropic
    }

    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Work<'a, Result<Reply, ProviderError>> {
        let seen = Seen {
            system: request.system.to_owned(),
            messages: request.messages.to_vec(),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
        };
        self.seen.lock().unwrap().push(seen.clone());
        let act = self.acts.lock().unwrap().pop_front();
        Box::pin(async move {
            let Some(act) = act else {
                // Nothing more is scripted: it thinks for ever.
                on_delta(Delta::Text("I am think".to_owned()));
                return std::future::pending().await;
            };
            tokio::task::yield_now().await;
            act(&seen, on_delta)
        })
    }
}

impl Providers for Puppet {
    fn choose<'a>(
        &'a self,
        _choice: &'a ModelChoice,
        _sampler: Option<Arc<dyn Sampler>>,
    ) -> Work<'a, Result<Chosen, ChoiceError>> {
        let window = self.window.lock().unwrap().unwrap_or(100_000);
        let chosen = Chosen {
            provider: Arc::new(self.clone()),
            model: Model {
                name: "wood".to_owned(),
                context_window: window,
                max_output_tokens: None,
                vision: true,
                tools: true,
                price: Some(Price {
                    input: 1.0,
                    output: 10.0,
                    cache_read: None,
                    cache_write: None,
                }),
            },
        };
        Box::pin(async { Ok(chosen) })
    }
}

/// Hears everything, and gives the answers that it was given, in their order.
#[derive(Default)]
pub(crate) struct Friend {
    pub(crate) notices: Mutex<Vec<Notice>>,
    pub(crate) questions: Mutex<Vec<ApprovalQuestion>>,
    answers: Mutex<VecDeque<ApprovalAnswer>>,
    /// Interrupts when it hears this.
    interrupt_at: Mutex<Option<IsMoment>>,
    pub(crate) interrupt: CancellationToken,
}

impl Friend {
    pub(crate) fn answering(answers: impl IntoIterator<Item = ApprovalAnswer>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Self::default()
        })
    }

    pub(crate) fn interrupting(at: impl Fn(&Notice) -> bool + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            interrupt_at: Mutex::new(Some(Box::new(at))),
            ..Self::default()
        })
    }

    pub(crate) fn company(self: &Arc<Self>) -> Company {
        Company {
            listener: Arc::<Self>::clone(self),
            approver: Arc::<Self>::clone(self),
            sampler: None,
            interrupt: self.interrupt.clone(),
        }
    }
}

impl Listener for Friend {
    fn hear(&self, notice: &Notice) {
        self.notices.lock().unwrap().push(notice.clone());
        let interrupt_at = self.interrupt_at.lock().unwrap();
        if interrupt_at.as_ref().is_some_and(|at| at(notice)) {
            self.interrupt.cancel();
        }
    }
}

impl Approver for Friend {
    fn can_ask(&self) -> bool {
        true
    }

    fn ask(&self, question: ApprovalQuestion) -> Work<'_, ApprovalAnswer> {
        self.questions.lock().unwrap().push(question);
        let answer = self.answers.lock().unwrap().pop_front();
        Box::pin(async move { answer.unwrap() })
    }
}

/// An agent with this model, and a directory for it.
pub(crate) struct Scene {
    pub(crate) agent: Agent,
    pub(crate) puppet: Puppet,
    pub(crate) directory: tempfile::TempDir,
    pub(crate) store: Arc<SqliteStore>,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::with(None, |_| {})
    }

    pub(crate) fn with(manager: Option<Manager>, change: impl FnOnce(&mut AgentOptions)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("state/conversations.db");
        let store = Arc::new(SqliteStore::open(&file).unwrap());
        let puppet = Puppet::default();
        let environment = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
        let mut options = AgentOptions {
            store: Arc::<SqliteStore>::clone(&store),
            providers: Arc::new(puppet.clone()),
            manager,
            rules: Arc::new(NoRules),
            environment,
            state_directory: Some(directory.path().join("state")),
            config_directory: None,
            instructions: None,
            search: SearchPolicy::default(),
            search_on_list_changed: true,
            always_load: Vec::new(),
            output: OutputLimits::default(),
            max_steps: 20,
            compact_percent: DEFAULT_COMPACT_PERCENT,
            tells_date: false,
        };
        change(&mut options);
        std::fs::create_dir(directory.path().join("work")).unwrap();
        Self {
            agent: Agent::new(options),
            puppet,
            store,
            directory,
        }
    }

    pub(crate) fn work(&self) -> std::path::PathBuf {
        self.directory.path().join("work")
    }

    pub(crate) fn settings(&self, approval: ApprovalPolicy, sandbox: SandboxMode) -> Settings {
        Settings {
            cwd: self.work(),
            approval,
            sandbox,
            ..Settings::default()
        }
    }

    /// Free to do everything unasked.
    pub(crate) fn free(&self) -> Settings {
        self.settings(ApprovalPolicy::Never, SandboxMode::DangerFullAccess)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(Path::join(&self.work(), name), text).unwrap();
    }
}
