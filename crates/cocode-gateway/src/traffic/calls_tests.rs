//! Which request a question is about, and who waits for whom.

use std::time::Duration;

use super::{About, Caller, Calls, InTheWay, RESTS_AFTER, RESTS_LATE_AFTER, WORKS_ON_FOR};
use crate::caller::Abilities;

const FORMS: Abilities = Abilities {
    form: true,
    url: false,
    sampling: false,
    roots: false,
};

/// Somebody who can be asked.
fn able(session: u64) -> Caller {
    Caller {
        session,
        can: FORMS,
        only_looks: false,
    }
}

/// Somebody who cannot.
fn mute(session: u64) -> Caller {
    Caller {
        can: Abilities::default(),
        ..able(session)
    }
}

/// Somebody who wants a list.
fn looking(session: u64) -> Caller {
    Caller {
        only_looks: true,
        ..able(session)
    }
}

fn begins(calls: &Calls<&str>, caller: Caller) -> bool {
    calls.in_the_way(caller, None, FORMS) == InTheWay::Nothing
}

#[tokio::test]
async fn a_question_is_about_the_one_session_that_has_requests_on_their_way() {
    let mut calls = Calls::default();
    assert_eq!(calls.meant(), About::Nothing);
    calls.add(able(1), "first");
    let second = calls.add(able(1), "second");
    assert_eq!(calls.meant(), About::One(second, "second"));
    let other = calls.add(mute(2), "other");
    assert_eq!(calls.meant(), About::Any(3));
    calls.done(other);
    assert_eq!(calls.meant(), About::One(second, "second"));
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_an_answer_counts_as_well_until_it_rests() {
    let mut calls = Calls::default();
    let one = calls.add(able(1), "one");
    calls.ask(one);
    let other = calls.add(mute(2), "other");
    assert_eq!(calls.meant(), About::Any(2));
    tokio::time::advance(RESTS_AFTER).await;
    assert_eq!(calls.meant(), About::One(other, "other"));
    calls.done(other);
    assert_eq!(calls.meant(), About::One(one, "one"));
    calls.answered(one);
    calls.add(mute(2), "another");
    assert_eq!(calls.meant(), About::Any(2));
}

#[tokio::test(start_paused = true)]
async fn who_asks_several_things_at_once_rests_later() {
    let mut calls = Calls::default();
    let one = calls.add(able(1), "one");
    calls.ask(one);
    calls.ask(one);
    calls.add(mute(2), "other");
    tokio::time::advance(RESTS_AFTER).await;
    assert_eq!(calls.meant(), About::Any(2));
    tokio::time::advance(RESTS_LATE_AFTER).await;
    assert!(matches!(calls.meant(), About::One(_, "other")));
}

#[tokio::test]
async fn lists_count_only_if_there_is_nothing_else() {
    let mut calls = Calls::default();
    let list = calls.add(looking(2), "list");
    assert_eq!(calls.meant(), About::One(list, "list"));
    let call = calls.add(able(1), "call");
    assert_eq!(calls.meant(), About::One(call, "call"));
    assert!(begins(&calls, looking(3)));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_given_up_counts_for_a_while() {
    let mut calls = Calls::default();
    let gone = calls.add(able(1), "gone");
    calls.give_up(gone);
    assert_eq!(calls.meant(), About::GivenUp);
    let other = calls.add(able(2), "other");
    assert_eq!(calls.meant(), About::GivenUp);
    tokio::time::advance(WORKS_ON_FOR.saturating_sub(Duration::from_millis(1))).await;
    assert_eq!(calls.meant(), About::GivenUp);
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(calls.meant(), About::One(other, "other"));
}

#[tokio::test(start_paused = true)]
async fn who_gave_up_a_request_is_asked_about_the_next() {
    let mut calls = Calls::default();
    let gone = calls.add(able(1), "gone");
    calls.give_up(gone);
    assert!(begins(&calls, able(1)));
    let next = calls.add(able(1), "next");
    assert_eq!(calls.meant(), About::One(next, "next"));
}

#[tokio::test(start_paused = true)]
async fn others_who_may_be_asked_wait_for_what_was_given_up() {
    let mut calls = Calls::<&str>::default();
    let gone = calls.add(able(1), "gone");
    calls.give_up(gone);
    let until = tokio::time::Instant::now() + WORKS_ON_FOR;
    let waits = calls.in_the_way(able(2), None, FORMS);
    assert_eq!(waits, InTheWay::Until(until));
    assert!(begins(&calls, mute(2)));
    tokio::time::advance(WORKS_ON_FOR).await;
    assert!(begins(&calls, able(2)));
}

#[tokio::test]
async fn nobody_waits_at_a_server_that_asks_nothing() {
    let mut calls = Calls::<&str>::default();
    calls.add(able(1), "one");
    let nothing = calls.in_the_way(able(2), None, Abilities::default());
    assert_eq!(nothing, InTheWay::Nothing);
}

#[tokio::test]
async fn who_may_be_asked_has_the_server_alone() {
    let mut calls = Calls::default();
    let one = calls.add(able(1), "one");
    assert!(!begins(&calls, able(2)));
    assert!(!begins(&calls, mute(2)));
    assert!(begins(&calls, able(1)));
    calls.done(one);
    assert!(begins(&calls, able(2)));
    calls.add(mute(2), "other");
    assert!(!begins(&calls, able(1)));
    assert!(begins(&calls, mute(3)));
}

#[tokio::test(start_paused = true)]
async fn while_somebody_thinks_those_go_on_who_cannot_be_asked_and_then_the_others() {
    let mut calls = Calls::default();
    let one = calls.add(able(1), "one");
    calls.ask(one);
    let waits = calls.queue_up();
    assert!(begins(&calls, mute(2)));
    let rests_at = tokio::time::Instant::now() + RESTS_AFTER;
    let way = |calls: &Calls<&str>| calls.in_the_way(able(3), Some(waits), FORMS);
    assert_eq!(way(&calls), InTheWay::Until(rests_at));
    tokio::time::advance(RESTS_AFTER).await;
    assert_eq!(way(&calls), InTheWay::Nothing);
    calls.answered(one);
    assert_eq!(way(&calls), InTheWay::Others);
    assert!(!begins(&calls, mute(2)));
}

#[tokio::test]
async fn who_waited_longest_comes_first() {
    let mut calls = Calls::default();
    let one = calls.add(mute(1), "one");
    let (first, second) = (calls.queue_up(), calls.queue_up());
    // More of those who cannot be asked would keep the others waiting for ever.
    assert!(!begins(&calls, mute(4)));
    calls.done(one);
    let way = |caller, number| calls.in_the_way(caller, Some(number), FORMS);
    assert_eq!(way(able(3), second), InTheWay::Others);
    assert_eq!(way(able(2), first), InTheWay::Nothing);
    calls.leave_queue(first);
    let way = |caller, number| calls.in_the_way(caller, Some(number), FORMS);
    assert_eq!(way(able(3), second), InTheWay::Nothing);
}
