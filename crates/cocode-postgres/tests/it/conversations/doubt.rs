//! Records whose answer is lost: what was written is not written again, and what was not is.

use std::sync::atomic::Ordering;

use cocode_agent::{Block, Record, Store as _, StoreError, text_of};
use cocode_testkit::PostgresPeer;

use super::contract::{asked, begun};
use super::store;
use crate::wire::{CARRY, LOSE_THE_ANSWER, LOSE_THE_REQUEST, Wire};

/// Records that have this in them are lost, if that is planned.
const CUT_HERE: &[u8] = b"cut here";

#[tokio::test(flavor = "multi_thread")]
async fn system_a_record_whose_answer_is_lost_is_written_once() {
    let peer = PostgresPeer::start();
    let wire = Wire::to(&peer, CUT_HERE).await;
    let doubtful = store(&wire.address(&peer, "cocode"));
    let id = begun(&doubtful).await;
    let lease = doubtful.lease(&id).await.unwrap();
    assert_eq!(doubtful.append(&lease, &asked("1")).await.unwrap(), 1);
    for (number, plan) in [
        (2, LOSE_THE_ANSWER),
        (3, LOSE_THE_REQUEST),
        (4, LOSE_THE_ANSWER),
        (5, LOSE_THE_ANSWER),
    ] {
        wire.plan.store(plan, Ordering::SeqCst);
        let record = asked(&format!("{number}, cut here"));
        assert_eq!(doubtful.append(&lease, &record).await.unwrap(), number);
        assert_eq!(wire.plan.load(Ordering::SeqCst), CARRY, "nothing was lost");
        wire.plan.store(plan, Ordering::SeqCst);
        let said = [Block::text(format!("after {number}, cut here"))];
        doubtful.draft(&lease, &said).await.unwrap();
        let stored = doubtful.load(&id).await.unwrap();
        assert_eq!(stored.draft.as_deref(), Some(&said[..]));
    }
    // What nobody waits for is there or not, and what follows has the next number.
    for plan in [LOSE_THE_ANSWER, LOSE_THE_REQUEST, CARRY] {
        wire.plan.store(plan, Ordering::SeqCst);
        let record = asked("cut here, and nobody waits");
        let mut append = doubtful.append(&lease, &record);
        for _ in 0..20 {
            if futures_util::poll!(&mut append).is_ready() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        drop(append);
        wire.plan.store(CARRY, Ordering::SeqCst);
        let number = doubtful.append(&lease, &asked("next")).await.unwrap();
        let stored = doubtful.load(&id).await.unwrap();
        assert_eq!(stored.records.len(), usize::try_from(number).unwrap());
        let Some((_, Record::Asked { content })) = stored.records.last() else {
            panic!("{stored:?}");
        };
        assert_eq!(text_of(content), "next");
    }
    let stored = doubtful.load(&id).await.unwrap();
    let numbers: Vec<u64> = stored.records.iter().map(|(number, _)| *number).collect();
    let count = u64::try_from(numbers.len()).unwrap();
    assert!(numbers.into_iter().eq(1..=count));
    assert_eq!(stored.summary.turns, count);

    // Another has the conversation by now: what was on its way counts no more.
    let other = store(&peer.address("cocode"));
    peer.sql(
        "cocode",
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'",
    );
    let taken = super::contract::taken(&other, &id).await;
    let late = doubtful.append(&lease, &asked("late")).await;
    assert!(matches!(late, Err(StoreError::Lost(_))), "{late:?}");
    let number = other.append(&taken, &asked("other")).await.unwrap();
    assert_eq!(number, count + 1);
}
