//! One request to the model: what it is shown, and what is kept of what it says while it says it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::turn::Halt;
use crate::company::{Company, Notice};
use crate::content::Block;
use crate::conversation::Conversation;
use crate::instructions::instructions;
use crate::provider::{Chosen, Delta, ModelRequest, ProviderError, Reply};
use crate::record::{Ending, Record};

/// How often it is stored what a model has said of a reply so far.
const DRAFT_EVERY: Duration = Duration::from_millis(500);
/// How often a reply that broke off is asked for again.
const MAX_BROKEN: u32 = 2;
/// How often a conversation that is too long is summed up for one reply.
const MAX_COMPACTED: u32 = 2;

/// What the model said, and how much of what it sees was used: tokens, of how many.
pub(super) struct Heard {
    pub(super) reply: Reply,
    pub(super) context: (u64, u64),
}

impl Conversation {
    /// Asks the model to go on. What is too long is summed up first; what breaks off is asked for
    /// again.
    pub(super) async fn ask(
        &mut self,
        chosen: &Chosen,
        company: &Company,
        step: u32,
    ) -> Result<Heard, Halt> {
        let (mut broken, mut compacted) = (0, 0);
        self.make_room(chosen, company).await?;
        loop {
            let failed = match self.ask_once(chosen, company, step).await? {
                Ok(reply) => {
                    let context = (reply.usage.total(), chosen.model.context_window);
                    return Ok(Heard { reply, context });
                }
                Err(failed) => failed,
            };
            match failed {
                ProviderError::TooLong { .. } if compacted < MAX_COMPACTED => {
                    compacted += 1;
                    self.compact_for(chosen, company).await?;
                }
                // One that had not begun to speak was asked again often enough already.
                ProviderError::BrokeOff { why, said, .. }
                    if broken < MAX_BROKEN && !said.is_empty() =>
                {
                    broken += 1;
                    let after = Duration::ZERO;
                    company.listener.hear(&Notice::Restarting { why, after });
                }
                failed => {
                    if let ProviderError::BrokeOff { said, .. } = &failed
                        && !said.is_empty()
                    {
                        let content = said.clone();
                        self.record(Record::BrokeOff { content }).await?;
                    }
                    return Err(Halt::Ended(Ending::Failed(failed.to_string())));
                }
            }
        }
    }

    async fn ask_once(
        &mut self,
        chosen: &Chosen,
        company: &Company,
        step: u32,
    ) -> Result<Result<Reply, ProviderError>, Halt> {
        let tools = match self.belt(chosen) {
            Ok(belt) if chosen.model.tools => belt.refresh(),
            Ok(_) => Vec::new(),
            Err(error) => return Err(Halt::Ended(Ending::Failed(error.to_string()))),
        };
        let system = instructions(
            &self.transcript.settings,
            self.agent.options(),
            self.notes.as_deref(),
            self.belt.as_ref().map(|(_, belt)| belt),
        );
        let messages = self.transcript.messages();
        let conversation = self.id().to_string();
        company.listener.hear(&Notice::Asking {
            step,
            model: chosen.model.name.clone(),
        });
        let said = Arc::new(Mutex::new(Said::default()));
        let mut on_delta = {
            let (said, listener) = (Arc::clone(&said), Arc::clone(&company.listener));
            move |delta: Delta| {
                let notice = lock(&said).take(delta);
                listener.hear(&notice);
            }
        };
        let request = ModelRequest {
            model: &chosen.model,
            system: &system,
            messages: &messages,
            tools: &tools,
            max_output_tokens: None,
            conversation: &conversation,
        };
        let mut replying = chosen.provider.reply(request, &mut on_delta);
        let mut drafts = interval(DRAFT_EVERY);
        drafts.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let reply = loop {
            tokio::select! {
                biased;
                () = company.interrupt.cancelled() => break None,
                reply = &mut replying => break Some(reply),
                _ = drafts.tick() => {
                    let draft = lock(&said).draft();
                    if let Some(draft) = draft {
                        self.agent.options().store.draft(&self.lease, &draft).await?;
                    }
                }
            }
        };
        drop(replying);
        if let Some(reply) = reply {
            return Ok(reply);
        }
        let content = lock(&said).blocks();
        if !content.is_empty() {
            self.record(Record::BrokeOff { content }).await?;
        }
        Err(Halt::Ended(Ending::Interrupted))
    }
}

/// What a model has said of a reply so far.
#[derive(Debug, Default)]
struct Said {
    text: String,
    is_stored: bool,
    /// Something was said before that does not count.
    is_restarted: bool,
}

impl Said {
    fn take(&mut self, delta: Delta) -> Notice {
        match delta {
            Delta::Text(text) => {
                self.text.push_str(&text);
                self.is_stored = false;
                Notice::Text(text)
            }
            Delta::Reasoning(text) => Notice::Reasoning(text),
            Delta::ToolCall { name } => Notice::Writing { tool: name },
            Delta::Restart { why, after } => {
                self.text.clear();
                self.is_stored = false;
                self.is_restarted = true;
                Notice::Restarting { why, after }
            }
        }
    }

    fn blocks(&self) -> Vec<Block> {
        if self.text.is_empty() {
            return Vec::new();
        }
        vec![Block::text(self.text.as_str())]
    }

    /// What is to be stored, if it is not.
    fn draft(&mut self) -> Option<Vec<Block>> {
        // What does not count any more must not stay, either.
        if self.is_stored || (self.text.is_empty() && !self.is_restarted) {
            return None;
        }
        self.is_stored = true;
        Some(self.blocks())
    }
}

fn lock(said: &Mutex<Said>) -> MutexGuard<'_, Said> {
    said.lock().unwrap_or_else(PoisonError::into_inner)
}
