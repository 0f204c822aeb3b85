//! All clients of the gateway: so many calls are under way at any time, each made by one of the
//! clients that a caller has.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use fastrand::Rng;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::client::{Call, Client, Kind, Outcome, Patience};
use super::plan::Plan;
use crate::Failure;
use crate::soak::bits::Bits;

/// A call that has not ended after this time never ends.
const NEVER: Duration = Duration::from_mins(1);
/// Milliseconds that a caller waits after an error, as anybody would.
const PAUSE: std::ops::Range<u64> = 5..100;
/// Milliseconds after which a client loses its patience, if it does.
const PATIENCE: std::ops::Range<u64> = 0..60;
/// Of a hundred calls, so many are cancelled, and after so many the client leaves.
const CANCELLED: u8 = 3;
const LEFT: u8 = 3;
/// Of a hundred times, a client ends its session and opens another before it calls.
const OPENED_ANEW: u8 = 2;
/// One client in so many sees all servers as one.
const SEES_ALL: usize = 3;
/// Violations that are shown word for word.
const SHOWN: usize = 10;

/// What became of calls.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) begun: u64,
    pub(crate) answered: u64,
    pub(crate) cancelled: u64,
    pub(crate) left: u64,
    /// By what the error says.
    pub(crate) refused: BTreeMap<String, u64>,
    pub(crate) sessions: u64,
    /// Sessions that were refused because a server was not there.
    pub(crate) not_opened: u64,
    pub(crate) most_at_once: usize,
    pub(crate) slowest: Duration,
    pub(crate) n_wrong: u64,
    pub(crate) wrong: Vec<String>,
    /// The numbers of calls that were answered.
    pub(crate) numbers: Bits,
    answered_now: Vec<u64>,
}

/// What all callers share.
struct Common {
    servers: Vec<String>,
    stop: AtomicBool,
    next: AtomicU64,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

pub(crate) struct Crowd {
    common: Arc<Common>,
    callers: JoinSet<Tally>,
}

impl Crowd {
    pub(crate) fn start(
        plan: &Plan,
        address: SocketAddr,
        servers: &[String],
        rng: &mut Rng,
    ) -> Self {
        let common = Arc::new(Common {
            servers: servers.to_vec(),
            stop: AtomicBool::new(false),
            next: AtomicU64::new(1),
            at_once: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
        });
        let clients = (0..plan.sessions).map(|number| {
            let kind = Kind::ALL[number % Kind::ALL.len()];
            let turn = number / Kind::ALL.len();
            let sees_all = turn.is_multiple_of(SEES_ALL);
            let place = (!sees_all).then(|| servers[turn % servers.len()].clone());
            Client::new(kind, number, address, place)
        });
        let mut each: Vec<Vec<Client>> = (0..plan.in_flight).map(|_| Vec::new()).collect();
        for (number, client) in clients.enumerate() {
            each[number % plan.in_flight].push(client);
        }
        let mut callers = JoinSet::new();
        for clients in each {
            let (common, rng) = (Arc::clone(&common), rng.fork());
            callers.spawn(Box::pin(call_on(common, clients, rng)));
        }
        Self { common, callers }
    }

    /// Lets every caller end its call and its sessions, and adds up what they saw.
    pub(crate) async fn stop(mut self, within: Duration) -> Result<Tally, Failure> {
        self.common.stop.store(true, Ordering::Relaxed);
        let until = Instant::now() + NEVER + within;
        let mut all = Tally::default();
        while !self.callers.is_empty() {
            let joined = tokio::time::timeout_at(until, self.callers.join_next()).await;
            let Ok(Some(tally)) = joined else {
                let left = self.callers.len();
                return Err(format!("{left} callers never ended").into());
            };
            all.add(tally?);
        }
        all.most_at_once = self.common.most_at_once.load(Ordering::Relaxed);
        Ok(all)
    }
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.begun += other.begun;
        self.answered += other.answered;
        self.cancelled += other.cancelled;
        self.left += other.left;
        self.sessions += other.sessions;
        self.not_opened += other.not_opened;
        self.n_wrong += other.n_wrong;
        self.slowest = self.slowest.max(other.slowest);
        for (kind, count) in other.refused {
            *self.refused.entry(kind).or_default() += count;
        }
        for number in other.answered_now {
            if !self.numbers.insert(number) {
                self.complain(format!("call {number} was answered twice"));
            }
        }
        let room = SHOWN.saturating_sub(self.wrong.len());
        self.wrong.extend(other.wrong.into_iter().take(room));
    }

    fn complain(&mut self, what: String) {
        self.n_wrong += 1;
        if self.wrong.len() < SHOWN {
            self.wrong.push(what);
        }
    }

    /// Every call ended once, in one of these ways or against the rules.
    pub(crate) fn ended(&self) -> u64 {
        self.answered + self.cancelled + self.left + self.refused.values().sum::<u64>()
    }
}

async fn call_on(common: Arc<Common>, mut clients: Vec<Client>, mut rng: Rng) -> Tally {
    let mut tally = Tally::default();
    for client in &mut clients {
        open(client, &mut tally, &mut rng).await;
    }
    while !common.stop.load(Ordering::Relaxed) {
        let chosen = rng.usize(..clients.len());
        let Some(client) = clients.get_mut(chosen) else {
            break;
        };
        if rng.u8(..100) < OPENED_ANEW {
            close(client, &mut tally).await;
        }
        if !client.is_open() && !open(client, &mut tally, &mut rng).await {
            continue;
        }
        step(&common, client, &mut tally, &mut rng).await;
    }
    for client in &mut clients {
        close(client, &mut tally).await;
    }
    tally
}

/// One call.
async fn step(common: &Common, client: &mut Client, tally: &mut Tally, rng: &mut Rng) {
    let server = match client.place() {
        Some(server) => server.to_owned(),
        None => rng.choice(&common.servers).cloned().unwrap_or_default(),
    };
    let number = common.next.fetch_add(1, Ordering::Relaxed);
    let call = Call { server, number };
    let soon = Duration::from_millis(rng.u64(PATIENCE));
    let patience = match rng.u8(..100) {
        percent if percent < CANCELLED => Patience::CancelsAfter(soon),
        percent if percent < CANCELLED + LEFT => Patience::LeavesAfter(soon),
        _ => Patience::Waits,
    };
    let now = common.at_once.fetch_add(1, Ordering::Relaxed) + 1;
    common.most_at_once.fetch_max(now, Ordering::Relaxed);
    tally.begun += 1;
    let begun = Instant::now();
    let outcome = timeout(NEVER, client.call(&call, patience)).await;
    common.at_once.fetch_sub(1, Ordering::Relaxed);
    tally.slowest = tally.slowest.max(begun.elapsed());
    match outcome {
        Ok(Ok(Outcome::Answered)) => {
            tally.answered += 1;
            tally.answered_now.push(number);
        }
        Ok(Ok(Outcome::Cancelled)) => tally.cancelled += 1,
        Ok(Ok(Outcome::Left)) => tally.left += 1,
        Ok(Ok(Outcome::Refused(kind))) => {
            *tally.refused.entry(kind).or_default() += 1;
            sleep(Duration::from_millis(rng.u64(PAUSE))).await;
        }
        Ok(Err(wrong)) => tally.complain(format!("call {number} of {}: {wrong}", call.server)),
        Err(_elapsed) => tally.complain(format!("call {number} of {} never ended", call.server)),
    }
}

async fn open(client: &mut Client, tally: &mut Tally, rng: &mut Rng) -> bool {
    match timeout(NEVER, client.open()).await {
        Ok(Ok(Outcome::Answered)) => {
            tally.sessions += 1;
            return true;
        }
        Ok(Ok(Outcome::Refused(_))) => tally.not_opened += 1,
        Ok(Ok(other)) => tally.complain(format!("a session was opened with {other:?}")),
        Ok(Err(wrong)) => tally.complain(format!("a session was not opened: {wrong}")),
        Err(_elapsed) => tally.complain("the opening of a session never ended".into()),
    }
    sleep(Duration::from_millis(rng.u64(PAUSE))).await;
    false
}

async fn close(client: &mut Client, tally: &mut Tally) {
    match timeout(NEVER, client.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(wrong)) => tally.complain(format!("a session was not closed: {wrong}")),
        Err(_elapsed) => tally.complain("the end of a session never came".into()),
    }
}

/// Calls every server by itself and among all until it answers. Gives those that did not in time.
pub(crate) async fn all_answer(
    address: SocketAddr,
    servers: &[String],
    within: Duration,
) -> Vec<String> {
    let until = Instant::now() + within;
    let places = servers.iter().flat_map(|server| {
        let alone = (server, Some(server.clone()));
        [alone, (server, None)]
    });
    let each = places
        .enumerate()
        .map(|(number, (server, place))| async move {
            let call = Call {
                server: server.clone(),
                number: 0,
            };
            loop {
                let mut client = Client::new(Kind::Session, number, address, place.clone());
                let attempt = async {
                    let opened = client.open().await?;
                    let outcome = match opened {
                        Outcome::Answered => client.call(&call, Patience::Waits).await?,
                        other => other,
                    };
                    client.close().await?;
                    Ok::<_, Failure>(outcome)
                };
                let why = match timeout(within, Box::pin(attempt)).await {
                    Ok(Ok(Outcome::Answered)) => return None,
                    Ok(other) => format!("{other:?}"),
                    Err(_elapsed) => "never".into(),
                };
                if Instant::now() >= until {
                    return Some(format!("{server} did not answer: {why}"));
                }
                sleep(Duration::from_millis(PAUSE.end)).await;
            }
        });
    let lost = futures_util::future::join_all(each).await;
    lost.into_iter().flatten().collect()
}
