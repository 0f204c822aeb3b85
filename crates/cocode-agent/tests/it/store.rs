//! The store of conversations, on real files.

#[path = "store/contract/promises.rs"]
mod contract;
mod files;
mod leases;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cocode_agent::{ConversationId, SqliteStore, Store};

use contract::Place;
use contract::processes::{Order, without_an_order};

/// The file of the store in a directory, which is not there yet.
fn file_in(directory: &Path) -> PathBuf {
    directory.join("state/conversations.db")
}

fn store_in(directory: &Path) -> SqliteStore {
    SqliteStore::open(&file_in(directory)).unwrap()
}

/// Changes the file behind the back of the store.
fn by_hand(directory: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(file_in(directory)).unwrap();
    connection.execute_batch(sql).unwrap();
}

impl Place for tempfile::TempDir {
    async fn store(&self) -> Arc<dyn Store> {
        Arc::new(store_in(self.path()))
    }

    async fn by_hand(&self, sql: &str) {
        by_hand(self.path(), sql);
    }

    async fn count(&self, table: &str) -> i64 {
        let connection = rusqlite::Connection::open(file_in(self.path())).unwrap();
        let count = format!("SELECT count(*) FROM {table}");
        connection.query_row(&count, [], |row| row.get(0)).unwrap()
    }

    async fn break_leases(&self) {
        fs::remove_dir_all(file_in(self.path()).with_file_name("locks")).unwrap();
    }

    fn address(&self) -> String {
        self.path().to_str().unwrap().to_owned()
    }

    fn kills(&self) -> usize {
        60
    }

    fn worker(&self) -> &'static str {
        "store::a_process_does_as_it_is_told"
    }
}

macro_rules! on_files {
    ($($about:ident::$case:ident),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $case() {
                let place = tempfile::tempdir().unwrap();
                Box::pin(contract::$about::$case(&place)).await;
            }
        )+
    };
}
contract::every_case!(on_files);

/// Run by itself, this is a process that nobody kills. Others start it to be one that they may.
#[tokio::test]
async fn a_process_does_as_it_is_told() {
    match Order::given() {
        Some(order) => {
            let store = store_in(Path::new(&order.address));
            order.obey(&store).await;
        }
        None => without_an_order(&tempfile::tempdir().unwrap()).await,
    }
}

#[test]
fn ids_are_random_uuids_of_version_4() {
    let ids: Vec<_> = (0..100)
        .map(|_| ConversationId::random().unwrap())
        .collect();
    for id in &ids {
        let text = id.as_str();
        assert_eq!(text.parse::<ConversationId>().unwrap(), *id);
        assert_eq!(text.as_bytes()[14], b'4', "{text}");
        assert!(b"89ab".contains(&text.as_bytes()[19]), "{text}");
    }
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
}
