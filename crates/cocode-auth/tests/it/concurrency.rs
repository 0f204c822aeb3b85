//! Many processes change the file of secrets at once, and nothing is lost.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cocode_process::{ExitReport, GuardedChild, ProcessSpec, spawn};
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinSet;

use crate::{file_store, fresh_directory, get, name, set};

const N_PROCESSES: usize = 24;
const N_SECRETS: usize = 8;

/// Set in a process that plays a writer: its directory and its number.
const DIRECTORY: &str = "COCODE_AUTH_TEST_DIRECTORY";
const NUMBER: &str = "COCODE_AUTH_TEST_NUMBER";

#[expect(clippy::disallowed_methods, reason = "it is set by this very test")]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Sets secrets of its own, removes every other one, and one that all writers set.
async fn write(directory: &Path, number: &str) {
    let store = file_store(directory);
    for secret in 0..N_SECRETS {
        let own = format!("writer-{number}-{secret}");
        set(&store, &own, &format!("value of {own}")).await;
        set(&store, "shared", &format!("by {number}")).await;
        if secret % 2 == 1 {
            assert!(store.remove(&name(&own)).await.unwrap());
        }
    }
}

async fn check(directory: &Path) {
    let store = file_store(directory);
    let mut expected = vec![name("shared")];
    for number in 0..N_PROCESSES {
        for secret in (0..N_SECRETS).step_by(2) {
            let own = format!("writer-{number}-{secret}");
            assert_eq!(get(&store, &own).await, Some(format!("value of {own}")));
            expected.push(name(&own));
        }
    }
    expected.sort();
    let listed: Vec<_> = store
        .list()
        .await
        .unwrap()
        .into_iter()
        .map(|secret| secret.name)
        .collect();
    assert_eq!(listed, expected);
}

fn start_writer(directory: &Path, number: usize) -> GuardedChild {
    let mut spec = ProcessSpec::new(std::env::current_exe().unwrap());
    spec.args = [
        "concurrency::writers_in_many_processes_lose_nothing",
        "--exact",
        "--test-threads=1",
    ]
    .map(OsString::from)
    .to_vec();
    spec.env = vec![
        (DIRECTORY.into(), directory.into()),
        (NUMBER.into(), number.to_string().into()),
    ];
    spawn(&spec).unwrap()
}

#[tokio::test]
async fn writers_in_many_processes_lose_nothing() {
    if let (Some(directory), Some(number)) = (variable(DIRECTORY), variable(NUMBER)) {
        write(&PathBuf::from(directory), number.to_str().unwrap()).await;
        return;
    }
    let directory = fresh_directory("processes");
    let mut writers: Vec<_> = (0..N_PROCESSES)
        .map(|number| start_writer(&directory, number))
        .collect();
    for writer in &mut writers {
        let mut output = String::new();
        let mut stdout = writer.take_stdout().unwrap();
        stdout.read_to_string(&mut output).await.unwrap();
        assert_eq!(writer.wait().await, ExitReport::Code(0), "{output}");
        assert!(output.contains("1 passed"), "{output}");
    }
    check(&directory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_in_many_threads_lose_nothing() {
    let directory = fresh_directory("threads");
    let mut writers = JoinSet::new();
    for number in 0..N_PROCESSES {
        let directory = directory.clone();
        writers.spawn(async move { write(&directory, &number.to_string()).await });
    }
    writers.join_all().await;
    check(&directory).await;
}
