//! A turn: from what a person says to the end of what the model does about it.

use crate::agent::AgentError;
use crate::company::{Company, Notice};
use crate::content::{Block, ToolCall, text_of, tool_calls};
use crate::conversation::Conversation;
use crate::conversation::asking::Heard;
use crate::looping::{Loops, Seen, WARNING};
use crate::model::Usage;
use crate::project_notes::project_notes;
use crate::provider::{Chosen, Reply, Stop};
use crate::record::{Ending, Record};
use crate::store::StoreError;

/// How often a model that has written as much as it may is told to go on.
const MAX_CONTINUED: u32 = 3;

/// What such a model is told.
const CONTINUE: &str = "Your reply was cut off, because it reached the limit of tokens for one reply. \
    Go on where it stopped, and keep calls of tools small.";

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnEnd {
    /// How.
    pub ending: Ending,
    /// What the model said last.
    pub text: String,
    /// How often the model was asked.
    pub steps: u32,
    /// What the turn took.
    pub usage: Usage,
    /// What it cost in US dollars, if prices are known.
    pub cost: Option<f64>,
}

impl TurnEnd {
    /// That of a turn which was interrupted before anything of it was stored.
    fn before_it_began() -> Self {
        Self {
            ending: Ending::Interrupted,
            text: String::new(),
            steps: 0,
            usage: Usage::default(),
            cost: None,
        }
    }
}

/// What stops a turn: either it has ended, or it cannot even be said in the store that it has.
pub(super) enum Halt {
    Ended(Ending),
    Store(StoreError),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Conversation {
    /// Lets the model go on with what a person says, until it is done. Whatever happens on the way is
    /// in the store before anything follows from it, so the future may be dropped at any time; but who
    /// interrupts by the token of the company lets the model know, later, that it was.
    pub async fn turn(
        &mut self,
        said: Vec<Block>,
        company: &Company,
    ) -> Result<TurnEnd, AgentError> {
        if self.transcript.is_closed {
            return Err(AgentError::Closed(self.id().clone()));
        }
        let providers = std::sync::Arc::clone(&self.agent.options().providers);
        let choice = self.transcript.settings.model.clone();
        let choosing = providers.choose(&choice, company.sampler.clone());
        let chosen = tokio::select! {
            biased;
            () = company.interrupt.cancelled() => return Ok(TurnEnd::before_it_began()),
            chosen = choosing => chosen?,
        };
        self.belt(&chosen)?;
        self.notes = project_notes(&self.transcript.settings.cwd);
        let (usage, cost) = (self.transcript.usage, self.transcript.cost);
        self.record(Record::Asked { content: said }).await?;
        let mut turn = Turn::default();
        let ending = match turn.run(self, &chosen, company).await {
            Halt::Ended(ending) => ending,
            Halt::Store(error) => return Err(error.into()),
        };
        self.record(Record::Ended {
            how: ending.clone(),
        })
        .await?;
        company.listener.hear(&Notice::Ended(ending.clone()));
        Ok(TurnEnd {
            ending,
            text: turn.text,
            steps: turn.steps,
            usage: self.transcript.usage.since(usage),
            cost: chosen.model.price.map(|_| self.transcript.cost - cost),
        })
    }
}

impl Conversation {
    /// Gives calls names of their own where a model has given them none, or one that is taken: results
    /// are told apart by them.
    fn name_calls(&self, content: &mut [Block]) {
        let mut taken: Vec<String> = Vec::new();
        for (place, block) in content.iter_mut().enumerate() {
            let Block::ToolCall(call) = block else {
                continue;
            };
            let is_taken = taken.contains(&call.id) || self.transcript.has_call(&call.id);
            if call.id.is_empty() || is_taken {
                call.id = format!("call_{}_{place}", self.transcript.last);
            }
            taken.push(call.id.clone());
        }
    }
}

#[derive(Debug, Default)]
struct Turn {
    steps: u32,
    text: String,
    loops: Loops,
    continued: u32,
}

impl Turn {
    async fn run(
        &mut self,
        conversation: &mut Conversation,
        chosen: &Chosen,
        company: &Company,
    ) -> Halt {
        loop {
            let most = conversation.transcript.settings.max_steps;
            let most = most.unwrap_or(conversation.agent.options().max_steps);
            if self.steps >= most {
                return Halt::Ended(Ending::TooManySteps(most));
            }
            self.steps += 1;
            if let Err(halt) = Box::pin(self.step(conversation, chosen, company)).await {
                return halt;
            }
        }
    }

    /// Asks the model once, and does what it wants.
    async fn step(
        &mut self,
        conversation: &mut Conversation,
        chosen: &Chosen,
        company: &Company,
    ) -> Result<(), Halt> {
        let Heard { reply, context } = conversation.ask(chosen, company, self.steps).await?;
        let Reply {
            mut content,
            stop,
            usage,
            model,
        } = reply;
        conversation.name_calls(&mut content);
        let cost = chosen.model.price.map(|price| price.of(&usage));
        conversation
            .record(Record::Replied {
                content: content.clone(),
                stop: stop.clone(),
                usage,
                cost,
                model: model.unwrap_or_else(|| chosen.model.name.clone()),
                provider: chosen.provider.name().to_owned(),
            })
            .await?;
        let text = text_of(&content);
        if !text.is_empty() {
            self.text = text;
        }
        let calls: Vec<ToolCall> = tool_calls(&content).cloned().collect();
        company.listener.hear(&Notice::Replied {
            content,
            usage,
            cost,
            context,
        });
        if let Stop::Refused(why) = stop {
            return Err(Halt::Ended(Ending::Refused(why)));
        }
        if calls.is_empty() {
            return self.without_calls(conversation, company, &stop).await;
        }
        let results = conversation.call_all(&calls, company).await?;
        match self.loops.step(&calls, &results) {
            Seen::Nothing => Ok(()),
            Seen::Warn => {
                let text = WARNING.to_owned();
                conversation.record(Record::Nudged { text }).await?;
                Ok(())
            }
            Seen::End => Err(Halt::Ended(Ending::Looping)),
        }
    }

    /// The model wants nothing more, or could not say it.
    async fn without_calls(
        &mut self,
        conversation: &mut Conversation,
        company: &Company,
        stop: &Stop,
    ) -> Result<(), Halt> {
        if *stop != Stop::MaxTokens {
            return Err(Halt::Ended(Ending::Done));
        }
        if self.continued >= MAX_CONTINUED {
            let what = "the reply is longer than the model may write at once; it is not whole";
            company.listener.hear(&Notice::Warning(what.to_owned()));
            return Err(Halt::Ended(Ending::Done));
        }
        self.continued += 1;
        let text = CONTINUE.to_owned();
        conversation.record(Record::Nudged { text }).await?;
        Ok(())
    }
}
