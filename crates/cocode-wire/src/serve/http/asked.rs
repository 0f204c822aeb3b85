//! What this server has asked the client of a session, so that an answer to what another one has asked is
//! known as such.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::frame::{Frame, FrameKind};

/// Questions of a session that are remembered one by one.
const MAX_REMEMBERED: usize = 256;

/// The questions of a session. They are not forgotten with their answers: one that comes late, or twice, is
/// one of ours.
#[derive(Debug, Default)]
pub(super) struct Questions {
    remembered: BTreeSet<u64>,
    /// The lowest and the highest of those that are not remembered any more: ids are counted.
    forgotten: Option<(u64, u64)>,
    /// Whether something was asked by an id that is no number.
    has_others: bool,
}

impl Questions {
    /// Something is said to the client, which may be a question.
    pub(super) fn note(&mut self, message: &[u8]) {
        if is_plain_notification(message) {
            return;
        }
        let Ok(frame) = Frame::parse(Bytes::copy_from_slice(message)) else {
            return;
        };
        if frame.kind() != FrameKind::Request {
            return;
        }
        let Some(id) = frame.numeric_id() else {
            self.has_others = true;
            return;
        };
        self.remembered.insert(id);
        if self.remembered.len() > MAX_REMEMBERED
            && let Some(oldest) = self.remembered.pop_first()
        {
            let (low, high) = self.forgotten.unwrap_or((oldest, oldest));
            self.forgotten = Some((low.min(oldest), high.max(oldest)));
        }
    }

    /// Whether this may be the answer to one of them.
    pub(super) fn may_be_answered_by(&self, response: &Frame) -> bool {
        let Some(id) = response.numeric_id() else {
            return self.has_others;
        };
        let is_forgotten = |(low, high)| (low..=high).contains(&id);
        self.remembered.contains(&id) || self.forgotten.is_some_and(is_forgotten)
    }
}

/// Where an id would be that is behind everything else.
const TAIL_BYTES: usize = 64;

/// Whether a message is a notification, as far as its ends tell: nearly all are, and are not read for this.
fn is_plain_notification(message: &[u8]) -> bool {
    let Some(rest) = message.strip_prefix(br#"{"jsonrpc":"2.0","method":""#) else {
        return false;
    };
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
    let behind = end.and_then(|end| rest.get(end..)).unwrap_or_default();
    let tail = message.get(message.len().saturating_sub(TAIL_BYTES)..);
    let may_have_id = tail.is_none_or(|tail| tail.windows(4).any(|part| part == br#""id""#));
    !may_have_id && (behind.starts_with(br#"","params":"#) || behind == br#""}"#)
}

#[cfg(test)]
mod tests {
    use super::{MAX_REMEMBERED, Questions};
    use crate::encode;
    use crate::frame::Frame;

    fn answer(id: &str) -> Frame {
        Frame::parse(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#).into()).unwrap()
    }

    #[test]
    fn only_what_was_asked_can_be_answered() {
        let mut asked = Questions::default();
        asked.note(&encode::request(7, "ping", None));
        asked.note(&encode::request(9, "roots/list", Some(b"{}")));
        asked.note(&encode::notification("said", Some(br#"{"id":8}"#)));
        asked.note(&encode::notification("said", None));
        for (id, is_ours) in [("7", true), ("8", false), ("9", true), ("\"a\"", false)] {
            assert_eq!(asked.may_be_answered_by(&answer(id)), is_ours, "{id}");
        }
        // However it is written.
        asked.note(br#"{ "id": "a", "method": "ping" }"#);
        asked.note(br#"{"jsonrpc":"2.0","id":12,"method":"ping"}"#);
        asked.note(br#"{"jsonrpc":"2.0","method":"ping","params":{},"id":13}"#);
        for id in ["7", "12", "13", "\"a\""] {
            assert!(asked.may_be_answered_by(&answer(id)), "{id}");
        }
    }

    #[test]
    fn late_answers_to_many_questions_are_known() {
        let mut asked = Questions::default();
        let first = 1000;
        let n_asked = 3 * MAX_REMEMBERED as u64;
        for id in first..first + n_asked {
            asked.note(&encode::request(id, "ping", None));
        }
        assert_eq!(asked.remembered.len(), MAX_REMEMBERED);
        for (id, is_ours) in [
            (first - 1, false),
            (first, true),
            (first + MAX_REMEMBERED as u64, true),
            (first + n_asked - 1, true),
            (first + n_asked, false),
        ] {
            let is_known = asked.may_be_answered_by(&answer(&id.to_string()));
            assert_eq!(is_known, is_ours, "{id}");
        }
    }
}
