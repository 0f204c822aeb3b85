//! What a front remembers of a conversation, so that another daemon can go on with it: how the
//! client introduced itself, what it wants to hear of, and what it still waits for.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;
use cocode_wire::serve::only_reads;
use memchr::memchr_iter;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::lists::{Lists, acknowledged_id};
use super::peek::{Head, head};
use crate::daemon::{LEAVING, warning_in};
use crate::error::Code;

/// What a client is told about a request that nobody will answer.
const LOST: &str = "the shared daemon ended before it answered, and it is not known whether this \
                    was carried out; what follows is served again";

/// The longest request that is kept only to be made again.
const MAX_REPEATED_BYTES: usize = 64 * 1024;

/// Subscriptions that are brought over to another daemon.
const MAX_SUBSCRIPTIONS: usize = 4096;

/// An id, as it was written.
pub(super) type Id = Box<[u8]>;

/// The state of one conversation.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Requests of the client that are not answered, in the order in which they came.
    in_flight: HashMap<Id, Open>,
    /// One whose answer was passed on in pieces, the last of which may not have come.
    cut: Option<(Id, Open)>,
    n_requests: u64,
    /// Questions to the client that are not answered.
    questions: HashSet<Id>,
    /// Answers that the client has had already.
    swallowed: HashSet<Id>,
    /// The introduction that was made for the client was refused.
    is_refused: bool,
    is_leaving: bool,
    /// What whoever runs the front is to be told.
    pub(super) warnings: Vec<String>,
    initialize: Option<Kept>,
    /// Another introduction, which counts if it is not refused.
    introduced_again: Option<Kept>,
    /// Lists whose changes the client was promised to hear of.
    lists: Lists,
    /// Subscriptions without a session that were made again, and are not acknowledged yet.
    resumed: HashMap<Id, Lists>,
    initialized: Option<Bytes>,
    level: Option<Kept>,
    subscriptions: BTreeMap<String, Kept>,
}

#[derive(Debug)]
struct Open {
    number: u64,
    again: Again,
}

/// Whether a request is made again when it is lost.
#[derive(Debug)]
enum Again {
    /// It may have been carried out.
    Never,
    /// It does no harm. If it is the reason for the loss, it is not so twice.
    Once(Bytes),
    /// It is still so, whoever serves.
    Always(Bytes),
    /// It is a subscription, which stays open for as long as it is served.
    Open(Bytes),
}

/// A request that sets something, which another daemon has to be told as well.
#[derive(Clone, Debug)]
struct Kept {
    id: Id,
    line: Bytes,
}

/// What has to happen after a loss.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Loss {
    /// What the client is told.
    pub(super) told: Vec<u8>,
    /// What another daemon is told first, and has to answer before the rest.
    pub(super) greeting: Option<Bytes>,
    /// What it is told then.
    pub(super) rest: Vec<Bytes>,
    /// What the client is told after that.
    pub(super) news: Vec<u8>,
}

impl Ledger {
    /// Notes lines of the client.
    pub(super) fn sent(&mut self, lines: &Bytes) {
        each(lines, |line| self.sent_line(&line));
    }

    /// Notes lines of the daemon, and gives those that are for the client.
    pub(super) fn received(&mut self, lines: Bytes) -> Bytes {
        let mut n_seen = 0;
        // What is left of the lines, once there is one that is not for the client as it is.
        let mut kept: Option<Vec<u8>> = None;
        each(&lines, |line| {
            let instead = self.received_line(&line);
            if instead.is_some() && kept.is_none() {
                kept = Some(lines.get(..n_seen).unwrap_or_default().to_vec());
            }
            if let Some(kept) = &mut kept {
                kept.extend_from_slice(instead.as_deref().unwrap_or(&line));
            }
            n_seen += line.len();
        });
        kept.map_or(lines, Into::into)
    }

    /// Whether the daemon wants to end, and should be asked nothing more.
    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    /// Whether the client waits for an answer. It may leave without that of a subscription.
    pub(super) fn awaits_answers(&self) -> bool {
        let mut open = self.in_flight.values();
        open.any(|open| !matches!(open.again, Again::Open(_)))
    }

    /// Whether the client is still to be introduced.
    pub(super) fn is_greeting(&self) -> bool {
        let initialize = self.initialize.as_ref();
        initialize.is_some_and(|kept| {
            self.swallowed.contains(&kept.id) || self.in_flight.contains_key(&kept.id)
        })
    }

    /// The introduction once more, if it was refused: its server may be about to start.
    pub(super) fn introduction_again(&mut self) -> Option<Bytes> {
        if !std::mem::take(&mut self.is_refused) {
            return None;
        }
        let Kept { id, line } = self.initialize.clone()?;
        self.swallowed.insert(id);
        Some(line)
    }

    /// The daemon is gone, maybe within a line that was passed on in pieces. Says what to tell the
    /// client, and what to tell the next daemon.
    pub(super) fn lost(&mut self, is_cut: bool) -> Loss {
        self.swallowed.clear();
        self.is_refused = false;
        self.is_leaving = false;
        self.resumed.clear();
        if let Some((id, open)) = self.cut.take().filter(|_| is_cut) {
            self.in_flight.insert(id, open);
        }
        let mut loss = Loss::default();
        let mut lost: Vec<(Id, Open)> = self.in_flight.drain().collect();
        lost.sort_by_key(|(_, open)| open.number);
        for (id, Open { number, again }) in lost {
            let again = match again {
                Again::Never => {
                    answer_lost(&mut loss.told, &id);
                    continue;
                }
                Again::Once(line) => {
                    loss.rest.push(line);
                    Again::Never
                }
                Again::Always(line) => {
                    // Whatever sets something is told below.
                    if self.kept().all(|kept| kept.id != id) {
                        loss.rest.push(line.clone());
                    }
                    Again::Always(line)
                }
                Again::Open(line) => {
                    self.resumed.insert(id.clone(), Lists::wanted(&line));
                    loss.rest.push(line.clone());
                    Again::Open(line)
                }
            };
            self.in_flight.insert(id, Open { number, again });
        }
        let mut questions: Vec<Id> = self.questions.drain().collect();
        questions.sort_unstable();
        for id in questions {
            withdraw(&mut loss.told, &id);
        }
        let kept: Vec<Kept> = self.kept().cloned().collect();
        for Kept { id, .. } in &kept {
            // What was not answered yet is answered now; the rest the client has heard.
            if !self.in_flight.contains_key(id) {
                self.swallowed.insert(id.clone());
            }
        }
        loss.greeting = self.initialize.as_ref().map(|kept| kept.line.clone());
        let mut rest: Vec<Bytes> = self.initialized.iter().cloned().collect();
        let others = kept
            .into_iter()
            .skip(usize::from(self.initialize.is_some()));
        rest.extend(others.map(|kept| kept.line));
        rest.append(&mut loss.rest);
        loss.rest = rest;
        if self.initialized.is_some() {
            self.lists.tell_changed(&mut loss.news, None);
        }
        loss
    }

    /// Everything that sets something, the introduction first.
    fn kept(&self) -> impl Iterator<Item = &Kept> {
        let first = self.initialize.iter().chain(&self.level);
        first.chain(self.subscriptions.values())
    }

    fn sent_line(&mut self, line: &Bytes) {
        if is_list(line) {
            self.sent_list(line);
            return;
        }
        let Head {
            id,
            method,
            is_answer: _,
            is_error: _,
        } = head(line);
        match (id, method) {
            (Some(id), Some(method)) => self.requested(id, method, line),
            (None, Some(b"notifications/initialized")) => self.initialized = Some(owned(line)),
            (None, Some(b"notifications/cancelled")) => self.cancelled(line),
            (Some(id), None) => {
                self.questions.remove(id);
            }
            _ => {}
        }
    }

    /// Several messages in one line, which one revision allowed.
    fn sent_list(&mut self, line: &Bytes) {
        let messages: Vec<&RawValue> = serde_json::from_slice(line).unwrap_or_default();
        for message in messages {
            let mut one = message.get().as_bytes().to_vec();
            one.push(b'\n');
            self.sent_line(&Bytes::from(one));
        }
    }

    fn requested(&mut self, id: &[u8], method: &[u8], line: &Bytes) {
        let kept = || Kept {
            id: id.into(),
            line: owned(line),
        };
        let mut again = Again::Never;
        match method {
            // Whoever serves refuses a second one, unless it has refused the first.
            b"initialize" if self.initialize.is_some() => self.introduced_again = Some(kept()),
            b"initialize" => {
                self.introduce(kept());
                again = Again::Always(owned(line));
            }
            b"logging/setLevel" => {
                self.level = Some(kept());
                again = Again::Always(owned(line));
            }
            b"resources/subscribe" => {
                let uri = uri_of(line).filter(|_| self.subscriptions.len() < MAX_SUBSCRIPTIONS);
                if let Some(uri) = uri {
                    self.subscriptions.insert(uri, kept());
                    again = Again::Always(owned(line));
                }
            }
            b"resources/unsubscribe" => {
                if let Some(uri) = uri_of(line) {
                    self.subscriptions.remove(&uri);
                }
            }
            b"subscriptions/listen" => again = Again::Open(owned(line)),
            _ if only_reads(method) && line.len() <= MAX_REPEATED_BYTES => {
                again = Again::Once(owned(line));
            }
            _ => {}
        }
        let number = self.n_requests;
        self.n_requests += 1;
        self.in_flight.insert(id.into(), Open { number, again });
    }

    /// What the client does not want any more is not answered.
    fn cancelled(&mut self, line: &Bytes) {
        if let Some(id) = cancelled_id(line) {
            self.in_flight.remove(id);
        }
    }

    fn introduce(&mut self, introduction: Kept) {
        self.initialize = Some(introduction);
        (self.initialized, self.level) = (None, None);
        self.lists = Lists::default();
        self.subscriptions.clear();
    }

    /// Gives what the client gets instead of the line, if that is not as it should be.
    fn received_line(&mut self, line: &Bytes) -> Option<Vec<u8>> {
        if is_list(line) {
            let messages: Vec<&RawValue> = serde_json::from_slice(line).unwrap_or_default();
            for message in messages {
                let message = message.get().as_bytes();
                self.heard(head(message), message, true);
            }
            return None;
        }
        let head = head(line);
        // Nothing that a server says looks like that.
        if head == Head::default()
            && let Some(warning) = warning_in(line)
        {
            self.warnings.push(warning);
            return Some(Vec::new());
        }
        if head == Head::default() && line.trim_ascii_end() == LEAVING {
            self.is_leaving = true;
            return Some(Vec::new());
        }
        self.heard(head, line, line.ends_with(b"\n"))
    }

    fn heard(&mut self, head: Head<'_>, line: &[u8], is_whole: bool) -> Option<Vec<u8>> {
        match head {
            Head {
                id: Some(id),
                method: Some(_),
                ..
            } => {
                self.questions.insert(id.into());
                None
            }
            Head {
                id: Some(id),
                is_answer: true,
                is_error,
                ..
            } => {
                let is_swallowed = self.swallowed.remove(id);
                if is_error && is_swallowed {
                    // It may be tried again, and the next daemon is told in any case.
                    let introduction = self.initialize.as_ref();
                    self.is_refused |= introduction.is_some_and(|kept| *kept.id == *id);
                    tracing::warn!("something that the client had set is not so any more");
                } else if is_error {
                    self.forget(id);
                } else if !is_swallowed {
                    self.introduced(id, line);
                }
                let answered = self.in_flight.remove_entry(id);
                if !is_whole {
                    self.cut = answered;
                }
                is_swallowed.then(Vec::new)
            }
            Head {
                id: None,
                method: Some(b"notifications/cancelled"),
                ..
            } => {
                // Clients do not answer what was taken back.
                if let Some(id) = cancelled_id(line) {
                    self.questions.remove(id);
                }
                None
            }
            Head {
                id: None,
                method: Some(b"notifications/subscriptions/acknowledged"),
                ..
            } if !self.resumed.is_empty() => {
                // The client had that long ago. What it does not have is what changed meanwhile.
                let (id, lists) = self.resumed.remove_entry(acknowledged_id(line)?)?;
                let mut news = Vec::new();
                lists.tell_changed(&mut news, Some(&id));
                Some(news)
            }
            _ => None,
        }
    }

    /// The client hears what it was introduced to, if that is what was answered.
    fn introduced(&mut self, id: &[u8], answer: &[u8]) {
        let is_it = |kept: &mut Kept| *kept.id == *id;
        if let Some(again) = self.introduced_again.take_if(is_it) {
            self.introduce(again);
        }
        if self.initialize.as_ref().is_some_and(|kept| *kept.id == *id) {
            self.lists = Lists::promised(answer);
        }
    }

    /// What was refused has set nothing.
    fn forget(&mut self, id: &[u8]) {
        let is_it = |kept: &mut Kept| *kept.id == *id;
        if self.introduced_again.take_if(is_it).is_some() {
            return;
        }
        if self.initialize.take_if(is_it).is_none() && self.level.take_if(is_it).is_none() {
            self.subscriptions.retain(|_, kept| *kept.id != *id);
        }
    }
}

/// Calls for each line, with its end.
pub(super) fn each(lines: &Bytes, mut visit: impl FnMut(Bytes)) {
    let mut begin = 0;
    for end in memchr_iter(b'\n', lines) {
        visit(lines.slice(begin..=end));
        begin = end + 1;
    }
    if begin < lines.len() {
        visit(lines.slice(begin..));
    }
}

pub(super) fn is_list(line: &[u8]) -> bool {
    line.trim_ascii_start().first() == Some(&b'[')
}

/// A copy: what came in one read stays whole for as long as a part of it is kept.
fn owned(line: &Bytes) -> Bytes {
    Bytes::copy_from_slice(line)
}

/// Which request is taken back.
pub(super) fn cancelled_id(line: &[u8]) -> Option<&[u8]> {
    #[derive(Deserialize)]
    struct Cancelled<'a> {
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "requestId")]
        request: &'a RawValue,
    }
    let Cancelled { params } = serde_json::from_slice(line).ok()?;
    Some(params.request.get().as_bytes())
}

fn uri_of(line: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Request {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        uri: String,
    }
    let request: Request = serde_json::from_slice(line).ok()?;
    Some(request.params.uri)
}

fn answer_lost(to: &mut Vec<u8>, id: &[u8]) {
    to.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    to.extend_from_slice(id);
    let code = Code::DaemonLost.as_str();
    let rest =
        format!(r#","error":{{"code":-32603,"message":"{LOST}","data":{{"code":"{code}"}}}}}}"#);
    to.extend_from_slice(rest.as_bytes());
    to.push(b'\n');
}

fn withdraw(to: &mut Vec<u8>, id: &[u8]) {
    to.extend_from_slice(
        br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#,
    );
    to.extend_from_slice(id);
    to.extend_from_slice(b"}}\n");
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
