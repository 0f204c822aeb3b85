//! What is written is read: records, sums, drafts, lists.

use cocode_agent::{
    Arguments, Block, ConversationId, Ending, Record, Settings, Stop, StoreError, StoredAnswer,
    ToolCall, Usage, Wanted,
};
use serde_json::json;

use super::{Place, all, asked, begun, new, titles};

fn replied(input: u64, cost: Option<f64>) -> Record {
    Record::Replied {
        content: vec![Block::text("Hello.")],
        stop: Stop::Done,
        usage: Usage {
            input,
            output: 2,
            cache_read: 3,
            cache_write: 4,
        },
        cost,
        model: "m".to_owned(),
        provider: "p".to_owned(),
    }
}

/// One of each kind.
fn one_of_each() -> Vec<Record> {
    let call = ToolCall {
        id: "c1".to_owned(),
        name: "read".to_owned(),
        arguments: Arguments::Json(json!({ "path": "a \u{0} b" })),
    };
    vec![
        asked("What is it?"),
        replied(10, Some(0.25)),
        Record::BrokeOff {
            content: vec![Block::text("Well")],
        },
        Record::CallBegun {
            call,
            reads_outside: true,
        },
        Record::ApprovalAsked {
            id: "c1".to_owned(),
            why: "it writes".to_owned(),
        },
        Record::ApprovalAnswered {
            id: "c1".to_owned(),
            answer: StoredAnswer::Always,
        },
        Record::CallEnded {
            id: "c1".to_owned(),
            content: vec![Block::text("done")],
            is_error: true,
            milliseconds: 7,
        },
        Record::Compacted {
            summary: "So far.".to_owned(),
            kept_from: 3,
            usage: Usage::default(),
            cost: Some(0.5),
        },
        Record::Changed {
            settings: Settings {
                cwd: "/elsewhere".into(),
                ..Settings::default()
            },
        },
        Record::Ended {
            how: Ending::TooManySteps(9),
        },
        Record::Closed,
    ]
}

pub(crate) async fn every_kind_of_record_comes_back_with_its_number_from_another_store(
    place: &impl Place,
) {
    let store = place.store().await;
    let id = begun(&*store).await;
    let lease = store.lease(&id).await.unwrap();
    assert_eq!(lease.id(), &id);
    for (number, record) in (1..).zip(one_of_each()) {
        assert_eq!(store.append(&lease, &record).await.unwrap(), number);
    }
    let stored = place.store().await.load(&id).await.unwrap();
    let expected: Vec<_> = (1..).zip(one_of_each()).collect();
    assert_eq!(stored.records, expected);
    assert_eq!(stored.unread, []);
    assert_eq!(stored.draft, None);
    assert_eq!(stored.settings, new("").settings);
    stored.whole().unwrap();
    let summary = stored.summary;
    assert_eq!(summary.turns, 1);
    assert_eq!(summary.usage.total(), 19);
    assert!((summary.cost - 0.75).abs() < 1e-9, "{}", summary.cost);
    assert_eq!(summary.cwd.to_str(), Some("/elsewhere"));
    assert!(summary.is_closed);
    assert!(summary.is_held);
    assert!(summary.used >= summary.began);
    assert_eq!(summary.owner, "ann");
}

pub(crate) async fn sums_neither_wrap_around_nor_become_nonsense(place: &impl Place) {
    let store = place.store().await;
    let id = begun(&*store).await;
    let lease = store.lease(&id).await.unwrap();
    for cost in [Some(f64::NAN), Some(f64::INFINITY), None, Some(1.0)] {
        store
            .append(&lease, &replied(u64::MAX, cost))
            .await
            .unwrap();
    }
    let summary = store.load(&id).await.unwrap().summary;
    assert_eq!(summary.usage.input, i64::MAX.cast_unsigned());
    assert!((summary.cost - 1.0).abs() < 1e-9, "{}", summary.cost);
}

pub(crate) async fn a_draft_is_replaced_by_the_next_and_gone_with_the_next_record(
    place: &impl Place,
) {
    let store = place.store().await;
    let id = begun(&*store).await;
    let lease = store.lease(&id).await.unwrap();
    store.append(&lease, &asked("one")).await.unwrap();
    for said in ["Hel", "Hello"] {
        store.draft(&lease, &[Block::text(said)]).await.unwrap();
        let stored = store.load(&id).await.unwrap();
        assert_eq!(stored.draft, Some(vec![Block::text(said)]));
        assert_eq!(stored.records.len(), 1);
    }
    store.append(&lease, &replied(1, None)).await.unwrap();
    assert_eq!(store.load(&id).await.unwrap().draft, None);
}

pub(crate) async fn a_draft_that_a_record_followed_is_not_given(place: &impl Place) {
    let store = place.store().await;
    let id = begun(&*store).await;
    let lease = store.lease(&id).await.unwrap();
    store.append(&lease, &asked("one")).await.unwrap();
    place
        .by_hand("INSERT INTO drafts SELECT key, 0, '[]' FROM conversations")
        .await;
    assert_eq!(store.load(&id).await.unwrap().draft, None);
}

pub(crate) async fn lists_begin_with_what_was_used_last(place: &impl Place) {
    let store = place.store().await;
    let first = store.begin(new("first")).await.unwrap();
    store.begin(new("second")).await.unwrap();
    let mut other = new("third");
    "bob".clone_into(&mut other.owner);
    store.begin(other).await.unwrap();
    assert_eq!(titles(&*store, &all()).await, ["third", "second", "first"]);
    let lease = store.lease(&first).await.unwrap();
    store.append(&lease, &asked("more")).await.unwrap();
    assert_eq!(titles(&*store, &all()).await, ["first", "third", "second"]);
    let wanted = |owner: Option<&str>, limit, offset| Wanted {
        owner: owner.map(str::to_owned),
        limit,
        offset,
    };
    let of_ann = wanted(Some("ann"), 100, 0);
    assert_eq!(titles(&*store, &of_ann).await, ["first", "second"]);
    assert_eq!(titles(&*store, &wanted(None, 1, 1)).await, ["third"]);
    assert_eq!(
        titles(&*store, &wanted(Some("ann"), 1, 1)).await,
        ["second"]
    );
    assert!(titles(&*store, &wanted(Some("eve"), 9, 0)).await.is_empty());
    assert!(titles(&*store, &wanted(None, 0, 0)).await.is_empty());
    let most = wanted(None, usize::MAX, usize::MAX);
    assert!(titles(&*store, &most).await.is_empty());
}

pub(crate) async fn titles_are_cut_to_one_short_line(place: &impl Place) {
    let store = place.store().await;
    store.begin(new(" a\n\tb\u{7}  c ")).await.unwrap();
    assert_eq!(titles(&*store, &all()).await, ["a b c"]);
    store.begin(new(&"ä".repeat(1000))).await.unwrap();
    let long = &titles(&*store, &all()).await[0];
    assert_eq!(long.chars().count(), 200);
    assert!(long.ends_with("ä…"), "{long}");
    store.begin(new(&"x".repeat(200))).await.unwrap();
    assert_eq!(titles(&*store, &all()).await[0], "x".repeat(200));
}

pub(crate) async fn an_owner_that_is_no_name_is_refused(place: &impl Place) {
    let store = place.store().await;
    begun(&*store).await;
    for owner in ["o".repeat(1025), "ann\0".to_owned()] {
        let mut owned = new("t");
        owned.owner = owner;
        let error = store.begin(owned).await.unwrap_err();
        assert!(matches!(error, StoreError::NotStorable { .. }), "{error:?}");
        assert!(error.to_string().contains("owner"), "{error}");
    }
    assert_eq!(place.count("conversations").await, 1);
}

pub(crate) async fn what_is_not_there_is_unknown_to_every_method(place: &impl Place) {
    let store = place.store().await;
    let id = ConversationId::random().unwrap();
    let unknown = |error: StoreError| matches!(error, StoreError::Unknown(which) if which == id);
    assert!(unknown(store.load(&id).await.unwrap_err()));
    assert!(unknown(store.lease(&id).await.unwrap_err()));
    assert!(unknown(store.remove(&id).await.unwrap_err()));
}

pub(crate) async fn a_record_of_a_newer_version_is_left_out_and_nobody_goes_on(place: &impl Place) {
    let store = place.store().await;
    let id = begun(&*store).await;
    let lease = store.lease(&id).await.unwrap();
    for text in ["one", "two", "three"] {
        store.append(&lease, &asked(text)).await.unwrap();
    }
    drop(lease);
    place.by_hand(
        r#"UPDATE records SET kind = 'dreamt', record = '{"record":"dreamt","of":"sheep"}' WHERE number = 2"#,
    ).await;
    let stored = store.load(&id).await.unwrap();
    let numbers: Vec<_> = stored.records.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [1, 3]);
    assert_eq!(stored.unread[0].number, 2);
    assert_eq!(stored.unread[0].kind, "dreamt");
    for error in [
        stored.whole().unwrap_err(),
        store.lease(&id).await.unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(text.contains("record 2"), "{text}");
        assert!(text.contains("`dreamt`"), "{text}");
        assert!(text.contains("newer version"), "{text}");
    }
    assert_eq!(store.list(&all()).await.unwrap().len(), 1);
    assert!(!store.list(&all()).await.unwrap()[0].is_held);
    store.remove(&id).await.unwrap();
}

pub(crate) async fn a_new_part_of_a_known_record_is_noticed_as_well(place: &impl Place) {
    let store = place.store().await;
    let id = begun(&*store).await;
    let lease = store.lease(&id).await.unwrap();
    store.append(&lease, &asked("one")).await.unwrap();
    place
        .by_hand(r#"UPDATE records SET record = '{"record":"asked","content":[{"type":"smell"}]}'"#)
        .await;
    let stored = store.load(&id).await.unwrap();
    assert_eq!(stored.records, []);
    assert_eq!(stored.unread[0].kind, "asked");
    assert!(
        stored.unread[0].why.contains("smell"),
        "{:?}",
        stored.unread
    );
    assert!(matches!(
        stored.whole(),
        Err(StoreError::NotUnderstood { number: 1, .. })
    ));
}

pub(crate) async fn what_is_too_large_is_refused_and_leaves_nothing_behind(place: &impl Place) {
    let store = place.store().await;
    let id = begun(&*store).await;
    let lease = store.lease(&id).await.unwrap();
    let large = "x".repeat(16 * 1024 * 1024);
    let record = asked(&large);
    let blocks = [Block::text(large.as_str())];
    for error in [
        store.append(&lease, &record).await.unwrap_err(),
        store.draft(&lease, &blocks).await.unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::NotStorable { .. }), "{error:?}");
        assert!(error.to_string().contains("16 MiB"), "{error}");
    }
    assert_eq!(store.append(&lease, &asked("small")).await.unwrap(), 1);
}

pub(crate) async fn a_conversation_that_is_full_takes_no_more(place: &impl Place) {
    let store = place.store().await;
    let id = begun(&*store).await;
    let lease = store.lease(&id).await.unwrap();
    store.append(&lease, &asked("one")).await.unwrap();
    place
        .by_hand("UPDATE conversations SET bytes = 512 * 1024 * 1024 - 10")
        .await;
    let error = store.append(&lease, &asked("two")).await.unwrap_err();
    assert!(error.to_string().contains("begin another one"), "{error}");
    assert_eq!(store.load(&id).await.unwrap().records.len(), 1);
}
