//! Attempts against a provider that fails by a list.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cocode_core::Dialect;
use tokio::time::Instant;

use super::{MAX_ATTEMPTS, MAX_NAMED_WAIT, Retrying};
use crate::content::Block;
use crate::model::{Model, Usage};
use crate::provider::{Delta, ModelRequest, Provider, ProviderError, Reply, Stop, Work};

/// Fails with each of these, and then replies.
struct Failing(Mutex<VecDeque<ProviderError>>);

impl Provider for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn dialect(&self) -> Dialect {
        Dialect::Plain
    }

    fn reply<'a>(
        &'a self,
        _request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Work<'a, Result<Reply, ProviderError>> {
        let next = {
            let mut errors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            errors.pop_front()
        };
        Box::pin(async move {
            on_delta(Delta::Text("begun".into()));
            match next {
                Some(error) => Err(error),
                None => Ok(Reply {
                    content: Vec::new(),
                    stop: Stop::Done,
                    usage: Usage::default(),
                    model: None,
                }),
            }
        })
    }
}

/// What becomes of a request that fails so, the waits in between, and the time that it took.
async fn attempt(
    errors: impl IntoIterator<Item = ProviderError>,
) -> (Result<Reply, ProviderError>, Vec<Duration>, Duration) {
    let provider = Retrying::new(Failing(Mutex::new(errors.into_iter().collect())));
    let model = Model {
        name: "m".into(),
        context_window: 1000,
        max_output_tokens: None,
        vision: false,
        tools: true,
        price: None,
    };
    let request = ModelRequest {
        model: &model,
        system: "",
        messages: &[],
        tools: &[],
        max_output_tokens: None,
        conversation: "",
    };
    let mut waits = Vec::new();
    let mut on_delta = |delta| {
        if let Delta::Restart { after, .. } = delta {
            waits.push(after);
        }
    };
    let begun = Instant::now();
    let outcome = provider.reply(request, &mut on_delta).await;
    (outcome, waits, begun.elapsed())
}

fn failing(retry_after: Option<Duration>) -> ProviderError {
    ProviderError::Failing {
        provider: "failing".into(),
        status: 529,
        message: "Overloaded".into(),
        retry_after,
    }
}

fn broke_off(said: Vec<Block>) -> ProviderError {
    ProviderError::BrokeOff {
        provider: "failing".into(),
        why: "end".into(),
        said,
    }
}

#[tokio::test(start_paused = true)]
async fn waits_are_those_that_the_provider_names() {
    let seconds = Duration::from_secs(7);
    let limited = ProviderError::RateLimited {
        provider: "failing".into(),
        message: "slow".into(),
        retry_after: Some(seconds),
    };
    let (outcome, waits, time) = attempt([limited, failing(Some(Duration::ZERO))]).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(waits, [seconds, Duration::ZERO]);
    assert!(
        time >= seconds && time < seconds + Duration::from_secs(1),
        "{time:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn waits_of_our_own_double_and_attempts_end() {
    let (outcome, waits, _) = attempt((0..20).map(|_| failing(None))).await;
    assert!(
        matches!(outcome, Err(ProviderError::Failing { .. })),
        "{outcome:?}"
    );
    assert_eq!(waits.len() + 1, MAX_ATTEMPTS as usize);
    for (wait, seconds) in waits.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0]) {
        let share = wait.as_secs_f64() / seconds;
        assert!(
            (1.0..=1.25).contains(&share),
            "{wait:?} is not about {seconds} s"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_wants_to_be_left_alone_for_long_is() {
    let (outcome, waits, _) = attempt([failing(Some(MAX_NAMED_WAIT * 2))]).await;
    assert!(
        matches!(outcome, Err(ProviderError::Failing { .. })),
        "{outcome:?}"
    );
    assert!(waits.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_whole_has_an_end_in_time() {
    let (outcome, waits, time) = attempt((0..20).map(|_| failing(Some(MAX_NAMED_WAIT)))).await;
    assert!(outcome.is_err());
    assert_eq!(waits.len(), 5);
    assert!(time <= super::MAX_TIME, "{time:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_broke_off_is_asked_for_again_only_if_nothing_was_said() {
    let unreachable = ProviderError::Unreachable {
        provider: "failing".into(),
        why: "refused".into(),
    };
    let (outcome, waits, _) = attempt([broke_off(Vec::new()), unreachable]).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(waits.len(), 2);
    let (outcome, waits, _) = attempt([broke_off(vec![Block::text("half")])]).await;
    assert!(
        matches!(outcome, Err(ProviderError::BrokeOff { .. })),
        "{outcome:?}"
    );
    assert!(waits.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_will_not_change_is_not_asked_again() {
    let provider = || "failing".to_owned();
    let message = || "no".to_owned();
    for error in [
        ProviderError::TooLong { message: message() },
        ProviderError::Unauthorized {
            provider: provider(),
            status: 401,
            message: message(),
        },
        ProviderError::UnknownModel {
            provider: provider(),
            model: message(),
            message: message(),
        },
        ProviderError::Rejected {
            provider: provider(),
            status: 400,
            message: message(),
        },
        ProviderError::NotUnderstood {
            provider: provider(),
            why: message(),
        },
    ] {
        let shown = error.to_string();
        let (outcome, waits, _) = attempt([error]).await;
        assert_eq!(outcome.unwrap_err().to_string(), shown);
        assert!(waits.is_empty(), "{shown}");
    }
}
