//! Measures what it takes to keep a record: `cargo run --release -p cocode-agent --example append_cost`.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example that measures, for people who read its output"
)]

use std::time::{Duration, Instant};

use cocode_agent::{Block, NewConversation, Record, Settings, SqliteStore, Store as _, Wanted};

const N_RECORDS: usize = 2000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let directory = tempfile::tempdir_in(".").unwrap();
    let path = directory.path().join("conversations.db");
    let started = Instant::now();
    let store = SqliteStore::open(&path).unwrap();
    println!("open: {:?}", started.elapsed());
    let new = NewConversation {
        owner: "ann".to_owned(),
        settings: Settings::default(),
        title: "measured".to_owned(),
    };
    let started = Instant::now();
    let id = store.begin(new).await.unwrap();
    println!("first use, which makes the file: {:?}", started.elapsed());
    let lease = store.lease(&id).await.unwrap();
    let content = vec![Block::text("x".repeat(1000))];
    let record = Record::Asked {
        content: content.clone(),
    };
    let mut appends = Vec::new();
    let mut drafts = Vec::new();
    for _ in 0..N_RECORDS {
        let started = Instant::now();
        store.draft(&lease, &content).await.unwrap();
        drafts.push(started.elapsed());
        let started = Instant::now();
        store.append(&lease, &record).await.unwrap();
        appends.push(started.elapsed());
    }
    report("append (safe from power cuts)", appends);
    report("draft (safe from crashes)", drafts);
    drop(lease);
    drop(store);
    let started = Instant::now();
    let store = SqliteStore::open(&path).unwrap();
    let wanted = Wanted {
        limit: 20,
        ..Wanted::default()
    };
    store.list(&wanted).await.unwrap();
    println!("open and list: {:?}", started.elapsed());
    let started = Instant::now();
    let stored = store.load(&id).await.unwrap();
    println!(
        "load {} records: {:?}",
        stored.records.len(),
        started.elapsed()
    );
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: usize| {
        times
            .get(times.len() * part / 100)
            .copied()
            .unwrap_or_default()
    };
    println!("{what}: median {:?}, 99 % within {:?}", at(50), at(99));
}
