//! Commits whose answer is lost: what was written is not written again, and what was not is.

use std::sync::atomic::Ordering;

use cocode_access::AuditLedger as _;
use cocode_testkit::PostgresPeer;

use crate::audit::{entry, ledger};
use crate::wire::{CARRY, HANG, LOSE_THE_ANSWER, LOSE_THE_REQUEST, Wire};

#[tokio::test(flavor = "multi_thread")]
async fn system_a_batch_whose_answer_is_lost_is_written_once() {
    let peer = PostgresPeer::start();
    let wire = Wire::to(&peer, b"COMMIT").await;
    let through = wire.address(&peer, "cocode");
    let (doubtful, other) = (ledger(&through), ledger(&peer.address("cocode")));
    doubtful.append(&[entry("first")]).await.unwrap();
    let mut n_lines = 1;
    for plan in [LOSE_THE_ANSWER, LOSE_THE_REQUEST] {
        for is_overtaken in [false, true] {
            let batch = [entry("one"), entry("two")];
            wire.plan.store(plan, Ordering::SeqCst);
            let error = doubtful.append(&batch).await.unwrap_err().to_string();
            assert!(!error.contains(peer.secret()), "{error}");
            assert_eq!(wire.plan.load(Ordering::SeqCst), CARRY, "it was cut");
            if is_overtaken {
                other.append(&[entry("between")]).await.unwrap();
                n_lines += 1;
            }
            // The same is tried again, as often as it takes.
            wire.plan.store(plan, Ordering::SeqCst);
            doubtful.append(&batch).await.unwrap_err();
            doubtful.append(&batch).await.unwrap();
            n_lines += 2;
            let report = other.verify(None).await.unwrap();
            assert!(report.is_intact(), "{report:?}");
            assert_eq!(report.n_lines, n_lines, "plan {plan}, {is_overtaken}");
            // What is the same, and said after that, is another batch.
            doubtful.append(&batch).await.unwrap();
            n_lines += 2;
            assert_eq!(other.verify(None).await.unwrap().n_lines, n_lines);
        }
    }
    let writers = peer.sql("cocode", "SELECT count(*) FROM cocode.audit_writers");
    assert_eq!(writers, "2");
}

/// The clock is turned on once nothing is answered any more: so nobody waits for the deadline.
#[tokio::test]
async fn system_a_look_at_the_log_ends_even_if_the_database_hangs() {
    let peer = PostgresPeer::start();
    ledger(&peer.address("cocode"))
        .append(&[entry("first")])
        .await
        .unwrap();
    for words in [&b"audit_head"[..], b"audit_lines", b"ROLLBACK"] {
        let wire = Wire::to(&peer, words).await;
        let looking = ledger(&wire.address(&peer, "cocode"));
        assert!(looking.verify(None).await.unwrap().is_intact());
        wire.plan.store(HANG, Ordering::SeqCst);
        let hanging = async {
            while wire.plan.load(Ordering::SeqCst) == HANG {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            tokio::time::pause();
            std::future::pending::<()>().await;
        };
        let error = tokio::select! {
            verified = looking.verify(None) => verified.unwrap_err().to_string(),
            () = hanging => unreachable!(),
            () = tokio::time::sleep(std::time::Duration::from_mins(5)) => panic!("it hangs"),
        };
        tokio::time::resume();
        assert!(error.contains("20 seconds"), "{error}");
    }
}
