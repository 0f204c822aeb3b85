//! The store of conversations, on real files.

mod conversations;
mod files;
mod leases;
mod processes;
mod removal;

use std::path::{Path, PathBuf};

use cocode_agent::{
    Block, ConversationId, NewConversation, Record, Settings, SqliteStore, Store as _, Wanted,
};

/// The file of the store in a directory, which is not there yet.
fn file_in(directory: &Path) -> PathBuf {
    directory.join("state/conversations.db")
}

fn store_in(directory: &Path) -> SqliteStore {
    SqliteStore::open(&file_in(directory)).unwrap()
}

fn new(title: &str) -> NewConversation {
    NewConversation {
        owner: "ann".to_owned(),
        settings: Settings {
            cwd: "/work".into(),
            ..Settings::default()
        },
        title: title.to_owned(),
    }
}

async fn begun(store: &SqliteStore) -> ConversationId {
    store.begin(new("a title")).await.unwrap()
}

fn asked(text: &str) -> Record {
    Record::Asked {
        content: vec![Block::text(text)],
    }
}

/// What lists name, in their order.
async fn titles(store: &SqliteStore, wanted: &Wanted) -> Vec<String> {
    let listed = store.list(wanted).await.unwrap();
    listed.into_iter().map(|summary| summary.title).collect()
}

fn all() -> Wanted {
    Wanted {
        owner: None,
        limit: 100,
        offset: 0,
    }
}

/// Changes the file behind the back of the store.
fn by_hand(directory: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(file_in(directory)).unwrap();
    connection.execute_batch(sql).unwrap();
}
