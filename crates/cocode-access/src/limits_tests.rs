//! Limits: what may begin, what is told to come again and when, and that nothing is counted for ever.

use std::num::NonZeroU32;
use std::time::Duration;

use cocode_core::ServerName;
use proptest::prelude::*;
use tokio::time::{Instant, advance};

use super::{
    BUSY_RETRY, CallGuard, Limit, LimitPlan, LimitReached, Limits, MAX_COUNTED, ServerLimit, Whose,
};
use crate::policy::{Policies, PrincipalPolicy};
use crate::principal::PrincipalId;

fn name(text: &str) -> PrincipalId {
    text.parse().unwrap()
}

fn server(text: &str) -> ServerName {
    text.parse().unwrap()
}

fn policy(calls_per_minute: u32, max_concurrent: u32) -> PrincipalPolicy {
    PrincipalPolicy {
        calls_per_minute: NonZeroU32::new(calls_per_minute),
        max_concurrent: NonZeroU32::new(max_concurrent),
        ..PrincipalPolicy::default()
    }
}

/// Everybody may do the same; 0 means that there is no such limit.
fn plan(calls_per_minute: u32, max_concurrent: u32) -> LimitPlan {
    LimitPlan {
        principals: Policies {
            default: policy(calls_per_minute, max_concurrent),
            ..Policies::default()
        },
        ..LimitPlan::default()
    }
}

fn begin(limits: &Limits, principal: &str, on: &str) -> Result<CallGuard, LimitReached> {
    limits.begin(&name(principal), Some(&server(on)))
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_minute_may_come_at_once_and_then_one_by_one() {
    let limits = Limits::new(plan(6, 0));
    for _ in 0..6 {
        drop(begin(&limits, "alice", "files").unwrap());
    }
    let reached = begin(&limits, "alice", "files").unwrap_err();
    assert_eq!(
        reached,
        LimitReached {
            whose: Whose::Principal(name("alice")),
            what: Limit::CallsPerMinute(6),
            retry_after: Duration::from_secs(10),
        }
    );
    assert_eq!(
        reached.to_string(),
        "`alice` may make 6 calls per minute: try again in 10 s"
    );
    assert!(
        begin(&limits, "bob", "files").is_ok(),
        "others have their own"
    );
    advance(Duration::from_millis(9_500)).await;
    let reached = begin(&limits, "alice", "files").unwrap_err();
    assert_eq!(reached.retry_after, Duration::from_secs(1));
    advance(Duration::from_millis(500)).await;
    assert!(begin(&limits, "alice", "files").is_ok());
    assert!(begin(&limits, "alice", "files").is_err());
    advance(Duration::from_mins(5)).await;
    for _ in 0..6 {
        assert!(begin(&limits, "alice", "files").is_ok());
    }
    assert!(
        begin(&limits, "alice", "files").is_err(),
        "calls are not saved up"
    );
}

#[tokio::test(start_paused = true)]
async fn calls_at_once_are_those_that_are_going_on() {
    let limits = Limits::new(plan(0, 2));
    let first = begin(&limits, "alice", "files").unwrap();
    let second = begin(&limits, "alice", "other").unwrap();
    assert_eq!(limits.running(), 2);
    let reached = begin(&limits, "alice", "files").unwrap_err();
    assert_eq!(reached.what, Limit::Concurrent(2));
    assert_eq!(reached.retry_after, BUSY_RETRY);
    assert_eq!(
        reached.to_string(),
        "`alice` may make 2 calls at once: try again in 1 s"
    );
    drop(first);
    let third = begin(&limits, "alice", "files").unwrap();
    drop((second, third));
    assert_eq!(limits.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn servers_have_limits_for_all_together() {
    let mut plan = plan(0, 0);
    plan.servers.insert(
        server("slow"),
        ServerLimit {
            calls_per_minute: NonZeroU32::new(2),
            max_concurrent: NonZeroU32::new(1),
        },
    );
    plan.other_servers.max_concurrent = NonZeroU32::new(2);
    let limits = Limits::new(plan);
    let going_on = begin(&limits, "alice", "slow").unwrap();
    let reached = begin(&limits, "bob", "slow").unwrap_err();
    assert_eq!(reached.whose, Whose::Server(server("slow")));
    assert_eq!(reached.what, Limit::Concurrent(1));
    drop(going_on);
    drop(begin(&limits, "bob", "slow").unwrap());
    let reached = begin(&limits, "carol", "slow").unwrap_err();
    assert_eq!(
        reached.to_string(),
        "the server `slow` takes 2 calls per minute: try again in 30 s"
    );
    let others = [
        begin(&limits, "alice", "files").unwrap(),
        begin(&limits, "bob", "files").unwrap(),
    ];
    assert!(begin(&limits, "carol", "files").is_err());
    assert!(begin(&limits, "carol", "more").is_ok());
    drop(others);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_not_begin_counts_for_nothing() {
    let mut plan = plan(2, 0);
    plan.servers.insert(
        server("busy"),
        ServerLimit {
            max_concurrent: NonZeroU32::new(1),
            ..ServerLimit::default()
        },
    );
    let limits = Limits::new(plan);
    let going_on = begin(&limits, "bob", "busy").unwrap();
    for _ in 0..10 {
        assert!(begin(&limits, "alice", "busy").is_err());
    }
    assert!(begin(&limits, "alice", "files").is_ok());
    assert!(begin(&limits, "alice", "files").is_ok());
    assert!(begin(&limits, "alice", "files").is_err());
    drop(going_on);
}

#[tokio::test(start_paused = true)]
async fn another_plan_counts_at_once_for_what_is_going_on() {
    let limits = Limits::new(plan(0, 0));
    let going_on: Vec<CallGuard> = (0..3)
        .map(|_| begin(&limits, "alice", "files").unwrap())
        .collect();
    limits.replace(plan(0, 2));
    assert!(begin(&limits, "alice", "files").is_err());
    drop(going_on);
    let first = begin(&limits, "alice", "files").unwrap();
    limits.replace(plan(600, 0));
    for _ in 0..600 {
        drop(begin(&limits, "alice", "files").unwrap());
    }
    assert!(begin(&limits, "alice", "files").is_err());
    limits.replace(plan(1, 0));
    let reached = begin(&limits, "alice", "files").unwrap_err();
    assert!(reached.retry_after <= Duration::from_mins(1), "{reached}");
    limits.replace(plan(0, 0));
    assert!(begin(&limits, "alice", "files").is_ok());
    drop(first);
    assert_eq!(limits.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn those_who_do_nothing_are_forgotten_and_there_is_an_end_to_counting() {
    let limits = Limits::new(plan(10, 0));
    drop(begin(&limits, "alice", "files").unwrap());
    assert_eq!(limits.shared.state().principals.len(), 1);
    assert!(
        limits.shared.state().servers.is_empty(),
        "nothing is left to count"
    );
    for number in 1..MAX_COUNTED {
        drop(begin(&limits, &format!("user-{number}"), "files").unwrap());
    }
    let reached = begin(&limits, "one-more", "files").unwrap_err();
    assert_eq!(reached.whose, Whose::Gateway);
    assert!(
        begin(&limits, "alice", "files").is_ok(),
        "those who are known may go on"
    );
    advance(Duration::from_mins(1)).await;
    assert!(begin(&limits, "one-more", "files").is_ok());
    assert!(limits.shared.state().principals.len() <= 2);
}

#[test]
fn limits_work_outside_of_a_runtime() {
    let limits = Limits::new(plan(1, 1));
    drop(begin(&limits, "alice", "files").unwrap());
    assert!(begin(&limits, "alice", "files").is_err());
}

proptest! {
    /// Whenever calls come, no more begin in any minute than a full bucket and what flowed into it.
    #[test]
    fn no_minute_has_more_calls_than_a_bucket_and_its_inflow(
        rate in 1_u32..40,
        pauses in prop::collection::vec(0_u64..20_000, 1..120),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let limits = Limits::new(plan(rate, 0));
            let mut begun: Vec<Instant> = Vec::new();
            for pause in pauses {
                advance(Duration::from_millis(pause)).await;
                match begin(&limits, "alice", "files") {
                    Ok(_) => begun.push(Instant::now()),
                    Err(reached) => {
                        let promised = reached.retry_after;
                        prop_assert!(promised <= Duration::from_mins(1));
                    }
                }
            }
            for (index, first) in begun.iter().enumerate() {
                let minute = *first + Duration::from_mins(1);
                let within = begun[index..].iter().filter(|call| **call < minute).count();
                prop_assert!(within <= 2 * rate as usize);
            }
            Ok(())
        })?;
    }

    /// Who comes again when they were told may begin.
    #[test]
    fn who_waits_as_told_may_begin(rate in 1_u32..200, extra in 0_u64..5_000) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let limits = Limits::new(plan(rate, 0));
            for _ in 0..rate {
                prop_assert!(begin(&limits, "alice", "files").is_ok());
            }
            advance(Duration::from_millis(extra.min(59_000 / u64::from(rate)))).await;
            if let Err(reached) = begin(&limits, "alice", "files") {
                advance(reached.retry_after).await;
                prop_assert!(begin(&limits, "alice", "files").is_ok());
            }
            Ok(())
        })?;
    }
}

#[tokio::test(start_paused = true)]
async fn the_gateway_has_a_limit_for_everybody_with_all_servers() {
    let limits = Limits::new(LimitPlan {
        all: ServerLimit {
            calls_per_minute: NonZeroU32::new(3),
            max_concurrent: NonZeroU32::new(2),
        },
        ..LimitPlan::default()
    });
    let first = begin(&limits, "alice", "files").unwrap();
    let second = begin(&limits, "bob", "other").unwrap();
    let reached = begin(&limits, "carol", "third").unwrap_err();
    assert_eq!(
        (reached.whose, reached.what),
        (Whose::Gateway, Limit::Concurrent(2))
    );
    drop((first, second));
    drop(begin(&limits, "carol", "third").unwrap());
    let reached = begin(&limits, "carol", "third").unwrap_err();
    assert_eq!(
        reached.to_string(),
        "the gateway takes 3 calls per minute: try again in 20 s"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_only_counted_takes_calls_of_a_minute_and_no_place() {
    let limits = Limits::new(plan(3, 1));
    let _running = begin(&limits, "alice", "files").unwrap();
    let count = || limits.count(&name("alice"), Some(&server("files")));
    count().unwrap();
    assert_eq!(limits.running(), 1);
    count().unwrap();
    let reached = count().unwrap_err();
    assert_eq!(reached.what, Limit::CallsPerMinute(3));
    advance(Duration::from_secs(20)).await;
    count().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_no_server_is_asked_for_counts_for_who_makes_it() {
    let files = ServerLimit {
        calls_per_minute: NonZeroU32::new(1),
        max_concurrent: None,
    };
    let limits = Limits::new(LimitPlan {
        servers: [(server("files"), files)].into(),
        ..plan(3, 1)
    });
    let going_on = limits.begin(&name("alice"), None).unwrap();
    let reached = begin(&limits, "alice", "files").unwrap_err();
    assert_eq!(reached.what, Limit::Concurrent(1));
    drop(going_on);
    drop(limits.begin(&name("alice"), None).unwrap());
    drop(begin(&limits, "alice", "files").unwrap());
    let reached = limits.begin(&name("alice"), None).unwrap_err();
    assert_eq!(reached.whose, Whose::Principal(name("alice")));
}
