//! Puts load on a client and says what came of it.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::Failure;
use crate::caller::{Caller, Echo};
use crate::usage;

/// What one round showed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// Half of the requests took no longer.
    pub(crate) median: Duration,
    pub(crate) per_second: f64,
    /// Processor time of this process for one request, in microseconds.
    pub(crate) processor: f64,
}

/// `n_calls` calls, one after the other.
pub(crate) async fn one_by_one<C: Caller>(
    caller: &mut C,
    echo: &Echo,
    n_calls: usize,
) -> Result<Round, Failure> {
    let mut watch = Stopwatch::start(n_calls);
    for _ in 0..n_calls {
        let received = watch.time(caller.echo(echo)).await?;
        echo.check(received)?;
    }
    Ok(watch.stop())
}

impl Round {
    /// The times of many users at once, since `meter` was started.
    pub(crate) fn of(mut times: Vec<Duration>, meter: Meter) -> Self {
        let median = median(&mut times);
        meter.stop(times.len(), median)
    }
}

/// At least `n_calls` calls, with `in_flight` of them under way at any time.
pub(crate) async fn at_once<C: Caller + Clone>(
    caller: &C,
    echo: &std::sync::Arc<Echo>,
    in_flight: usize,
    n_calls: usize,
) -> Result<Round, Failure> {
    let each = n_calls.div_ceil(in_flight);
    let meter = Meter::start();
    let mut users = JoinSet::new();
    for _ in 0..in_flight {
        let (mut caller, echo) = (caller.clone(), std::sync::Arc::clone(echo));
        users.spawn(async move {
            for _ in 0..each {
                echo.check(caller.echo(&echo).await?)?;
            }
            Ok::<(), Failure>(())
        });
    }
    while let Some(user) = users.join_next().await {
        user??;
    }
    Ok(meter.stop(each * in_flight, Duration::ZERO))
}

/// Does something so many times and gives the [`Round`]. A macro, because closures that return
/// futures cannot say that these may change threads.
macro_rules! repeat {
    ($n_times:expr, $action:expr) => {{
        let mut watch = $crate::load::Stopwatch::start($n_times);
        for _ in 0..$n_times {
            watch.time($action).await?;
        }
        watch.stop()
    }};
}
pub(crate) use repeat;

/// Times one thing after the other.
pub(crate) struct Stopwatch {
    times: Vec<Duration>,
    meter: Meter,
}

impl Stopwatch {
    /// With room for so many times, so that nothing is allocated between them.
    pub(crate) fn start(n_times: usize) -> Self {
        Self {
            times: Vec::with_capacity(n_times),
            meter: Meter::start(),
        }
    }

    pub(crate) async fn time<T>(
        &mut self,
        action: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let begun = Instant::now();
        let outcome = action.await?;
        self.times.push(begun.elapsed());
        Ok(outcome)
    }

    pub(crate) fn stop(mut self) -> Round {
        let median = median(&mut self.times);
        self.meter.stop(self.times.len(), median)
    }

    /// The times alone, of one user among many.
    pub(crate) fn times(self) -> Vec<Duration> {
        self.times
    }
}

/// Time and processor time, from a start on.
pub(crate) struct Meter {
    begun: Instant,
    processor: Duration,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Self {
            begun: Instant::now(),
            processor: usage::processor_time(),
        }
    }

    fn stop(self, n_calls: usize, median: Duration) -> Round {
        let elapsed = self.begun.elapsed().as_secs_f64();
        let processor = usage::processor_time().saturating_sub(self.processor);
        #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
        let n_calls = n_calls as f64;
        Round {
            median,
            per_second: n_calls / elapsed,
            processor: processor.as_secs_f64() * 1e6 / n_calls,
        }
    }
}

fn median(times: &mut [Duration]) -> Duration {
    let middle = times.len() / 2;
    if times.is_empty() {
        return Duration::ZERO;
    }
    *times.select_nth_unstable(middle).1
}
