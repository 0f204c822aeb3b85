//! A server that was given up: what brings it back.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::super::server::Order;
use super::super::state::ServerState;
use super::super::verdict;
use super::{Phase, Supervisor};

/// How long to wait before a sign-in is looked for, if it was seen so often and did not help: no
/// mistake of a connector may become a storm of attempts.
fn admission_pause(woken: u32) -> Duration {
    let seconds = 1_u64
        .checked_shl(woken.saturating_sub(1))
        .unwrap_or(u64::MAX);
    if woken == 0 {
        Duration::ZERO
    } else {
        Duration::from_secs(seconds.min(60))
    }
}

impl Supervisor {
    /// Waits until somebody needs the server, has signed in to it, or its rest is over.
    pub(super) async fn stay_down(&mut self, retry_at: Option<Instant>) -> Phase {
        let once_more = self.shared.options.health.reconnect.attempts;
        let spec = self.server.spec();
        let state = self.server.state();
        let trouble = state.trouble();
        let is_unadmitted = trouble.is_some_and(|trouble| verdict::is_unadmitted(&trouble.cause));
        let (connector, pause) = (&self.shared.options.connector, admission_pause(self.woken));
        let admitted = async {
            sleep(pause).await;
            connector.admitted(&spec).await;
        };
        tokio::select! {
            biased;
            order = self.orders.recv() => match order {
                // Once: the next failure is the last, and a success a new beginning.
                Some(Order::Demand) => {
                    self.attempts = once_more;
                    self.last_chance = true;
                }
                Some(Order::Restart(replacement, done)) => {
                    return self.begin_anew(replacement, done);
                }
                Some(Order::Stop(done)) => {
                    self.stand(ServerState::Stopped, None);
                    drop(done);
                    return Phase::Resting;
                }
                Some(Order::End) | None => return Phase::Ended,
            },
            () = admitted, if is_unadmitted => {
                self.woken += 1;
                self.attempts = once_more;
                self.last_chance = true;
            }
            () = sleep_until(retry_at.unwrap_or_else(Instant::now)), if retry_at.is_some() => {
                self.attempts = once_more;
            }
        }
        self.stand(ServerState::Starting { slow: false }, None);
        Phase::Connecting
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::admission_pause;

    #[test]
    fn a_sign_in_that_does_not_help_is_looked_for_less_and_less() {
        let pauses = [0, 1, 2, 3, 6, 7, 8, 64, 65, u32::MAX].map(admission_pause);
        let seconds = [0, 1, 2, 4, 32, 60, 60, 60, 60, 60].map(Duration::from_secs);
        assert_eq!(pauses, seconds);
    }
}
