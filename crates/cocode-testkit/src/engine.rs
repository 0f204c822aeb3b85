//! Runs a script on one connection that carries whole messages both ways: a pair of pipes, a
//! socket, a WebSocket. Knows neither how messages are framed nor where they come from.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::breaker::Breaker;
use crate::defaults::{Defaults, Reaction};
use crate::gate;
use crate::message::Message;
use crate::process;
use crate::rules::RuleSet;
use crate::script::{Rule, Script, Step};
use crate::template::Scope;

/// What can be put on the wire.
#[derive(Debug)]
pub(crate) enum Output {
    Line(String),
    Text(String),
    Bytes(Vec<u8>),
    Fill(usize),
    Close { code: u16, reason: String },
}

/// The sending half of a connection.
pub(crate) trait Wire: Send + 'static {
    /// Puts it on the wire and flushes.
    fn put(&mut self, output: Output) -> impl Future<Output = io::Result<()>> + Send;
}

/// The other side is gone, or we have hung up.
#[derive(Debug)]
pub(crate) struct Gone;

/// One connection under a script.
#[derive(Debug)]
pub(crate) struct Engine {
    run: u32,
    rules: RuleSet,
    defaults: Defaults,
    asks: Asks,
    heard: broadcast::Sender<String>,
    out: mpsc::Sender<(Output, oneshot::Sender<()>)>,
    breaker: Breaker,
    /// Cancelled when the script hangs up; the reader must then drop the connection.
    pub(crate) hung_up: CancellationToken,
}

impl Engine {
    /// Starts on a connection and performs what the script does at the start.
    pub(crate) async fn start(
        script: &Script,
        run: u32,
        wire: impl Wire,
        breaker: Breaker,
        tasks: &mut JoinSet<()>,
    ) -> Arc<Self> {
        let (out, outputs) = mpsc::channel(1);
        let engine = Arc::new(Self {
            run,
            rules: RuleSet::new(script),
            defaults: Defaults::new(script),
            asks: Asks::default(),
            heard: broadcast::Sender::new(1024),
            out,
            breaker,
            hung_up: CancellationToken::new(),
        });
        tasks.spawn(write_all(wire, outputs));
        for rule in engine.rules.at_start(run) {
            engine
                .perform(rule.clone(), Scope::of(&Message::parse(run, ""), 1), tasks)
                .await;
        }
        engine
    }

    /// Takes one message from the other side.
    pub(crate) async fn take(self: &Arc<Self>, message: &Message, tasks: &mut JoinSet<()>) {
        if message.is_answer() {
            self.asks.answered(message);
        }
        if let Some(method) = message.method() {
            // Nobody waiting is the usual case.
            drop(self.heard.send(method.to_owned()));
        }
        if let Some((rule, count)) = self.rules.pick(message) {
            self.perform(rule.clone(), Scope::of(message, count), tasks)
                .await;
            return;
        }
        drop(self.as_usual(message).await);
    }

    async fn as_usual(&self, message: &Message) -> Result<(), Gone> {
        match self.defaults.react(message) {
            Reaction::Nothing => Ok(()),
            Reaction::Answer { text, .. } | Reaction::Subscribed { text } => {
                self.put(Output::Line(text)).await
            }
        }
    }

    async fn perform(self: &Arc<Self>, rule: Rule, scope: Scope, tasks: &mut JoinSet<()>) {
        let waits = rule.waits();
        // Subscribed here, so that a rule that runs beside us misses nothing that we read next.
        let work = Arc::clone(self).steps(rule, scope, self.heard.subscribe());
        if waits {
            tasks.spawn(work);
        } else {
            work.await;
        }
    }

    async fn steps(
        self: Arc<Self>,
        rule: Rule,
        mut scope: Scope,
        mut heard: broadcast::Receiver<String>,
    ) {
        for step in rule.steps {
            if self.step(step, &mut scope, &mut heard).await.is_err() {
                break;
            }
        }
    }

    async fn step(
        &self,
        step: Step,
        scope: &mut Scope,
        heard: &mut broadcast::Receiver<String>,
    ) -> Result<(), Gone> {
        match step {
            Step::Line(template) => self.put(Output::Line(scope.fill(&template))).await,
            Step::Lines(count, template) => {
                let line = scope.fill(&template);
                for _ in 0..count {
                    self.put(Output::Line(line.clone())).await?;
                }
                Ok(())
            }
            Step::Text(template) => self.put(Output::Text(scope.fill(&template))).await,
            Step::Raw(bytes) => self.put(Output::Bytes(bytes)).await,
            Step::Fill(bytes) => self.put(Output::Fill(bytes)).await,
            Step::Close { code, reason } => self.put(Output::Close { code, reason }).await,
            Step::AsUsual => self.as_usual(&scope.message).await,
            Step::Ask { method, params } => {
                let (request, answer) = self.asks.ask(self.run, &method, &scope.fill(&params));
                self.put(Output::Line(request)).await?;
                scope.answer = answer.await.map_err(|_closed| Gone)?;
                Ok(())
            }
            Step::Hold(address) => {
                gate::pass(address).await;
                Ok(())
            }
            Step::WaitFor(method) => wait_for(&method, heard).await,
            Step::Delay(time) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
            Step::StopReading => std::future::pending().await,
            Step::Disconnect => {
                self.hung_up.cancel();
                Err(Gone)
            }
            Step::Reset => {
                self.breaker.arm();
                self.hung_up.cancel();
                Err(Gone)
            }
            Step::Process(step) => {
                process::perform(&step, scope).await;
                Ok(())
            }
            Step::Http(step) => panic!("only an HTTP server can do this: {step:?}"),
        }
    }

    async fn put(&self, output: Output) -> Result<(), Gone> {
        let (done, written) = oneshot::channel();
        self.out
            .send((output, done))
            .await
            .map_err(|_closed| Gone)?;
        written.await.map_err(|_closed| Gone)
    }
}

/// Our own requests that wait for an answer.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    last: AtomicU32,
    waiting: Mutex<HashMap<String, oneshot::Sender<String>>>,
}

impl Asks {
    /// The text of a request, and its answer to come.
    pub(crate) fn ask(
        &self,
        run: u32,
        method: &str,
        params: &str,
    ) -> (String, oneshot::Receiver<String>) {
        let number = self.last.fetch_add(1, Ordering::SeqCst) + 1;
        let id = format!(r#""ask-{run}-{number}""#);
        let (answer, answered) = oneshot::channel();
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, answer);
        (request, answered)
    }

    /// Hands an answer to the one who asked. An answer to nothing stays in the record only.
    pub(crate) fn answered(&self, message: &Message) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(asked) = message.id().and_then(|id| waiting.remove(id)) {
            // The rule that asked may have ended with its connection.
            drop(asked.send(message.raw.clone()));
        }
    }
}

/// Comes back when a message of the method has come.
pub(crate) async fn wait_for(
    method: &str,
    heard: &mut broadcast::Receiver<String>,
) -> Result<(), Gone> {
    loop {
        match heard.recv().await {
            Ok(heard) if heard == method => return Ok(()),
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return Err(Gone),
        }
    }
}

async fn write_all(
    mut wire: impl Wire,
    mut outputs: mpsc::Receiver<(Output, oneshot::Sender<()>)>,
) {
    while let Some((output, done)) = outputs.recv().await {
        // Dropping `done` unsent tells the rule that the other side is gone.
        if wire.put(output).await.is_err() || done.send(()).is_err() {
            return;
        }
    }
}
