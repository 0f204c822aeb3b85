//! Several processes write one log at once, some of them end in the middle of a word, and some have no
//! room left: the chain holds.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::sync::Arc;
use std::time::Duration;

use cocode_access::{AuditLedger as _, AuditLog, WhenFailing};
use serde_json::Value;

use crate::audit_files::{entry, files, ledger_at, place, verified, write};
use crate::{part, start, start_with};

const N_PROCESSES: usize = 4;
const N_ENTRIES: usize = 150;
const SMALL: u64 = 20_000;

#[tokio::test]
async fn entries_of_several_processes_are_one_chain_and_none_is_lost() {
    if let Some((directory, part)) = part() {
        let ledger = ledger_at(&directory, SMALL, 100);
        let log = AuditLog::start(Arc::new(ledger), WhenFailing::Refuse);
        for number in 0..N_ENTRIES {
            log.reserve()
                .unwrap()
                .write(entry(&format!("{part}-{number}")));
            if number % 10 == 0 {
                log.flush(Duration::from_mins(1)).await.unwrap();
            }
        }
        return log.close(Duration::from_mins(1)).await.unwrap();
    }
    let (_directory, path) = place();
    let test = "audit_processes::entries_of_several_processes_are_one_chain_and_none_is_lost";
    let children: Vec<_> = (0..N_PROCESSES)
        .map(|number| start(test, &path, &number.to_string()))
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let report = verified(&path).await;
    assert!(report.is_intact(), "{report:?}");
    assert_eq!(report.n_lines, (N_PROCESSES * N_ENTRIES) as u64);
    assert!(report.n_files > 3, "{report:?}");
    assert_eq!(report.notes, []);
    let mut numbers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for name in files(&path) {
        for line in fs::read_to_string(path.join(name)).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let (process, number) = line["name"].as_str().unwrap().split_once('-').unwrap();
            let number = number.parse().unwrap();
            numbers.entry(process.to_owned()).or_default().push(number);
        }
    }
    assert_eq!(numbers.len(), N_PROCESSES);
    for of_process in numbers.values() {
        let in_order: Vec<usize> = (0..N_ENTRIES).collect();
        assert_eq!(
            *of_process, in_order,
            "each process is written in its order"
        );
    }
}

#[tokio::test]
async fn a_process_that_is_killed_while_it_writes_breaks_no_chain() {
    if let Some((directory, _)) = part() {
        let ledger = ledger_at(&directory, SMALL, 3);
        loop {
            let batch: Vec<_> = (0..20).map(|number| entry(&format!("{number}"))).collect();
            ledger.append(&batch).await.unwrap();
            #[expect(clippy::print_stdout, reason = "the test waits for this")]
            {
                println!("written");
            }
        }
    }
    let (_directory, path) = place();
    let test = "audit_processes::a_process_that_is_killed_while_it_writes_breaks_no_chain";
    for round in 1..8 {
        let mut child = start(test, &path, "");
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let written = said
            .map(Result::unwrap)
            .filter(|line| line.contains("written"));
        assert_eq!(written.take(round * 3).count(), round * 3);
        child.kill().unwrap();
        child.wait().unwrap();
        let report = verified(&path).await;
        assert!(report.is_intact(), "{report:?}");
        write(&ledger_at(&path, SMALL, 3), 1).await;
        let report = verified(&path).await;
        assert!(report.is_intact(), "{report:?}");
    }
}

#[tokio::test]
async fn an_entry_for_which_there_is_no_room_leaves_nothing_behind_in_its_process() {
    if let Some((directory, _)) = part() {
        let ledger = ledger_at(&directory, 1_000_000, 3);
        let mut n_written = 0;
        loop {
            match ledger.append(&[entry("fits")]).await {
                Ok(()) => n_written += 1,
                Err(error) => {
                    assert!(error.to_string().contains("cannot write"), "{error}");
                    break;
                }
            }
            assert!(n_written < 100, "there was room for everything");
        }
        assert!(n_written > 3);
        // It stays so, and does not get worse.
        assert!(ledger.append(&[entry("again")]).await.is_err());
        let report = verified(&directory).await;
        assert!(report.is_intact(), "{report:?}");
        assert_eq!((report.n_lines, report.notes.len()), (n_written, 0));
        return;
    }
    let (_directory, path) = place();
    let test =
        "audit_processes::an_entry_for_which_there_is_no_room_leaves_nothing_behind_in_its_process";
    // Files of this process cannot grow beyond a few thousand bytes: writes are cut there, and fail.
    let child = start_with("trap '' XFSZ; ulimit -f 8", test, &path, "");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    write(&ledger_at(&path, 1_000_000, 3), 1).await;
    let report = verified(&path).await;
    assert!(report.is_intact(), "{report:?}");
    assert_eq!(report.notes, []);
}
