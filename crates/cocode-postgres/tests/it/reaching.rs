//! Reaching a database: by which ways, what is said when that fails, and how it goes on afterwards.

use cocode_access::TokenStore as _;
use cocode_postgres::{Database, DatabaseError, PostgresTokenStore};
use cocode_testkit::PostgresPeer;
use cocode_wire::{HttpClient, HttpSettings};
use tokio::task::JoinSet;

use crate::database;
use crate::token_promises::record;

async fn refusal(address: &str) -> DatabaseError {
    let error = database(address).connection().await.unwrap_err();
    assert!(!error.to_string().contains("sesame"), "{error}");
    error
}

async fn number(database: &Database, query: &str) -> i64 {
    let connection = database.connection().await.unwrap();
    let row = connection.query_one(query, &[]).await.unwrap();
    let number = row.get(0);
    connection.give_back();
    number
}

#[tokio::test(flavor = "multi_thread")]
async fn system_a_database_is_reached_or_it_is_said_why_not() {
    let mut peer = PostgresPeer::start();
    let address = peer.address("cocode");
    many_make_the_tables_at_once(&peer).await;
    let here = database(&address);
    assert_eq!(
        here.place(),
        format!("postgres://cocode@127.0.0.1:{}/cocode", peer.port())
    );
    assert!(!format!("{here:?}").contains(peer.secret()));

    let wrong = refusal(&address.replace("open%40", "shut%40")).await;
    assert!(matches!(wrong, DatabaseError::Refused { .. }), "{wrong}");
    let text = wrong.to_string();
    assert!(text.contains("password authentication failed"), "{text}");
    let none = refusal(&address.replace(":open%40sesame", "")).await;
    assert!(matches!(none, DatabaseError::Refused { .. }), "{none}");
    let missing = refusal(&peer.address("nowhere")).await;
    assert!(
        missing.to_string().contains("\"nowhere\" does not exist"),
        "{missing}"
    );
    let nobody = refusal(&address.replace(&peer.port().to_string(), "1")).await;
    assert!(
        matches!(nobody, DatabaseError::Unreachable { .. }),
        "{nobody}"
    );
    assert!(nobody.is_passing() && !wrong.is_passing());

    tables_that_are_not_for_us(&peer).await;
    over_tls(&peer).await;
    a_few_connections_serve_many(&here).await;
    a_lock_is_free_when_its_holder_is_gone(&here).await;
    what_hangs_has_an_end(&peer, &here).await;

    // It goes away, and comes back.
    let store = PostgresTokenStore::new(here.clone());
    store.add(&record("alice").1).await.unwrap();
    peer.stop();
    let error = store.list().await.unwrap_err().to_string();
    assert!(error.contains("cannot be reached"), "{error}");
    assert!(!error.contains(peer.secret()), "{error}");
    peer.start_again();
    assert_eq!(store.list().await.unwrap().len(), 1);
    assert!(!peer.log().contains(peer.secret()), "{}", peer.log());
}

async fn many_make_the_tables_at_once(peer: &PostgresPeer) {
    let mut making = JoinSet::new();
    for _ in 0..8 {
        let database = database(&peer.address("cocode"));
        making.spawn(async move {
            let connection = database.connection().await.unwrap();
            let query = "SELECT number FROM cocode.format";
            connection.query_one(query, &[]).await.unwrap();
        });
    }
    making.join_all().await;
    let tables = peer.sql("cocode", "SELECT count(*) FROM cocode.format");
    assert_eq!(tables, "1");
}

async fn tables_that_are_not_for_us(peer: &PostgresPeer) {
    peer.create_database("newer");
    drop(database(&peer.address("newer")).connection().await.unwrap());
    peer.sql("newer", "UPDATE cocode.format SET number = 99");
    let newer = refusal(&peer.address("newer")).await;
    let DatabaseError::Newer { found: 99, .. } = newer else {
        panic!("{newer}");
    };
    assert!(!newer.is_passing());
    let listed = PostgresTokenStore::new(database(&peer.address("newer")))
        .list()
        .await;
    let listed = listed.unwrap_err().to_string();
    assert!(listed.contains("have format 99"), "{listed}");

    peer.create_database("others");
    peer.sql("others", "CREATE SCHEMA cocode CREATE TABLE mine (n int)");
    peer.sql("others", "GRANT ALL ON SCHEMA cocode TO cocode");
    let others = refusal(&peer.address("others")).await;
    assert!(matches!(others, DatabaseError::Foreign { .. }), "{others}");

    peer.sql("postgres", "CREATE DATABASE closed");
    let closed = refusal(&peer.address("closed")).await;
    assert!(
        matches!(closed, DatabaseError::NotAllowed { .. }),
        "{closed}"
    );
    // A schema that was made for us is enough.
    peer.sql("closed", "CREATE SCHEMA cocode AUTHORIZATION cocode");
    drop(
        database(&peer.address("closed"))
            .connection()
            .await
            .unwrap(),
    );

    let latin = "CREATE DATABASE latin OWNER cocode ENCODING 'LATIN1' TEMPLATE template0";
    peer.sql("postgres", latin);
    let latin = refusal(&peer.address("latin")).await;
    assert!(matches!(latin, DatabaseError::Encoding { .. }), "{latin}");
}

async fn over_tls(peer: &PostgresPeer) {
    let by_name = peer.address("cocode").replace("127.0.0.1", "localhost");
    let authority = peer.authority_file();
    let trusted = format!(
        "{by_name}?sslmode=verify-full&sslrootcert={}",
        authority.display()
    );
    let is_encrypted = "SELECT count(*) FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl";
    assert_eq!(number(&database(&trusted), is_encrypted).await, 1);
    assert_eq!(number(&database(&by_name), is_encrypted).await, 0);
    // The authorities that HTTP trusts are good here, too.
    let settings = HttpSettings {
        extra_ca_files: vec![authority],
        ..HttpSettings::default()
    };
    let address = format!("{}?sslmode=prefer", peer.address("cocode"));
    let as_http = Database::new(&address, &HttpClient::new(settings)).unwrap();
    assert_eq!(number(&as_http, is_encrypted).await, 1);
    let untrusted = refusal(&format!("{by_name}?sslmode=require")).await;
    assert!(untrusted.to_string().contains("certificate"), "{untrusted}");
    let elsewhere = trusted.replace("@localhost", "@127.0.0.2") + "&hostaddr=127.0.0.1";
    let elsewhere = refusal(&elsewhere).await;
    assert!(elsewhere.to_string().contains("certificate"), "{elsewhere}");
}

async fn a_few_connections_serve_many(here: &Database) {
    let mut asking = JoinSet::new();
    for _ in 0..50 {
        let database = here.clone();
        asking.spawn(async move { number(&database, "SELECT 1::bigint").await });
    }
    assert_eq!(asking.join_all().await, [1; 50]);
    let ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'cocode'";
    let n_connections = number(here, ours).await;
    assert!((1..=8).contains(&n_connections), "{n_connections}");
}

async fn a_lock_is_free_when_its_holder_is_gone(here: &Database) {
    let take = "SELECT pg_try_advisory_lock(1, 2)";
    let holder = here.lone().await.unwrap();
    let other = here.lone().await.unwrap();
    assert!(holder.query_one(take, &[]).await.unwrap().get::<_, bool>(0));
    assert!(!other.query_one(take, &[]).await.unwrap().get::<_, bool>(0));
    drop(holder);
    // The server notices that a moment later.
    while !other.query_one(take, &[]).await.unwrap().get::<_, bool>(0) {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let probes = "SELECT setting::bigint FROM pg_settings WHERE name = 'tcp_keepalives_idle'";
    assert_eq!(number(here, probes).await, 10);
}

async fn what_hangs_has_an_end(peer: &PostgresPeer, here: &Database) {
    let timeout = "SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout'";
    assert!(number(here, timeout).await > 0);
    // A connection whose work was cut short is used by nobody else.
    let connection = here.connection().await.unwrap();
    let id: i32 = connection
        .query_one("SELECT pg_backend_pid()", &[])
        .await
        .unwrap()
        .get(0);
    let sleeping = async {
        let connection = connection;
        let asked = connection.batch_execute("SELECT pg_sleep(600)").await;
        drop(asked);
        connection.give_back();
    };
    let cut = tokio::time::timeout(std::time::Duration::from_millis(200), sleeping).await;
    assert!(cut.is_err());
    let again: i64 = number(here, "SELECT pg_backend_pid()::bigint").await;
    assert_ne!(again, i64::from(id));
    peer.sql("cocode", &format!("SELECT pg_terminate_backend({id})"));
}
