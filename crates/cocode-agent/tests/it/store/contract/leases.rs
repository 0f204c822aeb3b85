//! A conversation has one holder at a time.

use std::sync::Arc;

use cocode_agent::{Block, StoreError};

use super::{Place, all, asked, begun, let_go, taken};

pub(crate) async fn a_held_conversation_is_nobody_elses_until_it_is_let_go(place: &impl Place) {
    let store = place.store().await;
    let other = place.store().await;
    let id = begun(&*store).await;
    let lease = store.lease(&id).await.unwrap();
    for store in [&store, &other] {
        let error = store.lease(&id).await.unwrap_err();
        assert!(matches!(&error, StoreError::Held(which) if *which == id));
        let error = store.remove(&id).await.unwrap_err();
        assert!(matches!(&error, StoreError::Held(_)), "{error:?}");
        assert_eq!(store.purge(0).await.unwrap(), 0);
        assert!(store.list(&all()).await.unwrap()[0].is_held);
        assert!(store.load(&id).await.unwrap().summary.is_held);
    }
    drop(lease);
    let_go(&*other, &id).await;
    assert!(!other.list(&all()).await.unwrap()[0].is_held);
    let lease = other.lease(&id).await.unwrap();
    assert_eq!(other.append(&lease, &asked("mine")).await.unwrap(), 1);
}

pub(crate) async fn leases_of_one_store_exclude_each_other(place: &impl Place) {
    let store = place.store().await;
    let id = begun(&*store).await;
    let other = begun(&*store).await;
    let _elsewhere = store.lease(&other).await.unwrap();
    // What is let go is free at once for who asks the same store, and free for others again afterwards.
    for _ in 0..20 {
        let lease = store.lease(&id).await.unwrap();
        assert!(matches!(store.lease(&id).await, Err(StoreError::Held(_))));
        assert!(store.load(&id).await.unwrap().summary.is_held);
        drop(lease);
        assert!(!store.load(&id).await.unwrap().summary.is_held);
        let lease = store.lease(&id).await.unwrap();
        drop(lease);
        drop(store.lease(&id).await.unwrap());
    }
    let_go(&*place.store().await, &id).await;
    drop(place.store().await.lease(&id).await.unwrap());
}

pub(crate) async fn many_tasks_that_want_one_conversation_have_it_one_by_one(place: &impl Place) {
    let first = place.store().await;
    let id = begun(&*first).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        // Some share a store, some have their own.
        let store = match number {
            0..4 => Arc::clone(&first),
            _ => place.store().await,
        };
        let id = id.clone();
        tasks.spawn(async move {
            let mut appended = 0;
            while appended < 5 {
                let lease = match store.lease(&id).await {
                    Ok(lease) => lease,
                    Err(StoreError::Held(_)) => {
                        tokio::task::yield_now().await;
                        continue;
                    }
                    Err(error) => panic!("{error}"),
                };
                let known = store.load(&id).await.unwrap().records.len();
                let number = store.append(&lease, &asked("x")).await.unwrap();
                assert_eq!(number, u64::try_from(known).unwrap() + 1);
                appended += 1;
            }
        });
    }
    tasks.join_all().await;
    let stored = place.store().await.load(&id).await.unwrap();
    assert_eq!(stored.records.len(), 40);
}

pub(crate) async fn records_that_are_added_side_by_side_all_get_a_number(place: &impl Place) {
    let store = place.store().await;
    let id = begun(&*store).await;
    let lease = store.lease(&id).await.unwrap();
    let records: Vec<_> = (0..30)
        .map(|number| asked(&format!("{number} {}", "x".repeat(number * 1000))))
        .collect();
    let appends = records.iter().map(|record| store.append(&lease, record));
    let mut numbers = futures_util::future::try_join_all(appends).await.unwrap();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(1..=30));
    assert_eq!(store.load(&id).await.unwrap().records.len(), 30);
}

pub(crate) async fn who_lost_a_lease_cannot_write_any_more(place: &impl Place) {
    let store = place.store().await;
    let id = begun(&*store).await;
    let lost = store.lease(&id).await.unwrap();
    place.break_leases().await;
    let other = place.store().await;
    let lease = taken(&*other, &id).await;
    let appended = store.append(&lost, &asked("late")).await;
    assert!(matches!(appended, Err(StoreError::Lost(which)) if which == id));
    let drafted = store.draft(&lost, &[Block::text("late")]).await;
    assert!(matches!(drafted, Err(StoreError::Lost(_))));
    drop(lost);
    assert!(other.load(&id).await.unwrap().summary.is_held);
    assert_eq!(other.append(&lease, &asked("ours")).await.unwrap(), 1);
    // The store is as good as before.
    drop(lease);
    let lease = taken(&*store, &id).await;
    assert_eq!(store.append(&lease, &asked("again")).await.unwrap(), 2);
}

pub(crate) async fn nothing_is_done_for_a_lease_once_somebody_else_has_it(place: &impl Place) {
    let store = place.store().await;
    let id = begun(&*store).await;
    for round in 0..20 {
        let lease = store.lease(&id).await.unwrap();
        let record = asked("x");
        // Polled so often, so that it is under way or done, and then dropped.
        let mut append = store.append(&lease, &record);
        for _ in 0..=round / 2 {
            if let std::task::Poll::Ready(done) = futures_util::poll!(&mut append) {
                done.unwrap();
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(append);
        if round % 2 == 0 {
            // The same lease goes on, whatever has become of that record.
            store.append(&lease, &asked("z")).await.unwrap();
        }
        drop(lease);
        let lease = store.lease(&id).await.unwrap();
        let known = store.load(&id).await.unwrap().records.len();
        let number = store.append(&lease, &asked("y")).await.unwrap();
        assert_eq!(number, u64::try_from(known).unwrap() + 1);
    }
}

pub(crate) async fn a_lease_that_nobody_waited_for_is_let_go(place: &impl Place) {
    let store = place.store().await;
    let id = begun(&*store).await;
    for polls in 0..10 {
        let mut lease = store.lease(&id);
        for _ in 0..polls {
            if let std::task::Poll::Ready(done) = futures_util::poll!(&mut lease) {
                done.unwrap();
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(lease);
        drop(taken(&*store, &id).await);
    }
    drop(taken(&*place.store().await, &id).await);
}
