//! The database goes away while conversations are held, and comes back.

use cocode_agent::{Store as _, StoreError};
use cocode_testkit::PostgresPeer;

use super::contract::{all, asked, begun, taken};
use super::store;

#[tokio::test(flavor = "multi_thread")]
async fn system_leases_are_lost_with_the_database_and_nothing_else_is() {
    let mut peer = PostgresPeer::start();
    let here = store(&peer.address("cocode"));
    let there = store(&peer.socket_address("cocode"));
    let id = begun(&here).await;
    let lease = here.lease(&id).await.unwrap();
    assert_eq!(here.append(&lease, &asked("one")).await.unwrap(), 1);
    let elsewhere = begun(&there).await;
    let other_lease = there.lease(&elsewhere).await.unwrap();
    peer.stop();

    // Who held something is told so, as soon as the connection is known to be gone.
    let lost = loop {
        match here.append(&lease, &asked("lost")).await.unwrap_err() {
            StoreError::Broken { why, .. } => assert!(!why.contains(peer.secret()), "{why}"),
            other => break other,
        }
    };
    assert!(matches!(lost, StoreError::Lost(which) if which == id));
    let error = here.list(&all()).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("store of conversations in PostgreSQL"),
        "{text}"
    );
    assert!(text.contains("cannot be reached"), "{text}");
    assert!(!text.contains(peer.secret()), "{text}");
    assert!(matches!(
        here.lease(&id).await,
        Err(StoreError::Broken { .. })
    ));
    drop(lease);

    peer.start_again();
    // A lease that was lost stays so, even if nobody else has taken it.
    let late = there.append(&other_lease, &asked("late")).await;
    assert!(matches!(late, Err(StoreError::Lost(_))), "{late:?}");
    // All that was said to be kept is there, and everybody goes on.
    for store in [&here, &there] {
        let known = store.load(&id).await.unwrap().records.len();
        let lease = taken(store, &id).await;
        let number = store.append(&lease, &asked("more")).await.unwrap();
        assert_eq!(number, u64::try_from(known).unwrap() + 1);
    }
    let lease = taken(&there, &elsewhere).await;
    assert_eq!(there.append(&lease, &asked("again")).await.unwrap(), 1);
    drop(other_lease);
    // The old lease does not take the new one along.
    assert_eq!(there.append(&lease, &asked("on")).await.unwrap(), 2);
    assert!(there.load(&elsewhere).await.unwrap().summary.is_held);
}
