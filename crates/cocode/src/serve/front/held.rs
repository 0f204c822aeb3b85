//! Requests that come while the daemon is leaving: they are kept for the next one, and only what
//! belongs to requests that were made before still goes to the one that leaves.

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::ledger::{Id, cancelled_id, each, is_list};
use super::peek::head;

/// What is kept at most. A client that asks for more has to wait.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// What nobody was asked yet.
#[derive(Debug, Default)]
pub(super) struct Held {
    lines: VecDeque<(Option<Id>, Bytes)>,
    n_bytes: usize,
}

impl Held {
    /// Keeps what asks for something and what belongs to that, and gives the rest.
    pub(super) fn hold(&mut self, lines: &Bytes) -> Bytes {
        let mut rest = Vec::new();
        each(lines, |line| {
            if asks(&line) || self.completes_introduction(&line) {
                self.n_bytes += line.len();
                self.lines.push_back((head(&line).id.map(Into::into), line));
            } else if !self.takes_back(&line) {
                rest.extend_from_slice(&line);
            }
        });
        rest.into()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.n_bytes >= MAX_BYTES
    }

    /// Gives all of it, in the order in which it came.
    pub(super) fn take(&mut self) -> Bytes {
        let Self { lines, n_bytes } = std::mem::take(self);
        let mut all = Vec::with_capacity(n_bytes);
        for (_, line) in lines {
            all.extend_from_slice(&line);
        }
        all.into()
    }

    /// Whether it is for whoever gets the introduction that is kept here.
    fn completes_introduction(&self, line: &Bytes) -> bool {
        let is_introduction = |line: &Bytes| head(line).method == Some(b"initialize");
        head(line).method == Some(b"notifications/initialized")
            && self.lines.iter().any(|(_, held)| is_introduction(held))
    }

    /// Whether it says that the client does not want any more what is kept here.
    fn takes_back(&mut self, line: &Bytes) -> bool {
        if head(line).method != Some(b"notifications/cancelled") {
            return false;
        }
        let Some(id) = cancelled_id(line) else {
            return false;
        };
        let is_it = |(held, _): &(Option<Id>, Bytes)| held.as_deref() == Some(id);
        let Some((_, line)) = self
            .lines
            .iter()
            .position(is_it)
            .and_then(|at| self.lines.remove(at))
        else {
            return false;
        };
        self.n_bytes -= line.len();
        true
    }
}

/// Whether somebody has to answer.
fn asks(line: &[u8]) -> bool {
    let is_request = |message: &[u8]| {
        let head = head(message);
        head.id.is_some() && head.method.is_some()
    };
    if !is_list(line) {
        return is_request(line);
    }
    let messages: Vec<&RawValue> = serde_json::from_slice(line).unwrap_or_default();
    let mut messages = messages.into_iter();
    messages.any(|message| is_request(message.get().as_bytes()))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{Held, MAX_BYTES};

    fn hold(held: &mut Held, lines: &str) -> String {
        let rest = held.hold(&Bytes::copy_from_slice(lines.as_bytes()));
        String::from_utf8(rest.to_vec()).unwrap()
    }

    fn taken(held: &mut Held) -> String {
        String::from_utf8(held.take().to_vec()).unwrap()
    }

    #[test]
    fn requests_are_kept_in_order_and_everything_else_goes_on() {
        let mut held = Held::default();
        let answer = "{\"id\":9,\"result\":{}}\n";
        let told = "{\"method\":\"notifications/progress\"}\n";
        let one = "{\"id\":1,\"method\":\"tools/call\"}\n";
        let two = "[{\"id\":9,\"result\":{}},{\"id\":2,\"method\":\"ping\"}]\n";
        let answers = "[{\"id\":9,\"result\":{}}]\n";
        let all = [one, answer, two, told, answers].concat();
        assert_eq!(hold(&mut held, &all), [answer, told, answers].concat());
        assert!(!held.is_empty());
        assert_eq!(taken(&mut held), [one, two].concat());
        assert!(held.is_empty());
    }

    #[test]
    fn an_introduction_is_kept_with_its_end() {
        let mut held = Held::default();
        let initialized = "{\"method\":\"notifications/initialized\"}\n";
        // The one that leaves has had the introduction of that.
        assert_eq!(hold(&mut held, initialized), initialized);
        let initialize = "{\"id\":0,\"method\":\"initialize\"}\n";
        let list = "{\"id\":1,\"method\":\"tools/list\"}\n";
        let all = [initialize, initialized, list].concat();
        assert_eq!(hold(&mut held, &all), "");
        assert_eq!(taken(&mut held), all);
    }

    #[test]
    fn what_is_taken_back_is_asked_of_nobody() {
        let mut held = Held::default();
        let cancel = |id: &str| {
            format!(
                "{{\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n"
            )
        };
        let request = |id: &str| format!("{{\"id\":{id},\"method\":\"tools/call\"}}\n");
        hold(&mut held, &(request("\"a\"") + &request("1")));
        assert_eq!(hold(&mut held, &cancel("\"a\"")), "");
        // That one was asked before.
        assert_eq!(hold(&mut held, &cancel("2")), cancel("2"));
        assert_eq!(taken(&mut held), request("1"));
    }

    #[test]
    fn only_so_much_is_kept() {
        let mut held = Held::default();
        let long = format!("{{\"id\":1,\"method\":\"{}\"}}\n", "m".repeat(MAX_BYTES));
        hold(&mut held, &long);
        assert!(held.is_full());
        assert_eq!(taken(&mut held), long);
        assert!(!held.is_full());
    }
}
