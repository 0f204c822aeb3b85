//! Those who call: each has one call under way at any time, and checks that what comes back is the
//! answer to its own call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use cocode_client::{CallContext, CallError, Called, Content, Deadlines, Manager, RawJson};
use fastrand::Rng;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::bits::Bits;
use super::servers::Fleet;
use crate::Failure;

/// How long a call may take.
const DEADLINE: Duration = Duration::from_secs(20);
/// A call that has not ended so long after its deadline never ends.
const NEVER: Duration = Duration::from_secs(20);
/// Milliseconds that a caller waits after an error, as anybody would.
const PAUSE: std::ops::Range<u64> = 5..100;
/// Violations that are shown word for word.
const SHOWN: usize = 10;

/// What became of calls.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) begun: u64,
    pub(crate) answered: u64,
    /// Answers after more than one attempt.
    pub(crate) repeated: u64,
    /// By the code of the error.
    pub(crate) errors: BTreeMap<&'static str, u64>,
    pub(crate) most_at_once: usize,
    pub(crate) slowest: Duration,
    pub(crate) wrong: Vec<String>,
    pub(crate) n_wrong: u64,
    /// The numbers of calls that were answered.
    ids: Vec<u64>,
}

/// What all callers share.
struct Common {
    manager: Manager,
    fleet: Arc<Fleet>,
    stop: AtomicBool,
    next: AtomicU64,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

pub(crate) struct Callers {
    common: Arc<Common>,
    tasks: JoinSet<Tally>,
}

impl Callers {
    pub(crate) fn start(
        n_calls: usize,
        manager: &Manager,
        fleet: &Arc<Fleet>,
        rng: &mut Rng,
    ) -> Self {
        let common = Arc::new(Common {
            manager: manager.clone(),
            fleet: Arc::clone(fleet),
            stop: AtomicBool::new(false),
            next: AtomicU64::new(1),
            at_once: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
        });
        let mut tasks = JoinSet::new();
        for number in 0..n_calls {
            tasks.spawn(call_on(Arc::clone(&common), number, rng.fork()));
        }
        Self { common, tasks }
    }

    /// Lets every caller end its call, and adds up what they saw.
    pub(crate) async fn stop(mut self, within: Duration) -> Result<Tally, Failure> {
        self.common.stop.store(true, Ordering::Relaxed);
        let until = Instant::now() + DEADLINE + NEVER + within;
        let mut all = Tally::default();
        let mut ids = Bits::default();
        while !self.tasks.is_empty() {
            let joined = tokio::time::timeout_at(until, self.tasks.join_next()).await;
            let Ok(Some(tally)) = joined else {
                let left = self.tasks.len();
                return Err(format!("{left} callers never ended").into());
            };
            all.add(tally?, &mut ids);
        }
        all.most_at_once = self.common.most_at_once.load(Ordering::Relaxed);
        Ok(all)
    }
}

impl Tally {
    /// Adds what another caller saw. No two of them may have the same call.
    fn add(&mut self, other: Self, ids: &mut Bits) {
        self.begun += other.begun;
        self.answered += other.answered;
        self.repeated += other.repeated;
        self.n_wrong += other.n_wrong;
        self.slowest = self.slowest.max(other.slowest);
        for (code, count) in other.errors {
            *self.errors.entry(code).or_default() += count;
        }
        let room = SHOWN.saturating_sub(self.wrong.len());
        self.wrong.extend(other.wrong.into_iter().take(room));
        for id in other.ids {
            if !ids.insert(id) {
                self.complain(format!("call {id} was answered twice"));
            }
        }
    }

    fn complain(&mut self, what: String) {
        self.n_wrong += 1;
        if self.wrong.len() < SHOWN {
            self.wrong.push(what);
        }
    }

    /// Every call ended once: with an answer, with an error, or against the rules.
    pub(crate) fn ended(&self) -> u64 {
        self.answered + self.errors.values().sum::<u64>()
    }
}

async fn call_on(common: Arc<Common>, number: usize, mut rng: Rng) -> Tally {
    let mut tally = Tally::default();
    let members = common.fleet.members();
    let Some(member) = members.get(number % members.len()) else {
        return tally;
    };
    while !common.stop.load(Ordering::Relaxed) {
        let token = common.next.fetch_add(1, Ordering::Relaxed);
        let now = common.at_once.fetch_add(1, Ordering::Relaxed) + 1;
        common.most_at_once.fetch_max(now, Ordering::Relaxed);
        tally.begun += 1;
        let begun = Instant::now();
        let call = call(&common.manager, &member.tool, token);
        let outcome = timeout(DEADLINE + NEVER, call).await;
        common.at_once.fetch_sub(1, Ordering::Relaxed);
        tally.slowest = tally.slowest.max(begun.elapsed());
        match outcome {
            Ok(Ok(Reply { called, is_own })) => {
                tally.answered += 1;
                tally.repeated += u64::from(called.attempts > 1);
                tally.ids.push(called.call.0);
                if !is_own {
                    let text = called.result.raw;
                    tally.complain(format!("call {token} of {} got {text}", member.tool));
                }
            }
            Ok(Err(error)) => {
                *tally.errors.entry(error.code()).or_default() += 1;
                sleep(Duration::from_millis(rng.u64(PAUSE))).await;
            }
            Err(_elapsed) => tally.complain(format!("call {token} of {} never ended", member.tool)),
        }
    }
    tally
}

/// A result, and whether it is the answer to its call.
struct Reply {
    called: Called,
    is_own: bool,
}

async fn call(manager: &Manager, tool: &str, token: u64) -> Result<Reply, CallError> {
    let text = format!(r#"{{"token":"{tool}-{token}"}}"#);
    let arguments = RawJson::parse(text.clone()).ok();
    let context = CallContext {
        deadlines: Some(Deadlines::fixed(DEADLINE)),
        ..CallContext::default()
    };
    let called = manager.call(tool, arguments.as_ref(), context).await?;
    let content = called.result.content();
    let is_own = matches!(content.as_slice(), [Content::Text(echo)] if *echo == text);
    Ok(Reply { called, is_own })
}

/// Calls every server until it answers. Gives those that did not in time, and how they are.
pub(crate) async fn all_answer(manager: &Manager, fleet: &Fleet, within: Duration) -> Vec<String> {
    let until = Instant::now() + within;
    let each = fleet.members().iter().map(|member| async {
        loop {
            let error = match call(manager, &member.tool, 0).await {
                Ok(reply) if reply.is_own => return None,
                Ok(reply) => reply.called.result.raw.to_string(),
                Err(error) => error.for_model(),
            };
            if Instant::now() >= until {
                return Some(format!("{} did not come back: {error}", member.name()));
            }
            sleep(Duration::from_millis(PAUSE.end)).await;
        }
    });
    let lost = futures_util::future::join_all(each).await;
    lost.into_iter().flatten().collect()
}
