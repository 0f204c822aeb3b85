//! Conversations in a database: the promises of every store, and what is particular to this one.

#[path = "../../../cocode-agent/tests/it/store/contract/promises.rs"]
mod contract;
mod doubt;
mod outages;
mod turns;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use cocode_agent::{SqliteStore, Store, StoreError};
use cocode_postgres::PostgresConversations;
use cocode_testkit::PostgresPeer;
use futures_util::FutureExt as _;

use crate::database;
use contract::processes::{Order, without_an_order};
use contract::{Place, asked, begun};

fn store(address: &str) -> PostgresConversations {
    PostgresConversations::new(database(address))
}

/// A database of a server, which one case has for itself.
struct Base<'a> {
    peer: &'a PostgresPeer,
    name: &'a str,
}

impl Place for Base<'_> {
    async fn store(&self) -> Arc<dyn Store> {
        Arc::new(store(&self.address()))
    }

    async fn by_hand(&self, sql: &str) {
        let within = format!("SET search_path = cocode; {sql}");
        self.peer.sql(self.name, &within);
    }

    async fn count(&self, table: &str) -> i64 {
        let query = format!("SELECT count(*) FROM cocode.{table}");
        self.peer.sql(self.name, &query).parse().unwrap()
    }

    async fn break_leases(&self) {
        let holders = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'";
        assert_eq!(self.peer.sql(self.name, holders), "t");
    }

    fn address(&self) -> String {
        self.peer.address(self.name)
    }

    fn kills(&self) -> usize {
        20
    }

    fn worker(&self) -> &'static str {
        "conversations::system_a_process_does_as_it_is_told"
    }
}

/// Runs those cases of the contract that the filter lets pass, each in a database of its own.
async fn keep_promises(is_wanted: impl Fn(&str) -> bool) {
    let peer = PostgresPeer::start();
    let mut cases = 0;
    macro_rules! in_databases {
        ($($about:ident::$case:ident),+ $(,)?) => {
            $(
                if is_wanted(stringify!($about)) {
                    cases += 1;
                    let name = format!("case{cases}");
                    peer.create_database(&name);
                    let base = Base { peer: &peer, name: &name };
                    // The name of the case is said if it fails.
                    let case = AssertUnwindSafe(contract::$about::$case(&base));
                    let kept = Box::pin(case.catch_unwind()).await;
                    assert!(kept.is_ok(), "{}", stringify!($case));
                }
            )+
        };
    }
    contract::every_case!(in_databases);
    assert!(cases > 3, "{cases}");
    // Nothing is let go that nobody had.
    assert!(
        !peer.log().contains("you don't own a lock"),
        "{}",
        peer.log()
    );
    assert!(!peer.log().contains("ERROR"), "{}", peer.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn system_conversations_in_a_database_keep_the_promises_of_every_store() {
    keep_promises(|about| matches!(about, "conversations" | "removal")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn system_conversations_in_a_database_have_one_holder_at_a_time() {
    keep_promises(|about| about == "leases").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn system_conversations_outlive_processes_that_are_killed() {
    keep_promises(|about| about == "processes").await;
}

/// Run by itself, this is a process that nobody kills. Others start it to be one that they may.
#[tokio::test(flavor = "multi_thread")]
async fn system_a_process_does_as_it_is_told() {
    if let Some(order) = Order::given() {
        let store = store(&order.address);
        return order.obey(&store).await;
    }
    let peer = PostgresPeer::start();
    let name = "cocode";
    without_an_order(&Base { peer: &peer, name }).await;
    a_lease_of_another_store_is_none(&peer).await;
}

async fn a_lease_of_another_store_is_none(peer: &PostgresPeer) {
    let here = store(&peer.address("cocode"));
    let file = SqliteStore::in_memory();
    let id = begun(&file).await;
    let lease = file.lease(&id).await.unwrap();
    let appended = here.append(&lease, &asked("x")).await;
    assert!(matches!(appended, Err(StoreError::Lost(_))), "{appended:?}");

    peer.create_database("other");
    let there = store(&peer.address("other"));
    let id = begun(&here).await;
    let lease = here.lease(&id).await.unwrap();
    let appended = there.append(&lease, &asked("x")).await;
    assert!(
        matches!(appended, Err(StoreError::Unknown(_))),
        "{appended:?}"
    );
    // Another store of the same database is the same store.
    let same = store(&peer.address("cocode"));
    assert_eq!(same.append(&lease, &asked("x")).await.unwrap(), 1);
}
