//! Keeps a conversation within what the model sees: what is too long is summed up by the model
//! itself, and goes on from the summary.

use cocode_core::{estimate_tokens, split_at_tokens};

use super::turn::Halt;
use crate::agent::AgentError;
use crate::company::{Company, Notice};
use crate::content::{Block, Message, Role, text_of};
use crate::conversation::Conversation;
use crate::provider::{Chosen, ModelRequest, ProviderError, Reply, Stop};
use crate::record::{Ending, Record};

/// Tokens of a summary, with the thoughts that go before it.
const MAX_SUMMARY_TOKENS: u64 = 16_000;
/// Tokens of one piece of what is summed up.
const MAX_PIECE_TOKENS: u64 = 4_000;
/// What is said has to be at least this part of what fills the window: one in so many.
const MIN_SHARE: u64 = 4;
/// Tokens of one result in what is summed up.
const MAX_RESULT_TOKENS: u64 = 1_000;
/// Tokens of the last request that are kept word for word.
const MAX_REQUEST_TOKENS: u64 = 4_000;
/// How often a shorter piece is tried, if what is to be summed up is itself too long.
const MAX_TRIES: u32 = 4;

/// What a model is told that sums up.
const SUMMARIZER: &str = "You sum up conversations between a person and an agent that works with \
    tools, so that the agent can go on from your summary alone.";

const NOT_SUMMED_UP: &str = "the conversation could not be summed up";

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

    /// Sums the conversation up if the model would soon see no more of it. What cannot be summed up now
    /// is no reason to stop: the provider says when it is really too long.
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
        // Instructions and tools are not shortened by that, and if they are what fills the window, nothing
        // is won.
        if self.transcript.said_tokens() < limit / MIN_SHARE {
            return Ok(());
        }
        match self.compact_for(chosen, company).await {
            Err(Halt::Ended(Ending::Failed(why))) => {
                company.listener.hear(&Notice::Warning(why));
                Ok(())
            }
            done => done,
        }
    }

    pub(super) async fn compact_for(
        &mut self,
        chosen: &Chosen,
        company: &Company,
    ) -> Result<(), Halt> {
        company.listener.hear(&Notice::Compacting);
        let before = self.transcript.tokens();
        let (kept_from, last_words) = self.what_is_kept();
        let reply = self.summed_up(chosen, company, kept_from).await?;
        let cost = chosen.model.price.map(|price| price.of(&reply.usage));
        let summary = text_of(&reply.content);
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
        match (self.transcript.last_turn(), &self.transcript.last_request) {
            (Some(number), _) if self.transcript.is_fresh_turn() => (number, String::new()),
            (_, Some(request)) => {
                let (words, _) = split_at_tokens(request, MAX_REQUEST_TOKENS);
                let words = format!(
                    "\n\nThe last that the person asked for, in their words:\n\n{words}\n\nGo on with \
                     what is still to be done."
                );
                (nothing, words)
            }
            (_, None) => (nothing, String::new()),
        }
    }

    /// A summary of what is not kept, that says something.
    async fn summed_up(
        &self,
        chosen: &Chosen,
        company: &Company,
        kept_from: u64,
    ) -> Result<Reply, Halt> {
        let failed = |why: String| Halt::Ended(Ending::Failed(format!("{NOT_SUMMED_UP}: {why}")));
        let mut asked = Asked {
            room: chosen.model.context_window / 10 * 6,
            max_output_tokens: Some(MAX_SUMMARY_TOKENS),
            kept_from,
        };
        for _ in 0..MAX_TRIES {
            match self.summary(chosen, company, &asked).await? {
                Ok(Reply {
                    stop: Stop::Refused(why),
                    ..
                }) => {
                    let why = why.unwrap_or_else(|| "the model refused".to_owned());
                    return Err(failed(why));
                }
                Ok(reply) if !text_of(&reply.content).trim().is_empty() => return Ok(reply),
                // Thoughts may have taken all that it was to write.
                Ok(_) if asked.max_output_tokens.is_some() => asked.max_output_tokens = None,
                Ok(_) => return Err(failed("the model said nothing".to_owned())),
                Err(ProviderError::TooLong { .. }) => asked.room /= 2,
                Err(error) => return Err(failed(error.to_string())),
            }
        }
        Err(failed(
            "even parts of it are too long for the model".to_owned(),
        ))
    }

    async fn summary(
        &self,
        chosen: &Chosen,
        company: &Company,
        asked: &Asked,
    ) -> Result<Result<Reply, ProviderError>, Halt> {
        let prompt = self.transcript.settings.compact_prompt.as_deref();
        let prompt = prompt.unwrap_or(PROMPT);
        let earlier = self.transcript.summary.as_deref();
        let said = self.transcript.said_before(asked.kept_from);
        let told = told(earlier, said, asked.room);
        let text = format!("{prompt}\n\n<conversation>\n{told}\n</conversation>");
        let messages = [Message::user(vec![Block::text(text)])];
        let conversation = self.id().to_string();
        let request = ModelRequest {
            model: &chosen.model,
            system: SUMMARIZER,
            messages: &messages,
            tools: &[],
            max_output_tokens: asked.max_output_tokens,
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

/// How a summary is asked for.
struct Asked {
    /// Tokens of what is to be summed up.
    room: u64,
    max_output_tokens: Option<u64>,
    /// What is kept as it is begins with this record.
    kept_from: u64,
}

/// The conversation as text: what was summed up before, and then as much of the end as there is room for.
fn told<'a>(
    earlier: Option<&str>,
    said: impl DoubleEndedIterator<Item = &'a Message>,
    room: u64,
) -> String {
    let earlier = earlier.map(|earlier| {
        let (earlier, _) = split_at_tokens(earlier, room / 2);
        format!("Summary of what was before: {earlier}")
    });
    let taken = earlier.as_deref().map_or(0, estimate_tokens);
    let (mut pieces, mut left) = (Vec::new(), room.saturating_sub(taken));
    'said: for message in said.rev() {
        let who = match message.role {
            Role::User => "Person",
            Role::Assistant => "Agent",
        };
        for block in message.content.iter().rev() {
            let piece = piece(who, block);
            let (shown, rest) = split_at_tokens(&piece, left.min(MAX_PIECE_TOKENS));
            let cut = if rest.is_empty() { "" } else { " […]" };
            left = left.saturating_sub(estimate_tokens(shown));
            pieces.push(format!("{shown}{cut}"));
            if left == 0 {
                pieces.push("[what was in between is left out]".to_owned());
                break 'said;
            }
        }
    }
    pieces.extend(earlier);
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
