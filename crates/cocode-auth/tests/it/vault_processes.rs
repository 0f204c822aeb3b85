//! Forty processes change the same credentials at once, some of them killed at any point: nothing
//! that was stored is lost, and what is stored can be read at every moment.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cocode_auth::oauth::VaultError;
use cocode_process::{ExitReport, GuardedChild, ProcessSpec, spawn};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::task::JoinSet;

use crate::vault::{file_vault, hasty_vault, increment, number, read_number, record, server};
use crate::{fresh_directory, shown};

const N_PROCESSES: u64 = 40;
const N_CHANGES: u64 = 6;

/// Set in a process that plays one of the forty: where, and how many changes it makes.
const DIRECTORY: &str = "COCODE_AUTH_TEST_VAULT";
const CHANGES: &str = "COCODE_AUTH_TEST_CHANGES";

/// As many changes as nobody lives to make.
const WITHOUT_END: u64 = u64::MAX;

/// What it says when it holds the lock, and after each change.
const HOLDS: &str = "holds the lock";
const STORED: &str = "stored one";

/// The directory and the number of changes, if this process plays one of the forty.
#[expect(
    clippy::disallowed_methods,
    reason = "they are set by these very tests"
)]
fn part() -> Option<(PathBuf, u64)> {
    let directory = std::env::var_os(DIRECTORY)?;
    let changes = std::env::var(CHANGES).unwrap();
    Some((directory.into(), changes.parse().unwrap()))
}

/// Starts this program again for one test, which finds its directory and knows what to do.
fn start(test: &str, directory: &Path, changes: u64) -> GuardedChild {
    let mut spec = ProcessSpec::new(std::env::current_exe().unwrap());
    let test = format!("vault_processes::{test}");
    spec.args = [&test, "--exact", "--test-threads=1"]
        .map(OsString::from)
        .to_vec();
    spec.env = vec![
        (DIRECTORY.into(), directory.into()),
        (CHANGES.into(), changes.to_string().into()),
    ];
    spawn(&spec).unwrap()
}

fn say(word: &str) {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{word}").unwrap();
    stdout.flush().unwrap();
}

fn kill(child: &GuardedChild) {
    let pid = Pid::from_raw(child.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

async fn change(directory: &Path, changes: u64) {
    let vault = file_vault(directory);
    let url = server("shared");
    for _ in 0..changes {
        let mut transaction = vault.transaction(&url).await.unwrap();
        say(HOLDS);
        let next = number(transaction.record()) + 1;
        transaction.commit(record(&url, next)).await.unwrap();
        say(STORED);
    }
}

#[tokio::test]
async fn forty_processes_lose_no_change() {
    if let Some((directory, changes)) = part() {
        return change(&directory, changes).await;
    }
    let directory = fresh_directory("vault-processes");
    let mut children: Vec<_> = (0..N_PROCESSES)
        .map(|_| start("forty_processes_lose_no_change", &directory, N_CHANGES))
        .collect();
    for child in &mut children {
        let mut output = String::new();
        let mut stdout = child.take_stdout().unwrap();
        stdout.read_to_string(&mut output).await.unwrap();
        assert_eq!(child.wait().await, ExitReport::Code(0), "{output}");
    }
    let vault = file_vault(&directory);
    let record = vault.read(&server("shared")).await.unwrap().unwrap();
    assert_eq!(record.revision, N_PROCESSES * N_CHANGES);
    assert_eq!(
        read_number(&vault, &server("shared")).await,
        N_PROCESSES * N_CHANGES
    );
}

/// When a process is killed: so long after it said something for the so manieth time.
#[derive(Clone, Copy)]
struct Death {
    word: &'static str,
    after: u64,
    pause: Duration,
}

/// Lets a process run until its death or its end, and counts what it says to have stored.
async fn attend(mut child: GuardedChild, mut death: Option<Death>) -> u64 {
    let mut lines = BufReader::new(child.take_stdout().unwrap()).lines();
    let (mut n_stored, mut n_said) = (0, 0);
    let mut expected = ExitReport::Code(0);
    while let Some(line) = lines.next_line().await.unwrap() {
        n_stored += u64::from(line.ends_with(STORED));
        n_said += u64::from(death.is_some_and(|death| line.ends_with(death.word)));
        if let Some(death) = death.take_if(|death| death.after == n_said) {
            // Nobody waits for anything here: it is to be met in the midst of whatever it does.
            tokio::time::sleep(death.pause).await;
            kill(&child);
            expected = ExitReport::Signal(9);
        }
    }
    assert_eq!(child.wait().await, expected);
    n_stored
}

/// Reads without pause, as other processes may. Each time there is a whole record, and never an older
/// one.
async fn watch(directory: PathBuf, ended: Arc<AtomicBool>) -> u64 {
    let vault = file_vault(&directory);
    let (mut last, mut n_reads) = (0, 0);
    while !ended.load(Ordering::Relaxed) {
        let found = read_number(&vault, &server("shared")).await;
        assert!(found >= last, "{found} after {last}");
        last = found;
        n_reads += 1;
        if let Ok(bytes) = fs::read(directory.join("credentials.json")) {
            serde_json::from_slice::<serde_json::Value>(&bytes).unwrap();
        }
        assert!(vault.list().await.unwrap().unreadable.is_empty());
    }
    n_reads
}

#[tokio::test]
async fn processes_that_are_killed_leave_no_damage_and_no_lock() {
    const TEST: &str = "processes_that_are_killed_leave_no_damage_and_no_lock";
    if let Some((directory, changes)) = part() {
        return change(&directory, changes).await;
    }
    for seed in 0..3 {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory = fresh_directory("vault-killed");
        let ended = Arc::new(AtomicBool::new(false));
        let mut watcher = JoinSet::new();
        watcher.spawn(watch(directory.clone(), Arc::clone(&ended)));
        let (mut children, mut n_killed) = (JoinSet::new(), 0);
        for number in 0..N_PROCESSES {
            // Most in the midst of a change, some while they wait.
            let death = match number % 4 {
                0 => None,
                1 => Some(STORED),
                _ => Some(HOLDS),
            };
            let death = death.map(|word| Death {
                word,
                after: random.u64(1..=N_CHANGES),
                pause: Duration::from_micros(random.u64(0..10_000)),
            });
            n_killed += u64::from(death.is_some());
            let changes = death.map_or(N_CHANGES, |_| WITHOUT_END);
            children.spawn(attend(start(TEST, &directory, changes), death));
        }
        let said: u64 = children.join_all().await.into_iter().sum();
        ended.store(true, Ordering::Relaxed);
        let n_reads: u64 = watcher.join_all().await.into_iter().sum();
        assert!(n_reads > 0);
        assert!(said >= (N_PROCESSES - n_killed) * N_CHANGES);

        // Each one that was killed may have stored one more than it could say.
        let stored = read_number(&file_vault(&directory), &server("shared")).await;
        assert!(
            (said..=said + n_killed).contains(&stored),
            "seed {seed}: {said} said, {stored} stored"
        );
        // The locks of the dead are free, at the first try.
        increment(&hasty_vault(&directory), &server("shared"))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn the_lock_of_a_killed_process_is_free_at_once() {
    const TEST: &str = "the_lock_of_a_killed_process_is_free_at_once";
    let url = server("held");
    if let Some((directory, _)) = part() {
        let _held = file_vault(&directory).transaction(&url).await.unwrap();
        say(HOLDS);
        return std::future::pending().await;
    }
    let directory = fresh_directory("vault-held");
    let hasty = hasty_vault(&directory);
    let stamp = hasty.stamp(&url).await.unwrap();
    let mut child = start(TEST, &directory, 0);
    let mut lines = BufReader::new(child.take_stdout().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap().unwrap();
        if line.ends_with(HOLDS) {
            break;
        }
    }
    let error = hasty.transaction(&url).await.unwrap_err();
    let pid = child.pid();
    assert!(
        matches!(error, VaultError::Busy { holder: Some(holder), .. } if holder == pid),
        "{error:?}"
    );
    let text = shown(&error);
    assert!(
        text.contains(&format!("for process {pid}, which")),
        "{text}"
    );

    assert!(!hasty.changed_since(&url, &stamp).await.unwrap());
    kill(&child);
    child.wait().await;
    drop(hasty.transaction(&url).await.unwrap());
    // It may have stored something and not have lived to say so.
    assert!(hasty.changed_since(&url, &stamp).await.unwrap());
}
