//! Tokens in a database: the promises of every store, and what several gateways see of each other.

use cocode_access::{MAX_TOKENS, TokenStore as _, TokenStoreError};
use cocode_postgres::PostgresTokenStore;
use cocode_testkit::PostgresPeer;
use tokio::task::JoinSet;

use crate::database;
use crate::token_promises::{keeps_its_promises, name, record};

#[tokio::test(flavor = "multi_thread")]
async fn system_tokens_in_a_database_keep_the_promises_of_every_store() {
    let peer = PostgresPeer::start();
    let store = PostgresTokenStore::new(database(&peer.socket_address("cocode")));
    keeps_its_promises(&store).await;

    // Another gateway sees what this one does.
    let other = PostgresTokenStore::new(database(&peer.address("cocode")));
    let before = other.stamp().await.unwrap();
    assert_eq!(other.list().await.unwrap(), store.list().await.unwrap());
    let (_, dora) = record("dora");
    store.add(&dora).await.unwrap();
    let added = other.stamp().await.unwrap();
    assert_ne!(added, before);
    assert_eq!(other.list().await.unwrap().last(), Some(&dora));

    // So does everybody when somebody does it by hand, but not when a token is used.
    other.note_use(&[(dora.hash, dora.created)]).await.unwrap();
    assert_eq!(store.stamp().await.unwrap(), added);
    peer.sql("cocode", "DELETE FROM cocode.tokens WHERE name = 'dora'");
    assert_ne!(store.stamp().await.unwrap(), added);
    let gone = other.revoke(&name("dora")).await;
    assert!(matches!(gone, Err(TokenStoreError::Unknown(_))), "{gone:?}");

    one_of_many_gets_a_name(&peer).await;
    many_come_and_go_at_once(&peer).await;
    no_more_than_there_may_be(&peer, &store).await;
    assert!(!peer.log().contains("ERROR"), "{}", peer.log());
}

async fn one_of_many_gets_a_name(peer: &PostgresPeer) {
    let mut adding = JoinSet::new();
    for _ in 0..8 {
        let store = PostgresTokenStore::new(database(&peer.address("cocode")));
        adding.spawn(async move { store.add(&record("wanted").1).await });
    }
    let added = adding.join_all().await;
    let (done, refused): (Vec<_>, Vec<_>) = added.into_iter().partition(Result::is_ok);
    assert_eq!((done.len(), refused.len()), (1, 7));
    for refusal in refused {
        assert!(matches!(refusal, Err(TokenStoreError::Taken(_))));
    }
}

/// Each takes what the others take in the same order, so that none is in the way of another for ever.
async fn many_come_and_go_at_once(peer: &PostgresPeer) {
    let mut working = JoinSet::new();
    for worker in 0..8 {
        let store = PostgresTokenStore::new(database(&peer.address("cocode")));
        working.spawn(async move {
            for round in 0..15 {
                // Some are the same for two of them.
                let token = format!("t{}-{round}", worker / 2);
                let added = store.add(&record(&token).1).await;
                assert!(
                    matches!(added, Ok(()) | Err(TokenStoreError::Taken(_))),
                    "{added:?}"
                );
                let gone = store.revoke(&name(&token)).await;
                assert!(
                    matches!(gone, Ok(_) | Err(TokenStoreError::Unknown(_))),
                    "{gone:?}"
                );
            }
        });
    }
    working.join_all().await;
    assert!(!peer.log().contains("deadlock"), "{}", peer.log());
}

async fn no_more_than_there_may_be(peer: &PostgresPeer, store: &PostgresTokenStore) {
    peer.sql(
        "cocode",
        &format!(
            "INSERT INTO cocode.tokens (name, hash, is_admin, created)
             SELECT 'n' || n, sha256(n::text::bytea), false, 0
             FROM generate_series(1, {MAX_TOKENS} - (SELECT count(*) FROM cocode.tokens)) AS n"
        ),
    );
    assert_eq!(store.list().await.unwrap().len(), MAX_TOKENS);
    let more = store.add(&record("more").1).await;
    assert!(matches!(more, Err(TokenStoreError::TooMany)), "{more:?}");
    peer.sql(
        "cocode",
        "INSERT INTO cocode.tokens (name, hash, is_admin, created)
         VALUES ('by hand', sha256('by hand'), false, 0)",
    );
    let damaged = store.list().await.unwrap_err().to_string();
    assert!(damaged.contains("are damaged"), "{damaged}");
}
