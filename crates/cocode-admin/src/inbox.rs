//! Questions of servers that wait for a person: bounded in number and time, answered once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cocode_client::{Checked, CompiledSchema, Form};
use cocode_wire::RawJson;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::bulletin::{Bulletin, News};
use crate::model::{
    ConsentCall, Elicitation, ElicitationAction, ElicitationKind, ElicitationMode,
    ElicitationReply, ElicitationState,
};
use crate::moment::Moment;
use crate::random::{random, text_of};
use crate::refusal::{Refusal, RefusalStatus};

/// Questions that wait at a time.
pub const MAX_QUESTIONS: usize = 256;
/// Questions that are over and still known by their ids.
const MAX_SETTLED: usize = 1024;
/// The longest that a question waits.
pub const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// A question for a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The server that asks, or that is to be called.
    pub server: String,
    /// Whose call it is about.
    pub principal: Option<String>,
    /// Which tool it is about.
    pub tool: Option<String>,
    /// The question, in the words of the server; ours, if it is about a consent.
    pub message: String,
    /// The call that is to be allowed, if it is about that and not a question of the server.
    pub consent: Option<ConsentCall>,
    /// How it is answered.
    pub kind: QuestionKind,
}

/// How a question is answered.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestionKind {
    /// By filling in the form that this JSON Schema describes.
    Form(RawJson),
    /// By visiting this address.
    Url(String),
}

/// What a person has said.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Yes, with the form as it was filled in, where there is one.
    Accept(Option<RawJson>),
    /// No.
    Decline,
    /// Nothing.
    Cancel,
    /// Nobody was there in time.
    Expired,
}

/// Where questions wait. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Inbox(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    letters: Mutex<Letters>,
    bulletin: Bulletin,
}

#[derive(Debug, Default)]
struct Letters {
    next: u64,
    /// In the order in which they came.
    pending: BTreeMap<u64, Letter>,
    /// Those that are over, the oldest first.
    settled: VecDeque<(String, ElicitationState)>,
}

#[derive(Debug)]
struct Letter {
    elicitation: Elicitation,
    deadline: Instant,
    answer: oneshot::Sender<Reply>,
}

impl Inbox {
    /// An empty inbox, whose questions are told here.
    pub fn new(bulletin: Bulletin) -> Self {
        Self(Arc::new(Shared {
            letters: Mutex::default(),
            bulletin,
        }))
    }

    /// Asks. It is refused when too many questions wait already.
    pub fn ask(&self, question: Question, wait: Duration) -> Result<PendingQuestion, Refusal> {
        let wait = wait.min(LONGEST_WAIT);
        let (mode, requested_schema, url) = match question.kind {
            QuestionKind::Form(schema) => (ElicitationMode::Form, Some(schema), None),
            QuestionKind::Url(url) => (ElicitationMode::Url, None, Some(url)),
        };
        let at = Moment::now();
        let elicitation = Elicitation {
            id: text_of(&random::<12>()?),
            at,
            kind: match question.consent {
                Some(_) => ElicitationKind::Consent,
                None => ElicitationKind::Elicitation,
            },
            server: question.server,
            principal: question.principal,
            tool: question.tool,
            mode,
            message: question.message,
            consent: question.consent,
            requested_schema,
            url,
            deadline_at: at.after(wait),
            state: ElicitationState::Pending,
        };
        let deadline = Instant::now() + wait;
        let (answer, answered) = oneshot::channel();
        let mut letters = self.0.lock();
        if letters.pending.len() >= MAX_QUESTIONS {
            return Err(full());
        }
        let number = letters.next;
        letters.next += 1;
        let letter = Letter {
            elicitation: elicitation.clone(),
            deadline,
            answer,
        };
        letters.pending.insert(number, letter);
        drop(letters);
        self.0.tell(elicitation);
        Ok(PendingQuestion {
            shared: Arc::clone(&self.0),
            number,
            deadline,
            answered,
        })
    }

    /// The questions that wait, the oldest first.
    pub fn pending(&self) -> Vec<Elicitation> {
        let now = Instant::now();
        let letters = self.0.lock();
        let waiting = letters.pending.values().filter(|one| now < one.deadline);
        waiting.map(|one| one.elicitation.clone()).collect()
    }

    /// Answers a question, if the answer fits it.
    pub fn answer(&self, id: &str, reply: ElicitationReply) -> Result<Elicitation, Refusal> {
        let now = Instant::now();
        let mut letters = self.0.lock();
        let is_meant = |letter: &Letter| letter.elicitation.id == id && now < letter.deadline;
        let found = letters.pending.iter().find(|(_, letter)| is_meant(letter));
        let Some((number, letter)) = found else {
            return Err(letters.not_pending(id));
        };
        let (number, said) = (*number, fitting(&letter.elicitation, reply)?);
        let Some(letter) = letters.pending.remove(&number) else {
            return Err(letters.not_pending(id));
        };
        let state = if letter.answer.send(said).is_ok() {
            ElicitationState::Answered
        } else {
            // Whoever asked has gone this very moment.
            ElicitationState::Expired
        };
        let over = letters.settle(letter.elicitation, state);
        drop(letters);
        self.0.tell(over.clone());
        match state {
            ElicitationState::Answered => Ok(over),
            _ => Err(settled(id, state)),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, elicitation: Elicitation) {
        self.bulletin
            .publish_with(|| News::Elicitation(Box::new(elicitation)));
    }

    /// A question that nobody has answered is over.
    fn expire(&self, number: u64) {
        let mut letters = self.lock();
        let Some(letter) = letters.pending.remove(&number) else {
            return;
        };
        let over = letters.settle(letter.elicitation, ElicitationState::Expired);
        drop(letters);
        self.tell(over);
    }
}

impl Letters {
    fn settle(&mut self, elicitation: Elicitation, state: ElicitationState) -> Elicitation {
        if self.settled.len() >= MAX_SETTLED {
            self.settled.pop_front();
        }
        self.settled.push_back((elicitation.id.clone(), state));
        Elicitation {
            state,
            ..elicitation
        }
    }

    /// Why a question cannot be answered that does not wait.
    fn not_pending(&self, id: &str) -> Refusal {
        let mut known = self.settled.iter().filter(|(settled, _)| settled == id);
        let late = self
            .pending
            .values()
            .any(|letter| letter.elicitation.id == id);
        match known.next() {
            Some((_, state)) => settled(id, *state),
            None if late => settled(id, ElicitationState::Expired),
            None => Refusal::new(
                RefusalStatus::Unknown,
                "elicitation-unknown",
                "there is no question with this id",
            )
            .hint("GET /api/v1/elicitations lists those that wait"),
        }
    }
}

/// A question that waits; a future in all but name. Dropping it takes the question back.
#[derive(Debug)]
pub struct PendingQuestion {
    shared: Arc<Shared>,
    number: u64,
    deadline: Instant,
    answered: oneshot::Receiver<Reply>,
}

impl PendingQuestion {
    /// What a person says, or that nobody was there in time.
    pub async fn reply(mut self) -> Reply {
        let answered = tokio::time::timeout_at(self.deadline, &mut self.answered).await;
        match answered {
            Ok(Ok(reply)) => reply,
            // In time, or with the inbox.
            Err(_) | Ok(Err(_)) => Reply::Expired,
        }
    }
}

impl Drop for PendingQuestion {
    fn drop(&mut self) {
        self.shared.expire(self.number);
    }
}

fn full() -> Refusal {
    Refusal::new(
        RefusalStatus::Unavailable,
        "inbox-full",
        format!("{MAX_QUESTIONS} questions of servers wait for an answer already"),
    )
    .hint("answer or decline some of them")
}

fn settled(id: &str, state: ElicitationState) -> Refusal {
    let (code, what) = match state {
        ElicitationState::Answered => ("elicitation-answered", "was answered already"),
        _ => ("elicitation-expired", "is not waited for any more"),
    };
    tracing::debug!(id, code, "a question was answered too late");
    Refusal::new(
        RefusalStatus::Conflict,
        code,
        format!("the answer to this question {what}"),
    )
}

/// What is said by a reply, if it fits the question.
fn fitting(question: &Elicitation, reply: ElicitationReply) -> Result<Reply, Refusal> {
    let unfit = |code: &str, message: &str| Refusal::new(RefusalStatus::Unfit, code, message);
    match (reply.action, reply.content, &question.requested_schema) {
        (ElicitationAction::Decline, None, _) => Ok(Reply::Decline),
        (ElicitationAction::Cancel, None, _) => Ok(Reply::Cancel),
        (ElicitationAction::Decline | ElicitationAction::Cancel, Some(_), _) => Err(unfit(
            "content-unwanted",
            "`content` is only for `accept`: leave it out",
        )),
        (ElicitationAction::Accept, None, None) => Ok(Reply::Accept(None)),
        (ElicitationAction::Accept, Some(_), None) => Err(unfit(
            "content-unwanted",
            "the question is answered at its address: leave `content` out",
        )),
        (ElicitationAction::Accept, content, Some(schema)) => {
            let content = completed(content, schema)?;
            match CompiledSchema::compile(schema).map(|compiled| compiled.examine(&content)) {
                Ok(Checked::Mismatch(mismatch)) => Err(unfit(
                    "content-unfit",
                    "`content` does not fit what the server asks for",
                )
                .hints(mismatch.problems().iter().map(ToString::to_string))),
                // A schema of no use is the server's affair; it will see what it gets.
                Ok(Checked::Fits | Checked::NotCheckable(_)) | Err(_) => {
                    Ok(Reply::Accept(Some(content)))
                }
            }
        }
    }
}

/// A form with the defaults of all fields that were left empty.
fn completed(content: Option<RawJson>, schema: &RawJson) -> Result<RawJson, Refusal> {
    let unfit = |message: String| Refusal::new(RefusalStatus::Unfit, "content-unfit", message);
    let content = match content {
        Some(content) => content
            .decode::<Map<String, Value>>()
            .map_err(|error| unfit(format!("`content` is not the object of a form: {error}")))?,
        None => Map::new(),
    };
    let content = match Form::parse(schema) {
        Ok(form) => form.with_defaults(content),
        // Then there are no defaults either.
        Err(_unreadable) => content,
    };
    RawJson::of(&content).map_err(|error| unfit(format!("`content` cannot be written: {error}")))
}

#[cfg(test)]
#[path = "inbox_tests.rs"]
mod tests;
