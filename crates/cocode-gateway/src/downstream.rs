//! One client that talks to the gateway: its requests, its answers to questions, and what it wants
//! to hear.

mod reading;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use cocode_client::Notification;
use cocode_core::ServerName;
use cocode_wire::serve::{Answer, Asked, Conversation, Serving, Sink};
use cocode_wire::{Frame, RawJson, RpcError, code, encode};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, oneshot, watch};

use crate::caller::Caller;
use crate::instance::Instance;
use crate::level::Level;
use crate::levels::UNSAID;
use crate::outbox::Outbox;
use crate::party::{Matter, Party};
use crate::room::Room;
use crate::searching::Announced;
use crate::served::Served;
use crate::view::Entry;

/// Sessions are counted over all gateways, and requests of the stateless era among them.
static SESSIONS: AtomicU64 = AtomicU64::new(1);

/// Questions that one client may have to answer at once.
const MAX_QUESTIONS: usize = 64;

/// How long a client, and the person behind it, may take to answer.
const ANSWERS_WITHIN: Duration = Duration::from_mins(10);

/// A conversation with one client, or with all those whose requests stand alone.
pub(crate) struct Downstream {
    room: Arc<dyn Room>,
    /// Reaches the client outside of its requests. There is none where requests stand alone.
    outlet: Option<Arc<dyn Sink>>,
    number: u64,
    /// What is known of its model by the way it came.
    announced: Announced,
    party: Arc<Party>,
    next_question: AtomicU64,
    /// Lets one server of its own be started at a time.
    pub(crate) starting: Semaphore,
    /// What it tells servers.
    pub(crate) outbox: Outbox,
    /// Tells when calls under way are given up.
    drained: watch::Receiver<bool>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The client, once it has opened a session.
    caller: Option<Arc<Caller>>,
    level: Option<Level>,
    /// Requests on their way, by their ids; dropping the sender cancels one. One that was cancelled
    /// is there until it has ended.
    in_flight: HashMap<String, Option<oneshot::Sender<()>>>,
    /// Questions that the client was asked.
    questions: HashMap<u64, oneshot::Sender<Result<RawJson, RpcError>>>,
    served: Served,
    ended: bool,
}

impl Downstream {
    pub(crate) fn new(
        room: Arc<dyn Room>,
        outlet: Option<Arc<dyn Sink>>,
        announced: Announced,
        party: Arc<Party>,
        drained: watch::Receiver<bool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            drained,
            room,
            outlet,
            number: next_session(),
            announced,
            party,
            next_question: AtomicU64::new(first_question()),
            starting: Semaphore::new(1),
            outbox: Outbox::default(),
            state: Mutex::default(),
        })
    }

    /// Whether there is a client who stays.
    pub(crate) fn is_session(&self) -> bool {
        self.outlet.is_some()
    }

    /// Whether the connection or session has ended that it was. Requests that stand alone are none.
    pub(crate) fn has_left(&self) -> bool {
        self.outlet.is_some() && self.lock().ended
    }

    /// Nobody else has this number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// What is known of its model by the way it came.
    pub(crate) fn announced(&self) -> Announced {
        self.announced
    }

    /// Whom it belongs to.
    pub(crate) fn party(&self) -> &Arc<Party> {
        &self.party
    }

    /// Whether the client has left.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// The parameters of what a server tells about a request, as this client knows them; nothing if
    /// they are as the server has them.
    pub(crate) fn retold(
        &self,
        server: &ServerName,
        notification: &Notification,
    ) -> Option<RawJson> {
        self.room.retold(server, notification)
    }

    /// The least severe log messages that the client wants.
    pub(crate) fn log_level(&self) -> Level {
        self.lock().level.unwrap_or(UNSAID)
    }

    /// The same, if the client said anything about it.
    pub(crate) fn wanted_level(&self) -> Option<Level> {
        self.lock().level
    }

    pub(crate) fn set_log_level(&self, level: Level) {
        self.lock().level = Some(level);
    }

    /// The server for this client, if that was decided.
    pub(crate) fn served_by(&self, entry: &Entry) -> Option<Arc<Instance>> {
        self.lock().served.by(entry)
    }

    /// The server that runs for this client alone, if there is one.
    pub(crate) fn own(&self, entry: &Entry) -> Option<Arc<Instance>> {
        self.lock().served.by_own(entry)
    }

    /// Decides which server is for this client, for as long as it talks: one of its own, the one for
    /// legacy clients, or the one that everybody shares.
    pub(crate) fn decide(&self, entry: &Entry, own: Option<Arc<Instance>>) {
        let older = {
            let mut state = self.lock();
            if state.ended {
                return;
            }
            state.served.decide(entry, own)
        };
        drop(older);
    }

    /// Lets go of servers of its own that have no place among these any more.
    pub(crate) fn release(&self, servers: &BTreeMap<ServerName, Entry>) {
        let gone = self.lock().served.release(servers);
        drop(gone);
    }

    /// Puts a question to the client, on the stream of one of its requests.
    pub(crate) async fn ask(
        &self,
        stream: &dyn Sink,
        method: &str,
        params: Option<&RawJson>,
    ) -> Result<RawJson, RpcError> {
        let id = self.next_question.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        {
            let mut state = self.lock();
            if state.ended || state.questions.len() >= MAX_QUESTIONS {
                let what = "the client cannot be asked any more";
                return Err(RpcError::new(code::INTERNAL_ERROR, what));
            }
            state.questions.insert(id, reply);
        }
        let mut open = OpenQuestion {
            from: self,
            id,
            is_answered: false,
        };
        let request = encode::request(id, method, params.map(RawJson::as_bytes));
        if !stream.send(Bytes::from(request)) {
            let what = "the client takes no questions at this moment";
            return Err(RpcError::new(code::INTERNAL_ERROR, what));
        }
        let gone = |_| Err(RpcError::new(code::INTERNAL_ERROR, "the client is gone"));
        match tokio::time::timeout(ANSWERS_WITHIN, answer).await {
            Ok(answer) => {
                open.is_answered = true;
                answer.unwrap_or_else(gone)
            }
            Err(_elapsed) => {
                let what = "the client did not answer in time";
                Err(RpcError::new(code::INTERNAL_ERROR, what))
            }
        }
    }

    /// Puts a question of a server to the client outside of its requests.
    pub(crate) async fn ask_outside(
        &self,
        server: &ServerName,
        method: &str,
        params: Option<&RawJson>,
    ) -> Result<RawJson, RpcError> {
        let can = self.lock().caller.as_ref().map(|caller| caller.can);
        if let Err(refusal) = can.unwrap_or_default().check(method, params) {
            let matter = Matter {
                server: server.clone(),
                tool: None,
                consent: None,
            };
            return match self.party.ask(matter, method, params) {
                Some(answer) => answer.await,
                None => Err(refusal),
            };
        }
        let Some(outlet) = &self.outlet else {
            let what = "the client can be asked only in answer to a request";
            return Err(RpcError::new(code::INTERNAL_ERROR, what));
        };
        self.ask(&**outlet, method, params).await
    }

    /// Tells the client something outside of its requests.
    pub(crate) fn tell(&self, method: &str, params: Option<&RawJson>) {
        let Some(outlet) = &self.outlet else {
            return;
        };
        let message = encode::notification(method, params.map(RawJson::as_bytes));
        if !outlet.send(Bytes::from(message)) {
            tracing::debug!(method, "a client did not take a notification");
        }
    }

    /// Notes that a request of this id is on its way.
    fn begin(self: &Arc<Self>, id: &RawJson) -> Result<OnItsWay, RpcError> {
        let (cancel, cancelled) = oneshot::channel();
        let key = id.as_str().to_owned();
        let mut state = self.lock();
        if state.in_flight.contains_key(&key) {
            let what = "a request with this id is on its way";
            return Err(RpcError::new(code::INVALID_REQUEST, what));
        }
        state.in_flight.insert(key.clone(), Some(cancel));
        drop(state);
        Ok(OnItsWay {
            from: Arc::clone(self),
            key,
            cancelled,
        })
    }

    fn cancelled(&self, params: &RawJson) {
        #[derive(Deserialize)]
        struct Cancelled<'a> {
            #[serde(borrow, rename = "requestId")]
            request: &'a RawValue,
        }
        if let Ok(Cancelled { request }) = params.decode() {
            let mut state = self.lock();
            let cancel = state
                .in_flight
                .get_mut(request.get())
                .and_then(Option::take);
            drop(state);
            drop(cancel);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Conversation for Downstream {
    fn request(self: Arc<Self>, asked: Asked) -> Serving {
        let id = asked.frame.id();
        let id = id.unwrap_or_else(|| RawJson::from(RawValue::NULL.to_owned()));
        // Before anything is waited for: it may be cancelled by what was read together with it.
        let on_its_way = match self.is_session().then(|| self.begin(&id)).transpose() {
            Ok(on_its_way) => on_its_way,
            Err(error) => return Box::pin(std::future::ready(Answer::error(&id, &error))),
        };
        let under_way = (!self.is_session()).then(|| self.party.begin());
        // Other requests may be made again at the next gateway.
        let drained = (asked.frame.method() == "tools/call").then(|| self.drained.clone());
        let pending = self.reply(&id, asked);
        Box::pin(async move {
            let _under_way = under_way;
            let reply = pending.reply(is_true(drained));
            let Some(mut on_its_way) = on_its_way else {
                return reply.await.answer(&id);
            };
            tokio::select! {
                biased;
                _cancelled = &mut on_its_way.cancelled => Answer::none(),
                reply = reply => reply.answer(&id),
            }
        })
    }

    fn notification(&self, frame: Frame) {
        let params = frame.params();
        match (frame.method(), &params) {
            ("notifications/cancelled", Some(params)) => self.cancelled(params),
            ("notifications/initialized", _) => {}
            (method, params) if method.starts_with("notifications/") => {
                self.room.told(self, method, params.as_ref());
            }
            // A request without an id would get past everything that requests have to pass.
            (method, _) => tracing::debug!(method, "a notification that is none"),
        }
    }

    fn response(&self, frame: Frame) {
        let question = frame
            .numeric_id()
            .and_then(|id| self.lock().questions.remove(&id));
        let Some(question) = question else {
            tracing::debug!("a client answers what it was not asked");
            return;
        };
        let answer = match (frame.result(), frame.error()) {
            (Some(result), _) => Ok(result),
            (None, Some(error)) => Err(error),
            (None, None) => Err(RpcError::new(
                code::INTERNAL_ERROR,
                "an answer without content",
            )),
        };
        // Whoever asked may have gone meanwhile.
        drop(question.send(answer));
    }

    fn ended(&self) {
        let State {
            in_flight,
            questions,
            served,
            ..
        } = {
            let mut state = self.lock();
            let ended = State {
                ended: true,
                ..State::default()
            };
            std::mem::replace(&mut *state, ended)
        };
        drop((in_flight, questions, served));
        self.room.left();
    }
}

/// Ready as soon as that is true; never if there is nothing that tells.
async fn is_true(told: Option<watch::Receiver<bool>>) {
    if let Some(mut told) = told
        && told.wait_for(|is_true| *is_true).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// The resource that a notification says has changed.
pub(crate) fn updated_uri(params: Option<&RawJson>) -> Option<String> {
    #[derive(Deserialize)]
    struct Updated {
        uri: String,
    }
    Some(params?.decode::<Updated>().ok()?.uri)
}

/// The id of the first question of a session. A client may be brought over from another gateway that
/// is gone, and answer late what that one has asked: so ids begin with the time, in microseconds.
fn first_question() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(1, |now| now.as_micros());
    u64::try_from(now).unwrap_or(1)
}

fn next_session() -> u64 {
    SESSIONS.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn unknown_method(method: &str) -> RpcError {
    RpcError::new(code::METHOD_NOT_FOUND, format!("unknown method `{method}`"))
}

/// A request on its way, until this is dropped.
struct OnItsWay {
    from: Arc<Downstream>,
    key: String,
    cancelled: oneshot::Receiver<()>,
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        let ended = self.from.lock().in_flight.remove(&self.key);
        drop(ended);
    }
}

/// A question that a client was asked. Dropped without an answer, it is taken back.
struct OpenQuestion<'a> {
    from: &'a Downstream,
    id: u64,
    is_answered: bool,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        self.from.lock().questions.remove(&self.id);
        let params = format!(r#"{{"requestId":{}}}"#, self.id);
        if let Ok(params) = RawJson::parse(params) {
            self.from.tell("notifications/cancelled", Some(&params));
        }
    }
}

impl std::fmt::Debug for Downstream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Downstream")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
