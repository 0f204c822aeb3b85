//! Goes on with a session that another server has opened: finds it in the store, makes a conversation
//! for it, and tells that what the client has set.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::HeaderMap;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::handler::Shared;
use super::keeper::{Away, Keeper};
use super::kept::Kept;
use super::reply::{self, Reply};
use super::session::{Ground, Session};
use super::sessions::is_id;
use super::streams::{Outlet, STANDALONE};
use super::told::{Setting, Told, promised};
use super::unknown::{Unknown, Wanted};
use crate::encode;
use crate::frame::Frame;
use crate::serve::service::{Answer, Asked, Endpoint};
use crate::serve::session_store::{SessionKey, StoredSession};

/// Sessions that are looked for at a time.
const LOOKS_AT_A_TIME: usize = 32;

/// How long a look may wait for its turn.
const TURN_WITHIN: Duration = Duration::from_secs(15);

/// How long it may take to tell a conversation what the client has set. It may have to start servers.
const TELL_WITHIN: Duration = Duration::from_secs(30);

/// Things that a conversation is told at a time.
const TOLD_AT_A_TIME: usize = 16;

/// The ids of what a conversation is told begin here, where those of clients do not come.
const FIRST_ID: u64 = 1 << 62;

/// Requests that may wait for sessions to be brought over.
const MAX_WAITING: usize = 4096;

/// The sessions that are being brought over.
#[derive(Debug)]
pub(super) struct Revivals {
    under_way: Mutex<BTreeMap<Wanted, Arc<UnderWay>>>,
    unknown: Unknown,
    looks: Semaphore,
    waiting: Semaphore,
    /// `None` once the server has ended.
    tasks: Mutex<Option<JoinSet<()>>>,
}

#[derive(Debug)]
struct UnderWay {
    outcome: watch::Sender<Option<Outcome>>,
    /// It has ended elsewhere meanwhile.
    is_over: AtomicBool,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Here,
    NotFound,
    /// Nobody can tell now.
    Away,
    NoRoom,
}

/// A request for a session that is not here.
pub(super) struct Arrival {
    pub(super) id: String,
    pub(super) ground: Ground,
    pub(super) endpoint: Arc<dyn Endpoint>,
    pub(super) headers: HeaderMap,
}

impl Default for Revivals {
    fn default() -> Self {
        Self {
            under_way: Mutex::default(),
            unknown: Unknown::default(),
            looks: Semaphore::new(LOOKS_AT_A_TIME),
            waiting: Semaphore::new(MAX_WAITING),
            tasks: Mutex::new(Some(JoinSet::new())),
        }
    }
}

/// The session that somebody asks for, which may have been opened elsewhere. Whoever asks for the same
/// at the same time waits for the same.
pub(super) async fn revive(
    shared: &Arc<Shared>,
    keeper: &Arc<Keeper>,
    arrival: Arrival,
) -> Result<Arc<Session>, Box<Reply>> {
    let not_found = || Err(Box::new(reply::session_not_found()));
    let Some(wanted) = keeper.revivals.worth_a_look(&arrival.id, &arrival.ground) else {
        return not_found();
    };
    let Ok(_waiting) = keeper.revivals.waiting.try_acquire() else {
        return Err(Box::new(reply::unavailable("Too many sessions move")));
    };
    let (id, ground) = (arrival.id.clone(), arrival.ground.clone());
    let under_way = keeper.revivals.join(shared, keeper, wanted, arrival);
    let mut outcome = under_way.outcome.subscribe();
    let outcome = match outcome.wait_for(Option::is_some).await {
        Ok(outcome) => *outcome,
        // Nobody tells any more.
        Err(_gone) => None,
    };
    match outcome {
        Some(Outcome::NoRoom) => Err(Box::new(reply::unavailable("There are too many sessions"))),
        // Who is told that there is no such session begins anew, and loses what it had.
        Some(Outcome::Away) => Err(Box::new(reply::unavailable(
            "It cannot be told now whether there is such a session",
        ))),
        _ => shared
            .sessions
            .find(&id, &ground)
            .map_or_else(not_found, Ok),
    }
}

/// Ends a session that is not here. Gives whether it was anywhere.
pub(super) async fn end(keeper: &Keeper, id: &str, ground: &Ground) -> bool {
    let Some(wanted) = keeper.revivals.worth_a_look(id, ground) else {
        return false;
    };
    let is_there = matches!(look(keeper, &wanted).await, Ok(Some(_)));
    if is_there {
        keeper.end(wanted.key).await;
    }
    is_there
}

/// Tells the copy of a session that is here what its client has set elsewhere.
pub(super) fn catch_up(session: &Arc<Session>, stored: &StoredSession) {
    let news = session.catch_up(stored);
    if news.is_empty() {
        return;
    }
    let told = Arc::clone(session);
    session.go_on(async move {
        if timeout(TELL_WITHIN, tell(&told, news, &HeaderMap::new()))
            .await
            .is_err()
        {
            tracing::warn!("what a client has set at another gateway is not known to all servers");
        }
    });
}

impl Revivals {
    /// Sessions have ended elsewhere; they are not brought over any more.
    pub(super) fn give_up(&self, keys: &HashSet<SessionKey>) {
        for (wanted, under_way) in &*self.under_way() {
            if keys.contains(&wanted.key) {
                under_way.is_over.store(true, Ordering::Release);
            }
        }
    }

    /// Which of those are being brought over.
    pub(super) fn of_keys(&self, keys: &HashSet<SessionKey>) -> HashSet<SessionKey> {
        let under_way = self.under_way();
        let coming = under_way.keys().map(|wanted| wanted.key);
        coming.filter(|key| keys.contains(key)).collect()
    }

    /// Whether none is being brought over.
    pub(super) fn is_resting(&self) -> bool {
        self.under_way().is_empty()
    }

    /// The server ends.
    pub(super) fn stop(&self) {
        let tasks = self.tasks().take();
        drop(tasks);
    }

    /// What is wanted, unless it is clear that it is nowhere.
    fn worth_a_look(&self, id: &str, ground: &Ground) -> Option<Wanted> {
        if !is_id(id) {
            return None;
        }
        let wanted = Wanted::new(SessionKey::of(id), ground);
        (!self.unknown.is_hopeless(&wanted)).then_some(wanted)
    }

    /// Takes part in bringing a session over, which begins now if it has not.
    fn join(
        &self,
        shared: &Arc<Shared>,
        keeper: &Arc<Keeper>,
        wanted: Wanted,
        arrival: Arrival,
    ) -> Arc<UnderWay> {
        let mut all = self.under_way();
        if let Some(under_way) = all.get(&wanted) {
            return Arc::clone(under_way);
        }
        let under_way = Arc::new(UnderWay {
            outcome: watch::Sender::new(None),
            is_over: AtomicBool::new(false),
        });
        all.insert(wanted.clone(), Arc::clone(&under_way));
        drop(all);
        let (shared, keeper) = (Arc::clone(shared), Arc::clone(keeper));
        let guard = Guard {
            keeper: Arc::clone(&keeper),
            under_way: Arc::clone(&under_way),
            wanted,
            outcome: Outcome::NotFound,
        };
        let work = async move {
            let (wanted, is_over) = (&guard.wanted, &guard.under_way.is_over);
            let outcome = bring_over(&shared, &keeper, wanted, arrival, is_over).await;
            guard.end(outcome);
        };
        match &mut *self.tasks() {
            Some(tasks) => {
                while tasks.try_join_next().is_some() {}
                tasks.spawn(work);
            }
            None => drop(work),
        }
        under_way
    }

    fn under_way(&self) -> MutexGuard<'_, BTreeMap<Wanted, Arc<UnderWay>>> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, Option<JoinSet<()>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says how it went, however it ended.
struct Guard {
    keeper: Arc<Keeper>,
    under_way: Arc<UnderWay>,
    wanted: Wanted,
    outcome: Outcome,
}

impl Guard {
    fn end(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Not before it is over: what ends elsewhere finds the session here or among all others.
        self.keeper.revivals.under_way().remove(&self.wanted);
        self.under_way.outcome.send_replace(Some(self.outcome));
    }
}

/// Looks for a session in the store. One of somebody else is not there.
async fn look(keeper: &Keeper, wanted: &Wanted) -> Result<Option<StoredSession>, Away> {
    let turn = timeout(TURN_WITHIN, keeper.revivals.looks.acquire()).await;
    let Ok(Ok(_turn)) = turn else {
        return Err(Away);
    };
    // Nothing is learned from a store that is away.
    let found = keeper.find(&wanted.key).await?;
    let found =
        found.filter(|session| wanted.is_of(session.guest.as_deref(), session.endpoint.as_deref()));
    if found.is_none() {
        keeper.revivals.unknown.remember(wanted.clone());
    }
    Ok(found)
}

async fn bring_over(
    shared: &Arc<Shared>,
    keeper: &Keeper,
    wanted: &Wanted,
    arrival: Arrival,
    is_over: &AtomicBool,
) -> Outcome {
    let stored = match look(keeper, wanted).await {
        Ok(Some(stored)) => stored,
        Ok(None) => return Outcome::NotFound,
        Err(Away) => return Outcome::Away,
    };
    let Some(told) = Told::read(&stored.told) else {
        tracing::warn!("what is kept of a session is damaged, so it ends");
        return Outcome::NotFound;
    };
    let Arrival {
        id,
        mut ground,
        endpoint,
        headers,
    } = arrival;
    ground.visitor = match shared.seat(ground.visitor) {
        Ok(visitor) => visitor,
        Err(_full) => return Outcome::NoRoom,
    };
    ground.visitor = ground.visitor.begun_with(stored.credential);
    let kept = Kept::new(&id, told.clone(), stored.version);
    let opened = shared.sessions.reopen(id, &*endpoint, ground, kept);
    let Some(session) = opened else {
        return Outcome::NoRoom;
    };
    let replay = replay(&session, &told, &stored.revision, &headers);
    match timeout(TELL_WITHIN, replay).await {
        Ok(true) => {}
        Ok(false) => return Outcome::NotFound,
        Err(_elapsed) => {
            tracing::warn!("a session could not be brought over in time");
            return Outcome::Away;
        }
    }
    session.set_stored();
    if !shared.sessions.admit(&session, &shared.guests) {
        return Outcome::NotFound;
    }
    if is_over.load(Ordering::Acquire) {
        shared.sessions.end(&session);
        return Outcome::NotFound;
    }
    tracing::debug!("a session of another gateway goes on here");
    Outcome::Here
}

/// Makes a conversation what it was elsewhere. `false` if it is not the same here.
async fn replay(session: &Arc<Session>, told: &Told, revision: &str, headers: &HeaderMap) -> bool {
    let hello = told.messages().into_iter().next().unwrap_or_default();
    let Some(answer) = ask(session, hello, headers).await else {
        return false;
    };
    if answer.error.is_some() {
        tracing::warn!(
            "a session of another gateway cannot go on here: its introduction is refused"
        );
        return false;
    }
    session.learn_revision(&answer);
    if session.revision() != Some(revision) {
        tracing::warn!(
            agreed = revision,
            "a session of another gateway cannot go on here in the same revision"
        );
        return false;
    }
    let initialized = encode::notification("notifications/initialized", None);
    if let Ok(frame) = Frame::parse(initialized.into()) {
        session.conversation.notification(frame);
    }
    tell(session, told.settings().collect(), headers).await;
    // They may be others here, and the client has those of the other gateway.
    for method in promised(&answer) {
        let message = encode::notification(method, None);
        session.streams.send(STANDALONE, &message);
    }
    true
}

async fn tell(session: &Arc<Session>, settings: Vec<Setting>, headers: &HeaderMap) {
    let asked = (FIRST_ID..)
        .zip(settings)
        .map(|(number, setting)| async move {
            let answer = ask(session, setting.message(number), headers).await;
            if answer.is_none_or(|answer| answer.error.is_some()) {
                let method = setting.method;
                tracing::warn!(
                    method,
                    "something that a client had set at another gateway is not so here"
                );
            }
        });
    let all = futures_util::stream::iter(asked).buffer_unordered(TOLD_AT_A_TIME);
    all.for_each(|()| std::future::ready(())).await;
}

/// Asks on behalf of the client, who has had the answer before.
async fn ask(session: &Arc<Session>, message: Bytes, headers: &HeaderMap) -> Option<Answer> {
    let frame = Frame::parse(message).ok()?;
    session.client.learn(&frame);
    let conversation = Arc::clone(&session.conversation);
    let serving = conversation.request(Asked {
        frame,
        headers: headers.clone(),
        stream: Arc::new(Outlet(Arc::clone(&session.streams))),
    });
    Some(serving.await)
}
