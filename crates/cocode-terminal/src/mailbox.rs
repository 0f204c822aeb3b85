//! What a turn says to the session, on its way from the task of the turn. Who speaks never waits:
//! text is joined and reports of progress replace each other, so little is kept however slow the
//! terminal is.

use std::sync::{Arc, Mutex, PoisonError};

use cocode_agent::{ApprovalAnswer, ApprovalQuestion, Approver, Listener, Notice, Work};
use tokio::sync::{Notify, mpsc, oneshot};

/// Notices that wait, and bytes of text in them. What exceeds this is counted and left out: the
/// store has it.
const MAX_NOTICES: usize = 20_000;
const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;

/// Questions that wait until the session looks at them.
const MAX_WAITING_QUESTIONS: usize = 16;

/// Notices on their way.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    notices: Vec<Notice>,
    text_bytes: usize,
    n_lost: usize,
}

impl Mailbox {
    /// Takes all that arrived.
    pub(crate) fn take(&self) -> Vec<Notice> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Waiting {
            mut notices,
            text_bytes: _,
            n_lost,
        } = std::mem::take(&mut *waiting);
        if n_lost > 0 {
            notices.push(Notice::Warning(format!(
                "{n_lost} events came faster than they could be shown, and are not; the conversation has them"
            )));
        }
        notices
    }

    /// Waits until something arrived. Cancel safe.
    pub(crate) async fn arrival(&self) {
        self.arrived.notified().await;
    }
}

impl Listener for Mailbox {
    fn hear(&self, notice: &Notice) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.add(notice);
        drop(waiting);
        self.arrived.notify_one();
    }
}

impl Waiting {
    fn add(&mut self, notice: &Notice) {
        match (notice, self.notices.last_mut()) {
            (Notice::Text(more), Some(Notice::Text(text)))
            | (Notice::Reasoning(more), Some(Notice::Reasoning(text))) => {
                if self.text_bytes + more.len() > MAX_TEXT_BYTES {
                    self.n_lost += 1;
                } else {
                    self.text_bytes += more.len();
                    text.push_str(more);
                }
                return;
            }
            _ => {}
        }
        if let Notice::CallProgressed { id: of, .. } = notice {
            let earlier = self
                .notices
                .iter_mut()
                .rev()
                .find(|kept| matches!(kept, Notice::CallProgressed { id, .. } if id == of));
            if let Some(earlier) = earlier {
                *earlier = notice.clone();
                return;
            }
        }
        if self.notices.len() < MAX_NOTICES {
            self.notices.push(notice.clone());
        } else {
            self.n_lost += 1;
        }
    }
}

/// A question about a call that waits for its answer.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) question: ApprovalQuestion,
    pub(crate) reply: oneshot::Sender<ApprovalAnswer>,
}

/// Asks the person at the terminal.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    questions: mpsc::Sender<Pending>,
}

impl Asker {
    pub(crate) fn new() -> (Arc<Self>, mpsc::Receiver<Pending>) {
        let (questions, receiver) = mpsc::channel(MAX_WAITING_QUESTIONS);
        (Arc::new(Self { questions }), receiver)
    }
}

impl Approver for Asker {
    fn can_ask(&self) -> bool {
        !self.questions.is_closed()
    }

    fn ask(&self, question: ApprovalQuestion) -> Work<'_, ApprovalAnswer> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let pending = Pending { question, reply };
            if self.questions.send(pending).await.is_err() {
                return ApprovalAnswer::Unasked;
            }
            answer.await.unwrap_or(ApprovalAnswer::Unasked)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progressed(id: &str, done: f64) -> Notice {
        Notice::CallProgressed {
            id: id.to_owned(),
            done,
            total: None,
            message: None,
        }
    }

    #[test]
    fn text_is_joined_and_progress_replaced() {
        let mailbox = Mailbox::default();
        for notice in [
            Notice::Text("a".into()),
            Notice::Text("b".into()),
            Notice::Reasoning("r".into()),
            progressed("1", 1.0),
            progressed("2", 1.0),
            progressed("1", 2.0),
            Notice::Text("c".into()),
        ] {
            mailbox.hear(&notice);
        }
        let expected = [
            Notice::Text("ab".into()),
            Notice::Reasoning("r".into()),
            progressed("1", 2.0),
            progressed("2", 1.0),
            Notice::Text("c".into()),
        ];
        assert_eq!(mailbox.take(), expected);
        assert_eq!(mailbox.take(), []);
    }

    #[test]
    fn what_is_too_much_is_counted() {
        let mailbox = Mailbox::default();
        for n in 0..MAX_NOTICES + 3 {
            mailbox.hear(&Notice::Warning(n.to_string()));
        }
        let notices = mailbox.take();
        assert_eq!(notices.len(), MAX_NOTICES + 1);
        let Some(Notice::Warning(last)) = notices.last() else {
            panic!("no warning");
        };
        assert!(last.starts_with("3 events"), "{last}");
    }

    #[tokio::test]
    async fn who_asks_a_session_that_is_gone_is_told() {
        let (asker, receiver) = Asker::new();
        assert!(asker.can_ask());
        drop(receiver);
        assert!(!asker.can_ask());
        let question = crate::approval::question_for_tests();
        assert_eq!(asker.ask(question).await, ApprovalAnswer::Unasked);
    }
}
