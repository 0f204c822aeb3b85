//! Keeps a conversation within what the model sees: what is too long is summed up by the model
//! itself, and goes on from the summary.

use cocode_core::{estimate_tokens, split_at_tokens};

use super::turn::Halt;
use crate::agent::AgentError;
use crate::company::{Company, Notice};
use crate::content::{Block, Message, Role, text_of};
use crate::conversation::Conversation;
use crate::provider::{Chosen, ModelRequest, ProviderError, Reply};
use crate::record::{Ending, Record};

/// Tokens of a summary.
const MAX_SUMMARY_TOKENS: u64 = 8_000;
/// Tokens of one result in what is summed up.
const MAX_RESULT_TOKENS: u64 = 1_000;
/// Tokens of the last request that are kept word for word.
const MAX_REQUEST_TOKENS: u64 = 4_000;
/// How often a shorter piece is tried, if what is to be summed up is itself too long.
const MAX_TRIES: u32 = 4;

/// What a model is told that sums up.
const SUMMARIZER: &str = "You sum up conversations between a person and an agent that works with \
    tools, so that the agent can go on from your summary alone.";

const PROMPT: &str = "Sum up the conversation below for the agent that goes on with it. Keep, as \
    exactly as they matter: what the person wants and has decided; what was found out, with paths, \
    names, numbers and error messages; what was changed, and where; what was tried and failed; what \
    is still to be done, and what the agent was about to do. Leave out everything else. Do not answer \
    the person.";

impl Conversation {
    /// Sums the conversation up now. Says how many tokens it had, and has.
    pub async fn compact(&mut self, company: &Company) -> Result<(u64, u64), AgentError> {
        let providers = std::sync::Arc::clone(&self.agent.options().providers);
        let choice = self.transcript.settings.model.clone();
        let chosen = providers.choose(&choice, company.sampler.clone()).await?;
        let before = self.transcript.tokens();
        match self.compact_for(&chosen, company).await {
            Ok(()) => Ok((before, self.transcript.tokens())),
            Err(Halt::Store(error)) => Err(error.into()),
            Err(Halt::Ended(ending)) => Err(AgentError::NotCompacted(match ending {
                Ending::Failed(why) => why,
                _ => "it was interrupted".to_owned(),
            })),
        }
    }

    /// Sums the conversation up if the model would soon see no more of it.
    pub(super) async fn make_room(
        &mut self,
        chosen: &Chosen,
        company: &Company,
    ) -> Result<(), Halt> {
        let window = chosen.model.context_window;
        let reserve = chosen.model.max_output_tokens.unwrap_or(0).min(window / 4);
        let percent = u64::from(self.agent.options().compact_percent.clamp(1, 100));
        let limit = window.saturating_sub(reserve) / 100 * percent;
        if self.transcript.tokens() <= limit || self.transcript.is_single() {
            return Ok(());
        }
        self.compact_for(chosen, company).await
    }

    pub(super) async fn compact_for(
        &mut self,
        chosen: &Chosen,
        company: &Company,
    ) -> Result<(), Halt> {
        company.listener.hear(&Notice::Compacting);
        let before = self.transcript.tokens();
        let mut room = chosen.model.context_window / 10 * 6;
        let mut tries = 0;
        let reply = loop {
            tries += 1;
            match self.summary(chosen, company, room).await? {
                Ok(reply) => break reply,
                Err(ProviderError::TooLong { .. }) if tries < MAX_TRIES => room /= 2,
                Err(error) => {
                    let why = format!("the conversation could not be summed up: {error}");
                    return Err(Halt::Ended(Ending::Failed(why)));
                }
            }
        };
        let cost = chosen.model.price.map(|price| price.of(&reply.usage));
        let (kept_from, last_words) = self.what_is_kept();
        let summary = text_of(&reply.content);
        if summary.trim().is_empty() {
            let why = "the conversation could not be summed up: the model said nothing".to_owned();
            return Err(Halt::Ended(Ending::Failed(why)));
        }
        self.record(Record::Compacted {
            summary: format!("{summary}{last_words}"),
            kept_from,
            usage: reply.usage,
            cost,
        })
        .await?;
        let after = self.transcript.tokens();
        company.listener.hear(&Notice::Compacted { before, after });
        Ok(())
    }

    /// From where on the conversation is kept as it is; or else what the person said last.
    fn what_is_kept(&self) -> (u64, String) {
        let nothing = self.transcript.last + 1;
        let last = self.transcript.requests().next();
        match last {
            Some((number, _)) if self.transcript.is_fresh_turn() => (number, String::new()),
            Some((_, content)) => {
                let text = text_of(content);
                let (words, _) = split_at_tokens(&text, MAX_REQUEST_TOKENS);
                let words = format!(
                    "\n\nThe last that the person asked for, in their words:\n\n{words}\n\nGo on with \
                     what is still to be done."
                );
                (nothing, words)
            }
            None => (nothing, String::new()),
        }
    }

    async fn summary(
        &self,
        chosen: &Chosen,
        company: &Company,
        room: u64,
    ) -> Result<Result<Reply, ProviderError>, Halt> {
        let prompt = self.transcript.settings.compact_prompt.as_deref();
        let prompt = prompt.unwrap_or(PROMPT);
        let told = told(&self.transcript.messages(), room);
        let text = format!("{prompt}\n\n<conversation>\n{told}\n</conversation>");
        let messages = [Message::user(vec![Block::text(text)])];
        let conversation = self.id().to_string();
        let request = ModelRequest {
            model: &chosen.model,
            system: SUMMARIZER,
            messages: &messages,
            tools: &[],
            max_output_tokens: Some(MAX_SUMMARY_TOKENS),
            conversation: &conversation,
        };
        let mut nobody = |_delta| {};
        tokio::select! {
            biased;
            () = company.interrupt.cancelled() => Err(Halt::Ended(Ending::Interrupted)),
            reply = chosen.provider.reply(request, &mut nobody) => Ok(reply),
        }
    }
}

/// The conversation as text, the end of it if all is too long.
fn told(messages: &[Message], room: u64) -> String {
    let (mut pieces, mut left) = (Vec::new(), room);
    for message in messages.iter().rev() {
        let who = match message.role {
            Role::User => "Person",
            Role::Assistant => "Agent",
        };
        for block in message.content.iter().rev() {
            let piece = piece(who, block);
            let tokens = estimate_tokens(&piece);
            if tokens > left {
                pieces.push("[what was before is left out]".to_owned());
                pieces.reverse();
                return pieces.join("\n\n");
            }
            left -= tokens;
            pieces.push(piece);
        }
    }
    pieces.reverse();
    pieces.join("\n\n")
}

fn piece(who: &str, block: &Block) -> String {
    match block {
        Block::Text { text } => format!("{who}: {text}"),
        Block::Image { media_type, .. } => format!("{who}: [an image, {media_type}]"),
        Block::Reasoning { text, .. } => format!("{who} thinks: {text}"),
        Block::ToolCall(call) => {
            let arguments = call.arguments.to_text();
            let (arguments, _) = split_at_tokens(&arguments, MAX_RESULT_TOKENS);
            format!("{who} calls {}: {arguments}", call.name)
        }
        Block::ToolResult(result) => {
            let text = text_of(&result.content);
            let (text, rest) = split_at_tokens(&text, MAX_RESULT_TOKENS);
            let cut = if rest.is_empty() { "" } else { " […]" };
            let failed = if result.is_error { " (failed)" } else { "" };
            format!("Tool{failed}: {text}{cut}")
        }
    }
}
