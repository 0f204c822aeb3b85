//! Requests of stateless clients that wait for answers, while the server that asked keeps their
//! place: a server of the older era knows no other way.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cocode_core::{Era, ServerName};
use cocode_wire::encode::push_member;
use cocode_wire::members::Members;
use cocode_wire::{Frame, RawJson, RpcError, code};
use ring::digest::{Context, SHA256};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::downstream::Downstream;
use crate::instance::{Instance, Passed};
use crate::passing::{relay, visits_in};
use crate::questions::push_request;
use crate::reply::Reply;
use crate::request::Request;
use crate::results::adapted;
use crate::witness::CallWitness;

/// How long a client may take to come back with answers.
const COMES_BACK_WITHIN: Duration = Duration::from_mins(10);
/// Requests that may be parked at once.
const MAX_PARKED: usize = 1024;
/// Requests that one server may have parked at once: each of them takes a place of those that it can
/// work on.
const MAX_PARKED_BY_SERVER: usize = 32;
/// How soon after the first question others are told of together with it.
const MORE_QUESTIONS_WITHIN: Duration = Duration::from_millis(20);
/// Bytes of a handle: nobody guesses it.
const HANDLE_BYTES: usize = 24;

/// A request that is being carried out.
enum Work {
    /// For as long as somebody looks.
    Here(Pin<Box<dyn Future<Output = Result<Frame, RpcError>> + Send>>),
    /// By itself: a server may take its questions back and be done. Ends when this is dropped.
    Task(JoinSet<Result<Frame, RpcError>>),
}

/// The parked requests of a gateway.
pub(crate) struct Parking {
    spots: Mutex<HashMap<String, Parked>>,
    handles: Handles,
}

/// Makes names that nobody guesses.
#[derive(Debug)]
pub(crate) struct Handles(SystemRandom);

/// A request that waits.
struct Parked {
    until: Instant,
    /// What was asked, and of whom: the handle is good for nothing else.
    digest: Vec<u8>,
    server: Weak<Instance>,
    /// The conversation that it was asked in.
    from: Arc<Downstream>,
    waits: Waits,
}

/// What a parked request waits for.
enum Waits {
    /// The server waits for answers, in the middle of its work.
    Work(Work, Arc<CallWitness>),
    /// The server has refused until somebody visits these addresses: keys of the questions.
    Visits(Vec<String>),
}

impl Parking {
    pub(crate) fn new() -> Self {
        Self {
            spots: Mutex::default(),
            handles: Handles::default(),
        }
    }

    /// Carries a request of a stateless client to a server of the older era.
    pub(crate) async fn pass(
        &self,
        instance: Arc<Instance>,
        request: &Request,
        passed: Passed,
    ) -> Reply {
        let digest = digest(instance.name(), request);
        let Some(state) = &request.said.request_state else {
            return self.begin(instance, request, passed, digest).await;
        };
        let parked = match self.take(state, &digest, request) {
            Ok(parked) => parked,
            Err(error) => return error.into(),
        };
        let answers = responses(request.said.input_responses.as_ref());
        match parked.waits {
            Waits::Work(work, witness) => {
                witness.redirect(request);
                witness.questions().answer(&answers);
                let server = Arc::downgrade(&instance);
                self.wait(work, &witness, server, request, digest).await
            }
            Waits::Visits(keys) => {
                let is_visited = |key: &String| {
                    let answer = answers.iter().find(|(given, _)| given == key);
                    answer.is_some_and(|(_, answer)| is_accepted(answer))
                };
                if keys.iter().all(is_visited) {
                    return self.begin(instance, request, passed, digest).await;
                }
                let what = "the address that the server names was not visited";
                RpcError::new(code::INVALID_PARAMS, what).into()
            }
        }
    }

    async fn begin(
        &self,
        instance: Arc<Instance>,
        request: &Request,
        mut passed: Passed,
        digest: Vec<u8>,
    ) -> Reply {
        passed.params = passed.params.map(|params| without_answers(&params));
        let witness = Arc::clone(&passed.witness);
        witness.allow_suspension();
        let server = Arc::downgrade(&instance);
        let work = Work::Here(Box::pin(async move { relay(&instance, &passed).await }));
        self.wait(work, &witness, server, request, digest).await
    }

    /// Waits for the result, or for a question.
    async fn wait(
        &self,
        mut work: Work,
        witness: &Arc<CallWitness>,
        server: Weak<Instance>,
        request: &Request,
        digest: Vec<u8>,
    ) -> Reply {
        let questions = Arc::clone(witness.questions());
        while !questions.is_waiting() {
            tokio::select! {
                biased;
                answer = work.answer() => {
                    return match answer {
                        Ok(frame) => self.answered(frame, witness, server, request, digest),
                        Err(error) => error.into(),
                    };
                }
                () = questions.arrived() => {}
            }
            // A server that has several questions at once asks them one right after the other; one
            // round is better than three. If it is done meanwhile because one of them was refused, the
            // client learns of that after it has heard of the others.
            tokio::time::sleep(MORE_QUESTIONS_WITHIN).await;
        }
        if let Some(counted) = request.deed.get().and_then(|deed| deed.keep_counting()) {
            witness.keep(counted);
        }
        let asked = questions.to_json();
        let waits = Waits::Work(work.by_itself(), Arc::clone(witness));
        self.park(waits, server, request, digest, &asked)
    }

    /// The answer of the server; it may be an error that says which addresses to visit first.
    fn answered(
        &self,
        frame: Frame,
        witness: &CallWitness,
        server: Weak<Instance>,
        request: &Request,
        digest: Vec<u8>,
    ) -> Reply {
        let lacking = witness.lacking();
        if frame.is_error() && lacking.any() {
            let message = "the server asks for something that this client does not offer";
            return missing_capability(message, &lacking.to_json()).into();
        }
        let error = frame.error().filter(|_| request.caller.can.url);
        let Some(visits) = error.as_ref().and_then(visits_in) else {
            return adapted(&request.method, frame, Era::Legacy, Era::Modern);
        };
        let (keys, asked) = as_questions(&visits);
        self.park(Waits::Visits(keys), server, request, digest, &asked)
    }

    fn park(
        &self,
        waits: Waits,
        server: Weak<Instance>,
        request: &Request,
        digest: Vec<u8>,
        asked: &[u8],
    ) -> Reply {
        let handle = match self.handles.new_handle() {
            Ok(handle) => handle,
            Err(error) => return error.into(),
        };
        let parked = Parked {
            until: Instant::now() + COMES_BACK_WITHIN,
            digest,
            server,
            from: Arc::clone(&request.from),
            waits,
        };
        // Those that most likely nobody comes back to make room. They are given up outside of the
        // lock: their servers are told so.
        let mut given_up = Vec::new();
        let mut spots = self.lock();
        let of_server = |other: &Parked| Weak::ptr_eq(&other.server, &parked.server);
        // One's own go first, so that nobody takes the places of others.
        let principal = request.from.party().principal();
        let is_own = |other: &Parked| other.from.party().principal() == principal;
        if spots.values().filter(|other| of_server(other)).count() >= MAX_PARKED_BY_SERVER {
            let own = take_oldest(&mut spots, |other| of_server(other) && is_own(other));
            given_up.extend(own.or_else(|| take_oldest(&mut spots, of_server)));
        }
        if spots.len() >= MAX_PARKED {
            let own = take_oldest(&mut spots, is_own);
            given_up.extend(own.or_else(|| take_oldest(&mut spots, |_| true)));
        }
        spots.insert(handle.clone(), parked);
        drop(spots);
        drop(given_up);
        input_required(asked, &handle)
    }

    /// The request that a client comes back to. A handle is good once, and for the same request; that of
    /// somebody else is unknown.
    fn take(&self, state: &RawJson, digest: &[u8], request: &Request) -> Result<Parked, RpcError> {
        let unknown = || {
            let what = "the `requestState` is unknown, was used before, has expired, or is of another \
                        gateway: make the call again without it";
            RpcError::new(code::INVALID_PARAMS, what)
        };
        let handle: String = state.decode().map_err(|_no_text| unknown())?;
        let mut spots = self.lock();
        let principal = request.from.party().principal();
        let found = spots.get(&handle);
        let found = found.filter(|parked| parked.from.party().principal() == principal);
        let found = found.ok_or_else(unknown)?;
        if found.digest != digest {
            let what = "the `requestState` belongs to another request";
            return Err(RpcError::new(code::INVALID_PARAMS, what));
        }
        let parked = spots.remove(&handle).ok_or_else(unknown)?;
        drop(spots);
        if parked.until <= Instant::now() {
            return Err(unknown());
        }
        Ok(parked)
    }

    /// Whether a server has worked all the time on the request that a client comes back to with this
    /// one, and that counts.
    pub(crate) fn works_on(&self, server: &ServerName, request: &Request) -> bool {
        let state = request.said.request_state.as_ref();
        let Some(handle) = state.and_then(|state| state.decode::<String>().ok()) else {
            return false;
        };
        let digest = digest(server, request);
        let principal = request.from.party().principal();
        let spots = self.lock();
        let parked = spots.get(&handle).filter(|parked| parked.digest == digest);
        let parked = parked.filter(|parked| parked.from.party().principal() == principal);
        let waits = parked.map(|parked| &parked.waits);
        waits.is_some_and(|waits| matches!(waits, Waits::Work(_, witness) if witness.is_counted()))
    }

    /// Gives up those whose clients did not come back in time, or have left.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        let late: Vec<_> = {
            let mut spots = self.lock();
            let is_late = |parked: &Parked| parked.until <= now || parked.from.has_left();
            spots.extract_if(|_, parked| is_late(parked)).collect()
        };
        drop(late);
    }

    /// Gives up all, and waits until they are.
    pub(crate) async fn clear(&self) {
        let all = std::mem::take(&mut *self.lock());
        for parked in all.into_values() {
            if let Waits::Work(Work::Task(mut task), _) = parked.waits {
                task.shutdown().await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Parked>> {
        self.spots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Work {
    /// What the server answers. Cancel safe.
    async fn answer(&mut self) -> Result<Frame, RpcError> {
        let task = match self {
            Self::Here(work) => return work.await,
            Self::Task(task) => task,
        };
        match task.join_next().await {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => Err(RpcError::new(code::INTERNAL_ERROR, error.to_string())),
            None => Err(RpcError::new(code::INTERNAL_ERROR, "the request is gone")),
        }
    }

    /// Lets it go on while nobody looks.
    fn by_itself(self) -> Self {
        match self {
            Self::Here(work) => {
                let mut task = JoinSet::new();
                task.spawn(work);
                Self::Task(task)
            }
            Self::Task(task) => Self::Task(task),
        }
    }
}

/// Takes the oldest out that fits.
fn take_oldest(
    spots: &mut HashMap<String, Parked>,
    fits: impl Fn(&Parked) -> bool,
) -> Option<Parked> {
    let fitting = spots.iter().filter(|(_, parked)| fits(parked));
    let oldest = fitting.min_by_key(|(_, parked)| parked.until);
    let handle = oldest.map(|(handle, _)| handle.clone())?;
    spots.remove(&handle)
}

impl Default for Handles {
    fn default() -> Self {
        Self(SystemRandom::new())
    }
}

impl Handles {
    pub(crate) fn new_handle(&self) -> Result<String, RpcError> {
        let mut bytes = [0; HANDLE_BYTES];
        let none = |_| RpcError::new(code::INTERNAL_ERROR, "no random numbers");
        self.0.fill(&mut bytes).map_err(none)?;
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let digits = digits.filter_map(|digit| char::from_digit(u32::from(digit), 16));
        Ok(digits.collect())
    }
}

/// The result that asks a client for these (`inputRequests`, a JSON object), to come back with this
/// handle.
pub(crate) fn input_required(asked: &[u8], handle: &str) -> Reply {
    let mut text = br#"{"resultType":"input_required","inputRequests":"#.to_vec();
    text.extend_from_slice(asked);
    text.push(b',');
    push_member(&mut text, "requestState", &format!("\"{handle}\""));
    text.push(b'}');
    match RawJson::parse(text) {
        Ok(result) => Reply::Result(result),
        Err(error) => RpcError::new(code::INTERNAL_ERROR, error.to_string()).into(),
    }
}

/// What identifies a request: for whom it is, and everything but how it is made, and the answers it
/// brings.
pub(crate) fn digest(server: &ServerName, request: &Request) -> Vec<u8> {
    let mut context = Context::new(&SHA256);
    let mut part = |bytes: &[u8]| {
        context.update(&bytes.len().to_le_bytes());
        context.update(bytes);
    };
    let principal = request.from.party().principal();
    part(&[u8::from(principal.is_some())]);
    part(principal.unwrap_or_default().as_bytes());
    part(server.as_str().as_bytes());
    part(request.method.as_bytes());
    let params = request.params.as_ref();
    let members = params.and_then(|params| params.decode::<Members<'_>>().ok());
    for (key, value) in members.unwrap_or_default().0 {
        if !matches!(&*key, "_meta" | "inputResponses" | "requestState") {
            part(key.as_bytes());
            part(value.get().as_bytes());
        }
    }
    context.finish().as_ref().to_vec()
}

pub(crate) fn responses(given: Option<&RawJson>) -> Vec<(String, RawJson)> {
    let members = given.and_then(|given| given.decode::<Members<'_>>().ok());
    let members = members.unwrap_or_default().0.into_iter();
    let answers = members.filter_map(|(key, value)| Some((key.into_owned(), given?.share(value))));
    answers.collect()
}

/// A server of the older era would not know what to do with these.
pub(crate) fn without_answers(params: &RawJson) -> RawJson {
    let Ok(members) = params.decode::<Members<'_>>() else {
        return params.clone();
    };
    if members.get("requestState").is_none() && members.get("inputResponses").is_none() {
        return params.clone();
    }
    let mut text = b"{".to_vec();
    let kept = members.0.iter();
    let kept = kept.filter(|(key, _)| !matches!(&**key, "requestState" | "inputResponses"));
    for (index, (key, value)) in kept.enumerate() {
        if index > 0 {
            text.push(b',');
        }
        push_member(&mut text, key, value.get());
    }
    text.push(b'}');
    RawJson::parse(text).unwrap_or_else(|_| params.clone())
}

/// Says what a client would have to declare for its request.
pub(crate) fn missing_capability(message: &str, required: &serde_json::Value) -> RpcError {
    let data = serde_json::json!({ "requiredCapabilities": required });
    RpcError {
        code: code::MISSING_CLIENT_CAPABILITY,
        message: message.into(),
        data: RawJson::of(&data).ok(),
    }
}

pub(crate) fn is_accepted(answer: &RawJson) -> bool {
    let members = answer.decode::<Members<'_>>().unwrap_or_default();
    let action = members.get("action");
    action.is_some_and(|action| action.get() == "\"accept\"")
}

/// Addresses to be visited: the keys of their questions, and those as `inputRequests`.
fn as_questions(visits: &[RawJson]) -> (Vec<String>, Vec<u8>) {
    let mut keys = Vec::new();
    let mut text = b"{".to_vec();
    for (index, visit) in visits.iter().enumerate() {
        let key = format!("visit-{}", index + 1);
        if index > 0 {
            text.push(b',');
        }
        push_request(&mut text, &key, "elicitation/create", Some(visit));
        keys.push(key);
    }
    text.push(b'}');
    (keys, text)
}

impl std::fmt::Debug for Parking {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parked = self.lock().len();
        formatter
            .debug_struct("Parking")
            .field("parked", &parked)
            .finish_non_exhaustive()
    }
}
